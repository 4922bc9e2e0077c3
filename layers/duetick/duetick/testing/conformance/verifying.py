"""A-02: verify compares the dated definitions with the ledger, and finds times that do not add
up.
"""

from dataclasses import replace

import pytest

from duetick.core.audit import audit
from duetick.core.explain import explain
from duetick.core.store import Index, Store
from duetick.core.verify import Progress, Verified, verify, verify_hour
from duetick.domain import rows
from duetick.domain.attempts import SUCCEEDED, Outcome
from duetick.domain.expression import digest_of, rules_of
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import IndexRow, NewOccurrence
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
from duetick.testing.conformance.suite import StoreSuite, drain, must, only, run, start

BERLIN = "Europe/Berlin"
HOURLY = "0 * * * *"
LATER = NOON + 10 * MINUTE
REJECTED = Outcome(State.FAILED, Reason.REJECTED, "no such action")


def each_minute(store: Store, key: str = "digest", *, until: int = LATER) -> None:
    """Put a schedule of each minute, and claim its times up to an instant, a second late."""
    store.schedules.put(schedule(key, cron=EACH_MINUTE), now=NOON)
    for at in range(NOON + MINUTE, until + 1, MINUTE):
        drain(store, at + 1_000)


def of(store: Store, now: int = LATER, since: int = 0) -> Verified:
    """Return the verification of everything up to now."""
    return verify(store, since, now, now=now)


