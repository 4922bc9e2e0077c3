"""Deliveries a second, and what each costs: `python -m tests.benchmarks.delivery`.

Everything is compared within one run: with what 64 connections can carry at most, with `requests`
under the same signatures, and with the documents' loop over the same million rows.
"""

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import local

import requests
import urllib3
from croniter import croniter
from duetick.core.tick import run_tick
from duetick.core.wire import delivery_json
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.stores import open_store
from duetick.transports.http import HttpTransport
from duetick.transports.sigv4 import Credentials, Signer
from pg8000.native import Connection

from tests.benchmarks.endpoint import answering, lateness
from tests.benchmarks.postgres_data import Table
from tests.lab.postgres import EmbeddedPostgres, connect, fresh_database

SLOTS = 64
SIGNER = Signer(lambda: Credentials("AKID", "secret", "token"), "eu-central-1")
NOW = 1_796_115_600_000
PATH = "/api/flows/mail/schedules/user~2Fdigest/dispatch"


def signed(host: str, path: str, body: bytes, *, fresh: bool = False) -> dict[str, str]:
    """As the deployed tick signs."""
    del fresh
    return SIGNER.headers(host, path, body, time.time_ns() // 1_000_000)


def due(number: int) -> Occurrence:
    """One of many."""
    return Occurrence(f"u{number}", "digest", "* * * * *", None, NOW, 1, flow="mail", due_at=NOW)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one way to deliver."""

    per_second: float
    cpu_us: float


def measured(count: int, deliver: Callable[[Occurrence], int]) -> Cost:
    """So many through 64 threads."""
    with ThreadPoolExecutor(SLOTS) as pool:
        warm = list(pool.map(deliver, map(due, range(SLOTS * 2))))
        begin, cpu = time.perf_counter(), time.process_time()
        statuses = list(pool.map(deliver, map(due, range(count))))
        took, spent = time.perf_counter() - begin, time.process_time() - cpu
    assert set(statuses + warm) == {202}
    return Cost(count / took, spent / count * 1e6)


def ours(port: int, count: int) -> Cost:
    """The transport."""
    transport = HttpTransport(f"http://127.0.0.1:{port}", signed)
    cost = measured(count, lambda occurrence: transport.deliver(occurrence, timeout=30).status)
    transport.close()
    return cost


def through_requests(port: int, count: int) -> Cost:
    """requests, a session for each thread, with the same signatures."""
    mine = local()

    def deliver(occurrence: Occurrence) -> int:
        if not hasattr(mine, "session"):
            mine.session = requests.Session()
        body = json.dumps(delivery_json(occurrence)).encode()
        headers = {"content-type": "application/json"}
        headers |= signed(f"127.0.0.1:{port}", PATH, body)
        url = f"http://127.0.0.1:{port}{PATH}"
        status: int = mine.session.post(url, data=body, headers=headers, timeout=30).status_code
        return status

    return measured(count, deliver)


def through_a_tick(url: str, port: int, now: int) -> tuple[int, float]:
    """Claim, record, lease and deliver: how many, and the seconds."""
    store = open_store(url)
    transport = HttpTransport(f"http://127.0.0.1:{port}", signed)
    begin = time.perf_counter()
    report = run_tick(store, transport, now=now, budget=600)
    took = time.perf_counter() - begin
    transport.close()
    store.close()
    return report.delivered, took


def through_the_documents_loop(url: str, port: int, now: int, threads: int) -> tuple[int, float]:
    """100 rows at a time, croniter for each, then a POST for each through urllib3."""
    pool = urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=threads)
    done, begin = 0, time.perf_counter()
    with connect(url) as connection, ThreadPoolExecutor(threads) as workers:
        while rows := _documents_claim(connection, now):
            done += sum(workers.map(lambda row: _documents_post(pool, row, now), rows))
    return done, time.perf_counter() - begin


def _documents_claim(connection: Connection, now: int) -> list[list[str]]:
    connection.run("BEGIN")
    rows: list[list[str]] = connection.run(
        "SELECT user_id, key, cron FROM schedule_index WHERE next_fire_at <= :now "
        "ORDER BY next_fire_at LIMIT 100 FOR UPDATE SKIP LOCKED",
        now=now,
    )
    start = datetime.fromtimestamp(now / 1_000, UTC)
    for user_id, key, cron in rows:
        following = croniter(cron, start).get_next(float)
        connection.run(
            "UPDATE schedule_index SET next_fire_at = :at WHERE user_id = :u AND key = :k",
            at=int(following * 1_000),
            u=user_id,
            k=key,
        )
    connection.run("COMMIT")
    return rows


def _documents_post(pool: urllib3.HTTPConnectionPool, row: list[str], now: int) -> bool:
    body = json.dumps({"nominalFireTime": now}).encode()
    path = f"/api/flows/mail/schedules/{row[0]}/{row[1]}/dispatch"
    headers = {"content-type": "application/json", **signed("127.0.0.1", path, body)}
    return pool.urlopen("POST", path, body=body, headers=headers).status == 202


def transports(count: int) -> None:
    """Rates at 50 ms, and CPU."""
    with answering(0.05) as port:
        mine, theirs = ours(port, count), through_requests(port, count // 4)
    ceiling = SLOTS / 0.05
    print(f"signed, 64 connections, an endpoint that answers in 50 ms: {mine.per_second:,.0f}/s,")
    print(f"  {mine.per_second / ceiling:.0%} of 64/50 ms (to reach: 80 %)")
    print(f"CPU each: {mine.cpu_us:.0f} µs, requests {theirs.cpu_us:.0f} µs:")
    print(f"  {mine.cpu_us / theirs.cpu_us:.0%} (to reach: at most 50 %)")


def end_to_end(rows: int, count: int) -> None:
    """Ours and the documents' loop, each on the same rows made due again."""
    server = EmbeddedPostgres()
    url = fresh_database(server)
    store = open_store(url)
    store.migrate()
    store.close()
    table = Table(url, rows)
    table.fill()
    with answering(0.0) as port:
        now = table.make_due(count)
        done, took = through_the_documents_loop(url, port, now, 1)
        print(f"the documents' loop, one POST after another: {done / took:,.0f}/s")
        slowest = done / took
        now = table.make_due(count)
        done, took = through_the_documents_loop(url, port, now, SLOTS)
        print(f"the same with 64 POSTs at once: {done / took:,.0f}/s")
        now = table.make_due(count)
        mine, spent = through_a_tick(url, port, now)
    print(f"a tick: {mine / spent:,.0f}/s of {mine:,} due among {rows:,}")
    print(f"  {mine / spent / slowest:.1f} times the first (to reach: 5)")
    print(f"  {mine / spent / (done / took):.1f} times the second")
    server.remove()


def ahead() -> None:
    """2,000 over a minute and 500 in one second of it, each at its own time."""
    store = open_store("sqlite://")
    store.migrate()
    start = (time.time_ns() // 1_000_000_000 + 3) * 1_000
    for number in range(2_000):
        at = start + number * 30
        store.index.upsert(IndexRow(f"u{number}", "k", "0 0 1 1 *", None, at, "mail"))
    for number in range(500):
        store.index.upsert(IndexRow(f"b{number}", "k", "0 0 1 1 *", None, start + 30_000, "mail"))
    with answering(0.05) as port:
        transport = HttpTransport(f"http://127.0.0.1:{port}", signed)
        begin = time.perf_counter()
        report = run_tick(store, transport, budget=120, look_ahead=70_000)
        billed = time.perf_counter() - begin
        late = sorted(lateness(port))
        transport.close()
    store.close()
    p99 = late[len(late) * 99 // 100]
    print(f"look-ahead: {report.delivered} delivered in {billed:.0f} billed seconds;")
    print(f"  lateness p50 {late[len(late) // 2]} ms, p99 {p99} ms (to reach: under 1,000)")
    print(f"  longest {late[-1]} ms, earliest {late[0]} ms")


def main(parts: list[str]) -> None:
    """All, or those that are named."""
    chosen = parts or ["transports", "end_to_end", "ahead"]
    if "transports" in chosen:
        transports(6_400)
    if "end_to_end" in chosen:
        end_to_end(1_000_000, 10_000)
    if "ahead" in chosen:
        ahead()


if __name__ == "__main__":
    main(sys.argv[1:])
