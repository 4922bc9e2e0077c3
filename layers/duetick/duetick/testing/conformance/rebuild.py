"""I-16: a check compares records and rows. A rebuild repairs the differences."""

from dataclasses import replace

import pytest

from duetick.core.repair import repair
from duetick.core.store import Store
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    BAD,
    DAILY,
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
from duetick.testing.conformance.suite import Capability, StoreSuite, drain, must, only


class RebuildConformance(StoreSuite):
    """I-16: a check compares records and rows. A rebuild repairs the differences."""

    def test_i16_a_sound_store_has_no_differences(self, store: Store) -> None:
        store.schedules.put(schedule("on"), now=NOON)
        store.schedules.put(schedule("off", enabled=False), now=NOON)
        assert list(store.check(now=NOON)) == []

    def test_i16_a_missing_row_is_found_and_mended(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.index.remove("ada", "digest")
        found = only(store.check(now=NOON))
        assert (found.user_id, found.key, found.problem) == ("ada", "digest", "unindexed")
        assert store.rebuild(now=NOON + HOUR) == 1
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + DAY
        assert list(store.check(now=NOON)) == []

    def test_i16_a_row_of_a_disabled_schedule_is_found_and_mended(self, store: Store) -> None:
        store.schedules.put(schedule(enabled=False), now=NOON)
        store.index.upsert(row())
        assert only(store.check(now=NOON)).problem == "stray"
        store.rebuild(now=NOON - MINUTE)
        assert store.index.get("ada", "digest") is None
        assert list(store.check(now=NOON)) == []

    def test_i16_a_row_that_says_something_else_is_found_and_mended(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.index.upsert(row(cron="30 12 * * *", at=NOON + 30 * MINUTE))
        assert only(store.check(now=NOON)).problem == "stale"
        store.rebuild(now=NOON + MINUTE)
        assert must(store.index.get("ada", "digest")).cron == DAILY
        assert list(store.check(now=NOON)) == []

    def test_i13_a_rebuild_brings_back_what_can_be_read_by_now(self, store: Store) -> None:
        for key, cron in (("good", EACH_MINUTE), ("other", EACH_MINUTE)):
            store.schedules.put(schedule(key, cron=cron), now=NOON)
            kept = must(store.index.get("ada", key))
            store.index.upsert(replace(kept, timezone="Gone/Zone"))
        store.index.upsert(row("alone", cron=BAD))
        drain(store, SOON + MINUTE)
        found = repair(store, SOON + 2 * MINUTE)
        assert (found.differences, found.unreadable, found.mended) == (3, 3, 0)
        found = repair(store, SOON + 2 * MINUTE, dry_run=False)
        assert (found.differences, found.unreadable, found.mended) == (3, 1, 2)
        assert must(store.index.get("ada", "good")).next_fire_at == NOON + 2 * MINUTE
        assert [one.key for one in store.index.unreadable()] == ["alone"]

    def test_i16_a_row_that_differs_in_its_zone_alone_is_found(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, timezone="UTC"))
        assert made.timezone is None
        assert only(store.check(now=NOON)).problem == "stale"

    def test_i16_a_finished_schedule_is_no_difference(self, store: Store) -> None:
        store.schedules.put(schedule(cron="at(2027-03-01T13:00:00)"), now=NOON)
        drain(store, SOON + HOUR)
        assert store.index.get("ada", "digest") is None
        assert list(store.check(now=SOON + HOUR)) == []
        assert store.rebuild(now=SOON + HOUR) == 0

    @pytest.mark.parametrize("at", [NOON, NOON + 30 * SECOND, NOON + MINUTE, NOON + HOUR])
    def test_i16_a_schedule_whose_last_time_is_claimed_ahead_is_no_difference(
        self, store: Store, at: int
    ) -> None:
        self.needs(Capability.LOOK_AHEAD)
        last = "at(2027-03-01T12:01:30)"
        store.schedules.put(schedule(cron=last), now=NOON)
        assert len(drain(store, NOON, ahead=2 * MINUTE)) == 1
        assert list(store.check(now=at)) == []
        assert store.rebuild(now=at) == 0
        assert store.index.get("ada", "digest") is None

    def test_i16_a_row_that_was_lost_after_a_claim_ahead_is_mended_beyond_that(
        self, store: Store
    ) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, SOON, ahead=5 * MINUTE)
        store.index.remove("ada", "digest")
        assert only(store.check(now=SOON)).problem == "unindexed"
        assert store.rebuild(now=SOON) == 1
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 6 * MINUTE

    def test_i16_a_row_that_was_lost_is_missing_before_its_last_time_and_after(
        self, store: Store
    ) -> None:
        store.schedules.put(schedule(cron="at(2027-03-01T13:00:00)"), now=NOON)
        store.index.remove("ada", "digest")
        for now in (NOON, NOON + HOUR):
            assert only(store.check(now=now)).problem == "unindexed"
        assert store.rebuild(now=NOON + HOUR) == 1
        kept = only(store.ledger.find("ada", "digest"))
        assert (kept.nominal_at, kept.reason) == (NOON + HOUR, Reason.MISSED)
        assert list(store.check(now=NOON + HOUR)) == []

    def test_m03_what_became_unreadable_is_kept_not_indexed_and_reported(
        self, store: Store
    ) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, timezone="Gone/Zone"))
        assert drain(store, SOON + DAY) == []
        assert only(store.check(now=SOON + DAY)).problem == "unreadable"
        assert store.index.get("ada", "digest") is None
        assert must(store.schedules.get("ada", "digest")).cron == made.cron


