// pg-boss: jobs recorded by insert(), leased by fetch(). Arguments: due, others, rounds.
import { PgBoss } from "pg-boss";

const [due, others, rounds] = process.argv.slice(2).map(Number);
const QUEUE = "reminders";
const FILL = 10_000;
const CHUNK = 1_000;
const later = new Date(Date.now() + 365 * 86_400_000);

const job = (n) => ({ data: { user: `user-${n}`, key: "digest" } });
const jobs = (count, more) => Array.from({ length: count }, (_, n) => ({ ...job(n), ...more }));

async function fetchAll(boss) {
  for (let leased = 0; leased < due; ) {
    const found = await boss.fetch(QUEUE, { batchSize: CHUNK });
    if (!found.length) throw new Error(`only ${leased} of ${due} were there`);
    leased += found.length;
  }
}

const boss = new PgBoss({ supervise: false, schedule: false });
boss.on("error", (error) => { throw error; });
await boss.start();
await boss.createQueue(QUEUE);
for (let filled = 0; filled < others; filled += FILL) {
  await boss.insert(QUEUE, jobs(FILL, { startAfter: later }));
}
await boss.getDb().executeSql("ANALYZE");
for (let round = 0; round < rounds; round++) {
  const begun = performance.now();
  for (let made = 0; made < due; made += CHUNK) await boss.insert(QUEUE, jobs(CHUNK));
  const recorded = performance.now();
  await fetchAll(boss);
  const leased = performance.now();
  console.log(JSON.stringify([(recorded - begun) / 1000, (leased - recorded) / 1000]));
}
await boss.stop({ graceful: false });
process.exit(0);