def problems(store: Store, now: int = LATER, since: int = 0) -> list[tuple[str, int, int, int]]:
    """Return the findings of one schedule: the problem, and its times in minutes after noon."""
    found = of(store, now, since)
    return [
        (one.problem, (one.first - NOON) // MINUTE, (one.last - NOON) // MINUTE, one.counted)
        for _, one in found.faults
    ]


def poison_hourly(store: Store, policies: Policies | None = None, cron: str = HOURLY) -> None:
    """Put an hourly schedule at noon, whose row cannot be read at one o'clock."""
    store.schedules.put(schedule(cron=cron, policies=policies), now=NOON)
    kept = must(store.index.get("ada", "digest"))
    store.index.upsert(replace(kept, timezone="Gone/Zone"))
    drain(store, NOON + HOUR + 1_000)


def outcome(store: Store, hour: int, now: int) -> str:
    """Return the verdict of explain about an hour after noon."""
    return explain(store, "ada", "digest", NOON + hour * HOUR, now).verdict


class VerifyConformance(StoreSuite):
    """A-02: verify finds each time without an outcome, and each outcome without a time."""

    def test_a02_what_ticks_claimed_adds_up(self, store: Store) -> None:
        each_minute(store)
        found = of(store)
        assert (found.times, found.schedules, found.under_way) == (10, 1, 10)
        assert (found.found, found.place, found.unverified) == ({}, "", 0)

    def test_a02_a_span_leaves_out_what_lies_before_and_after(self, store: Store) -> None:
        each_minute(store)
        found = verify(store, NOON + 3 * MINUTE, NOON + 7 * MINUTE, now=LATER)
        assert (found.times, found.found) == (4, {})

    def test_a02_a_due_time_that_no_tick_has_seen_is_not_missing_yet(self, store: Store) -> None:
        each_minute(store, until=NOON + 5 * MINUTE)
        assert of(store).found == {}

    def test_a02_downtime_is_one_range(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, NOON + DAY)
        found = of(store, NOON + DAY)
        assert (found.times, found.found) == (1_440, {})

    def test_a02_a_time_that_the_row_was_moved_past_is_missing(self, store: Store) -> None:
        each_minute(store, until=NOON + 3 * MINUTE)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, next_fire_at=NOON + 8 * MINUTE))
        for at in range(8, 11):
            drain(store, NOON + at * MINUTE + 1_000)
        assert problems(store) == [("missing", 4, 7, 4)]

    def test_a02_a_row_that_was_removed_leaves_its_times_missing(self, store: Store) -> None:
        each_minute(store, until=NOON + 3 * MINUTE)
        store.index.remove("ada", "digest")
        assert problems(store) == [("missing", 4, 10, 7)]

    def test_a02_an_outcome_that_no_definition_names_is_found(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        wrong = NewOccurrence(
            *("ada", "digest", made.cron, None, NOON + 5 * MINUTE),
            origin="schedule",
            flow="reminders",
            due_at=LATER,
            redefined_at=made.redefined_at,
        )
        run(store, wrong, LATER)
        assert problems(store) == [("unexpected", 5, 5, 1)]

    def test_a02_a_row_of_other_times_than_its_definition_is_found(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, cron="0 13 * * *", next_fire_at=NOON + HOUR))
        assert problems(store) == [("undefined", 10, 10, 1)]

    def test_a02_rows_without_a_record_are_counted_and_not_verified(self, store: Store) -> None:
        store.index.upsert(row())
        drain(store, SOON)
        found = of(store)
        assert (found.schedules, found.unverified, found.found) == (1, 1, {})

    def test_a02_an_edit_begins_other_times(self, store: Store) -> None:
        each_minute(store, until=NOON + 4 * MINUTE)
        made = must(store.schedules.get("ada", "digest"))
        store.schedules.put(replace(made, cron="*/5 * * * *"), now=NOON + 4 * MINUTE + 5)
        drain(store, LATER + 1)
        found = of(store, LATER + 1)
        assert (found.times, found.found) == (6, {})

    def test_a02_a_schedule_that_was_deleted_is_verified_up_to_its_end(self, store: Store) -> None:
        each_minute(store, until=NOON + 4 * MINUTE)
        store.schedules.delete("ada", "digest", now=NOON + 6 * MINUTE + 5)
        found = of(store)
        assert (found.schedules, found.times, found.found) == (1, 6, {})
        again = of(store, LATER + DAY, since=LATER)
        assert (again.times, again.found) == (0, {})

    def test_a01_a_pause_is_a_range_when_it_ends(self, store: Store) -> None:
        each_minute(store, until=NOON + 4 * MINUTE)
        made = must(store.schedules.get("ada", "digest"))
        paused = store.schedules.put(
            pause(made, "", None, NOON + 5 * MINUTE), now=NOON + 5 * MINUTE
        )
        assert of(store).found == {}
        store.schedules.put(resume(paused), now=NOON + 8 * MINUTE)
        for at in (9, 10):
            drain(store, NOON + at * MINUTE + 1_000)
        found = of(store)
        assert (found.times, found.found) == (10, {})

    def test_a01_the_audit_makes_a_range_of_a_pause_that_ended_by_itself(
        self, store: Store
    ) -> None:
        each_minute(store, until=NOON + 4 * MINUTE)
        made = must(store.schedules.get("ada", "digest"))
        end = NOON + 8 * MINUTE
        store.schedules.put(pause(made, "", end, NOON + 4 * MINUTE + 5), now=NOON + 4 * MINUTE + 5)
        for at in (8, 9, 10):
            drain(store, NOON + at * MINUTE + 1_000)
        assert of(store).found == {}
        audit(store, LATER + 2_000)
        found = of(store)
        assert (found.times, found.found) == (10, {})
        assert must(store.schedules.get("ada", "digest")).pause is None

    def test_a02_a_limit_that_is_used_up_ends_the_times(self, store: Store) -> None:
        limited = schedule(cron=EACH_MINUTE, policies=Policies(max_runs=1))
        store.schedules.put(limited, now=NOON)
        fired = only(drain(store, NOON + MINUTE + 1_000))
        held = start(store, fired, NOON + MINUTE + 2_000)
        store.ledger.settle(held, SUCCEEDED, now=NOON + MINUTE + 3_000)
        assert of(store).found == {}

    def test_a02_a_run_by_hand_that_is_the_last_of_a_paused_schedule_owes_nothing_yet(
        self, store: Store
    ) -> None:
        limited = schedule(cron=EACH_MINUTE, policies=Policies(max_runs=1))
        made = store.schedules.put(limited, now=NOON)
        paused = store.schedules.put(pause(made, "", None, NOON + 5), now=NOON + 5)
        held = start(store, by_hand(at=NOON + 3 * MINUTE), NOON + 3 * MINUTE)
        store.ledger.settle(held, SUCCEEDED, now=NOON + 3 * MINUTE + 5)
        assert of(store).found == {}
        store.schedules.put(resume(paused), now=NOON + 5 * MINUTE + 5)
        found = of(store)
        assert (found.times, found.found) == (5, {})

    def test_a02_a_limit_ends_no_time_that_a_clock_ahead_has_dated(self, store: Store) -> None:
        """The last run begins by a clock that is behind that of the last definition."""
        limited = schedule(cron=EACH_MINUTE, policies=Policies(max_runs=1))
        store.schedules.put(limited, now=NOON)
        store.follow_zone("ada", "digest", now=NOON + MINUTE + 10_000)
        start(store, by_hand(at=NOON + 50_000), NOON + 50_000)
        assert problems(store) == []

    def test_a02_a_run_that_is_given_back_begins_the_times_again(self, store: Store) -> None:
        limited = schedule(cron=EACH_MINUTE, policies=Policies(max_runs=1))
        store.schedules.put(limited, now=NOON)
        fired = only(drain(store, NOON + MINUTE + 1_000))
        held = start(store, fired, NOON + MINUTE + 2_000)
        store.ledger.settle(held, REJECTED, now=NOON + 4 * MINUTE + 5)
        for at in range(5, 11):
            drain(store, NOON + at * MINUTE + 1_000)
        found = of(store)
        assert (found.times, found.found) == (10, {})

    def test_a02_a_row_that_cannot_be_read_owes_nothing_until_it_is_mended(
        self, store: Store
    ) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE, timezone=BERLIN), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, timezone="Gone/Zone"))
        drain(store, NOON + MINUTE + 1_000)
        assert of(store).found == {}
        store.index.restore("ada", "digest", now=NOON + 5 * MINUTE + 5)
        for at in range(6, 11):
            drain(store, NOON + at * MINUTE + 1_000)
        found = of(store)
        assert (found.times, found.found) == (10, {})

    @pytest.mark.parametrize(
        ("misfire", "fire"), [(Misfire.SKIP, []), (Misfire.LATEST, [4]), (Misfire.ALL, [2, 3, 4])]
    )
    def test_j09_the_times_of_an_unreadable_row_are_a_misfire_once_it_is_mended(
        self, store: Store, misfire: Misfire, fire: list[int]
    ) -> None:
        """One at one o'clock is poisoned, and it is half past four when an operator mends it."""
        mended = NOON + 4 * HOUR + 30 * MINUTE
        poison_hourly(store, Policies(misfire=misfire))
        assert outcome(store, 3, mended) == "unreadable"
        assert of(store, mended).found == {}
        assert store.index.restore("ada", "digest", now=mended)
        foreseen = [outcome(store, hour, mended) for hour in (1, 2, 3, 4)]
        assert foreseen == [
            "poisoned",
            *("will_fire" if n in fire else "missed" for n in (2, 3, 4)),
        ]
        assert of(store, mended).found == {}
        drain(store, mended + 1_000)
        single = [one for one in store.ledger.find("ada", "digest") if one.range_end is None]
        assert [(one.nominal_at - NOON) // HOUR for one in reversed(single)] == [1, *fire]
        found = of(store, mended + 1_000)
        assert (found.times, found.under_way, found.found) == (4, len(fire), {})
        left = [n for n in (2, 3, 4) if n not in fire]
        assert all(outcome(store, hour, mended + 1_000) == "missed" for hour in left)

    def test_o02_a_mended_row_fires_no_time_of_a_pause_that_stands_no_more(
        self, store: Store
    ) -> None:
        poison_hourly(store, cron="0 12-16 * * *")
        asked, ended, mended = (NOON + n * 30 * MINUTE for n in (7, 9, 13))
        store.pauses.pause("flow:reminders", by="ops", now=asked)
        store.pauses.resume("flow:reminders", now=ended)
        assert store.pauses.close_over(mended) == 1
        store.index.restore("ada", "digest", now=mended)
        assert drain(store, mended + 1_000) == []
        verdicts = [outcome(store, hour, mended + 1_000) for hour in (1, 2, 3, 4)]
        assert verdicts == ["poisoned", "missed", "missed", "paused"]
        assert of(store, mended + 1_000).found == {}

    def test_a02_a_row_that_was_mended_owes_the_times_of_its_defect(self, store: Store) -> None:
        mended = NOON + 4 * HOUR + 30 * MINUTE
        poison_hourly(store)
        store.index.restore("ada", "digest", now=mended)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, next_fire_at=NOON + 5 * HOUR))
        assert problems(store, mended) == [("missing", 120, 240, 3)]
        assert outcome(store, 3, mended) == "unaccounted"

    def test_a02_a_row_that_is_unreadable_again_owes_nothing_until_it_is_mended(
        self, store: Store
    ) -> None:
        """No tick has claimed it between: the times that the first restore left are its own."""
        mended, later = NOON + 4 * HOUR + 30 * MINUTE, NOON + 8 * HOUR + 30 * MINUTE
        poison_hourly(store)
        store.index.restore("ada", "digest", now=mended)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, timezone="Gone/Zone"))
        drain(store, mended + 1_000)
        for now in (mended + 2_000, later):
            assert of(store, now).found == {}
            assert of(store, now, since=NOON + 5 * HOUR).found == {}
        assert [outcome(store, hour, later) for hour in (2, 3, 6)] == [
            "poisoned",
            *["unreadable"] * 2,
        ]
        store.index.restore("ada", "digest", now=later)
        drain(store, later + 1_000)
        found = of(store, later + 1_000)
        assert (found.times, found.found) == (8, {})

    def test_a02_a_time_that_was_lost_before_its_row_was_unreadable_again_is_missing(
        self, store: Store
    ) -> None:
        mended = NOON + 4 * HOUR + 30 * MINUTE
        poison_hourly(store)
        store.index.restore("ada", "digest", now=mended)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, timezone="Gone/Zone", next_fire_at=NOON + 4 * HOUR))
        drain(store, mended + 1_000)
        assert problems(store, mended + HOUR) == [("missing", 120, 180, 2)]

    def test_a02_a_row_that_an_upsert_mends_misses_what_lies_behind_it(self, store: Store) -> None:
        poison_hourly(store)
        good = IndexRow("ada", "digest", HOURLY, None, NOON + 4 * HOUR)
        Index(store.shelf, lambda: NOON + 3 * HOUR + MINUTE).upsert(good)
        assert of(store, NOON + 3 * HOUR + MINUTE).found == {}
        assert outcome(store, 2, NOON + 4 * HOUR) == "missed"

    def test_a02_a_row_that_an_upsert_mends_owes_its_times_from_then_on(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, cron="nonsense"))
        drain(store, NOON + MINUTE + 1_000)
        store.now = lambda: NOON + 5 * MINUTE + 5
        mended = Index(store.shelf, store.now)
        mended.upsert(replace(kept, next_fire_at=NOON + 6 * MINUTE))
        drain(store, NOON + 7 * MINUTE + 1_000)
        assert of(store).found == {}
        mended.upsert(replace(kept, next_fire_at=NOON + 10 * MINUTE))
        drain(store, NOON + 10 * MINUTE + 1_000)
        assert of(store).found == {"missing": 1}

    def test_a02_a_definition_names_the_rules_of_its_zone_and_the_store_keeps_them(
        self, store: Store
    ) -> None:
        store.schedules.put(schedule(timezone=BERLIN), now=NOON)
        account = store.shelf.account("ada", "digest", 0, LATER)
        digest = must(only(account.definitions).zone)
        assert digest == digest_of(BERLIN)
        assert store.shelf.rules(digest) == rules_of(BERLIN)
        assert store.shelf.rules("none") is None

    def test_a02_new_rules_of_a_zone_move_the_next_time_and_nothing_past(
        self, store: Store
    ) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE, timezone=BERLIN), now=NOON)
        drain(store, NOON + MINUTE + 1_000)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, next_fire_at=NOON + 9 * MINUTE))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "digest_of", lambda _zone: "other")
            assert audit(store, NOON + MINUTE + 2_000).old_tzdata == 1
        moved = must(store.index.get("ada", "digest"))
        assert moved.next_fire_at == NOON + 2 * MINUTE
        for at in range(2, 11):
            drain(store, NOON + at * MINUTE + 1_000)
        found = of(store)
        assert (found.times, found.found) == (10, {})

    def test_a02_new_rules_of_a_paused_schedule_are_dated(self, store: Store) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE, timezone=BERLIN), now=NOON)
        paused = store.schedules.put(pause(made, "", None, NOON + 5), now=NOON + 5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "digest_of", lambda _zone: "other")
            assert audit(store, NOON + MINUTE + 5).old_tzdata == 0
        account = store.shelf.account("ada", "digest", 0, LATER)
        assert [one.standing for one in account.definitions] == ["active", "paused", "paused"]
        assert of(store, NOON + 5 * MINUTE).found == {}
        store.schedules.put(resume(paused), now=NOON + 5 * MINUTE + 5)
        for at in range(6, 11):
            drain(store, NOON + at * MINUTE + 1_000)
        found = of(store)
        assert (found.times, found.found) == (10, {})

    def test_a02_new_rules_are_dated_also_while_a_row_is_due(self, store: Store) -> None:
        """The tick that claims it computes its next time by them, whenever it comes."""
        store.schedules.put(schedule(cron=EACH_MINUTE, timezone=BERLIN), now=NOON)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "digest_of", lambda _zone: "other")
            audit(store, NOON + 3 * MINUTE + 5)
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + MINUTE
        account = store.shelf.account("ada", "digest", 0, LATER)
        assert [one.since for one in account.definitions] == [NOON, NOON + 3 * MINUTE + 5]
        for at in range(4, 11):
            drain(store, NOON + at * MINUTE + 1_000)
        found = of(store)
        assert (found.times, found.found) == (10, {})

    def test_a02_new_rules_of_a_zone_leave_what_was_claimed_ahead(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE, timezone=BERLIN), now=NOON)
        drain(store, NOON + 1_000, ahead=3 * MINUTE)
        assert not store.follow_zone("ada", "digest", now=NOON + 2_000)
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 4 * MINUTE
        drain(store, LATER + 1_000)
        assert of(store).found == {}

    def test_a01_a_pause_that_ended_after_the_last_run_is_closed_too(self, store: Store) -> None:
        limited = schedule(cron=EACH_MINUTE, policies=Policies(max_runs=1))
        made = store.schedules.put(limited, now=NOON)
        end = NOON + 3 * MINUTE
        store.schedules.put(pause(made, "", end, NOON + 5), now=NOON + 5)
        fired = only(drain(store, end + 1_000))
        held = start(store, fired, end + 2_000)
        store.ledger.settle(held, SUCCEEDED, now=end + 3_000)
        assert store.close_pause("ada", "digest", now=end + 4_000)
        assert not store.close_pause("ada", "digest", now=end + 5_000)
        assert must(store.schedules.get("ada", "digest")).done_at is not None
        assert of(store).found == {}

    def test_a02_a_walk_goes_on_where_it_stopped(self, store: Store) -> None:
        keys = [f"k{number}" for number in range(7)]
        for key in keys:
            store.schedules.put(schedule(key, cron=EACH_MINUTE), now=NOON)
        store.schedules.delete("ada", "k3", now=NOON + 5)
        drain(store, NOON + MINUTE + 1_000)
        seen, place, parts = 0, "", 0
        while parts == 0 or place:
            found = verify(store, 0, LATER, now=LATER, place=place, most=2)
            seen, place, parts = seen + found.times, found.place, parts + 1
        assert (seen, parts) == (6, 4)

    def test_a02_each_hour_verifies_a_part_and_the_next_one_goes_on(self, store: Store) -> None:
        for number in range(5):
            store.schedules.put(schedule(f"k{number}", cron=EACH_MINUTE), now=NOON)
        drain(store, NOON + MINUTE + 1_000)
        first = verify_hour(store, LATER, most=3, may_go_on=lambda: True)
        halfway = Progress.load(store)
        assert (first.schedules, halfway.verified_until, halfway.until) == (3, None, LATER)
        second = verify_hour(store, LATER + HOUR, most=3, may_go_on=lambda: True)
        done = Progress.load(store)
        assert (second.schedules, second.until) == (2, LATER)
        assert (done.verified_until, done.finished_at, done.schedules) == (LATER, LATER + HOUR, 5)
        third = verify_hour(store, LATER + HOUR, most=None, may_go_on=lambda: True)
        assert (third.since, third.schedules) == (NOON + 2 * MINUTE - 1, 5)

    def test_a02_a_pass_counts_its_faults_over_its_hours(self, store: Store) -> None:
        for number in range(2):
            store.schedules.put(schedule(f"k{number}", cron=EACH_MINUTE), now=NOON)
        drain(store, NOON + MINUTE + 1_000)
        for number in range(2):
            kept = must(store.index.get("ada", f"k{number}"))
            store.index.upsert(replace(kept, next_fire_at=LATER + MINUTE))
        counted = []
        for most in (1, None, None):
            verify_hour(store, LATER, most=most, may_go_on=lambda: True)
            found = Progress.load(store)
            counted.append((found.faults, found.verified_faults))
        assert counted[:2] == [(1, None), (0, 2)]

    def test_a02_a_time_that_was_claimed_after_its_hour_is_verified_in_the_next(
        self, store: Store
    ) -> None:
        each_minute(store, until=NOON + 5 * MINUTE)
        assert verify_hour(store, LATER, most=None, may_go_on=lambda: True).found == {}
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, next_fire_at=LATER + MINUTE))
        late = verify_hour(store, LATER + 1_000, most=None, may_go_on=lambda: True)
        assert (late.since, late.found) == (NOON + 6 * MINUTE - 1, {"missing": 1})

    def test_a02_what_was_claimed_ahead_of_an_edit_is_named_by_what_was_before(
        self, store: Store
    ) -> None:
        made = store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, NOON + 4 * MINUTE + 10_000, ahead=2 * MINUTE)
        at = NOON + 4 * MINUTE + 30_000
        store.schedules.put(replace(made, cron="30 * * * *"), now=at)
        assert of(store, LATER, since=at + 10_000).found == {}

    def test_a02_a_walk_over_deleted_schedules_goes_on_where_it_stopped(self, store: Store) -> None:
        for number in range(9):
            store.schedules.put(schedule(f"k{number}", cron=EACH_MINUTE), now=NOON)
            store.schedules.delete("ada", f"k{number}", now=NOON + 2 * MINUTE + number)
        seen, place, parts = 0, "", 0
        while (parts == 0 or place) and parts < 20:
            found = verify(store, 0, LATER, now=LATER, place=place, most=2)
            seen, place, parts = seen + found.times, found.place, parts + 1
        assert (seen, place) == (18, "")

    def test_a02_a_disabled_schedule_stays_so_when_its_pause_is_over(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        paused = store.schedules.put(pause(made, "", NOON + HOUR, NOON + 1), now=NOON + 1)
        store.schedules.put(replace(paused, enabled=False), now=NOON + 2)
        audit(store, NOON + 2 * HOUR)
        assert not must(store.schedules.get("ada", "digest")).enabled

    def test_a02_a_row_that_cannot_be_read_owes_nothing_in_later_hours(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, cron="garbage"))
        drain(store, NOON + MINUTE + 1_000)
        assert of(store, NOON + 3 * HOUR, since=NOON + HOUR).found == {}

    def test_a02_nothing_is_verified_of_a_span_that_is_over(self, store: Store) -> None:
        each_minute(store, until=NOON + 3 * MINUTE)
        assert verify(store, LATER, NOON, now=LATER).schedules == 0

    def test_a02_a_run_that_is_given_back_under_a_pause_owes_nothing_yet(
        self, store: Store
    ) -> None:
        limited = schedule(cron=EACH_MINUTE, policies=Policies(max_runs=1))
        store.schedules.put(limited, now=NOON)
        held = start(store, only(drain(store, NOON + MINUTE + 1_000)), NOON + MINUTE + 2_000)
        made = must(store.schedules.get("ada", "digest"))
        asked = NOON + MINUTE + 3_000
        store.schedules.put(pause(made, "", NOON + HOUR, asked), now=asked)
        store.ledger.settle(held, REJECTED, now=LATER - MINUTE)
        assert of(store).found == {}

    def test_a02_a_note_is_kept_until_another_takes_its_place(self, store: Store) -> None:
        assert store.shelf.note("one") is None
        store.shelf.keep_note("one", 'ß "1"')
        store.shelf.keep_note("other", "2")
        store.shelf.keep_note("one", "3")
        assert (store.shelf.note("one"), store.shelf.note("other")) == ("3", "2")
