"""A clock that stands still until a test advances it."""


class FakeClock:
    """A `ports.Clock`: call it for the time in milliseconds."""

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, milliseconds: int) -> int:
        """Let time pass. Return the new time. The clock never goes back."""
        if milliseconds < 0:
            raise ValueError(f"time does not go back; got {milliseconds} ms.")
        self.now += milliseconds
        return self.now
