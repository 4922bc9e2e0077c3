"""S-01: pending bells, the claim of one row, and the rows that a tick leaves to bells."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from duetick.core.managed.keeping import BellKeeper
from duetick.core.managed.watched import Followers
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.bells import Bell, bell_name
from duetick.domain.errors import BellsUnavailable, QuotaReached, Refusal
from duetick.domain.occurrence import ScheduleName
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Backoff, Delivery, Misfire, Policies, Retry
from duetick.domain.states import State
from duetick.testing.conformance.accounting import call_for_own_time
from duetick.testing.conformance.done import REJECTED
from duetick.testing.conformance.samples import (
    DAILY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    row,
    schedule,
)
from duetick.testing.conformance.suite import FAILED, StoreSuite, must, only, start

ADA: ScheduleName = ("ada", "digest")
NEXT = NOON + MINUTE
"""The first time of each minute after noon."""
LATE = 5 * MINUTE


class Belfry:
    """`ports.bells.Bells` in a dictionary."""

    def __init__(self) -> None:
        self.bells: dict[str, Bell] = {}
        self.away = False

    def put(self, bell: Bell) -> None:
        """See `Bells`."""
        self._answer()
        self.bells[bell.name] = bell

    def delete(self, name: str) -> None:
        """See `Bells`."""
        self._answer()
        self.bells.pop(name, None)

    def names(self, prefix: str) -> Iterator[str]:
        """See `Bells`."""
        return iter([name for name in self.bells if name.startswith(prefix)])

    def schedule_of(self, name: str) -> ScheduleName | None:
        """See `Bells`."""
        raise NotImplementedError

    def wake(self, at: int) -> None:
        """See `Bells`."""

    def _answer(self) -> None:
        if self.away:
            raise BellsUnavailable("away")


class PendingBellConformance(StoreSuite):
    """Pending bells: each is made so by the write that moves it, and held by one process."""

    def watch(self, store: Store) -> Store:
        """Return the store, with its changes watched."""
        return Store(store.shelf, store.now, followers=Followers())

    def pending(self, store: Store) -> list[ScheduleName]:
        """Return the names of the bells that are pending."""
        return [one.name for one in store.shelf.pending_bells(100)]

    def bring_in_step(self, store: Store) -> Belfry:
        """Bring the pending bells in step. Return the bells."""
        belfry = Belfry()
        kept = BellKeeper(store, belfry).keep_pending(lambda: True)
        assert kept.failed == 0
        return belfry

    def test_s01_what_moves_a_bell_marks_it_in_the_same_write(self, store: Store) -> None:
        managed = self.watch(store)
        made = managed.schedules.put(schedule(cron=DAILY), now=NOON)
        assert self.pending(managed) == [ADA]
        self.bring_in_step(managed)
        for edited in (
            replace(made, cron="0 10 * * *"),
            replace(made, timezone="Europe/Berlin"),
            replace(made, policies=Policies(gap="skip")),
            pause(made, "", None, NOON),
            resume(made),
        ):
            managed.schedules.put(edited, now=NOON + SECOND)
            assert self.pending(managed) == [ADA], edited
            self.bring_in_step(managed)
        managed.schedules.delete(*ADA, now=NOON + MINUTE)
        assert self.pending(managed) == [ADA]

    def test_s01_an_edit_of_something_else_marks_no_bell(self, store: Store) -> None:
        managed = self.watch(store)
        made = managed.schedules.put(schedule(cron=DAILY), now=NOON)
        self.bring_in_step(managed)
        policies = Policies(retry=Retry(Backoff.FIXED, 3, first=30), priority=4)
        managed.schedules.put(replace(made, input={"a": 1}, policies=policies), now=NOON + SECOND)
        managed.index.claim_due(NOON + HOUR)
        assert self.pending(managed) == []

    def test_s01_a_write_that_is_refused_marks_no_bell(self, store: Store) -> None:
        managed = self.watch(store)
        with pytest.raises(QuotaReached):
            managed.schedules.put(schedule(cron=DAILY), now=NOON, at_most=0)
        managed.schedules.try_put(schedule(cron=DAILY), now=NOON)
        assert self.pending(managed) == []

    def test_s01_what_eventbridge_cannot_say_is_refused_with_the_reason(self, store: Store) -> None:
        managed = self.watch(store)
        with pytest.raises(Refusal, match="one of the two") as refused:
            managed.schedules.put(schedule(cron="0 9 1 * mon"), now=NOON)
        assert only(refused.value.flaws).path == ("cron",)
        assert managed.schedules.get(*ADA) is None

    def test_s01_the_last_run_moves_the_bell_and_one_that_is_given_back_moves_it_again(
        self, store: Store
    ) -> None:
        managed = self.watch(store)
        once = Policies(max_runs=1)
        managed.schedules.put(schedule(cron=EACH_MINUTE, policies=once), now=NOON)
        self.bring_in_step(managed)
        leased = only(managed.index.claim_due(NEXT + SECOND))
        started = start(managed, leased, NEXT + 2 * SECOND)
        assert self.pending(managed) == [ADA]
        assert not self.bring_in_step(managed).bells
        managed.ledger.settle(started, REJECTED, now=NEXT + 3 * SECOND)
        assert self.pending(managed) == [ADA]

    def test_s01_a_mark_is_kept_until_the_bell_is_there(self, store: Store) -> None:
        managed = self.watch(store)
        managed.schedules.put(schedule(cron=DAILY), now=NOON)
        belfry = Belfry()
        belfry.away = True
        assert BellKeeper(managed, belfry).keep_pending(lambda: True).failed == 1
        assert self.pending(managed) == [ADA]
        belfry.away = False
        assert BellKeeper(managed, belfry).keep_pending(lambda: True).kept == 1
        assert [*belfry.bells] == [bell_name(*ADA)]
        assert self.pending(managed) == []

    def test_s01_one_process_at_a_time_has_a_bell(self, store: Store) -> None:
        managed = self.watch(store)
        shelf = managed.shelf
        shelf.make_bells_pending([ADA], NOON)
        token = must(shelf.take_bell(ADA, NOON, NOON + MINUTE))
        assert shelf.take_bell(ADA, NOON + MINUTE - 1, NOON + HOUR) is None
        assert shelf.take_bell(ADA, NOON + MINUTE, NOON + HOUR) == token

    def test_s01_a_mark_that_is_another_by_the_end_stays(self, store: Store) -> None:
        managed = self.watch(store)
        shelf = managed.shelf
        shelf.make_bells_pending([ADA], NOON)
        token = must(shelf.take_bell(ADA, NOON, NOON + MINUTE))
        managed.schedules.put(schedule(cron=DAILY), now=NOON + SECOND)
        assert not shelf.end_bell(ADA, token)
        assert shelf.take_bell(ADA, NOON + SECOND, NOON + MINUTE) is None, "it is still taken"
        shelf.free_bell(ADA, NOON + MINUTE)
        assert shelf.take_bell(ADA, NOON + SECOND, NOON + MINUTE) not in (None, token)

    def test_s01_only_its_holder_frees_a_bell(self, store: Store) -> None:
        managed = self.watch(store)
        shelf = managed.shelf
        shelf.make_bells_pending([ADA], NOON)
        shelf.take_bell(ADA, NOON, NOON + MINUTE)
        shelf.take_bell(ADA, NOON + MINUTE, NOON + HOUR)
        shelf.free_bell(ADA, NOON + MINUTE)
        assert shelf.take_bell(ADA, NOON + MINUTE, NOON + HOUR + 1) is None

    def test_s01_a_bell_is_pending_since_its_first_mark(self, store: Store) -> None:
        managed = self.watch(store)
        managed.shelf.make_bells_pending([("ada", "b")], NOON + SECOND)
        managed.schedules.put(schedule(cron=DAILY), now=NOON)
        managed.shelf.make_bells_pending([ADA], NOON + HOUR)
        found = managed.shelf.pending_bells(10)
        assert [(one.key, one.since) for one in found] == [
            ("digest", NOON),
            ("b", NOON + SECOND),
        ]

    def test_s01_an_end_of_no_mark_changes_nothing(self, store: Store) -> None:
        managed = self.watch(store)
        assert not managed.shelf.end_bell(ADA, "a token")
        assert managed.shelf.take_bell(ADA, NOON, NOON + MINUTE) is None
        managed.shelf.free_bell(ADA, NOON)
        assert self.pending(managed) == []

    def test_s01_the_marks_of_an_erased_user_go_and_those_of_others_stay(
        self, store: Store
    ) -> None:
        managed = self.watch(store)
        for user in ("ad", "ada", "ada2"):
            managed.schedules.put(schedule(user=user, cron=DAILY), now=NOON)
        managed.erase("ada")
        assert sorted(self.pending(managed)) == [("ad", "digest"), ("ada2", "digest")]

    def test_s01_a_store_without_bells_marks_none(self, store: Store) -> None:
        store.schedules.put(schedule(cron=DAILY), now=NOON)
        assert self.pending(store) == []


class RingConformance(StoreSuite):
    """A row that is claimed alone, and rows that a tick leaves to their bells."""

    def test_s01_a_ring_claims_its_row_as_a_tick_does(self, store: Store) -> None:
        policies = Policies(misfire=Misfire.ALL, catch_up=3)
        for key in ("tick", "ring"):
            one = schedule(key=key, cron=EACH_MINUTE, policies=policies)
            store.schedules.put(one, now=NOON)
        at = NOON + 7 * MINUTE + SECOND
        made = store.index.claim_one("ada", "ring", now=at).made
        ticked = [one for one in store.index.claim_due(at) if one.key == "tick"]
        assert [one.nominal_at for one in made if one.state is State.QUEUED] == [
            one.nominal_at for one in ticked
        ]
        rows = [must(store.index.get("ada", key)).next_fire_at for key in ("tick", "ring")]
        assert rows == [NOON + 8 * MINUTE] * 2
        found = [store.ledger.find("ada", key) for key in ("tick", "ring")]
        assert [(o.nominal_at, o.state, o.range_end, o.fence) for o in found[0]] == [
            (o.nominal_at, o.state, o.range_end, o.fence) for o in found[1]
        ]

    def test_s01_a_ring_that_comes_twice_or_early_claims_nothing(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        assert not store.index.claim_one(*ADA, now=NEXT - 1).made
        assert len(store.index.claim_one(*ADA, now=NEXT).made) == 1
        again = store.index.claim_one(*ADA, now=NEXT + SECOND)
        assert not again.made
        assert must(again.row).next_fire_at == NEXT + MINUTE
        assert store.index.claim_due(NEXT + SECOND) == []

    @pytest.mark.parametrize("limited", [False, True])
    def test_j05_a_ring_makes_no_time_that_a_caller_brought(
        self, store: Store, *, limited: bool
    ) -> None:
        policies = Policies(misfire=Misfire.ALL, catch_up=3)
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=policies), now=NOON)
        running = start(store, call_for_own_time(NEXT + MINUTE), NEXT)
        brought = must(store.ledger.settle(running, SUCCEEDED, now=NEXT))
        if limited:
            store.limits.set("user:ada", parallel=1, now=NOON)
        at = NEXT + 2 * MINUTE
        claimed = store.index.claim_one(*ADA, now=at, limits=store.limits.current(at)).made
        assert [one.nominal_at for one in claimed] == [NEXT, NEXT + 2 * MINUTE]
        found = {one.nominal_at: one for one in store.ledger.find(*ADA)}
        assert found == {one.nominal_at: one for one in [*claimed, brought]}

    def test_s01_a_ring_of_no_row_claims_nothing(self, store: Store) -> None:
        claimed = store.index.claim_one(*ADA, now=NOON)
        assert claimed.row is None
        assert not claimed.made

    def test_s01_a_ring_of_the_last_time_ends_the_schedule(self, store: Store) -> None:
        store.schedules.put(schedule(cron="at(2027-03-01T12:01:00)"), now=NOON)
        at = must(store.index.get(*ADA)).next_fire_at
        assert len(store.index.claim_one(*ADA, now=at).made) == 1
        assert store.index.get(*ADA) is None
        assert must(store.schedules.get(*ADA)).done_at == at

    def test_s01_a_ring_of_a_row_that_cannot_be_read_poisons_it(self, store: Store) -> None:
        store.index.upsert(row(cron="not a cron"))
        claimed = store.index.claim_one(*ADA, now=must(store.index.get(*ADA)).next_fire_at)
        assert only(claimed.made).reason == "poisoned"
        assert only(store.index.unreadable()).key == "digest"

    def test_s01_a_tick_leaves_a_row_to_its_bell_for_five_minutes(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        assert store.index.claim_due(NEXT + LATE - 1, late=LATE) == []
        claimed = store.index.claim_due(NEXT + LATE, late=LATE)
        assert NEXT + LATE in [one.nominal_at for one in claimed], "it is claimed as of now"
        assert must(store.index.get(*ADA)).next_fire_at == NEXT + LATE + MINUTE

    def test_s01_the_next_due_is_the_end_of_a_lease_or_what_waits(self, store: Store) -> None:
        assert store.shelf.next_due() is None
        delivery = Delivery.AT_LEAST_ONCE
        retries = Policies(delivery=delivery, retry=Retry(Backoff.FIXED, 3, first=600))
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=retries), now=NOON)
        leased = only(store.index.claim_due(NEXT))
        assert must(store.shelf.next_due()) <= must(leased.lease_until)
        began = start(store, leased, NEXT + SECOND)
        waits = must(store.ledger.settle(began, FAILED, now=NEXT + 2 * SECOND))
        assert must(store.shelf.next_due()) <= waits.due_at
