"""The item of a schedule. It has the whole book, so a claim needs no transaction.

The item has the record, the row and the mark. Its map `open` has the occurrences under way, and the
finished ones since the last claim. `records.write_record` has the attributes of the record. Beside
these there are:

`x`: the row's definition, if it is not the record's. `st run`: the row's key in the index `due`, or
that of a job that waits. `per pat`: the error and the time of an unreadable row (`run` stays).
`thru`: the mark. `def zr`: the time of the newest definition, and the digest of its zone's rules.
`rev`: the count of writes. `hold`: the occurrence that has the schedule's place. `ov`: the place is
shared. `lms`: the length of a lease. `jh`: a job was held as it came due: the journal has it, not
the index.

An occurrence stores only the fields that differ from the schedule's present definition. Therefore a
change of the definition writes the old one into the occurrences under way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from duetick.domain.book import Book, Unreadable
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.failure_hooks import action_run
from duetick.domain.identity import SCHEDULE_ORIGIN, is_job
from duetick.domain.occurrence import Identity, IndexRow, Occurrence, ScheduleName
from duetick.domain.overlap import may_hold_place
from duetick.domain.policies import Overlap
from duetick.domain.rows import row_of
from duetick.domain.schedule import Record
from duetick.domain.states import State
from duetick.domain.transitions import has_ended, is_waiting_job, wake_of
from duetick.stores.dynamodb.occurrences import (
    LARGEST_ITEM,
    LONGEST_ERROR,
    MOST_OPEN,
    ROOM_FOR_EVENTS,
    Entry,
    RowDefinition,
    definition_of,
    maybe_number,
    maybe_text,
    most_open,
    number,
    put_number,
    put_text,
    read_entry,
    size_of,
    slot,
    slot_of,
    text,
    write_entry,
)
from duetick.stores.dynamodb.records import dump_row, read_record, read_row, write_record
from duetick.stores.dynamodb.schema import DIRECTORIES
from duetick.stores.dynamodb.table import Item, Key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

FEW: Final = 4
"""The most entries that have room, whatever they hold."""


@dataclass(slots=True)
class BookItem:
    """A book as it was read from its item, to be written back under its revision.

    With `apart`, the record's input has an item of its own, and is None here until it is fetched.
    `past` has the entries of the history that were asked for. `most` is the number of occurrences
    for which the item has room.
    """

    book: Book
    rev: int = 0
    apart: bool = False
    status: str | None = None
    zone: str | None = None
    held: bool = False
    most: int = MOST_OPEN
    open: dict[str, Entry] = field(default_factory=dict)
    past: dict[str, Entry] = field(default_factory=dict)
    record: Record | None = field(init=False)
    _before: tuple[object, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.record = self.book.record
        self._before = self._state()

    @property
    def name(self) -> ScheduleName:
        """The user and the key."""
        return self.book.user_id, self.book.key

    def action_of(self, one: Occurrence) -> str:
        """Return the action that an occurrence runs; empty if there is no record."""
        return action_run(self.book.record, one.origin) if self.book.record else ""

    @property
    def is_gone(self) -> bool:
        """True if the book has neither record nor row: only the mark remains."""
        return not (self.book.record or self.book.row or self.book.unreadable)

    @property
    def is_altered(self) -> bool:
        """True if the book has changes to write."""
        book = self.book
        noted = book.made or book.ranges or book.moved or book.definitions
        return bool(noted) or self._state() != self._before

    def _state(self) -> tuple[object, ...]:
        book = self.book
        return book.record, book.row, book.unreadable, book.mark, book.defined_at

    @property
    def under_way(self) -> list[Occurrence]:
        """The occurrences that have not ended."""
        every = (entry.occurrence for entry in self.open.values())
        return [one for one in every if not has_ended(one)]

    @property
    def own_times(self) -> list[int]:
        """The nominal times of origin `schedule` in the item: among them, all beyond the mark."""
        every = (entry.occurrence for entry in self.open.values())
        return [one.nominal_at for one in every if one.origin == SCHEDULE_ORIGIN]

    @property
    def waiting_job(self) -> Occurrence | None:
        """The occurrence of a job that stands in the index `due`; None if there is none.

        No note of the journal covers it: it may wait for a year. One that was `held` as it came due
        is the journal's.
        """
        if self.held or not is_job(self.book.key):
            return None
        return next(filter(is_waiting_job, self.under_way), None)

    @property
    def noted(self) -> list[Occurrence]:
        """The occurrences under way that notes of the journal cover."""
        waiting = self.waiting_job
        return [one for one in self.under_way if one != waiting]

    def wake(self) -> int | None:
        """Return the earliest time at which a noted lease ends or a noted occurrence is due."""
        return min((wake_of(one) for one in self.noted), default=None)

    def find_finished(self, now: int) -> list[Entry]:
        """Return the finished entries that may move to the history.

        An entry beyond the mark, or claimed ahead, stays. A change of timing may move the mark back
        to now; then only the entry in the item keeps a claim from making the occurrence again.
        """
        return [one for one in self.open.values() if self._may_leave(one.occurrence, now)]

    def _may_leave(self, occurrence: Occurrence, now: int) -> bool:
        if not has_ended(occurrence) or occurrence.origin != SCHEDULE_ORIGIN:
            return has_ended(occurrence)
        mark = self.book.mark
        return mark is not None and occurrence.nominal_at <= min(now, mark)

    def sooner(self) -> int | None:
        """Return the earliest wake of the moved occurrences that wake earlier than before."""
        pairs = ((self.open.get(slot_of(one)), one) for one in self.book.moved.values())
        wakes = (
            wake_of(one)
            for entry, one in pairs
            if entry and not has_ended(one) and wake_of(one) < wake_of(entry.occurrence)
        )
        return min(wakes, default=None)

    def entry(self, name: str) -> Entry | None:
        """Return the entry of a slot, in the item or from the history, as far as it was read."""
        return self.open.get(name) or self.past.get(name)

    @property
    def revived(self) -> list[Occurrence]:
        """The occurrences that had ended, and are under way again.

        The history keeps their old entries until they end again: the item's entries count.
        """
        pairs = ((self.entry(slot_of(one)), one) for one in self.book.moved.values())
        ended = (one for entry, one in pairs if entry and has_ended(entry.occurrence))
        return [one for one in ended if not has_ended(one)]

    def apply(self, token: str | None = None) -> None:
        """Take the book's changes of occurrences into `open`.

        A begun occurrence gets the `token`. If a later read finds the token, this write succeeded.
        """
        book = self.book
        for one in book.made:
            self.open.setdefault(slot_of(one), Entry(one))
        for one in book.ranges:
            self.open[slot_of(one)] = replace(self._entry(one), occurrence=one)
        for one in book.moved.values():
            entry = replace(self._entry(one), occurrence=one)
            begun = one.state is State.PROCESSING and one.begun_at == one.updated_at
            self.open[slot_of(one)] = replace(entry, token=token) if begun else entry
        for _, _, nominal_at, origin in book.discarded:
            name = slot(nominal_at, origin)
            self.open[name] = replace(self.open[name], events=())
        for (_, _, nominal_at, origin), event in book.events:
            name = slot(nominal_at, origin)
            self.open[name] = self.open[name].trace(event)

    def _entry(self, one: Occurrence) -> Entry:
        return self.entry(slot_of(one)) or Entry(one)


def item_key(user_id: str, key: str) -> Key:
    """Return the key of a schedule's item."""
    return f"U#{user_id}", f"S#{key}"


