"""Comparisons of all data of several stores, which lease nothing."""

from collections.abc import Sequence
from typing import get_args

from duetick.core.store import Listing, Store
from duetick.domain.alike import Selection
from duetick.domain.attempts import CallerKey
from duetick.domain.forecasting import Outlook
from duetick.domain.minutes import MinuteSpan
from duetick.domain.schedule import Occurrence
from duetick.domain.states import State
from duetick.ports import Counted
from duetick.testing.conformance.samples import DAY, MINUTE

from tests.conformance.chances import USER
from tests.conformance.sides import Sides

KEYS = ("a", "b")
BARE = "bare"
ALL = 10_000
MINE = frozenset({USER, "bob"})
SELECTIONS = (
    Selection(apart=MINE),
    Selection(user_id=USER, apart=MINE),
    Selection(flow="flow", action="act", apart=MINE, by_action=frozenset({"flow"})),
)
LISTINGS: tuple[Listing, ...] = (None, "all", "active", "paused", "done")
COUNTED: tuple[Counted, ...] = get_args(Counted)


def whole(sides: Sides) -> None:
    """Compare all data of the stores."""
    sides.each("the ledger", lambda store, _: store.ledger.find(USER, limit=ALL))
    sides.each("the schedules", lambda store, _: [store.schedules.get(USER, key) for key in KEYS])
    sides.each("the jobs", lambda store, _: [_jobs(store, one) for one in (None, True, False)])
    sides.each("the rows", lambda store, _: [store.index.get(USER, key) for key in (*KEYS, BARE)])
    sides.each("the poisoned", lambda store, _: by_name(store.index.unreadable()))
    sides.each("the events", lambda store, _: _events(store))


def lookups(sides: Sides, now: int) -> None:
    """Ask the questions of callers, operators and a tick. A run is counted on the way."""
    sides.each("allow", lambda store, _: [store.allow(USER, each, 2, now=now) for each in COUNTED])
    sides.each("backlog", lambda store, _: store.index.backlog(now))
    sides.each("made", lambda store, _: store.schedules.creation(USER, "n0", now=now))
    sides.each("find_by_external", lambda store, _: store.schedules.find_by_external("ext-a"))
    for listing in LISTINGS:
        _list(sides, listing, now)
    sides.each("holds", lambda store, _: [_holds(store, name, now) for name in ("k0", "k1")])
    sides.each("find, before now", lambda store, _: store.ledger.find(USER, limit=4, before=now))
    for selection in SELECTIONS:
        _forecast(sides, selection, now)
    for state in (State.DEAD, State.SCHEDULED, State.RETRYING, State.QUEUED, State.PROCESSING):
        _find(sides, state)
    for state in (State.CANCELLED, State.SUCCEEDED, State.QUEUED):
        _find(sides, state, (USER, KEYS[0]))


def _forecast(sides: Sides, selection: Selection, now: int) -> None:
    minute = now - now % MINUTE
    sides.each("forecast", lambda store, _: _ahead(store, selection, minute, now))
    sides.each(
        "forecast of later", lambda store, _: _ahead(store, selection, minute + DAY // 2, now)
    )


def _ahead(store: Store, selection: Selection, since: int, now: int) -> object:
    """Return the occurrences of a day from now on."""
    outlook = Outlook(MinuteSpan(since, since + DAY), now, store.pauses.since(now))
    place: str | None = ""
    while place is not None:
        page = store.shelf.read_alike(selection, now, outlook.span.until, place)
        outlook.add(page.rows)
        outlook.add_waiting(page.waiting)
        outlook.totals["unreadable"] += page.unreadable
        place = page.place
    totals, found = outlook.finish(), outlook.sums[0]
    by_minute = {
        n: both for n, both in enumerate(zip(found.due, found.movable, strict=True)) if both[0]
    }
    return totals, by_minute, found.ragged, found.densest


def _list(sides: Sides, state: Listing, now: int) -> None:
    sides.each(
        f"list {state}" if state else "list",
        lambda store, _: store.schedules.list(USER, limit=1, state=state, now=now),
    )


def _find(sides: Sides, state: State, whose: tuple[str, str] | tuple[()] = ()) -> None:
    sides.each(f"find {state}", lambda store, _: store.ledger.find(*whose, state=state, limit=3))


def _holds(store: Store, name: str, now: int) -> object:
    return store.ledger.holds(CallerKey("flow", name, 60_000), now=now)


def _jobs(store: Store, ended: bool | None) -> object:
    return [each for one in store.jobs.list(USER, limit=ALL, ended=ended).jobs for each in one]


def _events(store: Store) -> object:
    return [store.ledger.events(one) for one in store.ledger.find(USER, limit=10)]


def by_name(found: Sequence[Occurrence]) -> Sequence[Occurrence]:
    """Return the occurrences in an order that all stores share."""
    return sorted(found, key=lambda one: one.identity)
