/** The look of the picker. An application sets the variables; without any it follows light and dark. */

const CSS = `
:host {
  --accent: var(--duetick-accent, light-dark(#0b57d0, #a8c7fa));
  --on-accent: var(--duetick-on-accent, light-dark(#ffffff, #062e6f));
  --text: var(--duetick-text, light-dark(#1b1c1f, #e6e7ea));
  --muted: var(--duetick-muted, light-dark(#55585f, #b3b7c0));
  --line: var(--duetick-line, light-dark(#80848c, #7c818b));
  --surface: var(--duetick-surface, light-dark(#ffffff, #17181b));
  --raised: var(--duetick-raised, light-dark(#f2f4f8, #23262b));
  --danger: var(--duetick-danger, light-dark(#b3261e, #f2b8b5));
  --warning: var(--duetick-warning, light-dark(#7a4b00, #f3c56b));
  --radius: var(--duetick-radius, 8px);
  display: block;
  color-scheme: light dark;
  color: var(--text);
  background: var(--surface);
  font: var(--duetick-font, 16px/1.45 system-ui, sans-serif);
}
:host([theme="light"]) { color-scheme: light; }
:host([theme="dark"]) { color-scheme: dark; }
:host([hidden]) { display: none; }
* { box-sizing: border-box; }
form { display: grid; gap: 16px; max-width: 560px; }
.row { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
.field { display: grid; gap: 4px; min-width: 0; position: relative; align-content: start; }
.expression, .timezone { flex: 1 1 240px; }
fieldset { border: 0; padding: 0; margin: 0; }
label, legend { font-weight: 600; font-size: .9em; padding: 0; }
input, select, button {
  font: inherit; color: inherit; background: var(--surface);
  border: 1px solid var(--line); border-radius: var(--radius); padding: 7px 10px; min-height: 40px;
}
input[type="number"] { width: 6em; }
.pair { display: flex; gap: 8px; }
.boxes { display: flex; flex-wrap: wrap; gap: 6px; }
.day { position: relative; font-weight: 400; font-size: 1em; }
.day input { position: absolute; inset: 0; opacity: 0; min-height: 0; cursor: pointer; width: 100%; height: 100%; margin: 0; }
.day span { display: block; padding: 7px 10px; min-height: 40px; border: 1px solid var(--line); border-radius: var(--radius); }
.day input:checked + span { background: var(--accent); color: var(--on-accent); border-color: var(--accent); }
:focus-visible, .day input:focus-visible + span { outline: 3px solid var(--accent); outline-offset: 2px; }
[aria-invalid="true"] { border-color: var(--danger); border-width: 2px; }
.error { margin: 0; color: var(--danger); font-size: .9em; }
.hint, small { margin: 0; color: var(--muted); font-size: .875em; }
.warning { margin: 0 0 6px; color: var(--warning); }
.warning::before { content: "⚠ "; }
.preview { background: var(--raised); border-radius: var(--radius); padding: 12px 14px; min-height: 11em; }
.preview p { margin: 0 0 6px; }
.words { font-weight: 600; }
.preview ol { margin: 0; padding-left: 1.4em; }
.clock { display: block; }
.buttons, .confirm { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
button { cursor: pointer; }
button[aria-disabled="true"] { cursor: progress; }
.primary { background: var(--accent); color: var(--on-accent); border-color: var(--accent); }
.danger { color: var(--danger); border-color: var(--danger); }
.confirm { border: 1px solid var(--danger); border-radius: var(--radius); padding: 12px; }
.confirm p { margin: 0; flex: 1 1 100%; }
.standing { margin: 0; padding: 8px 12px; border-left: 4px solid var(--warning); background: var(--raised); }
.said { margin: 0; min-height: 1.45em; color: var(--muted); }
[role="listbox"] {
  position: absolute; z-index: 1; top: 100%; left: 0; right: 0; margin: 2px 0 0; padding: 4px;
  list-style: none; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius);
}
[role="listbox"][hidden] { display: none; }
[role="option"] { padding: 8px 10px; border-radius: calc(var(--radius) / 2); cursor: pointer; }
[role="option"][aria-selected="true"] { background: var(--accent); color: var(--on-accent); }
.history { margin: 0; padding-left: 1.4em; display: grid; gap: 6px; }
.history li > * { display: block; }
.state.dead, .why { color: var(--danger); }
@media (max-width: 420px) { .row { display: grid; } .buttons button { flex: 1 1 40%; } }
`;

let made: CSSStyleSheet | null = null;

/** The sheet that all pickers of a page share. It needs no permission of a content security policy. */
export function styles(): CSSStyleSheet {
  if (!made) {
    made = new CSSStyleSheet();
    made.replaceSync(CSS.replace(/\s*\n\s*/g, " "));
  }
  return made;
}
