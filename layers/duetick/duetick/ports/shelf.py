"""The shelf: the core's port to a database. A store is a shelf of books, with rows beside them.

`duetick.core.store` writes each change once, over these methods. Every time is milliseconds since
the epoch, and is passed in. If its database does not answer, a shelf raises `StoreUnavailable`; if
its schema is missing, `SchemaOutdated`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar
from zlib import crc32

from duetick.domain.attempts import Begun, CallerKey, Refused, Settled
from duetick.domain.book import Book, Unreadable
from duetick.domain.creation import Made, Repeatable
from duetick.domain.failures import Event
from duetick.domain.group_pauses import NO_PAUSES, Pauses
from duetick.domain.limits import NO_LIMITS, Limits
from duetick.domain.occurrence import Identity, IndexRow, Leased, Occurrence, ScheduleName
from duetick.domain.schedule import Record
from duetick.domain.standing import OrderKind, StandingOrder
from duetick.domain.states import State

if TYPE_CHECKING:
    from duetick.domain.accounts import Account
    from duetick.domain.alike import AlikePage, Selection
    from duetick.domain.bells import PendingBell
    from duetick.domain.errors import DuetickError
    from duetick.domain.jobs import InboxRow, Job
    from duetick.domain.operations import Operation, OperationPlace
    from duetick.domain.retention import Retention, Retired
    from duetick.domain.workers import NamedLock, Worker

T = TypeVar("T")

Clock: TypeAlias = Callable[[], int]
"""A function that returns milliseconds since the epoch."""

Alter: TypeAlias = Callable[[Book], T]
"""A change of a book. It may be called again, on a newer state of the book."""

Dialect: TypeAlias = Literal["sql", "dynamodb"]
"""The kind of a `Transaction`: it takes statements by `run`, or items by `write`."""

Counted: TypeAlias = Literal["runs", "writes", "events"]
"""The acts that are done only so often in a minute: a user's runs by hand and changes of schedules,
the events of a flow's deaths that no tick tells.
"""


class Transaction(Protocol):
    """Writes of an action that are committed when its attempt is settled, or not at all."""

    @property
    def dialect(self) -> Dialect | None:
        """The dialect that the transaction takes, for an action that knows both."""

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        """Run a statement in the database, with parameters as `:name`. Raises EffectsRefused.

        If the store has no SQL, ConfigurationError is raised.
        """

    def write(self, item: Mapping[str, Any], /) -> None:
        """Write to DynamoDB a Put, Update, Delete or ConditionCheck as TransactWriteItems takes it.

        If the write cannot be done, the end of the block raises EffectsRefused. If the store is not
        DynamoDB, ConfigurationError is raised.
        """


class Effects(Transaction, Protocol):
    """The transaction as Duetick itself uses it: a change of another book is one of its writes."""

    def change(
        self, user_id: str, key: str, now: int, alter: "Alter[T]", terms: "Terms | None" = None
    ) -> T:
        """Change a book as `Shelf.change` does, if the transaction commits.

        If another writer makes a condition fail by the end of the transaction, nothing of it is
        written.
        """


TakeIn: TypeAlias = "Callable[[InboxRow, Effects], object]"
"""A function that makes the job of a row of the inbox."""


class KeyHeld(Exception):
    """A caller's key that another run has. It never leaves `duetick.core.store`."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.verdict)
        self.refused = refused


class Terms(NamedTuple):
    """The conditions of a change beyond its book. The write of the change decides them.

    Before the change, a caller's `key` is read: if another run has it, KeyHeld is raised. After the
    change, `at_most` is checked first. It is the most schedules of a user that may count
    (`domain.ending.counts`), or the most jobs that may be pending. `ending` of the pending jobs end
    with the transaction, and do not count. A change that makes one more count raises QuotaReached.

    If the change made the record, the `creation` is kept until its end: another one of its name
    raises CreationStands. If the change made an occurrence, the occurrence takes the key. `body` is
    kept for it: the JSON that the caller sent.
    """

    at_most: int | None = None
    creation: Repeatable | None = None
    key: CallerKey | None = None
    body: str | None = None
    ending: int = 0


