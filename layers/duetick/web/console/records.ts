/** Pages that only read: the reports of ticks and the locks, what operators did, rows that cannot be read. */
import type { Schemas } from "../client/src/index.js";
import { h } from "../view/view.js";
import { editSchedule, mendSchedule } from "./actions.js";
import { type App, type Page, anchor, button, by, instant, instantAgo, row, section, table, tag } from "./app.js";
import { type Control, filters } from "./filters.js";
import { link, ofSchedule } from "./router.js";
import { lateness, tickState } from "./overview.js";
import { pager } from "./schedules.js";
import { number, span } from "./words.js";

const REPORTS = 100;
const PER_PAGE = 50;

export function ticks(app: App): Page {
  let workers: Schemas["WorkerView"][] | null = null;
  let locks: Schemas["LockView"][] | null = null;
  return {
    title: "Ticks and locks",
    every: 5_000,
    read: async () => {
      const [reports, held] = await Promise.all([app.api.get("/api/workers", { query: { limit: REPORTS } }), app.api.get("/api/locks")]);
      [workers, locks] = [reports.body.workers, held.body.locks];
    },
    view: () => [
      section(
        "The newest reports",
        table(
          "Reports of ticks and of runs in the background",
          ["Began", "Kind", "State", "Took", "Late by", "Counts", "Id"],
          workers && workers.map((one) =>
            row(one.id, instantAgo(app, one.startedAt), one.kind, tickState(one), one.milliseconds === null ? "–" : span(one.milliseconds), lateness(one), Object.entries(one.counts).map(([name, count]) => `${name} ${number(count)}`).join(", "), h("code", null, one.id)),
          ),
          "None has reported in eight days.",
        ),
      ),
      section(
        "Locks",
        table("Locks", ["Name", "State", "Owner", "Since", "Until"], locks && locks.map((one) => row(one.name, one.name, tag(one.state, one.state === "held" ? "wait" : "plain"), one.owner, instant(app, one.since), instant(app, one.until))), "Nobody has a lock."),
      ),
    ],
  };
}

const WHO: readonly Control[] = [
  { name: "user", label: "About the user", kind: "text" },
  { name: "who", label: "Done by", kind: "text", hint: "a text in the name" },
];

export function record(app: App): Page {
  let found: Schemas["OperationsView"] | null = null;
  return {
    title: "What operators did",
    every: 15_000,
    read: async () => {
      const { user, who, cursor } = app.place.query;
      const query = { limit: PER_PAGE, ...(user ? { user } : {}), ...(who ? { who } : {}), ...(cursor ? { cursor } : {}) };
      found = (await app.api.get("/api/operations", { query })).body;
    },
    view: () => [
      filters(app, WHO),
      found &&
        table(
          "Operations",
          ["When", "Who", "What", "User", "Target", "Outcome", "Why"],
          found.operations.map((one) =>
            row(one.id, instantAgo(app, one.at), by(one.who), one.verb, one.user ? anchor(link("schedules", [], { user: one.user }), one.user) : "–", one.target, tag(one.outcome, one.outcome === "done" ? "good" : one.outcome === "dry_run" ? "plain" : one.outcome === "begun" ? "wait" : "bad"), one.why),
          ),
          "No operation, as far as the filters go.",
        ),
      found && pager(app, found.cursor, found.operations.length),
    ],
  };
}

export function unreadable(app: App): Page {
  let found: Schemas["UnreadablePage"] | null = null;
  const edit = async (user: string, key: string): Promise<void> => {
    const answer = await app.api.get("/api/users/{user}/schedules/{key}", { path: { user, key } });
    app.act(editSchedule(app, answer.body, answer.etag));
  };
  return {
    title: "Rows that cannot be read",
    every: 10_000,
    read: async () => {
      const { cursor } = app.place.query;
      found = (await app.api.get("/api/unreadable", { query: { limit: PER_PAGE, ...(cursor ? { cursor } : {}) } })).body;
    },
    view: () => [
      h("p", { class: "hint" }, "They do not fire. Put a cron and a zone that can be read, or mend one that can be read by now: then its misfire policy decides about the times since."),
      found &&
        table(
          "Rows that cannot be read",
          ["User", "Key", "Since", "Cron", "Zone", "Error", ""],
          found.unreadable.map((one) =>
            row(
              `${one.user}/${one.key}`,
              one.user || h("i", null, "static"),
              anchor(ofSchedule(one.user, one.key), one.key),
              instantAgo(app, one.since),
              h("code", null, one.cron),
              one.timezone ?? "UTC",
              h("span", { class: "error-text" }, one.error),
              one.user && h("span", { class: "buttons" }, button("Change", () => void edit(one.user, one.key).catch((problem: unknown) => app.say(String(problem)))), button("Mend", () => app.act(mendSchedule(app, one.user, one.key)))),
            ),
          ),
          "Every row can be read.",
        ),
      found && pager(app, found.cursor, found.unreadable.length),
    ],
  };
}
