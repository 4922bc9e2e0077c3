"""O-01: the record of operations."""

from dataclasses import replace

from duetick.core.operations import NEWEST, Asked, operations_page, record, record_around
from duetick.core.purge import purge
from duetick.core.store import Store
from duetick.domain.operations import KEPT_OPERATION_MS, Operation
from duetick.ports import StateCounts
from duetick.testing.conformance.done import AT_NOON
from duetick.testing.conformance.samples import NOON, SECOND, row, schedule
from duetick.testing.conformance.suite import Capability, StoreSuite, drain, start


def operation(number: int, user_id: str | None = None, *, who: str = "ann") -> Operation:
    """Return the operation of a number: a second after the one before."""
    at = NOON + number * SECOND
    return Operation(f"op_{number}", at, who, "pause_schedule", user_id, f"k{number}", "rain")


def numbers(store: Store, limit: int = 10, user_id: str | None = None) -> list[int]:
    """Return the numbers of a page of the record."""
    found = store.shelf.operations(NEWEST, limit, user_id)
    return [int(one.id.removeprefix("op_")) for one in found]


class OperationConformance(StoreSuite):
    """O-01."""

    def test_o01_an_operation_comes_back_as_it_was_recorded(self, store: Store) -> None:
        every = [operation(1), operation(2, "a#b/ü"), operation(3, "ada")]
        for one in every:
            store.shelf.add_operation(one)
        assert list(store.shelf.operations(NEWEST, 10)) == every[::-1]
        assert list(store.shelf.operations(NEWEST, 10, "a#b/ü")) == [every[1]]

    def test_o01_the_record_is_read_in_pages_the_newest_first(self, store: Store) -> None:
        for number in range(7):
            store.shelf.add_operation(operation(number, "ada" if number % 2 else "bob"))
        assert numbers(store, 3) == [6, 5, 4]
        assert numbers(store, 2, "ada") == [5, 3]
        pages, cursor = list[list[str]](), None
        while True:
            page = operations_page(store, 3, cursor)
            pages.append([one.target for one in page.operations])
            cursor = page.cursor
            if cursor is None:
                break
        assert pages == [["k6", "k5", "k4"], ["k3", "k2", "k1"], ["k0"]]

    def test_o01_operations_of_one_moment_are_all_in_the_pages(self, store: Store) -> None:
        """Their order is that of their ids, downwards, on every store."""
        every = {f"op_{number}" for number in range(5)}
        for number in range(5):
            store.shelf.add_operation(replace(operation(number), at=NOON))
        found, cursor = list[str](), None
        while True:
            page = operations_page(store, 2, cursor)
            found += [one.id for one in page.operations]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == sorted(every, reverse=True)

    def test_o01_a_page_of_somebodys_reads_over_the_others(self, store: Store) -> None:
        for number in range(6):
            who = "arn:aws:iam::1:user/ann" if number in (0, 4) else "bob"
            store.shelf.add_operation(operation(number, who=who))
        page = operations_page(store, 2, who="user/ann")
        assert [one.target for one in page.operations] == ["k4", "k0"]

    def test_o01_an_outcome_is_written_once(self, store: Store) -> None:
        begun = operation(1, "ada")
        store.shelf.add_operation(begun)
        store.shelf.end_operation(replace(begun, outcome="done"))
        store.shelf.end_operation(replace(begun, outcome="failed"))
        (found,) = store.shelf.operations(NEWEST, 10)
        assert found == replace(begun, outcome="done")

    def test_o01_what_raises_has_failed_in_the_record(self, store: Store) -> None:
        try:
            with record_around(store, Asked("ann", "rebuild", why="the token=hunter22 was wrong")):
                raise RuntimeError
        except RuntimeError:
            pass
        record(store, Asked("ann", "migrate"))
        found = {one.verb: one for one in store.shelf.operations(NEWEST, 10)}
        assert (found["rebuild"].outcome, found["migrate"].outcome) == ("failed", "done")
        assert "hunter22" not in found["rebuild"].why

    def test_o01_an_erased_user_is_in_no_operation(self, store: Store) -> None:
        for number, user_id in enumerate(("ada", "bob", None)):
            store.shelf.add_operation(operation(number, user_id))
        store.erase("ada")
        assert numbers(store) == [2, 1]
        store.shelf.end_operation(replace(operation(0, "ada"), outcome="done"))
        assert numbers(store) == [2, 1]

    def test_o01_an_operation_is_kept_for_400_days(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        for number in range(3):
            store.shelf.add_operation(operation(number))
        purge(store, NOON + KEPT_OPERATION_MS + SECOND - 1)
        assert numbers(store) == [2, 1]
        purge(store, NOON + KEPT_OPERATION_MS + 2 * SECOND)
        assert numbers(store) == []


class OverviewConformance(StoreSuite):
    """J-07: the overview of all users for operators."""

    def test_j07_occurrences_are_tallied_by_state_and_the_dead_by_their_time(
        self, store: Store
    ) -> None:
        for number in range(4):
            store.schedules.put(schedule(f"k{number}", cron=AT_NOON), now=NOON - 1)
        store.index.upsert(row("broken", cron="75 * * * *", at=NOON))
        leased = drain(store, NOON)
        assert len(leased) == 4
        start(store, leased[0], NOON)
        found = store.shelf.tally(NOON, NOON - 1, 100)
        assert found == StateCounts(queued=3, running=1, dead=1, unreadable=1)
        assert store.shelf.tally(NOON, NOON, 100).dead == 0

    def test_j07_a_walk_over_all_books_goes_on_behind_a_place(self, store: Store) -> None:
        for user in ("ada", "bob", "c#d"):
            for key in ("one", "two"):
                store.schedules.put(schedule(key, user=user), now=NOON)
        every = [(one.user_id, one.key, one.place) for one in store.shelf.every_book()]
        assert len(every) == 6
        for number, (_, _, place) in enumerate(every, 1):
            rest = [(one.user_id, one.key, one.place) for one in store.shelf.every_book(place)]
            assert rest == every[number:]

    def test_j07_rows_that_left_at_once_are_listed_in_the_order_of_their_names(
        self, store: Store
    ) -> None:
        names = [f"k{number}" for number in range(5)]
        for name in reversed(names):
            store.index.upsert(row(name, cron="75 * * * *", at=NOON))
        drain(store, NOON)
        for limit in range(1, 6):
            found = store.shelf.unreadable(0, limit)
            assert [one.row.key for one in found] == names[:limit]
