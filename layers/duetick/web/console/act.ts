/**
 * An action of an operator: a dialog says what it will touch, takes its fields and the reason, and shows
 * what is wrong beside the field that is meant.
 */
import { DuetickError } from "../client/src/index.js";
import { type Child, h, render } from "../view/view.js";
import { inWords } from "./problems.js";

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly kind: "text" | "area" | "json" | "time" | "number" | "choice" | "check";
  readonly value?: string;
  readonly options?: readonly (readonly [string, string])[];
  readonly hint?: string;
  readonly required?: boolean;
  /** The JSON pointer of the body's field, if it is not the name. */
  readonly pointer?: string;
}

export type Given = Readonly<Record<string, string>>;

export interface Run {
  readonly why: string;
  /** Say how far it is. */
  progress(text: string): void;
  /** True once somebody has stopped it. */
  stopped(): boolean;
}

export interface Act {
  readonly title: string;
  /** What it does, in a sentence or two. */
  readonly does: Child;
  readonly fields?: readonly Field[];
  readonly verb: string;
  readonly danger?: boolean;
  /** A text that has to be typed first. */
  readonly type?: string;
  /** Find what it will touch, without touching it. */
  readonly touches?: (given: Given) => Promise<Child>;
  /** Do it, and return what was done, in a sentence. */
  readonly run: (given: Given, run: Run) => Promise<string>;
}

interface Open {
  readonly act: Act;
  given: Record<string, string>;
  why: string;
  typed: string;
  touches: Child;
  checking: boolean;
  errors: Record<string, string>;
  running: boolean;
  stopped: boolean;
  progress: string;
}

const CHECK_MS = 350;

/** A number is typed as text: a browser takes what is none for nothing, and the API says what is wrong. */
export const NUMBER = { type: "text", inputmode: "decimal" } as const;

/** The dialog of the page. One action is open at a time. */
export class Acting {
  #open: Open | null = null;
  #timer = 0;
  #asked = 0;
  readonly #dialog: HTMLDialogElement;

  constructor(
    parent: HTMLElement,
    /** It is told what was done. */
    private readonly done: (said: string) => void,
  ) {
    this.#dialog = document.createElement("dialog");
    this.#dialog.setAttribute("aria-labelledby", "act-title");
    this.#dialog.addEventListener("close", () => this.#closed());
    this.#dialog.addEventListener("cancel", (event) => {
      if (this.#open?.running) event.preventDefault();
    });
    parent.append(this.#dialog);
  }

