/** Every action of the operators' API, each with what it will touch. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { type Act, type Field, FieldError, type Given, parseJson, timeOf, toField } from "./act.js";
import { type App, named } from "./app.js";
import { go, ofSchedule } from "./router.js";
import { iso, number, numberOf, several } from "./words.js";

type Schedule = Schemas["ScheduleView"];
type Json = Schemas["JsonValue"];

/** The reason, if one was given. */
function because(why: string): { why?: string } {
  return why ? { why } : {};
}

/** The two names of a static schedule, out of its key. */
export function ofStatic(key: string): { flow: string; id: string } {
  const [flow = "", ...rest] = key.split("/");
  return { flow, id: rest.join("/") };
}

function times(found: readonly Schemas["FireTime"][]): Child {
  return h("ul", { class: "times" }, ...found.map((one) => h("li", null, one.local.replace("T", " "), one.clock && h("small", null, ` ${one.clock}`))));
}

/** Say which times a pause of one schedule keeps from firing. */
async function pausedTimes(app: App, user: string, key: string, given: Given): Promise<Child> {
  if (!user) return "Its times until it is resumed, or until the end of the pause.";
  const found = await app.api.get("/api/users/{user}/schedules/{key}/upcoming", {
    path: { user, key },
    query: { limit: 5 },
  });
  const until = timeOf(given, "until");
  const left = found.body.upcoming.filter((one) => !until || one.utc < until);
  if (!left.length) return "No time: it would not fire before the pause ends.";
  return ["These times, and those after them, will not fire:", times(left)];
}

const PAUSE_FIELDS: readonly Field[] = [
  { name: "until", label: "Until (UTC)", kind: "time", hint: "Empty: until somebody resumes it." },
  { name: "note", label: "Note", kind: "text", hint: "Whoever meets the pause reads it; the user too." },
];

function pauseBody(given: Given): Schemas["PauseBody"] {
  const until = timeOf(given, "until");
  return { note: given["note"] ?? "", ...(until ? { until } : {}) };
}

export function pauseSchedule(app: App, user: string, key: string): Act {
  return {
    title: `Pause ${named(user, key)}`,
    does: "It does not fire while it is paused, and not afterwards for those times. What runs goes on.",
    fields: PAUSE_FIELDS,
    verb: "Pause it",
    touches: (given) => pausedTimes(app, user, key, given),
    run: async (given, { why }) => {
      const body = pauseBody(given);
      if (user)
        await app.api.post("/api/users/{user}/schedules/{key}/pause", { path: { user, key }, body, ...because(why) });
      else await app.api.post("/api/static-schedules/{flow}/{id}/pause", { path: ofStatic(key), body, ...because(why) });
      return `${named(user, key)} is paused.`;
    },
  };
}

export function resumeSchedule(app: App, user: string, key: string): Act {
  return {
    title: `Resume ${named(user, key)}`,
    does: "It fires again from now on. The times of the pause do not fire afterwards: backfill what matters.",
    verb: "Resume it",
    run: async (_given, { why }) => {
      if (user) await app.api.post("/api/users/{user}/schedules/{key}/resume", { path: { user, key }, ...because(why) });
      else await app.api.post("/api/static-schedules/{flow}/{id}/resume", { path: ofStatic(key), ...because(why) });
      return `${named(user, key)} fires again.`;
    },
  };
}

export function runSchedule(app: App, user: string, key: string): Act {
  const once = crypto.randomUUID();
  return {
    title: `Run ${named(user, key)} now`,
    does: "Its action runs once, now, besides its own times. Its user pays a run of its limit, if it has one.",
    verb: "Run it now",
    run: async (_given, { why }) => {
      const path = { user, key };
      await app.api.post("/api/users/{user}/schedules/{key}/run", { path, idempotencyKey: once, ...because(why) });
      return `${named(user, key)} was handed on; its history says what becomes of it.`;
    },
  };
}

export function deleteSchedule(app: App, user: string, key: string): Act {
  return {
    title: `Delete ${named(user, key)}`,
    does: "It never fires again. Its history stays for its retention. This cannot be undone.",
    verb: "Delete it",
    danger: true,
    type: key,
    touches: (given) => pausedTimes(app, user, key, given),
    run: async (_given, { why }) => {
      await app.api.delete("/api/users/{user}/schedules/{key}", { path: { user, key }, ...because(why) });
      return `${named(user, key)} is deleted.`;
    },
  };
}

