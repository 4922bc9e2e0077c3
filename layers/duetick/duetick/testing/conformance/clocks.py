"""A-01 and J-13 if clocks differ, and if a change stalls between its clock and its write."""

from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.expression import fires
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import Record
from duetick.domain.states import Reason
from duetick.testing.conformance.accounting import history, outcomes
from duetick.testing.conformance.samples import (
    ALLOW,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    schedule,
)
from duetick.testing.conformance.suite import StoreSuite, drain, start

AT_ONCE = Policies(misfire=Misfire.SKIP, grace=0)
"""A time that is not claimed at its very instant is missed."""

EVEN, ODD = "*/2 * * * *", "1-59/2 * * * *"
CHANGED_AT = NOON + 150 * SECOND


def miss_ahead(store: Store, cron: str, until: int, policies: Policies = AT_ONCE) -> Record:
    """Put a schedule. A tick whose clock is ahead then misses each of its times after noon."""
    made = store.schedules.put(schedule(cron=cron, policies=policies), now=NOON)
    assert drain(store, until + 1) == []
    return made


def minutes_accounted_for(store: Store) -> list[int]:
    """Return the times that the ledger accounts for, as minutes after noon, in order."""
    found: list[int] = []
    for one in history(store):
        end = one.nominal_at if one.range_end is None else one.range_end
        times = fires(one.cron, None, one.nominal_at - 1, end)
        assert len(times) == one.count
        found += times
    return sorted((time - NOON) // MINUTE for time in found)


class ClocksConformance(StoreSuite):
    """A change takes effect at its own time, even if a claim went beyond that time."""

    def test_a01_a_pause_with_an_end_counts_nothing_that_a_range_holds(self, store: Store) -> None:
        made = miss_ahead(store, EACH_MINUTE, NOON + 5 * MINUTE)
        until = NOON + 10 * MINUTE
        store.schedules.put(pause(made, "", until, CHANGED_AT), now=CHANGED_AT)
        drain(store, NOON + 12 * MINUTE)
        store.schedules.put(made, now=NOON + 12 * MINUTE)
        assert minutes_accounted_for(store) == list(range(1, 13))

    def test_a01_a_pause_without_an_end_counts_nothing_that_a_range_holds(
        self, store: Store
    ) -> None:
        made = miss_ahead(store, EACH_MINUTE, NOON + 5 * MINUTE)
        off = store.schedules.put(pause(made, "", None, CHANGED_AT), now=CHANGED_AT)
        store.schedules.put(resume(off), now=NOON + 12 * MINUTE)
        assert minutes_accounted_for(store) == list(range(1, 13))

    def test_a01_a_pause_that_is_edited_under_a_range_loses_no_time_that_is_new(
        self, store: Store
    ) -> None:
        made = miss_ahead(store, EVEN, NOON + 6 * MINUTE)
        off = store.schedules.put(replace(made, enabled=False), now=CHANGED_AT)
        store.schedules.put(replace(off, cron=EACH_MINUTE), now=CHANGED_AT + 1)
        store.schedules.put(replace(made, cron=EACH_MINUTE), now=NOON + 8 * MINUTE)
        assert minutes_accounted_for(store) == [2, 3, 4, 5, 6, 7, 8]

    def test_a01_a_change_of_timing_under_a_range_loses_no_time_that_is_new(
        self, store: Store
    ) -> None:
        made = miss_ahead(store, EVEN, NOON + 6 * MINUTE)
        store.schedules.put(replace(made, cron=ODD), now=CHANGED_AT)
        drain(store, NOON + 8 * MINUTE)
        assert minutes_accounted_for(store) == [2, 3, 4, 5, 6, 7]

    def test_a01_what_is_new_under_a_range_fires_on_time(self, store: Store) -> None:
        made = miss_ahead(store, EVEN, NOON + 6 * MINUTE)
        store.schedules.put(replace(made, cron=EACH_MINUTE), now=CHANGED_AT)
        fired = [
            one.nominal_at - NOON
            for minute in (3, 4, 5, 6, 7)
            for one in drain(store, NOON + minute * MINUTE)
        ]
        assert fired == [3 * MINUTE, 5 * MINUTE, 7 * MINUTE]

    def test_a01_a_second_change_under_a_range_loses_and_doubles_no_time(
        self, store: Store
    ) -> None:
        made = miss_ahead(store, EVEN, NOON + 6 * MINUTE)
        store.schedules.put(replace(made, cron=ODD), now=CHANGED_AT)
        store.schedules.put(replace(made, cron=EACH_MINUTE), now=CHANGED_AT + 1)
        drain(store, NOON + 8 * MINUTE)
        assert minutes_accounted_for(store) == [2, 3, 4, 5, 6, 7, 8]

    def test_a01_a_schedule_made_again_under_a_range_loses_and_doubles_no_time(
        self, store: Store
    ) -> None:
        made = miss_ahead(store, EVEN, NOON + 6 * MINUTE)
        store.schedules.delete("ada", "digest", now=CHANGED_AT)
        store.schedules.put(replace(made, cron=EACH_MINUTE), now=CHANGED_AT + 1)
        drain(store, NOON + 8 * MINUTE)
        assert minutes_accounted_for(store) == [2, 3, 4, 5, 6, 7, 8]

    def test_a01_what_a_range_told_keeps_its_reason_when_a_change_divides_it(
        self, store: Store
    ) -> None:
        made = miss_ahead(store, EVEN, NOON + 6 * MINUTE)
        store.schedules.put(replace(made, cron=ODD), now=CHANGED_AT)
        assert {(one.reason, one.redefined_at) for one in history(store)} == {
            (Reason.MISSED, made.redefined_at)
        }
        assert len({one.id for one in history(store)}) == len(history(store))

    @pytest.mark.parametrize("behind", [1, MINUTE, 210 * SECOND])
    def test_a01_what_ended_by_a_clock_ahead_is_made_by_nobody_again(
        self, store: Store, behind: int
    ) -> None:
        """A store may keep ended occurrences elsewhere."""
        made = store.schedules.put(schedule(cron=EVEN, policies=ALLOW), now=NOON)
        for minute in range(1, 9):
            now = NOON + minute * MINUTE
            for one in drain(store, now):
                store.ledger.settle(start(store, one, now), SUCCEEDED, now=now)
        at = NOON + 8 * MINUTE - behind
        store.schedules.put(replace(made, cron=EACH_MINUTE), now=at)
        assert drain(store, NOON + 9 * MINUTE + 1)
        effect = (at - NOON) // MINUTE
        assert minutes_accounted_for(store) == sorted({2, 4, 6, 8} | set(range(effect + 1, 10)))

    def test_a01_a_change_behind_the_one_before_takes_effect_after_it(self, store: Store) -> None:
        """The earlier change has accounted for the times that were due before it."""
        made = store.schedules.put(schedule(cron="5-59/5 * * * *"), now=NOON)
        first = store.schedules.put(replace(made, cron=EVEN), now=NOON + 3 * MINUTE)
        second = store.schedules.put(replace(made, cron=EACH_MINUTE), now=NOON + MINUTE)
        assert second.redefined_at == first.redefined_at + 1
        assert second.next_fire_at == NOON + 4 * MINUTE
        drain(store, NOON + 5 * MINUTE)
        assert minutes_accounted_for(store) == [4, 5]

    @pytest.mark.parametrize("behind", [30 * SECOND, MINUTE])
    def test_a01_a_rebuild_behind_a_claims_clock_loses_and_doubles_no_time(
        self, store: Store, behind: int
    ) -> None:
        made = miss_ahead(store, EACH_MINUTE, NOON + 5 * MINUTE)
        store.index.remove("ada", "digest")
        store.rebuild(now=NOON + 5 * MINUTE - behind)
        drain(store, NOON + 9 * MINUTE)
        assert outcomes(store, made) == fires(EACH_MINUTE, None, NOON, NOON + 9 * MINUTE)

    def test_a01_a_pause_that_is_asked_for_again_counts_from_its_beginning(
        self, store: Store
    ) -> None:
        """The pause has the same end, so the second request moves no time."""
        made, until = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON), NOON + HOUR
        store.schedules.put(pause(made, "one", until, NOON + 1), now=NOON + 1)
        at = NOON + 5 * MINUTE
        store.schedules.put(pause(made, "another", until, at), now=at)
        store.schedules.put(made, now=NOON + 9 * MINUTE)
        assert minutes_accounted_for(store) == list(range(1, 10))

    def test_a01_a_pause_whose_window_was_taken_away_counts_nothing_that_is_due(
        self, store: Store
    ) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        paused = store.schedules.put(pause(made, "", NOON + HOUR, NOON + 1), now=NOON + 1)
        store.schedules.put(replace(paused, policies=made.policies), now=NOON + 3 * MINUTE)
        store.schedules.delete("ada", "digest", now=NOON + 9 * MINUTE)
        assert minutes_accounted_for(store) == list(range(1, 10))

    def test_a01_a_change_far_behind_takes_effect_later_and_divides_little(
        self, store: Store
    ) -> None:
        """A clock that is wrong by days does not fill the ledger: its change takes effect later."""
        made = miss_ahead(store, EACH_MINUTE, NOON + DAY)
        later = store.schedules.put(replace(made, cron="0 * * * *"), now=NOON + MINUTE)
        assert NOON + DAY - HOUR < later.redefined_at <= NOON + DAY
        drain(store, NOON + DAY + HOUR)
        assert minutes_accounted_for(store) == [*range(1, 24 * 60 + 1), 25 * 60]
        assert len(history(store)) < 100
