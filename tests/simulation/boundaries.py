"""The boundaries: each call of the port, each way to dispatch, each statement inside a store.

At each crossing time passes and others act. There, before or after the call took effect, a process
may die, or its database or network may be away: as the story says.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from zlib import crc32

from duetick.core.store.index import OneClaim
from duetick.domain.accounts import Account
from duetick.domain.alike import AlikePage, Selection
from duetick.domain.attempts import Begun, CallerKey, Settled
from duetick.domain.bells import PendingBell
from duetick.domain.book import Book, Unreadable
from duetick.domain.creation import Made
from duetick.domain.ending import counts
from duetick.domain.errors import DuetickError, StoreUnavailable
from duetick.domain.failures import Event
from duetick.domain.limits import Limits
from duetick.domain.occurrence import (
    LATEST,
    Identity,
    IndexRow,
    Leased,
    Occurrence,
    ScheduleName,
)
from duetick.domain.operations import Operation, OperationPlace
from duetick.domain.retention import Retention, Retired
from duetick.domain.schedule import Record
from duetick.domain.standing import OrderKind, StandingOrder
from duetick.domain.states import State
from duetick.domain.workers import NamedLock, Worker
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
    Query,
    Records,
    Shelf,
    StateCounts,
    TakeIn,
    Terms,
)

from tests.simulation.slots import Dead, Slots
from tests.simulation.story import Kind, Story
from tests.simulation.witness import STILL, Snapshot, Witness, clock, snapshot

T = TypeVar("T")
NEWEST = "", "", LATEST, ""

Tell = Callable[[str], object]

STALLS = (20_000, 70_000, 130_000, 400_000)
"""Milliseconds for which a process stands still at times: longer than a lease."""


class Boundaries:
    """The crossings of one simulation. `crossed` counts them; `happened` counts the faults. At the
    `stalled` ones a process stood still for long.
    """

    def __init__(self, slots: Slots, story: Story, witness: Witness, tell: Tell) -> None:
        self.slots = slots
        self.witness = witness
        self.quiet = False
        self.crossed: Counter[str] = Counter()
        self.happened: Counter[tuple[str, Kind]] = Counter()
        self.stalled: set[str] = set()
        self._story = story
        self.longest_pause = story.longest_pause
        self._tell = tell
        self._faults: dict[tuple[str, int], Kind] = {
            (one.boundary, one.nth): one.kind for one in story.faults
        }
        self._outages = [(one.since, one.until) for one in story.outages if one.of == "database"]

    def cross(self, name: str, call: Callable[[], T], *, of_store: bool = True) -> T:
        """Make a call across a boundary."""
        kind = self._kind(name)
        self._pause(name)
        if of_store and self._is_away():
            raise StoreUnavailable("the database is away")
        self._meet(name, kind, "dies before", "is refused")
        answer = call()
        self._meet(name, kind, "dies after", "is not answered")
        self._pause(name)
        return answer

    def inside(self, name: str, call: Callable[[], T]) -> T:
        """Run a statement or a request of a store. A process may die there."""
        if self.slots.is_closing:
            raise Dead
        kind = self._kind("statement")
        self._meet(f"statement ({name})", kind, "dies before", None)
        answer = call()
        self._meet(f"statement ({name})", kind, "dies after", None)
        return answer

    def _kind(self, name: str) -> Kind | None:
        if self.slots.is_closing:
            raise Dead
        self.crossed[name] += 1
        return None if self.quiet else self._faults.get((name, self.crossed[name]))

    def _meet(self, name: str, kind: Kind | None, death: Kind, away: Kind | None) -> None:
        if kind is None or kind not in (death, away):
            return
        me = self.slots.current
        self.happened[name.partition(" ")[0], kind] += 1
        when = "before" if kind in ("dies before", "is refused") else "after"
        if kind == death:
            self._tell(f"{me.process.name} dies, {when} `{name}` took effect")
            if me.process is not self.slots.world.process:
                self.slots.kill(me.process)
            return
        self._tell(f"the database answers {me.name} nothing, {when} `{name}` took effect")
        raise StoreUnavailable("the answer was lost")

    def _is_away(self) -> bool:
        now = self.slots.now
        return not self.quiet and any(since <= now < until for since, until in self._outages)

    def _pause(self, name: str) -> None:
        """Let some milliseconds pass, seldom minutes. The name of the crossing decides."""
        story, me = self._story, self.slots.current
        most = 1 if self.quiet else story.longest_pause
        drawn = crc32(f"{story.seed} {me.name} {name} {self.slots.now}".encode())
        rare = 97 if name in ("act", "settle") else 397
        stalls = most > 5 and not self.quiet and drawn % rare == 0
        if stalls:
            self.stalled.add(name)
            stall = STALLS[drawn // 397 % len(STALLS)]
            self._tell(f"{me.name} stands still for {stall // 1_000} s at `{name}`")
            self.slots.pause(stall)
        else:
            self.slots.pause(drawn % (most + 1))


class CrossedTransaction:
    """`ports.Effects` whose every write crosses a boundary."""

    def __init__(self, transaction: Effects, boundaries: Boundaries) -> None:
        self._transaction = transaction
        self._boundaries = boundaries

    @property
    def dialect(self) -> Dialect | None:
        """See `ports.Transaction`."""
        return self._transaction.dialect

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        """See `ports.Transaction`."""
        return self._boundaries.cross(
            "effects.write", lambda: self._transaction.run(sql, **params), of_store=False
        )

    def write(self, item: Mapping[str, Any], /) -> None:
        """See `ports.Transaction`."""
        self._boundaries.cross(
            "effects.write", lambda: self._transaction.write(item), of_store=False
        )

    def change(
        self, user_id: str, key: str, now: int, alter: "Alter[T]", terms: Terms | None = None
    ) -> T:
        """See `ports.Effects`."""
        return self._boundaries.cross(
            "effects.write",
            lambda: self._transaction.change(user_id, key, now, alter, terms),
            of_store=False,
        )


class CrossedShelf:
    """`ports.Shelf` whose every call crosses a boundary. The witness sees each answer.

    With `general`, it has no fast ways, and answers in one order: then all stores cross the same
    boundaries.
    """

    def __init__(
        self, shelf: Shelf, boundaries: Boundaries, tell: Tell, *, general: bool = False
    ) -> None:
        self._shelf = shelf
        self._general = general
        self._boundaries = boundaries
        self._witness = boundaries.witness
        self._tell = tell

    @property
    def dialect(self) -> Dialect | None:
        """See `ports.Shelf`."""
        return self._shelf.dialect

    def _cross(self, name: str, call: Callable[[], T]) -> T:
        return self._boundaries.cross(name, call)

    # Books.

    def change(
        self,
        user_id: str,
        key: str,
        now: int,
        alter: "Alter[T]",
        *,
        about: Leased | None = None,
        alone: bool = False,
        terms: Terms = NO_TERMS,
    ) -> T:
        """See `ports.Shelf`. The boundary has the name of the method that changes the book."""
        name = alter.__qualname__.partition(".<locals>")[0]
        seen: list[Snapshot] = []

        def altered(book: Book) -> T:
            answer = alter(book)
            seen.append(snapshot(book))
            return answer

        def call() -> T:
            answer = self._shelf.change(
                user_id, key, now, altered, about=about, alone=alone, terms=terms
            )
            self._witness.saw_book((user_id, key), seen[-1], now, alone=alone)
            if isinstance(answer, OneClaim):
                self._witness.reaches(now)
                self._saw("claims", answer.made)
                return answer
            first = answer[0] if isinstance(answer, tuple) else None
            if isinstance(first, Begun):
                self._began(first, now)
            return answer

        return self._cross(name, call)

    def _began(self, begun: Begun, now: int) -> None:
        one = begun.occurrence
        self._witness.began(begun, now)
        limits = Limits.of_orders(self._shelf.standing())
        self._witness.counts(begun, limits, now, slack=STILL * self._boundaries.longest_pause)
        self._tell(
            f"{self._boundaries.slots.current.name} begins attempt {one.attempts} of "
            f"{one.schedule_id} of {clock(one.nominal_at)} (fence {one.fence})"
        )

    @contextmanager
    def effects(self, held: Leased, clock: Clock, alter: "Alter[object]") -> Iterator[Effects]:
        """See `ports.Shelf`. Nobody else acts while the transaction is open."""
        seen: list[Snapshot] = []

        def altered(book: Book) -> object:
            answer = alter(book)
            seen.append(snapshot(book))
            return answer

        boundaries, is_open = self._boundaries, False
        opened = self._shelf.effects(held, clock, altered)

        def enter() -> Effects:
            nonlocal is_open
            is_open = True
            return opened.__enter__()

        def commit() -> None:
            nonlocal is_open
            is_open = False
            opened.__exit__(None, None, None)
            for one in seen[-1:]:
                self._witness.saw_book((held.user_id, held.key), one, clock())

        with boundaries.slots.keep():
            try:
                yield CrossedTransaction(boundaries.cross("effects", enter), boundaries)
                boundaries.cross("effects", commit)
            except BaseException as error:
                if is_open:
                    with suppress(Dead, DuetickError):
                        opened.__exit__(type(error), error, error.__traceback__)
                raise

    def record(self, user_id: str, key: str) -> Record | None:
        """See `ports.Shelf`."""
        return self._cross("record", lambda: self._shelf.record(user_id, key))

    def records(self, user_id: str, after: str, limit: int, *, done: bool | None = None) -> Records:
        """See `ports.Shelf`."""
        return self._cross("records", lambda: self._shelf.records(user_id, after, limit, done=done))

    def jobs(self, user_id: str, after: str, limit: int, *, ended: bool | None = None) -> JobsFound:
        """See `ports.Shelf`."""
        return self._cross("jobs", lambda: self._shelf.jobs(user_id, after, limit, ended=ended))

    def take_in(self, limit: int, take: TakeIn) -> int:
        """See `ports.Shelf`. No other application is in a story."""
        return self._shelf.take_in(limit, take)

    def leaving(self, until: int, limit: int) -> Sequence[ScheduleName]:
        """See `ports.Shelf`."""
        return self._cross("leaving", lambda: self._shelf.leaving(until, limit))

    def owner(self, external_id: str) -> Record | None:
        """See `ports.Shelf`."""
        return self._cross("owner", lambda: self._shelf.owner(external_id))

    def tally(self, now: int, dead_since: int, limit: int) -> StateCounts:
        """See `ports.Shelf`. No story has an operator who looks."""
        return self._shelf.tally(now, dead_since, limit)

    def read_alike(self, selection: Selection, now: int, until: int, place: str = "") -> AlikePage:
        """See `ports.Shelf`. No story has anybody who forecasts."""
        return self._shelf.read_alike(selection, now, until, place)

    def walk_units(self, books: int) -> int | None:
        """See `ports.Shelf`."""
        return self._shelf.walk_units(books)

    def every_book(self, place: str = "") -> Iterator[Listed]:
        """See `ports.Shelf`."""
        return iter(self._cross("every_book", lambda: list(self._shelf.every_book(place))))

    # Rows.

    def row(self, user_id: str, key: str) -> IndexRow | None:
        """See `ports.Shelf`."""
        return self._cross("row", lambda: self._shelf.row(user_id, key))

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """See `ports.Shelf`."""

        def call() -> Chunk:
            chunk = self._shelf.claim(now, limit, ahead, fair)
            if self._general:
                chunk = chunk._replace(occurrences=sorted(chunk.occurrences, key=_name))
            self._witness.reaches(now + ahead)
            self._saw("claims", chunk.occurrences)
            return chunk

        return self._cross("claim", call)

    def _saw(self, what: str, occurrences: Sequence[Occurrence]) -> None:
        for one in occurrences:
            self._witness.saw(one)
        if occurrences:
            named = ", ".join(
                f"{one.schedule_id} of {clock(one.nominal_at)}"
                + ("" if one.state == "queued" else f" ({one.state})")
                for one in occurrences
            )
            self._tell(f"{self._boundaries.slots.current.name} {what} {named}")

    def look(self, now: int | None, ahead: int, note: str) -> Glance | None:
        """See `ports.Shelf`. It is a fast way that DynamoDB does not have."""
        return self._cross(
            "look", lambda: None if self._general else self._shelf.look(now, ahead, note)
        )

    def backlog(self, until: int, limit: int) -> int:
        """See `ports.Shelf`."""
        return self._cross("backlog", lambda: self._shelf.backlog(until, limit))

    def unreadable(self, since: int, limit: int) -> Sequence[Unreadable]:
        """See `ports.Shelf`."""
        return self._cross("unreadable", lambda: self._shelf.unreadable(since, limit))

    # Bells.

    def make_bells_pending(self, names: Sequence[ScheduleName], now: int) -> None:
        """See `ports.Shelf`."""
        self._cross("make_bells_pending", lambda: self._shelf.make_bells_pending(names, now))

    def pending_bells(self, limit: int) -> Sequence[PendingBell]:
        """See `ports.Shelf`."""
        return self._cross("pending_bells", lambda: self._shelf.pending_bells(limit))

    def take_bell(self, name: ScheduleName, now: int, until: int) -> str | None:
        """See `ports.Shelf`."""
        return self._cross("take_bell", lambda: self._shelf.take_bell(name, now, until))

    def end_bell(self, name: ScheduleName, token: str) -> bool:
        """See `ports.Shelf`."""
        return self._cross("end_bell", lambda: self._shelf.end_bell(name, token))

    def free_bell(self, name: ScheduleName, until: int) -> None:
        """See `ports.Shelf`."""
        self._cross("free_bell", lambda: self._shelf.free_bell(name, until))

    # Occurrences.

    def next_due(self) -> int | None:
        """See `ports.Shelf`."""
        return self._cross("next_due", self._shelf.next_due)

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        """See `ports.Shelf`."""

        def call() -> Sequence[Occurrence]:
            taken = self._shelf.lease(now, limit, ahead, fair)
            if self._general:
                taken = sorted(taken, key=_name)
            self._saw("leases again", taken)
            return taken

        return self._cross("lease", call)

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | DuetickError | None]:
        """See `ports.Shelf`."""

        def call() -> Sequence[Begun | DuetickError | None]:
            answers: Sequence[Begun | DuetickError | None] = (
                [None for _ in leases] if self._general else self._shelf.begin(leases, now)
            )
            for one in answers:
                if isinstance(one, Begun):
                    self._began(one, now)
            return answers

        return self._cross("begin", call)

    def settle(
        self, settled: Sequence[Settled], now: int
    ) -> Sequence[Occurrence | DuetickError | None]:
        """See `ports.Shelf`."""

        def call() -> Sequence[Occurrence | DuetickError | None]:
            answers: Sequence[Occurrence | DuetickError | None] = (
                [None for _ in settled] if self._general else self._shelf.settle(settled, now)
            )
            self._saw("settles", [one for one in answers if isinstance(one, Occurrence)])
            return answers

        return self._cross("settle", call)

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        """See `ports.Shelf`. Its boundary is that of the change that it makes unnecessary."""
        renews = after.state is State.PROCESSING

        def call() -> Occurrence | None:
            answer = None if self._general else self._shelf.write_lease(before, after, event)
            self._saw("renews" if renews else "releases", [answer] if answer else [])
            return answer

        return self._cross("Ledger.renew" if renews else "Ledger.release", call)

    def find(self, query: Query) -> Sequence[Occurrence]:
        """See `ports.Shelf`."""
        return self._cross("find", lambda: self._shelf.find(query))

    def occurrence(self, identity: Identity) -> Occurrence | None:
        """See `ports.Shelf`."""
        return self._cross("occurrence", lambda: self._shelf.occurrence(identity))

    def find_by_id(self, name: str) -> Occurrence | None:
        """See `ports.Shelf`."""
        return self._cross("find_by_id", lambda: self._shelf.find_by_id(name))

    def events(self, identities: Sequence[Identity]) -> Sequence[Sequence[Event]]:
        """See `ports.Shelf`."""
        return self._cross("events", lambda: self._shelf.events(identities))

    # Keys, creations and rates of callers and users.

    def key_holder(self, key: CallerKey) -> tuple[Occurrence, int] | None:
        """See `ports.Shelf`."""
        return self._cross("key_holder", lambda: self._shelf.key_holder(key))

    def body(self, identity: Identity) -> str | None:
        """See `ports.Shelf`."""
        return self._cross("body", lambda: self._shelf.body(identity))

    def creation(self, user_id: str, name: str, now: int) -> Made | None:
        """See `ports.Shelf`."""
        return self._cross("creation", lambda: self._shelf.creation(user_id, name, now))

    def count(self, user_id: str, counted: Counted, at_most: int, now: int) -> bool:
        """See `ports.Shelf`."""
        return self._cross("count", lambda: self._shelf.count(user_id, counted, at_most, now))

    # The database.

    def now(self) -> int:
        """See `ports.Shelf`. No clock but the simulation's is read."""
        raise AssertionError("the wall clock was asked")

    def migrate(self) -> Migrated:
        """See `ports.Shelf`."""
        return self._shelf.migrate()

    def check_schema(self) -> None:
        """See `ports.Shelf`."""
        self._shelf.check_schema()

    def erase(self, user_id: str) -> int:
        """See `ports.Shelf`."""

        def call() -> int:
            count = self._shelf.erase(user_id)
            self._witness.forgets(user_id)
            return count

        return self._cross("erase", call)

    def accounts(self, since: int, until: int, place: str = "") -> Iterator[Account]:
        """See `ports.Shelf`."""
        walk = self._shelf.accounts(since, until, place)
        return iter(self._cross("accounts", lambda: [_read(one) for one in walk]))

    def account(self, user_id: str, key: str, since: int, until: int) -> Account:
        """See `ports.Shelf`. Only an account that does not add up is read again."""
        return self._shelf.account(user_id, key, since, until)

    def rules(self, digest: str) -> bytes | None:
        """See `ports.Shelf`. Only rules of another tzdata are asked for."""
        return self._shelf.rules(digest)

    def note(self, name: str) -> str | None:
        """See `ports.Shelf`."""
        return self._cross("note", lambda: self._shelf.note(name))

    def keep_note(self, name: str, body: str) -> None:
        """See `ports.Shelf`."""
        self._cross("keep_note", lambda: self._shelf.keep_note(name, body))

    def standing(self) -> Sequence[StandingOrder]:
        """See `ports.Shelf`."""
        return self._cross("standing", self._shelf.standing)

    def orders(self, kind: OrderKind, ended_after: int) -> Sequence[StandingOrder]:
        """See `ports.Shelf`."""
        return self._cross("orders", lambda: self._shelf.orders(kind, ended_after))

    def keep_order(self, order: StandingOrder) -> bool:
        """See `ports.Shelf`."""

        def keep() -> bool:
            kept = self._shelf.keep_order(order)
            if kept:
                self._witness.kept.setdefault(order.name, self._boundaries.slots.now)
            return kept

        return self._cross("keep_order", keep)

    def add_operation(self, operation: Operation) -> None:
        """See `ports.Shelf`. No story has an operator whose calls are recorded."""
        self._shelf.add_operation(operation)

    def end_operation(self, operation: Operation) -> None:
        """See `ports.Shelf`."""
        self._shelf.end_operation(operation)

    def operations(
        self, after: OperationPlace, limit: int, user_id: str | None = None
    ) -> Sequence[Operation]:
        """See `ports.Shelf`."""
        return self._shelf.operations(after, limit, user_id)

    @property
    def keeps_ms(self) -> int | None:
        """See `ports.Shelf`. A story is younger than what a store drops."""
        return self._shelf.keeps_ms

    def retire(self, retention: Retention, now: int, limit: int) -> Retired:
        """See `ports.Shelf`."""

        def call() -> Retired:
            for user in self._witness.users:
                every = self._shelf.find(Query(user, None, frozenset(), NEWEST, 100_000))
                self._witness.may_leave(every, self._fires, retention, now)
            return self._shelf.retire(retention, now, limit)

        return self._cross("retire", call)

    def _fires(self, user_id: str, key: str) -> bool:
        """Return True if the newest of the schedule stay."""
        record = self._shelf.record(user_id, key)
        return counts(record) or self._shelf.row(user_id, key) is not None

    def acquire(self, lock: NamedLock, now: int) -> bool:
        """See `ports.Shelf`."""
        return self._cross("acquire", lambda: self._shelf.acquire(lock, now))

    def extend(self, name: str, owner: str, until: int) -> bool:
        """See `ports.Shelf`."""
        return self._cross("extend", lambda: self._shelf.extend(name, owner, until))

    def unlock(self, name: str, owner: str) -> bool:
        """See `ports.Shelf`."""
        return self._cross("unlock", lambda: self._shelf.unlock(name, owner))

    def locks(self) -> Sequence[NamedLock]:
        """See `ports.Shelf`."""
        return self._shelf.locks()

    def report(self, worker: Worker) -> None:
        """See `ports.Shelf`."""
        self._cross("report", lambda: self._shelf.report(worker))

    def workers(self, since: int, limit: int) -> Sequence[Worker]:
        """See `ports.Shelf`."""
        return self._shelf.workers(since, limit)

    def forget(self, now: int, limit: int) -> int:
        """See `ports.Shelf`."""
        return self._cross("forget", lambda: self._shelf.forget(now, limit))

    def tidy(self, now: int) -> int:
        """See `ports.Shelf`."""
        return self._cross("tidy", lambda: self._shelf.tidy(now))

    def close(self) -> None:
        """See `ports.Shelf`."""
        self._shelf.close()


def _name(one: Occurrence) -> Identity:
    return one.identity


def _read(one: Account) -> Account:
    """Return the account with its entries read."""
    return one._replace(entries=list(one.entries))
