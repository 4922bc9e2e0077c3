"""J-07: a history by state and by time, page after page."""

from unittest import mock

import pytest

from duetick.core import histories
from duetick.core.flows import Flows
from duetick.core.histories import EVERYTHING, Wanted, history_page
from duetick.core.schedules import UserSchedules
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.errors import NotFound
from duetick.domain.policies import Misfire, Overlap, Policies
from duetick.domain.states import State
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    EACH_MINUTE,
    MINUTE,
    NOON,
    SOON,
    row,
)
from duetick.testing.conformance.suite import FAILED, StoreSuite, drain, must, only, start

MinuteStates = list[tuple[int, State]]


def live(store: Store, states: str) -> None:
    """Make a schedule of each minute from noon on. A letter names the end of each occurrence."""
    every = Policies(overlap=Overlap.ALLOW)
    store.index.upsert(row(cron=EACH_MINUTE, policies=every, at=NOON))
    for place, letter in enumerate(states):
        now = NOON + place * MINUTE
        one = only(drain(store, now))
        if letter != "q":
            running = start(store, one, now)
            outcome = SUCCEEDED if letter == "s" else FAILED
            must(store.ledger.settle(running, outcome, now=now))


def read_pages(store: Store, wanted: Wanted, limit: int = 2) -> tuple[MinuteStates, int]:
    """Return the minutes and states on all pages, and the number of the pages."""
    own = UserSchedules(store, Flows({}), "ada", lambda: SOON)
    found: MinuteStates = []
    cursor: str | None = None
    for pages in range(1, 50):
        page, cursor = history_page(own, "digest", limit, cursor, wanted)
        assert len(page) <= limit
        found += [((one.nominal_at - NOON) // MINUTE, one.state) for one in page]
        if cursor is None:
            return found, pages
    raise AssertionError("the pages never come to an end")


class HistoryConformance(StoreSuite):
    """Histories by state and by time; each page reads a bounded number of occurrences."""

    @pytest.mark.parametrize(
        ("state", "minutes"),
        [
            (State.DEAD, [5, 3, 0]),
            (State.SUCCEEDED, [4, 2, 1]),
            (State.QUEUED, [6]),
            (State.RETRYING, []),
        ],
    )
    def test_j07_a_history_is_told_by_state(
        self, store: Store, state: State, minutes: list[int]
    ) -> None:
        live(store, "dssdsdq")
        found, _ = read_pages(store, Wanted(state))
        assert found == [(minute, state) for minute in minutes]

    def test_j07_a_history_is_told_by_time(self, store: Store) -> None:
        live(store, "dssdsd")
        since, until = NOON + MINUTE, NOON + 4 * MINUTE
        everything, _ = read_pages(store, EVERYTHING)
        assert [minute for minute, _ in everything] == [5, 4, 3, 2, 1, 0]
        assert read_pages(store, Wanted(since=since, until=until))[0] == everything[2:5]
        assert read_pages(store, Wanted(State.DEAD, since, until))[0] == [(3, State.DEAD)]
        assert read_pages(store, Wanted(since=until))[0] == everything[:2]
        assert read_pages(store, Wanted(until=since))[0] == everything[5:]
        assert read_pages(store, Wanted(since=NOON + 60 * MINUTE))[0] == []

    def test_j07_a_range_is_told_where_one_of_its_times_is_asked_for(self, store: Store) -> None:
        skip = Policies(misfire=Misfire.SKIP, grace=0)
        store.index.upsert(row(cron=EACH_MINUTE, policies=skip, at=NOON))
        drain(store, NOON + 10 * MINUTE)
        found, _ = read_pages(store, Wanted(State.CANCELLED))
        whole = only(found)
        inside = Wanted(since=NOON + 5 * MINUTE, until=NOON + 7 * MINUTE)
        assert read_pages(store, inside)[0] == [whole]
        assert read_pages(store, Wanted(since=NOON + 30 * MINUTE))[0] == []

    def test_j07_a_page_with_a_filter_looks_no_further_than_its_bound(self, store: Store) -> None:
        """A page may be empty and have a cursor: it is not the last one."""
        live(store, "dsssssssss")
        since = NOON + 2 * MINUTE
        with mock.patch.object(histories, "LOOKED_AT", 3):
            assert read_pages(store, Wanted(State.DEAD)) == ([(0, State.DEAD)], 4)
            assert read_pages(store, Wanted(State.DEAD, since)) == ([], 3)

    def test_j07_what_is_under_way_is_found_behind_any_history(self, store: Store) -> None:
        again = Policies.of({"delivery": AT_LEAST_ONCE.delivery, "overlap": "allow"})
        store.index.upsert(row(cron=EACH_MINUTE, policies=again, at=NOON))
        for place in range(5):
            now = NOON + place * MINUTE
            running = start(store, only(drain(store, now)), now)
            must(store.ledger.settle(running, SUCCEEDED if place else FAILED, now=now))
        with mock.patch.object(histories, "LOOKED_AT", 1):
            assert read_pages(store, Wanted(State.RETRYING)) == ([(0, State.RETRYING)], 1)

    def test_j07_a_filter_that_finds_nothing_is_no_missing_schedule(self, store: Store) -> None:
        live(store, "s")
        assert read_pages(store, Wanted(State.DEAD))[0] == []
        with pytest.raises(NotFound):
            history_page(UserSchedules(store, Flows({}), "ada", lambda: SOON), "none", 2, None)
