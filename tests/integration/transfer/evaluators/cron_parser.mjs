// The fire times of cron-parser, which pg-boss uses: a line of JSON in, [cron, zone, after, until]; a line out.
import { createInterface } from 'node:readline'
import { CronExpressionParser } from 'cron-parser'

for await (const line of createInterface({ input: process.stdin })) {
  const [cron, tz, after, until] = JSON.parse(line)
  const walk = CronExpressionParser.parse(cron, { tz, strict: false, currentDate: new Date(after) })
  const found = []
  for (let next = walk.next().getTime(); next <= until; next = walk.next().getTime()) found.push(next)
  console.log(JSON.stringify(found))
}
