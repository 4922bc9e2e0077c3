/** One schedule: its timeline and why, its history, its definition and changes, its backfills. */
import { DuetickError, type Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { backfill, continueBackfill, deleteSchedule, editSchedule, mendSchedule, ofStatic, pauseSchedule, resumeSchedule, runSchedule, stopBackfill } from "./actions.js";
import { type App, type Page, anchor, attempts, button, by, facts, instant, instantAgo, json, named, row, section, state, table, tag } from "./app.js";
import { type Explanation, type Subject, explaining } from "./explaining.js";
import { link } from "./router.js";
import { type Timeline, shifted, timeline } from "./timeline.js";
import { REASONS, clock, iso, number, origin, several } from "./words.js";

type Schedule = Schemas["ScheduleView"];
type Line = Schemas["OccurrenceView"];

const DAY = 86_400_000;
const SPANS: Readonly<Record<string, readonly [number, number]>> = {
  day: [DAY, DAY / 2],
  week: [7 * DAY, 2 * DAY],
  month: [30 * DAY, 7 * DAY],
};
const LINES = 20;

interface Found {
  schedule: Schedule | null;
  etag: string | undefined;
  words: string;
  timeline: Timeline | null;
  explained: Explanation | null;
  history: Line[] | null;
  older: string | null;
  backfills: Schemas["BackfillView"][];
  operations: Schemas["OperationView"][] | null;
}

/** The reads of one schedule: of a user, or a static one. */
function reads(app: App, user: string, key: string) {
  const path = { user, key };
  const of = ofStatic(key);
  return {
    schedule: () => (user ? app.api.get("/api/users/{user}/schedules/{key}", { path }) : app.api.get("/api/static-schedules/{flow}/{id}", { path: of })),
    timeline: (query: { from: string; to: string }) =>
      user ? app.api.get("/api/users/{user}/schedules/{key}/timeline", { path, query }) : app.api.get("/api/static-schedules/{flow}/{id}/timeline", { path: of, query }),
    explain: (query: { at: string }) =>
      user ? app.api.get("/api/users/{user}/schedules/{key}/explain", { path, query }) : app.api.get("/api/static-schedules/{flow}/{id}/explain", { path: of, query }),
    history: (query: { limit: number; cursor?: string }) =>
      user ? app.api.get("/api/users/{user}/schedules/{key}/history", { path, query }) : app.api.get("/api/static-schedules/{flow}/{id}/history", { path: of, query }),
  };
}

export function schedule(app: App): Page {
  const [user = "", key = ""] = app.place.names;
  const ask = reads(app, user, key);
  const found: Found = { schedule: null, etag: undefined, words: "", timeline: null, explained: null, history: null, older: null, backfills: [], operations: null };
  let over = "";
  let cursor: string | null = null;
  let gone = false;

  const readSchedule = async (): Promise<void> => {
    try {
      const answer = await ask.schedule();
      const changed = timesOf(answer.body) !== (found.schedule && timesOf(found.schedule));
      Object.assign(found, { schedule: answer.body, etag: answer.etag });
      gone = false;
      if (changed) await readWords(answer.body);
    } catch (problem) {
      if (!(problem instanceof DuetickError) || problem.status !== 404) throw problem;
      Object.assign(found, { schedule: null, etag: undefined });
      gone = true;
    }
  };
  const readWords = async ({ cron, timezone, policies }: Schedule): Promise<void> => {
    try {
      found.words = (await app.api.post("/api/upcoming", { body: { cron, timezone, policies, limit: 1 } })).body.words;
    } catch (problem) {
      found.words = problem instanceof DuetickError ? problem.message : "";
    }
  };
  const readTimeline = async (): Promise<void> => {
    const { from, to, span } = app.place.query;
    if (from && to) return void (found.timeline = (await ask.timeline({ from, to })).body);
    const asked = window(span ?? "week");
    const body = (await ask.timeline(asked)).body;
    // It fires so often that a week does not fit into one answer: then a day says more.
    const crowded = !span && (Date.parse(body.from) > Date.parse(asked.from) || body.ahead.length > 1_000);
    found.timeline = crowded ? (await ask.timeline(window("day"))).body : body;
  };
  const readExplained = async (): Promise<void> => {
    const { at } = app.place.query;
    found.explained = at ? (await ask.explain({ at })).body : null;
  };
  const readHistory = async (): Promise<void> => {
    const { body } = await ask.history({ limit: LINES, ...(cursor ? { cursor } : {}) });
    Object.assign(found, { history: body.history, older: body.cursor });
  };
  const readOrders = async (): Promise<void> => {
    if (!user) return;
    const path = { user };
    const [backfills, operations] = await Promise.all([
      app.api.get("/api/users/{user}/backfills", { path }),
      app.api.get("/api/operations", { query: { user, limit: 50 } }),
    ]);
    found.backfills = backfills.body.backfills.filter((one) => one.order.key === key);
    found.operations = operations.body.operations.filter((one) => one.target === key || one.target.startsWith(`${key} `));
  };
  const choose = (at: string): void => app.choose({ at }, true);
  const subject = (): Subject => ({
    user,
    key,
    schedule: found.schedule,
    edit: () => found.schedule && app.act(editSchedule(app, found.schedule, found.etag)),
  });
  const page = (to: string | null) => async (): Promise<void> => {
    cursor = to;
    await readHistory();
    app.draw();
  };
  return {
    title: named(user, key),
    every: 5_000,
    read: async () => {
      const tries = await Promise.allSettled([readSchedule(), readTimeline(), readExplained(), readHistory(), readOrders()]);
      const failed = tries.find((one) => one.status === "rejected");
      // What was deleted keeps its history; what never was has nothing at all.
      if (failed && !(gone && tries.some((one, place) => place > 0 && one.status === "fulfilled" && found.history?.length))) throw failed.reason;
    },
    view: () => [
      heading(app, subject(), found, gone),
      found.timeline && times(app, found.timeline, over, (said) => {
        if (said === over) return;
        over = said;
        app.draw();
      }),
      found.explained ? explaining(app, subject(), found.explained, choose) : h("p", { class: "hint" }, "Click a time of the timeline, or enter one, and the console says why it fired then, or did not, or whether it will."),
      lines(app, found, choose, { newest: cursor ? page(null) : null, older: found.older ? page(found.older) : null }),
      definition(app, subject(), found),
      changesOf(app, found, user),
    ],
  };
}

/** Whatever the words of a schedule tell, as one text. */
function timesOf({ cron, timezone, policies }: Schedule): string {
  return JSON.stringify([cron, timezone, policies]);
}

function window(name: string): { from: string; to: string } {
  const [behind, ahead] = SPANS[name] ?? [7 * DAY, 2 * DAY];
  // To the minute, so that the picture does not tremble with each read.
  const now = Math.ceil(Date.now() / 60_000) * 60_000;
  return { from: iso(now - behind), to: iso(now + ahead) };
}

function heading(app: App, of: Subject, found: Found, gone: boolean): Child {
  const { user, key, schedule: one } = of;
  const held = one?.heldBy;
  return [
    h(
      "p",
      { class: "standing" },
      gone && tag("deleted", "off"),
      one && tag(one.defect ? "unreadable" : one.state, one.defect ? "bad" : one.state === "active" ? "good" : "off"),
      one && [" ", h("span", { class: "words" }, found.words)],
      user && [" · ", anchor(link("schedules", [], { user }), `all of ${user}`)],
    ),
    one?.defect && h("p", { class: "error" }, one.defect),
    one?.paused && h("p", { class: "note" }, "Paused since ", instant(app, one.paused.since), one.paused.until ? [" until ", instant(app, one.paused.until)] : ", until somebody resumes it", one.paused.note && `: ${one.paused.note}`),
    held && h("p", { class: "note" }, `Held by a pause of ${held.scope} since `, instant(app, held.since), held.until && [" until ", instant(app, held.until)]),
    h(
      "div",
      { class: "buttons", role: "group", "aria-label": "Actions" },
      one && (one.paused ? button("Resume", () => app.act(resumeSchedule(app, user, key)), { key: "resume" }) : button("Pause", () => app.act(pauseSchedule(app, user, key)), { key: "pause" })),
      one && user && [
        button("Run now", () => app.act(runSchedule(app, user, key)), { key: "run" }),
        button("Change", of.edit, { key: "edit" }),
        button("Backfill", () => app.act(backfill(app, user, key)), { key: "backfill" }),
        button("Mend", () => app.act(mendSchedule(app, user, key)), { key: "mend" }),
        button("Delete", () => app.act(deleteSchedule(app, user, key)), { key: "delete", class: "danger" }),
      ],
    ),
  ];
}

function times(app: App, found: Timeline, over: string, hover: (said: string) => void): Child {
  const { at, span, from } = app.place.query;
  const zone = found.timezone ?? "UTC";
  const explain = (event: Event): void => {
    event.preventDefault();
    const text = String(new FormData(event.target as HTMLFormElement).get("at") ?? "");
    if (text) app.choose({ at: `${text.length === 16 ? `${text}:00` : text}Z` }, true);
  };
  const presets = Object.keys(SPANS).map((name) =>
    button(name, () => app.choose({ span: name, from: null, to: null }, true), { key: name, "aria-pressed": String(!from && span === name) }),
  );
  return section(
    "Timeline",
    h(
      "div",
      { class: "buttons" },
      button("◀ earlier", () => app.choose({ ...shifted(found, -1), span: null }, true), { key: "earlier" }),
      button("later ▶", () => app.choose({ ...shifted(found, 1), span: null }, true), { key: "later" }),
      button("now", () => app.choose({ from: null, to: null, span: null }, true), { key: "now" }),
      ...presets,
      h(
        "form",
        { class: "explain", key: "explain", on: { submit: explain } },
        h("label", { for: "explain-at" }, "Explain (UTC)"),
        h("input", { id: "explain-at", name: "at", type: "datetime-local", step: "1", value: at ? at.slice(0, 19) : "" }),
        h("button", { type: "submit" }, "Why?"),
      ),
    ),
    timeline({
      found,
      zone,
      width: app.width,
      now: Date.now(),
      at: Date.parse(at ?? "") || null,
      over,
      choose: (time) => app.choose({ at: iso(time) }, true),
      hover,
    }),
  );
}

interface Pages {
  newest: (() => Promise<void>) | null;
  older: (() => Promise<void>) | null;
}

function lines(app: App, found: Found, choose: (at: string) => void, pages: Pages): Child {
  const rows = found.history && found.history.map((one) =>
    row(
      `${one.id}${one.nominalFireTime}`,
      [
        button(clock(one.nominalFireTime, app.zone), () => choose(one.nominalFireTime), { class: "plain", title: one.nominalFireTime, "aria-label": `Explain ${clock(one.nominalFireTime, app.zone)}` }),
        one.until && one.count > 1 && [h("br"), `${several(one.count, "time")} until `, instant(app, one.until)],
      ],
      [state(one.state), one.reason && h("small", null, ` ${REASONS[one.reason]}`)],
      origin(one.origin),
      attempts(one.attempts),
      h("span", { class: "error-text" }, one.error ?? ""),
    ),
  );
  return section(
    "History",
    table("History", ["Nominal time", "Outcome", "Asked for by", "Attempts", "Error"], rows, "It has not fired yet."),
    h("nav", { class: "pager", "aria-label": "More of the history" }, pages.newest && button("Newest", () => void pages.newest?.()), pages.older && button("Older", () => void pages.older?.())),
  );
}

function definition(app: App, { user, key }: Subject, { schedule: one, words }: Found): Child {
  if (!one) return null;
  return section(
    "Definition",
    facts([
      ["Cron", [h("code", null, one.cron), h("small", null, ` ${words}`)]],
      ["Time zone", one.timezone ?? "UTC"],
      ["Flow and action", `${one.flow} / ${one.action}`],
      ["Next", instantAgo(app, one.nextFireAt, one.paused ? "none while it is paused" : one.defect ? "none while it cannot be read" : "never again, as things stand")],
      ["Last run", instantAgo(app, one.lastRunAt, "never")],
      ["Runs", number(one.runs)],
      ["Made", instant(app, one.createdAt)],
      ["Changed", [instant(app, one.updatedAt), ` (version ${one.version})`]],
      ["Done since", one.doneAt && instant(app, one.doneAt)],
      ["Outside id", one.externalId],
      ["Runs as", one.principal && json(one.principal)],
    ]),
    h("details", { key: "policies" }, h("summary", null, "Policies"), json(one.policies)),
    h("details", { key: "input" }, h("summary", null, "Input, secrets withheld"), json(one.input)),
    Object.keys(one.labels).length > 0 && h("details", { key: "labels" }, h("summary", null, "Labels"), json(one.labels)),
    user && h("p", { key: "week", class: "alone" }, anchor(link("week", [], { user, key }), "What would a change of it add to the week?")),
  );
}

function changesOf(app: App, found: Found, user: string): Child {
  const dated = found.timeline && [...found.timeline.definitions].reverse();
  const definitions = dated && dated.map((one) =>
    row(one.since, instant(app, one.since), h("code", null, one.cron), one.timezone ?? "UTC", [one.standing, one.pausedUntil && [" until ", instant(app, one.pausedUntil)]]),
  );
  const operations = found.operations && found.operations.map((one) => row(one.id, instant(app, one.at), by(one.who), one.verb, one.outcome, one.why));
  const backfills = found.backfills.map((one) =>
    row(
      one.id,
      instant(app, one.startedAt),
      [instant(app, one.order.from), " – ", instant(app, one.order.to)],
      `${one.state}${one.waitsFor ? `, waits: ${one.waitsFor}` : ""}`,
      `${number(one.brought + one.firedBefore)} of ${number(one.order.times)}, ${number(one.failed)} failed`,
      backfillChange(app, one),
    ),
  );
  return [
    section("Changes of its times", table("Definitions in the span of the timeline", ["Since", "Cron", "Zone", "Standing"], definitions, "None is known in this span.")),
    user && section("What operators did to it", table("Operations", ["When", "Who", "What", "Outcome", "Why"], operations, "Nothing, among the newest of this user."), anchor(link("record", [], { user }), "All operations about this user")),
    backfills.length > 0 && section("Backfills", table("Backfills", ["Begun", "Span", "State", "How far", ""], backfills, "")),
  ];
}

export function backfillChange(app: App, one: Schemas["BackfillView"]): Child {
  if (one.state === "running") return button("Stop", () => app.act(stopBackfill(app, one)));
  return one.state === "stopped" && button("Continue", () => app.act(continueBackfill(app, one)));
}
