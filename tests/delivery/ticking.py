"""Parts for tests of a tick: a transport that notes its deliveries, a clock, and due rows."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.ports import Delivered

from tests.delivery.scene import NINE
from tests.lab.waiting import wait


@dataclass(slots=True)
class Recorder:
    """A transport that settles each occurrence and notes the time."""

    store: Store
    clock: Callable[[], float] = lambda: 0.0
    status: int = 202
    took: float = 0.0
    seen: list[tuple[Occurrence, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """Take it."""
        assert timeout > 0
        with self.lock:
            self.seen.append((occurrence, NINE + round(self.clock() * 1_000)))
        if self.status == 202:
            begun = self.store.ledger.begin(occurrence, now=occurrence.due_at)
            assert isinstance(begun, Begun)
            self.store.ledger.settle(begun.occurrence, SUCCEEDED, now=occurrence.due_at)
        return Delivered(self.status, '{"status": "accepted"}')

    def close(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class Time:
    """The seconds since nine. They pass only by a sleep, once everything that is due was
    delivered.
    """

    transport: Recorder
    due: Sequence[int] = ()
    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Wait until all due occurrences are taken, then let the seconds pass."""
        arrived = sum(due <= NINE + round(self.now * 1_000) for due in self.due)
        wait(lambda: len(self.transport.seen) >= arrived)
        self.now += max(seconds, 0.001)


def rows(store: Store, count: int, *, cron: str = "0 9 * * *", at: int = NINE) -> None:
    """Index that many, due at nine."""
    for number in range(count):
        store.index.upsert(IndexRow(f"u{number % 7}", f"k{number:04}", cron, None, at, "mail"))
