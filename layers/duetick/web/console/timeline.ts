/**
 * The timeline of a schedule: each nominal time in the lane of what became of it, pauses as bands behind
 * them, changes of the clocks as lines. One path for each lane: fifteen hundred times are six elements.
 */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { REASONS, STATES, type Tone, clock, iso, number, several } from "./words.js";

export type Timeline = Schemas["TimelineView"];

/** One thing that can be chosen: a time, or a range of times. */
export interface Mark {
  readonly at: number;
  readonly until: number;
  readonly lane: Lane;
  readonly said: string;
}

const LANES = ["ran", "failed", "missed", "left out", "waits", "ahead"] as const;
type Lane = (typeof LANES)[number];

const OF_TONE: Readonly<Record<Tone, Lane>> = {
  good: "ran",
  bad: "failed",
  wait: "waits",
  off: "left out",
  plain: "left out",
};

const LANE = 24;
const MARK = 17;
const TOP = 8;
const AXIS = 34;
const HEIGHT = TOP + LANES.length * LANE + AXIS;
const LEFT = 68;
/** How near to a mark a click has to be, in pixels. */
const NEAR = 9;
const HOUR = 3_600_000;
const STEPS = [HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 7 * 24 * HOUR, 28 * 24 * HOUR];

export interface Chart {
  readonly found: Timeline;
  readonly zone: string;
  readonly width: number;
  readonly now: number;
  /** The time that is explained. */
  readonly at: number | null;
  /** What the pointer is at. */
  readonly over: string;
  choose(at: number): void;
  hover(said: string): void;
}

/** Return what can be chosen, the earliest first. */
export function marksOf(found: Timeline): Mark[] {
  const marks: Mark[] = found.entries.map((one) => {
    const at = Date.parse(one.at);
    const [word, tone] = STATES[one.state];
    const reason = one.reason && one.reason !== "fired" ? `: ${REASONS[one.reason]}` : "";
    const missed = one.reason === "missed";
    const many = one.until ? `${several(one.count, "time")} ` : "";
    const by = one.origin === "schedule" ? "" : ` (${one.origin.split(":")[0] ?? ""})`;
    return {
      at,
      until: one.until ? Date.parse(one.until) : at,
      lane: missed ? "missed" : OF_TONE[tone],
      said: `${many}${word}${reason}${by}`,
    };
  });
  const known = new Set(marks.map((one) => one.at));
  for (const each of found.ahead) {
    const at = Date.parse(each);
    if (known.has(at)) continue;
    const held = found.pauses.some((one) => at >= Date.parse(one.since) && (!one.until || at < Date.parse(one.until)));
    marks.push({ at, until: at, lane: "ahead", said: held ? "is left out, as things stand: a pause" : "will fire, as things stand" });
  }
  for (const each of found.leftOut) {
    const at = Date.parse(each);
    if (!known.has(at)) marks.push({ at, until: at, lane: "left out", said: "left out: it is paused" });
  }
  for (const one of found.unaccounted)
    marks.push({ at: Date.parse(one.first), until: Date.parse(one.last), lane: "failed", said: `${several(one.count, "time")} not accounted for: ${one.why}` });
  return marks.sort((a, b) => a.at - b.at);
}

/** The spans in which it is paused, done or deleted, each with what says so. */
function bandsOf(found: Timeline, end: number): { since: number; until: number; said: string; kind: string }[] {
  const bands: { since: number; until: number; said: string; kind: string }[] = [];
  found.definitions.forEach((one, place) => {
    const next = found.definitions[place + 1];
    const until = next ? Date.parse(next.since) : end;
    const since = Date.parse(one.since);
    if (one.standing === "paused") bands.push({ since, until, said: "paused", kind: "pause" });
    else if (one.standing === "active" && one.pausedUntil)
      bands.push({ since, until: Math.min(Date.parse(one.pausedUntil), until), said: "paused", kind: "pause" });
    else if (one.standing !== "active") bands.push({ since, until, said: one.standing, kind: "gone" });
  });
  for (const one of found.pauses)
    bands.push({ since: Date.parse(one.since), until: one.until ? Date.parse(one.until) : end, said: `${one.scope} paused`, kind: "group" });
  return bands;
}

