/** What a new or a changed schedule would add to the week, before it is saved. */
import { DuetickError, type Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import type { App } from "./app.js";
import { type Control, filters } from "./filters.js";
import { numberOf } from "./words.js";

type Wanted = NonNullable<Schemas["ForecastBody"]["schedule"]>;
export type Flows = Schemas["FlowsView"]["flows"];
export type Errors = Readonly<Record<string, string>>;

const NEW: readonly Control[] = [
  { name: "cron", label: "Cron", kind: "text", hint: "0 9 * * MON-FRI" },
  { name: "timezone", label: "Time zone", kind: "text", hint: "UTC" },
  { name: "copies", label: "How many", kind: "number", hint: "1: of so many users" },
  { name: "spread", label: "Spread (s)", kind: "number", hint: "0" },
];
const KEY: Control = { name: "key", label: "In place of the key", kind: "text", hint: "one of this user" };

/** The fields of both forms, by the JSON pointers of what they become. */
const FIELDS: Readonly<Record<string, string>> = {
  "/schedule": "key",
  "/schedule/cron": "cron",
  "/schedule/timezone": "timezone",
  "/schedule/copies": "copies",
  "/schedule/policies/spread": "spread",
  "/schedule/key": "key",
  "/schedule/flow": "what",
  "/schedule/action": "what",
  "/flow": "flow",
  "/most": "most",
  "/lasts": "lasts",
};

/** The schedule that the address describes; undefined if it describes none. */
export function wanted({ place: { query } }: App): Wanted | undefined {
  const { cron, timezone, copies, spread, what, user } = query;
  const key = user && query["key"];
  if (!key && !NEW.some(({ name }) => query[name])) return undefined;
  const [flow, action] = (what ?? "").split("/");
  return {
    ...(cron ? { cron } : {}),
    ...(timezone ? { timezone } : {}),
    ...(copies ? { copies: numberOf(copies) } : {}),
    ...(spread ? { policies: { spread: numberOf(spread) } } : {}),
    ...(key ? { key } : {}),
    ...(flow ? { flow, ...(action ? { action } : {}) } : {}),
  };
}

/** Return what is wrong with which field. Raise what is wrong with none. */
export function errorsOf(problem: unknown): Errors {
  if (!(problem instanceof DuetickError) || !problem.problems.length) throw problem;
  const errors: Record<string, string> = {};
  for (const one of problem.problems) {
    const name = FIELDS[one.field];
    if (name === undefined) throw problem;
    errors[name] = errors[name] ? `${errors[name]} ${one.message}` : one.message;
  }
  return errors;
}

/** The form. It is folded until somebody wants it. */
export function adding(app: App, flows: Flows, errors: Errors): Child {
  const { user } = app.place.query;
  const offers = flows.flatMap(({ flow, actions }) => actions.map(({ action }) => `${flow}/${action}`));
  const what: Control = { name: "what", label: "Flow and action", kind: "choice", options: ["", ...offers].map((one) => [one, one || "any"] as const) };
  const controls = [...NEW, what, ...(user ? [KEY] : [])];
  const asked = wanted(app) !== undefined;
  return h(
    "details",
    { class: "adding", key: "adding", open: asked },
    h("summary", null, "What would another schedule add?"),
    h(
      "p",
      { class: "hint" },
      "Nothing is saved. ",
      user
        ? "With the key of one that is there, it says what its change would do; what is left empty stays as it is."
        : "To change one that is there, say whose it is in the filter above, then its key.",
    ),
    filters(app, controls, { label: "A schedule that is not saved", verb: "Show what it adds", errors }),
  );
}
