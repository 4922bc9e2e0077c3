"""A shelf on a SQL database, without the claim: each backend has its own."""

import json
import logging
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final, TypeVar

from duetick.core.ids import new_id
from duetick.domain.attempts import Begun, CallerKey, Settled
from duetick.domain.book import Book, Unreadable, lease_again
from duetick.domain.claims import pick_shares
from duetick.domain.creation import Made
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.failure_hooks import hooks_of
from duetick.domain.failures import Event
from duetick.domain.identity import is_failure_hook, is_job
from duetick.domain.limits import ActionOf
from duetick.domain.occurrence import (
    LATEST,
    Identity,
    IndexRow,
    Leased,
    Occurrence,
    ScheduleName,
)
from duetick.domain.overlap import PLACE_KEPT_MS, pick_one_of_each
from duetick.domain.paging import read_name
from duetick.domain.policies import DAY, MINUTE_MS
from duetick.domain.schedule import Record
from duetick.domain.standing import OrderKind, StandingOrder
from duetick.domain.states import LEASED, WAITING, State
from duetick.domain.transitions import has_ended
from duetick.ports import (
    NO_TERMS,
    Alter,
    Chunk,
    Clock,
    Counted,
    Dialect,
    DueJob,
    Effects,
    Fair,
    Glance,
    JobsFound,
    Listed,
    Migrated,
    Query,
    Records,
    StateCounts,
    TakeIn,
    Terms,
)
from duetick.stores.sql.claim import ClaimChunk, leave_out_param
from duetick.stores.sql.pages import keep_zones, load, load_alone, zones_of
from duetick.stores.sql.queries import Migration
from duetick.stores.sql.rows import (
    NEW_LEASE,
    event_params,
    identity_params,
    job_end_params,
    lease_values,
    occurrence_params,
    read_event,
    read_index,
    read_job,
    read_listed,
    read_made,
    read_occurrence,
    read_record,
    read_unreadable,
    read_worker,
    worker_params,
)
from duetick.stores.sql.schema import check_schema, erase, migrate
from duetick.stores.sql.session import (
    Database,
    Params,
    QueryCall,
    Row,
    Session,
    Undone,
    number,
    retried,
)
from duetick.stores.sql.terms import check_key, check_terms, key_holder, take_key
from duetick.stores.sql.transaction import SqlTransaction

if TYPE_CHECKING:
    from duetick.domain.accounts import Account
    from duetick.domain.alike import AlikePage, Selection
    from duetick.domain.bells import PendingBell
    from duetick.domain.operations import Operation, OperationPlace
    from duetick.domain.retention import Retention, Retired
    from duetick.domain.workers import NamedLock, Worker

T = TypeVar("T")

LEASE_TRIES: Final = 4
LISTS: Final = {None: "schedule_list", True: "schedule_list_done", False: "schedule_list_others"}
FORGETS: Final = (
    "forget_marks",
    "forget_definitions",
    "forget_creations",
    "forget_caller_keys",
    "forget_orders",
    "forget_operations",
    "forget_rates",
    "forget_workers",
)
REPORTS_KEPT_MS: Final = 8 * DAY * 1_000
LISTED_AT_ONCE: Final = 1_000
BEFORE_ALL: Final = -(2**63)
MOST_STUCK: Final = 50
"""The most rows of the inbox that may fail before a tick gives it up: the database may be away."""

logger = logging.getLogger("duetick.inbox")


