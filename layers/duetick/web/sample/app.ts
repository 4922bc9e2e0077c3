/** What an application writes: compiled with strict settings, and run against the local stack. */
import { Duetick, DuetickError, type Schemas } from "duetick";

declare const process: { env: Record<string, string | undefined> };
declare const console: { log(...said: unknown[]): void };

const duetick = new Duetick({
  url: process.env["DUETICK_URL"] ?? "http://127.0.0.1:8080",
  token: () => process.env["DUETICK_TOKEN"] ?? "",
});

/** Only what has no default has to be said. */
const weekly: Schemas["ScheduleBody"] = {
  cron: "0 9 * * MON",
  flow: "reminders",
  action: "remind",
  input: { text: "hello" },
};

const put = await duetick.put("/api/schedules/{key}", { path: { key: "a/b ~ ü" }, body: weekly });
const next: string | null = put.body.nextFireAt;

const planned = await duetick.put("/api/schedules/{key}", {
  path: { key: "planned" },
  query: { dryRun: true },
  body: { ...weekly, timezone: "Europe/Berlin", policies: { overlap: "wait", retry: { attempts: 3 } } },
});
const dry: boolean | undefined = planned.body.dryRun;

const created = await duetick.post("/api/schedules", {
  body: { ...weekly, labels: { team: "garden" } },
  idempotencyKey: "order-7",
});
const again = await duetick.post("/api/schedules", {
  body: { ...weekly, labels: { team: "garden" } },
  idempotencyKey: "order-7",
});

const keys: string[] = [];
for await (const one of duetick.pages("/api/schedules", { query: { limit: 1 } })) keys.push(one.key);

/** Each state and each reason has a text, or this does not compile. */
const SAID: Record<Schemas["ShownState"], string> = {
  scheduled: "is planned",
  queued: "is handed on",
  processing: "runs",
  retrying: "is tried again",
  succeeded: "is done",
  dead: "has failed",
  cancelled: "was not run",
  deleted: "is gone",
};
const history: string[] = [];
for await (const one of duetick.pages("/api/schedules/{key}/history", { path: { key: "a/b ~ ü" } }))
  history.push(`${one.nominalFireTime} ${SAID[one.state]} ${one.reason ?? ""}`);

/** Errors of every kind have a code and a text. */
const refused: { error: string; fields: string[] }[] = [];
for (const cron of ["75 * * * *", "0 0 31 2 *"]) {
  try {
    await duetick.post("/api/schedules", { body: { ...weekly, cron } });
  } catch (problem) {
    if (!(problem instanceof DuetickError)) throw problem;
    refused.push({ error: problem.error, fields: problem.problems.map((one) => one.field) });
  }
}
const changed = await duetick.patch("/api/schedules/{key}", {
  path: { key: "a/b ~ ü" },
  body: { timezone: "Asia/Tokyo" },
  ...(put.etag === undefined ? {} : { ifMatch: put.etag }),
});
let conflict = "";
try {
  await duetick.delete("/api/schedules/{key}", { path: { key: "a/b ~ ü" }, ifMatch: put.etag ?? "" });
} catch (problem) {
  conflict = problem instanceof DuetickError ? problem.error : "";
}
const preview = await duetick.post("/api/upcoming", { body: { cron: "30 2 * * *", limit: 2 } });
await duetick.delete("/api/schedules/{key}", { path: { key: created.body.key } });

console.log(
  JSON.stringify({
    next,
    dry,
    same: created.body.key === again.body.key,
    keys,
    history,
    refused,
    timezone: changed.body.timezone,
    conflict,
    words: preview.body.words,
  }),
);
