/** The words of the picker. Give `labels` any of them in your user's language; {…} is filled in. */
import type { Schemas } from "../client/src/index.js";
import type { Day, Field, Kind } from "./expressions.js";

export interface Labels {
  title: string;
  repeats: string;
  kinds: Record<Kind, string>;
  every: string;
  minutes: string;
  hours: string;
  unit: string;
  time: string;
  days: string;
  dayNames: Record<Day, string>;
  date: string;
  lastDay: string;
  once: string;
  expression: string;
  expressionHint: string;
  timezone: string;
  timezoneHint: string;
  noTimezone: string;
  timezones: string;
  preview: string;
  next: string;
  never: string;
  looking: string;
  missing: Record<Field, string>;
  save: string;
  saved: string;
  pause: string;
  paused: string;
  pausedUntil: string;
  held: string;
  done: string;
  resume: string;
  resumed: string;
  delete: string;
  confirmDelete: string;
  confirm: string;
  cancel: string;
  deleted: string;
  history: string;
  noHistory: string;
  range: string;
  states: Record<Schemas["ShownState"], string>;
  conflict: string;
  unreachable: string;
  signedOut: string;
}

export const ENGLISH: Labels = {
  title: "Schedule",
  repeats: "Repeats",
  kinds: {
    interval: "At an interval",
    daily: "Every day",
    weekly: "Every week",
    monthly: "Every month",
    once: "Once",
    expression: "By an expression",
  },
  every: "Every",
  minutes: "minutes",
  hours: "hours",
  unit: "Unit",
  time: "At",
  days: "On",
  dayNames: { mon: "Mon", tue: "Tue", wed: "Wed", thu: "Thu", fri: "Fri", sat: "Sat", sun: "Sun" },
  date: "On day",
  lastDay: "the last day",
  once: "On",
  expression: "Expression",
  expressionHint: "Minute, hour, day of the month, month, day of the week: 0 9 * * MON-FRI",
  timezone: "Time zone",
  timezoneHint: "Type a city or a region",
  noTimezone: "No time zone has that name.",
  timezones: "Time zones",
  preview: "What this means",
  next: "The next times",
  never: "It does not fire any more.",
  looking: "Looking…",
  missing: {
    every: "Enter a whole number from 1 on.",
    time: "Enter a time.",
    days: "Choose a day.",
    date: "Choose a day.",
    once: "Enter a date and a time.",
    expression: "Enter an expression.",
  },
  save: "Save",
  saved: "Saved.",
  pause: "Pause",
  paused: "It is paused.",
  pausedUntil: "It is paused until {until}.",
  held: "The service has paused it for now.",
  done: "It has ended: it does not fire any more.",
  resume: "Resume",
  resumed: "It fires again.",
  delete: "Delete",
  confirmDelete: "Delete this schedule? Its history stays.",
  confirm: "Yes, delete it",
  cancel: "Keep it",
  deleted: "Deleted.",
  history: "History",
  noHistory: "It has not fired yet.",
  range: "{count} times until {until}",
  states: {
    scheduled: "is planned",
    queued: "is about to run",
    processing: "is running",
    retrying: "is tried again",
    succeeded: "ran",
    dead: "failed",
    cancelled: "did not run",
    deleted: "was removed",
  },
  conflict: "It was changed elsewhere meanwhile. It is shown as it is now; change it again.",
  unreachable: "The service does not answer. Try again.",
  signedOut: "You are signed out. Sign in again.",
};

/** Return the English words, with those in their place that are given. */
export function translated(given: Partial<Labels> | undefined): Labels {
  const one = { ...ENGLISH, ...given };
  return {
    ...one,
    kinds: { ...ENGLISH.kinds, ...given?.kinds },
    dayNames: { ...ENGLISH.dayNames, ...given?.dayNames },
    missing: { ...ENGLISH.missing, ...given?.missing },
    states: { ...ENGLISH.states, ...given?.states },
  };
}

/** Fill the names of a text in. */
export function fill(text: string, names: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => names[name] ?? whole);
}
