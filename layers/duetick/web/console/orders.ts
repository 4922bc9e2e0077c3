/** What operators have ordered for as long as it holds: pauses of groups, limits; and static schedules. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { liftLimit, limitGroup, pauseGroup, pauseSchedule, recover, resumeGroup, resumeSchedule } from "./actions.js";
import { type App, type Page, anchor, button, by, instant, row, section, table, tag } from "./app.js";
import { ofSchedule } from "./router.js";
import { backfillChange } from "./schedule.js";
import { number, rate } from "./words.js";

const STATIC_READ = 100;

export function orders(app: App): Page {
  let pauses: Schemas["GroupPauseView"][] | null = null;
  let limits: Schemas["LimitView"][] | null = null;
  let statics: Schemas["AnyScheduleView"][] | null = null;
  let overview: Schemas["OverviewView"] | null = null;
  let looked = "";
  return {
    title: "Pauses and limits",
    every: 10_000,
    read: async () => {
      const [paused, limited, seen] = await Promise.all([app.api.get("/api/pauses"), app.api.get("/api/limits"), app.api.get("/api/overview")]);
      [pauses, limits, overview] = [paused.body.pauses, limited.body.limits, seen.body];
      if (looked) return;
      [statics, looked] = await staticOnes(app);
    },
    view: () => [
      section("Pauses", h("p", { class: "buttons" }, button("Pause a group", () => app.act(pauseGroup(app)))), pausesTable(app, pauses)),
      section("Limits", h("p", { class: "buttons" }, button("Limit a group", () => app.act(limitGroup(app, { scope: "" })))), limitsTable(app, limits)),
      section("Static schedules", h("p", { class: "hint" }, looked), staticTable(app, statics, () => (looked = ""))),
      overview && backfillsTable(app, overview),
      overview?.restored && section("After a restore", h("p", { class: "error" }, "The database is a backup: no tick claims."), button("Recover", () => app.act(recover(app)))),
    ],
  };
}

/** The static schedules among the first that the store lists: they have no list of their own. */
async function staticOnes(app: App): Promise<[Schemas["AnyScheduleView"][], string]> {
  const found: Schemas["AnyScheduleView"][] = [];
  let read = 0;
  for await (const one of app.api.pages("/api/all-schedules", { query: { limit: 100 } })) {
    if (!one.user) found.push(one);
    if (++read >= STATIC_READ * 10) break;
  }
  return [found, read >= STATIC_READ * 10 ? `Those among the first ${number(read)} schedules.` : "All of them."];
}

function pausesTable(app: App, found: readonly Schemas["GroupPauseView"][] | null): Child {
  const rows = found && found.map((one) =>
    row(
      `${one.scope}${one.since}`,
      one.scope,
      [one.holds ? tag("holds", "off") : tag("over", "plain")],
      instant(app, one.since),
      one.until ? instant(app, one.until) : "a resume",
      [by(one.by), one.resumedBy && h("small", null, ", ended by ", by(one.resumedBy))],
      one.note,
      one.holds && button("Resume", () => app.act(resumeGroup(app, one.scope)), { "aria-label": `Resume ${one.scope}` }),
    ),
  );
  return table("Pauses of groups", ["Scope", "State", "Since", "Until", "By", "Note", ""], rows, "No pause stands, and none ended in the last thirty days.");
}

function limitsTable(app: App, found: readonly Schemas["LimitView"][] | null): Child {
  const rows = found && found.map((one) =>
    row(
      one.scope,
      one.scope,
      one.parallel === null ? "–" : `${number(one.running)} of ${number(one.parallel)}`,
      one.rate === null ? "–" : `${number(one.begun)} of ${rate(one.rate, one.per)}`,
      one.fullUntil ? [tag("full", "wait"), " until ", instant(app, one.fullUntil), ", or sooner"] : tag("has room", "good"),
      by(one.by),
      one.note,
      h("span", { class: "buttons" }, button("Change", () => app.act(limitGroup(app, one)), { "aria-label": `Change the limit of ${one.scope}` }), button("Lift", () => app.act(liftLimit(app, one.scope)), { "aria-label": `Lift the limit of ${one.scope}` })),
    ),
  );
  return table("Limits", ["Scope", "Running", "Begun", "Room", "By", "Note", ""], rows, "Nothing is limited.");
}

function staticTable(app: App, found: readonly Schemas["AnyScheduleView"][] | null, changed: () => void): Child {
  const rows = found && found.map((one) =>
    row(
      one.key,
      anchor(ofSchedule("", one.key), one.key),
      tag(one.state, one.state === "active" ? "good" : one.state === "unreadable" ? "bad" : "off"),
      h("code", null, one.cron ?? "?"),
      instant(app, one.nextFireAt),
      button(one.state === "paused" ? "Resume" : "Pause", () => {
        changed();
        app.act(one.state === "paused" ? resumeSchedule(app, "", one.key) : pauseSchedule(app, "", one.key));
      }),
    ),
  );
  return table("Static schedules", ["Flow and name", "State", "Cron", "Next", ""], rows, "No flow declares one.");
}

function backfillsTable(app: App, { backfills }: Schemas["OverviewView"]): Child {
  if (!backfills.count) return null;
  const rows = backfills.first.map((one) =>
    row(one.id, anchor(ofSchedule(one.order.user, one.order.key), `${one.order.user} / ${one.order.key}`), one.state, `${number(one.brought + one.firedBefore)} of ${number(one.order.times)}`, by(one.by), backfillChange(app, one)),
  );
  return section("Backfills", h("p", { class: "hint" }, `${number(backfills.count)} stand; the newest:`), table("Backfills", ["Schedule", "State", "How far", "By", ""], rows, ""));
}
