"""Books: read, changed, and written back on the condition that nobody wrote in between.

An everyday change is one conditional write of the schedule's item. If other items must change with
it, all go into one small transaction: a dated definition, an outside id, a count, an input with an
item of its own, a caller's key. So does the claim after which a schedule is done. A change of the
record is always a transaction: if its answer is lost, a repeat is not refused because of the first
request's write.
"""

import json
import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from duetick.core.ids import new_id
from duetick.domain.attempts import CallerKey, refuse_key
from duetick.domain.book import Book
from duetick.domain.errors import StoreUnavailable
from duetick.domain.identity import SCHEDULE_ORIGIN, is_job
from duetick.domain.occurrence import Identity, Occurrence, ScheduleName
from duetick.domain.overlap import is_in_place
from duetick.domain.retention import Retention
from duetick.domain.schedule import Record
from duetick.domain.states import State
from duetick.domain.transitions import has_ended, is_waiting_job, wake_of
from duetick.ports import NO_TERMS, Alter, KeyHeld, Terms
from duetick.stores.dynamodb.beside import Beside, add_write, caller_key, holder_of, zone_item
from duetick.stores.dynamodb.errors import Conflict, ItemTooLarge, WriteRefusal
from duetick.stores.dynamodb.items import (
    BookItem,
    fill,
    input_key,
    item_key,
    job_status_of,
    name_of,
    status_of,
    write,
)
from duetick.stores.dynamodb.journal import Journal, NoteLine, look_at
from duetick.stores.dynamodb.layout import Layout
from duetick.stores.dynamodb.occurrences import (
    Entry,
    history_key,
    history_partition,
    history_sort,
    number,
    read_history,
    slot,
    slot_of,
    text,
    write_history,
)
from duetick.stores.dynamodb.schema import DUE
from duetick.stores.dynamodb.table import Item, Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

T = TypeVar("T")

TRIES: Final = 24
FLUSH_FROM: Final = 4

logger = logging.getLogger("duetick.store")


