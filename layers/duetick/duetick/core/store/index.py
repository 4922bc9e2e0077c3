"""The index: the rows that a tick reads and claims."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeAlias

from duetick.core.store.pauses import GroupPauses
from duetick.domain.book import Book
from duetick.domain.claims import Templates
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.group_pauses import NO_PAUSES, Pauses
from duetick.domain.limits import NO_LIMITS, Limits
from duetick.domain.occurrence import IndexRow, Occurrence
from duetick.ports import Clock, Fair, Part, Shelf

OnPoisoned: TypeAlias = Callable[[Occurrence], object]
"""A function that sees the poisoned occurrence of each row that cannot be read."""


class OneClaim(NamedTuple):
    """The claim of one row: the row as it was, and the occurrences that it made."""

    row: IndexRow | None
    made: Sequence[Occurrence] = ()


class Index:
    """The rows that a tick reads: one for each active schedule."""

    def __init__(self, shelf: Shelf, clock: Clock, pauses: GroupPauses | None = None) -> None:
        self._shelf = shelf
        self._clock = clock
        self._pauses = pauses

    def upsert(self, row: IndexRow) -> None:
        """Put the row of (user_id, key). Any text is taken; a claim finds one that cannot be read.

        Fired times stay fired: a row that is set back fires nothing twice.
        """
        now = self._clock()
        self._shelf.change(row.user_id, row.key, now, lambda book: book.put_row(row, now))

    def remove(self, user_id: str, key: str) -> None:
        """Delete the row; an absent one is no error."""
        self._shelf.change(user_id, key, self._clock(), lambda book: book.remove_row())

    def get(self, user_id: str, key: str) -> IndexRow | None:
        """Return the row; None if it is absent or unreadable."""
        return self._shelf.row(user_id, key)

    def claim_due(
        self,
        now: int,
        limit: int = 100,
        *,
        ahead: int = 0,
        leave_out: Collection[str] = (),
        share: int | None = None,
        pauses: Pauses = NO_PAUSES,
        limits: Limits = NO_LIMITS,
        late: int = 0,
        part: Part | None = None,
        may_go_on: Callable[[], bool] = lambda: True,
        on_poisoned: OnPoisoned | None = None,
    ) -> list[Occurrence]:
        """Advance at most `limit` due rows, oldest first; record and lease what fires.

        The rows of users in `leave_out` stay. Of each other user, no more than a `share` is taken,
        unless all due rows fit into the limit. Rows that yield nothing do not end the claim: an
        empty answer means that nothing else is due, or that the claim may not go on. A row may
        yield several occurrences; a time in one of the announced `pauses` yields none. An
        occurrence that one of the `limits` may cover is recorded and not leased:
        `Ledger.claim_waiting` leases it. A row that is due for less than `late` milliseconds stays:
        its bell brings it. Of several claimers each may take a `part`. `on_poisoned` sees each row
        that cannot be read, after the commit.
        """
        fair = Fair(frozenset(leave_out), share, pauses, limits, late, part)
        while True:
            chunk = self._shelf.claim(now, limit, ahead, fair)
            if on_poisoned:
                for one in chunk.poisoned:
                    on_poisoned(one)
            if chunk.occurrences or not chunk.due or not may_go_on():
                return list(chunk.occurrences)

    def claim_one(
        self,
        user_id: str,
        key: str,
        *,
        now: int,
        pauses: Pauses = NO_PAUSES,
        limits: Limits = NO_LIMITS,
    ) -> OneClaim:
        """Claim one row if it is due, as `claim_due` does: the same write advances it, or nothing
        changes.
        """

        def alter(book: Book) -> OneClaim:
            row = book.row
            made = book.claim(Templates(now, 0, pauses, limits), book.room)
            return OneClaim(row, [*made])

        return self._shelf.change(user_id, key, now, alter)

    def unreadable(self, limit: int = 100, *, since: int = 0) -> Sequence[Occurrence]:
        """Return the rows that left the index from `since` on, the earliest first, each as
        poisoned.
        """
        found = self._shelf.unreadable(since, limit)
        return [one.occurrence() for one in found]

    def backlog(self, now: int, limit: int = 10_000) -> int:
        """Count the due rows, up to `limit`."""
        return self._shelf.backlog(now, limit)

    def restore(self, user_id: str, key: str, *, now: int) -> bool:
        """Put an unreadable row back, due for the times since. Return False if there is none.

        Raises PoisonedRow if the row still cannot be read.
        """
        pauses = self._pauses.since(now - KEPT_GONE_MS) if self._pauses else NO_PAUSES
        return self._shelf.change(user_id, key, now, lambda book: book.restore(now, pauses))
