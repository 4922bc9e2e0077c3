"""A forecast reads the number of rows that fire alike, and the occurrences that wait."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from duetick.core.store import Store
from duetick.domain.alike import AlikePage, Selection
from duetick.domain.policies import Delivery, Overlap, Policies, Retry
from duetick.domain.schedule import Schedule
from duetick.testing.conformance.samples import (
    BAD,
    DAILY,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SOON,
    row,
    schedule,
)
from duetick.testing.conformance.suite import FAILED, StoreSuite, drain, must, only, start

EVERYTHING: Final = Selection()
UNTIL: Final = SOON + DAY
BERLIN: Final = "Europe/Berlin"
TRIED_AGAIN: Final = Policies(
    delivery=Delivery.AT_LEAST_ONCE, overlap=Overlap.ALLOW, retry=Retry(first=600, longest=600)
)


def parts(store: Store, selection: Selection = EVERYTHING) -> Iterator[AlikePage]:
    """Yield each part of a forecast as of soon after noon."""
    place: str | None = ""
    while place is not None:
        part = store.shelf.read_alike(selection, SOON, UNTIL, place)
        yield part
        place = part.place


def count_rows(
    store: Store, selection: Selection = EVERYTHING
) -> Counter[tuple[str, str | None, int]]:
    """Return the number of rows by cron, zone and the minute of their next time."""
    found: Counter[tuple[str, str | None, int]] = Counter()
    for part in parts(store, selection):
        for one in part.rows:
            found[one.cron, one.timezone, one.next_fire_at // MINUTE * MINUTE] += one.number
    return found


def number(store: Store, selection: Selection = EVERYTHING) -> int:
    """Return the number of rows that are told."""
    return count_rows(store, selection).total()


def waiting(store: Store, selection: Selection = EVERYTHING) -> list[tuple[int, bool, bool]]:
    """Return the occurrences that wait: the minutes after noon at which each is due, and if a pause
    keeps it, and if it is a job.
    """
    found = [one for part in parts(store, selection) for one in part.waiting]
    return sorted(
        (max(SOON, one.due_at) // MINUTE - NOON // MINUTE, one.kept, one.job)
        for one in found
        for _ in range(one.number)
    )


def put(store: Store, wanted: Schedule, now: int = NOON) -> None:
    """Put a schedule."""
    store.schedules.put(wanted, now=now)


def work(flow: str = "reminders", user: str = "ada") -> Schedule:
    """Return the definition of a job."""
    return replace(schedule("job", user=user, cron="@daily"), flow=flow)


class ForecastConformance(StoreSuite):
    """Each row is told once, each occurrence that waits is told once, and nothing else is."""

    def test_rows_that_fire_alike_are_told_by_their_number(self, store: Store) -> None:
        for user in ("ada", "bob", "cem"):
            put(store, schedule("daily", user=user))
            put(store, schedule("berlin", user=user, timezone=BERLIN))
        put(store, schedule("often", cron=EACH_MINUTE))
        tomorrow, of_berlin = NOON + DAY, NOON + 23 * HOUR
        assert count_rows(store) == {
            (DAILY, None, tomorrow): 3,
            (DAILY, BERLIN, of_berlin): 3,
            (EACH_MINUTE, None, NOON + MINUTE): 1,
        }

    def test_each_row_is_told_in_one_part(self, store: Store) -> None:
        for count in range(120):
            put(
                store,
                schedule(f"k{count % 40}", user=f"u{count // 40}", cron=f"{count % 60} 9 * * *"),
            )
        assert number(store) == 120
        assert max(count_rows(store).values()) == 2

    def test_a_schedule_that_does_not_fire_is_not_told(self, store: Store) -> None:
        put(store, schedule("off", enabled=False))
        put(store, schedule("once", cron="at(2027-03-01T12:00:00)"), NOON - HOUR)
        put(store, schedule("gone"))
        drain(store, SOON)
        store.schedules.delete("ada", "gone", now=SOON)
        assert number(store) == 0

    def test_a_row_that_is_due_is_told_with_its_time(self, store: Store) -> None:
        store.index.upsert(row(at=NOON - 3 * DAY))
        assert count_rows(store) == {(DAILY, None, NOON - 3 * DAY): 1}

    def test_a_row_that_is_due_after_the_span_is_told(self, store: Store) -> None:
        put(store, schedule(cron="0 0 1 1 *"))
        assert number(store) == 1

    @pytest.mark.parametrize(
        ("selection", "wanted"),
        [
            (EVERYTHING, 5),
            (Selection(user_id="ada"), 3),
            (Selection(flow="mail"), 3),
            (Selection(flow="mail", action="send", by_action=frozenset({"mail"})), 2),
            (Selection(user_id="bob", flow="mail"), 1),
            (Selection(user_id="nobody"), 0),
            (Selection(flow="none"), 0),
        ],
    )
    def test_a_selection_narrows_rows_jobs_and_what_cannot_be_read(
        self, store: Store, selection: Selection, wanted: int
    ) -> None:
        for user, key, flow, action in (
            ("ada", "a", "mail", "send"),
            ("ada", "b", "mail", "other"),
            ("ada", "c", "reminders", "send"),
            ("bob", "a", "mail", "send"),
            ("cem", "a", "reminders", "send"),
        ):
            put(store, replace(schedule(key, user=user), flow=flow, action=action))
            asked = replace(work(flow, user), action=action)
            store.jobs.enqueue(asked, now=NOON, due_at=NOON + HOUR)
            store.index.upsert(replace(row(f"bad-{key}", user=user, cron=BAD), flow=flow))
        drain(store, SOON)
        assert number(store, selection) == wanted
        assert waiting(store, selection) == [(60, True, True)] * wanted
        of_records = wanted if selection.action is None else 0
        assert sum(part.unreadable for part in parts(store, selection)) == of_records

    def test_users_and_actions_are_told_only_where_they_are_asked_for(self, store: Store) -> None:
        for user in ("ada", "bob", "cem"):
            put(store, schedule(user=user))
        found = [one for part in parts(store) for one in part.rows]
        assert sum(one.number for one in found) == 3
        apart = Selection(apart=frozenset({"bob"}), by_action=frozenset({"reminders"}))
        named = [one for part in parts(store, apart) for one in part.rows]
        assert sum(one.number for one in named if one.user_id == "bob") == 1
        assert {one.action for one in named} == {"send"}

    def test_rows_with_a_spread_tell_their_names(self, store: Store) -> None:
        for user in ("ada", "bob"):
            put(store, schedule(user=user, policies=Policies(spread=600)))
        found = [one for part in parts(store) for one in part.rows]
        assert sum(one.number for one in found) == 2
        names = [name for one in found for name in one.names]
        assert sorted(names) == [("ada", "digest"), ("bob", "digest")]

    def test_a_limit_of_runs_tells_how_many_are_spent(self, store: Store) -> None:
        """The runs that wait to begin count as spent."""
        limited = Policies(max_runs=5, overlap=Overlap.ALLOW)
        put(store, schedule(cron=EACH_MINUTE, policies=limited), NOON - MINUTE)
        start(store, only(drain(store, NOON)), NOON)
        one = only([each for part in parts(store) for each in part.rows])
        assert one.spent == 1
        drain(store, NOON + MINUTE)
        later = store.shelf.read_alike(EVERYTHING, NOON + MINUTE, UNTIL)
        assert only(later.rows).spent == 2

    def test_a_rate_that_was_set_back_tells_its_anchor(self, store: Store) -> None:
        """One that was not counts from its next time: its phase is all that matters."""
        put(store, schedule("whole", cron="rate(5 minutes)"), NOON - 12_345)
        store.index.upsert(replace(row("set", cron="rate(7 minutes)"), anchor=NOON - 999))
        found = {one.cron: one for part in parts(store) for one in part.rows}
        assert set(found) == {"rate(5 minutes)", "rate(7 minutes)"}
        assert found["rate(7 minutes)"].anchor == NOON - 999
        whole = found["rate(5 minutes)"]
        assert whole.anchor is None or whole.anchor % (5 * MINUTE) == whole.next_fire_at % (
            5 * MINUTE
        )

    @pytest.mark.parametrize("chosen", [Policies(max_runs=2), Policies(spread=600)])
    def test_the_second_of_a_single_time_is_told(self, store: Store, chosen: Policies) -> None:
        """A limit of runs and a spread count from the fire itself, not from its minute."""
        put(store, schedule(cron="at(2027-03-02T11:00:59)", policies=chosen), NOON)
        told = only([one for part in parts(store) for one in part.rows])
        assert told.next_fire_at == must(store.index.get("ada", "digest")).next_fire_at
        assert told.next_fire_at % MINUTE == 59_000

    def test_what_waits_is_told_with_what_a_pause_would_do_to_it(self, store: Store) -> None:
        spread = Policies(spread=3_600)
        put(store, schedule("spread", policies=spread), NOON - HOUR)
        put(store, schedule("again", policies=TRIED_AGAIN), NOON - HOUR)
        store.jobs.enqueue(work(), now=NOON, due_at=NOON + 2 * HOUR)
        store.jobs.enqueue(work(), now=NOON, due_at=NOON + 2 * DAY)
        claimed = {one.key: one for one in drain(store, NOON)}
        begun = start(store, must(claimed.get("again")), NOON)
        store.ledger.settle(begun, FAILED, now=NOON)
        place = only(store.ledger.find("ada", "spread", limit=10)).due_at
        wanted = [(10, True, False), (120, True, True)]
        if place > SOON:
            wanted.append(((place - NOON) // MINUTE, False, False))
        assert waiting(store) == sorted(wanted)

    def test_what_is_under_way_or_has_ended_does_not_wait(self, store: Store) -> None:
        for key in ("runs", "leased", "done"):
            put(store, schedule(key), NOON - HOUR)
        claimed = {one.key: one for one in drain(store, NOON)}
        assert {*claimed} == {"runs", "leased", "done"}
        start(store, claimed["runs"], NOON)
        store.ledger.settle(start(store, claimed["done"], NOON), FAILED, now=NOON)
        assert waiting(store) == []

    def test_rows_that_cannot_be_read_are_counted_beside_the_others(self, store: Store) -> None:
        for key in ("a", "b"):
            store.index.upsert(row(key, cron=BAD))
        put(store, schedule("good"))
        drain(store, SOON)
        assert sum(part.unreadable for part in parts(store)) == 2
        assert number(store) == 1

    def test_a_walk_costs_more_for_more_books_where_it_costs_anything(self, store: Store) -> None:
        few, many = store.shelf.walk_units(10), store.shelf.walk_units(100_000)
        assert (few is None) == (many is None)
        assert few is None or many is None or 0 < few < many
