"""The failed attempts of an occurrence, read from its events and its own fields."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from duetick.domain.occurrence import Occurrence
from duetick.domain.states import Reason, State

Verb: TypeAlias = Literal["retried", "cancelled", "deleted"]

OWN_USER: Final = "the user"
"""The name of whoever cancels a job as its user: no operator's."""

_FAILED: Final = "attempt {}: {}"
_LOST: Final = "lease ended during attempt {}"
_OPERATED: Final = re.compile(rf"(retried|cancelled|deleted) by (?!{OWN_USER}\Z).*", re.DOTALL)
_NOTE: Final = re.compile(r"attempt (\d+): (.*)|lease ended during attempt (\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Event:
    """A transition that the fields of the occurrence do not show.

    The note is for operators. `told` is the text of a failure for the user.
    """

    at: int
    before: State
    after: State
    note: str
    told: str | None = None


class Failure(NamedTuple):
    """The end of an attempt that did not succeed.

    `error` is for operators, `told` for the user. If the attempt was lost, there is neither.
    """

    attempt: int
    at: int
    error: str | None = None
    told: str | None = None
    lost: bool = False


def note_failure(attempt: int, error: str | None) -> str:
    """Return the note of a failed attempt that is followed by another one."""
    return _FAILED.format(attempt, error or "")


def note_loss(attempt: int) -> str:
    """Return the note of an attempt whose lease ended."""
    return _LOST.format(attempt)


def note_operated(verb: Verb, who: str, why: str = "") -> str:
    """Return the note of an operator's change. `why` is the operator's own text."""
    return f"{verb} by {who}: {why}" if why else f"{verb} by {who}"


def without_operator(note: str) -> str:
    """Return a note as a user may read it: it does not say which operator made the change."""
    operated = _OPERATED.fullmatch(note)
    return f"{operated[1]} by an operator" if operated else note


def has_failures(occurrence: Occurrence) -> bool:
    """Return True if an attempt may have failed, and only an event shows it."""
    if occurrence.attempts != 1:
        return occurrence.attempts > 1
    if occurrence.state is State.DEAD:
        return occurrence.reason is Reason.LOST
    return occurrence.state not in (State.SUCCEEDED, State.PROCESSING)


def failures_of(occurrence: Occurrence, events: Sequence[Event]) -> list[Failure]:
    """Return the failed attempts, the oldest first.

    A store may have dropped the oldest events: then the numbers do not begin with 1.
    """
    found = [one for one in map(failure_of, events) if one]
    died = occurrence.state is State.DEAD and occurrence.reason is not Reason.LOST
    if died and occurrence.attempts:
        o = occurrence
        found.append(Failure(o.attempts, o.updated_at, o.error, o.told))
    return found


def failure_of(event: Event) -> Failure | None:
    """Return the failed attempt that an event ends; None if it ends none."""
    parts = _NOTE.fullmatch(event.note) if event.before is State.PROCESSING else None
    if parts is None:
        return None
    failed, error, lost = parts.groups()
    if lost:
        return Failure(int(lost), event.at, lost=True)
    return Failure(int(failed), event.at, error or None, event.told)
