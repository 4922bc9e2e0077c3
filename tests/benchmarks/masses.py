"""Schedules by the hundred thousand, on each store: put as copies of one, and read at their end.

On SQL one statement for each table copies the rows. On DynamoDB each copy is a put of its own: a
thousand take some seconds.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from duetick.core.store import Store
from duetick.domain.schedule import Schedule
from duetick.domain.states import State
from duetick.stores import open_store

from tests.benchmarks.end_to_end import processor_time
from tests.benchmarks.postgres_claim import DURABLE
from tests.lab.dynamodb import start_dynamodb_local, table_name
from tests.lab.postgres import EmbeddedPostgres, connect, fresh_database

KINDS: Final = ("postgres", "sqlite", "dynamodb")
COPIED: Final = ("schedules", "definitions", "schedule_index")
PAGE: Final = 1_000
WRITERS: Final = 8

COPY: Final = """
INSERT INTO {table}
SELECT (jsonb_populate_record(
    t, jsonb_build_object('user_id', :user || (n % :users::bigint), 'key', 'k' || n)
)).*
FROM {table} t, generate_series(1, :size::bigint) n WHERE t.user_id = :first
"""

COPY_SQLITE: Final = """
WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < :size)
INSERT INTO {table} SELECT {columns} FROM {table} t, numbers WHERE t.user_id = :first
"""

COPIED_COLUMNS: Final = {"user_id": ":user || (n % :users)", "key": "'k' || n"}

BEGUN: Final = """
SELECT begun_at, due_at FROM occurrences
WHERE state = 'succeeded' AND (user_id LIKE :user OR user_id LIKE 'first-' || :user)
"""


class Group(NamedTuple):
    """A number of schedules of some users. The users' names begin with `user`."""

    user: str
    users: int
    size: int


class Mass(Protocol):
    """A store of one kind with a mass of schedules."""

    url: str

    def copy(self, one: Schedule, now: int, group: Group) -> None:
        """Put a group of schedules like one that is there."""

    def settle_down(self) -> None:
        """Do the work that the database does by itself after many writes."""

    def read_begins(self, user: str) -> Sequence[tuple[int, int]]:
        """Return the begin and the due time of each success of the users whose names begin so."""

    def processor_time(self) -> float:
        """Return the seconds of its server, 0 without one."""


class MassOnPostgres:
    """`Mass` on Postgres."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.url = fresh_database(server)
        self._server = server

    def copy(self, one: Schedule, now: int, group: Group) -> None:
        """See `Mass`."""
        del now
        with connect(self.url) as connection:
            for table in COPIED:
                copy = COPY.format(table=table)
                connection.run(copy, first=one.user_id, **group._asdict())

    def settle_down(self) -> None:
        """See `Mass`."""
        with connect(self.url) as connection:
            connection.run("VACUUM ANALYZE")

    def read_begins(self, user: str) -> Sequence[tuple[int, int]]:
        """See `Mass`."""
        with connect(self.url) as connection:
            found = connection.run(BEGUN, user=f"{user}%") or ()
        return [(int(begun_at), int(due_at)) for begun_at, due_at in found]

    def processor_time(self) -> float:
        """See `Mass`."""
        return processor_time(self._server.pid)


class MassOnSqlite:
    """`Mass` in a file of SQLite."""

    def __init__(self, file: Path) -> None:
        self.url = f"sqlite:///{file}"
        self._file = file

    def copy(self, one: Schedule, now: int, group: Group) -> None:
        """See `Mass`."""
        del now
        given = {"first": one.user_id, **group._asdict()}
        with self._open() as connection:
            for table in COPIED:
                names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
                columns = ", ".join(COPIED_COLUMNS.get(name, f"t.{name}") for name in names)
                connection.execute(COPY_SQLITE.format(table=table, columns=columns), given)

    def settle_down(self) -> None:
        """See `Mass`."""
        with self._open() as connection:
            connection.execute("ANALYZE")

    def read_begins(self, user: str) -> Sequence[tuple[int, int]]:
        """See `Mass`."""
        with self._open() as connection:
            return connection.execute(BEGUN, {"user": f"{user}%"}).fetchall()

    def processor_time(self) -> float:
        """See `Mass`. The processes that use it do its work."""
        return 0.0

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, timeout=60)) as connection, connection:
            yield connection


class MassOnDynamoDB:
    """`Mass` in a table of DynamoDB Local."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._users: set[str] = set()

    def copy(self, one: Schedule, now: int, group: Group) -> None:
        """See `Mass`."""
        numbers = range(1, group.size + 1)
        names = [(f"{group.user}{n % group.users}", f"k{n}") for n in numbers]
        self._users |= {one.user_id, *(name for name, _ in names)}

        with closing(open_store(self.url)) as store, ThreadPoolExecutor(WRITERS) as pool:

            def put(name: tuple[str, str]) -> object:
                return store.schedules.put(replace(one, user_id=name[0], key=name[1]), now=now)

            for _ in pool.map(put, names):
                pass

    def settle_down(self) -> None:
        """See `Mass`: nothing."""

    def read_begins(self, user: str) -> Sequence[tuple[int, int]]:
        """See `Mass`."""
        prefixes = (user, f"first-{user}")
        with closing(open_store(self.url)) as store:
            return [
                found
                for name in sorted(self._users)
                if name.startswith(prefixes)
                for found in read_begins_of(store, name)
            ]

    def processor_time(self) -> float:
        """See `Mass`. The emulator's time says nothing of the service."""
        return 0.0


def read_begins_of(store: Store, user: str) -> Iterator[tuple[int, int]]:
    """Yield when each of a user's that succeeded began and was due."""
    page = store.ledger.find(user, limit=PAGE)
    while page:
        for one in page:
            if one.state is State.SUCCEEDED and one.begun_at is not None:
                yield one.begun_at, one.due_at
        page = store.ledger.find(user, limit=PAGE, before=page[-1].identity)


@contextmanager
def mass_on(kind: str, folder: Path) -> Iterator[Mass]:
    """Yield an empty store of a kind. Its server ends with the block."""
    with ExitStack() as at_end:
        if kind == "sqlite":
            yield MassOnSqlite(folder / "mass.db")
        elif kind == "dynamodb":
            local = start_dynamodb_local(folder)
            at_end.callback(local.stop)
            yield MassOnDynamoDB(local.table_url(table_name()))
        else:
            server = EmbeddedPostgres(DURABLE)
            at_end.callback(server.remove)
            yield MassOnPostgres(server)
