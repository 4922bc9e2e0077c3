"""Real processes on one Postgres: claims are disjoint and complete, and a restart loses nothing."""

import multiprocessing
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from urllib.parse import urlsplit

import pytest
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.errors import StoreUnavailable
from duetick.domain.schedule import Identity, IndexRow, Occurrence
from duetick.domain.states import State
from duetick.stores import open_store

from tests.benchmarks.postgres_data import MINUTE, START, Table
from tests.lab.postgres import EmbeddedPostgres, connect, fresh_database, with_database

CLAIMERS = 8
DUE = 5_000
UNDER_LOAD = 8_000


def drain(store: Store, now: int, limit: int) -> Iterator[Occurrence]:
    while found := store.index.claim_due(now, limit):
        yield from found


_barrier: list[Barrier] = []


def meet(barrier: Barrier) -> None:
    _barrier.append(barrier)


def claim_all(url: str, now: int, limit: int) -> list[Identity]:
    """Claim in a process of its own, which begins together with the others."""
    store = open_store(url)
    store.check_schema()
    _barrier[0].wait()
    claimed = [occurrence.identity for occurrence in drain(store, now, limit)]
    store.close()
    return claimed


def race(url: str, now: int, limit: int) -> list[list[Identity]]:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(CLAIMERS)
    with ProcessPoolExecutor(CLAIMERS, context, meet, (start,)) as processes:
        waiting = [processes.submit(claim_all, url, now, limit) for _ in range(CLAIMERS)]
        return [claimed.result() for claimed in waiting]


def in_ledger(url: str) -> int:
    with connect(url) as connection:
        count: int = connection.run("SELECT count(*) FROM occurrences")[0][0]
    return count


@pytest.mark.slow
@pytest.mark.parametrize("limit", [7, 100, 1_000])
def test_i05_eight_processes_claim_each_row_once_and_leave_none(
    postgres_url: str, limit: int
) -> None:
    table = Table(postgres_url, 2 * DUE).filled()
    now = table.make_due(DUE)
    claimed = race(postgres_url, now, limit)
    every = Counter(identity for one in claimed for identity in one)
    assert len(every) == DUE
    assert set(every.values()) == {1}
    assert in_ledger(postgres_url) == DUE


def test_d08_of_three_that_begin_at_once_one_begins(postgres_url: str) -> None:
    store = open_store(postgres_url)
    store.migrate()
    store.index.upsert(IndexRow("ann", "k", "* * * * *", None, START - 2 * MINUTE))
    occurrences = store.index.claim_due(START)
    assert len(occurrences) == 3
    start = threading.Barrier(len(occurrences))

    def begin(occurrence: Occurrence) -> bool:
        start.wait()
        answer = store.ledger.begin(occurrence, now=START)
        return isinstance(answer, Begun)

    with ThreadPoolExecutor(len(occurrences)) as threads:
        assert sum(threads.map(begin, occurrences)) == 1
    store.close()


@dataclass(frozen=True, slots=True)
class Course:
    """The course of a restart: something was claimed, the server is back, the test is over."""

    claimed: threading.Event = field(default_factory=threading.Event)
    back: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


class Worker:
    """Claims, begins and settles until nothing is due; goes on after errors, and counts them."""

    def __init__(self, store: Store, now: int, course: Course) -> None:
        self.store = store
        self._now = now
        self._course = course
        self.errors: list[StoreUnavailable] = []

    def work(self) -> None:
        empty = 0
        while not self._course.over.is_set() and (empty < 3 or not self._course.back.is_set()):
            try:
                found = self.store.index.claim_due(self._now, 200)
                self._settle(found)
                empty = 0 if found else empty + 1
            except StoreUnavailable as error:
                self.errors.append(error)
                empty = 0
                self._course.over.wait(0.01)

    def _settle(self, claimed: Sequence[Occurrence]) -> None:
        for occurrence in claimed[:3]:
            answer = self.store.ledger.begin(occurrence, now=self._now)
            if isinstance(answer, Begun):
                self.store.ledger.settle(answer.occurrence, SUCCEEDED, now=self._now)
        if claimed:
            self._course.claimed.set()


def restarted(server: EmbeddedPostgres, end: str) -> None:
    """Stopped as is said, and started again."""
    if end == "crash":
        server.kill()
    else:
        server.stop()
    server.start()


@pytest.mark.parametrize("end", ["restart", "crash"])
def test_a_restart_under_load_is_told_and_loses_nothing(
    own_postgres: EmbeddedPostgres, end: str
) -> None:
    database = urlsplit(fresh_database(own_postgres)).path.removeprefix("/")
    url = with_database(own_postgres.url, database)
    table = Table(url, UNDER_LOAD).filled()
    now, course = table.make_due(UNDER_LOAD), Course()
    workers = [Worker(open_store(url), now, course) for _ in range(4)]
    with ThreadPoolExecutor(len(workers)) as threads:
        working = [threads.submit(worker.work) for worker in workers]
        try:
            course.claimed.wait()
            restarted(own_postgres, end)
            course.back.set()
            for each in working:
                each.result()
        finally:
            course.over.set()
    assert [error for worker in workers for error in worker.errors]
    assert in_ledger(url) == UNDER_LOAD
    with connect(url) as connection:
        states = connection.run("SELECT DISTINCT state FROM occurrences")
        left = connection.run(
            "SELECT count(*) FROM schedule_index WHERE next_fire_at <= :now", now=now
        )
    assert {state for (state,) in states} <= {State.QUEUED, State.PROCESSING, State.SUCCEEDED}
    assert left == [[0]]
    for worker in workers:
        worker.store.close()


def test_t05_a_crash_undoes_no_claim_of_which_one_was_begun(
    own_postgres: EmbeddedPostgres,
) -> None:
    """A claim does not wait for the disk. The begin that follows does, and carries it there."""
    database = urlsplit(fresh_database(own_postgres)).path.removeprefix("/")
    table = Table(with_database(own_postgres.url, database), 30).filled()
    now, store = table.make_due(30), open_store(table.url)
    first = store.index.claim_due(now, 10)
    assert isinstance(store.ledger.begin(first[-1], now=now), Begun)
    store.index.claim_due(now, 10)
    restarted(own_postgres, "crash")
    again: list[Occurrence] = []
    while chunk := store.index.claim_due(now, 10):
        again += chunk
    assert not {one.identity for one in first} & {one.identity for one in again}
    assert 10 <= len(again) <= 20  # those that were never claimed, and those that the crash undid
    with connect(table.url) as connection:
        kept = connection.run("SELECT id, state FROM occurrences")
    assert len(kept) == 30
    assert [name for name, state in kept if state == State.PROCESSING] == [first[-1].id]
    store.close()