def input_key(user_id: str, key: str) -> Key:
    """Return the key of an input that is too large for the schedule's item."""
    return f"I#{user_id}/{key}", "I"


def body_key(identity: Identity) -> Key:
    """Return the key of the body that the caller of an occurrence sent."""
    user_id, key, nominal_at, origin = identity
    return input_key(user_id, key)[0], f"B#{slot(nominal_at, origin)}"


def name_of(item: Mapping[str, Any]) -> ScheduleName:
    """Return the user and the key of a schedule's item."""
    return item["p"]["S"].removeprefix("U#"), item["s"]["S"].removeprefix("S#")


def _digest(user_id: str, key: str) -> int:
    data = f"{user_id}\0{key}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest())


def status_of(user_id: str, key: str, shards: int) -> str:
    """Return a row's partition of the index `due`."""
    return "active" if shards == 1 else f"active#{_digest(user_id, key) % shards}"


def job_status_of(user_id: str, key: str, shards: int) -> str:
    """Return a waiting job's partition of the index `due`."""
    return "job" if shards == 1 else f"job#{_digest(user_id, key) % shards}"


def job_statuses(shards: int) -> list[str]:
    """Return every partition of the index `due` that has jobs."""
    return ["job"] if shards == 1 else [f"job#{shard}" for shard in range(shards)]


