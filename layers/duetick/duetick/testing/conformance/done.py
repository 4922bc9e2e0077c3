"""L-01: a schedule that will never fire again is done, and does not count in a quota."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from duetick.core.purge import purge
from duetick.core.store import Listing, Store
from duetick.domain.attempts import SUCCEEDED, Outcome
from duetick.domain.ending import KEPT_DONE_MS, state_of
from duetick.domain.errors import QuotaReached
from duetick.domain.occurrence import Occurrence
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Delivery, Misfire, Overlap, Policies
from duetick.domain.schedule import Record, Schedule
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    drain,
    must,
    only,
    start,
)

AT_NOON = "at(2027-03-01T12:00:00)"
AFTER_ONE = "at(2027-03-01T13:00:00)"
DELETE = Policies(after_completion="delete")
REJECTED = Outcome(State.FAILED, Reason.REJECTED, "no such action")
LATER = NOON + KEPT_DONE_MS + HOUR


class EndConformance(StoreSuite):
    """The changes that make a schedule done, and the changes that make it active again."""

    def test_l01_an_at_that_fired_is_done(self, store: Store) -> None:
        put(store, AT_NOON)
        assert read_record(store).done_at is None
        only(drain(store, SOON))
        assert (read_record(store).done_at, read_record(store).next_fire_at) == (SOON, None)
        assert store.index.get("ada", "digest") is None

    def test_l01_an_end_that_passed_is_done(self, store: Store) -> None:
        put(store, EACH_MINUTE, Policies(ends_at=NOON + MINUTE))
        drain(store, SOON)
        assert read_record(store).done_at is None
        drain(store, SOON + MINUTE)
        assert read_record(store).done_at == SOON + MINUTE

    def test_l01_a_limit_that_is_used_up_is_done(self, store: Store) -> None:
        put(store, EACH_MINUTE, Policies(max_runs=1))
        claimed = only(drain(store, SOON))
        assert read_record(store).done_at is None
        start(store, claimed, SOON)
        assert (read_record(store).done_at, read_record(store).runs) == (SOON, 1)
        assert store.index.get("ada", "digest") is None

    def test_l01_a_misfire_that_does_not_fire_is_the_last_too(self, store: Store) -> None:
        put(store, AT_NOON, Policies(misfire=Misfire.SKIP))
        assert drain(store, NOON + DAY) == []
        assert read_record(store).done_at == NOON + DAY

    def test_l01_what_is_claimed_ahead_is_done_at_its_time(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        put(store, AT_NOON)
        only(drain(store, NOON - MINUTE, ahead=2 * MINUTE))
        assert read_record(store).done_at == NOON

    def test_l01_a_row_without_a_record_is_nothing_that_could_be_done(self, store: Store) -> None:
        store.index.upsert(row(cron=AT_NOON))
        only(drain(store, SOON))
        assert store.schedules.get("ada", "digest") is None

    def test_l01_a_row_that_is_restored_without_a_next_time_is_done(self, store: Store) -> None:
        put(store, AT_NOON)
        store.index.upsert(row(cron="no cron", at=NOON))
        drain(store, SOON)
        assert read_record(store).done_at is None
        assert store.index.restore("ada", "digest", now=NOON + HOUR)
        assert read_record(store).done_at == NOON + HOUR

    def test_l01_a_row_that_is_put_makes_it_active(self, store: Store) -> None:
        make_done(store)
        store.index.upsert(row(at=NOON + DAY))
        assert read_record(store).done_at is None

    def test_t04_the_last_occurrence_is_retried_while_its_schedule_is_done(
        self, store: Store
    ) -> None:
        put(store, AT_NOON, Policies(delivery=Delivery.AT_LEAST_ONCE))
        held = start(store, only(drain(store, SOON)), SOON)
        store.ledger.settle(held, FAILED, now=SOON)
        again = start(store, only(store.ledger.claim_waiting(NOON + HOUR)), NOON + HOUR)
        assert must(store.ledger.settle(again, SUCCEEDED, now=NOON + HOUR)).attempts == 2
        assert (read_record(store).done_at, read_record(store).runs) == (SOON, 1)

    def test_d08_the_last_occurrence_waits_while_its_schedule_is_done(self, store: Store) -> None:
        self.needs(Capability.WAIT)
        waiting = Policies(overlap=Overlap.WAIT, timeout=300, ends_at=NOON + MINUTE)
        put(store, EACH_MINUTE, waiting)
        first = start(store, only(drain(store, SOON)), SOON)
        last = only(drain(store, SOON + MINUTE))
        assert read_record(store).done_at == SOON + MINUTE
        store.ledger.begin(last, now=SOON + MINUTE)
        store.ledger.settle(first, SUCCEEDED, now=SOON + MINUTE)
        waited = only(store.ledger.claim_waiting(NOON + HOUR))
        assert start(store, waited, NOON + HOUR).nominal_at == last.nominal_at

    def test_d02_a_run_that_is_given_back_makes_it_active_and_it_counts_again(
        self, store: Store
    ) -> None:
        put(store, EACH_MINUTE, Policies(max_runs=1))
        first = start(store, only(drain(store, SOON)), SOON)
        store.schedules.put(schedule("other"), now=SOON, at_most=1)
        store.ledger.settle(first, REJECTED, now=SOON)
        assert (read_record(store).done_at, read_record(store).runs) == (None, 0)
        assert read_record(store).next_fire_at == NOON + MINUTE
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule("third"), now=SOON, at_most=2)

    def test_d02_an_at_whose_run_is_given_back_stays_done(self, store: Store) -> None:
        put(store, AT_NOON)
        store.ledger.settle(start(store, only(drain(store, SOON)), SOON), REJECTED, now=SOON)
        assert (read_record(store).done_at, read_record(store).runs) == (SOON, 0)

    def test_l01_a_paused_schedule_is_not_done(self, store: Store) -> None:
        make_done(store)
        change(store, lambda one: pause(one, "", None, SOON), SOON)
        assert read_record(store).done_at is None
        assert states(store, SOON) == {"digest": "paused"}
        change(store, resume, SOON + HOUR)
        assert read_record(store).done_at == SOON + HOUR

    def test_l01_after_the_end_of_its_pause_it_is_done_again(self, store: Store) -> None:
        make_done(store)
        until = NOON + HOUR
        change(store, lambda one: pause(one, "", until, SOON), SOON)
        assert read_record(store).done_at is None
        assert states(store, SOON) == {"digest": "paused"}
        purge(store, until - 1)
        assert read_record(store).done_at is None
        assert (states(store, until - 1), states(store, until)) == (
            {"digest": "paused"},
            {"digest": "done"},
        )
        purge(store, until)
        assert read_record(store).done_at == until

    def test_l01_a_time_that_passed_in_a_pause_leaves_it_done(self, store: Store) -> None:
        put(store, AT_NOON)
        change(store, lambda one: pause(one, "", None, NOON - SECOND), NOON - SECOND)
        change(store, resume, NOON + HOUR)
        assert read_record(store).done_at == NOON + HOUR
        assert only(store.ledger.find("ada", "digest")).reason is Reason.PAUSED

    def test_l01_an_edit_that_leaves_its_times_leaves_it_done(self, store: Store) -> None:
        before = make_done(store)
        change(store, lambda one: replace(one, input={"a": 1}, labels={"b": "c"}), SOON)
        assert (read_record(store).done_at, read_record(store).version) == (before.done_at, 2)

    def test_l01_an_edit_of_its_times_makes_it_active(self, store: Store) -> None:
        make_done(store)
        change(store, lambda one: replace(one, cron=AFTER_ONE), SOON)
        assert (read_record(store).done_at, read_record(store).next_fire_at) == (None, NOON + HOUR)
        assert only(drain(store, NOON + HOUR)).nominal_at == NOON + HOUR
        assert read_record(store).done_at == NOON + HOUR

    def test_l01_a_higher_limit_makes_it_active(self, store: Store) -> None:
        put(store, EACH_MINUTE, Policies(max_runs=1))
        start(store, only(drain(store, SOON)), SOON)
        change(store, lambda one: replace(one, policies=Policies(max_runs=2)), SOON)
        assert (read_record(store).done_at, read_record(store).runs) == (None, 1)

    def test_l01_a_namesake_of_a_deleted_one_begins_anew(self, store: Store) -> None:
        make_done(store)
        store.schedules.delete("ada", "digest", now=SOON)
        put(store, AFTER_ONE, now=SOON)
        assert (read_record(store).done_at, read_record(store).runs) == (None, 0)


def put(
    store: Store, cron: str, policies: Policies | None = None, *, now: int = NOON - SECOND
) -> Record:
    """Put a schedule that is due at noon."""
    return store.schedules.put(schedule(cron=cron, policies=policies), now=now)


def drain_last(store: Store, policies: Policies | None = None) -> list[Occurrence]:
    """Claim the last occurrence of a schedule. The schedule is done then."""
    put(store, AT_NOON, policies)
    return drain(store, SOON)


def make_done(store: Store) -> Record:
    """Return a schedule that is done."""
    only(drain_last(store))
    return read_record(store)


def finish(store: Store, held: Occurrence, now: int = SOON) -> None:
    """Begin the occurrence and settle it as succeeded."""
    store.ledger.settle(start(store, held, now), SUCCEEDED, now=now)


def read_record(store: Store) -> Record:
    """Return the schedule as the store has it."""
    return must(store.schedules.get("ada", "digest"))


def change(store: Store, edit: Callable[[Record], Schedule], now: int) -> Record:
    """Put the schedule after an edit."""
    return store.schedules.put(edit(read_record(store)), now=now)


def list_keys(store: Store, state: Listing, now: int = SOON) -> list[str]:
    """Return the keys of a list."""
    return [one.key for one in store.schedules.list("ada", state=state, now=now).schedules]


def states(store: Store, now: int) -> dict[str, str]:
    """Return the state of each schedule by its key."""
    every = store.schedules.list("ada", state="all", now=now).schedules
    return {one.key: state_of(one, now) for one in every}


def mark(store: Store, key: str = "digest") -> int | None:
    """Return the mark of a schedule."""
    return store.shelf.change("ada", key, SOON, lambda book: book.mark)
