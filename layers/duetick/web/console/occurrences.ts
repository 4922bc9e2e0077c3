/** The occurrences that died, run or wait: of all users, or of one in any state; singly and in bulk. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { type Verb, changeMany, changeOccurrence } from "./actions.js";
import { type App, type Page, anchor, attempts, button, facts, instant, json, named, row, section, state, table } from "./app.js";
import { type Control, filters } from "./filters.js";
import { link, ofSchedule } from "./router.js";
import { pager } from "./schedules.js";
import { REASONS, STATES, type State, origin } from "./words.js";

type One = Schemas["AnyOccurrence"];
type Filter = Schemas["ManyOccurrences"];

const PER_PAGE = 50;
const ORIGINS = ["schedule", "run", "call", "backfill", "failure", "job"] as const;

const CONTROLS: readonly Control[] = [
  {
    name: "state",
    label: "State",
    kind: "choice",
    options: [["dead", "dead"], ["running", "handed on or running"], ["retrying", "will retry"], ["scheduled", "planned"], ["queued", "handed on"], ["processing", "running"], ["any", "any (of one user)"]],
  },
  { name: "reason", label: "Reason", kind: "choice", options: [["", "any"], ...Object.entries(REASONS).map(([name, said]) => [name, `${name}: ${said}`] as const)] },
  { name: "origin", label: "Origin", kind: "choice", options: [["", "any"], ...ORIGINS.map((one) => [one, origin(one)] as const)] },
  { name: "flow", label: "Flow", kind: "text" },
  { name: "user", label: "User", kind: "text" },
  { name: "key", label: "Key", kind: "text", hint: "with a user" },
  { name: "label", label: "Label", kind: "text", hint: "team=garden" },
  { name: "from", label: "From (UTC)", kind: "time" },
  { name: "to", label: "Until before (UTC)", kind: "time" },
];

/** What each verb may change. */
const MAY: Readonly<Record<Verb, readonly State[]>> = {
  retry: ["dead"],
  cancel: ["scheduled", "queued", "processing", "retrying"],
  delete: ["dead", "succeeded", "cancelled", "queued"],
};

/** The filter that the address names: the dead, unless it says otherwise. */
function filterOf({ place: { query } }: App): Filter {
  const given: Record<string, string> = {};
  for (const name of ["state", "reason", "origin", "flow", "user", "key", "label", "from", "to"])
    if (query[name]) given[name] = query[name];
  if (!given["state"]) given["state"] = "dead";
  if (given["state"] === "any") delete given["state"];
  return given as Filter;
}

export function occurrences(app: App): Page {
  let found: Schemas["OccurrencesPage"] | null = null;
  return {
    title: "Dead, running and waiting",
    every: 10_000,
    read: async () => {
      const { cursor } = app.place.query;
      const { dryRun: _, ...filter } = filterOf(app);
      const query = { ...filter, limit: PER_PAGE, ...(cursor ? { cursor } : {}) };
      found = (await app.api.get("/api/occurrences", { query: query as object })).body;
    },
    view: () => {
      const filter = filterOf(app);
      return [
        filters(app, CONTROLS),
        bulk(app, filter),
        found && list(app, found.occurrences),
        found && pager(app, found.cursor, found.occurrences.length),
      ];
    },
  };
}

function bulk(app: App, filter: Filter): Child {
  const said = Object.entries(filter).map(([name, value]) => `${name} ${String(value)}`).join(", ");
  const one = filter.state as State | "running" | undefined;
  const fits = (verb: Verb): boolean => one === undefined || (one === "running" ? verb === "cancel" : MAY[verb].includes(one));
  const verbs = (["retry", "cancel", "delete"] as const).filter(fits);
  return h(
    "div",
    { class: "buttons", role: "group", "aria-label": "All that the filters name" },
    ...verbs.map((verb) => button(`${verb[0]?.toUpperCase() ?? ""}${verb.slice(1)} all…`, () => app.act(changeMany(app, verb, filter, said)), verb === "delete" ? { class: "danger", key: verb } : { key: verb })),
    anchor(link("unreadable"), "Rows that cannot be read"),
  );
}