NO_TERMS = Terms()


class Part(NamedTuple):
    """One of several parts of all rows, from 0 on. Claims of different parts do not meet."""

    number: int
    of: int

    def has(self, user_id: str, key: str) -> bool:
        """Return True if a row is in the part, by its name."""
        return crc32(f"{user_id}/{key}".encode(errors="surrogatepass")) % self.of == self.number


class Fair(NamedTuple):
    """The fairness of a claim: the users whom it leaves out, its share of each other user, the
    pauses of groups, the limits, and its part of the rows. A store of one writer takes all rows for
    the first part.

    The share applies if more may be due than one chunk holds; otherwise the claim takes everything.
    A row of which a claim leases nothing is in no share: it only advances.

    If bells ring for the rows, a claim leaves to them the rows that are due for less than `late`
    milliseconds. A tick that goes on leaves the occurrences that wait for less to the next tick.
    """

    leave_out: frozenset[str] = frozenset()
    share: int | None = None
    pauses: Pauses = NO_PAUSES
    limits: Limits = NO_LIMITS
    late: int = 0
    part: Part | None = None

    @property
    def is_plain(self) -> bool:
        """True if each row that is claimed may give a lease."""
        return not (self.pauses or self.limits)

    def leases_nothing(self, user_id: str, flow: str, at: int) -> bool:
        """Return True if a claim leases nothing of a row that is due for that time: a pause leaves
        it out, or a limit lets it wait.
        """
        waits = self.limits.concerns(user_id, flow)
        return waits or self.pauses.leaves_out(user_id, flow, at)


EVERYBODY = Fair()


