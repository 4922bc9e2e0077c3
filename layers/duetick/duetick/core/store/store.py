"""The store: index, schedules and ledger of one database, and the operations on all of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from duetick.core.ids import new_id
from duetick.core.standing import FreshOrders
from duetick.core.store.index import Index
from duetick.core.store.ledger import Ledger
from duetick.core.store.limits import ScopeLimits
from duetick.core.store.pauses import GroupPauses
from duetick.core.store.schedules import Schedules
from duetick.domain.book import Book
from duetick.domain.cadence import EACH_MINUTE
from duetick.domain.rows import Disagreement, disagreement
from duetick.ports import Clock, Counted, Dialect, Listed, Shelf

if TYPE_CHECKING:
    from duetick.core.managed.watched import Followers
    from duetick.core.store.jobs import Jobs
    from duetick.domain.workers import NamedLock, Worker

WORKERS: Final = 1_000
"""The most reports of workers that one read returns."""


class Difference(NamedTuple):
    """A schedule whose index row is not the one that its record requires.

    `unindexed`: there is no row. `stray`: there should be no row. `stale`: the row has other fields
    than the record, or waits for another time. `unreadable`: the expression or the zone cannot be
    read. `done`: the schedule will never fire again, and is not marked so.
    """

    user_id: str
    key: str
    problem: Disagreement


class Store:
    """One database. `open_store` makes it and never runs DDL. `clock` replaces the database's
    clock.

    With `followers`, EventBridge rings for its rows: a schedule whose times EventBridge cannot say
    is refused, and each change makes the bell pending that it moves.
    """

    def __init__(
        self,
        shelf: Shelf,
        clock: Clock | None = None,
        *,
        look_ahead: bool = False,
        tick_seconds: int = EACH_MINUTE,
        followers: "Followers | None" = None,
    ) -> None:
        self.now: Clock = clock or shelf.now
        if followers:
            from duetick.core.managed.watched import watch

            shelf = watch(shelf, followers, self.now)
        self.shelf = shelf
        self.schedules = Schedules(
            shelf,
            self.now,
            look_ahead=look_ahead,
            tick_seconds=tick_seconds,
            managed=followers is not None,
        )
        self.standing = FreshOrders(shelf)
        self.pauses = GroupPauses(shelf, self.standing)
        self.index = Index(shelf, self.now, self.pauses)
        self.limits = ScopeLimits(shelf, self.standing)
        self.ledger = Ledger(shelf, self.now, new_id, self.pauses, self.limits)

    @property
    def jobs(self) -> "Jobs":
        """The jobs. Their module is loaded when it is needed: a tick makes none."""
        from duetick.core.store.jobs import Jobs

        return Jobs(self.shelf, self.now, new_id)

    @property
    def dialect(self) -> Dialect | None:
        """The kind of transaction that `settling` opens; None if an action can write nothing.

        If an action needs another dialect, it is refused as the deployment starts.
        """
        return self.shelf.dialect

    def migrate(self) -> int:
        """Create or update the schema. Two migrations are safe, one after the other or at once.

        Return the number of rows that were taken over from an earlier index.
        """
        done = self.shelf.migrate()
        if done.unmarked:
            self.mark_done(now=self.now())
        return done.taken_over

    def check_schema(self) -> None:
        """Raise SchemaOutdated, naming the command that repairs it, unless this code can use the
        schema.
        """
        self.shelf.check_schema()

    def check(self, *, now: int) -> Sequence[Difference]:
        """Return the differences between records and rows. Good rows without a record are left
        alone.

        A row that cannot be read is `unreadable`, with a record or without.
        """
        found = (compare(one, now) for one in self.shelf.every_book())
        return sorted((one for one in found if one), key=lambda one: (one.user_id, one.key))

    def rebuild(self, *, now: int) -> int:
        """Repair the differences that `check` finds. Return the number of repairs.

        An `unreadable` row stays: `Index.restore` brings it back if it can be read by now, an
        upsert or a change of timing in any case.
        """
        mended = [self.mend(one.user_id, one.key, now=now) for one in self.check(now=now)]
        return sum(mended) + self.shelf.tidy(now)

    def mark_done(self, *, now: int) -> int:
        """Mark the unmarked schedules that will never fire again as done. Return their number."""
        unmarked = [one for one in self.check(now=now) if one.problem == "done"]
        return sum(self.mend(one.user_id, one.key, now=now) for one in unmarked)

    def mend(self, user_id: str, key: str, *, now: int) -> bool:
        """Bring one row in line with its record. Return True if they disagreed and now agree."""
        return self.shelf.change(user_id, key, now, lambda book: book.mend(now))

    def close_pause(self, user_id: str, key: str, *, now: int) -> bool:
        """End a pause whose end is over. Return False if there is none."""
        return self.shelf.change(user_id, key, now, lambda book: book.close_pause(now))

    def follow_zone(self, user_id: str, key: str, *, now: int) -> bool:
        """Move a row to its next time under its zone's present rules. Return True if it moved."""
        return self.shelf.change(user_id, key, now, lambda book: book.follow_zone(now))

    def pass_over(
        self, user_id: str, key: str, until: int, *, now: int, keeps_newest: bool = False
    ) -> bool:
        """Record the due times of a row up to `until` as missed: a restore lost their outcomes.

        With `keeps_newest`, the newest stays due. Return False if nothing changes.
        """

        def alter(book: Book) -> bool:
            return book.pass_over(until, now, keeps_newest=keeps_newest)

        return self.shelf.change(user_id, key, now, alter)

    def erase(self, user_id: str) -> int:
        """Delete all data of a user. Return the number of schedules.

        The user's history goes as well: its times are not accounted for afterwards.
        """
        return self.shelf.erase(user_id)

    def allow(self, user_id: str, counted: Counted, at_most: int, *, now: int) -> bool:
        """Count one. Return False if the user has had `at_most` in this minute. One write decides.

        A minute begins where the clock says so.
        """
        return at_most > 0 and self.shelf.count(user_id, counted, at_most, now)

    def workers(self, since: int, limit: int = WORKERS) -> "Sequence[Worker]":
        """Return the newest reports of ticks and background runs that started from `since` on, the
        newest first, at most `limit`.
        """
        return self.shelf.workers(since, min(limit, WORKERS))

    def locks(self) -> "Sequence[NamedLock]":
        """Return the named locks, those whose time is over too."""
        return self.shelf.locks()

    def close(self) -> None:
        """Close the connections. A closed store may be used again; it connects anew."""
        self.shelf.close()


def compare(one: Listed, now: int) -> Difference | None:
    """Return the difference between the record and the row of a book, or None."""
    problem = disagreement(one.record, one.row, one.mark, now)
    if one.unreadable:
        problem = "unreadable"
    return Difference(one.user_id, one.key, problem) if problem else None
