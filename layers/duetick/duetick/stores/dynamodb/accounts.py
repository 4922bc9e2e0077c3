"""The accounts of schedules on DynamoDB, as verify reads them.

A schedule's account costs the read of its item, of its definitions and of its history in the span.
Each read is at half price, and may be a moment old. `account` reads all of it as it is.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from duetick.domain.accounts import Account, LedgerEntry
from duetick.domain.definitions import Definition
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.occurrence import LATEST, Occurrence, ScheduleName
from duetick.domain.paging import WalkPlace, make_cursor, read_walk
from duetick.stores.dynamodb.books import Books
from duetick.stores.dynamodb.items import BookItem, gone_directory, item_key, name_of
from duetick.stores.dynamodb.occurrences import (
    history_partition,
    history_sort,
    number,
    read_history,
    text,
)
from duetick.stores.dynamodb.records import definition_partition, read_definition
from duetick.stores.dynamodb.schema import DIRECTORIES, DIRECTORY, LEAVING
from duetick.stores.dynamodb.table import key_attributes

AT_ONCE: Final = 100
ENTRIES_AT_ONCE: Final = 1_000
FIRST_PART: Final = 2 * DIRECTORIES
LAST_PART: Final = 5 * DIRECTORIES
"""The parts of a walk, a directory each: what had gone, what is there, what has gone since. The
parts before the first one are of walks that an earlier release began: what is there, what is gone.
"""


class Accounts:
    """The accounts of one table."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._table = books.table

    def walk(self, since: int, until: int, place: str) -> Iterator[Account]:
        """Yield the accounts after a place: schedules gone by `until`, those that exist, those gone
        since.

        So a schedule that is deleted or made again during the walk is behind its place, or still
        ahead. The walk may see it twice.
        """
        first, after = read_walk(place) if place else (FIRST_PART, None)
        for part in range(first, FIRST_PART if first < FIRST_PART else LAST_PART):
            found = self._names(part, since, until, after)
            after = None
            while chunk := list(islice(found, AT_ONCE)):
                items = self._books.load_many([name for name, _ in chunk], consistent=False)
                for name, left_at in chunk:
                    if name in items:
                        one = self._account(items[name], since, until, consistent=False)
                        yield one._replace(place=make_cursor(part, *name, left_at))

    def one(self, name: ScheduleName, since: int, until: int) -> Account:
        """Return the account of one schedule, as of now."""
        return self._account(self._books.load(*name), since, until, consistent=True)

    def _names(
        self, part: int, since: int, until: int, after: WalkPlace | None
    ) -> Iterator[tuple[ScheduleName, int]]:
        """Yield the names of a part, each with the time of its delete (0: it is there)."""
        kind, directory = divmod(part, DIRECTORIES)
        spans = {1: (since, LATEST), 2: (since, until), 4: (max(since, until), LATEST)}
        if kind in spans:
            return self._list_gone(gone_directory(directory), *spans[kind], after)
        return self._there(str(directory), after)

    def _there(self, directory: str, after: WalkPlace | None) -> Iterator[tuple[ScheduleName, int]]:
        start = {**key_attributes(item_key(*after[:2])), "dir": text(directory)} if after else None
        found = self._table.query("dir = :d", {":d": text(directory)}, index=DIRECTORY, start=start)
        return ((name_of(item), 0) for item in found)

    def _list_gone(
        self, directory: str, since: int, until: int, after: WalkPlace | None
    ) -> Iterator[tuple[ScheduleName, int]]:
        """Yield the names of the schedules that were deleted in (since, until], with the times."""
        if until <= since:
            return iter(())
        start = None
        if after:
            user_id, key, left_at = after
            start = {**key_attributes(item_key(user_id, key)), "dir": text(directory)}
            start["lat"] = number(left_at)
        found = self._table.query(
            "dir = :d AND lat BETWEEN :first AND :last",
            {":d": text(directory), ":first": number(since + 1), ":last": number(until)},
            index=LEAVING,
            start=start,
        )
        return ((name_of(item), int(item["lat"]["N"])) for item in found)

    def _account(self, item: BookItem, since: int, until: int, *, consistent: bool) -> Account:
        book, record = item.book, item.book.record
        pause = record.pause if record else None
        definitions = self._definitions(item.name, consistent=consistent)
        return Account(
            *item.name,
            definitions,
            book.row,
            record.redefined_at if record and pause and pause.until is not None else None,
            self._entries(item, since, until, consistent=consistent) if definitions else (),
            unreadable_at=book.unreadable.row.next_fire_at if book.unreadable else None,
        )

    def _definitions(self, name: ScheduleName, *, consistent: bool) -> Sequence[Definition]:
        values = {":p": text(definition_partition(*name))}
        items = self._table.query("p = :p", values, consistent=consistent)
        return [read_definition(item, *name) for item in items]

    def _entries(
        self, item: BookItem, since: int, until: int, *, consistent: bool
    ) -> Iterator[LedgerEntry]:
        """Yield the entries in order. The item has those under way; a range may reach into the
        span.
        """
        here = _own(entry.occurrence for entry in item.open.values())
        near = {one.nominal_at: one for one in here if one.nominal_at <= until}
        past = self._history(item.name, 0, since, forward=False, consistent=consistent)
        before = next(past, None)
        if before and before.nominal_at not in near:
            near[before.nominal_at] = before
        waiting = sorted(near.values(), key=_nominal_at, reverse=True)
        for one in self._history(item.name, since + 1, until, consistent=consistent):
            while waiting and waiting[-1].nominal_at < one.nominal_at:
                yield _entry(waiting.pop())
            if one.nominal_at not in near:
                yield _entry(one)
        yield from map(_entry, reversed(waiting))

    def _history(
        self, name: ScheduleName, first: int, last: int, *, consistent: bool, forward: bool = True
    ) -> Iterator[Occurrence]:
        values = {
            ":p": text(history_partition(*name)),
            ":first": text(history_sort(first)),
            ":end": text(history_sort(last + 1)),
        }
        found = self._table.query(
            "p = :p AND s BETWEEN :first AND :end",
            values,
            forward=forward,
            page=ENTRIES_AT_ONCE if forward else 5,
            consistent=consistent,
        )
        return _own(read_history(item).occurrence for item in found)


def _own(found: Iterator[Occurrence]) -> Iterator[Occurrence]:
    return (one for one in found if one.origin == SCHEDULE_ORIGIN)


def _nominal_at(one: Occurrence) -> int:
    return one.nominal_at


def _entry(one: Occurrence) -> LedgerEntry:
    return LedgerEntry(
        one.nominal_at, one.range_end, one.count, one.state, one.reason, one.redefined_at
    )
