"""A store moves from a tick each minute to bells, and back, while its schedules fire.

To bells: the note names the stack's resources, a walk makes the bells of all rows pending, and the
deployment and the next ticks make them. Until the last is made, a tick comes each minute and leaves
nothing to bells. Back: the note says so, and ticks claim everything; the bells go with their group.
A row is claimed once, by whichever comes first.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from typing import Final

from duetick.core.managed.trigger import Trigger, check_alone, keep_trigger, read_trigger
from duetick.core.store import Store
from duetick.domain.bells import bell_of
from duetick.domain.errors import ConfigurationError
from duetick.domain.identity import schedule_id
from duetick.domain.occurrence import IndexRow, ScheduleName

AT_ONCE: Final = 500
MOST_NAMED: Final = 5


def move(store: Store, wanted: Trigger, may_go_on: Callable[[], bool]) -> Trigger:
    """Give the store the trigger of a deployment. Return the trigger, moved as far as it is by now.

    Raises ConfigurationError if EventBridge cannot say the times of a schedule, or if the bells of
    another deployment ring for the store.
    """
    known = read_trigger(store)
    check_alone(known, wanted)
    if known and known.is_of(wanted):
        return make_rest_pending(store, known, may_go_on)
    if wanted.is_managed:
        _check_rows(store, may_go_on)
    elif known is None:
        return wanted
    keep_trigger(store, wanted)
    return make_rest_pending(store, wanted, may_go_on)


def make_rest_pending(store: Store, trigger: Trigger, may_go_on: Callable[[], bool]) -> Trigger:
    """Make the bells of the rows beyond a move's place pending. Return the trigger after that."""
    if not trigger.is_managed or trigger.moved_until is None:
        return trigger
    names: list[ScheduleName] = []
    for one in store.shelf.every_book(trigger.moved_until):
        if one.row:
            names.append((one.user_id, one.key))
        if len(names) == AT_ONCE:
            trigger = _make_pending(store, names, trigger, one.place)
            names = []
            if not may_go_on():
                return trigger
    return _make_pending(store, names, trigger, None)


def _make_pending(
    store: Store, names: list[ScheduleName], trigger: Trigger, place: str | None
) -> Trigger:
    if names:
        store.shelf.make_bells_pending(names, store.now())
    moved = replace(trigger, moved_until=place)
    keep_trigger(store, moved)
    return moved


def settle(store: Store, trigger: Trigger) -> Trigger:
    """Let ticks leave the rows to their bells, if none is pending after a move."""
    if trigger.settled or trigger.moved_until is not None or store.shelf.pending_bells(1):
        return trigger
    settled = replace(trigger, settled=True)
    keep_trigger(store, settled)
    return settled


def _check_rows(store: Store, may_go_on: Callable[[], bool]) -> None:
    """Raise ConfigurationError for rows that cannot ring. A row that cannot be read never fires."""
    now, refused, first = store.now(), 0, list[str]()
    for one in takewhile(lambda _: may_go_on(), store.shelf.every_book()):
        why = _why_not(one.row, now) if one.row else None
        if why:
            refused += 1
            first += [f"{schedule_id(one.user_id, one.key)}: {why}"][: MOST_NAMED - len(first)]
    if refused:
        raise ConfigurationError(
            f"EventBridge cannot say the times of {refused} schedules. Change them, or deploy with "
            f"Trigger=tick. The first are {'; '.join(first)}"
        )


def _why_not(row: IndexRow, now: int) -> str | None:
    try:
        bell_of(row, now)
    except ValueError as problem:
        return str(problem)
    return None