  /** Open the dialog of an action. */
  open(act: Act): void {
    const given = Object.fromEntries((act.fields ?? []).map((one) => [one.name, one.value ?? ""]));
    this.#open = {
      act,
      given,
      why: "",
      typed: "",
      touches: null,
      checking: false,
      errors: {},
      running: false,
      stopped: false,
      progress: "",
    };
    this.#draw();
    this.#dialog.showModal();
    this.#check();
  }

  #closed(): void {
    this.#open = null;
    clearTimeout(this.#timer);
    render(this.#dialog);
  }

  #edit(name: string, value: string): void {
    if (!this.#open) return;
    this.#open.given[name] = value;
    this.#open.errors = {};
    this.#draw();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), CHECK_MS);
  }

  /** Ask what it will touch; of several questions the last answer counts. */
  #check(): void {
    const open = this.#open;
    if (!open?.act.touches) return;
    const mine = ++this.#asked;
    open.checking = true;
    this.#draw();
    const take = (touches: Child, errors: Record<string, string>): void => {
      if (this.#open !== open || mine !== this.#asked) return;
      Object.assign(open, { touches, errors, checking: false });
      this.#draw();
    };
    open.act.touches({ ...open.given }).then(
      (touches) => take(touches, this.#unread()),
      (problem: unknown) => take(null, this.#errorsOf(problem, open.act)),
    );
  }

  async #run(): Promise<void> {
    const open = this.#open;
    if (!open || open.running) return;
    open.errors = this.#unread();
    if (open.act.type !== undefined && open.typed !== open.act.type) open.errors["typed"] = `Type ${open.act.type} to go on.`;
    if (Object.keys(open.errors).length) return this.#draw();
    open.running = true;
    this.#draw();
    try {
      const said = await open.act.run({ ...open.given }, {
        why: open.why,
        progress: (text) => {
          open.progress = text;
          this.#draw();
        },
        stopped: () => open.stopped,
      });
      if (this.#open === open) this.#dialog.close();
      this.done(said);
    } catch (problem) {
      open.running = false;
      open.errors = this.#errorsOf(problem, open.act);
      // A browser closes a dialog at the second Escape, whatever goes on in it.
      if (this.#open !== open) return this.done(`${open.act.title}: ${Object.values(open.errors).join(" ")}`);
      this.#draw();
      this.#dialog.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
    }
  }

  /** Name the fields that are half filled in. A browser gives nothing for them, which may mean no end. */
  #unread(): Record<string, string> {
    const inputs = [...this.#dialog.querySelectorAll("input")].filter((one) => one.validity.badInput);
    return Object.fromEntries(inputs.map((one) => [one.id.replace(/^act-/, ""), "This is not complete: enter all of it, or clear it."]));
  }

  /** Show each problem at its field; what has no field stands above the buttons. */
  #errorsOf(problem: unknown, act: Act): Record<string, string> {
    if (problem instanceof FieldError) return { [problem.field]: problem.message };
    if (!(problem instanceof DuetickError)) return { all: inWords(problem) };
    const errors: Record<string, string> = {};
    for (const one of problem.problems) {
      const at = act.fields?.find(({ name, pointer }) => isAt(one.field, pointer ?? `/${name}`));
      const isWhy = one.field === "/Duetick-Why";
      const to = at?.name ?? (isWhy ? "why" : "all");
      const inner = isWhy ? "" : insideOf(one.field, at ? (at.pointer ?? `/${at.name}`) : "");
      const said = inner ? `${inner}: ${one.message}` : one.message;
      errors[to] = errors[to] ? `${errors[to]} ${said}` : said;
    }
    return problem.problems.length ? errors : { all: problem.message };
  }

  #draw(): void {
    const open = this.#open;
    if (!open) return;
    const submit = (event: Event): void => {
      event.preventDefault();
      void this.#run();
    };
    const { act, errors } = open;
    render(
      this.#dialog,
      h(
        "form",
        { novalidate: true, on: { submit } },
        h("h2", { id: "act-title" }, act.title),
        h("div", { class: "does" }, act.does),
        ...(act.fields ?? []).map((one) => this.#field(one, open)),
        act.touches &&
          h(
            "div",
            { class: "touches", role: "status", "aria-busy": String(open.checking) },
            h("strong", null, "What it will touch: "),
            open.touches ?? (open.checking ? "looking…" : "nothing, as it stands"),
          ),
        act.type !== undefined && this.#typed(open),
        this.#why(open),
        errors["all"] && h("p", { class: "error", role: "alert" }, errors["all"]),
        open.progress && h("p", { role: "status" }, open.progress),
        h("div", { class: "buttons" }, ...this.#buttons(open)),
      ),
    );
  }

  #buttons(open: Open): Child[] {
    const { act, running } = open;
    const stop = (): void => {
      open.stopped = true;
      open.progress = `${open.progress} Stopping…`;
      this.#draw();
    };
    return [
      h(
        "button",
        { type: "submit", key: "do", class: act.danger ? "danger" : "primary", "aria-disabled": String(running) },
        running ? "Working…" : act.verb,
      ),
      running
        ? h("button", { type: "button", key: "stop", on: { click: stop } }, "Stop")
        : h("button", { type: "button", key: "close", on: { click: () => this.#dialog.close() } }, "Cancel"),
    ];
  }

  #why(open: Open): Child {
    const input = (event: Event): void => {
      open.why = (event.target as HTMLInputElement).value;
    };
    return field(
      { name: "why", label: "Why", kind: "text", hint: "It is recorded with your name. Others read it later." },
      open.errors,
      (more) => h("input", { ...more, type: "text", autocomplete: "off", on: { input } }),
    );
  }

  #typed(open: Open): Child {
    const input = (event: Event): void => {
      open.typed = (event.target as HTMLInputElement).value;
    };
    return field(
      { name: "typed", label: `Type ${open.act.type ?? ""} to go on`, kind: "text" },
      open.errors,
      (more) => h("input", { ...more, type: "text", autocomplete: "off", spellcheck: "false", on: { input } }),
    );
  }

  #field(one: Field, open: Open): Child {
    const edit = (event: Event): void => this.#edit(one.name, (event.target as HTMLInputElement).value);
    if (one.kind === "check") {
      const change = (event: Event): void =>
        this.#edit(one.name, (event.target as HTMLInputElement).checked ? "yes" : "");
      return h(
        "label",
        { class: "check", key: one.name },
        h("input", { type: "checkbox", checked: one.value === "yes", on: { change } }),
        one.label,
      );
    }
    const rest = { value: one.value ?? "", spellcheck: "false", autocomplete: "off", on: { input: edit } };
    return field(one, open.errors, (more) => {
      if (one.kind === "choice") {
        const options = (one.options ?? []).map(([value, label]) =>
          h("option", { value, selected: value === one.value }, label),
        );
        return h("select", { ...more, on: { change: edit } }, ...options);
      }
      if (one.kind === "area" || one.kind === "json")
        return h("textarea", { ...more, ...rest, rows: one.kind === "json" ? "8" : "3", class: one.kind });
      const kind = one.kind === "time" ? { type: "datetime-local", step: "1" } : one.kind === "number" ? NUMBER : { type: one.kind };
      return h("input", { ...more, ...rest, ...kind });
    });
  }
}

/** Something that is wrong with a field before it is sent. */
export class FieldError extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

/** Return the JSON of a field. */
export function parseJson(given: Given, name: string): unknown {
  const text = given[name]?.trim() ?? "";
  try {
    return text ? (JSON.parse(text) as unknown) : null;
  } catch (problem) {
    throw new FieldError(name, problem instanceof Error ? problem.message : "It is no JSON.");
  }
}

/** Return a time that was entered in UTC, as the API takes it; undefined if none was. */
export function timeOf(given: Given, name: string): string | undefined {
  const text = given[name] ?? "";
  if (!text) return undefined;
  return `${text.length === 16 ? `${text}:00` : text.slice(0, 19)}Z`;
}

/** Return an instant as a field of UTC takes it. */
export function toField(at: string | null | undefined): string {
  return at ? at.slice(0, 19) : "";
}

/** The name of what is wrong inside a field, which may be JSON: retry.attempts of /policies. */
function insideOf(found: string, pointer: string): string {
  const inner = found.startsWith(pointer) ? found.slice(pointer.length + 1) : "";
  return inner.split("/").map((one) => one.replaceAll("~1", "/").replaceAll("~0", "~")).join(".");
}

function isAt(found: string, pointer: string): boolean {
  return found === pointer || found.startsWith(`${pointer}/`) || found === pointer.slice(1);
}

function field(one: Field, errors: Readonly<Record<string, string>>, make: (more: object) => Child): Child {
  const id = `act-${one.name}`;
  const wrong = errors[one.name];
  const described = [one.hint && `${id}-hint`, wrong && `${id}-error`].filter(Boolean).join(" ");
  const more = {
    id,
    ...(one.required ? { required: true } : {}),
    ...(described ? { "aria-describedby": described } : {}),
    ...(wrong ? { "aria-invalid": "true" } : {}),
  };
  return h(
    "div",
    { class: "field", key: one.name },
    h("label", { for: id }, one.label),
    make(more),
    one.hint && h("small", { id: `${id}-hint` }, one.hint),
    wrong && h("p", { class: "error", id: `${id}-error` }, wrong),
  );
}
