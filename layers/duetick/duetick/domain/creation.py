"""Creations that may be asked for again: what one is known by, and what it made."""

from dataclasses import dataclass, replace

from duetick.domain.errors import KeyReused
from duetick.domain.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A creation with an idempotency key of its caller's: `name` stands for the key until then,
    and `digest` for what is asked for.
    """

    name: str
    digest: str
    until: int


@dataclass(frozen=True, slots=True)
class Made:
    """What such a creation made, and when; the rest of it is what was asked for."""

    digest: str
    at: int
    next_fire_at: int | None

    def again(self, wanted: Schedule, asked: Repeatable) -> Schedule:
        """The schedule as it was made, for a call that asks for the same; raise KeyReused."""
        if asked.digest != self.digest:
            raise KeyReused
        pause = wanted.pause and replace(wanted.pause, since=self.at)
        return replace(
            wanted,
            pause=pause,
            version=1,
            created_at=self.at,
            updated_at=self.at,
            next_fire_at=self.next_fire_at,
        )
