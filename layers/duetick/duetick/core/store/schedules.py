"""The records of schedules. Each change moves the row and accounts for due times at once."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from duetick.domain.book import Book
from duetick.domain.cadence import EACH_MINUTE, warning
from duetick.domain.creation import Made, Repeatable
from duetick.domain.ending import ScheduleState, counts, state_of
from duetick.domain.errors import InvalidSchedule, refuse_schedule
from duetick.domain.paging import make_cursor, read_key
from duetick.domain.schedule import Record, Schedule, check_pace
from duetick.domain.versions import Expected, check_version
from duetick.ports import Clock, Shelf, Terms

if TYPE_CHECKING:
    from duetick.domain.retention import Retention

Listing: TypeAlias = ScheduleState | Literal["all"] | None
"""The schedules that a list shows: those in a state, all, or those that are active or paused."""

Sift: TypeAlias = Callable[[Record], bool]
"""A function that says whether a list shows a record."""

LISTED: Final = (*get_args(ScheduleState), "all")

logger = logging.getLogger("duetick.schedules")


COUNTED_AT_ONCE: Final = 100
"""The records of a user that are read at a time to count or to sift them."""

MOST_READ: Final = 1_000
"""The most records that are read for one page."""


class _GivenUp(Exception):
    """A change that is not to be written: the record that it would have made."""

    def __init__(self, made: Record, *, counts_more: bool) -> None:
        super().__init__(made.id)
        self.made = made
        self.counts_more = counts_more


class Page(NamedTuple):
    """Some schedules of one user, and the cursor of the next page."""

    schedules: tuple[Record, ...]
    cursor: str | None = None


class Schedules:
    """The records of one database. A tick comes each `tick_seconds`. With `look_ahead` ticks claim
    ahead: rates below a minute are taken, and nothing waits for a tick. If the store is `managed`,
    EventBridge rings for each: what it cannot say is refused.
    """

    def __init__(
        self,
        shelf: Shelf,
        clock: Clock,
        *,
        look_ahead: bool,
        tick_seconds: int = EACH_MINUTE,
        managed: bool = False,
    ) -> None:
        self._shelf = shelf
        self._clock = clock
        self._look_ahead = look_ahead
        self._managed = managed
        self.tick_seconds = tick_seconds

    def put(
        self,
        schedule: Schedule,
        *,
        now: int | None = None,
        if_version: Expected | None = None,
        at_most: int | None = None,
        repeatable: Repeatable | None = None,
    ) -> Record:
        """Create or replace a schedule. Return it with the store's fields (version, anchor, next
        time).

        An unchanged schedule is left as it is. A change of timing first accounts for the due times.
        Raises VersionConflict unless the record is as `if_version` says (`domain.versions`), and
        QuotaReached if more than `at_most` of its user would be active or paused. The write itself
        decides both: of several at once, one wins.

        With `repeatable`, the same write keeps the creation until its end. If another creation has
        its name, that raises VersionConflict too. If the schedule fires more often than the tick
        comes, the answer has a `warning` (see `with_warning`), and the log a line.
        """
        at = self._clock() if now is None else now

        def alter(book: Book) -> Record:
            return self._put(book, schedule, at, if_version)

        terms = Terms(at_most=at_most, creation=repeatable)
        put = self._shelf.change(schedule.user_id, schedule.key, at, alter, terms=terms)
        told = self.with_warning(put, now=at)
        if told.warning and told.enabled:
            _log_tight(told)
        return told

    def _put(self, book: Book, schedule: Schedule, at: int, if_version: Expected | None) -> Record:
        check_version(book.view(), if_version)
        paused = book.record is not None and book.record.is_paused_by(schedule)
        if not self._look_ahead and not paused:
            check_pace(schedule)
        if self._managed and schedule.enabled:
            from duetick.domain.bells import check_ringable

            check_ringable(schedule, at)
        book.put(schedule, at)
        return book.view() or Record.of(schedule)

    def try_put(
        self,
        schedule: Schedule,
        *,
        now: int,
        if_version: Expected | None = None,
        at_most: int | None = None,
    ) -> Record:
        """Return the record that `put` would store now, and store nothing. Raise what it raises.

        The change of the book is made, and given up before the write.
        """

        def alter(book: Book) -> None:
            before = book.record
            made = self._put(book, schedule, now, if_version)
            raise _GivenUp(made, counts_more=counts(made) > counts(before))

        try:
            self._shelf.change(schedule.user_id, schedule.key, now, alter)
        except _GivenUp as given_up:
            self._check_owner(given_up.made)
            if given_up.counts_more and at_most is not None:
                self._check_room(schedule.user_id, at_most)
            return self.with_warning(given_up.made, now=now)
        raise AssertionError("a dry run is given up")

    def _check_owner(self, made: Record) -> None:
        owner = self._shelf.owner(made.external_id) if made.external_id else None
        if owner and owner.id != made.id:
            said = "is already another schedule's; choose another."
            raise InvalidSchedule("external_id", said, "taken")

    def _check_room(self, user_id: str, at_most: int) -> None:
        found = 0
        after: str | None = ""
        while after is not None and found < at_most:
            records, after = self._shelf.records(user_id, after, COUNTED_AT_ONCE, done=False)
            found += len(records)
        if found >= at_most:
            raise refuse_schedule(at_most)

    def with_warning(self, record: Record, *, now: int) -> Record:
        """Return the record, with a warning if it fires more often than the tick comes."""
        if self._look_ahead or self._managed:
            return record
        found = warning(record, self.tick_seconds, now)
        return replace(record, warning=found) if found else record

    def creation(self, user_id: str, name: str, *, now: int) -> Made | None:
        """Return the first result of the creation of that name, or None."""
        return self._shelf.creation(user_id, name, now)

    def get(self, user_id: str, key: str) -> Record | None:
        """Return the record, or None."""
        return self._shelf.record(user_id, key)

    def list(
        self,
        user_id: str,
        *,
        limit: int = 100,
        cursor: str | None = None,
        state: Listing = None,
        now: int | None = None,
        takes: Sift | None = None,
    ) -> Page:
        """Return a page of one user's records, ordered by key. It has those that `takes` accepts.

        Without a `state`, the page shows the schedules that are active or paused. If many others
        stand between, the page may hold few or none, and still have a next one.
        """
        if state not in (None, *LISTED):
            raise InvalidSchedule("state", f"expected one of {', '.join(LISTED)}.", "not_one_of")
        at = self._clock() if now is None else now
        done = None if state == "all" else state == "done"
        found: list[Record] = []
        read, amount = 0, limit + 1 if takes is None else max(limit + 1, COUNTED_AT_ONCE)
        after: str | None = read_key(cursor)
        while after is not None and len(found) <= limit and read < MOST_READ:
            records, after = self._shelf.records(user_id, after, amount, done=done)
            read += len(records)
            fitting = (one for one in records if state in (None, "all", state_of(one, at)))
            found += (one for one in fitting if takes is None or takes(one))
            if len(records) < amount:
                break
        if len(found) > limit:
            after = found[limit - 1].key
        return Page(tuple(found[:limit]), None if after is None else make_cursor(after))

    def delete(
        self, user_id: str, key: str, *, now: int | None = None, if_version: Expected | None = None
    ) -> bool:
        """Delete the schedule, and account for its due times. Return False if there was none.

        Raises VersionConflict unless the record is as `if_version` says.
        """
        at = self._clock() if now is None else now

        def alter(book: Book) -> bool:
            check_version(book.record, if_version)
            return book.delete(at)

        return self._shelf.change(user_id, key, at, alter)

    def purge(
        self, user_id: str, key: str, *, now: int, retention: "Retention | None" = None
    ) -> bool:
        """Delete a schedule that is done, or a job, if its time has come. Return False if it stays.

        The `retention` says until when a job is kept.
        """
        return self._shelf.change(user_id, key, now, lambda book: book.purge(now, retention))

    def find_by_external(self, external_id: str) -> Record | None:
        """Return the schedule that owns an outside id, or None."""
        return self._shelf.owner(external_id)


def _log_tight(record: Record) -> None:
    details = {
        "action": "tight",
        "user": record.user_id,
        "schedule": record.id,
        "flow": record.flow,
    }
    logger.warning("a schedule %s", record.warning, extra=details)
