"""The two everyday writes that need no reading first: their condition decides.

A begin that nothing stands against, and an attempt that ended well. Where the condition does not
hold, the item is read and `attempts` says what is to be done.
"""

from typing import Final

from duetick.domain.policies import Overlap
from duetick.domain.schedule import Occurrence
from duetick.domain.states import State
from duetick.ports import Outcome
from duetick.stores.dynamodb.occurrences import LONGEST_ERROR, number, slot_of, text
from duetick.stores.dynamodb.table import Item, Update

_NAMES: Final = {"#o": "open", "#q": "q", "#l": "l", "#h": "hold", "#rev": "rev"}

_BEGIN: Final = (
    "SET #o.#i.#q = :to, #o.#i.a = #o.#i.a + :one, #o.#i.b = :now, #o.#i.m = :now, "
    "#o.#i.#l = lms + :now, #o.#i.w = :w, lra = :now, #rev = #rev + :one"
)
_MAY_BEGIN: Final = (
    "#o.#i.f = :f AND #o.#i.#q = :queued AND #o.#i.#l > :now AND attribute_not_exists(#o.#i.d)"
    " AND attribute_not_exists(#max)"
)
_OF_FLOW: Final = " AND (attribute_not_exists(#flow) OR #flow = :flow)"
_SETTLE: Final = "SET #o.#i.#q = :to, #o.#i.r = :r, #o.#i.m = :now, #rev = #rev + :one"
_MAY_SETTLE: Final = "#o.#i.f = :f AND #o.#i.#q = :running"


def _shares(occurrence: Occurrence) -> bool:
    """A guess from what the caller says; the condition makes sure of it."""
    return occurrence.policies.overlap is Overlap.ALLOW


def begin(occurrence: Occurrence, now: int, token: str) -> Update:
    """Begin, if the fence, the lease, the definition and the overlap policy are as they should.

    An occurrence with a definition of its own (`d`) was overtaken by a change of its schedule.
    """
    values: Item = {
        ":f": number(occurrence.fence),
        ":queued": text(State.QUEUED),
        ":to": text(State.PROCESSING),
        ":now": number(now),
        ":one": number(1),
        ":w": text(token),
    }
    names = {**_NAMES, "#max": "max", "#i": slot_of(occurrence)}
    may_begin = _MAY_BEGIN
    if occurrence.flow:
        may_begin += _OF_FLOW
        names["#flow"] = "flow"
        values[":flow"] = text(occurrence.flow)
    if _shares(occurrence):
        del names["#h"]
        shared: Item = {":allow": text("a")}
        return Update(_BEGIN, f"{may_begin} AND ov = :allow", names, values | shared)
    alone = f"{may_begin} AND attribute_not_exists(#h) AND attribute_not_exists(ov)"
    holder: Item = {":i": text(slot_of(occurrence))}
    return Update(f"{_BEGIN}, #h = :i", alone, names, values | holder)


def settle(occurrence: Occurrence, outcome: Outcome, now: int) -> Update:
    """End an attempt that needs no other after it."""
    values: Item = {
        ":f": number(occurrence.fence),
        ":running": text(State.PROCESSING),
        ":to": text(outcome.state),
        ":r": text(outcome.reason),
        ":now": number(now),
        ":one": number(1),
    }
    names = {**_NAMES, "#i": slot_of(occurrence)}
    change, leaving = _SETTLE, "#o.#i.#l, #o.#i.w"
    if outcome.error:
        change += ", #o.#i.e = :e"
        values[":e"] = text(outcome.error[:LONGEST_ERROR])
    else:
        leaving += ", #o.#i.e"
    if _shares(occurrence):
        del names["#h"]
        return Update(
            f"{change} REMOVE {leaving}",
            f"{_MAY_SETTLE} AND ov = :allow",
            names,
            values | {":allow": text("a")},
        )
    values[":i"] = text(slot_of(occurrence))
    return Update(f"{change} REMOVE {leaving}, #h", f"{_MAY_SETTLE} AND #h = :i", names, values)
