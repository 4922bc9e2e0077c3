/** The schedules of all users, or of one, by search and filters, page by page. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { enqueueJobs, eraseUser, exportUser, limitGroup, newSchedule, pauseGroup, resumeGroup } from "./actions.js";
import { type App, type Page, anchor, button, instant, row, table, tag } from "./app.js";
import { type Control, filters } from "./filters.js";
import { link, ofSchedule } from "./router.js";
import type { Tone } from "./words.js";

type One = Schemas["AnyScheduleView"];

const PER_PAGE = 50;
const STATES: readonly (readonly [string, string])[] = [
  ["", "active, paused, unreadable"],
  ["active", "active"],
  ["paused", "paused"],
  ["done", "done"],
  ["unreadable", "unreadable"],
  ["all", "all"],
];
const TONES: Readonly<Record<One["state"], Tone>> = { active: "good", paused: "off", done: "plain", unreadable: "bad" };

const CONTROLS: readonly Control[] = [
  { name: "text", label: "Text", kind: "search", hint: "in user, key, cron, flow, action, outside id, labels" },
  { name: "user", label: "User", kind: "text" },
  { name: "flow", label: "Flow", kind: "text" },
  { name: "label", label: "Label", kind: "text", hint: "team=garden" },
  { name: "state", label: "State", kind: "choice", options: STATES },
];

export function schedules(app: App): Page {
  let found: { schedules: One[]; cursor: string | null } | null = null;
  let flows: Schemas["FlowsView"]["flows"] = [];
  const make = async (user: string): Promise<void> => {
    flows = flows.length ? flows : (await app.api.get("/api/flows")).body.flows;
    app.act(newSchedule(app, user, flows));
  };
  return {
    title: app.place.query["user"] ? `Schedules of ${app.place.query["user"]}` : "Schedules",
    every: 10_000,
    read: async () => {
      found = await page(app);
    },
    view: () => {
      const { user = "" } = app.place.query;
      return [
        filters(app, CONTROLS),
        user ? ofUser(app, user, () => void make(user)) : h("p", { class: "buttons" }, button("New schedule", () => void make(""))),
        found && list(app, found.schedules),
        found && pager(app, found.cursor, found.schedules.length),
      ];
    },
  };
}

/** Read a page: of one user by that user's own list, which has an index; of all users otherwise. */
async function page(app: App): Promise<{ schedules: One[]; cursor: string | null }> {
  const { text, user, flow, label, state, cursor } = app.place.query;
  const sought = { limit: PER_PAGE, ...(text ? { text } : {}), ...(flow ? { flow } : {}), ...(label ? { label } : {}), ...(cursor ? { cursor } : {}) };
  if (user && state !== "unreadable") {
    const query = { ...sought, ...(state ? { state: state as "active" } : {}) };
    const { body } = await app.api.get("/api/users/{user}/schedules", { path: { user }, query });
    return { schedules: body.schedules.map((one) => ({ ...one, user, state: one.defect ? ("unreadable" as const) : one.state })), cursor: body.cursor };
  }
  const query = { ...sought, ...(state ? { state: state as "active" } : {}) };
  return (await app.api.get("/api/all-schedules", { query })).body;
}

function list(app: App, found: readonly One[]): Child {
  const rows = found.map((one) =>
    row(
      `${one.user}/${one.key}`,
      one.user ? anchor(link("schedules", [], { user: one.user }), one.user) : h("i", null, "static"),
      anchor(ofSchedule(one.user, one.key), one.key),
      [tag(one.state, TONES[one.state]), one.heldBy && h("small", null, ` held by a pause of ${one.heldBy.scope}`)],
      h("code", null, one.cron ?? "?"),
      one.timezone ?? "UTC",
      `${one.flow ?? "?"} / ${one.action ?? "?"}`,
      instant(app, one.nextFireAt),
    ),
  );
  return table("Schedules", ["User", "Key", "State", "Cron", "Zone", "Flow and action", "Next"], rows, "No schedule, as far as the filters go.");
}

/** A page may be short, or empty, and have a next one. */
export function pager(app: App, cursor: string | null, amount: number): Child {
  const first = app.place.query["cursor"] && button("First page", () => app.choose({ cursor: null }));
  const next = cursor !== null && button(amount ? "Next page" : "Look further", () => app.choose({ cursor }), { class: "next" });
  return h("nav", { class: "pager", "aria-label": "More of the list" }, first, next);
}

function ofUser(app: App, user: string, make: () => void): Child {
  const scope = `user:${user}`;
  return h(
    "div",
    { class: "buttons", role: "group", "aria-label": `The user ${user}` },
    button("New schedule", make),
    button("Enqueue jobs", () => app.act(enqueueJobs(app, user))),
    button("Pause the user", () => app.act(pauseGroup(app, scope))),
    button("Resume the user", () => app.act(resumeGroup(app, scope))),
    button("Limit the user", () => app.act(limitGroup(app, { scope }))),
    button("Export", () => app.act(exportUser(app, user))),
    button("Erase", () => app.act(eraseUser(app, user)), { class: "danger" }),
    anchor(link("jobs", [], { user }), "Jobs"),
    anchor(link("occurrences", [], { user }), "Occurrences"),
    anchor(link("record", [], { user }), "What operators did"),
  );
}
