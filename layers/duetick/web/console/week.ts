/** The week by minute, behind us and ahead: what ticks delivered, and what is due. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { type App, type Page, button } from "./app.js";
import { type Control, filters } from "./filters.js";
import { clock, iso, number, several } from "./words.js";

const MINUTE = 60_000;
const DAY = 86_400_000;
const OF_DAY = 1_440;
const ROW = 22;
const GAP = 3;
const LEFT = 96;
const TOP = 20;

type Forecast = Schemas["ForecastView"];

interface Colours {
  readonly text: string;
  readonly muted: string;
  readonly idle: string;
  readonly ran: string;
  readonly ahead: string;
}

interface Cell {
  readonly at: number;
  readonly count: number;
  readonly ahead: boolean;
}

const CONTROLS: readonly Control[] = [
  { name: "user", label: "User", kind: "text" },
  { name: "flow", label: "Flow", kind: "text" },
  { name: "most", label: "Most", kind: "number", hint: "that a partner allows" },
  { name: "per", label: "A", kind: "choice", options: [["minute", "minute"], ["hour", "hour"], ["day", "day"]] },
  { name: "lasts", label: "A run lasts (s)", kind: "number" },
];

/** What the address asks. Only of everything do the reports of ticks tell what lies behind. */
function asked({ place: { query } }: App): Schemas["ForecastBody"] {
  const { user, flow, most, per, lasts } = query;
  const midnight = Math.floor(Date.now() / DAY) * DAY;
  return {
    ...(user || flow ? {} : { from: iso(midnight - 6 * DAY) }),
    to: iso(midnight + 2 * DAY),
    ...(flow ? { flow } : {}),
    ...(most ? { most: Number(most), per: (per ?? "minute") as "minute" } : {}),
    ...(lasts ? { lasts: Number(lasts) } : {}),
  };
}

/** A row of the picture is a day: if a forecast begins within one, the minutes before it are empty. */
function fromMidnight(found: Forecast): Forecast {
  const since = Date.parse(found.from);
  const midnight = Math.floor(since / DAY) * DAY;
  const before = new Array<number>((since - midnight) / MINUTE).fill(0);
  const delivered = found.delivered && [...before, ...found.delivered];
  return { ...found, from: iso(midnight), due: [...before, ...found.due], delivered };
}

export function week(app: App): Page {
  let found: Forecast | null = null;
  let agreed = false;
  let over: number | null = null;
  const read = async (): Promise<void> => {
    const { user } = app.place.query;
    const question = { ...asked(app), ...(agreed ? { yes: true } : {}) };
    let cursor: string | null = null;
    do {
      const body: Schemas["ForecastBody"] = cursor === null ? question : { ...question, cursor };
      const answer = user
        ? (await app.api.post("/api/users/{user}/forecast", { path: { user }, body })).body
        : (await app.api.post("/api/forecast", { body })).body;
      found = fromMidnight(answer);
      cursor = found.cursor;
      app.draw();
    } while (cursor !== null);
  };
  const agree = (): void => {
    agreed = true;
    app.refresh();
  };
  const hover = (minute: number | null): void => {
    if (minute === over) return;
    over = minute;
    app.draw();
  };
  return {
    title: "The week by minute",
    every: 60_000,
    read,
    view: () => [filters(app, CONTROLS), found && [cost(found, agree), heat(app, found, over, hover), bounds(found)]],
  };
}

/** On DynamoDB a look ahead reads every schedule, which costs: it is asked first. */
function cost({ cost: found }: Forecast, agree: () => void): Child {
  if (!found || found.agreed) return null;
  const units = found.readUnits === null ? "an unknown number of read units" : `about ${several(found.readUnits, "read unit")}`;
  const schedules = found.schedules === null ? "every schedule" : several(found.schedules, "schedule");
  return h("p", { class: "note" }, `To look ahead reads ${schedules}, which costs ${units}. `, button("Read them", agree));
}

function cellAt(found: Forecast, minute: number): Cell {
  const at = Date.parse(found.from) + minute * MINUTE;
  const ahead = at >= Math.floor(Date.parse(found.at) / MINUTE) * MINUTE;
  return { at, ahead, count: (ahead ? found.due[minute] : found.delivered?.[minute]) ?? 0 };
}

