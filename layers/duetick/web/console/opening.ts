/**
 * The way in: a link's code is handed in once for the token of this start. It is a script of its own, which
 * is there long before the console is, so that the token waits for the console and not the other way round.
 */
const KEPT = "duetick-console";

/** The token, or why there is none. */
export type Opened = { readonly token: string } | { readonly why: string };

declare global {
  interface Window {
    duetickOpened?: Promise<Opened>;
  }
}

async function open(): Promise<Opened> {
  const code = /^#open=(.+)$/.exec(location.hash)?.[1];
  let why = "Open the link that Duetick printed, or ask `duetick console` for one.";
  if (code) {
    // The code leaves the address before anything else: nobody bookmarks or shares it.
    history.replaceState(null, "", location.pathname);
    const answer = await fetch("/console/open", { method: "POST", body: JSON.stringify({ code }) });
    const told = (await answer.json()) as { token?: string; message?: string };
    if (told.token) localStorage.setItem(KEPT, told.token);
    else why = told.message ?? why;
  }
  const token = localStorage.getItem(KEPT);
  return token ? { token } : { why };
}

window.duetickOpened = open();