class SqlShelf:
    """`ports.Shelf` on any SQL database."""

    dialect: Dialect = "sql"

    def __init__(self, database: Database, claim: ClaimChunk, steps: Sequence[Migration]) -> None:
        self._database = database
        self._claim = claim
        self._steps = steps
        self._zones: set[str] = set()

    # Books.

    @retried
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
        """See `ports.Shelf`."""
        with self._database.transaction() as session:
            if terms.key:
                check_key(session, terms.key, now)
            if terms.at_most is not None:
                session.rows("user_lock", {"user_id": user_id})
            if about and alone:
                loaded = load_alone(session, about)
            else:
                loaded = load(session, (user_id, key), about)
            answer = alter(loaded.book)
            check_terms(session, loaded, terms)
            calls = loaded.writes()
            if terms.key and loaded.book.made:
                calls.append(take_key(terms.key, loaded.book.made[0], now))
            if terms.body is not None and loaded.book.made:
                named = identity_params(loaded.book.made[0].identity)
                calls.append(("body_put", {**named, "body": terms.body}))
            zones = self._new_zones(loaded.book)
            if calls:
                session.last([*keep_zones(zones), *calls])()
        self._zones.update(zones)
        return answer

    def _new_zones(self, book: Book) -> dict[str, str | None]:
        """Return the zones of new definitions by digest, without those that are known to be
        kept.
        """
        found = zones_of(book).items()
        return {digest: zone for digest, zone in found if digest not in self._zones}

    @contextmanager
    def effects(self, held: Leased, clock: Clock, alter: Alter[object]) -> Iterator[Effects]:
        """See `ports.Shelf`."""
        del clock
        with self._database.transaction() as session:
            yield SqlTransaction(session)
            loaded = load(session, (held.user_id, held.key), held)
            alter(loaded.book)
            zones = self._new_zones(loaded.book)
            session.last([*keep_zones(zones), *loaded.writes()])()
        self._zones.update(zones)

    @retried
    def record(self, user_id: str, key: str) -> Record | None:
        """See `ports.Shelf`."""
        return self._record("schedule_get", {"user_id": user_id, "key": key})

    @retried
    def records(self, user_id: str, after: str, limit: int, *, done: bool | None = None) -> Records:
        """See `ports.Shelf`."""
        params: Params = {"user_id": user_id, "after": after, "limit": limit}
        found = [read_record(row) for row in self._rows(LISTS[done], params)]
        return Records(found, found[-1].key if len(found) == limit else None)

    @retried
    def jobs(self, user_id: str, after: str, limit: int, *, ended: bool | None = None) -> JobsFound:
        """See `ports.Shelf`."""
        params: Params = {"user_id": user_id, "after": after, "limit": limit}
        flag = None if ended is None else int(ended)
        rows = self._rows("job_list", {**params, "ended": flag})
        found = [read_job(row) for row in rows]
        return JobsFound(found, found[-1].record.key if len(found) == limit else None)

    @retried
    def leaving(self, until: int, limit: int) -> Sequence[ScheduleName]:
        """See `ports.Shelf`."""
        rows = self._rows("schedules_leaving", {"until": until, "limit": limit})
        return [(user_id, key) for user_id, key in rows]

    @retried
    def owner(self, external_id: str) -> Record | None:
        """See `ports.Shelf`."""
        return self._record("schedule_by_external", {"external_id": external_id})

    def _record(self, name: str, params: Params) -> Record | None:
        rows = self._rows(name, params)
        return read_record(rows[0]) if rows else None

    def every_book(self, place: str = "") -> Iterator[Listed]:
        """See `ports.Shelf`."""
        after = read_name(place)
        while page := self._books(*after):
            yield from page
            after = (page[-1].user_id, page[-1].key)

    @retried
    def _books(self, user_id: str, key: str) -> Sequence[Listed]:
        params: Params = {"after_user": user_id, "after_key": key, "limit": LISTED_AT_ONCE}
        return [read_listed(row) for row in self._rows("books", params)]

    # Rows.

    @retried
    def row(self, user_id: str, key: str) -> IndexRow | None:
        """See `ports.Shelf`."""
        rows = self._rows("index_get", {"user_id": user_id, "key": key})
        return read_index(rows[0]) if rows else None

    @retried
    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """See `ports.Shelf`."""
        with self._database.claiming() as session:
            return self._claim(session, now, limit, ahead, fair)

    @retried
    def backlog(self, until: int, limit: int) -> int:
        """See `ports.Shelf`."""
        return number(self._rows("backlog", {"until": until, "limit": limit}))

    @retried
    def unreadable(self, since: int, limit: int) -> Sequence[Unreadable]:
        """See `ports.Shelf`."""
        rows = self._rows("unreadable_list", {"since": since, "limit": limit})
        return [read_unreadable(row) for row in rows]

    @retried
    def look(self, now: int | None, ahead: int, note: str) -> Glance | None:
        """See `ports.Shelf`."""
        return read_glance(self._look(self.now() if now is None else now, ahead, note))

    def _look(self, now: int | None, ahead: int, note: str) -> Row:
        with self._database.looking() as session:
            ((row,),) = session.last([("look", {"now": now, "ahead": ahead, "note": note})])()
        return row

    # Bells.

    @retried
    def make_bells_pending(self, names: Sequence[ScheduleName], now: int) -> None:
        """See `ports.Shelf`."""
        rows: list[Params] = [{**_name_params(one), "token": new_id(), "at": now} for one in names]
        with self._database.transaction() as session:
            session.each("bell_make_pending", rows)

    def pending_bells(self, limit: int) -> "Sequence[PendingBell]":
        """See `ports.Shelf`."""
        from duetick.domain.bells import PendingBell

        return [PendingBell(*row) for row in self._query("bells_pending", {"limit": limit})]

    def take_bell(self, name: ScheduleName, now: int, until: int) -> str | None:
        """See `ports.Shelf`."""
        rows = self._execute("bell_take", {**_name_params(name), "now": now, "until": until})
        return str(rows[0][0]) if rows else None

    def end_bell(self, name: ScheduleName, token: str) -> bool:
        """See `ports.Shelf`."""
        return self._write_one("bell_end", {**_name_params(name), "token": token})

    def free_bell(self, name: ScheduleName, until: int) -> None:
        """See `ports.Shelf`."""
        self._execute("bell_free", {**_name_params(name), "until": until})

    # Occurrences.

    def next_due(self) -> int | None:
        """See `ports.Shelf`."""
        ((at,),) = self._query("next_due", {})
        return None if at is None else int(at)

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        """See `ports.Shelf`. If a begin has taken the place of a retry, try fewer at once."""
        until = now + ahead - fair.late
        if not self._is_waiting(now - fair.late, until):
            return ()
        for tried in range(LEASE_TRIES):
            with suppress(Undone) if tried + 1 < LEASE_TRIES else nullcontext():
                return self._lease(now, max(1, limit >> (3 * tried)), until, fair)
        return ()

    @retried
    def _is_waiting(self, now: int, until: int) -> bool:
        """Ask first, in one round trip: in most ticks nothing waits."""
        with self._database.looking() as session:
            (rows,) = session.last([("anything_waits", {"now": now, "until": until})])()
        return bool(number(rows))

    def _lease(self, now: int, limit: int, until: int, fair: Fair) -> Sequence[Occurrence]:
        with self._database.claiming() as session:
            params: Params = {
                "now": now - fair.late,
                "until": until,
                "leave_out": leave_out_param(fair),
                **_full_scopes(fair, now),
            }
            over = _select(session, *_over_call({**params, "limit": limit}, fair))
            room = limit - len(over)
            due = _select(
                session, *_unheld_call("occurrences_due", {**params, "limit": room}, fair, now)
            )
            ready = [*over, *pick_one_of_each(due)]
            if fair.share is not None and len(due) == room:
                positions = pick_shares([one.user_id for one in ready], fair.share)
                ready = [ready[n] for n in positions]
            ready = [*fair.limits.pick(ready, _actions(session, ready, fair), now)]
            leased = [lease_again(one, now) for one in ready]
            session.every(
                "occurrence_lease", NEW_LEASE, [lease_values(after) for after, _ in leased]
            )
            session.each("event_put", _traces(ready, leased))
            ended = [after for after, _ in leased if is_job(after.origin) and has_ended(after)]
            session.each("job_end", [job_end_params(one) for one in ended] if ended else [])
            hooks = hooks_of((after for after, _ in leased), new_id)
            session.each("occurrence_put", [occurrence_params(one) for one in hooks])
            if len(due) < room:
                reserved = {**_reservation(now, until), **_full_scopes(fair, now)}
                session.rows(*_unheld_call("retries_reserve", reserved, fair, now))
        return [after for after, _ in leased]

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | None]:
        """See `ports.Shelf`."""
        del now
        return [None for _ in leases]

    def settle(self, settled: Sequence[Settled], now: int) -> Sequence[Occurrence | None]:
        """See `ports.Shelf`."""
        del now
        return [None for _ in settled]

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        """See `ports.Shelf`."""
        del before, after, event
        return None

    @retried
    def find(self, query: Query) -> Sequence[Occurrence]:
        """See `ports.Shelf`."""
        after_user, after_key, before, after_origin = query.after
        params: Params = {
            "user_id": query.user_id,
            "key": query.key,
            "states": f",{','.join(sorted(query.states))}," if query.states else "",
            "limit": query.limit,
            "before": before,
            "after_user": after_user,
            "after_key": after_key,
            "after_origin": after_origin,
        }
        return [read_occurrence(row) for row in self._rows(_page_of(query), params)]

    @retried
    def tally(self, now: int, dead_since: int, limit: int) -> StateCounts:
        """See `ports.Shelf`."""
        rows = self._rows("tally", {"dead_since": dead_since, "limit": limit})
        found = {str(name): int(count) for name, count in rows}
        due = self._rows("jobs_due", {"now": now, "limit": limit})
        return StateCounts(
            found.get("queued", 0),
            found.get("processing", 0),
            found.get("scheduled", 0),
            found.get("retrying", 0),
            found["dead"],
            found["unreadable"],
            due_jobs=tuple(DueJob(*row) for row in due),
        )

    @retried
    def occurrence(self, identity: Identity) -> Occurrence | None:
        """See `ports.Shelf`."""
        rows = self._rows("occurrence_get", identity_params(identity))
        return read_occurrence(rows[0]) if rows else None

    @retried
    def find_by_id(self, name: str) -> Occurrence | None:
        """See `ports.Shelf`."""
        rows = self._rows("occurrence_named", {"id": name})
        return read_occurrence(rows[0]) if rows else None

    @retried
    def events(self, identities: Sequence[Identity]) -> Sequence[Sequence[Event]]:
        """See `ports.Shelf`."""
        calls = [("events_of", identity_params(one)) for one in identities]
        if not calls:
            return ()
        with self._database.reading() as session:
            answers = session.last(calls)()
        return [[read_event(row) for row in rows] for rows in answers]

    # Callers' keys, creations and rates.

    @retried
    def key_holder(self, key: CallerKey) -> tuple[Occurrence, int] | None:
        """See `ports.Shelf`."""
        with self._database.reading() as session:
            return key_holder(session, key)

    def body(self, identity: Identity) -> str | None:
        """See `ports.Shelf`."""
        rows = self._query("body_get", identity_params(identity))
        return rows[0][0] if rows else None

    @retried
    def creation(self, user_id: str, name: str, now: int) -> Made | None:
        """See `ports.Shelf`."""
        rows = self._rows("creation_get", {"user_id": user_id, "name": name, "now": now})
        return read_made(rows[0]) if rows else None

    @retried
    def count(self, user_id: str, counted: Counted, at_most: int, now: int) -> bool:
        """See `ports.Shelf`."""
        params: Params = {
            "user_id": user_id,
            "counted": counted,
            "minute": now // MINUTE_MS,
            "at_most": at_most,
        }
        with self._database.transaction() as session:
            return session.each("rate_count", [params]) == [1]

    # Forecasts. Their module is loaded when it is needed: a tick forecasts nothing.

    @retried
    def read_alike(
        self, selection: "Selection", now: int, until: int, place: str = ""
    ) -> "AlikePage":
        """See `ports.Shelf`."""
        from duetick.stores.sql.alike import read_part

        with self._database.reading() as session:
            return read_part(session, selection, now, until, place)

    def walk_units(self, books: int) -> int | None:
        """See `ports.Shelf`: nobody pays for a read."""
        del books
        return None

    # Standing orders.

    def standing(self) -> Sequence[StandingOrder]:
        """See `ports.Shelf`."""
        return [StandingOrder(*row) for row in self._query("orders_standing", {})]

    def orders(self, kind: OrderKind, ended_after: int) -> Sequence[StandingOrder]:
        """See `ports.Shelf`."""
        rows = self._query("orders_of_kind", {"kind": kind, "ended_after": ended_after})
        return [StandingOrder(*row) for row in rows]

    @retried
    def keep_order(self, order: StandingOrder) -> bool:
        """See `ports.Shelf`."""
        name = "order_put" if order.rev == 1 else "order_change"
        with self._database.transaction() as session:
            return session.each(name, [order._asdict()]) == [1]

    # Accounts.

    @property
    def keeps_ms(self) -> int | None:
        """See `ports.Shelf`: a purge deletes, the database does not."""
        return None

    # Locks and workers.

    def acquire(self, lock: "NamedLock", now: int) -> bool:
        """See `ports.Shelf`."""
        return self._write_one("lock_acquire", {**lock._asdict(), "now": now})

    def extend(self, name: str, owner: str, until: int) -> bool:
        """See `ports.Shelf`."""
        return self._write_one("lock_extend", {"name": name, "owner": owner, "until": until})

    def unlock(self, name: str, owner: str) -> bool:
        """See `ports.Shelf`."""
        return self._write_one("lock_remove", {"name": name, "owner": owner})

    @retried
    def _write_one(self, name: str, params: Params) -> bool:
        with self._database.transaction() as session:
            return session.each(name, [params]) == [1]

    def locks(self) -> "Sequence[NamedLock]":
        """See `ports.Shelf`."""
        from duetick.domain.workers import NamedLock

        return [NamedLock(*row) for row in self._query("locks_list", {})]

    def report(self, worker: "Worker") -> None:
        """See `ports.Shelf`."""
        self._report(worker_params(worker))

    @retried
    def _report(self, params: Params) -> None:
        with self._database.volatile() as session:
            session.last([("worker_put", params)])()

    def workers(self, since: int, limit: int) -> "Sequence[Worker]":
        """See `ports.Shelf`."""
        rows = self._query("workers_list", {"since": since, "limit": limit})
        return [read_worker(row) for row in rows]

    def accounts(self, since: int, until: int, place: str = "") -> "Iterator[Account]":
        """See `ports.Shelf`. Its module is loaded when it is needed: a tick verifies nothing."""
        from duetick.stores.sql.accounts import accounts

        return accounts(self._query, since, until, place)

    def account(self, user_id: str, key: str, since: int, until: int) -> "Account":
        """See `ports.Shelf`."""
        from duetick.stores.sql.accounts import account

        return account(self._query, (user_id, key), since, until)

    def rules(self, digest: str) -> bytes | None:
        """See `ports.Shelf`."""
        rows = self._query("zone_get", {"digest": digest})
        return b64decode(rows[0][0]) if rows else None

    def note(self, name: str) -> str | None:
        """See `ports.Shelf`."""
        rows = self._query("note_get", {"name": name})
        return rows[0][0] if rows else None

    def keep_note(self, name: str, body: str) -> None:
        """See `ports.Shelf`."""
        self._execute("note_put", {"name": name, "body": body})

    @retried
    def _query(self, name: str, params: Params) -> Sequence[Row]:
        return self._rows(name, params)

    @retried
    def _execute(self, name: str, params: Params) -> Sequence[Row]:
        """Run one statement that writes, in one round trip. Return its rows."""
        with self._database.transaction() as session:
            (rows,) = session.last([(name, params)])()
        return rows

    # The inbox.

    def take_in(self, limit: int, take: TakeIn) -> int:
        """See `ports.Shelf`. Each row leaves in a transaction of its own. A row that fails stays,
        and holds up no other.
        """
        if not self._query("inbox_next", {"after": BEFORE_ALL}):  # as most ticks find it
            return 0
        taken, stuck, after = 0, 0, BEFORE_ALL
        while taken + stuck < limit:
            found: list[int] = []
            try:
                if not self._take_one(after, found.append, take):
                    break
                taken += 1
            except Exception:
                stuck += 1
                if not found or stuck > MOST_STUCK:
                    raise
                details = {"action": "inbox_failed", "row": found[-1]}
                logger.exception("a row of the inbox stays", extra=details)
            after = found[-1]
        return taken

    @retried
    def _take_one(self, after: int, see: Callable[[int], object], take: TakeIn) -> bool:
        with self._database.transaction() as session:
            rows = session.rows("inbox_next", {"after": after})
            if not rows:
                return False
            see(number(rows))
            from duetick.domain.jobs import InboxRow

            (row,) = session.rows("inbox_take", {"id": number(rows)})
            take(InboxRow(*row), SqlTransaction(session))
        return True

    # Operations.

    def add_operation(self, operation: "Operation") -> None:
        """See `ports.Shelf`. Its module is loaded when it is needed: a tick records nothing."""
        from duetick.stores.sql.operations import operation_params

        self._execute("operation_put", operation_params(operation))

    def end_operation(self, operation: "Operation") -> None:
        """See `ports.Shelf`."""
        self._execute("operation_end", {"id": operation.id, "outcome": operation.outcome})

    def operations(
        self, after: "OperationPlace", limit: int, user_id: str | None = None
    ) -> "Sequence[Operation]":
        """See `ports.Shelf`."""
        from duetick.stores.sql.operations import operations

        return operations(self._query, after, limit, user_id)

    # The database.

    def now(self) -> int:
        """See `ports.Shelf`."""
        return self._database.now()

    def check_transactions(self) -> None:
        """Raise NoTransactions if the connections cannot hold one."""
        self._database.check_transactions()

    @retried
    def migrate(self) -> Migrated:
        """See `ports.Shelf`."""
        with self._database.migration() as session:
            return self._migrate(session)

    def _migrate(self, session: Session) -> Migrated:
        return migrate(session, self._steps)

    @retried
    def check_schema(self) -> None:
        """See `ports.Shelf`."""
        with self._database.reading() as session:
            check_schema(session, self._steps)

    @retried
    def erase(self, user_id: str) -> int:
        """See `ports.Shelf`."""
        with self._database.transaction() as session:
            return erase(session, user_id)

    @retried
    def forget(self, now: int, limit: int) -> int:
        """See `ports.Shelf`."""
        params: Params = {
            "now": now,
            "marked_before": now - KEPT_GONE_MS,
            "held_before": now - DAY * 1_000,
            "reported_before": now - REPORTS_KEPT_MS,
            "minute": now // MINUTE_MS,
            "held": LATEST,
            "limit": limit,
        }
        with self._database.transaction() as session:
            session.rows("forget_held", params)
            return sum(count for name in FORGETS for count in session.each(name, [params]))

    @retried
    def retire(self, retention: "Retention", now: int, limit: int) -> "Retired":
        """See `ports.Shelf`. Its module is loaded when it is needed: a tick purges nothing."""
        from duetick.stores.sql.retiring import retire

        with self._database.volatile() as session:
            return retire(session, retention, now, limit)

    def tidy(self, now: int) -> int:
        """See `ports.Shelf`: a SQL database has nothing to tidy."""
        del now
        return 0

    def close(self) -> None:
        """See `ports.Shelf`."""
        self._database.close()

    def _rows(self, name: str, params: Params) -> Sequence[Row]:
        """Return the rows of one query that only reads, in one round trip."""
        with self._database.reading() as session:
            (rows,) = session.last([(name, params)])()
        return rows