export function mendSchedule(app: App, user: string, key: string): Act {
  return {
    title: `Mend ${named(user, key)}`,
    does:
      "Its row is made as its record says. If it could not be read, it is read again: change its cron or its " +
      "zone first. Its misfire policy decides about the times since.",
    verb: "Mend it",
    run: async (_given, { why }) => {
      const found = await app.api.post("/api/users/{user}/schedules/{key}/mend", { path: { user, key }, ...because(why) });
      return found.body.mended ? `${named(user, key)} is mended.` : "Nothing was wrong with it.";
    },
  };
}

const EDITED = ["cron", "timezone", "flow", "action", "input", "policies", "labels", "externalId"] as const;

function scheduleFields(one: Schedule): Field[] {
  return [
    { name: "cron", label: "Cron", kind: "text", value: one.cron },
    { name: "timezone", label: "Time zone", kind: "text", value: one.timezone ?? "", hint: "Empty: UTC." },
    { name: "flow", label: "Flow", kind: "text", value: one.flow },
    { name: "action", label: "Action", kind: "text", value: one.action },
    {
      name: "input",
      label: "Input (JSON)",
      kind: "json",
      value: JSON.stringify(one.input, null, 2),
      hint: "Secrets are withheld here: an input that holds [withheld] is left as it is, unless you change it.",
    },
    { name: "policies", label: "Policies (JSON)", kind: "json", value: JSON.stringify(one.policies, null, 2) },
    { name: "labels", label: "Labels (JSON)", kind: "json", value: JSON.stringify(one.labels, null, 2) },
    { name: "externalId", label: "Outside id", kind: "text", value: one.externalId ?? "" },
  ];
}

/** Return the fields that differ from what the dialog showed at first. */
function changeOf(one: Schedule, given: Given): Schemas["ScheduleChange"] {
  const change: Record<string, unknown> = {};
  for (const { name, kind, value } of scheduleFields(one)) {
    if (given[name] === value) continue;
    const text = given[name]?.trim() ?? "";
    change[name] = kind === "json" ? parseJson(given, name) : text || null;
    // In these two each name changes by itself: one that was taken out goes back to its default.
    if (name === "policies" || name === "labels") change[name] = withGone(one[name], change[name]);
  }
  return change;
}

function withGone(before: object, after: unknown): unknown {
  if (typeof after !== "object" || after === null || Array.isArray(after)) return after;
  const gone = Object.keys(before).filter((name) => !(name in after));
  return { ...after, ...Object.fromEntries(gone.map((name) => [name, null])) };
}

export function editSchedule(app: App, one: Schedule, etag: string | undefined): Act {
  const path = { user: one.user ?? "", key: one.key };
  const match = etag === undefined ? {} : { ifMatch: etag };
  return {
    title: `Change ${named(path.user, one.key)}`,
    does: "What has begun goes on. What is claimed and has not begun runs as the schedule is by then.",
    fields: scheduleFields(one),
    verb: "Change it",
    touches: async (given) => {
      const body = changeOf(one, given);
      if (!Object.keys(body).length) return null;
      const options = { path, body, query: { dryRun: true }, ...match };
      const after = (await app.api.patch("/api/users/{user}/schedules/{key}", options)).body;
      return [differences(one, after), await foreseen(app, after)];
    },
    run: async (given, { why }) => {
      const body = changeOf(one, given);
      if (!Object.keys(body).length) return "Nothing was changed.";
      const options = { path, body, ...match, ...because(why) };
      const found = await app.api.patch("/api/users/{user}/schedules/{key}", options);
      const { warning } = found;
      return `${named(path.user, one.key)} is changed.${warning ? ` It ${warning}.` : ""}`;
    },
  };
}

function differences(before: Schedule, after: Schedule): Child {
  const changed = EDITED.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  const said = changed.map((name) =>
    h("li", null, h("b", null, name), `: ${JSON.stringify(before[name])} → ${JSON.stringify(after[name])}`),
  );
  return said.length ? h("ul", { class: "times" }, ...said) : "nothing: it is so already";
}

/** Say when a schedule would fire, before it is stored. */
async function foreseen(app: App, one: Schedule): Promise<Child> {
  const { cron, timezone, policies } = one;
  const body = { cron, timezone, policies, limit: 5 };
  const found = (await app.api.post("/api/upcoming", { body })).body;
  return [h("p", null, found.words), ...found.warnings.map((text) => h("p", { class: "warning" }, text)), times(found.upcoming)];
}

