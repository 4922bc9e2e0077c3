/** The words for what the API tells. A state, a reason or a verdict without words does not compile. */
import type { Schemas } from "../client/src/index.js";

export type State = Schemas["ShownState"];
export type Reason = Schemas["EndReason"];
export type Verdict = Schemas["Verdict"];

/** How it looks: as it should be, as it should not, not yet, left out on purpose, neither. */
export type Tone = "good" | "bad" | "wait" | "off" | "plain";

export const STATES: Readonly<Record<State, readonly [string, Tone]>> = {
  scheduled: ["planned", "wait"],
  queued: ["handed on", "wait"],
  processing: ["running", "wait"],
  retrying: ["will retry", "wait"],
  succeeded: ["ran", "good"],
  dead: ["dead", "bad"],
  cancelled: ["did not run", "off"],
  deleted: ["deleted", "off"],
};

export const REASONS: Readonly<Record<Reason, string>> = {
  fired: "it ran",
  failed: "it failed for good",
  lost: "it never began in time, or never ended",
  rejected: "it could not be run as it was",
  poisoned: "its cron or zone could not be read",
  overlap: "another one of it was running",
  missed: "its tick came too late",
  paused: "it was paused",
  disabled: "it was paused as it was due",
  schedule_deleted: "the schedule was deleted",
  superseded: "its times were changed",
  quota: "its runs were used up",
  operator: "an operator cancelled it",
};

export const VERDICTS: Readonly<Record<Verdict, readonly [string, Tone]>> = {
  fired: ["It ran", "good"],
  failed: ["It failed", "bad"],
  lost: ["It was lost", "bad"],
  rejected: ["It was rejected", "bad"],
  poisoned: ["It could not be read", "bad"],
  overlap: ["Skipped: another one ran", "off"],
  missed: ["Missed", "bad"],
  paused: ["Paused", "off"],
  disabled: ["Paused as it was due", "off"],
  schedule_deleted: ["The schedule was deleted", "off"],
  superseded: ["Its times were changed", "off"],
  quota: ["Its runs were used up", "off"],
  operator: ["An operator cancelled it", "off"],
  running: ["It runs now", "wait"],
  will_retry: ["It is tried again", "wait"],
  will_fire: ["It will fire", "wait"],
  may_overlap: ["It may be skipped", "wait"],
  not_a_fire_time: ["No fire time", "plain"],
  skipped_by_clock: ["Skipped by the clocks", "off"],
  repeated_by_clock: ["Left out by the clocks", "off"],
  outside_window: ["Outside its window", "off"],
  no_schedule: ["No such schedule then", "plain"],
  unreadable: ["It cannot be read", "bad"],
  backfilled: ["Made by a backfill", "good"],
  unindexed: ["It has no row", "bad"],
  unaccounted: ["Not accounted for", "bad"],
  unknown: ["Nobody knows", "plain"],
};

/** The origins of occurrences, by their beginning. */
export function origin(text: string): string {
  const kinds: Readonly<Record<string, string>> = {
    schedule: "its own time",
    run: "by hand",
    call: "a call from outside",
    backfill: "a backfill",
    failure: "a failure hook",
    job: "a job",
  };
  return kinds[text.split(":")[0] ?? ""] ?? text;
}

const FORMATS = new Map<string, Intl.DateTimeFormat>();

/** The parts of an instant in a zone, as 2026-12-01 09:00:00; in UTC if the browser does not know it. */
export function clock(at: number | string, zone: string): string {
  let format = FORMATS.get(zone);
  if (!format) {
    const options: Intl.DateTimeFormatOptions = { dateStyle: "short", timeStyle: "medium" };
    try {
      format = new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: zone });
    } catch {
      format = new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: "UTC" });
    }
    FORMATS.set(zone, format);
  }
  return format.format(new Date(at));
}

const STEPS: readonly (readonly [number, string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

/** A distance in time, such as 3 min or 2 d. */
export function span(milliseconds: number): string {
  const size = Math.abs(milliseconds);
  const [unit, name] = STEPS.find(([one]) => size >= one) ?? [1, "ms"];
  return `${Math.floor(size / unit)} ${name}`;
}

/** How long ago, or how far ahead. */
export function ago(iso: string, now: number): string {
  const distance = Date.parse(iso) - now;
  return distance > 0 ? `in ${span(distance)}` : `${span(distance)} ago`;
}

export function number(value: number): string {
  return value.toLocaleString("en");
}

/** The most of a window, such as "60 an hour". */
export function rate(most: number, per: string): string {
  return `${number(most)} ${per === "hour" ? "an" : "a"} ${per}`;
}

/** The number that a text says. What is none goes as it is to the API, which names the field. */
export function numberOf(text: string): number {
  return /^-?\d+(?:\.\d+)?$/.test(text.trim()) ? Number(text) : (text as unknown as number);
}

/** A count that may be more. */
export function counted({ count, more }: Schemas["CountView"]): string {
  return more ? `${number(count)}+` : number(count);
}

/** A number of things: 1 row, 2 rows. */
export function several(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** An instant as the API writes it. */
export function iso(at: number): string {
  return new Date(at).toISOString().replace(".000Z", "Z");
}
