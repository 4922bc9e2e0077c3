/** The time zones that a browser knows, found by what somebody types. */

export const ZONES: readonly string[] = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((one) => one !== "UTC")];

export const MOST_SHOWN = 8;

/** The zone of this browser; UTC if it tells none. */
export function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** Return the zones whose names have all words of a text; those whose city begins with it first. */
export function search(text: string): string[] {
  const words = plain(text).split(" ").filter(Boolean);
  const found = ZONES.filter((zone) => words.every((word) => plain(zone).includes(word)));
  const first = words[0] ?? "";
  const rank = (zone: string): number => (plain(zone.split("/").at(-1) ?? "").startsWith(first) ? 0 : 1);
  return found.sort((a, b) => rank(a) - rank(b)).slice(0, MOST_SHOWN);
}

/** Return a text without case, accents, and what joins words. */
function plain(text: string): string {
  return text
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[_/-]+/g, " ")
    .trim();
}
