"""What several stores hold, and what can be asked of it: compared, and nothing handed out."""

from collections.abc import Sequence

from duetick.domain.schedule import Occurrence
from duetick.domain.states import State
from duetick.ports import CallerKey, Store

from tests.conformance.chances import USER
from tests.conformance.sides import Sides

KEYS = ("a", "b")
BARE = "bare"
ALL = 10_000


def whole(sides: Sides) -> None:
    """All that is there."""
    sides.each("the ledger", lambda store, _: store.ledger.find(USER, limit=ALL))
    sides.each("the schedules", lambda store, _: [store.schedules.get(USER, key) for key in KEYS])
    sides.each("the rows", lambda store, _: [store.index.get(USER, key) for key in (*KEYS, BARE)])
    sides.each("the poisoned", lambda store, _: by_name(store.index.poisoned()))
    sides.each("the events", lambda store, _: _events(store))


def lookups(sides: Sides, now: int) -> None:
    """What is asked by callers, operators and a tick; a run is counted on the way."""
    sides.each("admit_run", lambda store, _: store.admit_run(USER, 2, now=now))
    sides.each("backlog", lambda store, _: store.index.backlog(now))
    sides.each("made", lambda store, _: store.schedules.made(USER, "n0", now=now))
    sides.each("find_by_external", lambda store, _: store.schedules.find_by_external("ext-a"))
    sides.each("list", lambda store, _: store.schedules.list(USER, limit=1))
    sides.each("holds", lambda store, _: [_holds(store, name, now) for name in ("k0", "k1")])
    sides.each("find, before now", lambda store, _: store.ledger.find(USER, limit=4, before=now))
    for state in (State.DEAD, State.SCHEDULED, State.RETRYING):
        _find(sides, state)
    for state in (State.CANCELLED, State.SUCCEEDED, State.QUEUED):
        _find(sides, state, (USER, KEYS[0]))


def _find(sides: Sides, state: State, whose: tuple[str, str] | tuple[()] = ()) -> None:
    sides.each(f"find {state}", lambda store, _: store.ledger.find(*whose, state=state, limit=3))


def _holds(store: Store, name: str, now: int) -> object:
    return store.ledger.holds(CallerKey("flow", name, 60_000), now=now)


def _events(store: Store) -> object:
    return [store.ledger.events(one) for one in store.ledger.find(USER, limit=10)]


def by_name(found: Sequence[Occurrence]) -> Sequence[Occurrence]:
    """In an order that all stores share."""
    return sorted(found, key=lambda one: one.identity)
