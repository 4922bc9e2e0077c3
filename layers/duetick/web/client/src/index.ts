/**
 * A client of Duetick's API, with types made from its OpenAPI document.
 *
 *     const duetick = new Duetick({ url, token: () => session.idToken() });
 *     const made = await duetick.put("/api/schedules/{key}", {
 *       path: { key: "weekly" },
 *       body: { cron: "0 9 * * MON", flow: "digests", action: "send_digest" },
 *     });
 *     for await (const one of duetick.pages("/api/schedules")) console.log(one.key);
 */
import type { components, paths } from "./api.js";

export type { components, operations, paths } from "./api.js";

/** The bodies and answers of the API, by name. */
export type Schemas = components["schemas"];

type Method = "get" | "put" | "post" | "patch" | "delete";

/** The paths that have a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, object> ? P : never;
}[keyof paths];

/** One operation of the document. */
export type Operation<M extends Method, P extends PathOf<M>> = paths[P][M & keyof paths[P]];

type Json<C> = C extends { content: { "application/json": infer B } } ? B : undefined;
type Answers<O> = O extends { responses: infer R } ? R : never;

/** The body of an operation's success. */
export type BodyOf<O> = {
  [S in keyof Answers<O> & (200 | 201 | 202 | 204)]: Json<Answers<O>[S]>;
}[keyof Answers<O> & (200 | 201 | 202 | 204)];

type PathNames<O> = O extends { parameters: { path: infer N extends object } }
  ? { path: N }
  : { path?: never };
type Query<O> = O extends { parameters: { query?: infer Q } }
  ? [Q] extends [never | undefined]
    ? { query?: never }
    : { query?: NonNullable<Q> }
  : { query?: never };
type Given<O> = O extends { requestBody: { content: { "application/json": infer B } } }
  ? { body: B }
  : O extends { requestBody?: { content: { "application/json": infer B } } }
    ? { body?: B }
    : { body?: never };
type HeadersOf<O> = O extends { parameters: { header?: infer H } }
  ? [H] extends [never | undefined]
    ? never
    : keyof NonNullable<H>
  : never;
type Header<O, Name extends string, Field extends string> = Name extends HeadersOf<O>
  ? { [F in Field]?: string }
  : { [F in Field]?: never };

/** What one call takes. */
export type Options<O> = PathNames<O> &
  Query<O> &
  Given<O> &
  Header<O, "If-Match", "ifMatch"> &
  Header<O, "If-None-Match", "ifNoneMatch"> &
  Header<O, "Idempotency-Key", "idempotencyKey"> &
  Header<O, "Duetick-Why", "why"> & { signal?: AbortSignal };

type Arguments<O> = Record<never, never> extends Options<O>
  ? [options?: Options<O>]
  : [options: Options<O>];

type Lists<B> = {
  [K in keyof B]-?: B[K] extends readonly (infer One)[] ? One : never;
}[keyof B];
type ListNames<B> = { [K in keyof B]-?: B[K] extends readonly unknown[] ? K : never }[keyof B];
type IsSeveral<T, All = T> = T extends unknown ? ([All] extends [T] ? false : true) : never;

/** The items of a page; never, if an answer is no page. */
export type ItemOf<B> = B extends { cursor: string | null }
  ? IsSeveral<ListNames<B>> extends false
    ? Lists<B>
    : never
  : never;

/** The paths that answer with pages. */
export type PagedPath = {
  [P in PathOf<"get">]: [ItemOf<BodyOf<Operation<"get", P>>>] extends [never] ? never : P;
}[PathOf<"get">];

/** An answer. Pass `etag` as `ifMatch`: a change then fails if somebody else made one meanwhile. */
export interface Reply<B> {
  readonly status: number;
  readonly body: B;
  readonly etag: string | undefined;
  /** It says, for example, that a schedule fires more often than the tick comes. */
  readonly warning: string | undefined;
}

/** A refusal of the API, or a call that nobody answered (`status` 0, `error` "unreachable"). */
export class DuetickError extends Error {
  override readonly name = "DuetickError";