export function newSchedule(app: App, user: string, flows: Schemas["FlowsView"]["flows"]): Act {
  const offers = flows.flatMap(({ flow, actions }) => actions.map(({ action }) => `${flow}/${action}`));
  const options = offers.map((one) => [one, one] as const);
  const bodyOf = (given: Given): Schemas["ScheduleBody"] => {
    const [flow = "", action = ""] = (given["action"] ?? "").split("/");
    const timezone = given["timezone"]?.trim();
    const externalId = given["externalId"]?.trim();
    return {
      cron: given["cron"] ?? "",
      flow,
      action,
      input: parseJson(given, "input") as Json,
      ...(timezone ? { timezone } : {}),
      ...(externalId ? { externalId } : {}),
      ...(given["labels"]?.trim() ? { labels: parseJson(given, "labels") as Record<string, string> } : {}),
      ...(given["policies"]?.trim() ? { policies: parseJson(given, "policies") as Schemas["PoliciesShape"] } : {}),
    };
  };
  const pathOf = (given: Given): { user: string; key: string } => ({
    user: required(given, "user", "Whose schedule is it?"),
    key: required(given, "key", "Name it."),
  });
  return {
    title: "New schedule",
    does: "You make it for a user. It counts in that user's quota.",
    fields: [
      { name: "user", label: "User", kind: "text", value: user, required: true },
      { name: "key", label: "Key", kind: "text", required: true },
      { name: "cron", label: "Cron", kind: "text", value: "0 9 * * *", required: true, hint: "Five fields, @daily, rate(5 minutes), at(2026-12-01T09:00:00), days(mon 09:00)" },
      { name: "timezone", label: "Time zone", kind: "text", hint: "Empty: UTC." },
      { name: "action", label: "Flow and action", kind: "choice", options, value: offers[0] ?? "" },
      { name: "input", label: "Input (JSON)", kind: "json", value: "{}" },
      { name: "policies", label: "Policies (JSON)", kind: "json" },
      { name: "labels", label: "Labels (JSON)", kind: "json" },
      { name: "externalId", label: "Outside id", kind: "text" },
    ],
    verb: "Make it",
    touches: async (given) => {
      if (!given["user"] || !given["key"]) return "Say whose it is, and name it.";
      const options_ = { path: pathOf(given), body: bodyOf(given), query: { dryRun: true }, ifNoneMatch: "*" };
      const after = (await app.api.put("/api/users/{user}/schedules/{key}", options_)).body;
      return foreseen(app, after);
    },
    run: async (given, { why }) => {
      const path = pathOf(given);
      const body = bodyOf(given);
      await app.api.put("/api/users/{user}/schedules/{key}", { path, body, ifNoneMatch: "*", ...because(why) });
      go(ofSchedule(path.user, path.key));
      return `${named(path.user, path.key)} is made.`;
    },
  };
}

function required(given: Given, name: string, message: string): string {
  const text = given[name]?.trim();
  if (!text) throw new FieldError(name, message);
  return text;
}

export function backfill(app: App, user: string, key: string, at?: string): Act {
  const [minute, day] = [60_000, 86_400_000];
  // Up to a minute that is over: a reader's clock may be some seconds ahead of the stack's.
  const over = Math.floor((Date.now() - minute / 2) / minute) * minute;
  const since = at ?? iso(over - day);
  const until = iso(at ? Date.parse(at) + 1_000 : over);
  const order = (given: Given, dryRun: boolean): Schemas["BackfillBody"] => ({
    from: timeOf(given, "from") ?? "",
    to: timeOf(given, "to") ?? "",
    dryRun,
    atOnce: numberOf(given["atOnce"] ?? "1"),
    onlyMissing: given["onlyMissing"] === "yes",
    note: given["note"] ?? "",
  });
  return {
    title: `Backfill ${named(user, key)}`,
    does: "Its fire times of a span are made again: each runs once more, and its outcome says so.",
    fields: [
      { name: "from", label: "From (UTC)", kind: "time", value: toField(since), required: true },
      { name: "to", label: "Until before (UTC)", kind: "time", value: toField(until), required: true },
      { name: "atOnce", label: "Side by side", kind: "number", value: "1" },
      { name: "onlyMissing", label: "Only times that have not fired", kind: "check", value: "yes" },
      { name: "note", label: "Note", kind: "text" },
    ],
    verb: "Backfill",
    touches: async (given) => planInWords(await planOf(app, user, key, order(given, true))),
    run: async (given, { why }) => {
      const body = order(given, false);
      await app.api.post("/api/users/{user}/schedules/{key}/backfills", { path: { user, key }, body, ...because(why) });
      return `The backfill of ${named(user, key)} has begun.`;
    },
  };
}

