/** The example: what an application's page does with the picker. Here a link's code gives the token. */
import type { DuetickSchedule } from "./picker.js";

const KEPT = "duetick-example";

interface Opened {
  token: string;
  user: string;
}

/** Hand in the code of the link, and keep what it stands for in this tab. */
async function open(): Promise<Opened | null> {
  const code = /^#open=(.+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname);
    const sent = { method: "POST", body: JSON.stringify({ code }) };
    const answer = await fetch("/picker/open", sent);
    if (answer.ok) sessionStorage.setItem(KEPT, await answer.text());
  }
  const kept = sessionStorage.getItem(KEPT);
  return kept ? (JSON.parse(kept) as Opened) : null;
}

const picker = document.querySelector<DuetickSchedule>("duetick-schedule");
const who = document.getElementById("who");
const heard = document.getElementById("heard");
const opened = await open();

if (who)
  who.textContent = opened
    ? `You are signed in as ${opened.user}. The schedule below is yours; it reminds you with a line in the terminal.`
    : "Nobody is signed in: open the link that the local stack printed for this page.";
if (picker && opened) {
  picker.input = { text: "hello from the picker" };
  picker.token = opened.token;
}
for (const what of ["saved", "paused", "resumed", "deleted", "error"])
  picker?.addEventListener(`duetick-${what}`, (event) => {
    const line = document.createElement("li");
    const { detail } = event as CustomEvent<{ error?: Error }>;
    line.textContent = detail.error ? `duetick-error: ${detail.error.message}` : `duetick-${what}`;
    heard?.append(line);
  });
