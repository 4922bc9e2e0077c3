/** The picture of a forecast: a row for each day, each minute as dark as it is full. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import type { App } from "./app.js";
import { clock, number, several } from "./words.js";

const MINUTE = 60_000;
const DAY = 86_400_000;
const OF_DAY = 1_440;
const ROW = 22;
const STRIP = 4;
const GAP = 6;
const LEFT = 96;
const TOP = 20;
const WINDOWS = { minute: 1, hour: 60, day: OF_DAY };

export type Forecast = Schemas["ForecastView"];

interface Cell {
  readonly at: number;
  readonly ahead: boolean;
  /** What was delivered, or is due. */
  readonly count: number;
  /** What a schedule that is not saved would add; less than nothing, if it takes more away. */
  readonly added: number;
}

const SWATCHES = ["idle", "ran", "ahead", "added", "too-much"] as const;
type Colours = Readonly<Record<(typeof SWATCHES)[number] | "text" | "muted", string>>;

/** The minute that somebody looks at. */
export interface Pointer {
  readonly at: number | null;
  move(minute: number | null): void;
}

/** A forecast, and what every drawing of it needs: it is worked out once for each answer. */
export interface Picture {
  readonly found: Forecast;
  readonly since: number;
  /** The first minute that is not behind us. */
  readonly now: number;
  /** The minutes of windows in which more is due than a bound allows. */
  readonly over: ReadonlySet<number>;
  readonly most: number;
  /** The minute ahead in which most is due, with what is added; null if nothing is. */
  readonly fullest: Cell | null;
}

export function pictureOf(found: Forecast): Picture {
  const since = Date.parse(found.from);
  const now = Math.floor((Date.parse(found.at) - since) / MINUTE);
  const bare = { found, since, now, over: minutesOver(found, since), most: 1, fullest: null };
  let most = 1;
  let fullest: Cell | null = null;
  for (let minute = 0; minute < found.due.length; minute++) {
    const cell = cellAt(bare, minute);
    most = Math.max(most, all(cell));
    if (cell.ahead && all(cell) > (fullest ? all(fullest) : 0)) fullest = cell;
  }
  return { ...bare, most, fullest };
}

function minutesOver(found: Forecast, since: number): ReadonlySet<number> {
  const minutes = new Set<number>();
  for (const { per, over } of found.bounds)
    for (const { at } of over) {
      const first = (Date.parse(at) - since) / MINUTE;
      for (let minute = first; minute < first + WINDOWS[per]; minute++) minutes.add(minute);
    }
  return minutes;
}

function cellAt({ found, since, now }: Picture, minute: number): Cell {
  const ahead = minute >= now;
  const count = (ahead ? found.due[minute] : found.delivered?.[minute]) ?? 0;
  return { at: since + minute * MINUTE, ahead, count, added: (ahead && found.added?.[minute]) || 0 };
}

/** What is delivered or due in a minute, with what is added. */
export function all({ count, added }: Cell): number {
  return count + added;
}

export function heat(app: App, picture: Picture, pointer: Pointer): Child {
  const { found, now } = picture;
  const days = Math.ceil(found.due.length / OF_DAY);
  const wide = Math.max(app.width, 260);
  const height = TOP + days * (ROW + GAP);
  const minuteOf = (event: MouseEvent): number | null => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const day = Math.floor((event.clientY - box.top - TOP) / (ROW + GAP));
    const minute = Math.floor(((event.clientX - box.left - LEFT) / (wide - LEFT)) * OF_DAY);
    const place = day * OF_DAY + minute;
    return day >= 0 && minute >= 0 && minute < OF_DAY && place < found.due.length ? place : null;
  };
  const press = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: OF_DAY, ArrowUp: -OF_DAY, PageDown: 60, PageUp: -60 };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    pointer.move(Math.min(Math.max((pointer.at ?? now) + step, 0), found.due.length - 1));
  };
  const { at } = pointer;
  const said = saidOf(picture, at);
  return h(
    "figure",
    { class: "week", key: "week" },
    h("canvas", {
      role: "slider",
      tabindex: "0",
      "aria-label": "The week by minute. Left and right go by a minute, up and down by a day, page up and down by an hour.",
      "aria-valuemin": "0",
      "aria-valuemax": String(found.due.length - 1),
      "aria-valuenow": String(at ?? 0),
      "aria-valuetext": said,
      width: String(wide),
      height: String(height),
      key: `${wide}`,
      // The picture is painted after the element is in the page: its colours come from the style.
      "data-painted": paint(picture, at, wide, height),
      on: { mousemove: (event) => pointer.move(minuteOf(event)), mouseleave: () => pointer.move(null), keydown: press },
    }),
    h("figcaption", null, h("span", { class: "over" }, said), legend(picture)),
  );
}