async function planOf(app: App, user: string, key: string, body: Schemas["BackfillBody"]): Promise<Schemas["BackfillPlan"]> {
  const found = await app.api.post("/api/users/{user}/schedules/{key}/backfills", { path: { user, key }, body });
  return found.body.plan;
}

function planInWords(plan: Schemas["BackfillPlan"]): Child {
  const held = plan.paused ? " It waits until the schedule is resumed." : plan.heldBy ? ` It waits for the pause of ${plan.heldBy.scope}.` : "";
  if (!plan.toBring) return `No time: ${several(plan.order.times, "time")} in the span, ${number(plan.fired)} of them fired.${held}`;
  const outcomes = Object.entries(plan.outcomes).map(([name, count]) => `${number(count)} ${name}`);
  return `${several(plan.toBring, "time")}, from ${plan.first ?? ""} to ${plan.last ?? ""} (so far: ${outcomes.join(", ")}). It takes at least ${several(plan.ticks, "tick")}.${held}`;
}

export function stopBackfill(app: App, one: Schemas["BackfillView"]): Act {
  const path = { user: one.order.user, key: one.id };
  return {
    title: `Stop the backfill ${one.id}`,
    does: `It brings no more times of ${named(one.order.user, one.order.key)}. What it has brought goes on.`,
    verb: "Stop it",
    run: async (_given, { why }) => {
      await app.api.post("/api/users/{user}/backfills/{key}/stop", { path, ...because(why) });
      return "The backfill is stopped.";
    },
  };
}

export function continueBackfill(app: App, one: Schemas["BackfillView"]): Act {
  const path = { user: one.order.user, key: one.id };
  const left = one.order.times - one.brought - one.firedBefore;
  return {
    title: `Continue the backfill ${one.id}`,
    does: `It goes on where it was stopped: ${several(left, "time")} of ${named(one.order.user, one.order.key)} are left.`,
    verb: "Continue it",
    run: async (_given, { why }) => {
      await app.api.post("/api/users/{user}/backfills/{key}/continue", { path, ...because(why) });
      return "The backfill goes on.";
    },
  };
}

export type Verb = "retry" | "cancel" | "delete";

const DOES: Readonly<Record<Verb, string>> = {
  retry: "It is due now, under its own name: the next tick delivers it. If its attempts are spent, it begins exactly once more.",
  cancel: "It ends as it is. An action that runs is not stopped, but can no longer settle.",
  delete: "Its texts, labels and transitions go; its name, its times and the reason of its end stay, so nothing fires again.",
};
const DONE: Readonly<Record<Verb, string>> = { retry: "retried", cancel: "cancelled", delete: "deleted" };

export function changeOccurrence(app: App, verb: Verb, one: Schemas["AnyOccurrence"]): Act {
  const options = { path: { id: one.id }, query: { user: one.user, key: one.key } };
  const body: Schemas["ManyOccurrences"] = { user: one.user, key: one.key, dryRun: true, limit: 100, from: one.nominalFireTime };
  return {
    title: `${verb[0]?.toUpperCase() ?? ""}${verb.slice(1)} ${one.id}`,
    does: DOES[verb],
    verb: `${verb[0]?.toUpperCase() ?? ""}${verb.slice(1)} it`,
    danger: verb === "delete",
    touches: async () => {
      const span = { ...body, to: new Date(Date.parse(one.nominalFireTime) + 1).toISOString(), state: one.state };
      const found = await many(app, verb, span);
      const declined = found.firstDeclined.find(({ id }) => id === one.id);
      if (declined) return h("span", { class: "warning" }, `nothing: ${declined.why}`);
      return `the occurrence of ${named(one.user, one.key)} at ${one.nominalFireTime} (${one.origin})`;
    },
    run: async (_given, { why }) => {
      const given = { ...options, ...because(why) };
      const changed =
        verb === "retry"
          ? await app.api.post("/api/occurrences/{id}/retry", given)
          : verb === "cancel"
            ? await app.api.post("/api/occurrences/{id}/cancel", given)
            : await app.api.delete("/api/occurrences/{id}", given);
      return changed.body.changed ? `${one.id} is ${DONE[verb]}.` : `${one.id} was so already.`;
    },
  };
}

