// graphile-worker: jobs recorded by addJobs(), then leased, run and completed by a runner, which
// leases in no other way. Arguments: due, others, rounds.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const [due, others, rounds] = process.argv.slice(2).map(Number);
const FILL = 10_000;
const CHUNK = 1_000;
const later = new Date(Date.now() + 365 * 86_400_000);

const job = (n) => ({ identifier: "digest", payload: { user: `user-${n}`, key: "digest" } });
const jobs = (count, more) => Array.from({ length: count }, (_, n) => ({ ...job(n), ...more }));

const pgPool = new pg.Pool({ max: 12 });
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ pgPool, logger });
await utils.migrate();
for (let filled = 0; filled < others; filled += FILL) {
  await utils.addJobs(jobs(FILL, { runAt: later }));
}
await pgPool.query("ANALYZE");

async function runAll() {
  let ran = 0;
  let finish;
  const finished = new Promise((resolve) => { finish = resolve; });
  const digest = async () => { if (++ran === due) finish(); };
  const worker = { concurrentJobs: 24, localQueue: { size: CHUNK }, completeJobBatchDelay: 0 };
  const runner = await run({
    pgPool, logger, noHandleSignals: true, taskList: { digest }, preset: { worker },
  });
  await finished;
  return runner;
}

for (let round = 0; round < rounds; round++) {
  const begun = performance.now();
  for (let made = 0; made < due; made += CHUNK) await utils.addJobs(jobs(CHUNK));
  const recorded = performance.now();
  const runner = await runAll();
  const done = performance.now();
  await runner.stop();
  console.log(JSON.stringify([(recorded - begun) / 1000, (done - recorded) / 1000]));
}
process.exit(0);