@dataclass(slots=True)
class ItemPages:
    """`duetick.domain.book.Pages`: from the item first, then from the history."""

    table: Table
    item: BookItem = field(init=False)

    def find(self, nominal_at: int, origin: str) -> Occurrence | None:
        """See `Pages`. An entry of the history comes into the item if the change moves it."""
        entry = self.item.entry(slot(nominal_at, origin))
        if entry:
            return entry.occurrence
        found = self.table.get(history_key(*self.item.name, nominal_at, origin))
        if found is None:
            return None
        entry = self.item.past[slot(nominal_at, origin)] = read_history(found)
        return entry.occurrence

    def at(self, nominal_at: int) -> Sequence[Occurrence]:
        """See `Pages`. An occurrence that is on its way to the history counts once."""
        here = {one.origin: one for one in self._open() if one.nominal_at == nominal_at}
        values = {":first": history_sort(nominal_at), ":end": history_sort(nominal_at + 1)}
        past = self._entries("s BETWEEN :first AND :end", values)
        return [*({one.occurrence.origin: one.occurrence for one in past} | here).values()]

    def in_place(self) -> Sequence[Occurrence]:
        """See `Pages`."""
        return [one for one in self._open() if is_in_place(one)]

    def find_queued_before(self, nominal_at: int) -> Sequence[Occurrence]:
        """See `Pages`."""
        queued = (one for one in self._open() if one.state is State.QUEUED and not one.attempts)
        return [one for one in queued if one.nominal_at < nominal_at]

    def times_within(self, first: int, last: int) -> Sequence[int]:
        """See `Pages`. The history has no times beyond the mark."""
        here = [time for time in self.item.own_times if first <= time <= last]
        mark = self.item.book.mark
        if mark is None or first > mark:
            return here
        past = self._past("s BETWEEN :first AND :end", first=first, end=last + 1)
        return [*here, *(one.occurrence.nominal_at for one in past)]

    def newest_until(self, nominal_at: int) -> Occurrence | None:
        """See `Pages`."""
        here = [one for one in self._open() if one.origin == SCHEDULE_ORIGIN]
        until = [one for one in here if one.nominal_at <= nominal_at]
        past = self._past("s < :end", forward=False, page=5, end=nominal_at + 1)
        until += (one.occurrence for one in islice(past, 1))
        return max(until, key=lambda one: one.nominal_at, default=None)

    def ranges_beyond(self, at: int) -> Sequence[Occurrence]:
        """See `Pages`. Occurrences of the history that reach beyond `at` come back into the item.

        A change of timing may move the mark back, and a claim reads only the item.
        """
        mark = self.item.book.mark
        if mark is not None and mark > at:
            for entry in self._past_beyond(at, mark):
                self.item.open.setdefault(slot_of(entry.occurrence), entry)
        return [one for one in self._open() if one.range_end is not None and one.range_end > at]

    def find_unfinished(self) -> Sequence[Occurrence]:
        """See `Pages`."""
        return self.item.under_way

    def complete(self, found: Record) -> Record:
        """See `Pages`."""
        return with_input(self.table, found, apart=self.item.apart)

    def _open(self) -> list[Occurrence]:
        return [entry.occurrence for entry in self.item.open.values()]

    def _past_beyond(self, at: int, until: int) -> Iterator[Entry]:
        for entry in self._past("s < :end", forward=False, page=5, end=until + 1):
            one = entry.occurrence
            if (one.range_end or one.nominal_at) > at:
                yield entry
            if one.nominal_at <= at:
                break

    def _past(
        self, condition: str, *, forward: bool = True, page: int = 1_000, **times: int
    ) -> Iterator[Entry]:
        """Yield the entries of the history that have origin `schedule`."""
        values = {f":{name}": history_sort(at) for name, at in times.items()}
        found = self._entries(condition, values, forward=forward, page=page)
        return (one for one in found if is_own(one))

    def _entries(
        self,
        condition: str,
        values: Mapping[str, str],
        *,
        forward: bool = True,
        page: int = 1_000,
    ) -> Iterator[Entry]:
        """Yield the entries of the history, of every origin."""
        named = {name: text(value) for name, value in values.items()}
        named[":p"] = text(history_partition(*self.item.name))
        found = self.table.query(f"p = :p AND {condition}", named, forward=forward, page=page)
        return map(read_history, found)


def is_own(entry: Entry) -> bool:
    """Return True if the entry is for one of the schedule's nominal times."""
    return entry.occurrence.origin == SCHEDULE_ORIGIN


def with_input(table: Table, record: Record, *, apart: bool) -> Record:
    """Return the record with its input; fetch the input if it has an item of its own (`apart`)."""
    if not apart:
        return record
    item = table.get(input_key(record.user_id, record.key))
    return replace(record, input=json.loads(item["in"]["S"])) if item else record