async function many(app: App, verb: Verb, body: Schemas["ManyOccurrences"], why = ""): Promise<Schemas["ChangedOccurrences"]> {
  const options = { body, ...because(why) };
  if (verb === "retry") return (await app.api.post("/api/all-occurrences/retry", options)).body;
  if (verb === "cancel") return (await app.api.post("/api/all-occurrences/cancel", options)).body;
  return (await app.api.post("/api/all-occurrences/delete", options)).body;
}

/** Change all that a filter names: page after page, until none is left or somebody stops it. */
export function changeMany(app: App, verb: Verb, filter: Schemas["ManyOccurrences"], said: string): Act {
  const next = (body: Schemas["ManyOccurrences"], cursor: string | null): Schemas["ManyOccurrences"] =>
    cursor === null ? body : { ...body, cursor };
  return {
    title: `${verb[0]?.toUpperCase() ?? ""}${verb.slice(1)} all: ${said}`,
    does: DOES[verb],
    verb: `${verb[0]?.toUpperCase() ?? ""}${verb.slice(1)} all of these`,
    danger: verb === "delete",
    touches: async () => {
      const found = await many(app, verb, { ...filter, dryRun: true });
      const more = found.cursor === null ? "" : ", and there are more behind them";
      const first = found.first.map((one) => h("li", null, `${named(one.user, one.key)} at ${one.nominalFireTime}`));
      const declined = found.firstDeclined.map((one) => h("li", null, `${named(one.user, one.key)}: ${one.why}`));
      return [
        `${several(found.changed, "occurrence")}${more}.`,
        h("ul", { class: "times" }, ...first),
        found.declined > 0 && [`${several(found.declined, "one is", "ones are")} left as they are:`, h("ul", { class: "times" }, ...declined)],
      ];
    },
    run: async (_given, { why, progress, stopped }) => {
      let [changed, declined] = [0, 0];
      let cursor: string | null = null;
      do {
        const found: Schemas["ChangedOccurrences"] = await many(app, verb, next({ ...filter, dryRun: false }, cursor), why);
        changed += found.changed;
        declined += found.declined;
        cursor = found.cursor;
        progress(`${number(changed)} ${DONE[verb]}, ${number(declined)} left as they are.`);
      } while (cursor !== null && !stopped());
      const end = cursor === null ? "" : " You stopped it before the end.";
      return `${number(changed)} ${DONE[verb]}, ${number(declined)} left as they are.${end}`;
    },
  };
}

/** Say how many schedules a scope has, as far as one read tells. */
async function ofScope(app: App, scope: string): Promise<Child> {
  const [kind, ...rest] = scope.split(":");
  const name = rest.join(":");
  if (kind === "user" && name) {
    const options = { path: { user: name }, query: { limit: 100 } };
    const found = (await app.api.get("/api/users/{user}/schedules", options)).body;
    return atLeast(found.schedules.length, found.cursor, `of ${name}`);
  }
  const flow = (kind === "action" ? name.split("/")[0] : name) ?? "";
  const query = { limit: 100, state: "active" as const, ...(kind === "all" ? {} : { flow }) };
  const found = (await app.api.get("/api/all-schedules", { query })).body;
  return atLeast(found.schedules.length, found.cursor, kind === "all" ? "of everybody" : `of the flow ${flow}`);
}

function atLeast(count: number, cursor: string | null, of: string): string {
  if (cursor === null) return count ? `${several(count, "schedule")} ${of}` : `no schedule ${of}`;
  return count ? `${number(count)} schedules or more ${of}` : `none in the first thousand that were read ${of}`;
}

function scopeField(scope: string, kinds: readonly string[]): Field {
  const hint = kinds.includes("all") ? "user:<id>, flow:<name>, or all" : "user:<id>, flow:<name>, or action:<flow>/<action>";
  return { name: "scope", label: "Scope", kind: "text", value: scope, required: true, hint };
}