/** What the colours mean. The picture takes them from here, so that both follow light and dark. */
function legend({ found, over, most }: Picture): Child {
  const one = (name: string, said: string): Child => h("li", { key: name }, h("i", { class: `swatch ${name}` }), said);
  return h(
    "ul",
    { class: "legend" },
    found.delivered && one("ran", "delivered"),
    one("ahead", "due"),
    found.added && one("added", "added"),
    over.size > 0 && one("too-much", "more than is allowed"),
    one("idle", "nothing"),
    h("li", { key: "most" }, `the strongest minute has ${number(most)}`),
  );
}

function saidOf(picture: Picture, minute: number | null): string {
  const { found, over } = picture;
  if (minute === null) return `${several(found.sums.due, "fire")} ahead. Point at a minute, or use the arrow keys.`;
  const { at, count, added, ahead } = cellAt(picture, minute);
  const more = added ? (added > 0 ? `, ${number(added)} added` : `, ${number(-added)} fewer`) : "";
  const past = found.delivered ? `${number(count)} delivered` : "over; the history of each schedule has it";
  const tooMuch = over.has(minute) ? ": in a window with more than is allowed" : "";
  return `${clock(at, "UTC").slice(0, 16)} UTC: ${ahead ? `${number(count)} due${more}${tooMuch}` : past}`;
}

/** Paint the minutes, each pixel as dark as the fullest of the minutes that it stands for. */
function paint(picture: Picture, at: number | null, wide: number, height: number): string {
  const { found } = picture;
  queueMicrotask(() => {
    const canvas = document.querySelector<HTMLCanvasElement>(".week canvas");
    const context = canvas?.getContext("2d");
    if (!canvas || !context) return;
    const style = getComputedStyle(canvas);
    const swatch = (name: string) => [name, getComputedStyle(document.querySelector(`.week .${name}`) ?? canvas).backgroundColor];
    const colours = { text: style.color, muted: style.caretColor, ...Object.fromEntries(SWATCHES.map(swatch)) } as Colours;
    context.clearRect(0, 0, wide, height);
    context.font = "12px system-ui, sans-serif";
    const columns = wide - LEFT;
    for (let hour = 0; hour < 24; hour += columns < 500 ? 6 : 3) {
      context.fillStyle = colours.muted;
      context.fillText(`${String(hour).padStart(2, "0")}:00`, LEFT + (hour / 24) * columns, 12);
    }
    for (let day = 0; day * OF_DAY < found.due.length; day++) paintDay(context, picture, day, columns, colours);
    if (at !== null) {
      context.strokeStyle = colours.text;
      const x = LEFT + ((at % OF_DAY) / OF_DAY) * columns;
      context.strokeRect(Math.round(x) - 1.5, TOP + Math.floor(at / OF_DAY) * (ROW + GAP) - 1.5, 4, ROW + 3);
    }
  });
  return `${found.at} ${at ?? ""}`;
}

function paintDay(context: CanvasRenderingContext2D, picture: Picture, day: number, columns: number, colours: Colours): void {
  const { since, over, most } = picture;
  const top = TOP + day * (ROW + GAP);
  const first = day * OF_DAY;
  context.fillStyle = colours.muted;
  const date = new Date(since + day * DAY);
  context.fillText(date.toLocaleDateString("en-GB", { weekday: "short", day: "2-digit", month: "short", timeZone: "UTC" }), 0, top + 15);
  context.fillStyle = colours.idle;
  context.fillRect(LEFT, top, columns, ROW);
  for (let column = 0; column < columns; column++) {
    const from = first + Math.floor((column / columns) * OF_DAY);
    const to = Math.max(first + Math.floor(((column + 1) / columns) * OF_DAY), from + 1);
    let best: Cell | null = null;
    for (let minute = from; minute < to; minute++) {
      const cell = cellAt(picture, minute);
      if (!best || all(cell) > all(best)) best = cell;
    }
    if (best) paintCell(context, best, LEFT + column, top, most, colours);
  }
  context.fillStyle = colours["too-much"];
  for (let minute = 0; minute < OF_DAY; minute++)
    if (over.has(first + minute)) context.fillRect(LEFT + Math.floor((minute / OF_DAY) * columns) - 2, top + ROW, STRIP + 1, STRIP);
}

/** What is added stands above what is due, each with its share of the height. */
function paintCell(context: CanvasRenderingContext2D, cell: Cell, left: number, top: number, most: number, colours: Colours): void {
  const amount = all(cell);
  if (amount <= 0) return;
  const of = cell.added > 0 ? Math.max(STRIP, Math.round((ROW * cell.added) / amount)) : 0;
  context.globalAlpha = 0.2 + 0.8 * (Math.log1p(amount) / Math.log1p(most));
  context.fillStyle = cell.ahead ? colours.ahead : colours.ran;
  context.fillRect(left, top + of, 1, ROW - of);
  context.fillStyle = colours.added;
  context.fillRect(left, top, 1, of);
  context.globalAlpha = 1;
}
