"""A-03, J-13, O-04: a backfill makes each of its times once, beside the schedule's own ones."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import pytest

from duetick.core.backfills import BackfillRequest, Backfills, Ordered
from duetick.core.explain import explain
from duetick.core.purge import purge
from duetick.core.store import Store
from duetick.core.tick.backfilling import advance
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED, Outcome
from duetick.domain.backfilling import KIND, id_of
from duetick.domain.errors import BackfillNotFound, BackfillStands, InvalidSchedule, NotFound
from duetick.domain.operating import Operator
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Delivery, Overlap, Policies, Retry
from duetick.domain.retention import Days, Retention
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.standing import StandingOrder
from duetick.domain.states import Reason, State
from duetick.testing.conformance.concurrency import race
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    TWO_TRIES,
    by_hand,
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
    recorded,
    refused,
    start,
)

HOURLY = "0 * * * *"
ALLOWED = BackfillRequest("ada", "digest", NOON - 5 * HOUR, NOON, at_once=3, overlap="allow")
ALONE = BackfillRequest("ada", "digest", NOON - 5 * HOUR, NOON)
LATER = NOON + 30 * MINUTE


def put_at_noon(store: Store, policies: Policies | None = None, cron: str = HOURLY) -> None:
    """Put the schedule at noon, so that it has no history."""
    store.schedules.put(schedule(cron=cron, policies=policies), now=NOON)


def start_order(store: Store, wanted: BackfillRequest = ALLOWED) -> StandingOrder:
    """Start a backfill, and return its order as it stands."""
    store.now = lambda: LATER
    backfills = Backfills(store)
    made = backfills.start(backfills.plan(wanted))
    return standing(store, made.name)


def standing(store: Store, name: str) -> StandingOrder:
    """Return an order, whether it stands or has ended."""
    return only([one for one in store.shelf.orders(KIND, 0) if id_of(one) == name])


def step(store: Store, order: StandingOrder, now: int = LATER) -> Sequence[Occurrence]:
    """Do the part of a tick, from the order as it stands now."""
    return advance(store, standing(store, id_of(order)), now)


def ran(
    store: Store, brought: Sequence[Occurrence], outcome: Outcome = SUCCEEDED, now: int = LATER
) -> None:
    """Begin and settle the occurrences that were brought."""
    for one in brought:
        store.ledger.settle(start(store, one, now), outcome, now=now)


def read_order(store: Store, order: StandingOrder) -> Ordered:
    """Return the backfill as operators see it."""
    return Backfills(store).get(id_of(order))


def times(found: Sequence[Occurrence]) -> list[int]:
    """Return the hours of each occurrence before noon."""
    return [(NOON - one.nominal_at) // HOUR for one in found]


def of(store: Store, order: StandingOrder) -> list[Occurrence]:
    """Return all that the ledger has of a backfill, the oldest first."""
    found = store.ledger.find("ada", "digest", limit=1_000)
    return [one for one in reversed(found) if one.origin == f"backfill:{id_of(order)}"]


class BackfillConformance(StoreSuite):
    """The steps of a backfill, as ticks take them."""

    def test_a03_a_backfill_makes_each_time_once_and_ends(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        for wanted in ([5, 4, 3], [2, 1], []):
            brought = step(store, order)
            assert times(brought) == wanted
            ran(store, brought)
        found = read_order(store, order)
        assert (found.state, found.ended_at) == ("done", LATER)
        assert (found.one.brought, found.one.succeeded, found.one.under_way) == (5, 5, ())
        assert {one.state for one in of(store, order)} == {State.SUCCEEDED}
        assert store.shelf.standing() == []

    def test_a03_verify_counts_none_of_them_and_explain_tells_of_them(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        ran(store, step(store, order))
        drain(store, LATER)
        found = verify(store, NOON - 6 * HOUR, NOON + 1, now=LATER)
        assert (found.times, list(found.faults)) == (0, [])
        told = explain(store, "ada", "digest", NOON - 5 * HOUR, LATER)
        assert told.verdict == "no_schedule"
        assert [one.origin for one in told.besides] == [f"backfill:{id_of(order)}"]

    def test_a02_it_accounts_for_times_that_the_ledger_has_no_outcome_of(
        self, store: Store
    ) -> None:
        """A hand moved the row past three times, and an operator has two of them made."""
        put_at_noon(store)
        drain(store, NOON + HOUR + 1_000)
        moved = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(moved, next_fire_at=NOON + 5 * HOUR))
        drain(store, NOON + 5 * HOUR + 1_000)
        now = NOON + 5 * HOUR + MINUTE
        store.now = lambda: now

        def found() -> list[tuple[int, int, int]]:
            faults = verify(store, NOON, now, now=now).faults
            assert {one.problem for _, one in faults} <= {"missing"}
            return [
                ((one.first - NOON) // HOUR, (one.last - NOON) // HOUR, one.counted)
                for _, one in faults
            ]

        assert found() == [(2, 4, 3)]
        assert explain(store, "ada", "digest", NOON + 2 * HOUR, now).verdict == "unaccounted"
        backfills = Backfills(store)
        for hour, left in ((2, [(3, 4, 2)]), (4, [(3, 3, 1)]), (3, [])):
            span = NOON + hour * HOUR, NOON + hour * HOUR + MINUTE
            order = backfills.start(backfills.plan(BackfillRequest("ada", "digest", *span)))
            ran(store, step(store, standing(store, order.name), now), now=now)
            assert found() == left
        assert explain(store, "ada", "digest", NOON + 2 * HOUR, now).verdict == "backfilled"
        assert verify(store, NOON, now, now=now).times == 5

    def test_d08_one_after_another_unless_they_may_run_side_by_side(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store, ALONE)
        brought = step(store, order)
        assert times(brought) == [5]
        assert step(store, order) == ()
        begun = start(store, only(brought), LATER)
        assert step(store, order) == ()
        store.ledger.settle(begun, SUCCEEDED, now=LATER)
        assert times(step(store, order)) == [4]

    def test_d08_a_retry_is_under_way_and_the_next_waits_for_it(self, store: Store) -> None:
        put_at_noon(store, TWO_TRIES)
        order = start_order(store, ALONE)
        ran(store, step(store, order), FAILED)
        assert step(store, order) == ()
        later = LATER + HOUR
        again = only(store.ledger.claim_waiting(later))
        assert times([again]) == [5]
        ran(store, [again], FAILED, later)
        assert times(step(store, order, later)) == [4]
        assert read_order(store, order).one.failed == 1

    @pytest.mark.parametrize("overlap", list(Overlap))
    def test_d08_the_schedules_own_ones_run_beside_it(self, store: Store, overlap: Overlap) -> None:
        if overlap is Overlap.WAIT:
            self.needs(Capability.WAIT)
        put_at_noon(store, Policies(overlap=overlap), "0 * * * *")
        order = start_order(store)
        for one in step(store, order, NOON + HOUR - 1):
            start(store, one, NOON + HOUR - 1)
        own = only(drain(store, NOON + HOUR))
        running = start(store, own, NOON + HOUR)
        assert running.state is State.PROCESSING
        store.ledger.settle(running, SUCCEEDED, now=NOON + HOUR)
        assert {one.state for one in of(store, order)} == {State.PROCESSING}

    def test_d08_it_begins_while_one_of_the_schedule_runs(self, store: Store) -> None:
        put_at_noon(store)
        own = start(store, only(drain(store, NOON + HOUR)), NOON + HOUR)
        order = start_order(store)
        for one in step(store, order, NOON + HOUR):
            start(store, one, NOON + HOUR)
        assert recorded(store, own).state is State.PROCESSING

    def test_d08_a_retry_of_the_schedule_is_leased_beside_it(self, store: Store) -> None:
        put_at_noon(store, AT_LEAST_ONCE)
        at = NOON + HOUR
        ran(store, drain(store, at), FAILED, at)
        order = start_order(store)
        for one in step(store, order, at + 5 * SECOND):
            start(store, one, at + 5 * SECOND)
        again = only(store.ledger.claim_waiting(at + 20 * SECOND))
        assert again.origin == "schedule"
        start(store, again, at + 20 * SECOND)

    def test_d08_an_own_one_that_waits_displaces_none_of_it(self, store: Store) -> None:
        self.needs(Capability.WAIT)
        put_at_noon(store, Policies(overlap=Overlap.WAIT, timeout=300), EACH_MINUTE)
        at = NOON + 2 * MINUTE
        first, second = sorted(drain(store, at), key=lambda one: one.nominal_at)
        start(store, first, at)
        order = start_order(store)
        brought = step(store, order, at)
        assert refused(store.ledger.begin(second, now=at)).reason is Reason.OVERLAP
        for one in brought:
            start(store, one, at)

    def test_l01_it_uses_up_no_run(self, store: Store) -> None:
        put_at_noon(store, Policies(max_runs=1))
        order = start_order(store)
        ran(store, step(store, order))
        ran(store, step(store, order), Outcome(State.FAILED, Reason.REJECTED, "no"))
        assert must(store.schedules.get("ada", "digest")).runs == 0
        ran(store, drain(store, NOON + HOUR), now=NOON + HOUR)
        done = must(store.schedules.get("ada", "digest"))
        assert (done.runs, done.done_at) == (1, NOON + HOUR)

    def test_j13_a_tick_that_dies_between_the_two_writes_leaves_nothing_twice(
        self, store: Store
    ) -> None:
        put_at_noon(store)
        order = start_order(store)
        died = store.ledger.backfill(("ada", "digest"), order, now=LATER).made
        assert times(died) == [5, 4, 3]
        assert step(store, order) == ()
        assert read_order(store, order).one.brought == 3
        ran(store, died)
        assert times(step(store, order)) == [2, 1]

    def test_j13_a_tick_with_an_old_order_brings_nothing_twice(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        ran(store, step(store, order))
        brought = advance(store, order, LATER)
        assert times(brought) == [2, 1]
        assert step(store, order) == ()
        found = read_order(store, order).one
        assert (found.brought, found.succeeded, len(found.under_way)) == (5, 3, 2)

    def test_j13_ticks_at_once_bring_each_time_once(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        put_at_noon(store)
        order = start_order(store, replace(ALLOWED, at_once=4))
        stores = [store, self.another(store), self.another(store)]
        found = race([partial(advance, one, order, LATER) for one in stores])
        brought = sorted(times([*chain(*found)]))
        assert brought == [2, 3, 4, 5]
        assert len(of(store, order)) == 4

    def test_o04_it_is_stopped_and_goes_on_where_it_was(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        brought = step(store, order)
        backfills = Backfills(store)
        assert backfills.stop(id_of(order), "ops").state == "stopped"
        assert backfills.stop(id_of(order), "other").one.changed_by == "ops"
        assert step(store, order) == ()
        ran(store, brought)
        assert step(store, order) == ()
        assert read_order(store, order).one.succeeded == 3
        assert backfills.go_on(id_of(order), "ops").state == "running"
        assert times(step(store, order)) == [2, 1]

    def test_o04_of_a_stop_and_a_tick_at_once_both_count(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        Backfills(store).stop(id_of(order))
        late = advance(store, order, LATER)
        assert times(late) == [5, 4, 3]
        assert step(store, order) == ()
        Backfills(store).go_on(id_of(order))
        assert step(store, order) == ()
        assert read_order(store, order).one.brought == 3

    @pytest.mark.parametrize("waits", ["stopped", "paused"])
    def test_j13_what_a_purge_deletes_while_it_waits_is_not_brought_again(
        self, store: Store, waits: str
    ) -> None:
        """The tick that brought them died, or a stop came first: the order shows none of them."""
        self.needs(Capability.FORGETS)
        put_at_noon(store)
        for number in range(20):  # the newest of a schedule stay
            asked = by_hand(run=f"run:{number}", at=LATER)
            store.ledger.settle(start(store, asked, LATER), SUCCEEDED, now=LATER)
        order = start_order(store)
        brought = store.ledger.backfill(("ada", "digest"), order, now=LATER).made
        if waits == "stopped":
            Backfills(store).stop(id_of(order))
        else:
            store.pauses.pause("user:ada", now=LATER)
        ran(store, [one for one in brought if waits == "stopped"])
        for one in brought if waits == "paused" else ():
            store.ledger.cancel(one, Operator("op"), now=LATER)
        assert step(store, order, LATER + MINUTE) == ()
        later = LATER + 3 * DAY
        purge(store, later, retention=Retention(Days(1, 1)))
        assert of(store, order) == []
        Backfills(store).go_on(id_of(order))
        store.pauses.resume("user:ada", now=later)
        assert times(step(store, order, later)) == [2, 1]

    def test_a03_the_delete_of_the_schedule_ends_it(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        first, *_ = step(store, order)
        start(store, first, LATER)
        store.schedules.delete("ada", "digest", now=LATER + 1)
        put_at_noon(store)
        assert step(store, order, LATER + 2) == ()
        assert read_order(store, order).state == "running"
        for one in of(store, order)[1:]:
            answer = refused(store.ledger.begin(one, now=LATER + 2))
            assert answer.reason is Reason.SCHEDULE_DELETED
        store.ledger.settle(recorded(store, first), SUCCEEDED, now=LATER + 2)
        step(store, order, LATER + 3)
        found = read_order(store, order)
        assert (found.state, found.one.succeeded, found.one.cancelled) == ("schedule_deleted", 1, 2)

    def test_a03_a_pause_holds_it_and_what_it_brought(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        brought = step(store, order)
        current = must(store.schedules.get("ada", "digest"))
        store.schedules.put(pause(current, "", None, LATER), now=LATER + 1)
        for one in brought:
            assert refused(store.ledger.begin(one, now=LATER + 2)).reason is Reason.PAUSED
        assert step(store, order, LATER + HOUR) == ()
        assert read_order(store, order).one.waits_for == "paused"
        assert store.ledger.claim_waiting(LATER + HOUR) == []
        current = must(store.schedules.get("ada", "digest"))
        store.schedules.put(resume(current), now=LATER + HOUR)
        again = store.ledger.claim_waiting(LATER + HOUR)
        assert sorted(times(again)) == [3, 4, 5]
        ran(store, again, now=LATER + HOUR)
        drain(store, LATER + HOUR)
        assert times(step(store, order, LATER + HOUR)) == [2, 1]

    def test_o02_a_pause_of_its_user_holds_it_and_what_it_brought(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        brought = step(store, order)
        store.pauses.pause("user:ada", now=LATER)
        for one in brought:
            assert refused(store.ledger.begin(one, now=LATER + 1)).state is State.RETRYING
        assert step(store, order, LATER + 2) == ()
        assert read_order(store, order).one.waits_for == "paused"
        resumed = LATER + 10 * MINUTE
        for minute in range(1, 10):  # it is held, not leased and put off again and again
            at = LATER + minute * MINUTE
            assert list(store.ledger.claim_waiting(at, pauses=store.pauses.current(at))) == []
        store.pauses.resume("user:ada", now=resumed)
        again = store.ledger.claim_waiting(resumed)
        assert sorted(times(again)) == [3, 4, 5]
        ran(store, again, now=resumed)
        assert times(step(store, order, resumed)) == [2, 1]

    def test_a03_times_that_fired_are_passed_over_or_made_again(self, store: Store) -> None:
        put_at_noon(store)
        first = start_order(store, replace(ALLOWED, until=NOON - 2 * HOUR))
        ran(store, step(store, first)[:2])
        ran(store, step(store, first), FAILED)
        ran(store, store.ledger.claim_waiting(LATER + HOUR), FAILED, LATER + HOUR)
        step(store, first, LATER + HOUR)
        assert read_order(store, first).state == "done"
        missing = Backfills(store).plan(replace(ALLOWED, at_once=5))
        assert (missing.one.total, missing.fired, missing.to_bring) == (5, 2, 3)
        assert missing.outcomes == {"failed": 1, "fired": 2, "none": 2}
        second = start_order(store, replace(ALLOWED, at_once=5))
        brought = step(store, second, LATER + HOUR)
        assert times(brought) == [3, 2, 1]
        assert read_order(store, second).one.fired_before == 2
        ran(store, brought, now=LATER + HOUR)
        step(store, second, LATER + HOUR)
        third = start_order(store, replace(ALLOWED, at_once=5, only_missing=False))
        assert times(step(store, third, LATER + HOUR)) == [5, 4, 3, 2, 1]

    def test_d08_retries_of_it_by_an_operator_run_beside_the_schedules_own(
        self, store: Store
    ) -> None:
        put_at_noon(store)
        order = start_order(store)
        ran(store, step(store, order), FAILED)
        for one in of(store, order):
            assert store.ledger.retry(one, Operator("op"), now=LATER).changed
        own = only(drain(store, NOON + HOUR))
        start(store, own, NOON + HOUR)
        leased = store.ledger.claim_waiting(NOON + HOUR)
        assert sorted(times([start(store, one, NOON + HOUR) for one in leased])) == [3, 4, 5]

    def test_j13_what_an_operator_deleted_has_fired_all_the_same(self, store: Store) -> None:
        put_at_noon(store)
        first = start_order(store, replace(ALONE, until=NOON - 4 * HOUR))
        ran(store, step(store, first))
        store.ledger.discard(only(of(store, first)), Operator("op"), now=LATER)
        step(store, first)
        found = read_order(store, first)
        assert (found.state, found.one.succeeded) == ("done", 1)
        plan = Backfills(store).plan(ALLOWED)
        assert (plan.fired, plan.outcomes["fired"]) == (1, 1)
        assert times(step(store, start_order(store))) == [4, 3, 2]

    def test_j10_what_a_purge_deleted_may_have_fired_so_it_is_not_missing(
        self, store: Store
    ) -> None:
        self.needs(Capability.FORGETS)
        store.schedules.put(schedule(cron=HOURLY), now=NOON - 4 * HOUR - 1)
        for hours in range(4, -30, -1):
            ran(store, drain(store, NOON - hours * HOUR), now=NOON - hours * HOUR)
        later = NOON + 29 * HOUR
        store.now = lambda: later
        backfills, wanted = Backfills(store), replace(ALONE, since=NOON - 6 * HOUR)
        assert backfills.plan(wanted).to_bring == 2
        purge(store, later, retention=Retention(Days(1, 1)))
        with pytest.raises(InvalidSchedule, match="may have fired"):
            backfills.plan(wanted)
        assert backfills.plan(replace(wanted, only_missing=False)).to_bring == 6
        before = backfills.plan(replace(wanted, until=NOON - 4 * HOUR))
        assert before.to_bring == 2  # older than the schedule

    def test_a03_a_plan_tells_what_the_history_has(self, store: Store) -> None:
        store.schedules.put(schedule(cron=HOURLY), now=NOON - 4 * HOUR - 1)
        ran(store, drain(store, NOON - 4 * HOUR), now=NOON - 4 * HOUR)
        ran(store, drain(store, NOON - HOUR), FAILED, NOON - HOUR)
        store.now = lambda: NOON
        found = Backfills(store).plan(replace(ALONE, since=NOON - 6 * HOUR))
        assert found.outcomes == {"failed": 1, "fired": 1, "missed": 2, "none": 2}
        assert (found.first, found.last) == (NOON - 6 * HOUR, NOON - HOUR)
        assert (found.to_bring, found.ticks, found.least_seconds) == (5, 5, 240)
        assert store.shelf.standing() == []

    def test_t04_effectively_once_its_effects_are_committed_once(self, store: Store) -> None:
        policies = Policies(delivery=Delivery.EFFECTIVELY_ONCE, retry=Retry(attempts=2))
        put_at_noon(store, policies)
        order = start_order(store, ALONE)
        begun = start(store, only(step(store, order)), LATER)
        with store.ledger.settling(begun, lambda: LATER):
            pass
        assert recorded(store, begun).state is State.SUCCEEDED
        assert times(step(store, order)) == [4]

    def test_t05_one_whose_tick_died_is_leased_by_the_next(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store, ALONE)
        brought = only(step(store, order))
        later = must(brought.lease_until) + 1
        assert step(store, order, later) == ()
        again = only(store.ledger.claim_waiting(later))
        assert (again.identity, again.fence) == (brought.identity, 2)
        ran(store, [again], now=later)

    def test_a03_an_erased_user_takes_it_along(self, store: Store) -> None:
        """A tick that has read its order before brings nothing, and writes nothing."""
        put_at_noon(store)
        order = start_order(store)
        step(store, order)
        read = standing(store, id_of(order))
        store.erase("ada")
        assert advance(store, read, LATER) == ()
        assert list(Backfills(store).find()) == []
        assert store.ledger.find("ada", "digest") == []

    def test_o04_what_cannot_be_backfilled_is_refused(self, store: Store) -> None:
        put_at_noon(store)
        backfills = Backfills(store)
        store.now = lambda: NOON
        wrong = replace(ALLOWED, since=NOON, until=NOON + 1, at_once=99, most=0, note="a\n")
        with pytest.raises(InvalidSchedule) as problem:
            backfills.plan(wrong)
        assert len(problem.value.flaws) == 4
        with pytest.raises(InvalidSchedule, match="names 5 times"):
            backfills.plan(replace(ALLOWED, most=4))
        with pytest.raises(InvalidSchedule, match="one runs after another"):
            backfills.plan(replace(ALLOWED, overlap="wait"))
        with pytest.raises(InvalidSchedule, match="names no time"):
            backfills.start(backfills.plan(replace(ALLOWED, since=NOON - 30 * MINUTE)))
        for unknown in (replace(ALLOWED, key="other"), replace(ALLOWED, user_id="bob")):
            with pytest.raises(NotFound):
                backfills.plan(unknown)
        store.index.upsert(row("bare"))
        with pytest.raises(NotFound):
            backfills.plan(replace(ALLOWED, key="bare"))
        with pytest.raises(BackfillNotFound):
            backfills.stop("nothing")

    def test_o04_two_of_one_schedule_stand_if_they_share_no_time(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        with pytest.raises(BackfillStands, match=id_of(order)):
            start_order(store, replace(ALONE, since=NOON - 6 * HOUR, until=NOON - 4 * HOUR))
        start_order(store, replace(ALONE, since=NOON - 9 * HOUR, until=NOON - 5 * HOUR))
        assert len(Backfills(store).find("ada", "digest")) == 2
        assert list(Backfills(store).find("bob")) == []

    def test_j13_two_that_were_started_at_once_make_no_time_twice(self, store: Store) -> None:
        put_at_noon(store)
        order = start_order(store)
        twin = StandingOrder(KIND, "twin", LATER, order.body)
        assert store.shelf.keep_order(twin)
        for _ in range(4):
            for one in (order, twin):
                ran(store, step(store, one))
        every = Counter(times([*of(store, order), *of(store, twin)]))
        assert every == dict.fromkeys(range(1, 6), 1)
        assert [read_order(store, one).state for one in (order, twin)] == ["done", "done"]

    def test_m06_a_static_schedule_can_be_backfilled(self, store: Store) -> None:
        static = Schedule("", "reminders/nightly", HOURLY, "reminders", "send")
        store.schedules.put(static, now=NOON)
        order = start_order(store, replace(ALLOWED, user_id="", key="reminders/nightly"))
        brought = step(store, order)
        assert times(brought) == [5, 4, 3]
        ran(store, brought)
