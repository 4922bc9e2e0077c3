"""The index: a due row is claimed once, oldest first, and recorded by the same write."""

from duetick.core.store import Store
from duetick.testing.conformance.samples import (
    DAILY,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    QUIET,
    SECOND,
    SKIP_MISSED,
    SOON,
    due_rows,
    hostile,
    keys,
    row,
)
from duetick.testing.conformance.suite import Capability, StoreSuite, drain, must, only, recorded


class IndexConformance(StoreSuite):
    """I-01 to I-04, I-06 to I-08, I-14 and I-15."""

    def test_i01_a_second_upsert_replaces_expression_zone_and_time(self, store: Store) -> None:
        store.index.upsert(row())
        second = row(cron="30 9 * * *", timezone="Europe/Berlin", at=NOON + HOUR)
        store.index.upsert(second)
        assert store.index.get("ada", "digest") == second

    def test_i01_one_row_remains_after_a_second_upsert(self, store: Store) -> None:
        store.index.upsert(row())
        store.index.upsert(row(at=NOON + HOUR))
        assert drain(store, SOON) == []
        assert only(drain(store, SOON + HOUR)).nominal_at == NOON + HOUR

    def test_i01_equal_keys_of_two_users_are_two_rows(self, store: Store) -> None:
        store.index.upsert(row(user="ada"))
        store.index.upsert(row(user="bob"))
        assert {o.user_id for o in drain(store, SOON)} == {"ada", "bob"}

    @hostile
    def test_i01_a_hostile_id_comes_back_as_it_was(self, store: Store, name: str) -> None:
        store.index.upsert(row(name, user=name))
        claimed = only(drain(store, SOON))
        assert (claimed.user_id, claimed.key) == (name, name)
        assert must(store.index.get(name, name)).key == name

    def test_i02_takes_what_is_due_at_this_very_millisecond(self, store: Store) -> None:
        store.index.upsert(row())
        assert only(store.index.claim_due(NOON)).key == "digest"

    def test_i02_leaves_what_is_due_a_millisecond_later(self, store: Store) -> None:
        store.index.upsert(row())
        assert list(store.index.claim_due(NOON - 1)) == []
        assert only(store.index.claim_due(NOON)).nominal_at == NOON

    def test_i02_hands_out_the_oldest_first(self, store: Store) -> None:
        for key, late in (("second", 2), ("first", 3), ("third", 1)):
            store.index.upsert(row(key, cron=QUIET, at=NOON - late * SECOND))
        assert keys(store.index.claim_due(SOON)) == ["first", "second", "third"]

    def test_i02_takes_no_more_than_the_limit(self, store: Store) -> None:
        due_rows(store, 5)
        assert len(store.index.claim_due(SOON, 2)) == 2

    def test_i02_within_the_limit_the_oldest_go_first(self, store: Store) -> None:
        for late in (1, 5, 3, 4, 2):
            store.index.upsert(row(f"late{late}", cron=QUIET, at=NOON - late * SECOND))
        assert keys(store.index.claim_due(SOON, 2)) == ["late5", "late4"]

    def test_i02_rows_that_yield_nothing_do_not_end_a_claim(self, store: Store) -> None:
        for number in range(5):
            skips = row(f"skips{number}", cron=QUIET, at=NOON - HOUR, policies=SKIP_MISSED)
            store.index.upsert(skips)
        store.index.upsert(row("good"))
        assert keys(store.index.claim_due(SOON, 2)) == ["good"]

    def test_i03_an_occurrence_carries_the_time_from_before_the_advance(self, store: Store) -> None:
        store.index.upsert(row(cron=EACH_MINUTE))
        assert only(store.index.claim_due(NOON + 30 * SECOND)).nominal_at == NOON

    def test_i03_an_occurrence_carries_the_expression_and_zone(self, store: Store) -> None:
        store.index.upsert(row(cron="0 13 * * *", timezone="Europe/Berlin"))
        claimed = only(store.index.claim_due(SOON))
        assert (claimed.cron, claimed.timezone) == ("0 13 * * *", "Europe/Berlin")

    def test_i04_a_second_claim_at_the_same_time_finds_nothing(self, store: Store) -> None:
        due_rows(store, 3)
        store.index.claim_due(SOON)
        assert list(store.index.claim_due(SOON)) == []

    def test_i04_what_a_claim_hands_out_is_in_the_ledger(self, store: Store) -> None:
        store.index.upsert(row())
        claimed = only(store.index.claim_due(SOON))
        assert recorded(store, claimed) == claimed

    def test_i04_what_a_claim_hands_out_is_leased(self, store: Store) -> None:
        store.index.upsert(row())
        claimed = only(store.index.claim_due(SOON))
        assert claimed.fence > 0
        assert must(claimed.lease_until) == SOON + claimed.policies.lease_ms

    def test_i04_an_advance_and_its_record_are_there_to_stay(self, store: Store) -> None:
        self.needs(Capability.LASTING)
        store.index.upsert(row())
        claimed = only(store.index.claim_due(SOON))
        again = self.reopened(store)
        assert recorded(again, claimed) == claimed
        assert must(again.index.get("ada", "digest")).next_fire_at == NOON + DAY

    def test_i06_the_next_time_is_the_first_after_now(self, store: Store) -> None:
        store.index.upsert(row(cron=EACH_MINUTE))
        drain(store, NOON + 90 * SECOND)
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 2 * MINUTE

    def test_i06_a_time_that_is_now_is_not_the_next_one(self, store: Store) -> None:
        store.index.upsert(row(cron=EACH_MINUTE))
        drain(store, NOON + MINUTE)
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 2 * MINUTE

    def test_i06_what_never_fires_again_leaves_the_index(self, store: Store) -> None:
        store.index.upsert(row(cron="at(2027-03-01T12:00:00)"))
        assert only(drain(store, SOON)).nominal_at == NOON
        assert store.index.get("ada", "digest") is None

    def test_i07_a_removed_row_is_not_claimed(self, store: Store) -> None:
        store.index.upsert(row())
        store.index.remove("ada", "digest")
        assert store.index.get("ada", "digest") is None
        assert drain(store, SOON) == []

    def test_i07_removing_leaves_the_other_rows(self, store: Store) -> None:
        store.index.upsert(row("stays"))
        store.index.upsert(row("goes"))
        store.index.remove("ada", "goes")
        assert keys(drain(store, SOON)) == ["stays"]

    def test_i07_removing_an_absent_row_is_no_error(self, store: Store) -> None:
        store.index.remove("ada", "never-was")

    def test_i08_an_absent_timezone_stays_absent(self, store: Store) -> None:
        store.index.upsert(row(timezone=None))
        assert must(store.index.get("ada", "digest")).timezone is None

    def test_i08_an_occurrence_of_no_timezone_has_none(self, store: Store) -> None:
        store.index.upsert(row(timezone=None))
        claimed = only(drain(store, SOON))
        assert claimed.timezone is None
        assert recorded(store, claimed).timezone is None

    def test_i08_an_absent_timezone_means_utc(self, store: Store) -> None:
        store.index.upsert(row(cron=DAILY, timezone=None))
        drain(store, SOON)
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + DAY

    def test_i08_a_timezone_is_heeded(self, store: Store) -> None:
        store.index.upsert(row(cron=DAILY, timezone="Asia/Tokyo"))
        drain(store, SOON)
        assert must(store.index.get("ada", "digest")).next_fire_at == NOON + 15 * HOUR

    def test_i14_the_next_time_follows_the_now_that_was_passed(self, store: Store) -> None:
        """`now` is a decade before or after any clock that could be read by mistake."""
        for now in (NOON - 3_653 * DAY, NOON + 3_653 * DAY):
            store.index.upsert(row(str(now), at=now))
            drain(store, now + SECOND)
            assert must(store.index.get("ada", str(now))).next_fire_at == now + DAY

    def test_i15_claiming_goes_on_until_several_hundred_are_done(self, store: Store) -> None:
        rows = due_rows(store, 350)
        assert sorted(keys(drain(store, SOON))) == [one.key for one in rows]

    def test_i15_one_claim_takes_several_hundred_when_asked(self, store: Store) -> None:
        rows = due_rows(store, 350)
        assert sorted(keys(store.index.claim_due(SOON, 1_000))) == [one.key for one in rows]

    def test_j13_a_row_that_is_set_back_fires_nothing_twice(self, store: Store) -> None:
        store.index.upsert(row(cron=EACH_MINUTE))
        drain(store, SOON)
        store.index.upsert(row(cron=EACH_MINUTE))
        assert drain(store, SOON) == []

    def test_j13_a_row_that_was_removed_and_set_back_fires_nothing_twice(
        self, store: Store
    ) -> None:
        store.index.upsert(row(cron=EACH_MINUTE))
        drain(store, SOON)
        store.index.remove("ada", "digest")
        store.index.upsert(row(cron=EACH_MINUTE))
        assert drain(store, SOON) == []

    def test_j13_a_row_that_is_set_back_fires_what_it_had_not_fired(self, store: Store) -> None:
        store.index.upsert(row(cron=EACH_MINUTE))
        drain(store, SOON)
        store.index.upsert(row(cron=EACH_MINUTE, at=NOON - MINUTE))
        assert [o.nominal_at for o in drain(store, SOON + MINUTE)] == [NOON + MINUTE]

    def test_a01_a_row_that_is_set_back_far_loses_no_time_that_is_new(self, store: Store) -> None:
        """Times up to the last fire are over. The times after it are accounted for."""
        store.index.upsert(row(cron=EACH_MINUTE))
        drain(store, SOON)
        store.index.upsert(row(cron=EACH_MINUTE, at=NOON - MINUTE))
        drain(store, SOON + 10 * MINUTE)
        ranges = [o for o in store.ledger.find("ada", "digest") if o.range_end is not None]
        assert (only(ranges).nominal_at, only(ranges).range_end) == (
            NOON + MINUTE,
            NOON + 7 * MINUTE,
        )