  constructor(
    readonly status: number,
    /** The code: `invalid_schedule`, `version_conflict`, … */
    readonly error: string,
    message: string,
    /** All that is wrong with the call, each with the JSON pointer of its field. */
    readonly problems: readonly Schemas["ProblemView"][] = [],
    /** The seconds after which the same call may do better. */
    readonly retryAfter?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A call as it is sent, for those who sign it. */
export interface Outgoing {
  readonly method: string;
  readonly url: string;
  readonly body: string | undefined;
}

export interface Settings {
  /** The stack's output UsersApiUrl, or ApiUrl for machines and operators. Empty: this page's own. */
  url: string;
  /** The token of the user, or a function that gives one that is valid now. */
  token?: string | (() => string | Promise<string>);
  /** Further headers of each call: a signature, for example. */
  headers?: (call: Outgoing) => Record<string, string> | Promise<Record<string, string>>;
  /** How often a call that may be repeated is sent again. */
  retries?: number;
  /** The longest wait before a repeat, in seconds: if the API asks for more, the call fails. */
  longestWait?: number;
  /** The milliseconds that one attempt may take. */
  timeout?: number;
  fetch?: typeof fetch;
  /** It ends after so many milliseconds. */
  sleep?: (milliseconds: number, signal?: AbortSignal) => Promise<void>;
}

interface AnyOptions {
  path?: object;
  query?: object;
  body?: unknown;
  ifMatch?: string;
  ifNoneMatch?: string;
  idempotencyKey?: string;
  why?: string;
  signal?: AbortSignal;
}

/** The paths whose POST changes nothing. */
const READS_BY_POST = /\/(?:upcoming|forecast)$/;

/** The API of one stack, as one caller. */
export class Duetick {
  readonly #settings: Required<Omit<Settings, "token" | "headers">> &
    Pick<Settings, "token" | "headers">;

  constructor(settings: Settings) {
    this.#settings = {
      retries: 2,
      longestWait: 30,
      timeout: 30_000,
      fetch: (...call) => globalThis.fetch(...call),
      sleep,
      ...settings,
      url: settings.url.replace(/\/+$/, ""),
    };
  }

  get<P extends PathOf<"get">>(
    path: P,
    ...[options]: Arguments<Operation<"get", P>>
  ): Promise<Reply<BodyOf<Operation<"get", P>>>> {
    return this.call("GET", path, options);
  }

  post<P extends PathOf<"post">>(
    path: P,
    ...[options]: Arguments<Operation<"post", P>>
  ): Promise<Reply<BodyOf<Operation<"post", P>>>> {
    return this.call("POST", path, options);
  }

  put<P extends PathOf<"put">>(
    path: P,
    ...[options]: Arguments<Operation<"put", P>>
  ): Promise<Reply<BodyOf<Operation<"put", P>>>> {
    return this.call("PUT", path, options);
  }

  patch<P extends PathOf<"patch">>(
    path: P,
    ...[options]: Arguments<Operation<"patch", P>>
  ): Promise<Reply<BodyOf<Operation<"patch", P>>>> {
    return this.call("PATCH", path, options);
  }

  delete<P extends PathOf<"delete">>(
    path: P,
    ...[options]: Arguments<Operation<"delete", P>>
  ): Promise<Reply<BodyOf<Operation<"delete", P>>>> {
    return this.call("DELETE", path, options);
  }

  /** Yield the items of all pages. A page may be short, or empty, and have a next one. */
  async *pages<P extends PagedPath>(
    path: P,
    ...[options]: Arguments<Operation<"get", P>>
  ): AsyncGenerator<ItemOf<BodyOf<Operation<"get", P>>>, void, undefined> {
    const given: AnyOptions = options ?? {};
    let cursor: string | null = null;
    do {
      const query: object = { ...given.query, ...(cursor === null ? {} : { cursor }) };
      const page: Reply<Record<string, unknown>> = await this.call("GET", path, { ...given, query });
      const items = Object.values(page.body).find(Array.isArray) ?? [];
      yield* items as ItemOf<BodyOf<Operation<"get", P>>>[];
      cursor = (page.body["cursor"] as string | null | undefined) ?? null;
    } while (cursor !== null);
  }

  /** Send any call: `get` and the others know which ones there are. */
  async call<B>(method: string, path: string, options: AnyOptions = {}): Promise<Reply<B>> {
    const url = this.#settings.url + fill(path, options.path) + search(options.query);
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    const outgoing = { method, url, body };
    const mayRepeat = isRepeatable(method, path, options);
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#send<B>(outgoing, options);
      } catch (problem) {
        if (!(problem instanceof DuetickError)) throw problem;
        if (attempt > 0 && method === "DELETE" && problem.status === 404)
          return { status: 204, body: undefined as B, etag: undefined, warning: undefined };
        const again = problem.status === 429 || (mayRepeat && isPassing(problem.status));
        const wait = problem.retryAfter ?? 2 ** attempt * (0.25 + Math.random() / 4);
        if (!again || attempt >= this.#settings.retries || wait > this.#settings.longestWait)
          throw problem;
        await this.#settings.sleep(wait * 1_000, options.signal);
      }
    }
  }

