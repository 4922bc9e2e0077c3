/** The jobs of one user, or those of all users that run, wait or are dead; and one of them. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { cancelJob, enqueueJobs } from "./actions.js";
import { type App, type Page, anchor, attempts, button, facts, instant, instantAgo, json, row, section, state, table, tag } from "./app.js";
import { type Control, filters } from "./filters.js";
import { changes } from "./occurrences.js";
import { link } from "./router.js";
import { pager } from "./schedules.js";
import { REASONS, VERDICTS } from "./words.js";

const PER_PAGE = 50;
const OF_ONE = [["pending", "pending"], ["ended", "ended"], ["all", "all"], ["dead", "dead"], ["succeeded", "ran"], ["cancelled", "cancelled"]] as const;
const OF_ALL = [["dead", "dead"], ["running", "handed on or running"], ["scheduled", "planned"], ["retrying", "will retry"]] as const;

type Listed = Schemas["JobView"] | Schemas["AnyOccurrence"];

const isJob = (one: Listed): one is Schemas["JobView"] => "at" in one;

export function jobs(app: App): Page {
  const { user, flow, state: chosen, cursor } = app.place.query;
  let found: { jobs: readonly Listed[]; cursor: string | null } | null = null;
  const paged = { limit: PER_PAGE, ...(flow ? { flow } : {}), ...(cursor ? { cursor } : {}) };
  const controls: Control[] = [
    { name: "user", label: "User", kind: "text" },
    { name: "flow", label: "Flow", kind: "text" },
    { name: "state", label: "State", kind: "choice", options: user ? OF_ONE : OF_ALL },
  ];
  return {
    title: user ? `Jobs of ${user}` : "Jobs",
    every: 10_000,
    read: async () => {
      if (user) {
        const known = OF_ONE.find(([one]) => one === chosen)?.[0] ?? "pending";
        const { body } = await app.api.get("/api/users/{user}/jobs", { path: { user }, query: { ...paged, state: known } });
        found = body;
        return;
      }
      const known = OF_ALL.find(([one]) => one === chosen)?.[0] ?? "dead";
      const { body } = await app.api.get("/api/occurrences", { query: { ...paged, state: known, origin: "job" } });
      found = { jobs: body.occurrences, cursor: body.cursor };
    },
    view: () => [
      filters(app, controls),
      h("p", { class: "buttons" }, button("Enqueue jobs", () => app.act(enqueueJobs(app, user ?? "")))),
      !user && h("p", { class: "hint" }, "Of all users there are those that run, wait or are dead. Name a user for the others."),
      found && list(app, user ?? "", found.jobs),
      found && pager(app, found.cursor, found.jobs.length),
    ],
  };
}

function list(app: App, user: string, found: readonly Listed[]): Child {
  const rows = found.map((one) => {
    const owner = isJob(one) ? user : one.user;
    return row(
      one.id,
      anchor(link("job", [owner, one.id]), one.id),
      anchor(link("jobs", [], { user: owner }), owner),
      isJob(one) ? `${one.flow} / ${one.action}` : one.flow,
      instant(app, isJob(one) ? one.at : one.nominalFireTime),
      [state(one.state), one.reason && h("small", null, ` ${REASONS[one.reason]}`)],
      attempts(one.attempts),
      h("span", { class: "error-text" }, one.error ?? ""),
    );
  });
  return table("Jobs", ["Id", "User", "Flow", "At", "State", "Attempts", "Error"], rows, "No job, as far as the filters go.");
}

/** One job: what it runs, what became of it, and why. */
export function job(app: App): Page {
  const [user = "", key = ""] = app.place.names;
  const path = { user, key };
  let one: Schemas["JobView"] | null = null;
  let explained: Schemas["ExplanationView"] | null = null;
  let history: Schemas["OccurrenceView"][] = [];
  return {
    title: `Job ${key}`,
    every: 5_000,
    read: async () => {
      const [got, why, past] = await Promise.all([
        app.api.get("/api/users/{user}/jobs/{key}", { path }),
        app.api.get("/api/users/{user}/jobs/{key}/explain", { path }),
        app.api.get("/api/users/{user}/jobs/{key}/history", { path }),
      ]);
      [one, explained, history] = [got.body, why.body, past.body.history];
    },
    view: () => one && [detail(app, user, one), explained && why(explained), past(app, history)],
  };
}

function detail(app: App, user: string, one: Schemas["JobView"]): Child {
  const entry = { ...one, user, key: `job:${one.id.replace(/^occ_/, "")}`, nominalFireTime: one.at, origin: "job", until: null, count: 1, death: null };
  return [
    facts([
      ["User", anchor(link("schedules", [], { user }), user)],
      ["Flow and action", `${one.flow} / ${one.action}`],
      ["State", [state(one.state), one.reason && ` ${REASONS[one.reason]}`]],
      ["Due", instantAgo(app, one.at)],
      ["Attempts", String(one.attempts)],
      ["Next attempt", one.nextAttemptAt && instantAgo(app, one.nextAttemptAt)],
      ["Made", instant(app, one.createdAt)],
      ["Ended", one.endedAt && instant(app, one.endedAt)],
      ["Key", one.key],
      ["Error", one.error && h("span", { class: "error-text" }, one.error)],
      ["Labels", Object.keys(one.labels).length > 0 && json(one.labels)],
    ]),
    h("div", { class: "buttons" }, one.endedAt ? changes(app, entry) : button("Cancel", () => app.act(cancelJob(app, user, one.id)))),
    h("details", null, h("summary", null, "Input, secrets withheld"), json(one.input)),
    h("details", null, h("summary", null, "Policies"), json(one.policies)),
  ];
}

function why(found: Schemas["ExplanationView"]): Child {
  const [word, tone] = VERDICTS[found.verdict];
  return section("Why?", h("p", null, tag(word, tone)), h("ul", { class: "said" }, ...found.said.map((one) => h("li", null, one))));
}

function past(app: App, history: readonly Schemas["OccurrenceView"][]): Child {
  const rows = history.map((one) => row(one.id, instant(app, one.nominalFireTime), state(one.state), one.origin.split(":")[0] ?? "", attempts(one.attempts), h("span", { class: "error-text" }, one.error ?? "")));
  return section("History", table("History", ["Time", "Outcome", "Origin", "Attempts", "Error"], rows, "Nothing yet."));
}
