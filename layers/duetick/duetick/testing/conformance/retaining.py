"""J-10: an ended occurrence is deleted when its time is over, and nothing else is."""

from collections.abc import Sequence
from dataclasses import replace

from duetick.core.explain import explain
from duetick.core.purge import purge, purge_within
from duetick.core.store import Store
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED, Refused
from duetick.domain.occurrence import Occurrence
from duetick.domain.operating import Operator
from duetick.domain.policies import Delivery, Policies
from duetick.domain.retention import Days, Retention
from duetick.domain.states import Reason, State
from duetick.domain.workers import NamedLock
from duetick.testing.conformance.done import DELETE, change, drain_last, finish, put, read_record
from duetick.testing.conformance.samples import (
    DAILY,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
)
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    drain,
    must,
    only,
    recorded,
    start,
)

MONTH = 30 * DAY
YEAR = 365 * DAY
ONCE_A_DAY = Retention(Days(1, 1))


class RetentionConformance(StoreSuite):
    """The retention of occurrences that have ended, and of their events."""

    def test_j10_what_ended_leaves_after_thirty_days(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        finish(store, only(drain_last(store, DELETE)), SOON)
        assert purge(store, SOON + MONTH - 1).retired == 0
        assert len(store.ledger.find("ada")) == 1
        assert purge(store, SOON + MONTH).retired == 1
        assert list(store.ledger.find("ada")) == []

    def test_j10_what_is_dead_leaves_after_ninety_with_its_events(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        at_least = replace(DELETE, delivery=Delivery.AT_LEAST_ONCE)
        held = start(store, only(drain_last(store, at_least)), SOON)
        must(store.ledger.settle(held, FAILED, now=SOON))
        again = start(store, only(store.ledger.claim_waiting(NOON + HOUR)), NOON + HOUR)
        dead = must(store.ledger.settle(again, replace(FAILED, final=True), now=NOON + HOUR))
        assert store.ledger.events(dead)
        purge(store, NOON + HOUR + 90 * DAY - 1)
        assert recorded(store, dead).state is State.DEAD
        assert purge(store, NOON + HOUR + 90 * DAY).retired == 1
        assert list(store.ledger.events(dead)) == []

    def test_j10_what_an_operator_deleted_leaves_too_and_what_is_retried_stays(
        self, store: Store
    ) -> None:
        self.needs(Capability.FORGETS)
        for number in range(2):
            ran_by_hand(store, "gone", number)
        deleted, other = store.ledger.find("ada", "gone")
        store.ledger.discard(deleted, Operator("op", "a test"), now=SOON + DAY)
        assert purge(store, SOON + MONTH).retired == 1
        assert only(store.ledger.find("ada", "gone")).state is State.DELETED
        assert other.state is State.SUCCEEDED
        assert purge(store, SOON + DAY + MONTH).retired == 1
        assert list(store.ledger.find("ada", "gone")) == []

    def test_j10_a_dead_one_that_stayed_and_is_retried_is_under_way(self, store: Store) -> None:
        put(store, DAILY)
        held = start(store, only(drain(store, NOON)), NOON)
        dead = must(store.ledger.settle(held, FAILED, now=NOON))
        assert dead.state is State.DEAD
        purge(store, SOON + MONTH)
        store.ledger.retry(dead, Operator("op", "mended"), now=SOON + 60 * DAY)
        purge(store, SOON + 100 * DAY)
        assert recorded(store, dead).state is State.QUEUED

    def test_j10_the_newest_twenty_of_a_schedule_stay(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        fired = lives(store, 22)
        assert purge(store, NOON + YEAR).retired == 2
        assert times(store) == [one.nominal_at for one in fired[2:]]
        assert purge(store, NOON + 2 * YEAR).retired == 0

    def test_j10_runs_by_hand_are_among_the_newest_twenty(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        put(store, DAILY)
        for number in range(21):
            ran_by_hand(store, "digest", number)
        assert purge(store, NOON + YEAR).retired == 1
        assert times(store) == [NOON + number for number in range(1, 21)]

    def test_j10_what_stayed_leaves_when_a_newer_one_comes_of_age(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        lives(store, 20)
        assert purge(store, NOON + MONTH + 20 * DAY).retired == 0
        store.index.upsert(replace(must(store.index.get("ada", "digest")), next_fire_at=LATE))
        newer = only(drain(store, LATE))
        finish(store, newer, LATE)
        assert purge(store, LATE + MONTH).retired == 1
        assert (times(store)[0], len(times(store))) == (NOON + DAY, 20)

    def test_j10_what_stayed_leaves_once_its_schedule_is_deleted(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        lives(store, 3)
        assert purge(store, NOON + YEAR).retired == 0
        store.schedules.delete("ada", "digest", now=NOON + YEAR)
        assert purge(store, NOON + YEAR).retired == 3
        assert len(times(store)) == 1  # the range of what was due, which ended just now

    def test_j10_a_schedule_that_is_done_keeps_nothing_beyond_its_time(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        finish(store, only(drain_last(store)), SOON)
        assert purge(store, SOON + DAY, retention=ONCE_A_DAY).retired == 1
        assert read_record(store).last_run_at == SOON

    def test_j10_a_flow_has_days_of_its_own(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        finish(store, only(drain_last(store, DELETE)), SOON)
        longer = Retention(Days(1, 1), {"reminders": Days(200, 200)})
        assert purge(store, SOON + 200 * DAY - 1, retention=longer).retired == 0
        assert purge(store, SOON + 200 * DAY, retention=longer).retired == 1

    def test_j10_nothing_that_is_under_way_is_touched(self, store: Store) -> None:
        put(store, EACH_MINUTE, Policies(delivery=Delivery.AT_LEAST_ONCE))
        running = start(store, only(drain(store, NOON)), NOON)
        waiting = only(drain(store, NOON + MINUTE))
        store.schedules.delete("ada", "digest", now=NOON + 2 * MINUTE)
        purge(store, NOON + YEAR, retention=ONCE_A_DAY)
        assert recorded(store, running).state is State.PROCESSING
        assert recorded(store, waiting).state is State.QUEUED

    def test_j10_what_left_fires_no_more_though_its_row_is_set_back(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        fired = lives(store, 22)
        purge(store, NOON + YEAR)
        late = replace(must(store.index.get("ada", "digest")), next_fire_at=fired[0].nominal_at)
        store.index.upsert(late)
        made = drain(store, fired[-1].nominal_at + HOUR)
        assert made == []

    def test_j10_what_left_is_brought_by_nobody(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        first, *_ = lives(store, 22)
        purge(store, NOON + YEAR)
        asked = replace(by_hand(at=first.nominal_at), origin="schedule")
        answer = store.ledger.bring(asked, now=NOON + YEAR)
        assert answer == Refused("duplicate", State.DELETED)

    def test_j10_the_last_run_is_told_though_its_occurrence_left(self, store: Store) -> None:
        lives(store, 1)
        change(store, lambda one: replace(one, enabled=False), SOON + MINUTE)
        purge(store, NOON + YEAR, retention=ONCE_A_DAY)
        assert read_record(store).last_run_at == NOON

    def test_j10_a_purge_takes_so_many_and_says_that_there_are_more(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        for number in range(5):
            ran_by_hand(store, "gone", number)
        passes = [purge(store, SOON + MONTH, 2) for _ in range(3)]
        assert [one.retired for one in passes] == [2, 2, 1]
        assert [one.more for one in passes] == [True, True, False]

    def test_j10_a_purge_that_another_one_keeps_out_deletes_nothing(self, store: Store) -> None:
        finish(store, only(drain_last(store, DELETE)), SOON)

        def now() -> int:
            return SOON + MONTH

        store.now = now
        assert store.shelf.acquire(LOCKED._replace(until=now() + MINUTE), now())
        assert purge_within(60.0, store, owner="two") is None
        assert len(store.ledger.find("ada")) == 1

    def test_j10_verify_calls_no_purged_day_a_fault(self, store: Store) -> None:
        lives(store, 22)
        store.schedules.delete("ada", "digest", now=NOON + 21 * DAY + HOUR)
        purge(store, NOON + MONTH + 20 * DAY, retention=ONCE_A_DAY)
        seen = verify(store, 0, NOON + MONTH + 20 * DAY, now=NOON + MONTH + 20 * DAY)
        assert seen.found == {}
        assert seen.since >= NOON + 20 * DAY

    def test_j10_a_longer_retention_brings_no_day_back(self, store: Store) -> None:
        finish(store, only(drain_last(store, DELETE)), SOON)
        purge(store, SOON + 40 * DAY)
        purge(store, SOON + 40 * DAY, retention=Retention(Days(200, 200)))
        seen = verify(store, 0, SOON + 50 * DAY, now=SOON + 50 * DAY)
        assert seen.found == {}
        assert seen.since >= SOON + 10 * DAY

    def test_j10_explain_says_that_nobody_knows_of_a_purged_day(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        first, *_ = lives(store, 22)
        purge(store, NOON + YEAR)
        told = explain(store, "ada", "digest", first.nominal_at, NOON + YEAR)
        assert told.verdict == "unknown"

    def test_j10_a_range_stays_as_long_after_its_last_time(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        put(store, EACH_MINUTE, DELETE)
        change(store, lambda one: replace(one, enabled=False), NOON + HOUR)
        store.schedules.delete("ada", "digest", now=NOON + HOUR)
        whole = only(store.ledger.find("ada"))
        assert whole.range_end == NOON + HOUR
        assert purge(store, NOON + HOUR + MONTH - 1).retired == 0
        assert purge(store, NOON + HOUR + MONTH).retired == 1

    def test_j10_what_is_poisoned_stays_while_its_row_cannot_be_read(self, store: Store) -> None:
        put(store, DAILY)
        bad = replace(must(store.index.get("ada", "digest")), cron="nonsense", next_fire_at=NOON)
        store.index.upsert(bad)
        store.index.claim_due(SOON)
        purge(store, NOON + YEAR)
        assert only(store.ledger.find("ada")).reason is Reason.POISONED

    def test_l01_counts_of_past_minutes_leave(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        assert store.allow("ada", "writes", 1, now=NOON)
        assert purge(store, NOON + SECOND).forgotten == 0
        assert not store.allow("ada", "writes", 1, now=NOON + SECOND)
        assert purge(store, NOON + MINUTE).forgotten == 1


LATE = NOON + 60 * DAY
LOCKED = NamedLock("purge", "one", SOON, SOON)


def lives(store: Store, days: int) -> Sequence[Occurrence]:
    """Let a daily schedule run each noon, and return its occurrences."""
    put(store, DAILY)
    fired = []
    for day in range(days):
        now = NOON + day * DAY
        held = start(store, only(drain(store, now)), now)
        fired.append(must(store.ledger.settle(held, SUCCEEDED, now=now)))
    return fired


def ran_by_hand(store: Store, key: str, number: int) -> None:
    """Let a run by hand succeed."""
    held = start(store, by_hand(key, run=f"run:{number}", at=NOON + number), SOON)
    must(store.ledger.settle(held, SUCCEEDED, now=SOON))


def times(store: Store) -> list[int]:
    """Return the nominal times of the history, the oldest first."""
    return sorted(one.nominal_at for one in store.ledger.find("ada", "digest", limit=100))
