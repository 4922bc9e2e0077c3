"""The shelf on DynamoDB: one table. Claim, begin and settle need no transaction.

The write units of a fire, counted: claim 3 (the item 1, its key in the index `due` 2), the previous
occurrence into the history 1, begin 1, settle 1, and a share of the 2 notes of a chunk.
"""

import heapq
import secrets
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from duetick.domain.attempts import Begun, CallerKey, Settled
from duetick.domain.book import Unreadable
from duetick.domain.claims import Templates, pick_shares
from duetick.domain.creation import Made
from duetick.domain.errors import DuetickError, InvalidStoreUrl
from duetick.domain.failures import Event
from duetick.domain.identity import JOB_ORIGIN, JOBS_END, stands_beside
from duetick.domain.occurrence import Identity, IndexRow, Leased, Occurrence, ScheduleName
from duetick.domain.paging import make_cursor, place_of, read_walk
from duetick.domain.policies import MINUTE_MS
from duetick.domain.retention import USUAL, Retention, Retired
from duetick.domain.schedule import Record
from duetick.domain.standing import OrderKind, StandingOrder
from duetick.domain.states import State
from duetick.ports import (
    NO_TERMS,
    Alter,
    Chunk,
    Clock,
    Counted,
    Dialect,
    Effects,
    Fair,
    Glance,
    JobsFound,
    Listed,
    Migrated,
    Part,
    Query,
    Records,
    StateCounts,
    TakeIn,
    Terms,
)
from duetick.stores.dynamodb import quick
from duetick.stores.dynamodb.beside import (
    caller_key,
    creations_partition,
    external_key,
    note_key,
    owner_name,
    rate_of_minute,
    read_made,
    zone_key,
)
from duetick.stores.dynamodb.books import Books
from duetick.stores.dynamodb.claim import ItemsClaim, is_leased, is_poisoned
from duetick.stores.dynamodb.clock import Skew, host_clock
from duetick.stores.dynamodb.erasure import erase
from duetick.stores.dynamodb.errors import Conflict, ItemTooLarge
from duetick.stores.dynamodb.history import History
from duetick.stores.dynamodb.items import (
    BookItem,
    body_key,
    item_key,
    job_directory,
    name_of,
    statuses,
)
from duetick.stores.dynamodb.journal import Journal, NoteLine, look_at
from duetick.stores.dynamodb.layout import Layout
from duetick.stores.dynamodb.migration import check_schema, migrate
from duetick.stores.dynamodb.occurrences import maybe_text, number, slot, slot_of, text
from duetick.stores.dynamodb.place import connect
from duetick.stores.dynamodb.schema import ATTENTION, DIRECTORIES, DIRECTORY, LEAVING
from duetick.stores.dynamodb.service import ServiceSilent
from duetick.stores.dynamodb.standing import StandingOrders
from duetick.stores.dynamodb.table import Item, Table, Update, key_attributes
from duetick.stores.dynamodb.transaction import DynamoTransaction, blame_action
from duetick.stores.dynamodb.waiting import Waiting

if TYPE_CHECKING:
    from duetick.domain.accounts import Account
    from duetick.domain.alike import AlikePage, Selection
    from duetick.domain.bells import PendingBell
    from duetick.domain.jobs import Job
    from duetick.domain.operations import Operation, OperationPlace
    from duetick.domain.workers import NamedLock, Worker
    from duetick.stores.dynamodb.bells import PendingBells

T = TypeVar("T")
W = TypeVar("W")

WRITERS: Final = 8
LISTED_AT_ONCE: Final = 500
MOST_LISTED: Final = 2_000
"""The most schedules that are read for one page of a user's: two megabytes and more."""
LARGEST_SHARDS: Final = 256


