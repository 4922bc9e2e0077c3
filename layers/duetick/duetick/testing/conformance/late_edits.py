"""T-06: a change after the claim wins. The begin sees it."""

from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.expression import fires
from duetick.domain.pausing import pause
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    DAY,
    EACH_MINUTE,
    MINUTE,
    NOON,
    SECOND,
    SKIP_MISSED,
    SOON,
    schedule,
)
from duetick.testing.conformance.suite import (
    Capability,
    StoreSuite,
    begun,
    drain,
    must,
    only,
    recorded,
    refused,
    start,
)


def claim_a_day_later(store: Store) -> Occurrence:
    """Claim the first occurrence of a schedule that was put at noon."""
    store.schedules.put(schedule(), now=NOON)
    return only(drain(store, SOON + DAY))


def expect_cancelled(store: Store, occurrence: Occurrence, reason: Reason) -> None:
    """Expect that the occurrence does not begin, and that its record has the reason."""
    answer = refused(store.ledger.begin(occurrence, now=SOON + DAY + 30 * SECOND))
    assert (answer.verdict, answer.reason) == ("cancelled", reason)
    kept = recorded(store, occurrence)
    assert (kept.state, kept.reason, kept.attempts) == (State.CANCELLED, reason, 0)


def expect_each(store: Store, minutes: int) -> None:
    """Expect each minute after noon in the ledger once."""
    found: list[int] = []
    for one in store.ledger.find("ada", "digest", limit=100):
        end = one.nominal_at if one.range_end is None else one.range_end
        times = fires(one.cron, None, one.nominal_at - 1, end)
        assert len(times) == one.count
        found += times
    assert sorted(found) == [NOON + n * MINUTE for n in range(1, minutes + 1)]