  async #send<B>(outgoing: Outgoing, options: AnyOptions): Promise<Reply<B>> {
    const headers = await this.#headers(outgoing, options);
    const limit = AbortSignal.timeout(this.#settings.timeout);
    const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
    const sent = { method: outgoing.method, headers, signal, ...bodyOf(outgoing) };
    let answer: Response;
    let text: string;
    try {
      answer = await this.#settings.fetch(outgoing.url, sent);
      text = await answer.text();
    } catch (problem) {
      options.signal?.throwIfAborted();
      const said = problem instanceof Error ? problem.message : String(problem);
      throw new DuetickError(0, "unreachable", `Nobody answered (${said}).`, [], undefined, {
        cause: problem,
      });
    }
    if (!answer.ok) throw refusal(answer, text);
    const body = text ? parse(text) : undefined;
    if (body === null)
      throw new DuetickError(answer.status, "unreadable", "What answered is not the API, but something between.");
    return {
      status: answer.status,
      body: body as B,
      etag: answer.headers.get("etag") ?? undefined,
      warning: /"(.*)"/.exec(answer.headers.get("warning") ?? "")?.[1],
    };
  }

  async #headers(outgoing: Outgoing, options: AnyOptions): Promise<Record<string, string>> {
    const { token, headers } = this.#settings;
    const named: Record<string, string | undefined> = {
      "content-type": outgoing.body === undefined ? undefined : "application/json",
      "if-match": options.ifMatch,
      "if-none-match": options.ifNoneMatch,
      "idempotency-key": options.idempotencyKey,
      "duetick-why": options.why && encodeURIComponent(options.why),
      authorization:
        token === undefined
          ? undefined
          : `Bearer ${typeof token === "string" ? token : await token()}`,
    };
    const given = Object.entries(named).filter((one): one is [string, string] => Boolean(one[1]));
    return { ...Object.fromEntries(given), ...(await headers?.(outgoing)) };
  }
}

/** Return a name (a key, a user, an id) as one part of a path, which no gateway rewrites. */
export function toPath(name: string): string {
  if (["", ".", ".."].includes(name))
    throw new RangeError(`${JSON.stringify(name)} is no name: its path would be another route's.`);
  return escape(name).replaceAll("~", "%7E").replaceAll("%", "~");
}

/** Escape a text as signatures do: what has no need stands as it is, the rest is %XX. */
function escape(text: string): string {
  return encodeURIComponent(text).replace(
    /[!*'()]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function fill(path: string, names: object = {}): string {
  const known = names as Readonly<Record<string, string>>;
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = known[name];
    if (value === undefined) throw new RangeError(`The path ${path} needs a ${name}.`);
    return toPath(value);
  });
}

function search(query: object = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const pairs = given.map(([name, value]) => `${escape(name)}=${escape(String(value))}`);
  return given.length ? `?${pairs.join("&")}` : "";
}

function bodyOf(outgoing: Outgoing): { body?: string } {
  return outgoing.body === undefined ? {} : { body: outgoing.body };
}

/** Return true if a call may be sent again though the first one perhaps did its work. */
function isRepeatable(method: string, path: string, options: AnyOptions): boolean {
  if (options.ifMatch !== undefined || options.ifNoneMatch !== undefined) return false;
  if (options.idempotencyKey !== undefined) return true;
  return ["GET", "PUT", "DELETE"].includes(method) || READS_BY_POST.test(path);
}

function isPassing(status: number): boolean {
  return status === 0 || status === 502 || status === 503 || status === 504;
}

function refusal(answer: Response, text: string): DuetickError {
  const told: Partial<Schemas["ErrorView"]> = parse(text) ?? {};
  const wait = Number(answer.headers.get("retry-after") ?? Number.NaN);
  return new DuetickError(
    answer.status,
    typeof told.error === "string" ? told.error : "refused",
    typeof told.message === "string" ? told.message : `It was answered ${answer.status}.`,
    Array.isArray(told.problems) ? told.problems : [],
    Number.isFinite(wait) ? wait : undefined,
  );
}

/** Read an answer; null if it is none of the API's: what stands between may answer with anything. */
function parse(text: string): object | null {
  try {
    const told: unknown = JSON.parse(text);
    return typeof told === "object" && !Array.isArray(told) ? told : null;
  } catch {
    return null;
  }
}

function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
  });
}
