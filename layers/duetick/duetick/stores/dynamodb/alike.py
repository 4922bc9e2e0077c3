"""The parts of a forecast on DynamoDB: items of the directory, then what is under way beside them.

An item has a schedule's row, and all of its occurrences that wait. The journal and the index `due`
name the items that no directory has: jobs, and rows that are gone and have waiting occurrences.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from duetick.domain.alike import (
    Alike,
    AlikePage,
    Selection,
    Waits,
    count_spent_runs,
    make_alike,
    waits,
)
from duetick.domain.failure_hooks import action_run
from duetick.domain.identity import is_job
from duetick.domain.occurrence import Occurrence, ScheduleName
from duetick.domain.paging import make_cursor, read_walk
from duetick.stores.dynamodb.books import Books
from duetick.stores.dynamodb.items import BookItem
from duetick.stores.dynamodb.schema import DIRECTORIES

AT_ONCE: Final = 2_000
"""The schedules of one part: some forty requests."""

MOST_UNDER_WAY: Final = 20_000
"""The most schedules and jobs under way that are read beside the directory."""

ITEMS_OF_A_UNIT: Final = 2
"""An item of at most 4 kilobytes is half a unit, where a moment old is good enough."""

KEYS_OF_A_UNIT: Final = 70
"""The keys of the directory that one unit reads: each has some 110 bytes."""


def walk_units(books: int) -> int:
    """Return the read units of a walk over a number of books: each is listed, and read."""
    return -(-books // ITEMS_OF_A_UNIT) + -(-books // KEYS_OF_A_UNIT)


class PartRead:
    """The rows and waiting occurrences of a selection in one part, as of an instant."""

    def __init__(self, selection: Selection, now: int, until: int) -> None:
        self._selection = selection
        self._now = now
        self._until = until
        self._rows: list[Alike] = []
        self._waiting: list[Waits] = []
        self._unreadable = 0

    def take(self, item: BookItem) -> None:
        """Take the row of an item, and its waiting occurrences."""
        book, record = item.book, item.book.record
        action = record.action if record else ""
        row = book.row or (book.unreadable.row if book.unreadable else None)
        if row and self._selection.takes(row.user_id, row.flow, action):
            self._unreadable += book.unreadable is not None
            if book.row:
                spent = count_spent_runs(record.runs if record else 0, item.under_way)
                self._rows.append(make_alike(row, book.mark, action=action, spent=spent))
        self.take_waiting(item)

    def take_waiting(self, item: BookItem) -> None:
        """Take the waiting occurrences of an item."""
        self._waiting += filter(None, (self._waits(one, item) for one in item.under_way))

    def _waits(self, one: Occurrence, item: BookItem) -> Waits | None:
        record = item.book.record
        action = action_run(record, one.origin) if record else ""
        found = waits(one, self._now, self._until, action=action)
        return found if found and self._selection.takes(one.user_id, one.flow, action) else None

    def page(self, place: str | None = None, *, partly: bool = False) -> AlikePage:
        """Return all that was taken. `place` is where the next part begins."""
        return AlikePage(self._rows, self._waiting, self._unreadable, place, partly)


def read_user(items: Iterable[BookItem], part: PartRead) -> AlikePage:
    """Return the whole answer for a user: one partition has every item."""
    for item in items:
        part.take(item)
    return part.page()


def is_in_directory(place: str) -> bool:
    """Return True if the part that begins at a place is one of the directory."""
    return read_walk(place)[0] < DIRECTORIES


def read_directory(every: Iterator[tuple[int, BookItem]], part: PartRead) -> AlikePage:
    """Return the next part of the directory. What is under way beside it follows the last one."""
    following = make_cursor(DIRECTORIES, "", "", 0)
    for number, (directory, item) in enumerate(islice(every, AT_ONCE), 1):
        part.take(item)
        if number == AT_ONCE:
            following = make_cursor(directory, *item.name, 0)
    return part.page(following)


def read_beside(names: Iterator[ScheduleName], books: Books, part: PartRead) -> AlikePage:
    """Return the waiting occurrences of jobs, and of rows that are gone."""
    rest = islice(names, MOST_UNDER_WAY)
    read = 0
    while chunk := [*islice(rest, AT_ONCE)]:
        read += len(chunk)
        for item in books.load_many(chunk, consistent=False).values():
            if is_job(item.name[1]) or item.is_gone:
                part.take_waiting(item)
    return part.page(partly=read == MOST_UNDER_WAY)
