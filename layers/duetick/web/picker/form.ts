/** The form of the picker: what it shows, as elements. */
import { type Child, h } from "../view/view.js";
import { DAYS, type Draft, type Field, KINDS, type Kind } from "./expressions.js";
import { fill } from "./labels.js";
import type { Acts, Shown } from "./picker.js";
import { search } from "./zones.js";

type Said = Shown["errors"];

export function form(shown: Shown, acts: Acts): Child {
  const { labels, errors } = shown;
  const submit = (event: Event): void => {
    event.preventDefault();
    acts.save();
  };
  return h(
    "form",
    { part: "form", novalidate: true, "aria-label": labels.title, "aria-busy": String(shown.busy), on: { submit } },
    standing(shown, acts),
    h("div", { class: "row" }, kinds(shown, acts), ...times(shown, acts)),
    zone(shown, acts),
    preview(shown, acts),
    errors.form && h("p", { class: "error", role: "alert" }, errors.form),
    h("div", { class: "buttons", part: "buttons" }, ...buttons(shown, acts)),
    h("p", { class: "said", role: "status" }, shown.said),
    shown.asksToDelete && confirmation(shown, acts),
    history(shown, acts),
  );
}

/** Say that it is paused, held or done. */
function standing({ schedule, labels }: Shown, acts: Acts): Child {
  if (!schedule) return null;
  const until = schedule.paused?.until;
  const said = schedule.paused
    ? until
      ? fill(labels.pausedUntil, { until: acts.moment(until) })
      : labels.paused
    : schedule.heldBy
      ? labels.held
      : schedule.state === "done"
        ? labels.done
        : null;
  return said && h("p", { class: "standing", part: "standing" }, said);
}

function kinds({ draft, labels }: Shown, acts: Acts): Child {
  const choose = (event: Event): void =>
    acts.edit({ kind: (event.target as HTMLSelectElement).value as Kind });
  const options = KINDS.map((kind) =>
    h("option", { value: kind, selected: kind === draft.kind }, labels.kinds[kind]),
  );
  return field("kind", labels.repeats, {}, (more) =>
    h("select", { ...more, on: { change: choose } }, ...options),
  );
}

/** The fields of a kind. Each is rebuilt with its kind, so that none keeps another's value. */
function times({ draft, labels, errors }: Shown, acts: Acts): Child[] {
  const edit = (name: keyof Draft) => (event: Event) =>
    acts.edit({ [name]: (event.target as HTMLInputElement).value });
  const time = (): Child =>
    field("time", labels.time, errors, (more) =>
      h("input", { ...more, type: "time", value: draft.time, required: true, on: { input: edit("time") } }),
    );
  switch (draft.kind) {
    case "interval":
      return [interval(draft, labels, errors, acts)];
    case "daily":
      return [time()];
    case "weekly":
      return [days(draft, labels, errors, acts), time()];
    case "monthly":
      return [dates(draft, labels, errors, edit("date")), time()];
    case "once":
      return [
        field("once", labels.once, errors, (more) =>
          h("input", { ...more, type: "datetime-local", value: draft.once, required: true, on: { input: edit("once") } }),
        ),
      ];
    case "expression":
      return [
        field("expression", labels.expression, errors, (more) =>
          h("input", {
            ...more,
            type: "text",
            value: draft.expression,
            spellcheck: "false",
            autocomplete: "off",
            autocapitalize: "off",
            required: true,
            on: { input: edit("expression") },
          }), labels.expressionHint),
      ];
  }
}

function interval(draft: Draft, labels: Shown["labels"], errors: Said, acts: Acts): Child {
  const units = (["minutes", "hours"] as const).map((unit) =>
    h("option", { value: unit, selected: unit === draft.unit }, labels[unit]),
  );
  const count = (event: Event): void => acts.edit({ every: (event.target as HTMLInputElement).value });
  const unit = (event: Event): void =>
    acts.edit({ unit: (event.target as HTMLSelectElement).value as Draft["unit"] });
  return field("every", labels.every, errors, (more) =>
    h(
      "span",
      { class: "pair" },
      h("input", { ...more, type: "number", min: "1", step: "1", inputmode: "numeric", value: draft.every, on: { input: count } }),
      h("select", { "aria-label": labels.unit, on: { change: unit } }, ...units),
    ),
  );
}

