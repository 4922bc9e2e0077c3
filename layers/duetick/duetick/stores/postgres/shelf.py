"""The shelf on Postgres: begin, settle, renew and release are one round trip each, also of many.

A statement's condition decides the everyday case (see `sql.quick`). If it changes no row, the
general way loads the book and decides.
"""

import json
from collections.abc import Callable, Sequence
from typing import Final

from pg8000.core import CoreConnection

from duetick.core.retrying import retry
from duetick.domain.attempts import Begun, Settled
from duetick.domain.errors import SchemaOutdated
from duetick.domain.failures import Event
from duetick.domain.occurrence import Leased, Occurrence
from duetick.domain.standing import StandingOrder
from duetick.ports import Chunk, Fair, Glance, Migrated
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.claim import LockingClaim
from duetick.stores.postgres.connecting import ConnectPostgres, Password, connect_to
from duetick.stores.postgres.database import PostgresDatabase
from duetick.stores.postgres.errors import FACTORYS_PLACE, InDoubt, connecting
from duetick.stores.postgres.fast_claim import FastClaim
from duetick.stores.postgres.kept import read_answers, routines
from duetick.stores.sql.queries import Migration, migrations
from duetick.stores.sql.quick import USUAL_LEASE_MS, begin_call, begin_params, params_of_lease
from duetick.stores.sql.rows import read_begun, read_occurrence, read_record
from duetick.stores.sql.session import (
    Database,
    Params,
    QueryCall,
    Row,
    Session,
    Undone,
    retried,
)
from duetick.stores.sql.shelf import SqlShelf, read_glance
from duetick.stores.versions import check_version

POOL: Final = 8
MANY: Final = ("schedules_get", "occurrences_move_leased")
"""The last statements of a write of many occurrences."""


