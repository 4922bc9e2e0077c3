/** The console: its way in, its pages, its live reads, its one dialog. */
import { DuetickError } from "../client/src/index.js";
import { type Child, h, render } from "../view/view.js";
import { type Act, Acting } from "./act.js";
import { type App, type Page, anchor, button } from "./app.js";
import { job, jobs } from "./jobs.js";
import { occurrence, occurrences } from "./occurrences.js";
import { orders } from "./orders.js";
import { overview } from "./overview.js";
import { inWords } from "./problems.js";
import { record, ticks, unreadable } from "./records.js";
import { type Place, type Query, go, link, ofSchedule, read } from "./router.js";
import { schedule } from "./schedule.js";
import { schedules } from "./schedules.js";
import { type Api, open } from "./session.js";
import { week } from "./week.js";
import { clock } from "./words.js";

const PAGES: Readonly<Record<string, (app: App) => Page>> = {
  "": overview,
  schedules,
  schedule,
  occurrences,
  occurrence,
  unreadable,
  jobs,
  job,
  orders,
  week,
  ticks,
  record,
};

const MENU: readonly (readonly [string, string])[] = [
  ["", "Overview"],
  ["schedules", "Schedules"],
  ["occurrences", "Dead and waiting"],
  ["jobs", "Jobs"],
  ["orders", "Pauses and limits"],
  ["week", "Week"],
  ["ticks", "Ticks"],
  ["record", "Record"],
];
/** The menu's entry of a page that has none of its own. */
const BELONGS: Readonly<Record<string, string>> = { schedule: "schedules", occurrence: "occurrences", unreadable: "occurrences", job: "jobs" };

const ZONE = "duetick-zone";
const SAID_MS = 8_000;

class Console implements App {
  place: Place = read(location.hash);
  zone = localStorage.getItem(ZONE) ?? "UTC";
  width = 0;
  /** The page that is shown, and the one that is read: after a change of filters they differ. */
  #shown: Page;
  #page: Page;
  #timer = 0;
  #drawing = false;
  #isLive = true;
  #isClosed = false;
  #answeredAt = 0;
  #problem = "";
  readonly #answered = new WeakSet<Page>();
  #said = "";
  readonly #acting: Acting;