function days(draft: Draft, labels: Shown["labels"], errors: Said, acts: Acts): Child {
  const toggle = (day: (typeof DAYS)[number]) => (): void => {
    const has = draft.days.includes(day);
    acts.edit({ days: DAYS.filter((one) => (one === day ? !has : draft.days.includes(one))) });
  };
  const boxes = DAYS.map((day) =>
    h(
      "label",
      { class: "day", key: day },
      h("input", {
        type: "checkbox",
        checked: draft.days.includes(day),
        ...(errors.days ? { "aria-invalid": "true", "aria-describedby": "days-error" } : {}),
        on: { change: toggle(day) },
      }),
      h("span", null, labels.dayNames[day]),
    ),
  );
  return h(
    "fieldset",
    { class: "field days", key: "days" },
    h("legend", null, labels.days),
    h("span", { class: "boxes" }, ...boxes),
    error("days", errors),
  );
}

function dates(draft: Draft, labels: Shown["labels"], errors: Said, choose: (event: Event) => void): Child {
  const known = [...Array.from({ length: 31 }, (_, day) => String(day + 1)), "L"];
  const options = known.map((one) =>
    h("option", { value: one, selected: one === draft.date }, one === "L" ? labels.lastDay : one),
  );
  return field("date", labels.date, errors, (more) =>
    h("select", { ...more, on: { change: choose } }, ...options),
  );
}

/** A combobox over the zones, as the ARIA practices describe one with a list. */
function zone(shown: Shown, acts: Acts): Child {
  const { labels, errors, sought } = shown;
  const found = sought ? search(sought.text) : [];
  const active = sought ? Math.min(sought.active, found.length - 1) : -1;
  const type = (event: Event): void =>
    acts.seekZone({ text: (event.target as HTMLInputElement).value, active: 0 });
  const leave = (): void => acts.seekZone(null);
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      acts.seekZone({ text: sought?.text ?? "", active: (active + step + found.length) % found.length });
    } else if (step) {
      event.preventDefault();
      acts.seekZone({ text: "", active: 0 });
    } else if (event.key === "Enter" && sought && found[active]) {
      event.preventDefault();
      acts.chooseZone(found[active]);
    } else if (event.key === "Escape" && sought) {
      event.preventDefault();
      leave();
    }
  };
  return field(
    "timezone",
    labels.timezone,
    errors,
    (more) => [
      h("input", {
        ...more,
        type: "text",
        role: "combobox",
        value: sought ? sought.text : shown.timezone,
        placeholder: labels.timezoneHint,
        autocomplete: "off",
        spellcheck: "false",
        "aria-autocomplete": "list",
        "aria-expanded": String(Boolean(sought && found.length)),
        "aria-controls": "zones",
        ...(active >= 0 ? { "aria-activedescendant": `zone-${active}` } : {}),
        on: {
          input: type,
          keydown: press,
          blur: leave,
          click: () => sought || acts.seekZone({ text: "", active: 0 }),
        },
      }),
      h(
        "ul",
        { id: "zones", role: "listbox", "aria-label": labels.timezones, hidden: !found.length },
        ...found.map((one, place) =>
          h(
            "li",
            {
              id: `zone-${place}`,
              role: "option",
              "aria-selected": String(place === active),
              // The pointer must not take the focus from the field: that would close the list.
              on: { pointerdown: (event) => event.preventDefault(), click: () => acts.chooseZone(one) },
            },
            one.replaceAll("_", " "),
          ),
        ),
      ),
      sought && !found.length && h("p", { class: "hint" }, labels.noTimezone),
    ],
  );
}

