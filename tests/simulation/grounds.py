"""The grounds on which a simulation runs: each real store, opened anew for each process.

A process that dies leaves its connections as they are, and the ground ends them as an operating
system does: uncommitted writes are gone.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from duetick.core.store import Store
from duetick.ports import Shelf, Transaction
from duetick.stores.dynamodb.place import connect
from duetick.stores.dynamodb.service import Body, Service
from duetick.stores.dynamodb.shelf import DynamoShelf
from duetick.stores.dynamodb.table import Table
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.connecting import connect_to
from duetick.stores.postgres.database import PostgresDatabase
from duetick.stores.postgres.shelf import open_database
from duetick.stores.sql.queries import migrations
from duetick.stores.sql.session import Database, Params, QueryCall, Row, Session, Value
from duetick.stores.sql.shelf import SqlShelf
from duetick.stores.sqlite.shelf import open_sqlite
from pg8000.exceptions import Error

from tests.conformance.meddled import MeddledDatabase
from tests.lab.dynamodb import REGION, table_name
from tests.lab.postgres import connect as connect_to_postgres
from tests.simulation.boundaries import Boundaries

if TYPE_CHECKING:
    from pg8000.core import CoreConnection

TABLE: Final = "CREATE TABLE IF NOT EXISTS effects (occurrence text, attempt integer)"
INSERT: Final = "INSERT INTO effects (occurrence, attempt) VALUES (:occurrence, :attempt)"
SELECT: Final = "SELECT occurrence FROM effects"


class Ground(Protocol):
    """A database of simulations, one after another."""

    name: str

    def clear(self) -> None:
        """Make the database empty and ready."""

    def open(self) -> Shelf:
        """Open the shelf of a new process."""

    def kill(self, shelf: Shelf) -> None:
        """End the connections of a process that died."""

    def cross(self, shelf: Shelf, boundaries: Boundaries) -> None:
        """Let each statement, or request, of a shelf cross a boundary."""

    def write(self, transaction: Transaction, occurrence: str, attempt: int) -> None:
        """Write the effect of an action."""

    def written(self) -> Counter[str]:
        """Return the number of effects of each occurrence."""

    def close(self) -> None:
        """Close all open connections."""


class CrossedSession:
    """A session whose every statement crosses a boundary."""

    def __init__(self, session: Session, boundaries: Boundaries) -> None:
        self._session = session
        self._boundaries = boundaries

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """See `Session`."""
        return self._boundaries.inside(name, lambda: self._session.rows(name, params))

    def several(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        """See `Session`."""
        return self._boundaries.inside(_names(calls), lambda: self._session.several(calls))

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """See `Session`."""
        return self._boundaries.inside(name, lambda: self._session.each(name, params))

    def start(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """See `Session`."""
        return self._boundaries.inside(_names(calls), lambda: self._session.start(calls))

    def every(self, name: str, names: Sequence[str], given: Iterable[Sequence[Value]]) -> int:
        """See `Session`."""
        return self._boundaries.inside(name, lambda: self._session.every(name, names, given))

    def last(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """See `Session`. The answer of the commit crosses, too."""
        name = _names(calls)
        answers = self._boundaries.inside(name, lambda: self._session.last(calls))
        return lambda: self._boundaries.inside(f"{name}, commit", answers)

    def script(self, sql: str) -> None:
        """See `Session`."""
        self._session.script(sql)

    def script_of(self, name: str) -> None:
        """See `Session`."""
        self._session.script_of(name)

    def run(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """See `Session`."""
        return self._boundaries.inside("an action's own", lambda: self._session.run(sql, params))


def _names(calls: Sequence[QueryCall]) -> str:
    return ", ".join(name for name, _ in calls)


class CrossedDatabase(MeddledDatabase):
    """A database whose statements and commits cross a boundary."""

    def __init__(self, database: Database, boundaries: Boundaries) -> None:
        super().__init__(database, lambda session: CrossedSession(session, boundaries))
        self._boundaries = boundaries

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        with super().transaction() as session:
            yield session
            self._boundaries.inside("before the commit", lambda: None)
        self._boundaries.inside("after the commit", lambda: None)

    @contextmanager
    def claiming(self, *, waits: bool = True) -> Iterator[Session]:
        with super().claiming(waits=waits) as session:
            yield session
            self._boundaries.inside("before the commit", lambda: None)
        self._boundaries.inside("after the commit", lambda: None)

    @contextmanager
    def volatile(self) -> Iterator[Session]:
        with super().volatile() as session:
            yield session
            self._boundaries.inside("before the commit", lambda: None)
        self._boundaries.inside("after the commit", lambda: None)


def cross_sql(shelf: Shelf, boundaries: Boundaries) -> None:
    """Let the statements of a SQL shelf cross a boundary."""
    assert isinstance(shelf, SqlShelf)
    shelf._database = CrossedDatabase(shelf._database, boundaries)


class SqliteGround:
    """SQLite in a file. Nothing is flushed to the disk: a process dies here, never the machine."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "simulated.db"
        self._made: dict[Shelf, list[sqlite3.Connection]] = {}
        template = self._shelf([])
        template.migrate()
        template.close()
        with sqlite3.connect(self._path) as connection:
            connection.execute(TABLE)
        connection.close()
        self._template = self._path.read_bytes()

    def clear(self) -> None:
        """See `Ground`."""
        self.close()
        for path in self._path.parent.glob("simulated.db*"):
            path.unlink()
        self._path.write_bytes(self._template)

    def open(self) -> Shelf:
        """See `Ground`."""
        made: list[sqlite3.Connection] = []
        shelf = self._shelf(made)
        self._made[shelf] = made
        return shelf

    def _shelf(self, made: list[sqlite3.Connection]) -> SqlShelf:
        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(self._path, timeout=1, check_same_thread=False)
            connection.execute("PRAGMA synchronous = OFF")
            made.append(connection)
            return connection

        return open_sqlite(connect)

    def kill(self, shelf: Shelf) -> None:
        """See `Ground`."""
        for connection in self._made.pop(shelf, ()):
            connection.close()

    def cross(self, shelf: Shelf, boundaries: Boundaries) -> None:
        """See `Ground`."""
        cross_sql(shelf, boundaries)

    def write(self, transaction: Transaction, occurrence: str, attempt: int) -> None:
        """See `Ground`."""
        transaction.run(INSERT, occurrence=occurrence, attempt=attempt)

    def written(self) -> Counter[str]:
        """See `Ground`."""
        with sqlite3.connect(self._path) as connection:
            found = Counter(name for (name,) in connection.execute(SELECT))
        connection.close()
        return found

    def close(self) -> None:
        """See `Ground`."""
        for made in self._made.values():
            for connection in made:
                connection.close()
        self._made.clear()


