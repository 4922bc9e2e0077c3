/** The week by minute, behind us and ahead: what ticks delivered, what is due, what would be added. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { type Errors, type Flows, adding, errorsOf, wanted } from "./adding.js";
import { type App, type Page, anchor, button, instant, row, section, table } from "./app.js";
import { type Control, filters } from "./filters.js";
import { type Forecast, type Picture, all, heat, pictureOf } from "./heat.js";
import { link } from "./router.js";
import { clock, iso, number, numberOf, rate, several } from "./words.js";

type Bound = Schemas["BoundView"];
type Body = Schemas["ForecastBody"];

const MINUTE = 60_000;
const DAY = 86_400_000;
const SHOWN = 5;
/** A read of very many schedules takes seconds of the store: it is repeated after so many times as long. */
const RESTS = 30;

const CONTROLS: readonly Control[] = [
  { name: "user", label: "User", kind: "text" },
  { name: "flow", label: "Flow", kind: "text" },
  { name: "most", label: "Allowed at most", kind: "number", hint: "by a partner" },
  { name: "per", label: "In each", kind: "choice", options: [["minute", "minute"], ["hour", "hour"], ["day", "day"]] },
  { name: "lasts", label: "A run lasts (s)", kind: "number" },
];

/** What the address asks. Only of everything do the reports of ticks tell what lies behind. */
function asked(app: App): Body {
  const { user, flow, most, per, lasts } = app.place.query;
  const midnight = Math.floor(Date.now() / DAY) * DAY;
  const schedule = wanted(app);
  return {
    ...(user || flow ? {} : { from: iso(midnight - 6 * DAY) }),
    to: iso(midnight + 2 * DAY),
    ...(flow ? { flow } : {}),
    ...(most ? { most: numberOf(most), per: (per ?? "minute") as "minute" } : {}),
    ...(lasts ? { lasts: numberOf(lasts) } : {}),
    ...(schedule ? { schedule } : {}),
  };
}

/** The question without the answers that are wrong: the week is shown beside what is wrong with them. */
function without({ schedule: _, most, lasts, ...rest }: Body, errors: Errors): Body {
  return { ...rest, ...(most && !errors["most"] ? { most } : {}), ...(lasts && !errors["lasts"] ? { lasts } : {}) };
}

/** A row of the picture is a day: if a forecast begins within one, the minutes before it are empty. */
function fromMidnight(found: Forecast): Forecast {
  const since = Date.parse(found.from);
  const midnight = Math.floor(since / DAY) * DAY;
  const before = new Array<number>((since - midnight) / MINUTE).fill(0);
  const pad = (numbers: readonly number[] | null): number[] | null => numbers && [...before, ...numbers];
  return { ...found, from: iso(midnight), due: [...before, ...found.due], delivered: pad(found.delivered), added: pad(found.added) };
}

export function week(app: App): Page {
  let picture: Picture | null = null;
  let flows: Flows = [];
  let errors: Errors = {};
  let agreed = false;
  let took = 0;
  const readAll = async (body: Body): Promise<void> => {
    const { user } = app.place.query;
    const began = Date.now();
    let cursor: string | null = null;
    do {
      const part: Body = cursor === null ? body : { ...body, cursor };
      const answer = user
        ? (await app.api.post("/api/users/{user}/forecast", { path: { user }, body: part })).body
        : (await app.api.post("/api/forecast", { body: part })).body;
      picture = pictureOf(fromMidnight(answer));
      cursor = answer.cursor;
      app.draw();
    } while (cursor !== null);
    took = Date.now() - began;
  };
  const read = async (): Promise<void> => {
    // What costs is read when somebody says so, not again and again.
    if (picture?.found.cost?.agreed && !agreed) return;
    const body = { ...asked(app), ...(agreed ? { yes: true } : {}) };
    agreed = false;
    flows = flows.length ? flows : (await app.api.get("/api/flows")).body.flows;
    try {
      await readAll(body);
      errors = {};
    } catch (problem) {
      errors = errorsOf(problem);
      await readAll(without(body, errors));
    }
  };
  const agree = (): void => {
    agreed = true;
    app.refresh();
  };
  const pointer = {
    at: null as number | null,
    move(minute: number | null): void {
      if (minute === pointer.at) return;
      pointer.at = minute;
      app.draw();
    },
  };
  return {
    title: "The week by minute",
    get every() {
      return Math.max(MINUTE, RESTS * took);
    },
    read,
    view: () => [
      filters(app, CONTROLS, { label: "Filters", verb: "Find", role: "search", errors }),
      adding(app, flows, errors),
      picture && cost(app, picture.found, agree),
      picture && picture.found.cost?.agreed !== false && [heat(app, picture, pointer), summary(app, picture, flows), bounds(app, picture.found)],
    ],
  };
}

