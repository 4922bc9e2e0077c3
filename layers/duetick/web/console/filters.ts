/** Fields that stand in the address, so that what is found can be shared. */
import { type Child, h } from "../view/view.js";
import { NUMBER } from "./act.js";
import { type App, button } from "./app.js";

export interface Control {
  readonly name: string;
  readonly label: string;
  readonly kind: "search" | "text" | "choice" | "time" | "number";
  readonly options?: readonly (readonly [string, string])[];
  readonly hint?: string;
}

/** What a form is for, what its button says, and what is wrong with a field, by its name. */
export interface Asking {
  readonly label: string;
  readonly verb: string;
  readonly role?: "search";
  readonly errors?: Readonly<Record<string, string>>;
}

const TYPES = { search: { type: "search" }, text: { type: "text" }, number: NUMBER };
const FINDING: Asking = { label: "Filters", verb: "Find", role: "search" };

/** A form of such fields: it is sent by Enter, or by a choice. A new value begins at the first page. */
export function filters(app: App, controls: readonly Control[], asking: Asking = FINDING): Child {
  const submit = (event: Event): void => {
    event.preventDefault();
    send(event.target as HTMLFormElement);
  };
  const send = (form: HTMLFormElement): void => {
    // A time that is half filled in would be none, and the filter wider than it looks.
    if (!form.reportValidity()) return;
    const given = new FormData(form);
    const chosen = controls.map(({ name, kind }) => {
      const value = String(given.get(name) ?? "").trim();
      return [name, kind === "time" && value ? `${value.length === 16 ? `${value}:00` : value}Z` : value];
    });
    app.choose({ ...Object.fromEntries(chosen), cursor: null });
  };
  const narrowed = controls.some(({ name }) => app.place.query[name]);
  const clear = (): void => app.choose({ ...Object.fromEntries(controls.map(({ name }) => [name, null])), cursor: null });
  return h(
    "form",
    { class: "filters", key: asking.label, role: asking.role, "aria-label": asking.label, on: { submit } },
    ...controls.map((one) => control(app, one, send, asking.errors?.[one.name])),
    h("button", { type: "submit", key: "send" }, asking.verb),
    narrowed && button("Clear", clear, { key: "clear" }),
  );
}

function control(app: App, one: Control, send: (form: HTMLFormElement) => void, wrong: string | undefined): Child {
  const id = `filter-${one.name}`;
  const value = app.place.query[one.name] ?? "";
  const told = wrong ? { "aria-invalid": "true", "aria-describedby": `${id}-error` } : {};
  const shared = { id, name: one.name, ...told, ...(one.hint ? { title: one.hint, placeholder: one.hint } : {}) };
  const change = (event: Event): void => {
    const { form } = event.target as HTMLSelectElement;
    if (form) send(form);
  };
  const input =
    one.kind === "choice"
      ? h("select", { id, name: one.name, ...told, on: { change } }, ...(one.options ?? []).map(([each, label]) => h("option", { value: each, selected: each === value }, label)))
      : one.kind === "time"
        ? h("input", { ...shared, type: "datetime-local", step: "1", value: value.slice(0, 19) })
        : h("input", { ...shared, ...TYPES[one.kind], value, autocomplete: "off", spellcheck: "false" });
  const error = wrong && h("p", { class: "error", id: `${id}-error` }, wrong);
  return h("div", { class: "field", key: one.name }, h("label", { for: id }, one.label), input, error);
}
