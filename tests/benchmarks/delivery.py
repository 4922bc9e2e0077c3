"""Deliveries a second, and what each costs: `python -m tests.benchmarks.delivery`.

Everything is compared within one run: with the most that 64 connections can carry, with `requests`
under the same signatures, and (`end_to_end`) with the documents' loop over the same million rows.
"""

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import local

import requests
from duetick.core.tick import run_tick
from duetick.core.wire import delivery_json
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.stores import open_store
from duetick.transports.http import HttpTransport

from tests.benchmarks import end_to_end
from tests.benchmarks.endpoint import answering, told
from tests.benchmarks.signing import signed

SLOTS = 64
NOW = 1_796_115_600_000
PATH = "/api/flows/mail/schedules/user~2Fdigest/dispatch"


def due(number: int) -> Occurrence:
    """Return one of many occurrences."""
    return Occurrence(f"u{number}", "digest", "* * * * *", None, NOW, 1, flow="mail", due_at=NOW)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one way to deliver."""

    per_second: float
    cpu_us: float


def measured(count: int, deliver: Callable[[Occurrence], int]) -> Cost:
    """Measure a number of deliveries through 64 threads."""
    with ThreadPoolExecutor(SLOTS) as pool:
        warm = list(pool.map(deliver, map(due, range(SLOTS * 2))))
        begin, cpu = time.perf_counter(), time.process_time()
        statuses = list(pool.map(deliver, map(due, range(count))))
        took, spent = time.perf_counter() - begin, time.process_time() - cpu
    assert set(statuses + warm) == {202}
    return Cost(count / took, spent / count * 1e6)


def ours(port: int, count: int) -> Cost:
    """Measure the transport."""
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


def transports(count: int) -> None:
    """Rates at 50 ms, and CPU."""
    with answering(0.05) as port:
        mine, theirs = ours(port, count), through_requests(port, count // 4)
    ceiling = SLOTS / 0.05
    print(f"signed, 64 connections, an endpoint that answers in 50 ms: {mine.per_second:,.0f}/s,")
    print(f"  {mine.per_second / ceiling:.0%} of 64/50 ms (to reach: 80 %)")
    print(f"CPU each: {mine.cpu_us:.0f} µs, requests {theirs.cpu_us:.0f} µs:")
    print(f"  {mine.cpu_us / theirs.cpu_us:.0%} (to reach: at most 50 %)")


def ahead() -> None:
    """Deliver 2,000 occurrences over a minute and 500 in one second of it, each at its own time."""
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
        late = sorted(told(port)["late"])
        transport.close()
    store.close()
    p99 = late[len(late) * 99 // 100]
    print(f"look-ahead: {report.delivered} delivered in {billed:.0f} billed seconds;")
    print(f"  lateness p50 {late[len(late) // 2]} ms, p99 {p99} ms (to reach: under 1,000)")
    print(f"  longest {late[-1]} ms, earliest {late[0]} ms")


def main(parts: list[str]) -> None:
    """Measure the named parts, or all."""
    chosen = parts or ["transports", "end_to_end", "ahead"]
    if "transports" in chosen:
        transports(6_400)
    if "end_to_end" in chosen:
        end_to_end.measure()
    if "ahead" in chosen:
        ahead()


if __name__ == "__main__":
    main(sys.argv[1:])
