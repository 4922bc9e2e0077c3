"""A claim is all or nothing, and a row that cannot be read harms no other."""

from dataclasses import replace
from unittest import mock

import pytest

from duetick.core.store import Store
from duetick.domain.errors import PoisonedRow
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    BAD,
    DAY,
    EACH_MINUTE,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    due_rows,
    keys,
    row,
    schedule,
)
from duetick.testing.conformance.suite import Capability, StoreSuite, drain, must, only, refused

UNREADABLE = (
    "",
    "0 12 * *",
    "61 * * * *",
    "0 12 * * * *",
    "'; --",
    "日本",
    "9" * 400,
    "rate(0 days)",
)


class AtomicityConformance(StoreSuite):
    """I-12, and I-16 if a write fails."""

    def test_i12_a_failed_write_surfaces_as_the_error_that_it_is(self, store: Store) -> None:
        self.needs(Capability.FAILING_WRITES)
        store.index.upsert(row())
        with self.failing_writes(store) as error, pytest.raises(error):
            store.index.claim_due(SOON)

    def test_i12_after_a_failed_claim_the_rows_are_still_due(self, store: Store) -> None:
        self.needs(Capability.FAILING_WRITES)
        due_rows(store, 3)
        with self.failing_writes(store) as error, pytest.raises(error):
            store.index.claim_due(SOON)
        assert len(drain(store, SOON)) == 3

    def test_i12_a_failed_put_moves_neither_record_nor_row(self, store: Store) -> None:
        """The range of its due times cannot be written, so nothing else is written."""
        self.needs(Capability.FAILING_WRITES)
        store.schedules.put(schedule(), now=NOON)
        before = store.schedules.get("ada", "digest"), store.index.get("ada", "digest")
        changed = schedule(cron="0 13 * * *")
        with self.failing_writes(store) as error, pytest.raises(error):
            store.schedules.put(changed, now=NOON + DAY)
        assert (store.schedules.get("ada", "digest"), store.index.get("ada", "digest")) == before

    def test_i12_a_failed_delete_leaves_record_and_row(self, store: Store) -> None:
        self.needs(Capability.FAILING_WRITES)
        store.schedules.put(schedule(), now=NOON)
        before = store.schedules.get("ada", "digest"), store.index.get("ada", "digest")
        with self.failing_writes(store) as error, pytest.raises(error):
            store.schedules.delete("ada", "digest", now=NOON + DAY)
        assert (store.schedules.get("ada", "digest"), store.index.get("ada", "digest")) == before


