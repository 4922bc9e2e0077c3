/** The API, with the token of this start on each call. */
import { Duetick } from "../client/src/index.js";
import type {} from "./opening.js";

export type Api = Duetick;

/** Return the API; or why there is no token for it. */
export async function open(): Promise<Api | string> {
  const opened = (await window.duetickOpened) ?? { why: "The console was not opened: load the page again." };
  if ("why" in opened) return opened.why;
  const proof = { "duetick-console": opened.token };
  return new Duetick({ url: "/console", retries: 1, headers: () => proof });
}
