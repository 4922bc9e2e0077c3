/** The way in: a link's code is handed in once for the token of this start, which goes with each call. */
import { Duetick } from "../client/src/index.js";

const KEPT = "duetick-console";

export type Api = Duetick;

/** Return the API with the token of this start, or why there is none. */
export async function open(): Promise<Api | string> {
  const code = /^#open=(.+)$/.exec(location.hash)?.[1];
  let refused = "";
  if (code) {
    // The code leaves the address before anything else: nobody bookmarks or shares it.
    history.replaceState(null, "", location.pathname);
    const answer = await fetch("/console/open", { method: "POST", body: JSON.stringify({ code }) });
    const told = (await answer.json()) as { token?: string; message?: string };
    if (told.token) localStorage.setItem(KEPT, told.token);
    else refused = told.message ?? "";
  }
  const token = localStorage.getItem(KEPT);
  if (!token) return refused || "Open the link that Duetick printed, or ask `duetick console` for one.";
  return new Duetick({ url: "/console", retries: 1, headers: () => ({ "duetick-console": token }) });
}
