/** A refusal of the API, or a call that nobody answered (`status` 0, `error` "unreachable"). */
export class DuetickError extends Error {
    status;
    error;
    problems;
    retryAfter;
    name = "DuetickError";
    constructor(status, 
    /** The code: `invalid_schedule`, `version_conflict`, … */
    error, message, 
    /** All that is wrong with the call, each with the JSON pointer of its field. */
    problems = [], 
    /** The seconds after which the same call may do better. */
    retryAfter, options) {
        super(message, options);
        this.status = status;
        this.error = error;
        this.problems = problems;
        this.retryAfter = retryAfter;
    }
}
/** The paths whose POST changes nothing. */
const READS_BY_POST = /\/(?:upcoming|forecast)$/;
/** The API of one stack, as one caller. */
export class Duetick {
    #settings;
    constructor(settings) {
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
    get(path, ...[options]) {
        return this.call("GET", path, options);
    }
    post(path, ...[options]) {
        return this.call("POST", path, options);
    }
    put(path, ...[options]) {
        return this.call("PUT", path, options);
    }
    patch(path, ...[options]) {
        return this.call("PATCH", path, options);
    }
    delete(path, ...[options]) {
        return this.call("DELETE", path, options);
    }
    /** Yield the items of all pages. A page may be short, or empty, and have a next one. */
    async *pages(path, ...[options]) {
        const given = options ?? {};
        let cursor = null;
        do {
            const query = { ...given.query, ...(cursor === null ? {} : { cursor }) };
            const page = await this.call("GET", path, { ...given, query });
            const items = Object.values(page.body).find(Array.isArray) ?? [];
            yield* items;
            cursor = page.body["cursor"] ?? null;
        } while (cursor !== null);
    }
    /** Send any call: `get` and the others know which ones there are. */
    async call(method, path, options = {}) {
        const url = this.#settings.url + fill(path, options.path) + search(options.query);
        const body = options.body === undefined ? undefined : JSON.stringify(options.body);
        const outgoing = { method, url, body };
        const mayRepeat = isRepeatable(method, path, options);
        for (let attempt = 0;; attempt++) {
            try {
                return await this.#send(outgoing, options);
            }
            catch (problem) {
                if (!(problem instanceof DuetickError))
                    throw problem;
                if (attempt > 0 && method === "DELETE" && problem.status === 404)
                    return { status: 204, body: undefined, etag: undefined, warning: undefined };
                const again = problem.status === 429 || (mayRepeat && isPassing(problem.status));
                const wait = problem.retryAfter ?? 2 ** attempt * (0.25 + Math.random() / 4);
                if (!again || attempt >= this.#settings.retries || wait > this.#settings.longestWait)
                    throw problem;
                await this.#settings.sleep(wait * 1_000, options.signal);
            }
        }
    }
    async #send(outgoing, options) {
        const headers = await this.#headers(outgoing, options);
        const limit = AbortSignal.timeout(this.#settings.timeout);
        const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
        const sent = { method: outgoing.method, headers, signal, ...bodyOf(outgoing) };
        let answer;
        let text;
        try {
            answer = await this.#settings.fetch(outgoing.url, sent);
            text = await answer.text();
        }
        catch (problem) {
            options.signal?.throwIfAborted();
            const said = problem instanceof Error ? problem.message : String(problem);
            throw new DuetickError(0, "unreachable", `Nobody answered (${said}).`, [], undefined, {
                cause: problem,
            });
        }
        if (!answer.ok)
            throw refusal(answer, text);
        const body = text ? parse(text) : undefined;
        if (body === null)
            throw new DuetickError(answer.status, "unreadable", "What answered is not the API, but something between.");
        return {
            status: answer.status,
            body: body,
            etag: answer.headers.get("etag") ?? undefined,
            warning: /"(.*)"/.exec(answer.headers.get("warning") ?? "")?.[1],
        };
    }
    async #headers(outgoing, options) {
        const { token, headers } = this.#settings;
        const named = {
            "content-type": outgoing.body === undefined ? undefined : "application/json",
            "if-match": options.ifMatch,
            "if-none-match": options.ifNoneMatch,
            "idempotency-key": options.idempotencyKey,
            "duetick-why": options.why && encodeURIComponent(options.why),
            authorization: token === undefined
                ? undefined
                : `Bearer ${typeof token === "string" ? token : await token()}`,
        };
        const given = Object.entries(named).filter((one) => Boolean(one[1]));
        return { ...Object.fromEntries(given), ...(await headers?.(outgoing)) };
    }
}
/** Return a name (a key, a user, an id) as one part of a path, which no gateway rewrites. */
export function toPath(name) {
    if (["", ".", ".."].includes(name))
        throw new RangeError(`${JSON.stringify(name)} is no name: its path would be another route's.`);
    return escape(name).replaceAll("~", "%7E").replaceAll("%", "~");
}
/** Escape a text as signatures do: what has no need stands as it is, the rest is %XX. */
function escape(text) {
    return encodeURIComponent(text).replace(/[!*'()]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}
function fill(path, names = {}) {
    const known = names;
    return path.replace(/\{(\w+)\}/g, (_, name) => {
        const value = known[name];
        if (value === undefined)
            throw new RangeError(`The path ${path} needs a ${name}.`);
        return toPath(value);
    });
}
function search(query = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
    const pairs = given.map(([name, value]) => `${escape(name)}=${escape(String(value))}`);
    return given.length ? `?${pairs.join("&")}` : "";
}
function bodyOf(outgoing) {
    return outgoing.body === undefined ? {} : { body: outgoing.body };
}
/** Return true if a call may be sent again though the first one perhaps did its work. */
function isRepeatable(method, path, options) {
    if (options.ifMatch !== undefined || options.ifNoneMatch !== undefined)
        return false;
    if (options.idempotencyKey !== undefined)
        return true;
    return ["GET", "PUT", "DELETE"].includes(method) || READS_BY_POST.test(path);
}
function isPassing(status) {
    return status === 0 || status === 502 || status === 503 || status === 504;
}
function refusal(answer, text) {
    const told = parse(text) ?? {};
    const wait = Number(answer.headers.get("retry-after") ?? Number.NaN);
    return new DuetickError(answer.status, typeof told.error === "string" ? told.error : "refused", typeof told.message === "string" ? told.message : `It was answered ${answer.status}.`, Array.isArray(told.problems) ? told.problems : [], Number.isFinite(wait) ? wait : undefined);
}
/** Read an answer; null if it is none of the API's: what stands between may answer with anything. */
function parse(text) {
    try {
        const told = JSON.parse(text);
        return typeof told === "object" && !Array.isArray(told) ? told : null;
    }
    catch {
        return null;
    }
}
function sleep(milliseconds, signal) {
    return new Promise((resolve, reject) => {
        const stop = () => {
            clearTimeout(timer);
            reject(signal?.reason);
        };
        const timer = setTimeout(() => {
            signal?.removeEventListener("abort", stop);
            resolve();
        }, milliseconds);
        signal?.addEventListener("abort", stop, { once: true });
        if (signal?.aborted)
            stop();
    });
}
