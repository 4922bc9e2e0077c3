"""The shelf on Postgres: begin, settle, renew and release are one round trip each.

A statement's condition decides the everyday case (see `sql.quick`). If it changes no row, the
general way loads the book and decides.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
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
from duetick.stores.sql.quick import begin_call, leased_params
from duetick.stores.sql.rows import read_begun
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
        answers = self._write([_begin_calls(lease, now) for lease in leases])
        return [read_begun(begun[0], records) if begun else None for _, begun, records in answers]

    def settle(self, settled: Sequence[Settled], now: int) -> Sequence[Occurrence | None]:
        """See `ports.Shelf`. If the answer is lost, the general way repeats it, without effect."""
        del now
        answers = self._write([[_move_call(*one)] for one in settled])
        return [one.after if rows else None for one, (rows,) in zip(settled, answers, strict=True)]

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        """See `ports.Shelf`. If the answer is lost, the caller must not hear that it failed."""
        (rows,) = self._write_at_once([_move_call(before, after, event)])
        return after if rows else None

    def standing(self) -> Sequence[StandingOrder]:
        """See `ports.Shelf`. If the answer is lost, it is read again: each begin waits for it."""
        return retry(super().standing, InDoubt, 2)

    def _write(self, leases: Sequence[Sequence[QueryCall]]) -> Sequence[Sequence[Sequence[Row]]]:
        """Run the statements of each lease in one transaction and round trip; return their rows.

        If the answer is lost, or one of several leases conflicts with another, no row is the
        answer, and all of them go the general way.
        """
        try:
            answers: Iterator[Sequence[Row]] = iter(
                self._write_at_once([call for calls in leases for call in calls])
            )
        except InDoubt:
            answers = repeat(())
        except Undone:
            if len(leases) == 1:
                raise
            answers = repeat(())
        return [[next(answers) for _ in calls] for calls in leases]

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
        migrated = super()._migrate(session)
        made = {one.name: one for one in routines().values()}
        found = session.rows("names_taken", {"names": json.dumps([*made])})
        for name in made.keys() - {str(row[0]) for row in found}:
            session.script(made[name].made)
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
    params = leased_params(before, after)
    if event is None:
        return "occurrence_move_leased", params
    return "occurrence_move_leased_traced", {**params, "note": event.note, "note_told": event.told}


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
