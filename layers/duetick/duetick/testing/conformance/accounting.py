"""A-01 and M-07, the part that a store decides: every nominal time has exactly one outcome."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.expression import fires
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.pausing import pause
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import NewOccurrence, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SOON,
    by_hand,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    Capability,
    StoreSuite,
    drain,
    only,
    refused,
    run,
    start,
)

LATE_AT_ONCE = Policies(misfire=Misfire.SKIP, grace=0)
LATE = NOON + 3 * DAY + HOUR
"""Three daily times after the first noon are over, and were not claimed."""


def history(store: Store, key: str = "digest") -> Sequence[Occurrence]:
    """Return all occurrences of the schedule in the ledger, oldest first."""
    return list(reversed(store.ledger.find("ada", key, limit=1_000)))


def outcomes(store: Store, made: Schedule) -> list[int]:
    """Return each nominal time that the ledger accounts for, with ranges spelled out."""
    found: list[int] = []
    for one in history(store):
        if one.range_end is None:
            found.append(one.nominal_at)
        else:
            times = fires(made.cron, made.timezone, one.nominal_at - 1, one.range_end)
            assert len(times) == one.count
            found += times
    return found


def call_for_own_time(at: int) -> NewOccurrence:
    """Return an outside caller's request for one of the schedule's own times."""
    return replace(by_hand(at=at), cron=EACH_MINUTE, origin=SCHEDULE_ORIGIN)


def expect_range(store: Store, reason: Reason, count: int = 3) -> None:
    """Expect one range that begins a day after noon and has `days` days."""
    kept = only(history(store))
    assert (kept.state, kept.reason) == (State.CANCELLED, reason)
    assert (kept.nominal_at, kept.range_end) == (NOON + DAY, NOON + count * DAY)
    assert kept.count == count


class AccountingConformance(StoreSuite):
    """A put, a pause and a delete first account for the times that were due."""

    def test_m07_a_change_of_timing_accounts_for_what_was_due(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule(cron="0 6 * * *"), now=LATE)
        expect_range(store, Reason.SUPERSEDED)

    def test_m07_disabling_accounts_for_what_was_due(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule(enabled=False), now=LATE)
        expect_range(store, Reason.DISABLED)

    def test_m07_deleting_accounts_for_what_was_due(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.delete("ada", "digest", now=LATE)
        expect_range(store, Reason.SCHEDULE_DELETED)

    def test_m07_one_time_that_was_due_is_a_range_of_one(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.delete("ada", "digest", now=NOON + DAY)
        expect_range(store, Reason.SCHEDULE_DELETED, count=1)

    def test_m07_where_nothing_was_due_nothing_is_recorded(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule(cron="0 6 * * *"), now=NOON + HOUR)
        store.schedules.delete("ada", "digest", now=NOON + HOUR)
        assert list(history(store)) == []

    def test_m07_what_was_claimed_is_not_accounted_for_again(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        drain(store, SOON + DAY)
        store.schedules.delete("ada", "digest", now=NOON + DAY)
        assert only(history(store)).range_end is None

    def test_m07_a_row_that_was_set_back_is_accounted_for_from_where_it_had_fired(
        self, store: Store
    ) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        drain(store, SOON + DAY)
        store.index.upsert(replace(row(at=NOON + DAY), redefined_at=made.redefined_at))
        store.schedules.delete("ada", "digest", now=LATE)
        missed = history(store)[-1]
        assert (missed.nominal_at, missed.range_end, missed.count) == (
            NOON + 2 * DAY,
            NOON + 3 * DAY,
            2,
        )

    def test_m07_a_change_that_moves_no_time_cancels_nothing(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(replace(schedule(), input="new"), now=NOON + DAY)
        assert list(history(store)) == []
        assert only(drain(store, SOON + DAY)).nominal_at == NOON + DAY

    def test_a01_a_pause_is_a_range_that_the_resume_closes(self, store: Store) -> None:
        store.schedules.put(schedule(enabled=False), now=NOON)
        store.schedules.put(schedule(), now=LATE)
        expect_range(store, Reason.PAUSED)

    def test_a01_a_pause_after_a_change_counts_no_time_that_was_claimed_ahead(
        self, store: Store
    ) -> None:
        """The change sets the mark back to its own time. The pause covers the claimed time."""
        self.needs(Capability.LOOK_AHEAD)
        every_other = schedule(cron="*/2 * * * *")
        store.schedules.put(every_other, now=NOON)
        drain(store, SOON, ahead=5 * MINUTE)
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=SOON + 1)
        store.schedules.put(replace(made, enabled=False), now=SOON + 2)
        end = SOON + 7 * MINUTE
        store.schedules.put(made, now=end)
        assert outcomes(store, made) == fires(EACH_MINUTE, None, NOON, end)

    def test_a01_a_pause_with_an_end_that_was_disabled_is_closed_by_a_resume(
        self, store: Store
    ) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        paused = store.schedules.put(pause(made, "", LATE - DAY, NOON + 1), now=NOON + 1)
        store.schedules.put(replace(paused, enabled=False), now=NOON + 2)
        store.schedules.put(made, now=LATE)
        expect_range(store, Reason.PAUSED)

    def test_a01_a_delete_closes_a_pause(self, store: Store) -> None:
        store.schedules.put(schedule(enabled=False), now=NOON)
        store.schedules.delete("ada", "digest", now=LATE)
        expect_range(store, Reason.PAUSED)

    def test_a01_a_delete_closes_a_pause_that_has_an_end(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        store.schedules.put(pause(made, "", LATE + DAY, NOON), now=NOON + 1)
        store.schedules.delete("ada", "digest", now=LATE)
        expect_range(store, Reason.PAUSED)

    def test_a01_a_pause_without_a_fire_time_leaves_no_range(self, store: Store) -> None:
        store.schedules.put(schedule(enabled=False), now=NOON)
        store.schedules.put(schedule(), now=NOON + HOUR)
        assert list(history(store)) == []

    def test_a01_a_pause_that_was_edited_meanwhile_is_counted_by_both(self, store: Store) -> None:
        store.schedules.put(schedule(enabled=False), now=NOON)
        store.schedules.put(schedule(cron="0 6 * * *", enabled=False), now=NOON + DAY)
        store.schedules.put(schedule(cron="0 6 * * *"), now=NOON + 3 * DAY)
        assert [(o.reason, o.count) for o in history(store)] == [
            (Reason.PAUSED, 1),
            (Reason.PAUSED, 2),
        ]

    @pytest.mark.parametrize("resumed_at", [5 * MINUTE, 12 * MINUTE])
    def test_a01_a_pause_with_an_end_counts_no_time_that_was_claimed_ahead(
        self, store: Store, resumed_at: int
    ) -> None:
        """A resume before the end counts none, nor does a change after the end."""
        self.needs(Capability.LOOK_AHEAD)
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, SOON, ahead=2 * MINUTE)
        store.schedules.put(pause(made, "", NOON + 10 * MINUTE, SOON), now=SOON)
        drain(store, SOON + resumed_at)
        store.schedules.put(made, now=SOON + resumed_at)
        end = SOON + 15 * MINUTE
        drain(store, end)
        assert outcomes(store, made) == fires(EACH_MINUTE, None, NOON, end)

    def test_a01_what_a_lost_row_missed_is_accounted_for_by_a_rebuild(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.index.remove("ada", "digest")
        store.rebuild(now=LATE)
        expect_range(store, Reason.MISSED)

    def test_a01_what_a_lost_row_missed_is_accounted_for_by_the_last_run_of_its_limit(
        self, store: Store
    ) -> None:
        """No rebuild comes by before: afterwards the schedule is done, and has no row."""
        made = store.schedules.put(schedule(policies=Policies(max_runs=1)), now=NOON)
        store.index.remove("ada", "digest")
        start(store, by_hand(at=LATE), LATE)
        assert list(store.check(now=LATE)) == []
        missed, ran = history(store)
        assert (missed.state, missed.reason) == (State.CANCELLED, Reason.QUOTA)
        assert ran.state is State.PROCESSING
        assert outcomes(store, made) == [*fires(made.cron, None, NOON, LATE), LATE]

    def test_a01_two_rebuilds_account_for_each_time_once(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        for now in (LATE, LATE + 3 * DAY):
            store.index.remove("ada", "digest")
            store.rebuild(now=now)
        assert outcomes(store, made) == fires(made.cron, None, NOON, LATE + 3 * DAY)

    def test_a01_each_time_of_a_long_life_has_one_outcome(self, store: Store) -> None:
        on, off = schedule(cron=EACH_MINUTE), schedule(cron=EACH_MINUTE, enabled=False)
        made = store.schedules.put(on, now=NOON)
        for occurrence in drain(store, SOON + 2 * MINUTE):
            store.ledger.settle(
                start(store, occurrence, NOON + 2 * MINUTE), SUCCEEDED, now=NOON + 2 * MINUTE
            )
        store.schedules.put(off, now=NOON + 5 * MINUTE)
        store.schedules.put(on, now=NOON + 9 * MINUTE)
        drain(store, SOON + 30 * MINUTE)
        store.schedules.delete("ada", "digest", now=NOON + 33 * MINUTE)
        wanted = fires(EACH_MINUTE, None, NOON, NOON + 33 * MINUTE)
        assert outcomes(store, made) == wanted

    def test_a01_what_a_caller_brings_hides_no_time_before_it(self, store: Store) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        start(store, call_for_own_time(NOON + 3 * MINUTE), NOON + 3 * MINUTE)
        drain(store, SOON + 5 * MINUTE)
        assert outcomes(store, made) == fires(EACH_MINUTE, None, NOON, NOON + 5 * MINUTE)

    def test_a01_what_a_claim_finds_missed_leaves_out_what_a_caller_brought(
        self, store: Store
    ) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        start(store, call_for_own_time(NOON + 3 * MINUTE), NOON + 3 * MINUTE)
        drain(store, SOON + HOUR)
        assert outcomes(store, made) == fires(EACH_MINUTE, None, NOON, NOON + HOUR)

    def test_a01_where_everything_is_missed_it_leaves_out_what_a_caller_brought(
        self, store: Store
    ) -> None:
        """Nothing is on time between two times: the claim makes nothing but ranges."""
        made = store.schedules.put(schedule(cron="*/10 * * * *", policies=LATE_AT_ONCE), now=NOON)
        start(store, call_for_own_time(NOON + 30 * MINUTE), NOON + 30 * MINUTE)
        drain(store, NOON + HOUR + 5 * MINUTE)
        assert outcomes(store, made) == fires(made.cron, None, NOON, NOON + HOUR)

    @pytest.mark.parametrize("minute", [1, 2, 3])
    def test_a01_what_is_due_at_the_last_run_leaves_out_that_run(
        self, store: Store, minute: int
    ) -> None:
        """A caller brings one of the due times. The others are over the quota."""
        once = schedule(cron=EACH_MINUTE, policies=Policies(max_runs=1))
        made = store.schedules.put(once, now=NOON)
        start(store, call_for_own_time(NOON + minute * MINUTE), SOON + 3 * MINUTE)
        assert outcomes(store, made) == fires(EACH_MINUTE, None, NOON, NOON + 3 * MINUTE)
        assert all(one.id for one in history(store))

    @pytest.mark.parametrize("minute", [1, 2, 40])
    def test_j13_a_time_that_a_range_accounts_for_is_brought_by_nobody(
        self, store: Store, minute: int
    ) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, SOON + HOUR)
        answer = refused(run(store, call_for_own_time(NOON + minute * MINUTE), SOON + HOUR))
        assert (answer.verdict, answer.reason) == ("duplicate", Reason.MISSED)
        assert outcomes(store, made) == fires(EACH_MINUTE, None, NOON, NOON + HOUR)

    @pytest.mark.parametrize("ended", [False, True])
    def test_j13_a_run_by_hand_within_a_range_hides_it_from_no_caller(
        self, store: Store, *, ended: bool
    ) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, SOON + HOUR)
        running = start(store, by_hand(at=NOON + 5 * MINUTE), SOON + HOUR)
        if ended:
            store.ledger.settle(running, SUCCEEDED, now=SOON + HOUR)
        answer = refused(run(store, call_for_own_time(NOON + 6 * MINUTE), SOON + HOUR))
        assert (answer.verdict, answer.reason) == ("duplicate", Reason.MISSED)

    @pytest.mark.parametrize("behind", [1, 3 * MINUTE, 5 * MINUTE])
    @pytest.mark.parametrize("made_again", [False, True])
    def test_j13_a_change_behind_a_claims_clock_doubles_no_time_of_its_range(
        self, store: Store, behind: int, made_again: bool
    ) -> None:
        """The change has an earlier time, but comes later. Its expression names the same times."""
        policies, claimed_at = Policies(misfire=Misfire.SKIP, grace=0), NOON + 5 * MINUTE
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=policies), now=NOON)
        assert drain(store, claimed_at + 1) == []
        if made_again:
            store.schedules.delete("ada", "digest", now=claimed_at - behind)
        wanted = schedule(cron="*/1 * * * *", policies=policies)
        made = store.schedules.put(wanted, now=claimed_at - behind)
        drain(store, NOON + 7 * MINUTE)
        assert outcomes(store, made) == fires(EACH_MINUTE, None, NOON, NOON + 7 * MINUTE)

    def test_j13_a_schedule_made_again_fires_nothing_twice(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        drain(store, SOON + DAY)
        store.schedules.delete("ada", "digest", now=SOON + DAY)
        made = store.schedules.put(schedule(), now=SOON + DAY)
        store.index.upsert(replace(row(at=NOON + DAY), redefined_at=made.redefined_at))
        assert drain(store, SOON + DAY) == []
