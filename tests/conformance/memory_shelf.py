"""A fourth store, written from the stores' README alone: everything in dictionaries."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any, TypeVar

from duetick.core.ids import new_id
from duetick.domain.accounts import Account, LedgerEntry
from duetick.domain.alike import (
    Alike,
    AlikePage,
    Selection,
    Waits,
    count_spent_runs,
    make_alike,
    waits,
)
from duetick.domain.attempts import Begun, CallerKey, Settled, refuse_key
from duetick.domain.bells import PendingBell
from duetick.domain.book import Book, Unreadable, lease_again
from duetick.domain.claims import Templates, pick_shares
from duetick.domain.creation import Made
from duetick.domain.definitions import Definition
from duetick.domain.ending import KEPT_GONE_MS, counts
from duetick.domain.errors import (
    ConfigurationError,
    CreationStands,
    InvalidSchedule,
    refuse_job,
    refuse_schedule,
)
from duetick.domain.expression import rules_of
from duetick.domain.failure_hooks import action_run, hooks_of
from duetick.domain.failures import Event
from duetick.domain.identity import is_failure_hook, is_job
from duetick.domain.jobs import mark_job
from duetick.domain.occurrence import Identity, IndexRow, Leased, Occurrence, ScheduleName
from duetick.domain.operations import BEGUN, Operation, OperationPlace
from duetick.domain.overlap import may_be_leased, needs_reserving, pick_one_of_each, reserve
from duetick.domain.paging import make_cursor, newest_first, read_name
from duetick.domain.retention import KEPT_AT_LEAST, Newest, Retention, Retired
from duetick.domain.schedule import Record
from duetick.domain.standing import OrderKind, StandingOrder, prefix_of_user
from duetick.domain.states import LEASED, WAITING, State
from duetick.domain.transitions import has_ended, is_waiting_job, lease_over, wake_of
from duetick.domain.workers import REPORTS_KEPT_MS, NamedLock, Worker
from duetick.ports import (
    NO_TERMS,
    Alter,
    Chunk,
    Clock,
    Counted,
    DueJob,
    Effects,
    Fair,
    Glance,
    JobsFound,
    KeyHeld,
    Listed,
    Migrated,
    Query,
    Records,
    StateCounts,
    TakeIn,
    Terms,
)

T = TypeVar("T")


@dataclass
class NoEffects:
    """The effects of an action: it cannot write into dictionaries, but may change other books."""

    shelf: "MemoryShelf"
    dialect = None

    def change(
        self, user_id: str, key: str, now: int, alter: Alter[T], terms: Terms | None = None
    ) -> T:
        return self.shelf.change(user_id, key, now, alter, terms=terms or NO_TERMS)

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        del sql, params
        raise ConfigurationError("This store has no SQL database.")

    def write(self, item: Mapping[str, Any], /) -> None:
        del item
        raise ConfigurationError("This store has no DynamoDB table.")


@dataclass
class MemoryPages:
    """`duetick.domain.book.Pages` of one schedule."""

    shelf: "MemoryShelf"
    name: ScheduleName

    def _mine(self) -> Iterator[Occurrence]:
        every = list(self.shelf.ledger.values())
        return (one for one in every if (one.user_id, one.key) == self.name)

    def _own(self) -> Iterator[Occurrence]:
        return (one for one in self._mine() if one.origin == "schedule")

    def find(self, nominal_at: int, origin: str) -> Occurrence | None:
        return self.shelf.ledger.get((*self.name, nominal_at, origin))

    def at(self, nominal_at: int) -> Sequence[Occurrence]:
        return [one for one in self._mine() if one.nominal_at == nominal_at]

    def in_place(self) -> Sequence[Occurrence]:
        states = (State.PROCESSING, State.RETRYING)
        again = (one.state is State.QUEUED and one.attempts > 0 for one in self._mine())
        return [
            o for o, queued in zip(self._mine(), again, strict=True) if o.state in states or queued
        ]

    def find_queued_before(self, nominal_at: int) -> Sequence[Occurrence]:
        queued = (one for one in self._mine() if one.state is State.QUEUED and not one.attempts)
        return [one for one in queued if one.nominal_at < nominal_at]

    def times_within(self, first: int, last: int) -> Sequence[int]:
        return [one.nominal_at for one in self._own() if first <= one.nominal_at <= last]

    def newest_until(self, nominal_at: int) -> Occurrence | None:
        until = (one for one in self._own() if one.nominal_at <= nominal_at)
        return max(until, key=lambda one: one.nominal_at, default=None)

    def ranges_beyond(self, at: int) -> Sequence[Occurrence]:
        return [one for one in self._own() if (one.range_end or 0) > at]

    def find_unfinished(self) -> Sequence[Occurrence]:
        return [one for one in self._mine() if not has_ended(one)]

    def complete(self, found: Record) -> Record:
        return found


@dataclass
class MemoryShelf:
    """`duetick.ports.Shelf`. The holder of the lock is alone: that is a transaction."""

    lock: RLock = field(default_factory=RLock)
    books: dict[ScheduleName, Book] = field(default_factory=dict)
    ledger: dict[Identity, Occurrence] = field(default_factory=dict)
    happened: dict[Identity, list[Event]] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[Identity, int]] = field(default_factory=dict)
    bodies: dict[Identity, str] = field(default_factory=dict)
    rates: dict[tuple[str, Counted, int], int] = field(default_factory=dict)
    creations: dict[tuple[str, str], tuple[Made, int]] = field(default_factory=dict)
    definitions: dict[ScheduleName, list[Definition]] = field(default_factory=dict)
    zones: dict[str, bytes] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    ordered: dict[tuple[str, str], StandingOrder] = field(default_factory=dict)
    recorded: dict[str, Operation] = field(default_factory=dict)
    held: dict[str, NamedLock] = field(default_factory=dict)
    reports: dict[str, Worker] = field(default_factory=dict)
    bells: dict[ScheduleName, tuple[str, int]] = field(default_factory=dict)
    taken: dict[ScheduleName, int] = field(default_factory=dict)

    dialect = None

    def _book(self, user_id: str, key: str) -> Book:
        name = user_id, key
        blank = Book(user_id, key, MemoryPages(self, name), new_id)
        found = self.books.get(name, blank)
        return replace(found, made=[], ranges=[], moved={}, events=[], definitions=[], bell=None)

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
        with self.lock:
            held = terms.key and self.key_holder(terms.key)
            refused = refuse_key(*held, now) if held else None
            if refused:
                raise KeyHeld(refused)
            before, book = self.books.get((user_id, key)), self._book(user_id, key)
            answer = alter(book)
            if counts(book.record) and not counts(before.record if before else None):
                self._check_room(book, terms)
            if book.record and not (before and before.record):
                self._create(book, terms, now)
            self._check_owner(book)
            self._write(book)
            if terms.key and book.made:
                self.keys[terms.key.flow, terms.key.key] = (
                    book.made[0].identity,
                    now + terms.key.window_ms,
                )
            if terms.body is not None and book.made:
                self.bodies[book.made[0].identity] = terms.body
            return answer

    def _check_room(self, book: Book, terms: Terms) -> None:
        job = is_job(book.key)
        mine = [one for (user, _), one in self.books.items() if user == book.user_id]
        alike = [one.record for one in mine if is_job(one.key) == job]
        if terms.at_most is not None and sum(map(counts, alike)) - terms.ending >= terms.at_most:
            raise refuse_job(terms.at_most) if job else refuse_schedule(terms.at_most)

    def _create(self, book: Book, terms: Terms, now: int) -> None:
        if terms.creation and book.record:
            stands = self.creation(book.user_id, terms.creation.name, now)
            if stands:
                raise CreationStands(stands.digest)
            first = book.row.next_fire_at if book.row else None
            made = Made.read(terms.creation.note(book.record), book.record.created_at, first)
            self.creations[book.user_id, terms.creation.name] = made, terms.creation.until

    def _check_owner(self, book: Book) -> None:
        owner = book.record and book.record.external_id and self.owner(book.record.external_id)
        if owner and (owner.user_id, owner.key) != (book.user_id, book.key):
            raise InvalidSchedule("external_id", "is already another schedule's.", "taken")

    def _write(self, book: Book) -> None:
        self.books[book.user_id, book.key] = book
        for one in book.definitions:
            self.definitions.setdefault((one.user_id, one.key), []).append(one)
            if one.zone is not None:
                self.zones[one.zone] = rules_of(one.timezone)
        self.ledger = {one.identity: one for one in book.made} | self.ledger
        self.ledger |= {one.identity: one for one in book.ranges} | book.moved
        for identity in book.discarded:
            self.happened.pop(identity, None)
            self.bodies.pop(identity, None)
        for identity, event in book.events:
            self.happened.setdefault(identity, []).append(event)
        if book.bell:
            name = book.user_id, book.key
            _, since = self.bells.get(name, ("", book.bell.at))
            self.bells[name] = book.bell.token, since

    @contextmanager
    def effects(self, held: Leased, clock: Clock, alter: Alter[object]) -> Iterator[Effects]:
        with self.lock:
            before = self.books, self.ledger, self.creations, self.happened, self.bells
            self.books, self.creations = {**self.books}, {**self.creations}
            self.bells = {**self.bells}
            self.happened = {name: [*events] for name, events in self.happened.items()}
            try:
                yield NoEffects(self)
                self.change(held.user_id, held.key, clock(), alter)
            except BaseException:
                self.books, self.ledger, self.creations, self.happened, self.bells = before
                raise

    def record(self, user_id: str, key: str) -> Record | None:
        return self._book(user_id, key).view()

    def records(self, user_id: str, after: str, limit: int, *, done: bool | None = None) -> Records:
        keys = (key for user, key in self.books if user == user_id and key > after)
        names = sorted(key for key in keys if not is_job(key))
        every = (self.record(user_id, key) for key in names)
        found = [one for one in every if one and done in (None, not counts(one))][:limit]
        return Records(found, found[-1].key if len(found) == limit else None)

    def jobs(self, user_id: str, after: str, limit: int, *, ended: bool | None = None) -> JobsFound:
        names = sorted(key for user, key in self.books if user == user_id and key > after)
        every = (self._book(user_id, key).job() for key in names)
        found = [one for one in every if one and ended in (None, not one.is_pending)][:limit]
        return JobsFound(found, found[-1].record.key if len(found) == limit else None)

    def leaving(self, until: int, limit: int) -> Sequence[ScheduleName]:
        found = [
            (book.record.purge_at, name)
            for name, book in self.books.items()
            if book.record and book.record.purge_at is not None and book.record.purge_at <= until
        ]
        return [name for _, name in sorted(found)[:limit]]

    def owner(self, external_id: str) -> Record | None:
        found = (book.view() for book in self.books.values())
        return next((one for one in found if one and one.external_id == external_id), None)

    def every_book(self, place: str = "") -> Iterator[Listed]:
        after = read_name(place)
        for (user_id, key), one in sorted(self.books.items(), key=lambda item: item[0]):
            if (user_id, key) <= after or is_job(key):
                continue
            yield Listed(
                *(user_id, key, one.record, one.row, bool(one.unreadable), one.mark),
                self.definitions[user_id, key][-1].zone
                if (user_id, key) in self.definitions
                else None,
                make_cursor(user_id, key),
            )

    def row(self, user_id: str, key: str) -> IndexRow | None:
        return self._book(user_id, key).row

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        with self.lock:
            rows = [book.row for book in self.books.values()]
            until = now + ahead - fair.late
            due = [row for row in rows if row and row.next_fire_at <= until]
            due = [row for row in due if row.user_id not in fair.leave_out]
            due.sort(key=lambda row: row.next_fire_at)
            chunk = due[:limit]
            if fair.share is not None and len(chunk) == limit:
                free = [row for row in chunk if self._only_advances(row, fair)]
                chunk = [row for row in chunk if row not in free]
                chunk = [chunk[n] for n in pick_shares([row.user_id for row in chunk], fair.share)]
                chunk += free
            templates = Templates(now, ahead, fair.pauses, fair.limits)
            made: list[Occurrence] = []
            for row in chunk:
                made += self._claim(row, templates)
            leased = [one for one in made if one.state is State.QUEUED]
            return Chunk(len(due), leased, [one for one in made if one.reason == "poisoned"])

    def _only_advances(self, row: IndexRow, fair: Fair) -> bool:
        return fair.leases_nothing(row.user_id, row.flow, row.next_fire_at)

    def _claim(self, row: IndexRow, templates: Templates) -> Sequence[Occurrence]:
        book = self._book(row.user_id, row.key)
        made = [*book.claim(templates)]
        self._write(book)
        return made

    def look(self, now: int | None, ahead: int, note: str) -> Glance | None:
        """A dictionary answers each question at once."""
        del now, ahead, note
        return None

    def backlog(self, until: int, limit: int) -> int:
        rows = [book.row for book in self.books.values()]
        return min(limit, sum(row is not None and row.next_fire_at <= until for row in rows))

    def unreadable(self, since: int, limit: int) -> Sequence[Unreadable]:
        found = [book.unreadable for book in self.books.values() if book.unreadable]
        since_then = (one for one in found if one.at >= since)
        return sorted(since_then, key=lambda one: (one.at, one.row.user_id, one.row.key))[:limit]

    def make_bells_pending(self, names: Sequence[ScheduleName], now: int) -> None:
        with self.lock:
            for name in names:
                _, since = self.bells.get(name, ("", now))
                self.bells[name] = new_id(), since

    def pending_bells(self, limit: int) -> Sequence[PendingBell]:
        found = [PendingBell(*name, since) for name, (_, since) in self.bells.items()]
        return sorted(found, key=lambda one: (one.since, one.name))[:limit]

    def take_bell(self, name: ScheduleName, now: int, until: int) -> str | None:
        with self.lock:
            if name not in self.bells or self.taken.get(name, 0) > now:
                return None
            self.taken[name] = until
            return self.bells[name][0]

    def end_bell(self, name: ScheduleName, token: str) -> bool:
        with self.lock:
            if self.bells.get(name, ("", 0))[0] != token:
                return False
            del self.bells[name]
            self.taken.pop(name, None)
            return True

    def free_bell(self, name: ScheduleName, until: int) -> None:
        with self.lock:
            if self.taken.get(name) == until:
                del self.taken[name]

    def next_due(self) -> int | None:
        under_way = [one for one in self.ledger.values() if not has_ended(one)]
        return min(map(wake_of, under_way), default=None)

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        with self.lock:
            every = [o for o in self.ledger.values() if o.user_id not in fair.leave_out]
            every = [o for o in every if not fair.limits.keeps_back(o, self._action_of(o), now)]
            over = [o for o in every if o.state in LEASED and lease_over(o, now - fair.late)]
            until = now + ahead - fair.late
            due = [o for o in every if o.state in WAITING and o.due_at <= until]
            due = [o for o in due if not fair.pauses.holds_retry(o, now)]
            over.sort(key=lambda one: one.lease_until or 0)
            due.sort(key=lambda one: (-one.priority, one.due_at, one.created_at))
            ready = pick_one_of_each([o for o in due if self._may_lease(o)])
            chosen = [*over, *ready]
            if fair.share is not None and len(chosen) > limit:
                users = [one.user_id for one in chosen]
                chosen = [chosen[n] for n in pick_shares(users, fair.share)]
            chosen = [*fair.limits.pick(chosen[:limit], self._action_of, now)]
            taken = [self._take(one, now) for one in chosen]
            for one in due:
                if one not in ready and needs_reserving(one, now) and not self._may_lease(one):
                    self.ledger[one.identity] = reserve(one, now)
            return taken

    def _action_of(self, one: Occurrence) -> str:
        record = self._book(one.user_id, one.key).record
        return action_run(record, one.origin) if record else ""

    def _may_lease(self, waiting: Occurrence) -> bool:
        pages = MemoryPages(self, (waiting.user_id, waiting.key))
        return may_be_leased(waiting, pages.in_place())

    def _take(self, held: Occurrence, now: int) -> Occurrence:
        after, note = lease_again(held, now)
        self.ledger[after.identity] = after
        self.ledger |= {one.identity: one for one in hooks_of([after], new_id)}
        book = self._book(held.user_id, held.key)
        if is_job(held.origin) and book.record:
            book.record = mark_job(book.record, after)
            self.books[held.user_id, held.key] = book
        if note is not None:
            event = Event(after.updated_at, held.state, after.state, note)
            self.happened.setdefault(held.identity, []).append(event)
        return after

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | None]:
        return [None for _ in leases]

    def settle(self, settled: Sequence[Settled], now: int) -> Sequence[Occurrence | None]:
        return [None for _ in settled]

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        del before, after, event
        return None

    def find(self, query: Query) -> Sequence[Occurrence]:
        found = [
            one
            for one in self.ledger.values()
            if query.user_id in (None, one.user_id)
            and query.key in (None, one.key)
            and (not query.states or one.state in query.states)
            and newest_first(one.identity) > newest_first(query.after)
        ]
        return sorted(found, key=lambda one: newest_first(one.identity))[: query.limit]

    def tally(self, now: int, dead_since: int, limit: int) -> StateCounts:
        due = [o for o in self.ledger.values() if is_waiting_job(o) and o.due_at <= now]
        states = Counter(one.state for one in self.ledger.values())
        dead = [o for o in self.ledger.values() if o.state is State.DEAD]
        return StateCounts(
            queued=states[State.QUEUED],
            running=states[State.PROCESSING],
            scheduled=states[State.SCHEDULED],
            retrying=states[State.RETRYING],
            dead=min(limit, sum(o.nominal_at > dead_since for o in dead)),
            unreadable=len(self.unreadable(0, limit)),
            due_jobs=tuple(DueJob(o.user_id, o.flow, self._action_of(o), o.due_at) for o in due),
        )

    def occurrence(self, identity: Identity) -> Occurrence | None:
        return self.ledger.get(identity)

    def find_by_id(self, name: str) -> Occurrence | None:
        return next((one for one in self.ledger.values() if one.id == name), None)

    def events(self, identities: Sequence[Identity]) -> Sequence[Sequence[Event]]:
        return [self.happened.get(one, []) for one in identities]

    def key_holder(self, key: CallerKey) -> tuple[Occurrence, int] | None:
        identity, until = self.keys.get((key.flow, key.key), (None, 0))
        holder = identity and self.ledger.get(identity)
        return (holder, until) if holder else None

    def body(self, identity: Identity) -> str | None:
        return self.bodies.get(identity)

    def creation(self, user_id: str, name: str, now: int) -> Made | None:
        made, until = self.creations.get((user_id, name), (None, 0))
        return made if until > now else None

    def count(self, user_id: str, counted: Counted, at_most: int, now: int) -> bool:
        name = user_id, counted, now // 60_000
        with self.lock:
            before = self.rates.get(name, 0)
            self.rates[name] = min(before + 1, at_most)
            return before < at_most

    @property
    def keeps_ms(self) -> int | None:
        return None

    def accounts(self, since: int, until: int, place: str = "") -> Iterator[Account]:
        after = read_name(place)
        for name in sorted(self.books.keys() | self.definitions.keys()):
            if name > after:
                yield self.account(*name, since, until)._replace(place=make_cursor(*name))

    def account(self, user_id: str, key: str, since: int, until: int) -> Account:
        book = self._book(user_id, key)
        pause = book.record.pause if book.record else None
        definitions = self.definitions.get((user_id, key), [])
        mine = [one for one in MemoryPages(self, (user_id, key))._own() if one.nominal_at <= until]
        first = max((one.nominal_at for one in mine if one.nominal_at <= since), default=since)
        own = [one for one in mine if one.nominal_at >= first]
        return Account(
            *(user_id, key, definitions, book.row),
            book.record.redefined_at if book.record and pause and pause.until else None,
            [
                LedgerEntry(o.nominal_at, o.range_end, o.count, o.state, o.reason, o.redefined_at)
                for o in sorted(own, key=lambda one: one.nominal_at)
                if definitions
            ],
            unreadable_at=book.unreadable.row.next_fire_at if book.unreadable else None,
        )

    def read_alike(self, selection: Selection, now: int, until: int, place: str = "") -> AlikePage:
        del place
        rows: list[Alike] = []
        unreadable = 0
        for book in self.books.values():
            record, broken = book.record, book.unreadable
            row, action = book.row or (broken and broken.row), record.action if record else ""
            if row and selection.takes(row.user_id, row.flow, action):
                unreadable += broken is not None
                under_way = MemoryPages(self, (book.user_id, book.key)).find_unfinished()
                spent = count_spent_runs(record.runs if record else 0, under_way)
                rows += [make_alike(row, book.mark, action=action, spent=spent)] if book.row else []
        return AlikePage(rows, [*self._waiting(selection, now, until)], unreadable)

    def _waiting(self, selection: Selection, now: int, until: int) -> Iterator[Waits]:
        for one in self.ledger.values():
            found = waits(one, now, until, action=self._action_of(one))
            if found and selection.takes(one.user_id, one.flow, self._action_of(one)):
                yield found

    def walk_units(self, books: int) -> int | None:
        del books
        return None

    def acquire(self, lock: NamedLock, now: int) -> bool:
        with self.lock:
            found = self.held.get(lock.name)
            if found and found.owner != lock.owner and found.until > now:
                return False
            self.held[lock.name] = lock
            return True

    def extend(self, name: str, owner: str, until: int) -> bool:
        with self.lock:
            mine = name in self.held and self.held[name].owner == owner
            if mine:
                self.held[name] = self.held[name]._replace(until=until)
            return mine

    def unlock(self, name: str, owner: str) -> bool:
        with self.lock:
            mine = name in self.held and self.held[name].owner == owner
            if mine:
                del self.held[name]
            return mine

    def locks(self) -> Sequence[NamedLock]:
        return [self.held[name] for name in sorted(self.held)]

    def report(self, worker: Worker) -> None:
        self.reports[worker.id] = worker

    def workers(self, since: int, limit: int) -> Sequence[Worker]:
        found = [one for one in self.reports.values() if one.started_at >= since]
        return sorted(found, key=lambda one: (one.started_at, one.id), reverse=True)[:limit]

    def rules(self, digest: str) -> bytes | None:
        return self.zones.get(digest)

    def note(self, name: str) -> str | None:
        return self.notes.get(name)

    def keep_note(self, name: str, body: str) -> None:
        self.notes[name] = body

    def standing(self) -> Sequence[StandingOrder]:
        return [one for _, one in sorted(self.ordered.items()) if one.ended_at is None]

    def orders(self, kind: OrderKind, ended_after: int) -> Sequence[StandingOrder]:
        mine = [one for _, one in sorted(self.ordered.items()) if one.kind == kind]
        return [one for one in mine if one.ended_at is None or one.ended_at > ended_after]

    def keep_order(self, order: StandingOrder) -> bool:
        with self.lock:
            found = self.ordered.get((order.kind, order.name))
            before = found.rev if found and found.ended_at is None else None
            if before != (order.rev - 1 or None) or (found and before is None):
                return False
            self.ordered[order.kind, order.name] = order
            return True

    def add_operation(self, operation: Operation) -> None:
        self.recorded[operation.id] = operation

    def end_operation(self, operation: Operation) -> None:
        known = self.recorded.get(operation.id)
        if known and known.outcome == BEGUN:
            self.recorded[operation.id] = operation

    def operations(
        self, after: OperationPlace, limit: int, user_id: str | None = None
    ) -> Sequence[Operation]:
        every = [o for o in self.recorded.values() if user_id in (None, o.user_id)]
        found = sorted(every, key=lambda one: one.place, reverse=True)
        return [one for one in found if one.place < after][:limit]

    def take_in(self, limit: int, take: TakeIn) -> int:
        """Take nothing in: nobody else writes into dictionaries."""
        del limit, take
        return 0

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def migrate(self) -> Migrated:
        """Nothing was there before."""
        return Migrated()

    def check_schema(self) -> None:
        """Dictionaries have no schema."""

    def tidy(self, now: int) -> int:
        """Every book shows all there is."""
        del now
        return 0

    close = check_schema

    def forget(self, now: int, limit: int) -> int:
        with self.lock:
            marks = [name for name, book in self.books.items() if _is_over(book, now)][:limit]
            creations = [n for n, (_, until) in self.creations.items() if until <= now][:limit]
            keys = [name for name in self.keys if self._is_key_over(name, now)][:limit]
            record = [n for n, o in self.recorded.items() if o.at + KEPT_GONE_MS <= now][:limit]
            for name in marks:
                del self.books[name]
            for one in record:
                del self.recorded[one]
            for name in creations:
                del self.creations[name]
            rates = [name for name in self.rates if name[2] < now // 60_000][:limit]
            told = [one.id for one in self.reports.values() if _is_old(one, now)][:limit]
            for name in keys:
                del self.keys[name]
            before = now - KEPT_GONE_MS
            over = [n for n, o in self.ordered.items() if o.ended_at and o.ended_at <= before]
            for ended in over[:limit]:
                del self.ordered[ended]
            for rate in rates:
                del self.rates[rate]
            for worker in told:
                del self.reports[worker]
            kinds = (marks, creations, keys, over[:limit], record, rates, told)
            return sum(len(each) for each in kinds)

    def retire(self, retention: Retention, now: int, limit: int) -> Retired:
        with self.lock:
            ended = [one for one in self.ledger.values() if has_ended(one)]
            left = [one.identity for one in ended if self._leaves(one, retention, now)][:limit]
            self.ledger = {name: o for name, o in self.ledger.items() if name not in left}
            self.happened = {name: e for name, e in self.happened.items() if name not in left}
            for user_id, key, _, origin in left:
                if key == origin and not MemoryPages(self, (user_id, key)).find_unfinished():
                    self.books.pop((user_id, key), None)
            return Retired(left, len(left))

    def _leaves(self, one: Occurrence, retention: Retention, now: int) -> bool:
        if retention.expires_at(one) > now:
            return False
        book = self.books.get((one.user_id, one.key))
        fires = book and (counts(book.record) or book.row or book.unreadable)
        mine = MemoryPages(self, (one.user_id, one.key))._mine()
        own = (o for o in mine if not is_failure_hook(o.origin))
        order = sorted(((o.nominal_at, o.origin) for o in own), reverse=True)
        last = order[KEPT_AT_LEAST - 1] if len(order) >= KEPT_AT_LEAST else None
        return retention.judge(one, Newest(bool(fires), last), now) is None

    def _is_key_over(self, name: tuple[str, str], now: int) -> bool:
        identity, until = self.keys[name]
        holder = self.ledger.get(identity)
        return until + 86_400_000 <= now and (holder is None or has_ended(holder))

    def erase(self, user_id: str) -> int:
        with self.lock:
            mine = [self.books.pop(name) for name in list(self.books) if name[0] == user_id]
            self.ledger = {name: one for name, one in self.ledger.items() if name[0] != user_id}
            self.happened = {name: e for name, e in self.happened.items() if name[0] != user_id}
            self.bodies = {name: body for name, body in self.bodies.items() if name[0] != user_id}
            self.rates = {name: one for name, one in self.rates.items() if name[0] != user_id}
            self.creations = {n: one for n, one in self.creations.items() if n[0] != user_id}
            self.definitions = {n: d for n, d in self.definitions.items() if n[0] != user_id}
            about = prefix_of_user(user_id)
            self.ordered = {n: o for n, o in self.ordered.items() if not n[1].startswith(about)}
            self.keys = {k: v for k, v in self.keys.items() if v[0][0] != user_id}
            self.recorded = {n: o for n, o in self.recorded.items() if o.user_id != user_id}
            self.bells = {name: one for name, one in self.bells.items() if name[0] != user_id}
            return sum(book.record is not None and not is_job(book.key) for book in mine)


def _is_old(worker: Worker, now: int) -> bool:
    return worker.started_at + REPORTS_KEPT_MS <= now


def _is_over(book: Book, now: int) -> bool:
    gone = not (book.record or book.row or book.unreadable)
    return gone and book.mark is not None and book.mark + KEPT_GONE_MS <= now