def statuses(shards: int) -> list[str]:
    """Return every partition of the index `due`."""
    return ["active"] if shards == 1 else [f"active#{shard}" for shard in range(shards)]


def write(found: BookItem, shards: int, kept_until: int, now: int) -> Item:
    """Return the whole item, one revision later.

    `now`, and `kept_until` for an occurrence that ends now, only date the expiry of a lone mark.
    """
    book = found.book
    partition, sort = item_key(book.user_id, book.key)
    item: Item = {"p": text(partition), "s": text(sort), "rev": number(found.rev + 1)}
    put_number(item, "thru", book.mark)
    put_number(item, "def", book.defined_at or None)
    put_text(item, "zr", book.definitions[-1].zone if book.definitions else found.zone)
    if book.record:
        write_record(item, book.record, apart=found.apart)
    row = book.unreadable.row if book.unreadable else book.row
    if row:
        _write_row(item, book, row, shards)
    _write_open(item, found, row)
    directory = _digest(book.user_id, book.key) % DIRECTORIES
    if is_job(book.key):
        return _write_job(item, found, shards, directory, now)
    if not found.is_gone:
        item["dir"] = text(str(directory))
        return item
    item["ttl"] = number(_expiry(book, kept_until, now))
    if book.defined_at:
        item |= {"dir": text(gone_directory(directory)), "lat": number(book.defined_at)}
    return item


