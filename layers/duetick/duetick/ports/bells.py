"""The port to the schedules of EventBridge Scheduler."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetick.domain.bells import Bell
    from duetick.domain.occurrence import ScheduleName


class Bells(Protocol):
    """The bells of one stack. A call that fails raises BellsUnavailable."""

    def put(self, bell: "Bell") -> None:
        """Create or replace a bell."""

    def delete(self, name: str) -> None:
        """Delete a bell; an absent one is no error."""

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the names of the bells that begin so."""

    def schedule_of(self, name: str) -> "ScheduleName | None":
        """Return the schedule for which a bell rings; None if the bell is gone, or is none of
        ours.
        """

    def wake(self, at: int) -> None:
        """Start a tick in the minute that begins at an instant. One is enough: more asks, by
        whomever, start no more.
        """
