"""The everyday begin and settle as one conditional update each, without a read before.

The condition of a begin holds if nothing forbids the begin. The condition of a settle holds if the
attempt is unchanged since its begin. If a condition fails, the general way reads the book.
"""

from typing import Final

from duetick.domain.attempts import Settled
from duetick.domain.occurrence import Leased, Occurrence
from duetick.domain.policies import Overlap
from duetick.domain.states import State
from duetick.stores.dynamodb.occurrences import (
    LONGEST_ERROR,
    MOST_OPEN,
    ROOM_FOR_EVENTS,
    dump_event,
    number,
    slot,
    text,
)
from duetick.stores.dynamodb.table import Item, Update

_NAMES: Final = {"#o": "open", "#q": "q", "#l": "l", "#h": "hold", "#rev": "rev"}

_BEGIN: Final = (
    "SET #o.#i.#q = :to, #o.#i.a = #o.#i.a + :one, #o.#i.b = :now, #o.#i.m = :now, "
    "#o.#i.#l = lms + :now, #o.#i.w = :w, #o.#i.la = if_not_exists(lab, :none), lra = :now, "
    "#rev = #rev + :one"
)
_MAY_BEGIN: Final = (
    "#o.#i.f = :f AND #o.#i.#q = :queued AND #o.#i.#l > :now AND attribute_not_exists(#o.#i.d)"
    " AND attribute_not_exists(#max) AND attribute_not_exists(#off)"
    " AND (attribute_not_exists(pau) OR #o.#i.a = :zero)"
    " AND #o.#i.m <= :now AND ({due}#o.#i.u <= :now)"
)
_COUNT: Final = ", ran = if_not_exists(ran, :zero) + :one"
_OF_FLOW: Final = " AND (attribute_not_exists(#flow) OR #flow = :flow)"
_SETTLE: Final = "SET #o.#i.#q = :to, #o.#i.m = :now, #rev = #rev + :one"
_MAY_SETTLE: Final = "#o.#i.f = :f AND #o.#i.#q = :running"
_AS_BEGUN: Final = "#o.#i.a = :a AND attribute_not_exists(#o.#i.d)"
_ROOM: Final = "(attribute_not_exists(#o.#i.h) OR size(#o.#i.h) < :most)"


def _slot(one: Leased) -> str:
    return slot(one.nominal_at, one.origin)


def _may_share(one: Leased) -> bool:
    """Guess from the caller's occurrence if overlap is allowed; the condition verifies it."""
    return isinstance(one, Occurrence) and one.policies.overlap is Overlap.ALLOW


def _is_first(one: Leased) -> bool:
    """Guess from the caller's occurrence if this is its first attempt; the condition checks it."""
    return not (isinstance(one, Occurrence) and one.attempts)


def begin(held: Leased, now: int, token: str) -> Update:
    """Return the update that begins a leased occurrence.

    Its condition checks the fence, the lease, the definition and the overlap policy. If an
    occurrence has a definition of its own (`d`), its schedule has changed since the claim. If our
    clock is behind that of the claim, or the begin is early, the lease becomes shorter, which needs
    a note. The first attempt counts as a run.
    """
    values: Item = {
        ":f": number(held.fence),
        ":queued": text(State.QUEUED),
        ":to": text(State.PROCESSING),
        ":now": number(now),
        ":one": number(1),
        ":zero": number(0),
        ":w": text(token),
        ":none": text("{}"),
    }
    names = {**_NAMES, "#max": "max", "#off": "off", "#i": _slot(held)}
    first = _is_first(held)
    change = f"{_BEGIN}{_COUNT}" if first else _BEGIN
    due = "attribute_not_exists(#o.#i.u) OR " if held.nominal_at <= now else ""
    may_begin = f"{_MAY_BEGIN.format(due=due)} AND #o.#i.a {'=' if first else '>'} :zero"
    if held.flow:
        may_begin += _OF_FLOW
        names["#flow"] = "flow"
        values[":flow"] = text(held.flow)
    if _may_share(held):
        del names["#h"]
        shared: Item = {":allow": text("a")}
        return Update(change, f"{may_begin} AND ov = :allow", names, values | shared)
    free = "(attribute_not_exists(#h) OR #h = :i)"
    alone = f"{may_begin} AND {free} AND attribute_not_exists(ov)"
    holder: Item = {":i": text(_slot(held))}
    return Update(f"{change}, #h = :i", alone, names, values | holder)


def settle(one: Settled, now: int) -> Update:
    """Return the update that ends an attempt. An occurrence that is retried keeps its place."""
    after = one.after
    values: Item = {
        ":f": number(after.fence),
        ":running": text(State.PROCESSING),
        ":to": text(after.state),
        ":now": number(now),
        ":one": number(1),
    }
    change, removed, condition = _SETTLE, ["#o.#i.#l", "#o.#i.w"], _MAY_SETTLE
    names = {**_NAMES, "#i": _slot(after)}
    if after.reason:
        change += ", #o.#i.r = :r"
        values[":r"] = text(after.reason)
    if after.error:
        change += ", #o.#i.e = :e"
        values[":e"] = text(after.error[:LONGEST_ERROR])
    else:
        removed.append("#o.#i.e")
    if after.told:
        change += ", #o.#i.te = :te"
        values[":te"] = text(after.told[:LONGEST_ERROR])
    else:
        removed.append("#o.#i.te")
    if after.state in (State.RETRYING, State.DEAD):
        failure = _fail(one, values)
        change, condition = f"{change}{failure[0]}", f"{condition} AND {failure[1]}"
    if _may_share(after):
        del names["#h"]
        condition += " AND ov = :allow"
        values[":allow"] = text("a")
    else:
        condition += " AND #h = :i"
        values[":i"] = text(_slot(after))
        removed += [] if after.state is State.RETRYING else ["#h"]
    return Update(f"{change} REMOVE {', '.join(removed)}", condition, names, values)


def _fail(one: Settled, values: Item) -> tuple[str, str]:
    """Return the change and the condition of a failure. They depend on the begun occurrence."""
    before, after = one.before, one.after
    values[":a"] = number(before.attempts)
    policies = before.policies.dump()
    condition = f"{_AS_BEGUN} AND {'pol = :pol' if policies else 'attribute_not_exists(pol)'}"
    if policies:
        values[":pol"] = text(policies)
    if after.state is State.DEAD:
        values |= {":open": text("open"), ":at": number(after.nominal_at)}
        return ", att = :open, aat = :at", f"{condition} AND attribute_not_exists(att)"
    values |= {
        ":due": number(after.due_at),
        ":event": {"L": [dump_event(one.event)] if one.event else []},
        ":empty": {"L": []},
        ":most": number(ROOM_FOR_EVENTS // MOST_OPEN),
    }
    trace = "#o.#i.h = list_append(if_not_exists(#o.#i.h, :empty), :event)"
    return f", #o.#i.u = :due, {trace}", f"{condition} AND {_ROOM}"
