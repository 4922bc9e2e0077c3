/** The answer to "why?" for one time, in the API's own sentences, and what can be done about it. */
import type { Schemas } from "../client/src/index.js";
import { type Child, h } from "../view/view.js";
import { backfill, mendSchedule, resumeGroup, resumeSchedule, runSchedule } from "./actions.js";
import { type App, anchor, button, instant, section, tag } from "./app.js";
import { changes, ofOccurrence } from "./occurrences.js";
import { VERDICTS, type Verdict } from "./words.js";

export type Explanation = Schemas["ExplanationView"];

export interface Subject {
  readonly user: string;
  readonly key: string;
  readonly schedule: Schemas["ScheduleView"] | null;
  readonly edit: () => void;
}

type Remedy = "resume" | "backfill" | "edit" | "mend" | "run";

/** What helps: to let it fire again, and to make good what did not fire. */
const REMEDIES: Readonly<Partial<Record<Verdict, readonly Remedy[]>>> = {
  failed: ["backfill", "run"],
  lost: ["backfill", "run"],
  rejected: ["edit", "run"],
  poisoned: ["edit", "mend", "backfill"],
  unreadable: ["edit", "mend"],
  overlap: ["backfill", "run"],
  missed: ["backfill", "run"],
  paused: ["resume", "backfill"],
  disabled: ["resume", "backfill"],
  superseded: ["backfill", "run"],
  quota: ["edit", "run"],
  operator: ["backfill", "run"],
  unindexed: ["mend"],
  unaccounted: ["backfill", "mend"],
  outside_window: ["edit"],
};

export function explaining(app: App, of: Subject, found: Explanation, choose: (at: string) => void): Child {
  const [word, tone] = VERDICTS[found.verdict];
  return section(
    "Why?",
    h(
      "div",
      { class: "explained", "aria-live": "polite" },
      h("p", null, tag(word, tone), " ", instant(app, found.at), found.local && h("small", null, ` · ${found.local.replace("T", " ")} local`)),
      h("ul", { class: "said" }, ...found.said.map((one) => h("li", null, one))),
      beside(found, choose),
      found.occurrence && happened(app, of, found),
      remedies(app, of, found),
    ),
  );
}

/** If it is no fire time, offer those beside it. */
function beside(found: Explanation, choose: (at: string) => void): Child {
  if (!found.before && !found.after) return null;
  const to = (label: string, at: string): Child => button(`${label}: ${at}`, () => choose(at), { key: label });
  return h("p", { class: "buttons" }, found.before && to("The fire time before", found.before), found.after && to("The fire time after", found.after));
}

function happened(app: App, of: Subject, found: Explanation): Child {
  const one = found.occurrence;
  if (!one || one.until) return null;
  const any = { ...one, user: of.user, key: of.key, flow: of.schedule?.flow ?? "" };
  return h(
    "div",
    null,
    one.failures.length > 0 && h("ul", { class: "said" }, ...one.failures.map((each) => h("li", null, `Attempt ${each.attempt} failed at `, instant(app, each.at), ": ", h("span", { class: "error-text" }, each.error)))),
    h("p", { class: "buttons" }, anchor(ofOccurrence(any), "All about this occurrence"), changes(app, any)),
  );
}

/** Offer what helps. A past time is made good by a backfill, one to come needs none. */
function remedies(app: App, of: Subject, found: Explanation): Child {
  const { user, key, schedule } = of;
  const held = schedule?.heldBy;
  const wanted = new Set(REMEDIES[found.verdict] ?? []);
  const offers: Child[] = [];
  if (held) offers.push(button(`Resume ${held.scope}`, () => app.act(resumeGroup(app, held.scope)), { key: "group" }));
  if (schedule?.paused && wanted.has("resume")) offers.push(button("Resume the schedule", () => app.act(resumeSchedule(app, user, key)), { key: "resume" }));
  if (wanted.has("edit") && schedule && user) offers.push(button("Change the schedule", of.edit, { key: "edit" }));
  if (wanted.has("mend") && user) offers.push(button("Mend its row", () => app.act(mendSchedule(app, user, key)), { key: "mend" }));
  if (wanted.has("backfill") && user && schedule && Date.parse(found.at) < Date.now())
    offers.push(button("Backfill this time", () => app.act(backfill(app, user, key, found.at)), { key: "backfill" }));
  if (wanted.has("run") && user && schedule) offers.push(button("Run it now", () => app.act(runSchedule(app, user, key)), { key: "run" }));
  if (!offers.length) return null;
  return h("div", { class: "remedies", role: "group", "aria-label": "What helps" }, h("strong", null, "What helps: "), ...offers);
}
