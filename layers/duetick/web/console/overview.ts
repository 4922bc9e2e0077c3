/** The first page: is it firing, how late, what is failing, for whom; and what was verified last. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { recover } from "./actions.js";
import { type App, type Page, anchor, button, by, instant, instantAgo, section, table, tag, row } from "./app.js";
import { link, ofSchedule } from "./router.js";
import { counted, number, several, span } from "./words.js";

type Overview = Schemas["OverviewView"];
type Kind = Schemas["WrongView"]["kind"];

/** Where to look next. */
const LOOK: Readonly<Record<Kind, readonly [string, string]>> = {
  restored: ["", "Recover"],
  silent: [link("ticks"), "Look at the ticks"],
  late: [link("ticks"), "Look at the ticks"],
  ticks_lost: [link("ticks"), "Look at the ticks"],
  ticks_raised: [link("ticks"), "Look at the ticks"],
  deliveries_failed: [link("occurrences"), "Which ones?"],
  lateness: [link("ticks"), "Look at the ticks"],
  dead: [link("occurrences"), "Which ones?"],
  unreadable: [link("unreadable"), "Which ones?"],
  gone: [link("schedules"), "Which schedules?"],
  unindexed: ["", "duetick check names them; Mend on a schedule's page mends one"],
  stale: ["", "duetick check names them; Mend on a schedule's page mends one"],
  overdue: ["", "duetick check names them"],
  unaccounted: ["", "duetick verify names them; a schedule's timeline shows them"],
  bells: ["", "the logs have bell_failed; the runbook has a row for PendingAlarm"],
};

const COUNTS: readonly (readonly [keyof Overview, string, string, string])[] = [
  ["due", "due now", "rows and jobs whose time has come", ""],
  ["late", "late", "due for longer than two ticks", ""],
  ["queued", "handed on", "not begun yet", link("occurrences", [], { state: "queued" })],
  ["running", "running", "begun, not ended", link("occurrences", [], { state: "processing" })],
  ["scheduled", "planned", "claimed ahead of their time, and jobs that wait for theirs", link("occurrences", [], { state: "scheduled" })],
  ["retrying", "will retry", "wait for another attempt", link("occurrences", [], { state: "retrying" })],
  ["dead", "dead", "in the last day", link("occurrences", [], { state: "dead" })],
  ["unreadable", "unreadable", "rows that do not fire", link("unreadable")],
];

export function overview(app: App): Page {
  let found: Overview | null = null;
  return {
    title: "Overview",
    every: 5_000,
    read: async () => {
      found = (await app.api.get("/api/overview")).body;
    },
    view: () => (found ? [verdict(app, found), ticks(app, found), counts(found), failing(found), hourly(app, found), orders(app, found)] : null),
  };
}

function verdict(app: App, found: Overview): Child {
  if (!found.wrong.length)
    return h("p", { class: "verdict good" }, "Nothing is wrong, as far as these numbers tell.");
  return h(
    "ul",
    { class: "wrong", "aria-label": "What is wrong, the worst first" },
    ...found.wrong.map(({ kind, said }) => {
      const [to, look] = LOOK[kind];
      return h(
        "li",
        { key: kind },
        h("span", null, said),
        kind === "restored" ? button(look, () => app.act(recover(app))) : to ? anchor(to, look) : h("small", null, look),
      );
    }),
  );
}

function counts(found: Overview): Child {
  const tiles = COUNTS.map(([name, title, said, to]) => {
    const count = found[name] as Schemas["CountView"];
    const bad = count.count > 0 && ["late", "dead", "unreadable"].includes(name);
    const content = [h("b", null, counted(count)), h("span", null, title), h("small", null, said)];
    return h("li", { key: name, class: bad ? "bad" : "" }, to ? anchor(to, ...content) : content);
  });
  return section("How much", h("ul", { class: "tiles" }, ...tiles));
}