def _name_params(name: ScheduleName) -> Params:
    return {"user_id": name[0], "key": name[1]}


def read_glance(row: Row) -> Glance:
    """Read the answer of `look`."""
    now, _, _, note, brought, ordered, due, waits = row
    return Glance(now, bool(waits), bool(due), bool(ordered), bool(brought), note)


def _full_scopes(fair: Fair, now: int) -> Params:
    """Return the parameters of the queries that know limits: the scopes that have no place."""
    if not fair.limits:
        return {}
    full = fair.limits.full(now)._asdict()
    return {f"full_{name}": json.dumps(scopes) for name, scopes in full.items()}


def _over_call(params: Params, fair: Fair) -> QueryCall:
    """Return the query for ended leases. The usual one knows no limits."""
    return f"occurrences_lease_over{'_within' if fair.limits else ''}", params


def _actions(session: Session, ready: Sequence[Occurrence], fair: Fair) -> ActionOf:
    """Return the function that knows the actions of occurrences, if a limit of an action stands."""
    known: dict[tuple[ScheduleName, bool], str] = {}
    if fair.limits.asks_action(None) and ready:
        names = json.dumps(sorted({(one.user_id, one.key) for one in ready}))
        rows = session.rows("actions_of", {"names": names})
        for user_id, key, own, hook in rows:
            known |= {((user_id, key), False): own, ((user_id, key), True): hook or ""}
    return lambda one: known.get(((one.user_id, one.key), is_failure_hook(one.origin)), "")