class Books:
    """The books of one table."""

    def __init__(
        self, table: Table, journal: Journal, layout: Layout, retention: Retention
    ) -> None:
        self.table = table
        self.retention = retention
        self.layout = layout
        self._zones: set[str] = set()
        self._journal = journal

    def load(self, user_id: str, key: str) -> BookItem:
        """Load a book; an empty one if there is no item."""
        return self._read((user_id, key), self.table.get(item_key(user_id, key)))

    def load_many(
        self, names: Iterable[ScheduleName], *, consistent: bool = True
    ) -> dict[ScheduleName, BookItem]:
        """Load the books that exist."""
        keys = [item_key(*name) for name in dict.fromkeys(names)]
        items = self.table.get_many(keys, consistent=consistent)
        return {name_of(item): self.read(item) for item in items.values()}

    def read(self, item: Item) -> BookItem:
        """Read the book of an item."""
        return self._read(name_of(item), item)

    def _read(self, name: ScheduleName, item: Item | None) -> BookItem:
        pages = ItemPages(self.table)
        book = Book(*name, pages, new_id)
        pages.item = fill(book, item) if item else BookItem(book)
        return pages.item

    def save(self, found: BookItem, now: int) -> None:
        """Write a book back; raise Conflict if it changed since it was read.

        If its schedule is done by this, the count of the user's schedules changes with it.
        """
        beside = Beside(self.table, NO_TERMS, None, now)
        beside.collect(found)
        self._write(found, now, beside, ())

    def _announce(self, found: BookItem) -> None:
        """Bring the row's partition into use, so that every tick reads it."""
        if found.book.row:
            self.layout.announce()
        elif found.waiting_job:
            self.layout.announce()
            self.layout.announce_jobs()

    def due_in(self, status: str, until: int, page: int) -> Iterator[tuple[int, ScheduleName]]:
        """Yield the keys that are due in a partition of the index `due`, the oldest first."""
        found = self.table.query(
            "st = :st AND run <= :until",
            {":st": text(status), ":until": number(until)},
            index=DUE,
            page=page,
        )
        return ((int(item["run"]["N"]), name_of(item)) for item in found)

    def move(self, found: BookItem, now: int) -> bool:
        """Move the row to its shard of the present layout; return False if it is there already."""
        of_kind = job_status_of if is_job(found.name[1]) else status_of
        if found.status in (None, of_kind(*found.name, self.layout.shards)):
            return False
        self.save(found, now)
        return True

    def change(
        self,
        name: ScheduleName,
        now: int,
        alter: Alter[T],
        *,
        terms: Terms = NO_TERMS,
        effects: "Sequence[TransactWriteItemTypeDef]" = (),
    ) -> T:
        """See `ports.Shelf`. Read, alter and write; start again if another process wrote first.

        `effects` are written in one transaction with the item. Raises WriteRefusal if one of them
        is refused.
        """
        token, answer, noted = secrets.token_hex(6), None, False
        for attempt in range(TRIES):
            found = self.load(*name)
            if any(entry.token == token for entry in found.open.values()) and answer:
                return answer
            if len(found.find_finished(now)) >= FLUSH_FROM:
                self.flush([found], now)
            beside = Beside(self.table, terms, self._check_key(terms.key, now), now)
            answer = alter(found.book)
            if not found.is_altered:
                return answer
            beside.collect(found)
            noted, sooner = noted or self.note_made(found, now), found.sooner()
            found.apply(token)
            if found.is_gone and is_job(found.name[1]):
                self.flush([found], now)
            try:
                self._write(found, now, beside, effects)
            except Conflict:
                beside.check(found)
                pause(attempt)
            else:
                self._note(found, sooner, now)
                return answer
        raise refuse_contended(*name)

    def _check_key(self, key: CallerKey | None, now: int) -> Item | None:
        """Return the item of a caller's key; raise KeyHeld if another run has the key."""
        if key is None:
            return None
        seen = self.table.get(caller_key(key.flow, key.key))
        holder = self.key_holder(seen)
        refused = refuse_key(*holder, now) if holder else None
        if refused:
            raise KeyHeld(refused)
        return seen

    def key_holder(self, seen: Item | None) -> tuple[Occurrence, int] | None:
        """Return the occurrence that took a caller's key, and the end of the key."""
        holder = self.occurrence(holder_of(seen)) if seen else None
        return (holder.occurrence, int(seen["u"]["N"])) if seen and holder else None

    def occurrence(self, identity: Identity) -> Entry | None:
        """Read one occurrence from its item or from the history."""
        return self.occurrences([identity]).get(identity)

    def occurrences(self, identities: Sequence[Identity]) -> dict[Identity, Entry]:
        """Read occurrences from their items, and the others from the history."""
        books = self.load_many([(user_id, key) for user_id, key, *_ in identities])
        found = {
            one: books[one[:2]].open[slot(*one[2:])]
            for one in identities
            if one[:2] in books and slot(*one[2:]) in books[one[:2]].open
        }
        keys = [history_key(*one) for one in identities if one not in found]
        past = map(read_history, self.table.get_many(keys).values())
        return found | {entry.occurrence.identity: entry for entry in past}

    def note_made(self, found: BookItem, now: int) -> bool:
        """Write the notes of new leases, and of occurrences that are under way again: a note
        precedes its lease. Return True if there is one.
        """
        made = (one for one in (*found.book.made, *found.revived) if not is_waiting_job(one))
        wakes = [look_at(wake_of(one), now) for one in made if not has_ended(one)]
        self._journal.write(NoteLine(*found.name, wake) for wake in wakes)
        return bool(wakes)

    def _note(self, found: BookItem, sooner: int | None, now: int) -> None:
        """Note the book if it must be read earlier than before. The note comes after the write: if
        the note fails, the old one still covers the book.
        """
        if sooner is not None:
            self._journal.write([NoteLine(*found.name, look_at(sooner, now))])

    def _write(
        self,
        found: BookItem,
        now: int,
        beside: Beside,
        effects: "Sequence[TransactWriteItemTypeDef]",
    ) -> None:
        others: list[TransactWriteItemTypeDef] = []
        for one in (*beside.writes, *effects):
            add_write(others, one)
        item = self.prepare(found, now)
        if not others and _version(found.book.record) == _version(found.record):
            self.table.put(item, found.rev)
            return
        try:
            self.table.transact_with(put_revised(self.table.name, item, found.rev), others)
        except WriteRefusal as refused:
            if effects:
                raise
            raise Conflict("a condition beside the item did not hold") from refused

    def prepare(self, found: BookItem, now: int) -> Item:
        """Return the next item of a book, once everything that the item names is there."""
        self._announce(found)
        self._keep_zones(found.book)
        if is_job(found.book.key) and not (found.record and found.record.done_at):
            self._keep_job(found)
        return write(found, self.layout.shards, now + self.retention.longest_ms, now)

    def _keep_job(self, found: BookItem) -> None:
        """Keep the record of a job that ends now for as long as its occurrence."""
        from duetick.domain.jobs import keep_job

        book = found.book
        entry = found.open.get(slot(book.record.anchor, book.key)) if book.record else None
        if book.record and entry:
            book.record = keep_job(book.record, entry.occurrence, self.retention)

    def _keep_zones(self, book: Book) -> None:
        """Keep the rules that new definitions name. Each content is written once by a process."""
        for one in book.definitions:
            if one.zone is not None and one.zone not in self._zones:
                self.table.put(zone_item(one.zone, one.timezone))
                self._zones.add(one.zone)

    def flush(self, several: Iterable[BookItem], now: int) -> None:
        """Write finished occurrences to the history and remove them from the books.

        The history is written first. If the item is then not written, it still has the occurrences,
        and the next flush writes the same again.
        """
        leaving = [(found, entry) for found in several for entry in found.find_finished(now)]
        self.table.put_many([write_history(entry, self.retention) for _, entry in leaving])
        for found, entry in leaving:
            del found.open[slot_of(entry.occurrence)]