class LateEditConformance(StoreSuite):
    """Late edits, pauses and deletes."""

    def test_t06_a_pause_after_the_claim_wins(self, store: Store) -> None:
        occurrence = claim_a_day_later(store)
        store.schedules.put(schedule(enabled=False), now=NOON + DAY + SECOND)
        expect_cancelled(store, occurrence, Reason.DISABLED)

    def test_m02_a_pause_before_the_last_time_that_was_claimed_ahead_leaves_no_row(
        self, store: Store
    ) -> None:
        made = store.schedules.put(schedule(cron="at(2027-03-01T12:05:00)"), now=NOON)
        drain(store, NOON + 4 * MINUTE, ahead=2 * MINUTE)
        now = NOON + 4 * MINUTE + SECOND
        store.schedules.put(pause(made, "", None, now), now=now)
        assert store.index.get("ada", "digest") is None

    def test_t06_a_delete_after_the_claim_wins(self, store: Store) -> None:
        occurrence = claim_a_day_later(store)
        store.schedules.delete("ada", "digest", now=NOON + DAY + SECOND)
        expect_cancelled(store, occurrence, Reason.SCHEDULE_DELETED)

    def test_t06_a_change_of_timing_after_the_claim_wins(self, store: Store) -> None:
        occurrence = claim_a_day_later(store)
        store.schedules.put(schedule(cron="0 6 * * *"), now=NOON + DAY + SECOND)
        expect_cancelled(store, occurrence, Reason.SUPERSEDED)

    def test_t06_a_schedule_made_anew_does_not_run_the_old_claim(self, store: Store) -> None:
        occurrence = claim_a_day_later(store)
        store.schedules.delete("ada", "digest", now=NOON + DAY + SECOND)
        store.schedules.put(schedule(), now=NOON + DAY + SECOND)
        expect_cancelled(store, occurrence, Reason.SUPERSEDED)

    def test_t06_a_pause_and_resume_at_once_does_not_run_the_old_claim(self, store: Store) -> None:
        occurrence = claim_a_day_later(store)
        store.schedules.put(schedule(enabled=False), now=NOON + DAY)
        store.schedules.put(schedule(), now=NOON + DAY)
        expect_cancelled(store, occurrence, Reason.SUPERSEDED)

    def test_t06_an_edit_that_leaves_the_time_standing_runs_anew(self, store: Store) -> None:
        occurrence = claim_a_day_later(store)
        changed = store.schedules.put(replace(schedule(), action="other"), now=NOON + DAY + SECOND)
        answer = begun(store.ledger.begin(occurrence, now=SOON + DAY + 30 * SECOND))
        found = must(answer.schedule)
        assert (found.action, found.version) == ("other", changed.version)

    def test_t06_an_edit_ahead_of_a_time_that_still_stands_runs_it(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.schedules.put(schedule(), now=NOON)
        occurrence = only(drain(store, SOON + DAY - MINUTE, ahead=2 * MINUTE))
        changed = schedule(cron="0 12,18 * * *")
        store.schedules.put(changed, now=NOON + DAY - 30 * SECOND)
        start(store, occurrence, SOON + DAY)

    def test_a01_a_pause_ahead_counts_no_time_twice(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        on = schedule(cron=EACH_MINUTE)
        store.schedules.put(on, now=NOON)
        drain(store, SOON + SECOND, ahead=2 * MINUTE)
        store.schedules.put(replace(on, enabled=False), now=NOON + 2 * SECOND)
        store.schedules.put(on, now=NOON + 9 * MINUTE)
        paused = only([o for o in store.ledger.find("ada", "digest") if o.range_end is not None])
        assert (paused.nominal_at, paused.count) == (NOON + 3 * MINUTE, 7)

    def test_a01_an_edit_ahead_loses_no_time_that_is_new(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.schedules.put(schedule(cron="*/2 * * * *"), now=NOON)
        drain(store, SOON + MINUTE, ahead=5 * MINUTE)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON + 2 * MINUTE + SECOND)
        for minute in range(3, 7):
            drain(store, SOON + minute * MINUTE)
        times = sorted(o.nominal_at for o in store.ledger.find("ada", "digest"))
        assert times == [NOON + n * MINUTE for n in range(2, 7)]

    def test_a01_what_a_claim_finds_missed_leaves_out_what_was_claimed_ahead_of_an_edit(
        self, store: Store
    ) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.schedules.put(schedule(cron="*/2 * * * *"), now=NOON)
        drain(store, SOON, ahead=5 * MINUTE)
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=SKIP_MISSED), now=SOON + SECOND)
        drain(store, SOON + 10 * MINUTE)
        expect_each(store, 10)

    def test_a01_a_pause_that_is_edited_ahead_loses_no_time_that_is_new(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.schedules.put(schedule(cron="*/2 * * * *"), now=NOON)
        drain(store, SOON, ahead=5 * MINUTE)
        store.schedules.put(schedule(cron="*/2 * * * *", enabled=False), now=SOON + 1)
        store.schedules.put(schedule(cron=EACH_MINUTE, enabled=False), now=SOON + 2)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=SOON + 8 * MINUTE)
        expect_each(store, 8)

    @pytest.mark.parametrize("changed_at", [7, 12])
    def test_a01_an_edit_that_pauses_too_loses_no_time_that_is_new(
        self, store: Store, changed_at: int
    ) -> None:
        """The pause is resumed, or ends by itself long after the claimed time."""
        self.needs(Capability.LOOK_AHEAD)
        store.schedules.put(schedule(cron="*/2 * * * *"), now=NOON)
        for claimed in drain(store, SOON, ahead=5 * MINUTE):
            store.ledger.begin(claimed, now=SOON + SECOND)
        made = schedule(cron=EACH_MINUTE)
        until = SOON + 9 * MINUTE
        store.schedules.put(pause(made, "", until, SOON + 2 * SECOND), now=SOON + 2 * SECOND)
        for minute in range(8, changed_at):
            drain(store, SOON + minute * MINUTE)
        store.schedules.put(made, now=SOON + changed_at * MINUTE)
        expect_each(store, changed_at)
