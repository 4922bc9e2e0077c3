/** The forms of the picker, and the expressions that they write. Nothing here knows when one fires. */

export type Kind = "interval" | "daily" | "weekly" | "monthly" | "once" | "expression";

export const KINDS: readonly Kind[] = ["interval", "daily", "weekly", "monthly", "once", "expression"];

/** The days in the order of most calendars; cron counts from Sunday, which is 0. */
export const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Day = (typeof DAYS)[number];

const NUMBER: Readonly<Record<Day, number>> = { mon: 1, tue: 2, wed: 3, thu: 4, fri: 5, sat: 6, sun: 0 };

/** What somebody has entered; fields of other kinds keep what they had. */
export interface Draft {
  readonly kind: Kind;
  readonly every: string;
  readonly unit: "minutes" | "hours";
  readonly time: string;
  readonly days: readonly Day[];
  /** A day of the month, or L: its last one. */
  readonly date: string;
  readonly once: string;
  readonly expression: string;
}

export const EMPTY: Draft = {
  kind: "daily",
  every: "15",
  unit: "minutes",
  time: "09:00",
  days: ["mon"],
  date: "1",
  once: "",
  expression: "",
};

/** The field of a form that an expression comes from, to show there what is wrong. */
export type Field = "every" | "time" | "days" | "date" | "once" | "expression";

export const FIELD: Readonly<Record<Kind, Field>> = {
  interval: "every",
  daily: "time",
  weekly: "days",
  monthly: "date",
  once: "once",
  expression: "expression",
};

/** Return the expression of a draft; or the field that is not filled in. */
export function write(draft: Draft): { cron: string } | { missing: Field } {
  const [hour, minute] = draft.time.split(":").map(Number);
  const clock = draft.time ? `${minute} ${hour}` : null;
  switch (draft.kind) {
    case "interval":
      return /^[1-9]\d*$/.test(draft.every) ? { cron: interval(draft) } : { missing: "every" };
    case "daily":
      return clock ? { cron: `${clock} * * *` } : { missing: "time" };
    case "weekly":
      if (!draft.days.length) return { missing: "days" };
      return clock ? { cron: `${clock} * * ${weekdays(draft.days)}` } : { missing: "time" };
    case "monthly":
      if (!draft.date) return { missing: "date" };
      return clock ? { cron: `${clock} ${draft.date} * *` } : { missing: "time" };
    case "once":
      return draft.once ? { cron: `at(${draft.once.slice(0, 16)}:00)` } : { missing: "once" };
    case "expression":
      return draft.expression.trim() ? { cron: draft.expression } : { missing: "expression" };
  }
}

/** What divides the hour, or the day, is bound to the clock; anything else is elapsed time. */
function interval({ every, unit }: Draft): string {
  const count = Number(every);
  if (unit === "minutes" && 60 % count === 0 && count < 60)
    return count === 1 ? "* * * * *" : `*/${count} * * * *`;
  if (unit === "hours" && 24 % count === 0 && count < 24)
    return count === 1 ? "0 * * * *" : `0 */${count} * * *`;
  return `rate(${count} ${count === 1 ? unit.slice(0, -1) : unit})`;
}

function weekdays(days: readonly Day[]): string {
  return DAYS.filter((day) => days.includes(day))
    .map((day) => NUMBER[day])
    .join(",");
}

/** Return the draft that writes an expression; the kind `expression` takes any other. */
export function read(cron: string): Draft {
  const plain = inNumbers(cron);
  const found = FORMS.map(([form, take]) => [form.exec(plain), take] as const).find(([one]) => one);
  const taken = found?.[0] ? found[1](found[0].slice(1)) : null;
  return { ...EMPTY, expression: cron, ...(taken ?? { kind: "expression" }) };
}

const SHORT: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
};

/** Return an expression with numbers for the names of its days, and its five fields for a short name. */
function inNumbers(cron: string): string {
  const lower = cron.trim().toLowerCase();
  const short = SHORT[lower];
  if (short !== undefined) return short;
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5) return cron;
  const day = (name: string): string => String(NUMBER[name.toLowerCase() as Day]);
  const names = new RegExp(`\\b(?:${DAYS.join("|")})\\b`, "gi");
  return [...fields.slice(0, 4), fields[4]?.replace(/-sun\b/gi, "-7").replace(names, day)].join(" ");
}

type Take = (parts: string[]) => Partial<Draft> | null;

const FORMS: readonly (readonly [RegExp, Take])[] = [
  [/^\* \* \* \* \*$/, () => ({ kind: "interval", every: "1", unit: "minutes" })],
  [/^\*\/(\d+) \* \* \* \*$/, ([every = ""]) => even(every, 60) && { kind: "interval", every, unit: "minutes" }],
  [/^0 \* \* \* \*$/, () => ({ kind: "interval", every: "1", unit: "hours" })],
  [/^0 \*\/(\d+) \* \* \*$/, ([every = ""]) => even(every, 24) && { kind: "interval", every, unit: "hours" }],
  [/^rate\((\d+) (minute|hour)s?\)$/, ([every = "", unit]) => ({ kind: "interval", every, unit: unit === "hour" ? "hours" : "minutes" })],
  [/^(\d+) (\d+) \* \* \*$/, ([minute, hour]) => ({ kind: "daily", time: clock(hour, minute) })],
  [/^(\d+) (\d+) \* \* ([0-7,-]+)$/, ([minute, hour, days]) => weekly(clock(hour, minute), days)],
  [/^(\d+) (\d+) (\d+|L) \* \*$/, ([minute, hour, date = ""]) => ({ kind: "monthly", time: clock(hour, minute), date })],
  [/^at\((\d{4}-\d\d-\d\dT\d\d:\d\d):00\)$/, ([once = ""]) => ({ kind: "once", once })],
];

/** Every 7 minutes of an hour are not every 7 minutes: only what divides it is even. */
function even(every: string, whole: number): true | null {
  return whole % Number(every) === 0 ? true : null;
}

function clock(hour = "", minute = ""): string {
  return `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
}

function weekly(time: string, listed = ""): Partial<Draft> | null {
  const numbers = new Set<number>();
  for (const part of listed.split(",")) {
    const [first, last = first] = part.split("-").map(Number);
    if (first === undefined || last === undefined || Number.isNaN(first + last) || first > last) return null;
    for (let day = first; day <= last; day++) numbers.add(day % 7);
  }
  return { kind: "weekly", time, days: DAYS.filter((day) => numbers.has(NUMBER[day])) };
}