def _unheld_call(usual: str, params: Params, fair: Fair, now: int) -> QueryCall:
    """Return the usual query. If pauses of groups or limits stand, return the one that passes over
    the occurrences that they keep back.
    """
    held = fair.pauses.scopes_held(now)
    if fair.is_plain or not (held or fair.limits):
        return usual, params
    if not fair.limits:
        params = {**params, "full_users": "[]", "full_flows": "[]", "full_actions": "[]"}
    lists = {"users": json.dumps(held.users), "flows": json.dumps(held.flows)}
    return f"{usual}_unheld", {**params, **lists, "everything": int(held.everything)}


def _traces(
    ready: Sequence[Occurrence], leased: Sequence[tuple[Occurrence, str | None]]
) -> list[Params]:
    pairs = zip(ready, leased, strict=True)
    return [
        event_params(one.identity, Event(after.updated_at, one.state, after.state, note))
        for one, (after, note) in pairs
        if note is not None
    ]


def _reservation(now: int, until: int) -> Params:
    """Return the parameters of `retries_reserve`: the retries that it finds come next."""
    kept_until = now + PLACE_KEPT_MS
    return {"until": until, "kept_until": kept_until, "soon": kept_until - PLACE_KEPT_MS // 2}


_PAGES: Final = {
    "occurrences_dead": frozenset({State.DEAD}),
    "occurrences_waiting": WAITING,
    "occurrences_leased": LEASED,
}
"""The pages of all users, by the states that they have."""


def _page_of(query: Query) -> str:
    if query.user_id is None:
        return next(page for page, states in _PAGES.items() if query.states <= states)
    return "occurrences_of_user" if query.key is None else "occurrences_of_schedule"


def _select(session: Session, name: str, params: Params) -> list[Occurrence]:
    return [read_occurrence(row) for row in session.rows(name, params)]
