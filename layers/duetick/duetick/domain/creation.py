"""Creations that a caller may repeat: their idempotency key and their result."""

from dataclasses import replace
from typing import NamedTuple

from duetick.domain.errors import KeyReused
from duetick.domain.policies import Policies
from duetick.domain.schedule import Record, Schedule


class Repeatable(NamedTuple):
    """A creation with an idempotency key.

    Up to `until`, `name` stands for the key, and `digest` for the request.
    """

    name: str
    digest: str
    until: int

    def note(self, made: Record) -> str:
        """Return the text that a store keeps of the creation: the digest, and on a line of its own
        the policies, whose defaults are not in the request.
        """
        return f"{self.digest}\n{made.policies.dump() or '{}'}"


class Made(NamedTuple):
    """The result of a repeatable creation. The rest of the record is in the request, and so are the
    policies if an older release made it.
    """

    digest: str
    at: int
    next_fire_at: int | None
    policies: Policies | None = None

    @staticmethod
    def read(note: str, at: int, next_fire_at: int | None) -> "Made":
        """Return the result from the note that a store kept of it."""
        digest, _, policies = note.partition("\n")
        return Made(digest, at, next_fire_at, Policies.load(policies) if policies else None)

    def repeat(self, wanted: Schedule, repeatable: Repeatable) -> Record:
        """Return the schedule as it was created, for a repeat of the same request.

        Raises KeyReused if the request differs.
        """
        if repeatable.digest != self.digest:
            raise KeyReused
        pause = wanted.pause and replace(wanted.pause, since=self.at)
        return replace(
            Record.of(wanted),
            policies=self.policies or wanted.policies,
            pause=pause,
            version=1,
            created_at=self.at,
            updated_at=self.at,
            next_fire_at=self.next_fire_at,
        )
