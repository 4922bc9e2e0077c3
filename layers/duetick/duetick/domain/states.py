"""The states of an occurrence, the transitions between them, and the reasons."""

from enum import StrEnum
from typing import Final

from duetick.domain.errors import IllegalTransition


class State(StrEnum):
    """The state of an occurrence. No occurrence stays `failed`: it passes through."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRYING = "retrying"
    DEAD = "dead"
    CANCELLED = "cancelled"
    DELETED = "deleted"


class Reason(StrEnum):
    """The reason why an occurrence ended as it did. A terminal state has exactly one."""

    FIRED = "fired"
    FAILED = "failed"
    LOST = "lost"
    REJECTED = "rejected"
    POISONED = "poisoned"
    OVERLAP = "overlap"
    MISSED = "missed"
    PAUSED = "paused"
    DISABLED = "disabled"
    SCHEDULE_DELETED = "schedule_deleted"
    SUPERSEDED = "superseded"
    QUOTA = "quota"
    OPERATOR = "operator"


TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    State.SCHEDULED: frozenset({State.QUEUED, State.CANCELLED}),
    State.QUEUED: frozenset({State.PROCESSING, State.CANCELLED, State.DELETED}),
    State.PROCESSING: frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED}),
    State.FAILED: frozenset({State.RETRYING, State.DEAD, State.QUEUED}),
    State.RETRYING: frozenset({State.QUEUED, State.CANCELLED}),
    State.DEAD: frozenset({State.QUEUED, State.DELETED}),
    State.SUCCEEDED: frozenset({State.DELETED}),
    State.CANCELLED: frozenset({State.DELETED}),
    State.DELETED: frozenset(),
}

REASONS: Final[dict[State, frozenset[Reason]]] = {
    State.SUCCEEDED: frozenset({Reason.FIRED}),
    State.DEAD: frozenset({Reason.FAILED, Reason.LOST, Reason.REJECTED, Reason.POISONED}),
    State.CANCELLED: frozenset(
        {
            Reason.OVERLAP,
            Reason.MISSED,
            Reason.PAUSED,
            Reason.DISABLED,
            Reason.SCHEDULE_DELETED,
            Reason.SUPERSEDED,
            Reason.QUOTA,
            Reason.OPERATOR,
        }
    ),
}

TERMINAL: Final = frozenset(REASONS)
WAITING: Final = frozenset({State.SCHEDULED, State.RETRYING})
LEASED: Final = frozenset({State.QUEUED, State.PROCESSING})


def check_transition(before: State, after: State) -> bool:
    """Return True if the state changes.

    Raises IllegalTransition if `after` may not follow `before`.
    """
    if before == after:
        return False
    if after in TRANSITIONS[before]:
        return True
    allowed = ", ".join(sorted(TRANSITIONS[before])) or "nothing"
    raise IllegalTransition(f"{before} cannot become {after}; only {allowed} may follow it.")


def end_state(state: State, reason: Reason | None) -> State:
    """Return the state in which an occurrence ended, also if it was deleted since."""
    if state is not State.DELETED:
        return state
    return next((one for one, reasons in REASONS.items() if reason in reasons), state)


def check_reason(state: State, reason: Reason | None) -> None:
    """Raise IllegalTransition unless a terminal state has one of its reasons, any other none.

    A deleted occurrence keeps the reason of its end.
    """
    allowed = frozenset(Reason) if state is State.DELETED else REASONS.get(state)
    if (reason is None) != (allowed is None) or (allowed and reason not in allowed):
        raise IllegalTransition(f"{state} does not end with the reason {reason}.")
