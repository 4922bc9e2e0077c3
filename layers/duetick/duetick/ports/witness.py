"""The witness: an instant that is kept outside the store, so that no backup of the store has it."""

from typing import Protocol


class Witness(Protocol):
    """A place for one instant. It raises `WitnessUnavailable` if it does not answer."""

    def read(self) -> int | None:
        """Return the instant; None if none was ever written."""

    def write(self, at: int) -> None:
        """Keep an instant, in place of the one before."""