class PostgresGround:
    """A database of a Postgres server."""

    name = "postgres"

    def __init__(self, url: str) -> None:
        self._url = url
        self._made: dict[Shelf, list[CoreConnection]] = {}
        self._observer = connect_to_postgres(url)
        shelf = self._shelf([])
        shelf.migrate()
        shelf.close()
        self._observer.run(TABLE)
        found = self._observer.run(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            " AND tablename <> 'schema_version'"
        )
        self._tables = ", ".join(name for (name,) in found)

    def clear(self) -> None:
        """See `Ground`."""
        self._close_made()
        self._observer.run(f"TRUNCATE {self._tables}")

    def open(self) -> Shelf:
        """See `Ground`."""
        made: list[CoreConnection] = []
        shelf = self._shelf(made)
        self._made[shelf] = made
        return shelf

    def _shelf(self, made: "list[CoreConnection]") -> SqlShelf:
        connect = connect_to(read_address(self._url))

        def remembered() -> "CoreConnection":
            made.append(connect())
            return made[-1]

        return open_database(PostgresDatabase(remembered, 8, migrations("postgres")[-1].version))

    def kill(self, shelf: Shelf) -> None:
        """See `Ground`. The server has ended the session before anybody goes on."""
        for connection in self._made.pop(shelf, ()):
            pid = int.from_bytes(connection._backend_key_data[:4])
            self._observer.run("SELECT pg_terminate_backend(:pid, 5000)", pid=pid)
            with suppress(Error, OSError):
                connection.close()

    def cross(self, shelf: Shelf, boundaries: Boundaries) -> None:
        """See `Ground`."""
        cross_sql(shelf, boundaries)

    def write(self, transaction: Transaction, occurrence: str, attempt: int) -> None:
        """See `Ground`."""
        transaction.run(INSERT, occurrence=occurrence, attempt=attempt)

    def written(self) -> Counter[str]:
        """See `Ground`."""
        return Counter(name for (name,) in self._observer.run(SELECT))

    def _close_made(self) -> None:
        for made in self._made.values():
            for connection in made:
                connection.close()
        self._made.clear()

    def close(self) -> None:
        """See `Ground`."""
        self._close_made()
        self._observer.close()


class InTurn:
    """The threads of a claim on DynamoDB, which write one item after another."""

    map = staticmethod(map)

    def shutdown(self) -> None:
        """Nothing is open."""


class CrossedService:
    """A service whose every request crosses a boundary."""

    def __init__(self, service: Service, boundaries: Boundaries) -> None:
        self._service = service
        self._boundaries = boundaries
        self.close = service.close

    @property
    def date(self) -> int | None:
        """See `Service`."""
        return self._service.date

    def call(self, operation: str, request: Body) -> dict[str, Any]:
        """See `Service`."""
        call = self._service.call
        return self._boundaries.inside(operation, lambda: call(operation, request))


class DynamoGround:
    """A table of DynamoDB Local, a new one for each simulation."""

    name = "dynamodb"

    def __init__(self, endpoint: str) -> None:
        self._service = connect(REGION, endpoint)
        self._table = self._effects = ""

    def clear(self) -> None:
        """See `Ground`."""
        self._drop()
        self._table, self._effects = table_name(), table_name()
        Store(self.open(), lambda: 0).migrate()
        made = {
            "TableName": self._effects,
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
        self._service.call("CreateTable", made)

    def open(self) -> Shelf:
        """See `Ground`."""
        shelf = DynamoShelf(Table(self._table, self._service), 1, checks_clock=False)
        shelf._pool = cast("Any", InTurn())
        return shelf

    def kill(self, shelf: Shelf) -> None:
        """See `Ground`. A request is done or not; nothing is open between two."""

    def cross(self, shelf: Shelf, boundaries: Boundaries) -> None:
        """See `Ground`."""
        assert isinstance(shelf, DynamoShelf)
        shelf._table.service = CrossedService(self._service, boundaries)

    def write(self, transaction: Transaction, occurrence: str, attempt: int) -> None:
        """See `Ground`."""
        item = {"id": {"S": f"{occurrence} {attempt}"}, "o": {"S": occurrence}}
        transaction.write({"Put": {"TableName": self._effects, "Item": item}})

    def written(self) -> Counter[str]:
        """See `Ground`."""
        items = self._service.call("Scan", {"TableName": self._effects})["Items"]
        return Counter(item["o"]["S"] for item in items)

    def _drop(self) -> None:
        for name in filter(None, (self._table, self._effects)):
            self._service.call("DeleteTable", {"TableName": name})

    def close(self) -> None:
        """See `Ground`."""
        self._drop()
        self._service.close()
