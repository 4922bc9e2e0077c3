"""One database, and what a check of it finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from duetick.domain.mirror import Problem
from duetick.ports.index import Index
from duetick.ports.ledger import Ledger
from duetick.ports.schedules import Schedules


@dataclass(frozen=True, slots=True)
class Difference:
    """A schedule whose index row is not what its record asks for.

    `missing`: there is none. `stray`: there should be none. `stale`: it says something else,
    or waits for a time that the record does not ask for.
    `unreadable`: the expression or the zone cannot be read (any more).
    """

    user_id: str
    key: str
    problem: Problem


class Store(Protocol):
    """One database. `open_store` makes it; opening never runs DDL."""

    @property
    def index(self) -> Index:
        """The index."""

    @property
    def schedules(self) -> Schedules:
        """The records."""

    @property
    def ledger(self) -> Ledger:
        """The ledger."""

    def now(self) -> int:
        """The store's clock, unless one was given: the database's on SQL, the host's elsewhere."""

    def migrate(self) -> None:
        """Create or update the schema; safe twice and at the same time as another."""

    def check_schema(self) -> None:
        """Raise SchemaOutdated, naming the command that mends it, unless this code can use it."""

    def check(self, *, now: int | None = None) -> Sequence[Difference]:
        """Where records and index rows disagree. Good rows without a record are left alone.

        A poisoned row is `unreadable`, with a record or without; `domain.mirror.problem_of` knows
        the rest.
        """

    def rebuild(self, *, now: int | None = None) -> int:
        """Mend what `check` finds; how many rows were.

        What is `unreadable` stays: `restore`, an upsert or a change of timing brings it back.
        """

    def erase(self, user_id: str) -> int:
        """Delete everything that is kept of a user; how many schedules there were.

        Their history goes as well: nothing of it is accounted for afterwards.
        """

    def admit_run(self, user_id: str, at_most: int, *, now: int | None = None) -> bool:
        """Count a run by hand, unless the user has had `at_most` in this minute; one write decides.

        A minute begins where the clock says so.
        """

    def close(self) -> None:
        """Let go of connections. A closed store may be used again; it connects anew."""