class Glance(NamedTuple):
    """The state of a database at one instant: all that a tick asks before it claims.

    `waits` says that an occurrence waits that is due, or that a lease is over; `due`, that a row is
    due; `ordered`, that a standing order stands; `brought`, that the inbox has a row. `note` is the
    body of the note that was asked for.
    """

    now: int
    waits: bool
    due: bool
    ordered: bool
    brought: bool
    note: str | None

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to do."""
        return not (self.waits or self.due or self.ordered or self.brought)


class Chunk(NamedTuple):
    """The result of a claim: the number of due rows, the leased occurrences, the poisoned ones."""

    due: int
    occurrences: Sequence[Occurrence] = ()
    poisoned: Sequence[Occurrence] = ()


class Migrated(NamedTuple):
    """The result of a migration: the rows taken over from an index that was there before.

    `unmarked` says that there may be schedules that are done and not marked so: no code before this
    schema did it.
    """

    taken_over: int = 0
    unmarked: bool = False


class Query(NamedTuple):
    """A query for occurrences in some states, or in any: the newest first, after one identity.

    Without a user, the `states` are some of `domain.paging.FINDABLE` that stand together there.
    """

    user_id: str | None
    key: str | None
    states: frozenset[State]
    after: Identity
    limit: int


class Records(NamedTuple):
    """Some records of one user, in the order of their keys. `after` is the key at which the next
    ones begin; None if there are no more.
    """

    found: Sequence[Record]
    after: str | None = None


class JobsFound(NamedTuple):
    """Some jobs of one user, in the order of their keys. `after` is as in `Records`."""

    found: "Sequence[Job]"
    after: str | None = None


class DueJob(NamedTuple):
    """A job that waits for a tick: its time has come."""

    user_id: str
    flow: str
    action: str
    due_at: int


class StateCounts(NamedTuple):
    """The numbers of occurrences by state, of those dead since an instant, and of unreadable rows.

    Each is counted up to a limit: those that are leased (queued, running) together, and those that
    wait (scheduled, retrying) together. `partly` says that some of these were not looked at.
    `due_jobs` are the jobs among the first of those that are due and wait.
    """

    queued: int = 0
    running: int = 0
    scheduled: int = 0
    retrying: int = 0
    dead: int = 0
    unreadable: int = 0
    partly: bool = False
    due_jobs: tuple[DueJob, ...] = ()


class Listed(NamedTuple):
    """A book as a walk over all books finds it. `zone` is the digest of the rules that its newest
    definition names. A walk goes on behind its `place`.
    """

    user_id: str
    key: str
    record: Record | None
    row: IndexRow | None
    unreadable: bool
    mark: int | None
    zone: str | None
    place: str = ""


class Shelf(Protocol):
    """One database. Opening it never runs DDL."""

    @property
    def dialect(self) -> Dialect | None:
        """The kind of transaction that `effects` opens; None if an action can write nothing."""

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
        """Load a book, alter it and write what it notes, as if nobody else wrote meanwhile.

        If the book is unaltered, nothing is written. `about` is the occurrence that the change
        concerns, if any: a hint to load it with the book. With `alone`, the change reads no other
        occurrence.
        """

    def effects(
        self, held: Leased, clock: Clock, alter: "Alter[object]"
    ) -> AbstractContextManager[Effects]:
        """Open a transaction for an action's effects.

        At the end of the block, the book of `held` is altered and written with the effects, all or
        nothing. If the block raises, nothing is written.
        """

    def record(self, user_id: str, key: str) -> Record | None:
        """Return the record as callers see it (`Book.view`), or None."""

    def records(self, user_id: str, after: str, limit: int, *, done: bool | None = None) -> Records:
        """Return the records of one user's schedules after a key: all, those that are done, or the
        others.

        A shelf that has to read all of them stops after a number of reads, perhaps below `limit`.
        """

    def jobs(self, user_id: str, after: str, limit: int, *, ended: bool | None = None) -> JobsFound:
        """Return one user's jobs after a key: all, those that have ended, or those that are
        pending. The same holds as for `records`.
        """

    def leaving(self, until: int, limit: int) -> Sequence[ScheduleName]:
        """Return the schedules and jobs at which a purge looks by `until` (`Record.purge_at`), the
        earliest first.
        """

    def owner(self, external_id: str) -> Record | None:
        """Return the record that owns an outside id, or None.

        A change that would give the id a second owner raises InvalidSchedule.
        """

    def every_book(self, place: str = "") -> Iterator[Listed]:
        """Iterate over the books of schedules and rows behind a place, a page of the database at a
        time. Jobs are not among them.

        A write of another process may be missing if its page was read before.
        """

    # Rows.

    def row(self, user_id: str, key: str) -> IndexRow | None:
        """Return the row; None if it is absent or unreadable."""

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """Advance at most `limit` rows that are due by now + ahead - late, oldest first; record and
        lease fires. The pauses of groups leave times out. An occurrence that a limit may cover is
        recorded, and waits.

        `domain.claims` decides what fires. All writes of a row are made at once, or none. If
        another claim has locked a row, this claim does not wait for it.
        """

    def backlog(self, until: int, limit: int) -> int:
        """Count the rows that are due by `until`, up to `limit`."""

    def unreadable(self, since: int, limit: int) -> Sequence[Unreadable]:
        """Return the rows that left the index from `since` on, the earliest first."""

    def look(self, now: int | None, ahead: int, note: str) -> Glance | None:
        """Look, in one trip, at all that a tick asks first: as of `now`, or of the database's
        clock. None means: ask one by one.

        Raises SchemaOutdated if this code cannot use the schema.
        """

    # Bells.

    def make_bells_pending(self, names: Sequence[ScheduleName], now: int) -> None:
        """Make bells pending, each with a new token. One that is pending stays so since its first
        write, and stays with the process that has it.

        The `bell` of a book does the same, as a part of the change's own write.
        """

    def pending_bells(self, limit: int) -> "Sequence[PendingBell]":
        """Return bells that are pending, the earliest first: all, or some of them."""

    def take_bell(self, name: ScheduleName, now: int, until: int) -> str | None:
        """Take a pending bell up to an instant, in one conditional write. Return its token;
        None if it is not pending, or another process has it.
        """

    def end_bell(self, name: ScheduleName, token: str) -> bool:
        """Delete a pending bell, now in step, in one conditional write. Return False if it
        has another token by now.
        """

    def free_bell(self, name: ScheduleName, until: int) -> None:
        """Let a pending bell be taken again that is taken up to that instant."""

    # Occurrences.

    def next_due(self) -> int | None:
        """Return the instant at which the next lease ends, or the next occurrence that waits is
        due. None if nothing is leased, and nothing waits.

        A shelf may return an earlier instant, as long as others follow up to the right one.
        """

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        """Lease occurrences that wait, as `Book.lease` does.

        Leases that ended by now - late come first. Then come scheduled and retrying occurrences
        that are due by now + ahead - late, by priority, due time and age. A retry is passed over if
        its place is taken, or if a pause of a group holds it now. No more are leased than the
        limits have places. The answer includes the occurrences that became dead; the same write
        records their failure hooks.
        """

    def begin(self, leases: Sequence[Leased], now: int) -> "Sequence[Begun | DuetickError | None]":
        """Begin, in one trip, the occurrences that nothing prevents. None means: use the general
        way. If the database refuses one, and has begun others, the error stands for that one.

        A shelf without a fast way answers None for each.
        """

    def settle(
        self, settled: Sequence[Settled], now: int
    ) -> "Sequence[Occurrence | DuetickError | None]":
        """Write, in one trip, the ends of attempts that are as their begin left them. None of them
        is a death that has a failure hook.

        None, or an error, means the same as of `begin`.
        """

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        """Renew a lease, or give it back, in one trip, if the occurrence is as its holder has it.

        None means: use the general way.
        """

    def find(self, query: Query) -> Sequence[Occurrence]:
        """Return a page of occurrences."""

    def occurrence(self, identity: Identity) -> Occurrence | None:
        """Return the occurrence of that name, or None."""

    def find_by_id(self, name: str) -> Occurrence | None:
        """Return the occurrence of an id.

        A shelf without an index of ids looks at a bounded number of those that are under way or
        dead. It returns None for any other.
        """

    def events(self, identities: Sequence[Identity]) -> Sequence[Sequence[Event]]:
        """Return the transitions beyond claim, begin and settle of each occurrence, oldest first.

        One trip reads the events of a page.
        """

    def tally(self, now: int, dead_since: int, limit: int) -> StateCounts:
        """Count the occurrences under way, those dead whose nominal time is later, and the rows
        that cannot be read; find the jobs that are due and wait. Nothing is read beyond the limit.
        """

    # Keys, creations and rates of callers and users.

    def key_holder(self, key: CallerKey) -> tuple[Occurrence, int] | None:
        """Return the occurrence that took a caller's key, and the end of the key; or None."""

    def body(self, identity: Identity) -> str | None:
        """Return the body that the caller of an occurrence sent, as it was kept; None if nothing
        was, or the occurrence is gone. Discarded with the occurrence's texts, and erased with its
        user.
        """

    def creation(self, user_id: str, name: str, now: int) -> Made | None:
        """Return the result of the creation of that name, or None after its end."""

    def count(self, user_id: str, counted: Counted, at_most: int, now: int) -> bool:
        """Count one in one write. Return False if the user has had `at_most` in this minute."""

    # Accounts.

    def accounts(self, since: int, until: int, place: str = "") -> "Iterator[Account]":
        """Yield the account of each schedule and row for the times in (since, until], from a place
        on. Schedules that were deleted after `since` are among them.

        Each entry of origin `schedule` that has one of these times is in its account, ascending.
        Rows without a record have accounts without definitions and entries.
        """

    def account(self, user_id: str, key: str, since: int, until: int) -> "Account":
        """Return the account of one schedule, as of now."""

    def rules(self, digest: str) -> bytes | None:
        """Return the rules of a zone by their digest; a definition that names them keeps them."""

    def note(self, name: str) -> str | None:
        """Return the note of that name, or None."""

    def keep_note(self, name: str, body: str) -> None:
        """Keep a note, in place of the note of that name before."""

    # Forecasts.

    def read_alike(
        self, selection: "Selection", now: int, until: int, place: str = ""
    ) -> "AlikePage":
        """Return a part of the selected rows, grouped where they fire alike, and of their
        occurrences that wait and are due before `until`.

        The part begins at a place, and is as large as one read may be. Each row is in one part, as
        it is at that read.
        """

    def walk_units(self, books: int) -> int | None:
        """Return the read units of a walk over a number of books; None if nobody pays for reads."""

    # Standing orders.

    def standing(self) -> Sequence[StandingOrder]:
        """Return the orders that stand, of every kind, by kind and name, in one trip."""

    def orders(self, kind: OrderKind, ended_after: int) -> Sequence[StandingOrder]:
        """Return the orders of a kind that stand, or that ended after an instant, by name."""

    def keep_order(self, order: StandingOrder) -> bool:
        """Write an order if it stands with the revision before; if it has 1, if there is none.

        Otherwise nothing is written, and the answer is False.
        """

    # The inbox.

    def take_in(self, limit: int, take: "TakeIn") -> int:
        """Take rows out of the inbox, the oldest first. A row leaves in one write with the job that
        `take` makes of it, or stays. Return the number of rows. A store that other applications
        cannot write to has no inbox: 0.
        """

    # Operations.

    def add_operation(self, operation: "Operation") -> None:
        """Add an operation to the record, before it is done."""

    def end_operation(self, operation: "Operation") -> None:
        """Set the outcome of an operation that has none. One that was erased stays erased."""

    def operations(
        self, after: "OperationPlace", limit: int, user_id: str | None = None
    ) -> "Sequence[Operation]":
        """Return operations after a place, the newest first: all of them, or those about a user.

        One that was added a moment ago may be missing.
        """

    @property
    def keeps_ms(self) -> int | None:
        """The time after which the database itself deletes an ended occurrence; None if it does
        not.
        """

    # Locks and workers.

    def acquire(self, lock: "NamedLock", now: int) -> bool:
        """Take a lock in one conditional write, if it is absent, over, or its owner's already."""

    def extend(self, name: str, owner: str, until: int) -> bool:
        """Set the end of a lock in one conditional write. Return False unless it is the owner's."""

    def unlock(self, name: str, owner: str) -> bool:
        """Delete a lock in one conditional write. Return False unless it is the owner's."""

    def locks(self) -> "Sequence[NamedLock]":
        """Return the locks by name, also those whose time is over."""

    def report(self, worker: "Worker") -> None:
        """Keep the report of a worker, in place of the one before, in one write."""

    def workers(self, since: int, limit: int) -> "Sequence[Worker]":
        """Return the newest reports of workers that started from `since` on, the newest first."""

    # The database.

    def now(self) -> int:
        """Return the time of its clock: the database's on SQL, the host's elsewhere."""

    def migrate(self) -> Migrated:
        """Create or update the schema. Two migrations are safe, one after the other or at once."""

    def check_schema(self) -> None:
        """Raise SchemaOutdated, naming the command that repairs it, unless this code can use the
        schema.
        """

    def erase(self, user_id: str) -> int:
        """Delete all data of a user, and the operations and standing orders about it. Return the
        number of the schedules.
        """

    def forget(self, now: int, limit: int) -> int:
        """Delete everything that is over, at most `limit` of each kind. Return the number of
        deletions.

        Over are: marks without a record and a row, `KEPT_GONE_MS` after their time; definitions as
        long after another one took their place, or after they were the last one; creations after
        their end; callers' keys a day after theirs, unless their occurrence has not ended; standing
        orders, `KEPT_GONE_MS` after their end; operations, as long after their time; the counts of
        past minutes; reports of workers after `REPORTS_KEPT_MS`. A database that deletes them by
        itself returns 0.
        """

    def retire(self, retention: "Retention", now: int, limit: int) -> "Retired":
        """Look at up to `limit` occurrences that have ended and whose shortest time is over.

        `Retention.judge` lets an occurrence leave, with its events, or names the time until which
        it stays and is not looked at again. With the occurrence of a job its record leaves, unless
        its failure hook is under way.

        A `HELD` occurrence leaves when a newer one of its schedule is looked at and it is no longer
        among the newest. If its schedule is deleted, it is looked at again. A database that deletes
        them by itself returns none, and asks the retention as they end.
        """

    def tidy(self, now: int) -> int:
        """Repair faults that no book shows, such as rows in an older layout. Return their
        number.
        """

    def close(self) -> None:
        """Close the connections. A closed shelf may be used again; it connects anew."""