class PoisonConformance(StoreSuite):
    """I-13 and G-06: a poisoned row is reported, delays no other, and returns with one call."""

    def test_i13_a_poison_row_never_delays_a_good_one(self, store: Store) -> None:
        for number in range(12):
            store.index.upsert(row(f"bad{number}", cron=BAD, at=NOON - MINUTE))
        store.index.upsert(row("good"))
        assert keys(store.index.claim_due(SOON, 10)) == ["good"]

    def test_i13_a_zone_that_cannot_be_read_is_poison_too(self, store: Store) -> None:
        store.index.upsert(row("bad", timezone="Mars/Olympus", at=NOON - MINUTE))
        store.index.upsert(row("good"))
        assert keys(drain(store, SOON)) == ["good"]
        assert keys(store.index.unreadable()) == ["bad"]

    @pytest.mark.parametrize("cron", UNREADABLE)
    def test_i13_whatever_text_a_row_holds_a_claim_survives_it(
        self, store: Store, cron: str
    ) -> None:
        store.index.upsert(row("bad", cron=cron))
        assert drain(store, SOON) == []
        assert keys(store.index.unreadable()) == ["bad"]

    def test_i13_a_poison_row_leaves_the_due_range(self, store: Store) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        assert store.index.get("ada", "digest") is None

    def test_g06_a_poison_row_is_listed_with_its_reason(self, store: Store) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        listed = only(store.index.unreadable())
        assert (listed.cron, listed.reason) == (BAD, Reason.POISONED)
        assert listed.error

    def test_g06_a_poison_row_is_recorded_in_the_ledger(self, store: Store) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        kept = only(store.ledger.find("ada", "digest"))
        assert (kept.state, kept.reason, kept.nominal_at) == (State.DEAD, Reason.POISONED, NOON)
        assert kept.error

    def test_j13_a_poisoned_occurrence_never_begins(self, store: Store) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        kept = only(store.ledger.find("ada", "digest"))
        assert refused(store.ledger.begin(kept, now=NOON)).verdict == "duplicate"

    def test_i13_a_mended_row_comes_back_with_one_upsert(self, store: Store) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        store.index.upsert(row(at=NOON + DAY))
        assert store.index.unreadable() == []
        assert only(drain(store, SOON + DAY)).nominal_at == NOON + DAY

    def test_j13_what_was_poisoned_is_done_with_and_so_is_what_lies_before_it(
        self, store: Store
    ) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        store.index.upsert(row(cron=EACH_MINUTE, at=NOON - MINUTE))
        assert drain(store, SOON) == []

    def test_a01_a_poisoned_time_is_accounted_for_once(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, timezone="Gone/Zone"))
        drain(store, SOON + MINUTE)
        store.index.remove("ada", "digest")
        store.rebuild(now=SOON + 3 * MINUTE)
        found = store.ledger.find("ada", "digest")
        spans = [(o.nominal_at, o.range_end, o.count) for o in found]
        assert spans == [
            (NOON + 2 * MINUTE, NOON + 3 * MINUTE, 2),
            (NOON + MINUTE, None, 1),
        ]

    def test_i13_a_row_that_still_cannot_be_read_is_not_restored(self, store: Store) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        with pytest.raises(PoisonedRow):
            store.index.restore("ada", "digest", now=NOON + DAY)
        assert keys(store.index.unreadable()) == ["digest"]

    def test_i13_a_row_that_can_be_read_again_is_due_for_what_it_missed(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        with mock.patch("duetick.domain.firing.next_fire", side_effect=ValueError("no such zone")):
            assert drain(store, SOON + MINUTE) == []
        assert keys(store.index.unreadable()) == ["digest"]
        assert store.index.restore("ada", "digest", now=NOON + 5 * MINUTE) is True
        assert list(store.index.unreadable()) == []
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 2 * MINUTE

    def test_i13_a_row_is_restored_as_its_record_says(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        kept = must(store.index.get("ada", "digest"))
        store.index.upsert(replace(kept, cron=BAD))
        drain(store, SOON + MINUTE)
        assert store.index.restore("ada", "digest", now=NOON + 5 * MINUTE) is True
        assert must(store.index.get("ada", "digest")).cron == EACH_MINUTE
        assert must(store.schedules.get("ada", "digest")).defect is None
        assert store.check(now=NOON + 5 * MINUTE) == []

    def test_i13_a_change_of_no_time_leaves_a_row_poisoned(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        store.schedules.put(replace(schedule(), input="new"), now=SOON)
        assert keys(store.index.unreadable()) == ["digest"]
        assert must(store.schedules.get("ada", "digest")).defect

    def test_i13_a_delete_forgets_the_poison(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        store.schedules.delete("ada", "digest", now=SOON)
        assert (*store.index.unreadable(), *store.check(now=SOON)) == ()

    def test_i13_poison_without_a_record_is_told_and_left(self, store: Store) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        assert only(store.check(now=SOON)).problem == "unreadable"
        assert store.rebuild(now=SOON) == 0
        assert keys(store.index.unreadable()) == ["digest"]

    def test_t01_what_was_poisoned_first_is_listed_first(self, store: Store) -> None:
        for key, now in (("b", SOON), ("a", SOON + SECOND), ("c", SOON + SECOND)):
            store.index.upsert(row(key, cron=BAD))
            drain(store, now)
        assert keys(store.index.unreadable()) == ["b", "a", "c"]
        assert keys(store.index.unreadable(1)) == ["b"]

    def test_i13_restoring_what_is_not_poisoned_says_so(self, store: Store) -> None:
        store.index.upsert(row())
        assert store.index.restore("ada", "digest", now=NOON) is False
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON

    def test_i13_a_put_brings_a_poisoned_schedule_back(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        store.schedules.put(schedule(cron="30 12 * * *"), now=NOON + SECOND)
        assert store.index.unreadable() == []
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 30 * MINUTE

    def test_g06_a_poisoned_schedule_tells_its_defect(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        assert must(store.schedules.get("ada", "digest")).defect
        assert must(store.schedules.get("ada", "digest")).next_fire_at is None

    def test_i07_removing_a_poisoned_row_forgets_it(self, store: Store) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        store.index.remove("ada", "digest")
        assert store.index.unreadable() == []

    def test_i13_more_poison_than_one_page_is_listed(self, store: Store) -> None:
        for number in range(120):
            store.index.upsert(row(f"bad{number:03}", cron=BAD))
        drain(store, SOON)
        assert len(store.index.unreadable()) == 100
        assert len(store.index.unreadable(500)) == 120
