/** What every page of the console has: the API, the reader's zone, actions, and a way to be drawn. */
import { type Child, h } from "../view/view.js";
import type { Act } from "./act.js";
import type { Place, Query } from "./router.js";
import type { Api } from "./session.js";
import { type State, type Tone, STATES, ago, clock, number } from "./words.js";

/** It is one object for all pages: place, zone and width are those of now. */
export interface App {
  readonly api: Api;
  readonly place: Place;
  /** The zone in which times are shown. */
  readonly zone: string;
  /** The width of the page, in pixels. */
  readonly width: number;
  /** Draw the page as it is now. */
  draw(): void;
  /** Read the page anew. */
  refresh(): void;
  /** Change what stands behind the `?` of the address. */
  choose(query: Query, instead?: boolean): void;
  /** Ask whether, and how, and why something shall be done; then do it. */
  act(act: Act): void;
  /** Say something below the page for a while. */
  say(text: string): void;
}

export interface Page {
  readonly title: string;
  /** The milliseconds between two reads while the page is looked at. */
  readonly every: number;
  read(): Promise<void>;
  view(): Child;
}

export function instant(app: App, at: string | null | undefined, none = "–"): Child {
  if (!at) return none;
  const text = clock(at, app.zone);
  return h("time", { datetime: at, title: `${at} · ${ago(at, Date.now())}` }, text);
}

/** An instant and how far it is from now. */
export function instantAgo(app: App, at: string | null | undefined, none = "–"): Child {
  if (!at) return none;
  return [instant(app, at), h("small", { class: "ago" }, ` ${ago(at, Date.now())}`)];
}

export function tag(text: string, tone: Tone): Child {
  return h("span", { class: `tag ${tone}` }, text);
}

export function state(one: State): Child {
  const [text, tone] = STATES[one];
  return tag(text, tone);
}

export function button(label: string, click: () => void, more: object = {}): Child {
  return h("button", { type: "button", ...more, on: { click } }, label);
}

export function anchor(href: string, ...children: Child[]): Child {
  return h("a", { href }, ...children);
}

export interface Row {
  readonly key: string;
  readonly cells: readonly Child[];
}

export function row(key: string, ...cells: Child[]): Row {
  return { key, cells };
}

/**
 * A table that scrolls in its own box where it is wider than the page. On a phone a row is a card if it has
 * an error, which takes lines, or buttons, which nobody would see. Roles are said, since a browser may
 * forget those of a row that is a card. Without rows nothing has been read, which is not that there is none.
 */
export function table(caption: string, titles: readonly string[], rows: readonly Row[] | null, none: Child): Child {
  if (!rows) return h("p", { class: "none" }, "Not read yet.");
  if (!rows.length) return h("p", { class: "none" }, none);
  const kind = titles.includes("Error") ? " cards" : titles.includes("") ? " cards titled" : "";
  const heads = titles.map((one) => h("th", { scope: "col", role: "columnheader" }, one || h("span", { class: "unseen" }, "Actions")));
  const lines = rows.map(({ key, cells }) => h("tr", { key, role: "row" }, ...cells.map((one, place) => h("td", { role: "cell", "data-title": titles[place] || undefined }, one))));
  return h(
    "div",
    { class: `scroll${kind}`, tabindex: "0", role: "group", "aria-label": caption },
    h(
      "table",
      { role: "table" },
      h("caption", { class: "unseen" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...heads)),
      h("tbody", { role: "rowgroup" }, ...lines),
    ),
  );
}

/** How often it was tried. Only a card needs the noun. */
export function attempts(count: number): Child {
  return [number(count), h("span", { class: "of-card" }, count === 1 ? " attempt" : " attempts")];
}

export function section(title: string, ...children: Child[]): Child {
  return h("section", { key: title, "aria-label": title }, h("h2", null, title), ...children);
}

/** The name of who did it, without the account that all have in common. */
export function by(who: string): Child {
  const short = /^arn:aws[^:]*:(?:iam|sts)::\d+:(.+)$/.exec(who)?.[1];
  return short ? h("span", { title: who }, short) : who;
}

/** Names and values, one below the other. */
export function facts(pairs: readonly (readonly [string, Child])[]): Child {
  return h(
    "dl",
    { class: "facts" },
    ...pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== false)
      .map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))),
  );
}

export function json(value: unknown): Child {
  return h("pre", { class: "json", tabindex: "0" }, JSON.stringify(value, null, 2) ?? "null");
}

/** A schedule's name: of a user's its two parts, of a static one its flow and its name. */
export function named(user: string, key: string): string {
  return user ? `${user} / ${key}` : `static ${key}`;
}