export function pauseGroup(app: App, scope = ""): Act {
  return {
    title: scope ? `Pause ${scope}` : "Pause a user, a flow or everything",
    does:
      "No nominal time of its schedules fires while it is paused, and not afterwards either. What is claimed and " +
      "has not begun is cancelled; what has begun once is held, and follows.",
    fields: [scopeField(scope, ["all"]), ...PAUSE_FIELDS],
    verb: "Pause",
    danger: true,
    touches: (given) => (given["scope"] ? ofScope(app, given["scope"]) : Promise.resolve("Say what to pause.")),
    run: async (given, { why }) => {
      const chosen = required(given, "scope", "Say what to pause.");
      await app.api.put("/api/pauses/{scope}", { path: { scope: chosen }, body: pauseBody(given), ...because(why) });
      return `${chosen} is paused.`;
    },
  };
}

export function resumeGroup(app: App, scope: string): Act {
  return {
    title: `Resume ${scope}`,
    does: "Its schedules fire again from now on. What is held follows within a minute or two.",
    verb: "Resume",
    touches: () => ofScope(app, scope),
    run: async (_given, { why }) => {
      const found = await app.api.delete("/api/pauses/{scope}", { path: { scope }, ...because(why) });
      const until = found.body.pauses[0]?.until;
      return found.body.pauses.length ? `${scope} fires again${until ? ` from ${until} on` : ""}.` : `${scope} was not paused.`;
    },
  };
}

export function limitGroup(app: App, one: Partial<Schemas["LimitView"]> & { scope: string }): Act {
  return {
    title: one.scope ? `Limit ${one.scope}` : "Limit a user, a flow or an action",
    does: "What has no place waits for one, in order of its due time. Nothing is lost by waiting.",
    fields: [
      scopeField(one.scope, ["action"]),
      { name: "parallel", label: "At once", kind: "number", value: one.parallel?.toString() ?? "", hint: "1 to 500. Empty: as many as there are." },
      { name: "rate", label: "Begins", kind: "number", value: one.rate?.toString() ?? "", hint: "Empty: as many as there are." },
      { name: "per", label: "in each", kind: "choice", value: one.per ?? "minute", options: [["minute", "minute"], ["hour", "hour"], ["day", "day"]] },
      { name: "note", label: "Note", kind: "text", value: one.note ?? "" },
    ],
    verb: "Limit",
    touches: (given) => (given["scope"] ? ofScope(app, given["scope"]) : Promise.resolve("Say what to limit.")),
    run: async (given, { why }) => {
      const scope = required(given, "scope", "Say what to limit.");
      const [parallel, rate] = [given["parallel"], given["rate"]];
      const body: Schemas["LimitBody"] = {
        ...(parallel ? { parallel: numberOf(parallel) } : {}),
        ...(rate ? { rate: numberOf(rate), per: given["per"] as Schemas["LimitView"]["per"] } : {}),
        note: given["note"] ?? "",
      };
      await app.api.put("/api/limits/{scope}", { path: { scope }, body, ...because(why) });
      return `${scope} is limited.`;
    },
  };
}

export function liftLimit(app: App, scope: string): Act {
  return {
    title: `Lift the limit of ${scope}`,
    does: "What waits for a place is handed on by the next ticks, as fast as they can.",
    verb: "Lift it",
    run: async (_given, { why }) => {
      await app.api.delete("/api/limits/{scope}", { path: { scope }, ...because(why) });
      return `The limit of ${scope} is lifted.`;
    },
  };
}

export function enqueueJobs(app: App, user: string): Act {
  const example = { flow: "…", action: "…", input: {}, delay: 0 };
  const jobsOf = (given: Given): Schemas["JobBody"][] => {
    const found = parseJson(given, "jobs");
    return (Array.isArray(found) ? found : [found]) as Schemas["JobBody"][];
  };
  return {
    title: "Enqueue jobs",
    does: "Each is an action that runs once: now, after a delay, or at a time. It counts in its user's quota of jobs.",
    fields: [
      { name: "user", label: "User", kind: "text", value: user, required: true },
      {
        name: "jobs",
        label: "One job, or a list of up to 500 (JSON)",
        kind: "json",
        value: JSON.stringify(example, null, 2),
        hint: "flow, action, input, at or delay, key, policies, labels",
      },
    ],
    verb: "Enqueue",
    touches: (given) => Promise.resolve(`${several(jobsOf(given).length, "new job")} of ${given["user"] || "…"}`),
    run: async (given, { why }) => {
      const path = { user: required(given, "user", "Whose jobs are they?") };
      const jobs = jobsOf(given);
      const [first] = jobs;
      if (jobs.length === 1 && first) {
        const made = await app.api.post("/api/users/{user}/jobs", { path, body: first, ...because(why) });
        return `${made.body.id} is ${made.status === 201 ? "enqueued" : "there already"}.`;
      }
      const made = await app.api.post("/api/users/{user}/jobs/batch", { path, body: { jobs }, ...because(why) });
      const refused = made.body.jobs.flatMap((one, place) => (one.error ? [`${place + 1}: ${one.error.message}`] : []));
      if (refused.length) throw new FieldError("jobs", `${several(jobs.length - refused.length, "job")} enqueued; refused: ${refused.join(" ")}`);
      return `${several(jobs.length, "job")} enqueued.`;
    },
  };
}