function heat(app: App, found: Forecast, over: number | null, hover: (minute: number | null) => void): Child {
  const days = Math.ceil(found.due.length / OF_DAY);
  const wide = Math.max(app.width, 260);
  const height = TOP + days * (ROW + GAP);
  const most = Math.max(1, ...found.due, ...(found.delivered ?? []));
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
    const now = Math.floor((Date.parse(found.at) - Date.parse(found.from)) / MINUTE);
    hover(Math.min(Math.max((over ?? now) + step, 0), found.due.length - 1));
  };
  const said = saidOf(found, over);
  return h(
    "figure",
    { class: "week" },
    h("canvas", {
      role: "slider",
      tabindex: "0",
      "aria-label": "The week by minute. Left and right go by a minute, up and down by a day, page up and down by an hour.",
      "aria-valuemin": "0",
      "aria-valuemax": String(found.due.length - 1),
      "aria-valuenow": String(over ?? 0),
      "aria-valuetext": said,
      width: String(wide),
      height: String(height),
      key: `${wide}`,
      // The picture is painted after the element is in the page: its colours come from the style.
      "data-painted": paint(found, over, wide, height, most),
      on: { mousemove: (event) => hover(minuteOf(event)), mouseleave: () => hover(null), keydown: press },
    }),
    h("figcaption", null, h("span", { class: "over" }, said), legend(most)),
  );
}

/** What the colours mean. The picture takes them from here, so that both follow light and dark. */
function legend(most: number): Child {
  const one = (name: string, said: string): Child => h("li", { key: name }, h("i", { class: `swatch ${name}` }), said);
  return h("ul", { class: "legend" }, one("ran", "delivered"), one("ahead", "due"), one("idle", "nothing"), h("li", { key: "most" }, `the strongest minute has ${number(most)}`));
}

function saidOf(found: Forecast, over: number | null): string {
  if (over === null) return `${several(found.sums.due, "fire")} ahead. Point at a minute, or use the arrow keys.`;
  const { at, count, ahead } = cellAt(found, over);
  const past = found.delivered ? `${number(count)} delivered` : "over; the history of each schedule has it";
  return `${clock(at, "UTC").slice(0, 16)} UTC: ${ahead ? `${number(count)} due` : past}`;
}

/** Paint the minutes, each pixel as dark as the fullest of the minutes that it stands for. */
function paint(found: Forecast, over: number | null, wide: number, height: number, most: number): string {
  queueMicrotask(() => {
    const canvas = document.querySelector<HTMLCanvasElement>(".week canvas");
    const context = canvas?.getContext("2d");
    if (!canvas || !context) return;
    const style = getComputedStyle(canvas);
    const swatch = (name: string): string => getComputedStyle(document.querySelector(`.week .${name}`) ?? canvas).backgroundColor;
    const colours: Colours = { text: style.color, muted: style.caretColor, idle: swatch("idle"), ran: swatch("ran"), ahead: swatch("ahead") };
    context.clearRect(0, 0, wide, height);
    context.font = "12px system-ui, sans-serif";
    const columns = wide - LEFT;
    for (let hour = 0; hour < 24; hour += columns < 500 ? 6 : 3) {
      context.fillStyle = colours.muted;
      context.fillText(`${String(hour).padStart(2, "0")}:00`, LEFT + (hour / 24) * columns, 12);
    }
    for (let day = 0; day * OF_DAY < found.due.length; day++) paintDay(context, found, day, columns, most, colours);
    if (over !== null) {
      context.strokeStyle = colours.text;
      const x = LEFT + ((over % OF_DAY) / OF_DAY) * columns;
      context.strokeRect(Math.round(x) - 1.5, TOP + Math.floor(over / OF_DAY) * (ROW + GAP) - 1.5, 4, ROW + 3);
    }
  });
  return `${found.at} ${over ?? ""}`;
}

function paintDay(context: CanvasRenderingContext2D, found: Forecast, day: number, columns: number, most: number, colours: Colours): void {
  const top = TOP + day * (ROW + GAP);
  const first = day * OF_DAY;
  context.fillStyle = colours.muted;
  const date = new Date(Date.parse(found.from) + day * DAY);
  context.fillText(date.toLocaleDateString("en-GB", { weekday: "short", day: "2-digit", month: "short", timeZone: "UTC" }), 0, top + 15);
  context.fillStyle = colours.idle;
  context.fillRect(LEFT, top, columns, ROW);
  for (let column = 0; column < columns; column++) {
    const from = Math.floor((column / columns) * OF_DAY);
    const to = Math.max(Math.floor(((column + 1) / columns) * OF_DAY), from + 1);
    let best: Cell | null = null;
    for (let minute = from; minute < to; minute++) {
      const cell = cellAt(found, first + minute);
      if (!best || cell.count > best.count) best = cell;
    }
    if (!best?.count) continue;
    context.globalAlpha = 0.2 + 0.8 * (Math.log1p(best.count) / Math.log1p(most));
    context.fillStyle = best.ahead ? colours.ahead : colours.ran;
    context.fillRect(LEFT + column, top, 1, ROW);
  }
  context.globalAlpha = 1;
}

function bounds({ bounds: found }: Forecast): Child {
  if (!found.length) return null;
  return h("ul", { class: "said" }, ...found.map((one) => h("li", { key: `${one.kind} ${one.scope} ${one.per}` }, one.said, one.overCount > 0 && ` Over it: ${several(one.overCount, "window")}, the first at ${one.over[0]?.at ?? ""}.`, one.spreadSaid && ` ${one.spreadSaid}`)));
}
