/** Where the reader is: all of it stands behind the `#`, so that an address can be shared. */

export interface Place {
  readonly page: string;
  readonly names: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

export type Query = Readonly<Record<string, string | null | undefined>>;

/** Read an address. One that cannot be decoded names nothing. */
export function read(hash: string): Place {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  try {
    const [page = "", ...names] = path.split("/").map(decodeURIComponent);
    return { page, names, query: Object.fromEntries(new URLSearchParams(search)) };
  } catch {
    return { page: "", names: [], query: {} };
  }
}

/** Write an address. Names may hold anything. */
export function link(page: string, names: readonly string[] = [], query: Query = {}): string {
  const given = Object.entries(query).filter((one): one is [string, string] => Boolean(one[1]));
  const search = new URLSearchParams(given).toString();
  const path = [page, ...names].map(encodeURIComponent).join("/");
  return `#/${path}${search ? `?${search}` : ""}`;
}

/** Go to an address; in place of this one, if going back shall not lead here. */
export function go(to: string, instead = false): void {
  if (instead) location.replace(to);
  else location.assign(to);
}

/** The address of a schedule. A static one has no user, and is named by its flow and its name. */
export function ofSchedule(user: string, key: string, query: Query = {}): string {
  return link("schedule", [user, key], query);
}