function failing(found: Overview): Child {
  const { of, flows, users } = found.failing;
  if (!of) return null;
  const bars = (names: readonly (readonly [string, string, number])[]): Child =>
    h(
      "ul",
      { class: "bars" },
      ...names.map(([name, to, dead]) =>
        h(
          "li",
          { key: name },
          anchor(to, name),
          h("meter", { min: "0", max: String(of), value: String(dead), "aria-label": `${name}: ${dead} of ${of}` }),
          h("span", null, number(dead)),
        ),
      ),
    );
  const dead = { state: "dead" };
  return section(
    "What is failing, and for whom",
    h("p", { class: "hint" }, `Of the newest ${several(of, "dead occurrence")} of the last day:`),
    h(
      "div",
      { class: "columns" },
      h("div", null, h("h3", null, "Flows"), bars(flows.map((one) => [one.flow || "no flow", link("occurrences", [], { ...dead, flow: one.flow }), one.dead]))),
      h(
        "div",
        null,
        h("h3", null, "Users"),
        bars(users.map((one) => [one.user || "static schedules", link("occurrences", [], one.user ? { ...dead, user: one.user } : dead), one.dead])),
      ),
    ),
  );
}

function ticks(app: App, found: Overview): Child {
  const { last, silent, silentAfter } = found.ticks;
  const rows = last.map((one) =>
    row(one.id, instantAgo(app, one.startedAt), tickState(one), count(one, "claimed"), count(one, "delivered"), count(one, "failed"), lateness(one)),
  );
  return section(
    "Is it firing, and how late?",
    h("p", null, silent ? tag("silent", "bad") : tag("ticking", "good"), silent && ` No tick has ended for ${several(silentAfter / 60, "minute")}: nothing fires.`),
    table("The last ticks", ["Began", "State", "Claimed", "Delivered", "Failed", "Late by"], rows, "None has reported in eight days."),
    anchor(link("ticks"), "All reports, and the locks"),
  );
}

export function tickState(one: Schemas["WorkerView"]): Child {
  if (one.counts["raised"]) return tag("raised", "bad");
  return tag(one.state, one.state === "lost" ? "bad" : one.state === "working" ? "wait" : "good");
}

export function count(one: Schemas["WorkerView"], name: string): string {
  return number(one.counts[name] ?? 0);
}

export function lateness(one: Schemas["WorkerView"]): string {
  return one.latenessMilliseconds ? span(one.latenessMilliseconds) : "–";
}

function orders(app: App, found: Overview): Child {
  const pauses = found.pauses.first.map((one) =>
    h("li", { key: one.scope }, tag("paused", "off"), ` ${one.scope}, until `, one.until ? instant(app, one.until) : "a resume", ", by ", by(one.by), one.note && `: ${one.note}`),
  );
  const limits = found.limits.first.map((one) =>
    h("li", { key: one.scope }, tag("limited", one.fullUntil ? "wait" : "off"), ` ${one.scope}: ${number(one.running)} at work`, one.fullUntil && ["; no place until ", instant(app, one.fullUntil), ", or sooner"]),
  );
  const backfills = found.backfills.first.map((one) =>
    h("li", { key: one.id }, tag("backfill", "wait"), " ", anchor(ofSchedule(one.order.user, one.order.key), `${one.order.user} / ${one.order.key}`), `: ${number(one.brought + one.firedBefore)} of ${number(one.order.times)}`, one.waitsFor && `, waits: ${one.waitsFor}`),
  );
  if (!pauses.length && !limits.length && !backfills.length) return null;
  return section("What operators have ordered", h("ul", { class: "listed" }, ...pauses, ...limits, ...backfills), anchor(link("orders"), "All of them"));
}

function hourly(app: App, { counted: census, verified }: Overview): Child {
  const faults = (verified.faults ?? 0) + verified.faultsSince;
  return section(
    "What was verified",
    h(
      "p",
      null,
      verified.until ? ["Every schedule up to ", instant(app, verified.until), ", ended ", instantAgo(app, verified.endedAt), ": "] : "The hourly work has not verified every schedule yet: ",
      faults ? tag(several(faults, "fault"), "bad") : tag("no fault", verified.until ? "good" : "plain"),
    ),
    census && h("p", null, `At the last hourly count, ${several(census.active, "schedule")} active, ${number(census.paused)} paused, ${number(census.done)} done (`, instant(app, census.at), ")."),
  );
}