/** On DynamoDB a look ahead reads every schedule, which costs: it is asked first. */
function cost(app: App, { cost: found, at }: Forecast, agree: () => void): Child {
  if (!found) return null;
  const units = found.readUnits === null ? "an unknown number of read units" : `about ${several(found.readUnits, "read unit")}`;
  const schedules = found.schedules === null ? "every schedule" : several(found.schedules, "schedule");
  const said = found.agreed ? ["It was read at ", instant(app, at), "; to read it anew costs ", units, " again. "] : `To look ahead reads ${schedules}, which costs ${units}. `;
  return h("p", { class: "note" }, said, button(found.agreed ? "Read them again" : "Read them", agree));
}

/** What the numbers are made of, and what they leave out. */
function summary(app: App, { found, fullest: top }: Picture, flows: Flows): Child {
  const { flow } = app.place.query;
  const more = found.sums.added;
  const added = found.added && `It ${more < 0 ? `takes ${several(-more, "fire")} away from` : `adds ${several(more, "fire")} to`} the ${number(found.sums.due)} that are due as things stand. `;
  return [
    h(
      "p",
      { class: "standing", key: "summary", role: "status" },
      added,
      top && `The fullest minute ahead is ${clock(top.at, "UTC").slice(0, 16)} UTC, with ${number(all(top))}. `,
      found.cursor === null ? `${several(found.schedules, "active schedule")} read.` : `${several(found.schedules, "schedule")} read so far …`,
    ),
    flow && flows.length > 0 && !flows.some((one) => one.flow === flow) && h("p", { class: "warning", key: "flow" }, `This deployment has no flow ${flow}.`),
    found.unreadable > 0 && h("p", { class: "warning", key: "unreadable" }, `${several(found.unreadable, "row")} cannot be read and will not fire. `, anchor(link("unreadable"), "Which ones?")),
    found.paused > 0 && h("p", { class: "hint", key: "paused" }, `Pauses of groups leave out ${several(found.paused, "time")}. `, anchor(link("orders"), "Which pauses?")),
    found.partly && h("p", { class: "warning", key: "partly" }, "More waits than was counted: the numbers of what waits are too low."),
  ];
}

/** The API names its fields; here they have labels. */
function inLabels(said: string): string {
  return said.replaceAll("`most`", "“Allowed at most”").replaceAll("`lasts`", "“A run lasts”");
}

function bounds(app: App, found: Forecast): Child {
  if (!found.bounds.length) return null;
  return section("What is allowed", ...found.bounds.map((one) => bound(app, one, found.added !== null)));
}

function bound(app: App, one: Bound, hasAdded: boolean): Child {
  const name = `${one.kind} ${one.scope} ${one.per}`;
  const said = inLabels(one.said);
  if (!one.overCount) return h("p", { key: name }, said, one.most !== null && " Nothing ahead exceeds it.");
  const rows = one.over.slice(0, SHOWN).map((each) => row(each.at, instant(app, each.at), number(each.due), number(each.most ?? 0), instant(app, each.clearedAt, "after this span")));
  const others = one.overCount - rows.length;
  const { spread } = one;
  return h(
    "div",
    { key: name, class: "bound" },
    h("p", null, said, h("b", { class: "bad" }, ` More is due in ${several(one.overCount, one.per)}:`)),
    table(`Over ${rate(one.most ?? 0, one.per)} of ${one.scope}`, [`The ${one.per} of`, "Due", "Allowed", "All begun by"], rows, ""),
    others > 0 && h("p", { class: "hint" }, `And ${number(others)} more${others + SHOWN > one.over.length ? "; the picture marks the first 100" : ""}.`),
    h("p", null, one.spreadSaid, " ", hasAdded && spread !== null && button(`Try a spread of ${number(spread)} s`, () => app.choose({ spread: String(spread) }))),
  );
}