class DriftConformance(StoreSuite):
    """I-16: a row waits for the time that its record requires, and for no other."""

    def test_i16_a_row_that_waits_too_long_is_found_and_mended(self, store: Store) -> None:
        drift(store, NOON + 30 * DAY)
        assert only(store.check(now=NOON)).problem == "stale"
        assert store.rebuild(now=NOON) == 1
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + DAY
        assert list(store.check(now=NOON)) == []

    def test_i16_a_row_that_waits_for_a_time_nobody_named_is_found(self, store: Store) -> None:
        drift(store, NOON + HOUR)
        assert only(store.check(now=NOON)).problem == "stale"

    def test_i16_every_row_is_looked_at(self, store: Store) -> None:
        for number in range(3):
            drift(store, NOON + 30 * DAY, f"k{number}")
        assert [one.key for one in store.check(now=NOON)] == ["k0", "k1", "k2"]
        assert store.rebuild(now=NOON) == 3

    def test_i16_what_is_due_is_no_difference(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        assert list(store.check(now=NOON + 3 * DAY)) == []
        assert store.rebuild(now=NOON + 3 * DAY) == 0

    def test_i16_what_was_claimed_ahead_is_no_difference(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        drain(store, SOON, ahead=10 * MINUTE)
        assert list(store.check(now=SOON)) == []
        assert store.rebuild(now=SOON) == 0

    def test_a01_what_a_drifted_row_missed_is_accounted_for_by_a_rebuild(
        self, store: Store
    ) -> None:
        drift(store, NOON + 30 * DAY)
        store.rebuild(now=NOON + 3 * DAY + HOUR)
        missed = only(store.ledger.find("ada", "digest"))
        assert (missed.state, missed.reason) == (State.CANCELLED, Reason.MISSED)
        assert (missed.nominal_at, missed.range_end) == (NOON + DAY, NOON + 3 * DAY)

    def test_a01_a_row_that_is_set_back_into_a_range_fires_nothing_of_it(
        self, store: Store
    ) -> None:
        drift(store, NOON + 30 * DAY)
        store.rebuild(now=NOON + 3 * DAY + HOUR)
        drift(store, NOON + 2 * DAY)
        assert drain(store, NOON + 3 * DAY + HOUR) == []
        assert len(store.ledger.find("ada", "digest")) == 1


def drift(store: Store, next_fire_at: int, key: str = "digest") -> None:
    """Put a daily schedule, and set its row to another time."""
    store.schedules.put(schedule(key, timezone="UTC"), now=NOON)
    kept = must(store.index.get("ada", key))
    store.index.upsert(replace(kept, next_fire_at=next_fire_at))
