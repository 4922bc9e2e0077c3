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
type Json<C> = C extends {
    content: {
        "application/json": infer B;
    };
} ? B : undefined;
type Answers<O> = O extends {
    responses: infer R;
} ? R : never;
/** The body of an operation's success. */
export type BodyOf<O> = {
    [S in keyof Answers<O> & (200 | 201 | 202 | 204)]: Json<Answers<O>[S]>;
}[keyof Answers<O> & (200 | 201 | 202 | 204)];
type PathNames<O> = O extends {
    parameters: {
        path: infer N extends object;
    };
} ? {
    path: N;
} : {
    path?: never;
};
type Query<O> = O extends {
    parameters: {
        query?: infer Q;
    };
} ? [Q] extends [never | undefined] ? {
    query?: never;
} : {
    query?: NonNullable<Q>;
} : {
    query?: never;
};
type Given<O> = O extends {
    requestBody: {
        content: {
            "application/json": infer B;
        };
    };
} ? {
    body: B;
} : O extends {
    requestBody?: {
        content: {
            "application/json": infer B;
        };
    };
} ? {
    body?: B;
} : {
    body?: never;
};
type HeadersOf<O> = O extends {
    parameters: {
        header?: infer H;
    };
} ? [H] extends [never | undefined] ? never : keyof NonNullable<H> : never;
type Header<O, Name extends string, Field extends string> = Name extends HeadersOf<O> ? {
    [F in Field]?: string;
} : {
    [F in Field]?: never;
};
/** What one call takes. */
export type Options<O> = PathNames<O> & Query<O> & Given<O> & Header<O, "If-Match", "ifMatch"> & Header<O, "If-None-Match", "ifNoneMatch"> & Header<O, "Idempotency-Key", "idempotencyKey"> & Header<O, "Duetick-Why", "why"> & {
    signal?: AbortSignal;
};
type Arguments<O> = Record<never, never> extends Options<O> ? [options?: Options<O>] : [options: Options<O>];
type Lists<B> = {
    [K in keyof B]-?: B[K] extends readonly (infer One)[] ? One : never;
}[keyof B];
type ListNames<B> = {
    [K in keyof B]-?: B[K] extends readonly unknown[] ? K : never;
}[keyof B];
type IsSeveral<T, All = T> = T extends unknown ? ([All] extends [T] ? false : true) : never;
/** The items of a page; never, if an answer is no page. */
export type ItemOf<B> = B extends {
    cursor: string | null;
} ? IsSeveral<ListNames<B>> extends false ? Lists<B> : never : never;
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
export declare class DuetickError extends Error {
    readonly status: number;
    /** The code: `invalid_schedule`, `version_conflict`, … */
    readonly error: string;
    /** All that is wrong with the call, each with the JSON pointer of its field. */
    readonly problems: readonly Schemas["ProblemView"][];
    /** The seconds after which the same call may do better. */
    readonly retryAfter?: number | undefined;
    readonly name = "DuetickError";
    constructor(status: number, 
    /** The code: `invalid_schedule`, `version_conflict`, … */
    error: string, message: string, 
    /** All that is wrong with the call, each with the JSON pointer of its field. */
    problems?: readonly Schemas["ProblemView"][], 
    /** The seconds after which the same call may do better. */
    retryAfter?: number | undefined, options?: ErrorOptions);
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
/** The API of one stack, as one caller. */
export declare class Duetick {
    #private;
    constructor(settings: Settings);
    get<P extends PathOf<"get">>(path: P, ...[options]: Arguments<Operation<"get", P>>): Promise<Reply<BodyOf<Operation<"get", P>>>>;
    post<P extends PathOf<"post">>(path: P, ...[options]: Arguments<Operation<"post", P>>): Promise<Reply<BodyOf<Operation<"post", P>>>>;
    put<P extends PathOf<"put">>(path: P, ...[options]: Arguments<Operation<"put", P>>): Promise<Reply<BodyOf<Operation<"put", P>>>>;
    patch<P extends PathOf<"patch">>(path: P, ...[options]: Arguments<Operation<"patch", P>>): Promise<Reply<BodyOf<Operation<"patch", P>>>>;
    delete<P extends PathOf<"delete">>(path: P, ...[options]: Arguments<Operation<"delete", P>>): Promise<Reply<BodyOf<Operation<"delete", P>>>>;
    /** Yield the items of all pages. A page may be short, or empty, and have a next one. */
    pages<P extends PagedPath>(path: P, ...[options]: Arguments<Operation<"get", P>>): AsyncGenerator<ItemOf<BodyOf<Operation<"get", P>>>, void, undefined>;
    /** Send any call: `get` and the others know which ones there are. */
    call<B>(method: string, path: string, options?: AnyOptions): Promise<Reply<B>>;
}
/** Return a name (a key, a user, an id) as one part of a path, which no gateway rewrites. */
export declare function toPath(name: string): string;
