"""Schedules and their index rows: every change moves both."""

from dataclasses import replace
from unittest import mock

import pytest

from duetick.core.store import Store
from duetick.domain.errors import InvalidSchedule
from duetick.domain.expression import zones
from duetick.domain.schedule import Principal
from duetick.testing.conformance.samples import (
    DAILY,
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SOON,
    TWO_TRIES,
    hostile,
    row,
    schedule,
)
from duetick.testing.conformance.suite import StoreSuite, drain, must, only


class MirroringConformance(StoreSuite):
    """M-01 to M-05, I-16 and I-17."""

    def test_m01_a_new_schedule_is_indexed_at_its_next_time(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        assert made.next_fire_at == NOON + DAY
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + DAY

    def test_m01_the_answer_of_a_put_is_what_get_returns(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        assert store.schedules.get("ada", "digest") == made

    def test_m01_a_record_comes_back_whole(self, store: Store) -> None:
        wanted = replace(
            schedule(timezone="Europe/Berlin", policies=TWO_TRIES, external_id="project-7"),
            input={"to": ["ada@example.org"], "n": 1, "x": 0.5, "none": None, "日": "本"},
            principal=Principal("bob", "org", {"role": "admin"}),
            labels={"team": "ops"},
        )
        made = store.schedules.put(wanted, now=NOON)
        kept = must(store.schedules.get("ada", "digest"))
        assert kept == made
        assert (kept.input, kept.principal, kept.labels, kept.policies) == (
            wanted.input,
            wanted.principal,
            wanted.labels,
            wanted.policies,
        )

    def test_m01_a_record_of_sixty_kilobytes_comes_back_whole(self, store: Store) -> None:
        store.schedules.put(replace(schedule(), input="x" * 60_000), now=NOON)
        assert must(store.schedules.get("ada", "digest")).input == "x" * 60_000

    def test_m01_a_change_of_expression_moves_the_row(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule(cron="30 12 * * *"), now=NOON + MINUTE)
        moved = must(store.index.get("ada", "digest"))
        assert (moved.cron, moved.next_fire_at) == ("30 12 * * *", NOON + 30 * MINUTE)

    def test_m01_a_change_of_zone_moves_the_row(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule(timezone="Asia/Tokyo"), now=NOON)
        moved = must(store.index.get("ada", "digest"))
        assert (moved.timezone, moved.next_fire_at) == ("Asia/Tokyo", NOON + 15 * HOUR)

    def test_m01_a_deleted_schedule_has_no_row(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        assert store.schedules.delete("ada", "digest", now=NOON) is True
        assert store.schedules.get("ada", "digest") is None
        assert store.index.get("ada", "digest") is None

    def test_m01_deleting_what_is_not_there_says_so(self, store: Store) -> None:
        assert store.schedules.delete("ada", "digest", now=NOON) is False

    def test_m01_each_change_counts_as_a_version(self, store: Store) -> None:
        first = store.schedules.put(schedule(), now=NOON)
        second = store.schedules.put(schedule(cron="30 12 * * *"), now=NOON)
        assert (first.version, second.version) == (1, 2)

    def test_m01_a_change_of_input_reaches_the_record_and_moves_no_time(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        changed = store.schedules.put(replace(schedule(), input=[1]), now=NOON + HOUR)
        assert (changed.input, changed.next_fire_at) == ([1], NOON + DAY)

    def test_m01_a_change_of_policies_reaches_the_row(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule(policies=TWO_TRIES), now=NOON)
        assert must(store.index.get("ada", "digest")).policies == TWO_TRIES

    def test_m02_a_disabled_schedule_is_kept_without_a_row(self, store: Store) -> None:
        made = store.schedules.put(schedule(enabled=False), now=NOON)
        assert made.next_fire_at is None
        assert store.schedules.get("ada", "digest") == made
        assert store.index.get("ada", "digest") is None

    def test_m02_disabling_takes_the_row_away(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule(enabled=False), now=NOON)
        assert store.index.get("ada", "digest") is None
        assert drain(store, SOON + DAY) == []

    def test_m02_enabling_indexes_a_fresh_time(self, store: Store) -> None:
        store.schedules.put(schedule(enabled=False), now=NOON)
        enabled = store.schedules.put(schedule(), now=NOON + 3 * DAY + HOUR)
        assert enabled.next_fire_at == NOON + 4 * DAY
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 4 * DAY

    def test_m03_what_can_no_longer_be_read_can_be_paused(self, store: Store) -> None:
        made = store.schedules.put(schedule(timezone="Asia/Tokyo"), now=NOON)
        with mock.patch.object(zones, "ZONE_NAMES", zones.ZONE_NAMES - {"Asia/Tokyo"}):
            paused = store.schedules.put(replace(made, enabled=False), now=NOON + MINUTE)
            assert (paused.enabled, paused.version) == (False, made.version + 1)
            assert store.index.get("ada", "digest") is None
            assert drain(store, SOON + DAY) == []
            with pytest.raises(ValueError, match="Asia/Tokyo"):
                store.schedules.put(made, now=SOON + DAY)

    @pytest.mark.parametrize("cron", ["never", "0 12 * *", "0 12 * * * *", "61 * * * *", ""])
    def test_m03_an_expression_that_cannot_be_read_is_refused(
        self, store: Store, cron: str
    ) -> None:
        with pytest.raises(ValueError, match=r".{10}"):
            store.schedules.put(schedule(cron=cron), now=NOON)
        assert store.schedules.get("ada", "digest") is None
        assert store.index.get("ada", "digest") is None

    @pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd"])
    def test_m03_a_zone_that_is_not_there_is_refused(self, store: Store, zone: str) -> None:
        with pytest.raises(ValueError, match=r".{10}"):
            store.schedules.put(schedule(timezone=zone), now=NOON)
        assert store.schedules.get("ada", "digest") is None

    def test_m03_a_refused_change_leaves_what_was(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        with pytest.raises(ValueError, match=r".{10}"):
            store.schedules.put(schedule(cron="never"), now=NOON + HOUR)
        assert store.schedules.get("ada", "digest") == made
        assert must(store.index.get("ada", "digest")).cron == DAILY

    def test_c04_a_single_time_in_the_past_is_refused(self, store: Store) -> None:
        with pytest.raises(InvalidSchedule):
            store.schedules.put(schedule(cron="at(2027-03-01T11:59:00)"), now=NOON)

    def test_c05_a_rate_below_a_minute_is_refused_with_its_reason(self, store: Store) -> None:
        with pytest.raises(InvalidSchedule, match=r"resolves to the minute.*look-ahead.*60 sec"):
            store.schedules.put(schedule(cron="rate(59 seconds)"), now=NOON)
        assert store.schedules.get("ada", "digest") is None
        assert store.schedules.put(schedule(cron="rate(60 seconds)"), now=NOON).next_fire_at

    def test_m04_declaring_the_same_again_changes_nothing(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        again = store.schedules.put(schedule(), now=NOON + HOUR)
        assert again == made
        assert store.schedules.get("ada", "digest") == made

    def test_m01_an_input_that_only_python_takes_for_the_same_is_a_change(
        self, store: Store
    ) -> None:
        put = [
            store.schedules.put(replace(schedule(), input={"on": on, "n": number}), now=NOON)
            for on, number in [(1, 2), (True, 2), (True, 2.0)]
        ]
        assert [one.version for one in put] == [1, 2, 3]
        assert repr(must(store.schedules.get("ada", "digest")).input) == repr(put[-1].input)

    def test_m04_an_input_in_another_order_is_the_same(self, store: Store) -> None:
        store.schedules.put(replace(schedule(), input={"a": 1, "b": 2}), now=NOON)
        again = replace(schedule(), input={"b": 2, "a": 1})
        assert store.schedules.put(again, now=NOON).version == 1

    def test_m04_declaring_the_same_again_leaves_what_is_due(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule(), now=NOON + DAY + MINUTE)
        assert only(drain(store, SOON + DAY + MINUTE)).nominal_at == NOON + DAY

    def test_a02_a_schedule_made_again_is_defined_after_the_one_before(self, store: Store) -> None:
        """Even at one time: an occurrence of the first schedule is not one of the second."""
        made = store.schedules.put(schedule(), now=NOON)
        store.schedules.delete("ada", "digest", now=NOON)
        assert store.schedules.put(schedule(), now=NOON).redefined_at > made.redefined_at

    def test_m04_the_anchor_stays_when_the_expression_changes(self, store: Store) -> None:
        made = store.schedules.put(schedule(cron="rate(7 minutes)"), now=NOON)
        changed = store.schedules.put(schedule(cron="rate(5 minutes)"), now=NOON + 8 * MINUTE)
        assert changed.anchor == made.anchor == NOON
        assert changed.next_fire_at == NOON + 10 * MINUTE

    def test_t09_an_interval_does_not_drift(self, store: Store) -> None:
        store.schedules.put(schedule(cron="rate(7 minutes)"), now=NOON)
        drain(store, SOON + 7 * MINUTE + 90_000)
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 14 * MINUTE

    def test_m05_a_row_without_a_record_is_legal(self, store: Store) -> None:
        store.index.upsert(row())
        assert list(store.check(now=NOON)) == []
        assert store.rebuild(now=NOON) == 0
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON

    @hostile
    def test_m01_a_hostile_id_comes_back_as_it_was(self, store: Store, name: str) -> None:
        made = store.schedules.put(schedule(name, user=name), now=NOON)
        assert store.schedules.get(name, name) == made
        assert only(store.schedules.list(name).schedules) == made
        assert only(drain(store, SOON + DAY)).key == name
