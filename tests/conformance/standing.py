"""A schedule as it stands: placed on any shelf in one change, and looked at in full."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from duetick.domain.book import Book, Unreadable
from duetick.domain.definitions import define
from duetick.domain.failures import Event
from duetick.domain.occurrence import LATEST, Death, IndexRow, Occurrence, ScheduleName
from duetick.domain.schedule import Record
from duetick.ports import Query, Shelf

GIVEN: Final = "given"
"""The beginning of the ids of occurrences that a test places. Other ids are random."""


@dataclass(frozen=True, slots=True)
class Standing:
    """All data of one schedule, without its name."""

    record: Record | None = None
    row: IndexRow | None = None
    unreadable: Unreadable | None = None
    mark: int | None = None
    defined_at: int = 0
    occurrences: tuple[Occurrence, ...] = ()
    events: tuple[tuple[Event, ...], ...] = ()


def place(shelf: Shelf, name: ScheduleName, standing: Standing, now: int) -> None:
    """Put a schedule as it shall stand on a shelf that has none of that name."""
    user_id, key = name

    def alter(book: Book) -> None:
        if standing.record:
            book.record = replace(standing.record, user_id=user_id, key=key)
            definition = define(book.record, standing.defined_at, "active")
            book.definitions.append(definition)
            book.defined_at = standing.defined_at
        if standing.row:
            book.row = replace(standing.row, user_id=user_id, key=key)
        book.mark = standing.mark
        book.made += [replace(one, user_id=user_id, key=key) for one in standing.occurrences]

    shelf.change(user_id, key, now, alter)


def look(shelf: Shelf, name: ScheduleName, now: int) -> Standing:
    """Return the schedule as it stands in a shelf, without its name and without ids that nobody
    gave.
    """
    user_id, key = name
    found = shelf.find(Query(user_id, key, frozenset(), ("", "", LATEST, ""), 1_000))
    events = tuple(map(tuple, shelf.events([one.identity for one in found])))

    def read(book: Book) -> Standing:
        return Standing(
            record=nameless_record(book.view()),
            row=_nameless_row(book.row),
            unreadable=book.unreadable and book.unreadable._replace(row=_bare(book.unreadable.row)),
            mark=book.mark,
            defined_at=book.defined_at,
            occurrences=nameless(found),
            events=events,
        )

    return shelf.change(user_id, key, now, read)


def nameless(found: Sequence[Occurrence]) -> tuple[Occurrence, ...]:
    """Return occurrences without the name of their schedule, and without ids that nobody gave."""
    return tuple(
        replace(one, user_id="", key="", id=_given(one.id), death=_nameless_death(one.death))
        for one in found
    )


def _given(name: str) -> str:
    return name if name.startswith(GIVEN) else "made"


def _nameless_death(death: Death | None) -> Death | None:
    return death and death._replace(occurrence=_given(death.occurrence))


def nameless_record(record: Record | None) -> Record | None:
    """Return a record without its name."""
    return replace(record, user_id="", key="") if record else None


def _nameless_row(row: IndexRow | None) -> IndexRow | None:
    return _bare(row) if row else None


def _bare(row: IndexRow) -> IndexRow:
    return replace(row, user_id="", key="")