def _write_job(item: Item, found: BookItem, shards: int, directory: int, now: int) -> Item:
    """Put a job into its partitions of the indexes `due` and `leaving`. One that is gone expires
    now: the history has its occurrences.
    """
    if found.is_gone:
        return item | {"ttl": number(now // 1_000)}
    one = found.waiting_job
    if one:
        item["run"] = number(one.due_at)
        item["st"] = text(job_status_of(*found.name, shards))
    if found.held:
        item["jh"] = number(1)
    return item | {"dir": text(job_directory(directory))}


def job_directory(number_of: int) -> str:
    """Return the partition of the jobs of a directory: a list of schedules does not read it."""
    return f"job#{number_of}"


def gone_directory(number_of: int) -> str:
    """Return the partition of the deleted schedules of a directory, in the order of their end."""
    return f"gone#{number_of}"


def _expiry(book: Book, kept_until: int, now: int) -> int:
    """Return the expiry in seconds of a lone mark, and of the history that is still beside it."""
    gone_at = (now if book.mark is None else book.mark) + KEPT_GONE_MS
    return max(gone_at, kept_until) // 1_000


def _write_row(item: Item, book: Book, row: IndexRow, shards: int) -> None:
    item["run"] = number(row.next_fire_at)
    if book.record is None or row != row_of(book.record, row.next_fire_at):
        item["x"] = text(dump_row(row))
    if book.unreadable:
        put_text(item, "per", book.unreadable.error[:1_000] or "unreadable")
        item["pat"] = number(book.unreadable.at)
    else:
        item["st"] = text(status_of(book.user_id, book.key, shards))


def _write_open(item: Item, found: BookItem, row: IndexRow | None) -> None:
    usual = _usual(found.book.record, row)
    room = LARGEST_ITEM - size_of({"M": item}) if len(found.open) > FEW else None
    item["open"] = _write_entries(found.open, usual, room)
    source = found.book.record or row
    if source:
        item["lms"] = number(source.policies.lease_ms)
        if source.policies.overlap is Overlap.ALLOW:
            item["ov"] = text("a")
    put_text(item, "hold", _holder(found))
    _write_attention(item, found)


def _write_entries(
    entries: Mapping[str, Entry], usual: RowDefinition | None, room: int | None
) -> "AttributeValueTypeDef":
    """Write entries: with as much of their traces, and then of their texts, as has room."""
    share = max(1, ROOM_FOR_EVENTS // max(1, len(entries)))
    written = _write_cut(entries, usual, share, LONGEST_ERROR)
    for events, characters in (share // 4, LONGEST_ERROR), (1, LONGEST_ERROR // 5), (0, 0):
        if room is None or size_of(written) <= room:
            break
        written = _write_cut(entries, usual, events, characters)
    return written


def _write_cut(
    entries: Mapping[str, Entry], usual: RowDefinition | None, events: int, characters: int
) -> "AttributeValueTypeDef":
    cut = {name: one.within(events, characters) for name, one in entries.items()}
    return {"M": {name: {"M": write_entry(one, usual)} for name, one in cut.items()}}


def _usual(record: Record | None, row: IndexRow | None) -> RowDefinition | None:
    source = record or row
    return definition_of(source) if source else None


def _holder(found: BookItem) -> str | None:
    """Return the value of `hold`: the slot of an occurrence that has the schedule's place.

    The quick settle of an exclusive occurrence frees the place without reading the others, but only
    if `hold` names it. So two others come first: a retry that waits for the place, and an
    occurrence that began when the policy allowed overlap.
    """
    every = {name: entry.occurrence for name, entry in found.open.items()}
    holders = {name: one for name, one in every.items() if may_hold_place(one)}
    waiting = (name for name, one in holders.items() if one.state is State.RETRYING)
    shares = (name for name, one in holders.items() if one.policies.overlap is Overlap.ALLOW)
    return next(chain(waiting, shares, holders), None)


def _write_attention(item: Item, found: BookItem) -> None:
    every = [entry.occurrence for entry in found.open.values()]
    dead = [one.nominal_at for one in every if one.state is State.DEAD]
    broken = found.book.unreadable
    if broken:
        item |= {"att": text("poisoned"), "aat": number(max(broken.at, *dead, 0))}
    elif dead:
        item |= {"att": text("open"), "aat": number(max(dead))}


def fill(book: Book, item: Mapping[str, Any]) -> BookItem:
    """Fill a book from the item that `write` wrote."""
    record = read_record(item, book.user_id, book.key) if "v" in item else None
    indexed = "run" in item and not is_job(book.key)
    row = read_row(item, book.user_id, book.key, record) if indexed else None
    usual = _usual(record, row)
    book.record, book.row = record, row
    book.mark, book.defined_at = maybe_number(item, "thru"), maybe_number(item, "def") or 0
    if row and "per" in item:
        book.row = None
        book.unreadable = Unreadable(row, item["per"]["S"], int(item["pat"]["N"]))
    elif "st" not in item:  # somebody took it away, and without it no tick finds the row
        book.row = None
    found = BookItem(
        book,
        rev=int(item["rev"]["N"]),
        apart="ia" in item,
        status=maybe_text(item, "st"),
        zone=maybe_text(item, "zr"),
        held="jh" in item,
        open={
            name: read_entry(entry["M"], book.user_id, book.key, name, usual)
            for name, entry in item["open"]["M"].items()
        },
    )
    found.most = most_open(len((maybe_text(item, "lab") or "").encode()))
    book.room = found.most - len(found.under_way)
    return found
