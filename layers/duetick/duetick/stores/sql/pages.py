"""A book on SQL: loaded under its lock in one round trip, written back in another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from duetick.core.ids import new_id
from duetick.domain.book import Book
from duetick.domain.definitions import Definition
from duetick.domain.ending import counts
from duetick.domain.occurrence import LATEST, Identity, Leased, Occurrence, ScheduleName
from duetick.domain.schedule import Record
from duetick.stores.sql.rows import (
    INDEX_COLUMNS,
    definition_params,
    ended_params,
    event_params,
    identity_params,
    index_params,
    later_of,
    move_params,
    occurrence_params,
    read_index,
    read_occurrence,
    read_record,
    read_unreadable,
    record_params,
    unreadable_params,
    zone_params,
)
from duetick.stores.sql.session import Params, QueryCall, Row, Session, Value

UNREADABLE_AT: Final = 2
RECORD_AT: Final = UNREADABLE_AT + INDEX_COLUMNS + 2


@dataclass(slots=True)
class SqlPages:
    """`duetick.domain.book.Pages` in an open transaction."""

    session: Session
    name: dict[str, Value]
    placed: Sequence[Occurrence]
    about: dict[Identity, Occurrence | None]

    def find(self, nominal_at: int, origin: str) -> Occurrence | None:
        """See `Pages`. The occurrence is locked until the transaction ends."""
        identity = (str(self.name["user_id"]), str(self.name["key"]), nominal_at, origin)
        if identity not in self.about:
            found = self._select("occurrence_lock", identity_params(identity))
            self.about[identity] = found[0] if found else None
        return self.about[identity]

    def at(self, nominal_at: int) -> Sequence[Occurrence]:
        """See `Pages`."""
        return self._select("occurrences_at", self.name | {"nominal_at": nominal_at})

    def in_place(self) -> Sequence[Occurrence]:
        """See `Pages`."""
        return self.placed

    def find_queued_before(self, nominal_at: int) -> Sequence[Occurrence]:
        """See `Pages`."""
        return self._select("occurrences_queued", self.name | {"nominal_at": nominal_at})

    def times_within(self, first: int, last: int) -> Sequence[int]:
        """See `Pages`."""
        params = self.name | {"first": first, "last": last}
        return [row[0] for row in self._rows("occurrences_within", params)]

    def newest_until(self, nominal_at: int) -> Occurrence | None:
        """See `Pages`."""
        found = self._select("occurrence_up_to", self.name | {"nominal_at": nominal_at})
        return found[0] if found else None

    def ranges_beyond(self, at: int) -> Sequence[Occurrence]:
        """See `Pages`."""
        return self._select("ranges_beyond", self.name | {"at": at})

    def find_unfinished(self) -> Sequence[Occurrence]:
        """See `Pages`."""
        return self._select("occurrences_unfinished", self.name)

    def complete(self, found: Record) -> Record:
        """See `Pages`: a record is loaded whole."""
        return found

    def _rows(self, name: str, params: Params) -> Sequence[Row]:
        return self.session.rows(name, params)

    def _select(self, name: str, params: Params) -> list[Occurrence]:
        return [read_occurrence(row) for row in self._rows(name, params)]


@dataclass(slots=True)
class SqlBook:
    """A book, its state when it was loaded, and the calls that write the changes.

    A row carries its mark. If there is no row, the mark is in the table `marks` (`kept_mark`).
    """

    book: Book
    record: Record | None = field(init=False)
    row: object = field(init=False)
    unreadable: object = field(init=False)
    mark: int | None = field(init=False)
    kept_mark: int | None

    def __post_init__(self) -> None:
        book = self.book
        self.record, self.row = book.record, book.row
        self.unreadable, self.mark = book.unreadable, book.mark

    @property
    def creates(self) -> bool:
        """True if the change made a record where there was none."""
        return self.record is None and self.book.record is not None

    @property
    def counts_more(self) -> bool:
        """True if the schedule counts in its user's quota, and did not before."""
        return counts(self.book.record) and not counts(self.record)

    def writes(self) -> list[QueryCall]:
        """Return the writes of all changes, in their necessary order."""
        book = self.book
        return [
            *self._write_record(),
            *self._write_row(),
            *(call for one in book.definitions for call in _define(one)),
            *(("occurrence_put", occurrence_params(one)) for one in book.made),
            *(("range_put", occurrence_params(one)) for one in book.ranges),
            *(("occurrence_move", move_params(one)) for one in book.moved.values()),
            *(("events_forget", identity_params(one)) for one in book.discarded),
            *(("body_put", {**identity_params(one), "body": None}) for one in book.discarded),
            *(("event_put", event_params(*one)) for one in book.events),
            *([("bell_make_pending", {**self._name, **book.bell._asdict()})] if book.bell else ()),
        ]

    @property
    def _name(self) -> Params:
        return {"user_id": self.book.user_id, "key": self.book.key}

    def _write_record(self) -> list[QueryCall]:
        record = self.book.record
        if record is None:
            return [("schedule_delete", self._name), self._look_again()] if self.record else []
        if record is self.record:
            return []
        params = record_params(record)
        if self.record is not None and params == record_params(self.record):
            return []
        return [("schedule_put", params)]

    def _look_again(self) -> QueryCall:
        """Return the call that lets a purge look again at the schedule's held occurrences."""
        return "held_of_schedule", {**self._name, "held": LATEST}

    def _write_row(self) -> list[QueryCall]:
        book = self.book
        calls: list[QueryCall] = []
        if book.row and (book.row, book.mark) != (self.row, self.mark):
            calls.append(("index_put", index_params(book.row) | {"mark": book.mark}))
            if self.kept_mark is not None:
                calls.append(("mark_remove", self._name))
        if book.row is None and self.row is not None:
            calls.append(("index_remove", self._name))
            if self.record is None:
                calls.append(self._look_again())
        if book.row is None and book.mark is not None and book.mark != self.kept_mark:
            calls.append(("mark_put", {**self._name, "mark": book.mark}))
        if book.unreadable and book.unreadable != self.unreadable:
            calls.append(("unreadable_put", unreadable_params(book.unreadable)))
        if book.unreadable is None and self.unreadable is not None:
            calls.append(("unreadable_remove", self._name))
        return calls