  constructor(
    private readonly root: HTMLElement,
    readonly api: Api,
  ) {
    this.#acting = new Acting(document.body, (said) => {
      this.say(said);
      this.refresh();
    });
    this.#shown = this.#page = this.#make();
    addEventListener("hashchange", () => this.#move());
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
    new ResizeObserver(() => this.#measure()).observe(root);
    this.draw();
    this.refresh();
  }

  #make(): Page {
    const make = PAGES[this.place.page];
    return make ? make(this) : missing(this.place.page);
  }

  act(act: Act): void {
    this.#acting.open(act);
  }

  choose(query: Query, instead = false): void {
    go(link(this.place.page, this.place.names, { ...this.place.query, ...query }), instead);
  }

  /** Follow the address. Other filters leave the page as it is until theirs has been read. */
  #move(): void {
    const before = this.place;
    this.place = read(location.hash);
    const same = before.page === this.place.page && before.names.join("\n") === this.place.names.join("\n");
    this.#page = this.#make();
    if (!same) this.#shown = this.#page;
    this.#problem = "";
    this.draw();
    if (!same) {
      scrollTo(0, 0);
      document.querySelector("h1")?.focus();
    }
    this.refresh();
  }

  refresh(): void {
    void this.#read(this.#page);
  }

  /** Read a page, and again after its time: never while nobody looks. */
  async #read(page: Page): Promise<void> {
    clearTimeout(this.#timer);
    try {
      await page.read();
      if (page !== this.#page) return;
      this.#problem = "";
      this.#answered.add(page);
      this.#answeredAt = Date.now();
    } catch (problem) {
      if (page !== this.#page) return;
      if (problem instanceof DuetickError && problem.error === "no_token") {
        this.#isClosed = true;
        return closed(this.root, problem.message);
      }
      this.#problem = inWords(problem);
    }
    this.#shown = page;
    this.draw();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#isLive && !document.hidden && this.refresh(), page.every);
  }

  #measure(): void {
    const width = Math.floor(this.root.querySelector(".page")?.clientWidth ?? 0);
    if (width === this.width) return;
    this.width = width;
    this.draw();
  }

  say(said: string): void {
    this.#said = said;
    this.draw();
    setTimeout(() => {
      if (this.#said === said) this.say("");
    }, SAID_MS);
  }

  /** Draw once for all that changes until the next picture. */
  draw(): void {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      if (!this.#isClosed) this.#render();
    });
  }

  #render(): void {
    const page = this.#shown;
    document.title = `${page.title} · Duetick`;
    const isFirst = !this.#answered.has(page) && !this.#problem;
    const reading = String(page !== this.#page || isFirst);
    render(
      this.root,
      this.#header(),
      h(
        "main",
        { id: "main", "aria-busy": reading },
        h("h1", { tabindex: "-1" }, page.title),
        this.#problem && h("p", { class: "error", role: "alert" }, this.#problem),
        isFirst && h("p", { class: "hint", role: "status" }, "Reading …"),
        ...safely(() => page.view()),
      ),
      h("p", { class: "toast", role: "status", hidden: !this.#said }, this.#said),
    );
    if (!this.width) this.#measure();
  }

  #header(): Child {
    const here = BELONGS[this.place.page] ?? this.place.page;
    const find = (event: Event): void => {
      event.preventDefault();
      const form = event.target as HTMLFormElement;
      const text = String(new FormData(form).get("find") ?? "").trim();
      if (text) go(found(text));
      form.reset();
    };
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const zones = [...new Set(["UTC", own, this.zone])];
    const choose = (event: Event): void => {
      this.zone = (event.target as HTMLSelectElement).value;
      localStorage.setItem(ZONE, this.zone);
      this.draw();
    };
    return h(
      "header",
      null,
      h("a", { class: "skip", href: "#main", on: { click: skip } }, "Skip to the page"),
      h("span", { class: "brand" }, "Duetick"),
      h("nav", { "aria-label": "Pages" }, ...MENU.map(([page, label]) => h("a", { key: page, href: link(page), "aria-current": page === here ? "page" : undefined }, label))),
      h("form", { class: "find", role: "search", on: { submit: find } }, h("label", { class: "unseen", for: "find" }, "Find a user, a schedule or an id"), h("input", { id: "find", name: "find", type: "search", placeholder: "Find a user, user/key, occ_…", autocomplete: "off", spellcheck: "false" })),
      h("label", { class: "unseen", for: "zone" }, "Times in"),
      h("select", { id: "zone", on: { change: choose } }, ...zones.map((one) => h("option", { value: one, selected: one === this.zone }, one))),
      this.#live(),
    );
  }

  /** Whatever moves by itself can be stopped. */
  #live(): Child {
    const toggle = (): void => {
      this.#isLive = !this.#isLive;
      this.draw();
      if (this.#isLive) this.refresh();
    };
    const at = this.#answeredAt ? clock(this.#answeredAt, this.zone).slice(11) : "…";
    const said = this.#problem ? "no answer since" : this.#isLive ? "live" : "stopped";
    return button(`${said} ${at}`, toggle, { class: `live ${this.#problem ? "bad" : this.#isLive ? "good" : "off"}`, "aria-pressed": String(this.#isLive), "aria-label": `Live reads: ${said} ${at}` });
  }
}

function skip(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("h1")?.focus();
}

/** Where a text leads that somebody looks for. */
function found(text: string): string {
  if (/^occ_[0-9a-f]+$/.test(text)) return link("occurrence", [text]);
  const slash = text.indexOf("/");
  if (slash > 0 && slash === text.length - 1) return link("schedules", [], { user: text.slice(0, -1) });
  return slash > 0 ? ofSchedule(text.slice(0, slash), text.slice(slash + 1)) : link("schedules", [], { text });
}

/** A page that cannot be drawn says so; the menu stays. */
function safely(view: () => Child): Child[] {
  try {
    return [h("div", { class: "page" }, view())];
  } catch (problem) {
    console.error(problem);
    return [h("p", { class: "error", role: "alert" }, `This cannot be shown: ${String(problem)}`)];
  }
}

function missing(name: string): Page {
  return {
    title: "No such page",
    every: 3_600_000,
    read: () => Promise.resolve(),
    view: () => h("p", null, `There is no page ${JSON.stringify(name)}. `, anchor(link(""), "To the overview")),
  };
}

function closed(root: HTMLElement, why: string): void {
  document.title = "Duetick";
  render(root, h("main", { class: "closed" }, h("h1", null, "The console is closed"), h("p", { role: "alert" }, why)));
}

const root = document.getElementById("console");
if (root) {
  root.replaceChildren();
  const api = await open();
  if (typeof api === "string") closed(root, api);
  else new Console(root, api);
}