def _version(record: Record | None) -> int:
    return record.version if record else 0


def put_revised(table: str, item: Item, rev: int) -> "TransactWriteItemTypeDef":
    """Return the part of a transaction that puts the item if `rev` is its revision (0: no item)."""
    if not rev:
        absent = "attribute_not_exists(p)"
        return {"Put": {"TableName": table, "Item": item, "ConditionExpression": absent}}
    return {
        "Put": {
            "TableName": table,
            "Item": item,
            "ConditionExpression": "rev = :rev",
            "ExpressionAttributeValues": {":rev": {"N": str(rev)}},
        }
    }


def pause(attempt: int) -> None:
    """Wait at random before the next attempt: longer each time, and not in step with others."""
    longest = min(2_000 << attempt, 200_000)
    time.sleep(secrets.randbelow(longest) / 1_000_000)


def tell_too_large(found: BookItem, error: Exception) -> None:
    """Log an item that is too large: it must not stop other schedules, nor go unseen."""
    if isinstance(error, ItemTooLarge):
        details = {"action": "item_too_large", "schedule": "/".join(found.name)}
        logger.error("a schedule cannot be written: %s", error, extra=details)


def refuse_contended(user_id: str, key: str) -> StoreUnavailable:
    """Return the error after the last try."""
    return StoreUnavailable(
        f"{user_id}/{key} was written by others {TRIES} times in a row. Try again."
    )
