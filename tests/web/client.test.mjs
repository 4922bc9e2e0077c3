// The client beside an API that fails, is busy, or is not there: run by node's own test runner.
import assert from "node:assert/strict";
import { test } from "node:test";

const { Duetick, DuetickError, toPath } = await import(process.env.DUETICK_CLIENT);

const WEEKLY = { cron: "@weekly", flow: "f", action: "a" };

/** An API that gives these answers, one after another, and remembers the calls and the waits. */
function api(...answers) {
  const calls = [];
  const waits = [];
  const fetch = async (url, sent) => {
    calls.push({ url, ...sent });
    const [status, body = {}, headers = {}] = answers.shift() ?? assert.fail("one call too many");
    if (status === 0) throw new TypeError("connection reset");
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return new Response(status === 204 ? null : text, { status, headers });
  };
  const sleep = async (milliseconds) => void waits.push(milliseconds);
  return { calls, waits, duetick: new Duetick({ url: "https://api/v1/", token: "t", fetch, sleep }) };
}

test("a busy API is asked again when it says", async () => {
  const { calls, waits, duetick } = api([429, {}, { "retry-after": "7" }], [201, { key: "k" }]);
  const made = await duetick.post("/api/schedules", { body: WEEKLY });
  assert.deepEqual([made.body.key, waits, calls.length], ["k", [7_000], 2]);
});

test("a wait that is too long is the caller's to decide", async () => {
  const { waits, duetick } = api([429, { error: "limit_reached", message: "Later." }, { "retry-after": "60" }]);
  const problem = await duetick.get("/api/schedules").catch((one) => one);
  assert.deepEqual([problem.error, problem.message, problem.retryAfter, waits], ["limit_reached", "Later.", 60, []]);
});

test("what may have been done is not sent twice", async () => {
  for (const status of [0, 503, 504]) {
    const { calls, duetick } = api([status]);
    await assert.rejects(duetick.post("/api/schedules", { body: WEEKLY }), DuetickError);
    assert.equal(calls.length, 1);
  }
});

test("a key of idempotency makes a call repeatable, and is sent with each", async () => {
  const { calls, duetick } = api([0], [503], [201, { key: "k" }]);
  await duetick.post("/api/schedules", { body: WEEKLY, idempotencyKey: "order-7" });
  assert.deepEqual(calls.map((one) => one.headers["idempotency-key"]), ["order-7", "order-7", "order-7"]);
});

test("a read, a put and a preview are repeated, a conditional put is not", async () => {
  const read = api([503], [200, { schedules: [], cursor: null }]);
  await read.duetick.get("/api/schedules");
  const put = api([0], [200, { key: "k" }]);
  await put.duetick.put("/api/schedules/{key}", { path: { key: "k" }, body: WEEKLY });
  const preview = api([502], [200, { words: "" }]);
  await preview.duetick.post("/api/upcoming", { body: { cron: "@daily" } });
  const conditional = api([503]);
  const once = conditional.duetick.put("/api/schedules/{key}", { path: { key: "k" }, body: WEEKLY, ifMatch: "1" });
  await assert.rejects(once, { status: 503 });
});

test("a delete whose answer was lost is done, though the repeat finds nothing", async () => {
  const { duetick } = api([0], [404, { error: "schedule_not_found", message: "" }]);
  assert.equal((await duetick.delete("/api/schedules/{key}", { path: { key: "k" } })).status, 204);
  const never = api([404, { error: "schedule_not_found", message: "" }]);
  await assert.rejects(never.duetick.delete("/api/schedules/{key}", { path: { key: "k" } }), { status: 404 });
});

test("nobody waits for ever", async () => {
  const { calls, waits, duetick } = api([503], [503], [503]);
  await assert.rejects(duetick.get("/api/actions"), { status: 503, error: "refused" });
  assert.equal(calls.length, 3);
  assert.ok(waits[0] >= 250 && waits[0] < 500 && waits[1] >= 500 && waits[1] < 1_000, String(waits));
});

