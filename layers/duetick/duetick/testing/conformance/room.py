"""L-01: a schedule that is done is in no index, quota or list; and runs always count."""

from dataclasses import replace

import pytest

from duetick.core.store import Listing, Store
from duetick.domain.book import Book
from duetick.domain.errors import QuotaReached
from duetick.domain.pausing import pause
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.testing.conformance.done import (
    AFTER_ONE,
    AT_NOON,
    REJECTED,
    list_keys,
    make_done,
    put,
    read_record,
)
from duetick.testing.conformance.samples import (
    DAILY,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    StoreSuite,
    drain,
    only,
    start,
)


class RoomConformance(StoreSuite):
    """A schedule that is done is in no index, no quota and no list."""

    def test_l01_a_hundred_that_fired_lock_nobody_out(self, store: Store) -> None:
        for number in range(100):
            store.schedules.put(schedule(f"k{number:03}", cron=AT_NOON), now=NOON - 1, at_most=100)
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule("more"), now=NOON - 1, at_most=100)
        assert len(drain(store, SOON)) == 100
        for number in range(100):
            store.schedules.put(schedule(f"m{number:03}"), now=SOON, at_most=100)
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule("more"), now=SOON, at_most=100)

    def test_l01_a_put_that_makes_it_active_may_be_refused(self, store: Store) -> None:
        make_done(store)
        store.schedules.put(schedule("other"), now=SOON, at_most=1)
        again = schedule(cron=AFTER_ONE)
        with pytest.raises(QuotaReached):
            store.schedules.put(again, now=SOON, at_most=1)
        assert (read_record(store).cron, read_record(store).done_at) == (AT_NOON, SOON)
        store.schedules.delete("ada", "other", now=SOON)
        assert store.schedules.put(again, now=SOON, at_most=1).done_at is None
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule("other"), now=SOON, at_most=1)

    def test_l01_a_pause_takes_room_again(self, store: Store) -> None:
        before = make_done(store)
        store.schedules.put(schedule("other"), now=SOON, at_most=1)
        for until in (None, NOON + HOUR):
            with pytest.raises(QuotaReached):
                store.schedules.put(pause(before, "", until, SOON), now=SOON, at_most=1)
        assert read_record(store) == before

    def test_l01_a_delete_of_what_is_done_frees_no_room_twice(self, store: Store) -> None:
        make_done(store)
        store.schedules.put(schedule("other"), now=SOON, at_most=1)
        store.schedules.delete("ada", "digest", now=SOON)
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule("third"), now=SOON, at_most=1)

    def test_l01_lists_show_active_and_paused_unless_a_state_is_named(self, store: Store) -> None:
        make_done(store)
        store.schedules.put(schedule("a"), now=SOON)
        store.schedules.put(schedule("b", enabled=False), now=SOON)
        held = pause(schedule("c"), "", NOON + DAY, SOON)
        store.schedules.put(held, now=SOON)
        assert list_keys(store, None) == ["a", "b", "c"]
        assert list_keys(store, "active") == ["a"]
        assert list_keys(store, "paused") == ["b", "c"]
        assert list_keys(store, "done") == ["digest"]
        assert list_keys(store, "all") == ["a", "b", "c", "digest"]
        assert list_keys(store, "active", NOON + 2 * DAY) == ["a", "c"]

    @pytest.mark.parametrize("state", ["active", "paused", "done", "all", None])
    def test_l01_the_pages_of_a_state_have_each_of_it_once(
        self, store: Store, state: Listing
    ) -> None:
        for number in range(9):
            cron = AT_NOON if number % 3 == 2 else EACH_MINUTE
            enabled = number % 3 != 1
            made = schedule(f"k{number}", cron=cron, enabled=enabled)
            store.schedules.put(made, now=NOON - 1)
        drain(store, SOON)
        kinds = {"active": [0], "paused": [1], "done": [2], "all": [0, 1, 2], None: [0, 1]}
        wanted = [f"k{number}" for number in range(9) if number % 3 in kinds[state]]
        keys: list[str] = []
        cursor: str | None = None
        while True:
            page = store.schedules.list("ada", limit=2, cursor=cursor, state=state, now=SOON)
            keys += [one.key for one in page.schedules]
            cursor = page.cursor
            if cursor is None:
                break
        assert keys == wanted

    def test_t12_what_is_done_has_no_row_and_that_is_right(self, store: Store) -> None:
        make_done(store)
        assert store.check(now=NOON + DAY) == []
        assert store.rebuild(now=NOON + DAY) == 0
        assert read_record(store).done_at == SOON

    def test_t12_what_is_active_and_has_no_row_is_a_fault(self, store: Store) -> None:
        put(store, DAILY)
        store.index.remove("ada", "digest")
        assert only(store.check(now=NOON - 1)).problem == "unindexed"

    def test_t12_what_is_marked_as_done_and_fires_again_is_a_fault(self, store: Store) -> None:
        make_done(store)
        store.shelf.change("ada", "digest", SOON, _daily)
        assert only(store.check(now=SOON)).problem == "unindexed"
        assert store.rebuild(now=SOON) == 1
        assert (read_record(store).done_at, read_record(store).next_fire_at) == (None, NOON + DAY)

    def test_l01_what_no_code_marked_is_found_and_marked(self, store: Store) -> None:
        put(store, AT_NOON)
        store.index.remove("ada", "digest")
        store.schedules.put(schedule("other"), now=NOON - 1, at_most=2)
        assert [one.problem for one in store.check(now=NOON + DAY)] == ["unindexed"]
        drain(store, NOON + DAY)
        store.shelf.change("ada", "digest", NOON + DAY, _account)
        assert [one.problem for one in store.check(now=NOON + DAY)] == ["done"]
        assert store.mark_done(now=NOON + DAY) == 1
        assert read_record(store).done_at == NOON + DAY
        store.schedules.put(schedule("third"), now=NOON + DAY, at_most=2)

    def test_l01_runs_count_always(self, store: Store) -> None:
        put(store, EACH_MINUTE, Policies(overlap=Overlap.ALLOW))
        for minute in range(3):
            claimed = only(drain(store, SOON + minute * MINUTE))
            start(store, claimed, SOON + minute * MINUTE)
        assert read_record(store).runs == 3
        start(store, by_hand(run="run:7"), NOON + 3 * MINUTE)
        assert read_record(store).runs == 4

    def test_l01_a_second_attempt_is_no_second_run(self, store: Store) -> None:
        put(store, EACH_MINUTE, Policies(delivery=Delivery.AT_LEAST_ONCE))
        held = start(store, only(drain(store, SOON)), SOON)
        store.ledger.settle(held, FAILED, now=SOON)
        again = only(store.ledger.claim_waiting(SOON + 30 * SECOND))
        assert start(store, again, SOON + 30 * SECOND).attempts == 2
        assert read_record(store).runs == 1

    def test_l01_a_run_that_was_rejected_does_not_count(self, store: Store) -> None:
        put(store, EACH_MINUTE)
        held = start(store, only(drain(store, SOON)), SOON)
        assert read_record(store).runs == 1
        store.ledger.settle(held, REJECTED, now=SOON)
        assert read_record(store).runs == 0

    def test_l01_a_begin_tells_the_runs_with_itself(self, store: Store) -> None:
        put(store, EACH_MINUTE)
        answer = store.ledger.begin(only(drain(store, SOON)), now=SOON)
        assert getattr(answer, "schedule", None) == read_record(store)
        assert read_record(store).runs == 1


def _daily(book: Book) -> None:
    """Leave the book as a fault would: the record has times to come, and is marked as done."""
    assert book.record
    book.record = replace(book.record, cron=DAILY)


def _account(book: Book) -> None:
    """Leave the book of a schedule that fired as code that marks nothing would."""
    book.mark = NOON
