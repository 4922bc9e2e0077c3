"""The index: what a tick reads and claims."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from duetick.domain.schedule import IndexRow, Occurrence

OnPoisoned: TypeAlias = Callable[[Occurrence], object]
"""Told what was recorded of a row that cannot be read."""


class Index(Protocol):
    """The rows that a tick reads: one for each active schedule."""

    def upsert(self, row: IndexRow) -> None:
        """Put the row, keyed on (user_id, key). Any text is taken; a bad one is found at a claim.

        What has already been fired stays fired: a row that is set back fires nothing twice.
        """

    def remove(self, user_id: str, key: str) -> None:
        """Delete the row; an absent one is no error."""

    def get(self, user_id: str, key: str) -> IndexRow | None:
        """The row, unless it is absent or poisoned."""

    def claim_due(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_poisoned: OnPoisoned | None = None
    ) -> Sequence[Occurrence]:
        """Advance at most `limit` rows that are due, oldest first; record and lease what fires.

        In one transaction, or one item at a time. Rows that yield nothing do not end it early:
        an empty answer means that nothing is due. A row may yield several occurrences.
        `on_poisoned` is told of each row that cannot be read, once that is committed.
        """

    def poisoned(self, limit: int = 100, *, since: int = 0) -> Sequence[Occurrence]:
        """Rows that could not be read and left the index since then, the first first.

        The reason is their `error`.
        """

    def backlog(self, now: int, limit: int = 10_000) -> int:
        """How many rows are due, counted up to `limit`."""

    def restore(self, user_id: str, key: str, *, now: int | None = None) -> bool:
        """Put a poisoned row back with a fresh time. False where there is none.

        Raises PoisonedRow where it still cannot be read.
        """