export function changes(app: App, one: One): Child {
  const verbs = (["retry", "cancel", "delete"] as const).filter((verb) => MAY[verb].includes(one.state));
  return h(
    "span",
    { class: "buttons" },
    ...verbs.map((verb) => button(`${verb[0]?.toUpperCase() ?? ""}${verb.slice(1)}`, () => app.act(changeOccurrence(app, verb, one)), { key: verb, "aria-label": `${verb} ${one.id}`, ...(verb === "delete" ? { class: "danger" } : {}) })),
  );
}

function list(app: App, found: readonly One[]): Child {
  const rows = found.map((one) =>
    row(
      `${one.id}${one.origin}`,
      anchor(ofOccurrence(one), instant(app, one.nominalFireTime)),
      one.user ? anchor(link("schedules", [], { user: one.user }), one.user) : h("i", null, "static"),
      one.key.startsWith("job:") ? anchor(link("job", [one.user, jobId(one.key)]), one.key) : anchor(ofSchedule(one.user, one.key, { at: one.nominalFireTime }), one.key),
      one.flow || "–",
      [state(one.state), one.reason && h("small", null, ` ${one.reason}`)],
      attempts(one.attempts),
      h("span", { class: "error-text" }, one.error ?? ""),
      changes(app, one),
    ),
  );
  const titles = ["Nominal time", "User", "Key", "Flow", "State", "Attempts", "Error", ""];
  return table("Occurrences", titles, rows, "None, as far as the filters go.");
}

function jobId(key: string): string {
  return `occ_${key.replace(/^job:/, "")}`;
}

export function ofOccurrence(one: One): string {
  return link("occurrence", [one.id], { user: one.user, key: one.key });
}

/** One occurrence: what became of it, attempt by attempt. */
export function occurrence(app: App): Page {
  const [id = ""] = app.place.names;
  let found: Schemas["OccurrenceDetail"] | null = null;
  return {
    title: `Occurrence ${id}`,
    every: 5_000,
    read: async () => {
      const { user, key } = app.place.query;
      const query = key ? { user: user ?? "", key } : {};
      found = (await app.api.get("/api/occurrences/{id}", { path: { id }, query })).body;
    },
    view: () => found && detail(app, found),
  };
}

function detail(app: App, one: Schemas["OccurrenceDetail"]): Child {
  return [
    facts([
      ["Schedule", anchor(ofSchedule(one.user, one.key, { at: one.nominalFireTime }), named(one.user, one.key))],
      ["Nominal time", instant(app, one.nominalFireTime)],
      ["State", [state(one.state), one.reason && ` ${one.reason}: ${REASONS[one.reason]}`]],
      ["Asked for by", origin(one.origin)],
      ["Flow", one.flow],
      ["Attempts", String(one.attempts)],
      ["Begun", instant(app, one.begunAt)],
      ["Next attempt", one.nextAttemptAt && instant(app, one.nextAttemptAt)],
      ["Error", one.error && h("span", { class: "error-text" }, one.error)],
      ["Labels", Object.keys(one.labels).length > 0 && json(one.labels)],
      ["Tells of", one.death && `the death of ${one.death.occurrence}: ${one.death.reason}`],
    ]),
    changes(app, one),
    section(
      "Attempts that failed",
      table("Attempts that failed", ["Attempt", "Ended", "Error"], one.failures.map((each) => row(`${each.attempt}`, String(each.attempt), instant(app, each.at), h("span", { class: "error-text" }, each.error))), "None."),
    ),
    section(
      "What happened to it",
      table("Transitions", ["When", "From", "To", "Why"], one.events.map((each, place) => row(`${place}`, instant(app, each.at), word(each.before), word(each.after), each.note ?? "")), "Nothing beyond claim, begin and settle."),
    ),
    one.schedule && section("Its input, as operators see it", json(one.schedule.input)),
  ];
}

function word(one: State | "failed"): string {
  return one === "failed" ? "failed" : STATES[one][0];
}
