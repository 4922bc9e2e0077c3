"""The transport from a tick to dispatch, and the answer that comes back."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from duetick.domain.occurrence import NewOccurrence, Occurrence

if TYPE_CHECKING:
    from duetick.domain.packs import OutgoingMessage

Deliverable: TypeAlias = Occurrence | NewOccurrence
"""An occurrence under a tick's lease, or one that is run by hand."""

Observer: TypeAlias = Callable[[Occurrence, int], object]
"""A function that sees each delivery and the status of its answer, 0 for a transport error."""


Trouble: TypeAlias = Literal[
    "dead",
    "poisoned",
    "late",
    "auto_paused",
    "unaccounted",
    "unindexed",
    "stale",
    "unreadable",
    "overdue",
    "old_tzdata",
]
"""The kinds of what somebody should know of: of an occurrence, or of what an hour found."""

Tell: TypeAlias = Callable[[Trouble, Occurrence], object]
"""A function that hears of an occurrence in trouble. It never raises."""


def tell_nobody(_trouble: Trouble, _occurrence: Occurrence) -> None:
    """Tell nobody. This is `Tell` without a bus."""


HandOn: TypeAlias = Callable[[Occurrence], object]
"""A function that starts the run of a leased occurrence and does not wait for it. It returns when
the start is durable, and raises if it is not."""


class Delivered(NamedTuple):
    """An answer of dispatch: the HTTP status, 0 for a transport error."""

    status: int
    detail: str = ""


class Transport(Protocol):
    """The way of an occurrence from a tick to dispatch."""

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """Deliver the occurrence and wait for the answer, up to `timeout` seconds. Never raises."""

    def close(self) -> None:
        """Close the connections."""


Sending: TypeAlias = Literal["sent", "refused", "in_doubt"]
"""The fate of a message: the queue has it, or has not, or nobody knows."""


class PackTransport(Protocol):
    """The way of packs from a tick to dispatch: a queue, which takes them and answers nothing."""

    def send(self, messages: "Sequence[OutgoingMessage]", now: int) -> Sequence[Sending]:
        """Hand messages to the queue; return the result of each. Never raises.

        The queue keeps a message back until the last whole second before it is due.
        """

    def close(self) -> None:
        """Close the connections."""


class PackQueue(Protocol):
    """The calls of a queue that dispatch makes itself. The runtime makes the others."""

    def put_back(self, receipt: str, seconds: int) -> None:
        """Put a received message back, to come again after a number of seconds. Never raises."""


class RunTransport(Protocol):
    """The way of a run by hand to dispatch."""

    def deliver(self, occurrence: NewOccurrence, *, timeout: float) -> Delivered:
        """See `Transport`."""
