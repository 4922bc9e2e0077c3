/** Mistakes that must not compile. An expectation that no error meets is an error itself. */
import { Duetick, type Schemas } from "duetick";

const duetick = new Duetick({ url: "http://127.0.0.1:8080", token: "…" });

// @ts-expect-error There is no such path.
await duetick.get("/api/schedule");
// @ts-expect-error That path has no PUT.
await duetick.put("/api/schedules", { body: { cron: "@daily", flow: "f", action: "a" } });
// @ts-expect-error The path names a key.
await duetick.get("/api/schedules/{key}");
// @ts-expect-error A key is a text.
await duetick.get("/api/schedules/{key}", { path: { key: 7 } });
// @ts-expect-error The action is missing.
await duetick.post("/api/schedules", { body: { cron: "@daily", flow: "f" } });
// @ts-expect-error The body is missing.
await duetick.post("/api/schedules");
// @ts-expect-error There is no such field.
await duetick.post("/api/schedules", { body: { cron: "@daily", flow: "f", action: "a", zone: "UTC" } });
// @ts-expect-error There is no such state.
await duetick.get("/api/schedules", { query: { state: "sleeping" } });
// @ts-expect-error A read takes no key of idempotency.
await duetick.get("/api/schedules", { idempotencyKey: "x" });
// @ts-expect-error A put takes none either: it may be repeated as it is.
await duetick.put("/api/schedules/{key}", { path: { key: "k" }, body: { cron: "@daily", flow: "f", action: "a" }, idempotencyKey: "x" });
// @ts-expect-error A user's own route records no reason.
await duetick.delete("/api/schedules/{key}", { path: { key: "k" }, why: "asked for" });
// @ts-expect-error One schedule is no page.
for await (const one of duetick.pages("/api/schedules/{key}", { path: { key: "k" } })) void one;
// @ts-expect-error An export has several lists.
for await (const one of duetick.pages("/api/users/{user}/export", { path: { user: "ann" } })) void one;

const one = (await duetick.get("/api/schedules/{key}", { path: { key: "k" } })).body;
// @ts-expect-error It may have no next time.
const next: string = one.nextFireAt;
// @ts-expect-error A schedule that is shown always says its overlap.
const overlap: undefined = one.policies.overlap;
// @ts-expect-error No policy has that text.
const policies: Schemas["PoliciesShape"] = { overlap: "sometimes" };
// @ts-expect-error A state that is missing is found.
const said: Record<Schemas["ShownState"], string> = { queued: "…" };
// @ts-expect-error `failed` is passed through, and never shown.
const failed: Schemas["ShownState"] = "failed";
void [next, overlap, policies, said, failed];