test("pages follow the cursor over short and empty pages", async () => {
  const { calls, duetick } = api(
    [200, { schedules: [{ key: "a" }], cursor: "x y" }],
    [200, { schedules: [], cursor: "z" }],
    [200, { schedules: [{ key: "b" }], cursor: null }],
  );
  const keys = [];
  for await (const one of duetick.pages("/api/schedules", { query: { limit: 1, flow: "f" } })) keys.push(one.key);
  assert.deepEqual(keys, ["a", "b"]);
  assert.deepEqual(calls.map((one) => one.url.split("?")[1]), [
    "limit=1&flow=f", "limit=1&flow=f&cursor=x%20y", "limit=1&flow=f&cursor=z",
  ]);
});

test("a name of any characters is one part of the path", async () => {
  const { calls, duetick } = api([200, {}]);
  await duetick.get("/api/users/{user}/schedules/{key}", { path: { user: "ann@x.org", key: "a/b~ü%2F 'x'(!)*" } });
  assert.equal(calls[0].url, "https://api/v1/api/users/ann~40x.org/schedules/a~2Fb~7E~C3~BC~252F~20~27x~27~28~21~29~2A");
  for (const name of ["", ".", ".."]) assert.throws(() => toPath(name), RangeError);
  assert.throws(() => toPath("\ud800"), URIError);
});

test("an error is one of ours, whatever stands between answers", async () => {
  for (const [body, error, message] of [
    [{ error: "invalid_schedule", message: "No.", problems: [{ field: "/cron", code: "invalid_cron", message: "No." }] }, "invalid_schedule", "No."],
    [{ message: "Unauthorized" }, "refused", "Unauthorized"],
    ["<html>", "refused", "It was answered 400."],
    ["null", "refused", "It was answered 400."],
  ]) {
    const { duetick } = api([400, body]);
    const problem = await duetick.get("/api/actions").catch((one) => one);
    assert.ok(problem instanceof DuetickError);
    assert.deepEqual([problem.status, problem.error, problem.message], [400, error, message]);
  }
});

test("a success that is not the API's is an error of ours", async () => {
  for (const body of ["<html>Sign in</html>", '{"schedules": [', "[]", "null", "5"]) {
    const { calls, duetick } = api([200, body]);
    const problem = await duetick.get("/api/schedules").catch((one) => one);
    assert.ok(problem instanceof DuetickError);
    assert.deepEqual([problem.status, problem.error, calls.length], [200, "unreadable", 1]);
  }
});

test("an abort is the caller's own, and ends a wait too", async () => {
  const stopped = new AbortController();
  stopped.abort(new Error("typed on"));
  const { duetick } = api([0]);
  await assert.rejects(duetick.get("/api/actions", { signal: stopped.signal }), /typed on/);
  const waiting = new AbortController();
  const fetch = async () => new Response("{}", { status: 429, headers: { "retry-after": "20" } });
  const slow = new Duetick({ url: "https://api", fetch });
  const asked = slow.get("/api/actions", { signal: waiting.signal });
  setTimeout(() => waiting.abort(new Error("closed")), 5);
  await assert.rejects(asked, /closed/);
});

test("a token is asked for at each call, and a signature sees what is sent", async () => {
  let asked = 0;
  const signed = [];
  const fetch = async () => new Response("{}");
  const headers = (call) => (signed.push(call), { authorization: `AWS4 ${signed.length}` });
  const duetick = new Duetick({ url: "https://api", token: () => `t${asked++}`, headers, fetch });
  await duetick.get("/api/overview");
  await duetick.put("/api/pauses/{scope}", { path: { scope: "user:ann" }, body: {}, why: "asked for: ü" });
  assert.equal(asked, 2);
  assert.deepEqual(signed[1], { method: "PUT", url: "https://api/api/pauses/user~3Aann", body: "{}" });
});
