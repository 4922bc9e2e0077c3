"""pgqueuer: jobs recorded by enqueue(), leased by dequeue(). Arguments: due, others, rounds.

Runs in an environment of its own, which has pgqueuer.
"""

import asyncio
import json
import sys
from datetime import timedelta
from time import perf_counter
from uuid import uuid4

import asyncpg
from pgqueuer.ports.repository import EntrypointExecutionParameter
from pgqueuer.queries import Queries

ENTRYPOINT = "digest"
FILL = 10_000
CHUNK = 1_000
YEAR = timedelta(days=365)
PARAMETER = EntrypointExecutionParameter(concurrency_limit=0)


async def record(queries: Queries, count: int, after: timedelta | None = None) -> None:
    payloads: list[bytes | None] = [json.dumps({"user": n}).encode() for n in range(count)]
    await queries.enqueue([ENTRYPOINT] * count, payloads, [0] * count, [after] * count)


async def lease(queries: Queries, due: int) -> None:
    manager, leased = uuid4(), 0
    while leased < due:
        found = await queries.dequeue(
            CHUNK, {ENTRYPOINT: PARAMETER}, manager, None, timedelta(minutes=5)
        )
        if not found:
            raise SystemExit(f"only {leased} of {due} were there")
        leased += len(found)


async def main(due: int, others: int, rounds: int) -> None:
    connection = await asyncpg.connect()
    queries = Queries.from_asyncpg_connection(connection)
    await queries.install()
    for _ in range(0, others, FILL):
        await record(queries, FILL, YEAR)
    await connection.execute("ANALYZE")
    for _ in range(rounds):
        begun = perf_counter()
        for _ in range(0, due, CHUNK):
            await record(queries, CHUNK)
        recorded = perf_counter()
        await lease(queries, due)
        print(json.dumps([recorded - begun, perf_counter() - recorded]), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:4])))
