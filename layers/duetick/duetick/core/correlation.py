"""The ids that stand in each log line of a tick and of its dispatches (J-02).

The correlation id is the id of the occurrence. Beside it stands the id of the tick that delivers
it, which travels in the body of the delivery.
"""

import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

LONGEST: Final = 128

_occurrence: ContextVar[str] = ContextVar("occurrence", default="")
_tick: ContextVar[str] = ContextVar("tick", default="")
_is_own: ContextVar[bool] = ContextVar("is_own", default=False)


def ids() -> dict[str, str]:
    """Return the ids that are known now, by the names that they have in a log line."""
    named = {"correlation_id": _occurrence.get(), "tick": _tick.get()}
    return {name: value for name, value in named.items() if value}


def stamp(record: logging.LogRecord) -> bool:
    """Give a line the ids of its occurrence and its tick: a filter of a handler.

    If a line names an occurrence by itself, that one counts.
    """
    known = ids()
    occurrence = record.__dict__.get("occurrence") or known.get("correlation_id")
    record.__dict__.update(known | ({"correlation_id": occurrence} if occurrence else {}))
    return True


def tick_id() -> str:
    """Return the id of the tick that runs here, or that a call names; empty if there is none."""
    return _tick.get()


@contextmanager
def in_tick(name: str = "") -> Iterator[None]:
    """Let the lines of the block have a tick's id. Without a name, keep the present id, or make
    one.
    """
    before = _tick.set(name or _tick.get() or f"tick_{secrets.token_hex(12)}")
    try:
        yield
    finally:
        _tick.reset(before)


@contextmanager
def own_lines() -> Iterator[None]:
    """Keep the ids that the block names from the lines that come after it. The outermost block
    counts.
    """
    if _is_own.get():
        yield
        return
    before = [(var, var.set("")) for var in (_occurrence, _tick)]
    own = _is_own.set(True)
    try:
        yield
    finally:
        _is_own.reset(own)
        for var, token in before:
            var.reset(token)


def name_occurrence(occurrence: str) -> None:
    """Let the lines from now on have the id of that occurrence."""
    _occurrence.set(occurrence)


def name_call(body: Mapping[str, object]) -> None:
    """Let the lines from now on have the ids in the body of a delivery, as far as they are ids."""
    name_occurrence(_read(body, "occurrence"))
    _tick.set(_read(body, "tick"))


def _read(body: Mapping[str, object], name: str) -> str:
    value = body.get(name)
    fits = isinstance(value, str) and len(value) <= LONGEST and value.isprintable()
    return str(value) if fits else ""