function preview(shown: Shown, acts: Acts): Child {
  const { labels, preview: found, looking } = shown;
  const fires = (found?.upcoming ?? []).map((one) =>
    h(
      "li",
      { key: one.utc },
      h("time", { datetime: one.utc }, acts.format(one.local)),
      one.clock && h("small", { class: "clock" }, one.clock),
    ),
  );
  return h(
    "section",
    { class: "preview", part: "preview", "aria-label": labels.preview, "aria-live": "polite", "aria-busy": String(looking) },
    found
      ? [
          h("p", { class: "words", part: "words" }, found.words),
          ...found.warnings.map((one) => h("p", { class: "warning" }, one)),
          fires.length
            ? [h("p", { class: "hint" }, labels.next), h("ol", null, ...fires)]
            : h("p", { class: "hint" }, labels.never),
        ]
      : looking && h("p", { class: "hint" }, labels.looking),
  );
}

function buttons({ schedule, labels, history: lines, busy }: Shown, acts: Acts): Child[] {
  const disabled = { "aria-disabled": String(busy) };
  const plain = (label: string, click: () => void, more: object = {}): Child =>
    h("button", { type: "button", key: label, ...disabled, ...more, on: { click } }, label);
  const rest = schedule
    ? [
        schedule.paused ? plain(labels.resume, acts.resume) : plain(labels.pause, acts.pause),
        plain(labels.history, acts.toggleHistory, { "aria-expanded": String(lines !== null) }),
        plain(labels.delete, () => acts.askToDelete(true), { class: "danger" }),
      ]
    : [];
  return [h("button", { type: "submit", class: "primary", key: "save", ...disabled }, labels.save), ...rest];
}

function confirmation({ labels }: Shown, acts: Acts): Child {
  return h(
    "div",
    { class: "confirm", role: "group", "aria-label": labels.confirmDelete },
    h("p", null, labels.confirmDelete),
    h("button", { type: "button", class: "danger", on: { click: acts.remove } }, labels.confirm),
    h(
      "button",
      { type: "button", on: { click: () => acts.askToDelete(false) }, made: (one) => one.focus() },
      labels.cancel,
    ),
  );
}

function history({ history: lines, labels }: Shown, acts: Acts): Child {
  if (!lines) return null;
  if (!lines.length) return h("p", { class: "hint" }, labels.noHistory);
  const items = lines.map((one) => {
    const until = one.until ? acts.moment(one.until) : "";
    const said = [labels.states[one.state], one.until && fill(labels.range, { count: String(one.count), until })];
    return h(
      "li",
      { key: one.id },
      h("time", { datetime: one.nominalFireTime }, acts.moment(one.nominalFireTime)),
      h("span", { class: `state ${one.state}` }, said.filter(Boolean).join(", ")),
      one.error && h("small", { class: "why" }, one.error),
    );
  });
  return h("ol", { class: "history", part: "history", "aria-label": labels.history }, ...items);
}

type At = Field | "timezone" | "kind";

/** A field with its label, its hint, and beside it what is wrong with it. */
function field(name: At, label: string, errors: Said, make: (more: object) => Child, hint?: string): Child {
  const wrong = name === "kind" ? undefined : errors[name];
  const described = [hint && `${name}-hint`, wrong && `${name}-error`].filter(Boolean).join(" ");
  const more = {
    id: name,
    ...(described ? { "aria-describedby": described } : {}),
    ...(wrong ? { "aria-invalid": "true" } : {}),
  };
  return h(
    "div",
    { class: `field ${name}`, key: name },
    h("label", { for: name }, label),
    make(more),
    hint && h("small", { class: "hint", id: `${name}-hint` }, hint),
    error(name, errors),
  );
}

function error(name: At, errors: Said): Child {
  const wrong = name === "kind" ? undefined : errors[name];
  return wrong && h("p", { class: "error", id: `${name}-error` }, wrong);
}