export function cancelJob(app: App, user: string, key: string): Act {
  return {
    title: `Cancel the job ${key}`,
    does: "It ends as it is. An action that runs is not stopped, but can no longer settle.",
    verb: "Cancel it",
    run: async (_given, { why }) => {
      await app.api.post("/api/users/{user}/jobs/{key}/cancel", { path: { user, key }, ...because(why) });
      return `${key} is cancelled.`;
    },
  };
}

export function exportUser(app: App, user: string): Act {
  return {
    title: `Export all data of ${user}`,
    does: "Schedules, jobs and history come as one JSON file, without secrets. The export is recorded.",
    verb: "Export",
    run: async (_given, { why, progress, stopped }) => {
      const parts: Schemas["ExportView"][] = [];
      let cursor: string | null = null;
      do {
        const query: { cursor?: string } = cursor === null ? {} : { cursor };
        const found: Schemas["ExportView"] = (await app.api.get("/api/users/{user}/export", { path: { user }, query, ...because(why) })).body;
        parts.push(found);
        cursor = found.cursor;
        progress(`${several(parts.length, "part")} read.`);
      } while (cursor !== null && !stopped());
      if (cursor !== null) return "The export was stopped; no file was made.";
      download(`${user}.json`, {
        user,
        schedules: parts.flatMap((one) => one.schedules),
        jobs: parts.flatMap((one) => one.jobs),
        history: parts.flatMap((one) => one.history),
      });
      return `The data of ${user} is in your downloads.`;
    },
  };
}

function download(name: string, content: object): void {
  const address = URL.createObjectURL(new Blob([JSON.stringify(content, null, 2)], { type: "application/json" }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(address);
}

export function eraseUser(app: App, user: string): Act {
  return {
    title: `Erase ${user}`,
    does: "All schedules, jobs, history, pauses, limits and operations of this user go, for good. This cannot be undone.",
    verb: "Erase for good",
    danger: true,
    type: user,
    touches: () => ofScope(app, `user:${user}`),
    run: async (_given, { why }) => {
      const found = await app.api.delete("/api/users/{user}", { path: { user }, ...because(why) });
      return `The user is erased: ${several(found.body.schedules, "schedule")}.`;
    },
  };
}

export function recover(app: App): Act {
  const order = async (given: Given, dryRun: boolean, why = ""): Promise<Schemas["RecoveredView"]> => {
    const how = given["how"] as Schemas["RecoveredView"]["how"];
    return (await app.api.post("/api/recover", { body: { how, dryRun }, ...because(why) })).body;
  };
  return {
    title: "Recover from a restore",
    does: "The database is a backup. Say what becomes of the times between the backup and the restore; until then nothing fires.",
    fields: [
      {
        name: "how",
        label: "The times since the backup",
        kind: "choice",
        value: "skip",
        options: [
          ["skip", "skip: record them as missed"],
          ["latest", "latest: fire the newest of each schedule"],
          ["fire", "fire: let the misfire policies decide"],
        ],
      },
    ],
    verb: "Recover",
    danger: true,
    touches: async (given) => {
      const found = await order(given, true);
      if (!found.restored) return "nothing: there is nothing to recover";
      return `${several(found.schedules, "schedule")}: ${number(found.recorded)} times recorded as missed, ${number(found.fires)} may fire`;
    },
    run: async (given, { why, progress, stopped }) => {
      let schedules = 0;
      for (;;) {
        const found = await order(given, false, why);
        schedules += found.schedules;
        progress(`${several(schedules, "schedule")} so far.`);
        if (found.complete || !found.restored) return `Recovered: ${several(schedules, "schedule")}.`;
        if (stopped()) return "Stopped before the end: recover again, until it is complete.";
      }
    },
  };
}
