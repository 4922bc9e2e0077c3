"""T-04 and D-08: a schedule that fires each minute, whose actions take longer and fail at first."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import pytest
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import TERMINAL, Reason, State

from tests.delivery.scene import MINUTE, NINE

FAILED = Outcome(State.FAILED, Reason.FAILED, "no mail server")
LAG = 50  # what a tick takes to start: what was claimed ahead begins before that
LAST = NINE + 12 * MINUTE


@dataclass
class Office:
    """A tick each minute, and dispatches that take as long as the action does."""

    store: Store
    takes: int
    ahead: int
    now: int = 0
    began: list[tuple[int, Occurrence]] = field(default_factory=list)
    retries: list[Occurrence] = field(default_factory=list)
    _coming: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    _turn: "count[int]" = field(default_factory=count)

    def at(self, when: int, act: Callable[[], None]) -> None:
        heapq.heappush(self._coming, (max(when, self.now), next(self._turn), act))

    def live(self, until: int) -> None:
        for minute in range(NINE, until, MINUTE):
            self.at(minute + LAG, self.tick)
        while self._coming:
            self.now, _, act = heapq.heappop(self._coming)
            act()

    def tick(self) -> None:
        while found := [
            *self.store.ledger.claim_waiting(self.now, ahead=self.ahead),
            *self.store.index.claim_due(self.now, ahead=self.ahead),
        ]:
            for one in found:
                self.at(one.due_at, partial(self.deliver, one))

    def deliver(self, occurrence: Occurrence) -> None:
        begun = self.store.ledger.begin(occurrence, now=self.now)
        if isinstance(begun, Begun):
            self.began.append((self.now, begun.occurrence))
            self.at(self.now + self.takes, partial(self.end, begun.occurrence))

    def end(self, running: Occurrence) -> None:
        """Each second occurrence fails once, each fourth twice."""
        minute = (running.nominal_at - NINE) // MINUTE
        fails = running.attempts <= (minute % 2 == 0) + (minute % 4 == 0)
        after = self.store.ledger.settle(running, FAILED if fails else SUCCEEDED, now=self.now)
        assert after
        if after.state is State.RETRYING:
            self.retries.append(after)

    def successors(self, retry: Occurrence) -> int:
        """Count the later ones that began while it was due and waited."""
        again = min(
            when
            for when, one in self.began
            if one.identity == retry.identity and one.attempts > retry.attempts
        )
        return sum(
            retry.due_at <= when < again and one.attempts == 1
            for when, one in self.began
            if one.nominal_at > retry.nominal_at
        )


@pytest.mark.parametrize("ahead", [0, 2 * MINUTE])
@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.WAIT])
@pytest.mark.parametrize("takes", [50, 70, 115])
def test_d08_what_has_begun_once_is_tried_until_it_succeeds(
    each_store: Store, takes: int, overlap: Overlap, ahead: int
) -> None:
    policies = Policies(delivery=Delivery.AT_LEAST_ONCE, overlap=overlap, timeout=300, ends_at=LAST)
    made = Schedule("ada", "digest", "* * * * *", "mail", "send", policies=policies)
    each_store.schedules.put(made, now=NINE - 1)
    office = Office(each_store, takes * 1_000, ahead)
    office.live(NINE + 90 * MINUTE)

    found = {one.identity: one for one in each_store.ledger.find("ada", "digest", limit=500)}
    assert all(one.state in TERMINAL for one in found.values()), "something waits for ever"
    began = {one.identity for _, one in office.began}
    assert {found[name].state for name in began} == {State.SUCCEEDED}
    assert {_outcome(found[name]) for name in found.keys() - began} <= {
        (State.CANCELLED, Reason.OVERLAP)
    }
    assert sum(one.count for one in found.values()) == 13
    assert office.retries
    assert max(map(office.successors, office.retries)) <= 1


def _outcome(one: Occurrence) -> tuple[State, Reason | None]:
    return one.state, one.reason
