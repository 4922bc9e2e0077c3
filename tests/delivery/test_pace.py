"""The pace of a tick: it claims before its line runs dry, and looks up when the next one is due."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from duetick.core.store import Store
from duetick.core.tick import loop, run_tick
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.ports import Delivered

from tests.delivery.scene import NINE

ACCEPTED = Delivered(202, '{"status": "accepted"}')


@dataclass(frozen=True, slots=True)
class Through:
    """A transport that does something first."""

    first: Callable[[Occurrence], object]

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """Accept it."""
        self.first(occurrence)
        return ACCEPTED

    def close(self) -> None:
        """Nothing is open."""


def test_it_claims_on_while_more_wait_than_are_in_flight(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        store.index.upsert(IndexRow(f"u{number}", "k", "0 9 * * *", None, NINE, "mail"))
    all_claimed, begun, real = threading.Event(), list[Occurrence](), store.index.claim_due

    def claim(now: int, limit: int = 100, **_: object) -> Sequence[Occurrence]:
        found = real(now, limit)
        if not found:
            all_claimed.set()
        return found

    def wait(occurrence: Occurrence) -> None:
        begun.append(occurrence)
        if len(begun) > 20:  # of so many the pace is known
            assert all_claimed.wait(60)

    monkeypatch.setattr(store.index, "claim_due", claim)
    report = run_tick(
        store, Through(wait), now=NINE, chunk=10, slots=2, elapsed=lambda: 0.0, budget=100
    )
    assert (report.claimed, report.delivered) == (40, 40)


def test_what_comes_due_does_not_wait_for_another_schedules_turn(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two fires of one schedule go one after another; others have nothing to do with that."""
    monkeypatch.setattr(loop, "GLANCE", 60.0)
    for second in (2_000, 1_000):
        store.index.upsert(IndexRow("slow", "k", "rate(1 second)", None, NINE - second, "mail"))
    store.index.upsert(IndexRow("other", "k", "0 9 1 1 *", None, NINE + 300, "mail"))
    came = threading.Event()

    def wait(occurrence: Occurrence) -> None:
        if occurrence.user_id == "other":
            came.set()
        assert came.wait(60)

    report = run_tick(store, Through(wait), now=NINE, look_ahead=1_000, budget=100)
    assert report.failed == 0
    assert report.delivered >= 3