class DynamoShelf:
    """`ports.Shelf` on DynamoDB."""

    dialect: Dialect = "dynamodb"

    def __init__(
        self, table: Table, shards: int, *, checks_clock: bool, retention: Retention = USUAL
    ) -> None:
        self._table = table
        self._layout = Layout(table, shards)
        self._journal = Journal(table, self._layout)
        self._books = Books(table, self._journal, self._layout, retention)
        self._history = History(self._books, self._journal)
        self._orders = StandingOrders(table)
        self._waiting = Waiting(self._books, self._journal)
        self._skew = Skew(checked=checks_clock)
        self._pool: ThreadPoolExecutor | None = None

    # Books.

    def change(
        self,
        user_id: str,
        key: str,
        now: int,
        alter: Alter[T],
        *,
        about: Leased | None = None,
        alone: bool = False,
        terms: Terms = NO_TERMS,
    ) -> T:
        """See `ports.Shelf`. The item has the whole book, so it is read in every case."""
        del about, alone
        return self._books.change((user_id, key), now, alter, terms=terms)

    @contextmanager
    def effects(self, held: Leased, clock: Clock, alter: Alter[object]) -> Iterator[Effects]:
        """See `ports.Shelf`."""
        transaction = DynamoTransaction(self._books, held)
        yield transaction
        transaction.check()
        with blame_action():
            name = held.user_id, held.key
            self._books.change(name, clock(), alter, effects=transaction.writes)

    def record(self, user_id: str, key: str) -> Record | None:
        """See `ports.Shelf`."""
        return self._books.load(user_id, key).book.view()

    def records(self, user_id: str, after: str, limit: int, *, done: bool | None = None) -> Records:
        """See `ports.Shelf`. Items without a record are left out."""
        page = limit if done is None else LISTED_AT_ONCE
        items = self._items_of_schedules(user_id, after, page)
        found: list[Record] = []
        for looked_at, item in enumerate(items, 1):
            if "v" in item and done in (None, "dn" in item):
                view = self._books.read(item).book.view()
                found += [view] if view else []
            if len(found) == limit or looked_at == MOST_LISTED:
                return Records(found, name_of(item)[1])
        return Records(found)

    def _items_of_schedules(self, user_id: str, after: str, page: int) -> Iterator[Item]:
        """Yield the items of a user's schedules after a key. The keys of jobs lie between them."""
        if after < JOB_ORIGIN:
            yield from self._items_between(user_id, after, JOB_ORIGIN, page)
        yield from self._items_between(user_id, max(after, JOBS_END), None, page)

    def _items_between(
        self, user_id: str, after: str, end: str | None, page: int
    ) -> Iterator[Item]:
        """Yield a user's items after a key, up to another. No schedule is named as an end of jobs
        is: it may be left out.
        """
        partition, sort = item_key(user_id, after)
        values = {":p": text(partition), ":s": text(sort)}
        if end is None:
            return self._table.query("p = :p AND s > :s", values, page=page)
        values[":end"] = text(item_key(user_id, end)[1])
        items = self._table.query("p = :p AND s BETWEEN :s AND :end", values, page=page)
        return (item for item in items if name_of(item)[1] != after)

    def jobs(self, user_id: str, after: str, limit: int, *, ended: bool | None = None) -> JobsFound:
        """See `ports.Shelf`."""
        page = limit if ended is None else LISTED_AT_ONCE
        items = self._items_between(user_id, max(after, JOB_ORIGIN), JOBS_END, page)
        found: list[Job] = []
        for looked_at, item in enumerate(items, 1):
            if "v" in item and ended in (None, "dn" in item):
                job = self._books.read(item).book.job()
                found += [job] if job else []
            if len(found) == limit or looked_at == MOST_LISTED:
                return JobsFound(found, name_of(item)[1])
        return JobsFound(found)

    def leaving(self, until: int, limit: int) -> Sequence[ScheduleName]:
        """See `ports.Shelf`."""
        directories = [name(n) for n in range(DIRECTORIES) for name in (str, job_directory)]
        pages = (self._leaving_in(directory, until, limit) for directory in directories)
        found = sorted(one for page in pages for one in page)
        return [name for _, name in found[:limit]]

    def _leaving_in(
        self, directory: str, until: int, limit: int
    ) -> Iterator[tuple[int, ScheduleName]]:
        values = {":d": text(directory), ":until": number(until)}
        found = self._table.query(
            "dir = :d AND lat <= :until", values, index=LEAVING, page=min(limit, LISTED_AT_ONCE)
        )
        return ((int(item["lat"]["N"]), name_of(item)) for item in islice(found, limit))

    def owner(self, external_id: str) -> Record | None:
        """See `ports.Shelf`."""
        item = self._table.get(external_key(external_id))
        found = self.record(*owner_name(item)) if item else None
        return found if found and found.external_id == external_id else None

    def every_book(self, place: str = "") -> Iterator[Listed]:
        """See `ports.Shelf`. These reads cost half: an item is whole, if a moment old."""
        for directory, found in self._every_item(consistent=False, place=place):
            book = found.book
            broken = book.unreadable is not None
            listed = (*found.name, book.record, book.row, broken, book.mark, found.zone)
            yield Listed(*listed, make_cursor(directory, *found.name, 0))

    def _every_item(
        self, *, consistent: bool, place: str = "", of: Callable[[int], str] = str
    ) -> Iterator[tuple[int, BookItem]]:
        """Yield each item of the schedules with its part of the directory, in the order of names.

        With `job_directory`, yield the items of jobs.
        """
        first, after = read_walk(place)
        for directory in range(first, DIRECTORIES):
            values, start = {":d": text(of(directory))}, None
            if after:
                start = {**key_attributes(item_key(*after[:2])), "dir": text(of(directory))}
            after = None
            items = self._table.query("dir = :d", values, index=DIRECTORY, start=start)
            while names := [name_of(item) for item in islice(items, LISTED_AT_ONCE)]:
                loaded = self._books.load_many(names, consistent=consistent)
                yield from ((directory, loaded[name]) for name in names if name in loaded)

    # Rows.

    def row(self, user_id: str, key: str) -> IndexRow | None:
        """See `ports.Shelf`."""
        return self._books.load(user_id, key).book.row

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """See `ports.Shelf`. The index is late, so rows that it still shows are not read again."""
        layout, date = self._layout.read()
        self._skew.check(date)
        templates = Templates(now, ahead, fair.pauses, fair.limits)
        while True:
            due = self._due(layout, now + ahead - fair.late, limit, fair.part)
            rows, contended = due, False
            others = (name for name in rows if name[0] not in fair.leave_out)
            while names := list(islice(others, limit)):
                claim = ItemsClaim(self._books, templates)
                share = fair.share if len(names) == limit else None
                made = self._claim(claim, names, share)
                if made or (not fair.is_plain and claim.written):
                    leased = [one for one in made if is_leased(one)]
                    return Chunk(len(names), leased, [one for one in made if is_poisoned(one)])
                contended = contended or claim.contended
            if not contended:
                return Chunk(0)

    def _claim(
        self, claim: ItemsClaim, names: Sequence[ScheduleName], share: int | None
    ) -> list[Occurrence]:
        """Flush finished occurrences, plan the chunk, note it, then write each row's item."""
        now = claim.now
        if share is not None and claim.is_plain:
            names = [names[n] for n in pick_shares([user for user, _ in names], share)]
        items = self._books.load_many(names)
        due = [items[name] for name in dict.fromkeys(names) if name in items]
        if share is not None and not claim.is_plain:  # an item says whether it only advances
            due = claim.within(share, due)
        self._books.flush(due, now)
        plans = [plan for plan in map(claim.plan, due) if plan]
        self._journal.write(
            NoteLine(*plan.item.name, wake, plan.seen)
            for plan in plans
            if (wake := plan.item.wake()) is not None
        )
        every = map if len(plans) < 2 else self._writers().map
        return [one for made in every(claim.write, plans) for one in made]

    def _writers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(WRITERS, "duetick-write")
        return self._pool

    def _due(
        self, layout: Sequence[int], until: int, page: int, part: Part | None = None
    ) -> Iterator[ScheduleName]:
        """Return the names of due rows, oldest first over all shards, or over the shards of a part.

        If there are fewer shards than parts, the name of a row decides its part.
        """
        partitions = [status for shards in layout for status in statuses(shards)]
        by_name = part is not None and len(partitions) < part.of
        if part and not by_name:
            partitions = partitions[part.number :: part.of]
        pages = [self._due_in(status, until, page) for status in partitions]
        names = (name for _, name in heapq.merge(*pages))
        return (name for name in names if part is None or not by_name or part.has(*name))

    def _due_in(self, status: str, until: int, page: int) -> Iterator[tuple[int, ScheduleName]]:
        return self._books.due_in(status, until, page)

    def backlog(self, until: int, limit: int) -> int:
        """See `ports.Shelf`."""
        layout, _ = self._layout.read()
        return sum(1 for _ in islice(self._due(layout, until, min(limit, 1_000)), limit))

    def unreadable(self, since: int, limit: int) -> Sequence[Unreadable]:
        """See `ports.Shelf`."""
        values = {":a": text("poisoned"), ":since": number(since)}
        condition = "att = :a AND aat >= :since"
        items = self._table.query(condition, values, index=ATTENTION, page=limit)
        found = (one for one in self._unreadable(items, limit) if one.at >= since)
        return list(islice(found, limit))

    def _unreadable(self, items: Iterator[Item], limit: int) -> Iterator[Unreadable]:
        """Read the rows of one instant together, so that they come in the order of their names."""
        instants = groupby(items, key=lambda item: item["aat"]["N"])
        names: list[ScheduleName] = []
        for _, together in instants:
            names += map(name_of, together)
            if len(names) >= limit:
                yield from self._load_unreadable(names)
                names = []
        yield from self._load_unreadable(names)

    def _load_unreadable(self, names: Sequence[ScheduleName]) -> Sequence[Unreadable]:
        found = (one.book.unreadable for one in self._books.load_many(names).values())
        return sorted((one for one in found if one), key=_since)

    def look(self, now: int | None, ahead: int, note: str) -> Glance | None:
        """See `ports.Shelf`. No request of DynamoDB reads all of it."""
        del now, ahead, note
        return None

    # Bells. Their module is loaded when it is needed: only a managed store has any.

    def make_bells_pending(self, names: Sequence[ScheduleName], now: int) -> None:
        """See `ports.Shelf`."""
        make_pending = partial(self._bells.make_pending, now)
        each = map if len(names) < 2 else self._writers().map
        for _ in each(make_pending, names):
            pass

    def pending_bells(self, limit: int) -> "Sequence[PendingBell]":
        """See `ports.Shelf`."""
        return self._bells.pending(limit)

    def take_bell(self, name: ScheduleName, now: int, until: int) -> str | None:
        """See `ports.Shelf`."""
        return self._bells.take(name, now, until)

    def end_bell(self, name: ScheduleName, token: str) -> bool:
        """See `ports.Shelf`."""
        return self._bells.end(name, token)

    def free_bell(self, name: ScheduleName, until: int) -> None:
        """See `ports.Shelf`."""
        self._bells.free(name, until)

    @property
    def _bells(self) -> "PendingBells":
        from duetick.stores.dynamodb.bells import PendingBells

        return PendingBells(self._table)

    # Occurrences.

    def next_due(self) -> int | None:
        """See `ports.Shelf`. The journal has the occurrences that are leased or wait, but no
        jobs.
        """
        return self._waiting.next_due()

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        """See `ports.Shelf`."""
        return self._waiting.lease(now, limit, ahead, fair)

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | DuetickError | None]:
        """See `ports.Shelf`. Each is one conditional update, side by side with the others."""
        return self._write_each(lambda lease: self._begin(lease, now), leases)

    def _write_each(
        self, write: Callable[[W], T | None], several: Sequence[W]
    ) -> list[T | DuetickError | None]:
        """Write several side by side; an error stands for the one whose write it is. Once the
        service does not answer, it is not asked for the others.
        """
        silence: list[DuetickError] = []

        def answer(one: W) -> T | DuetickError | None:
            try:
                return silence[0] if silence else write(one)
            except DuetickError as error:
                if isinstance(error.__cause__, ServiceSilent):
                    silence.append(error)
                return error

        every = map if len(several) < 2 else self._writers().map
        return [*every(answer, several)]

    def _begin(self, lease: Leased, now: int) -> Begun | None:
        if stands_beside(lease.origin):
            return None
        token = secrets.token_hex(6)
        found = self._update(lease, quick.begin(lease, now, token)) or self._read_again(
            lease, token
        )
        if found is None:
            return None
        begun = next(o for o in found.under_way if o.identity == lease.identity)
        return Begun(begun, found.book.view())

    def _read_again(self, lease: Leased, token: str) -> BookItem | None:
        """Return the book if it has the token: a write succeeded, and its answer was lost."""
        found = self._books.load(lease.user_id, lease.key)
        entry = found.open.get(slot(lease.nominal_at, lease.origin))
        return found if entry and entry.token == token else None

    def settle(
        self, settled: Sequence[Settled], now: int
    ) -> Sequence[Occurrence | DuetickError | None]:
        """See `ports.Shelf`. Each is one conditional update, side by side with the others."""
        return self._write_each(lambda one: self._settle(one, now), settled)

    def _settle(self, one: Settled, now: int) -> Occurrence | None:
        found = self._update(one.after, quick.settle(one, now))
        if found is None:
            return None
        after = found.open[slot_of(one.after)].occurrence
        lease_ends = max(one.before.lease_until or 0, now + after.policies.lease_ms)  # if renewed
        if after.state is State.RETRYING and after.due_at < lease_ends:
            line = NoteLine(after.user_id, after.key, look_at(after.due_at, now))
            self._journal.write([line])
        return after

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        """See `ports.Shelf`. Never in one write: a lease that ends sooner needs a note."""
        del before, after, event
        return None

    def _update(self, lease: Leased, update: Update) -> BookItem | None:
        try:
            return self._books.read(self._table.update(item_key(lease.user_id, lease.key), update))
        except (Conflict, ItemTooLarge):  # the general way makes room in the item
            return None

    def find(self, query: Query) -> Sequence[Occurrence]:
        """See `ports.Shelf`."""
        return self._history.find(query)

    def tally(self, now: int, dead_since: int, limit: int) -> StateCounts:
        """See `ports.Shelf`. It reads the items of up to `limit` schedules under way, and as many
        that are dead.
        """
        running, due, partly = self._history.count_under_way(now, limit)
        place = Query(None, None, frozenset({State.DEAD}), place_of(None), limit)
        dead = sum(one.nominal_at > dead_since for one in self._history.find(place))
        return StateCounts(
            queued=running[State.QUEUED],
            running=running[State.PROCESSING],
            scheduled=running[State.SCHEDULED],
            retrying=running[State.RETRYING],
            dead=dead,
            unreadable=len(self.unreadable(0, limit)),
            partly=partly,
            due_jobs=tuple(due),
        )

    def occurrence(self, identity: Identity) -> Occurrence | None:
        """See `ports.Shelf`."""
        entry = self._books.occurrence(identity)
        return entry.occurrence if entry else None

    def find_by_id(self, name: str) -> Occurrence | None:
        """See `ports.Shelf`. No index has the ids: the occurrences that need attention are looked
        through.
        """
        return self._history.find_by_id(name)

    def events(self, identities: Sequence[Identity]) -> Sequence[Sequence[Event]]:
        """See `ports.Shelf`."""
        found = self._books.occurrences(identities)
        return [found[one].events if one in found else () for one in identities]

    # Callers' keys, creations and rates.

    def key_holder(self, key: CallerKey) -> tuple[Occurrence, int] | None:
        """See `ports.Shelf`."""
        return self._books.key_holder(self._table.get(caller_key(key.flow, key.key)))

    def body(self, identity: Identity) -> str | None:
        """See `ports.Shelf`."""
        return maybe_text(self._table.get(body_key(identity)) or {}, "body")

    def creation(self, user_id: str, name: str, now: int) -> Made | None:
        """See `ports.Shelf`."""
        return read_made(self._table.get((creations_partition(user_id), name)), now)

    def count(self, user_id: str, counted: Counted, at_most: int, now: int) -> bool:
        """See `ports.Shelf`."""
        minute = now // MINUTE_MS
        over = (minute + 1) * MINUTE_MS // 1_000
        update = Update(
            "ADD #n :one SET #ttl = :over",
            "attribute_not_exists(#n) OR #n < :most",
            {"#n": "n", "#ttl": "ttl"},
            {":one": number(1), ":over": number(over), ":most": number(at_most)},
        )
        try:
            return bool(self._table.update(rate_of_minute(user_id, counted, minute), update))
        except Conflict:
            return False

    # Forecasts. Their module is loaded when it is needed: a tick forecasts nothing.

    def read_alike(
        self, selection: "Selection", now: int, until: int, place: str = ""
    ) -> "AlikePage":
        """See `ports.Shelf`. These reads cost half: an item is whole, if a moment old."""
        from duetick.stores.dynamodb.alike import (
            PartRead,
            is_in_directory,
            read_beside,
            read_directory,
            read_user,
        )

        part = PartRead(selection, now, until)
        if selection.user_id is not None:
            return read_user(self._items_of_user(selection.user_id), part)
        if is_in_directory(place):
            return read_directory(self._every_item(consistent=False, place=place), part)
        return read_beside(self._history.names_under_way(), self._books, part)

    def _items_of_user(self, user_id: str) -> Iterator[BookItem]:
        partition, _ = item_key(user_id, "")
        found = self._table.query("p = :p", {":p": text(partition)}, consistent=False)
        return map(self._books.read, found)

    def walk_units(self, books: int) -> int | None:
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.alike import walk_units

        return walk_units(books)

    # Standing orders.

    def standing(self) -> Sequence[StandingOrder]:
        """See `ports.Shelf`."""
        return self._orders.standing()

    def orders(self, kind: OrderKind, ended_after: int) -> Sequence[StandingOrder]:
        """See `ports.Shelf`."""
        return self._orders.of_kind(kind, ended_after)

    def keep_order(self, order: StandingOrder) -> bool:
        """See `ports.Shelf`."""
        return self._orders.keep(order)

    # Accounts.

    @property
    def keeps_ms(self) -> int | None:
        """See `ports.Shelf`."""
        return self._books.retention.shortest_ms

    # Locks and workers. Their module is loaded when it is needed: an idle tick needs none.

    def acquire(self, lock: "NamedLock", now: int) -> bool:
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.workers import Workers

        return Workers(self._table).acquire(lock, now)

    def extend(self, name: str, owner: str, until: int) -> bool:
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.workers import Workers

        return Workers(self._table).extend(name, owner, until)

    def unlock(self, name: str, owner: str) -> bool:
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.workers import Workers

        return Workers(self._table).unlock(name, owner)

    def locks(self) -> "Sequence[NamedLock]":
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.workers import Workers

        return Workers(self._table).locks()

    def report(self, worker: "Worker") -> None:
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.workers import Workers

        Workers(self._table).report(worker)

    def workers(self, since: int, limit: int) -> "Sequence[Worker]":
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.workers import Workers

        return Workers(self._table).workers(since, limit)

    def accounts(self, since: int, until: int, place: str = "") -> "Iterator[Account]":
        """See `ports.Shelf`. Its module is loaded when it is needed: a tick verifies nothing."""
        from duetick.stores.dynamodb.accounts import Accounts

        return Accounts(self._books).walk(since, until, place)

    def account(self, user_id: str, key: str, since: int, until: int) -> "Account":
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.accounts import Accounts

        return Accounts(self._books).one((user_id, key), since, until)

    def rules(self, digest: str) -> bytes | None:
        """See `ports.Shelf`."""
        item = self._table.get(zone_key(digest))
        return b64decode(item["rules"]["S"]) if item else None

    def note(self, name: str) -> str | None:
        """See `ports.Shelf`."""
        item = self._table.get(note_key(name))
        return item["body"]["S"] if item else None

    def keep_note(self, name: str, body: str) -> None:
        """See `ports.Shelf`."""
        self._table.put(key_attributes(note_key(name)) | {"body": text(body)})

    def take_in(self, limit: int, take: TakeIn) -> int:
        """See `ports.Shelf`. Nobody else writes to the table: an action or the API enqueues."""
        del limit, take
        return 0

    # Operations.

    def add_operation(self, operation: "Operation") -> None:
        """See `ports.Shelf`. Its module is loaded when it is needed: a tick records nothing."""
        from duetick.stores.dynamodb.operations import add_operation

        add_operation(self._table, operation)

    def end_operation(self, operation: "Operation") -> None:
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.operations import end_operation

        end_operation(self._table, operation)

    def operations(
        self, after: "OperationPlace", limit: int, user_id: str | None = None
    ) -> "Sequence[Operation]":
        """See `ports.Shelf`."""
        from duetick.stores.dynamodb.operations import operations

        return operations(self._table, after, limit, user_id)

    # The database.

    def now(self) -> int:
        """See `ports.Shelf`."""
        return host_clock()

    def migrate(self) -> Migrated:
        """See `ports.Shelf`."""
        return migrate(self._table, self._layout.shards)

    def check_schema(self) -> None:
        """See `ports.Shelf`."""
        check_schema(self._table)

    def erase(self, user_id: str) -> int:
        """See `ports.Shelf`."""
        return erase(self._books, user_id)

    def forget(self, now: int, limit: int) -> int:
        """See `ports.Shelf`. Each item that will be over says when: DynamoDB deletes it."""
        del now, limit
        return 0

    def retire(self, retention: Retention, now: int, limit: int) -> Retired:
        """See `ports.Shelf`. Each finished occurrence says when: DynamoDB deletes it."""
        del retention, now, limit
        return Retired()

    def tidy(self, now: int) -> int:
        """See `ports.Shelf`. Move the rows of earlier layouts to their present shard."""
        leaving = self._layout.leaving(now)
        moved = sum(
            self._move(found, now)
            for of in (str, job_directory)
            for _, found in self._every_item(consistent=True, of=of)
        )
        self._layout.leave(leaving, now)
        return moved

    def _move(self, found: BookItem, now: int) -> bool:
        try:
            return self._books.move(found, now)
        except Conflict:
            return self._move(self._books.load(*found.name), now)

    def close(self) -> None:
        """See `ports.Shelf`."""
        if self._pool:
            self._pool.shutdown()
            self._pool = None
        self._table.service.close()


def _since(one: Unreadable) -> tuple[int, str, str]:
    return one.at, one.row.user_id, one.row.key


def open_dynamodb(url: str, *, checks_clock: bool, retention: Retention = USUAL) -> DynamoShelf:
    """Open a shelf at dynamodb://table?region=…&endpoint=…&shards=N.

    With `checks_clock`, a claim is refused if the host's clock is wrong. `retention` says when the
    items of finished occurrences expire.
    """
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    name = unquote(parts.netloc)
    unknown = options.keys() - {"region", "endpoint", "shards"}
    if not name or parts.path.strip("/") or unknown:
        raise InvalidStoreUrl(
            "The address is no table's: expected dynamodb://table, then "
            "?region=…&endpoint=…&shards=… as needed."
        )
    service = connect(options.get("region"), options.get("endpoint"))
    shards = _shards(options.get("shards", "1"))
    return DynamoShelf(Table(name, service), shards, checks_clock=checks_clock, retention=retention)


def _shards(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LARGEST_SHARDS:
        raise InvalidStoreUrl(f"shards={text}: expected a number from 1 to {LARGEST_SHARDS}.")
    return int(text)