class PostgresShelf(SqlShelf):
    """`ports.Shelf` on Postgres."""

    def __init__(self, database: Database, steps: Sequence[Migration]) -> None:
        locking = LockingClaim()
        super().__init__(database, locking, steps)
        self._fast_claim = FastClaim(locking)
        self._keeps = True

    @retried
    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """See `ports.Shelf`."""
        return self._fast_claim.claim(self._database, now, limit, ahead, fair)

    @retried
    def look(self, now: int | None, ahead: int, note: str) -> Glance | None:
        """See `ports.Shelf`. The server's clock and the schema's version come with the answer."""
        row = self._look(now, ahead, note)
        _, version, oldest_code, *_ = row
        check_version(self._steps[-1].version, version, oldest_code)
        return read_glance(row)

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | None]:
        """See `ports.Shelf`. If the answer is lost, the general way reads the result."""
        if len(leases) > 1:
            return self._begin_many(leases, now)
        answers = [self._write(_begin_calls(lease, now)) for lease in leases]
        return [read_begun(begun[0], records) if begun else None for _, begun, records in answers]

    def settle(self, settled: Sequence[Settled], now: int) -> Sequence[Occurrence | None]:
        """See `ports.Shelf`. If the answer is lost, the general way repeats it, without effect."""
        if len(settled) > 1:
            return self._settle_many(settled, now)
        answers = [self._write([_move_call(*one)]) for one in settled]
        return [one.after if rows else None for one, (rows,) in zip(settled, answers, strict=True)]

    def _begin_many(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | None]:
        """Begin occurrences of different schedules by three statements, in one round trip."""
        many: Params = {"many": json.dumps([begin_params(one) for one in leases])}
        dated: Params = {**many, "now": now, "usual_lease_ms": USUAL_LEASE_MS}
        calls = (("schedules_lock", many), ("occurrences_begin", dated), ("schedules_get", many))
        _, begun, records = self._write(calls)
        found = {one.identity: one for one in map(read_occurrence, begun)}
        schedules = {(one.user_id, one.key): one for one in map(read_record, records)}
        every = [found.get(lease.identity) for lease in leases]
        return [Begun(one, schedules.get((one.user_id, one.key))) if one else None for one in every]

    def _settle_many(self, settled: Sequence[Settled], now: int) -> Sequence[Occurrence | None]:
        """Write the ends of attempts by one statement."""
        many = json.dumps([_move_params(*one) for one in settled])
        (rows,) = self._write([("occurrences_move_leased", {"many": many, "now": now})])
        written = {(user_id, key, at, origin) for user_id, key, at, origin in rows}
        return [one.after if one.after.identity in written else None for one in settled]

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        """See `ports.Shelf`. If the answer is lost, the caller must not hear that it failed."""
        (rows,) = self._write_at_once([_move_call(before, after, event)])
        return after if rows else None

    def standing(self) -> Sequence[StandingOrder]:
        """See `ports.Shelf`. If the answer is lost, it is read again: each begin waits for it."""
        return retry(super().standing, InDoubt, 2)

    def _write(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        """Run statements in one transaction and round trip; return the rows of each.

        If the answer is lost, or one of many occurrences conflicts with another, no row is
        returned, and all of the occurrences go the general way.
        """
        try:
            return self._write_at_once(calls)
        except InDoubt:
            return [() for _ in calls]
        except Undone:
            if calls[-1][0] not in MANY:
                raise
            return [() for _ in calls]

    def _write_at_once(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        """Run statements by the function that stands for them; without one, themselves."""
        routine = routines().get(tuple(name for name, _ in calls)) if self._keeps else None
        if routine:
            try:
                ((answer,),) = self._run_at_once([routine.call_with(calls)])[0]
                return read_answers(answer)
            except SchemaOutdated:  # it is not made yet; or the schema is missing, as is told next
                self._keeps = False
        return self._run_at_once(calls)

    @retried
    def _run_at_once(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        with self._database.transaction() as session:
            return session.last(calls)()

    def _migrate(self, session: Session) -> Migrated:
        """See `SqlShelf`. The functions are made of the queries that this code runs."""
        from duetick.stores.postgres.releases import renew_routines

        migrated = super()._migrate(session)
        renew_routines(session)
        return migrated

    @retried
    def admit(self, user: str, password: Password) -> None:
        """Let a user read and write; see `roles`. Only the schema's owner may do this."""
        from duetick.stores.postgres.roles import admit

        admit(self._database, user, password)


def _begin_calls(lease: Leased, now: int) -> list[QueryCall]:
    """Return the calls that lock the record, begin the occurrence, and read the record after it.

    Postgres plans all three in less time than one statement that does the same.
    """
    name: Params = {"user_id": lease.user_id, "key": lease.key}
    return [("schedule_lock", name), begin_call(lease, now), ("schedule_get", name)]


def _move_call(before: Occurrence, after: Occurrence, event: Event | None) -> QueryCall:
    traced = "occurrence_move_leased" if event is None else "occurrence_move_leased_traced"
    return traced, _move_params(before, after, event)


def _move_params(before: Occurrence, after: Occurrence, event: Event | None) -> Params:
    params = params_of_lease(before, after)
    return {**params, "note": event.note, "note_told": event.told} if event else params


def open_postgres(
    address: str | ConnectPostgres, *, password: Password | None = None
) -> PostgresShelf:
    """Open a shelf at a libpq URL, or on connections of a factory. It connects at its first use.

    Each new connection calls `password`, in place of the password in the address.
    """
    code = migrations("postgres")[-1].version
    if isinstance(address, str):
        read = read_address(address)
        return open_database(PostgresDatabase(connect_to(read, password), read.pool, code))
    return open_database(PostgresDatabase(_connect_by(address), POOL, code))


def _connect_by(factory: ConnectPostgres) -> Callable[[], CoreConnection]:
    """Return the caller's factory. It raises the same errors as the factory of an address."""

    def connect() -> CoreConnection:
        with connecting(FACTORYS_PLACE):
            return factory()

    return connect


def open_database(database: PostgresDatabase) -> PostgresShelf:
    """Make a shelf on a database."""
    return PostgresShelf(database, migrations("postgres"))