export function timeline(chart: Chart): Child {
  const { found, width, zone, at } = chart;
  const [since, until] = [Date.parse(found.from), Date.parse(found.to)];
  const scale = Math.max(width - LEFT, 100) / (until - since);
  const x = (time: number): number => LEFT + (Math.min(Math.max(time, since), until) - since) * scale;
  const marks = marksOf(found);
  const place = at === null ? -1 : marks.findIndex((one) => one.at <= at && at <= one.until);
  const chosen = marks[place];
  const timeAt = (event: MouseEvent): { time: number; mark: Mark | undefined } => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const time = since + (event.clientX - box.left - LEFT) / scale;
    return { time, mark: nearest(marks, time, NEAR / scale) };
  };
  const click = (event: MouseEvent): void => {
    const { time, mark } = timeAt(event);
    if (time >= since && time <= until) chart.choose(mark?.at ?? Math.round(time / 1_000) * 1_000);
  };
  const move = (event: MouseEvent): void => {
    const { time, mark } = timeAt(event);
    chart.hover(time < since ? "" : mark ? `${clock(mark.at, zone)}: ${mark.said}` : clock(time, zone));
  };
  const press = (event: KeyboardEvent): void => {
    const to = step(event.key, marks, place, at ?? chart.now);
    if (to === undefined) return;
    event.preventDefault();
    const mark = marks[to];
    if (mark) chart.choose(mark.at);
  };
  const said = chosen ? `${clock(chosen.at, zone)}: ${chosen.said}` : at === null ? "no time chosen" : clock(at, zone);
  return h(
    "figure",
    { class: "timeline" },
    h(
      "svg",
      {
        role: "slider",
        tabindex: "0",
        "aria-label": `Timeline: ${several(marks.length, "time")}. The arrow keys go from one to the next, and explain it.`,
        "aria-valuemin": "0",
        "aria-valuemax": String(Math.max(marks.length - 1, 0)),
        "aria-valuenow": String(Math.max(place, 0)),
        "aria-valuetext": said,
        width: String(width),
        height: String(HEIGHT),
        viewBox: `0 0 ${width} ${HEIGHT}`,
        on: { click, mousemove: move, mouseleave: () => chart.hover(""), keydown: press },
      },
      ...bandsOf(found, until)
        .filter((one) => one.until > since && one.since < until)
        .map((one) => h("rect", { class: `band ${one.kind}`, x: x(one.since).toFixed(1), y: "0", width: Math.max(x(one.until) - x(one.since), 1).toFixed(1), height: String(HEIGHT - AXIS) })),
      ...axis(since, until, zone, x),
      ...found.clockChanges.map((one) => h("line", { class: "clocks", x1: x(Date.parse(one.at)).toFixed(1), x2: x(Date.parse(one.at)).toFixed(1), y1: "0", y2: String(HEIGHT - AXIS) })),
      ...LANES.map((lane, row) => h("text", { class: "lane", x: "8", y: String(TOP + row * LANE + MARK - 4) }, lane)),
      ...LANES.map((lane, row) => h("path", { class: `marks ${lane.replace(" ", "-")}`, d: path(marks, lane, TOP + row * LANE, x) })),
      h("line", { class: "now", x1: x(chart.now).toFixed(1), x2: x(chart.now).toFixed(1), y1: "0", y2: String(HEIGHT - AXIS) }),
      at !== null && at >= since && at <= until && h("path", { class: "chosen", d: `M${x(at).toFixed(1)} 0v${HEIGHT - AXIS}m-6 0l6 -8l6 8z` }),
    ),
    h("figcaption", null, h("span", { class: "over" }, chart.over || said), legend(found, marks, until, zone)),
  );
}

/** The lane's marks: a line for a time, a bar for a range. */
function path(marks: readonly Mark[], lane: Lane, top: number, x: (time: number) => number): string {
  let d = "";
  for (const one of marks) {
    if (one.lane !== lane) continue;
    const left = x(one.at);
    const wide = x(one.until) - left;
    d += wide < 3 ? `M${(left - 1.5).toFixed(1)} ${top}h3v${MARK}h-3z` : `M${left.toFixed(1)} ${top + 4}h${wide.toFixed(1)}v${MARK - 8}h${(-wide).toFixed(1)}z`;
  }
  return d;
}