def load(session: Session, name: ScheduleName, about: Leased | None) -> SqlBook:
    """Load a book under its lock: no other transaction changes it until this one ends."""
    user_id, key = name
    params: dict[str, Value] = {"user_id": user_id, "key": key}
    calls: list[QueryCall] = [
        ("name_lock", params),
        ("index_lock", params),
        ("schedule_lock", params),
        ("book", params),
        ("occurrences_in_place", params),
    ]
    if about:
        calls.append(("occurrence_lock", identity_params(about.identity)))
    _, rows, _, ((since, kept, *columns),), placed, *found_about = session.several(calls)
    found = {about.identity: _first(found_about[0])} if about else {}
    pages = SqlPages(session, params, [read_occurrence(one) for one in placed], found)
    book = Book(user_id, key, pages, new_id)
    broken, record = columns[: RECORD_AT - UNREADABLE_AT], columns[RECORD_AT - UNREADABLE_AT :]
    book.row = read_index(rows[0]) if rows else None
    book.mark = later_of(kept, rows[0][INDEX_COLUMNS] if rows else None)
    book.unreadable = read_unreadable(broken) if broken[0] is not None else None
    book.record = read_record(record) if record[0] is not None else None
    book.defined_at = since or 0
    return SqlBook(book, kept)


def load_alone(session: Session, about: Leased) -> SqlBook:
    """Load a book with one occurrence alone, for a change of it."""
    params: dict[str, Value] = {"user_id": about.user_id, "key": about.key}
    identity = identity_params(about.identity)
    _, rows = session.several([("name_lock", params), ("occurrence_lock", identity)])
    pages = SqlPages(session, params, (), {about.identity: _first(rows)})
    return SqlBook(Book(about.user_id, about.key, pages, new_id), None)


def zones_of(book: Book) -> dict[str, str | None]:
    """Return the zones of new definitions by the digests of their rules."""
    return {one.zone: one.timezone for one in book.definitions if one.zone is not None}


def keep_zones(zones: Mapping[str, str | None]) -> list[QueryCall]:
    """Return the calls that keep the rules of zones."""
    return [("zone_put", zone_params(zone, digest)) for digest, zone in zones.items()]


def _define(one: Definition) -> list[QueryCall]:
    put: QueryCall = ("definition_put", definition_params(one))
    return [("definition_end", ended_params(one)), put] if one.before else [put]


def _first(rows: Sequence[Row]) -> Occurrence | None:
    return read_occurrence(rows[0]) if rows else None