function axis(since: number, until: number, zone: string, x: (time: number) => number): Child[] {
  const room = Math.max((x(until) - x(since)) / 90, 2);
  const step = STEPS.find((one) => (until - since) / one <= room) ?? (until - since) / 4;
  const base = HEIGHT - AXIS;
  const lines: Child[] = [];
  for (const time of ticks(since, until, step, zone)) {
    const [date = "", hour = ""] = clock(time, zone).split(" ");
    const label = step >= 24 * HOUR || hour.startsWith("00:00") ? date : hour.slice(0, 5);
    const at = x(time).toFixed(1);
    lines.push(
      h("line", { class: "tick", key: `t${time}`, x1: at, x2: at, y1: "0", y2: String(base + 5) }),
      h("text", { class: "label", key: `l${time}`, x: at, y: String(base + 20), "text-anchor": "middle" }, label),
    );
  }
  return lines;
}

/** The full steps of the local clock, also where the clocks change. */
function ticks(since: number, until: number, step: number, zone: string): number[] {
  const found: number[] = [];
  const days = step / (24 * HOUR);
  let day = 0;
  for (let time = Math.ceil(since / HOUR) * HOUR; time <= until; time += HOUR) {
    const hour = Number(clock(time, zone).slice(11, 13));
    const minutes = clock(time, zone).slice(14, 16);
    const local = minutes === "00" ? time : time - Number(minutes) * 60_000;
    if (days < 1 ? hour % (step / HOUR) === 0 : hour === 0 && day++ % days === 0)
      if (local >= since && found.at(-1) !== local) found.push(local);
  }
  return found;
}

function nearest(marks: readonly Mark[], time: number, near: number): Mark | undefined {
  let best: Mark | undefined;
  let least = near;
  for (const one of marks) {
    const distance = time < one.at ? one.at - time : Math.max(time - one.until, 0);
    if (distance <= least) [best, least] = [one, distance];
  }
  return best;
}

function step(key: string, marks: readonly Mark[], place: number, at: number): number | undefined {
  const before = marks.filter((one) => one.until < at).length - 1;
  const here = place >= 0 ? place : before;
  switch (key) {
    case "ArrowRight":
    case "ArrowUp":
      return Math.min(here + 1, marks.length - 1);
    case "ArrowLeft":
    case "ArrowDown":
      return Math.max(place >= 0 ? here - 1 : before, 0);
    case "PageUp":
      return Math.min(here + 10, marks.length - 1);
    case "PageDown":
      return Math.max(here - 10, 0);
    case "Home":
      return 0;
    case "End":
      return marks.length - 1;
    case "Enter":
    case " ":
      return place >= 0 ? place : undefined;
    default:
      return undefined;
  }
}

/** What is shown, in words: how many of each lane, and what the bands and lines stand for. */
function legend(found: Timeline, marks: readonly Mark[], end: number, zone: string): Child {
  const counts = LANES.map((lane) => [lane, marks.filter((one) => one.lane === lane).length] as const).filter(([, count]) => count);
  const bands = [...new Set(bandsOf(found, end).map((one) => `${one.kind}|${one.said}`))];
  return h(
    "ul",
    { class: "legend" },
    ...counts.map(([lane, count]) => h("li", { key: lane }, h("i", { class: `swatch ${lane.replace(" ", "-")}` }), `${number(count)} ${lane}`)),
    ...bands.map((one) => h("li", { key: one }, h("i", { class: `swatch ${one.split("|")[0] ?? ""}` }), one.split("|")[1] ?? "")),
    ...found.clockChanges.map((one) => h("li", { key: one.at }, h("i", { class: "swatch clocks" }), `clocks change at ${clock(one.at, zone)}: from ${one.before} to ${one.after}`)),
    h("li", { key: "zone" }, `times in ${zone}`),
  );
}

/** The times before and after a span, of the same length. */
export function shifted(found: Timeline, by: -1 | 1): { from: string; to: string } {
  const [since, until] = [Date.parse(found.from), Date.parse(found.to)];
  const whole = until - since;
  return { from: iso(since + by * whole), to: iso(until + by * whole) };
}
