"""Databases and tables that are emptied for a test, not made: to make one takes longer than most
tests do. A test that changed the schema leaves one that is made anew.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from botocore.exceptions import ClientError
from duetick.stores import open_store
from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection

from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import Postgres, connect, drop_database, emptied, fresh_database

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, WriteRequestTypeDef

IN_TURN: Final = 3
"""A process that a test leaves behind may write for a moment: two tests later, into another."""
LEFT_BEHIND = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""
EMPTYING = """SELECT string_agg(format('DELETE FROM %I', relname), ';') FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'schema_version'"""
SHAPE = """SELECT
    (SELECT array_agg(oid ORDER BY oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace),
    (SELECT array_agg(relacl::text ORDER BY oid) FROM pg_class
        WHERE relnamespace = 'public'::regnamespace),
    (SELECT array_agg(oid ORDER BY oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
    (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_attribute)"""


class Ready(Protocol):
    """A place of a store that can be made ready for a test."""

    def ready(self) -> str:
        """Return its address: it has the schema, and nothing else."""

    def close(self) -> None:
        """Leave it as it is: nothing is tested there any more."""


def migrate(url: str) -> None:
    """Make the schema."""
    with closing(open_store(url)) as store:
        store.migrate()


@cache
def sqlite_image() -> bytes:
    """Return the bytes of an SQLite database that has the schema, and nothing else."""
    with closing(sqlite3.connect(":memory:")) as connection:
        open_store(lambda: connection).migrate()
        return connection.serialize()


def sqlite_file(path: Path) -> str:
    """Return the address of a new file that has the schema, and nothing else."""
    path.write_bytes(sqlite_image())
    return f"sqlite:///{path}"


class ReadyDatabase:
    """A database of a Postgres server."""

    def __init__(self, server: Postgres, migrate: Callable[[str], object] = migrate) -> None:
        self._server = server
        self._migrate = migrate
        self._url = fresh_database(server)
        self._emptying = ""
        self._shape: object = None
        self._connection: Connection | None = None

    def ready(self) -> str:
        """Return its address: it has the schema, and nothing else."""
        if self._shape is None or not self._is_emptied():
            self._make()
        return self._url

    def drop(self) -> None:
        """Drop the database."""
        self.close()
        drop_database(self._server, self._url)

    def _is_emptied(self) -> bool:
        """Return False if a test changed more than rows."""
        with suppress(DatabaseError, InterfaceError):
            connection = self._connect()
            connection.run(LEFT_BEHIND)
            if self._shape == connection.run(SHAPE):
                connection.run(self._emptying)
                return True
        return False

    def _make(self) -> None:
        self.close()
        try:
            emptied(self._url)
        except DatabaseError:  # a test dropped it
            self._url = fresh_database(self._server)
        self._migrate(self._url)
        connection = self._connect()
        ((self._emptying,),) = connection.run(EMPTYING)
        self._shape = connection.run(SHAPE)

    def _connect(self) -> Connection:
        """Return a connection that stays from test to test: to make one takes a new process."""
        if self._connection is None:
            self._connection = connect(self._url)
        return self._connection

    def close(self) -> None:
        """See `Ready`."""
        with suppress(DatabaseError, InterfaceError):
            if self._connection is not None:
                self._connection.close()
        self._connection = None


class ReadyTable:
    """A table of a DynamoDB. Its schema is one item."""

    def __init__(self, server: DynamoDB, options: str = "") -> None:
        self._client = server.client()
        self._name = table_name()
        self._url = server.table_url(self._name) + options
        self._schema: dict[str, AttributeValueTypeDef] | None = None

    def ready(self) -> str:
        """Return its address: it has the schema, and nothing else."""
        if self._schema is None or not self._is_emptied(self._schema):
            migrate(self._url)
            (self._schema,) = self._items()
        return self._url

    def close(self) -> None:
        """See `Ready`."""
        self._client.close()

    def _is_emptied(self, schema: "dict[str, AttributeValueTypeDef]") -> bool:
        """Return False if a test deleted the table."""
        kept = (schema["p"], schema["s"])
        with suppress(ClientError):
            keys = [(item["p"], item["s"]) for item in self._items()]
            self._write(
                [{"DeleteRequest": {"Key": {"p": p, "s": s}}} for p, s in keys if (p, s) != kept]
            )
            self._write([{"PutRequest": {"Item": schema}}])
            return True
        return False

    def _write(self, requests: "list[WriteRequestTypeDef]") -> None:
        for start in range(0, len(requests), 25):
            part = requests[start : start + 25]
            self._client.batch_write_item(RequestItems={self._name: part})

    def _items(self) -> "Iterator[dict[str, AttributeValueTypeDef]]":
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._name, ConsistentRead=True
        )
        return (item for page in pages for item in page["Items"])


class InTurn:
    """Some places, each test's in turn. They are made as they are needed."""

    def __init__(self, make: Callable[[], Ready]) -> None:
        self._places: list[Ready] = []
        self._make = make
        self._turn = cycle(range(IN_TURN))

    def ready(self) -> str:
        """Return the address of the next one, made ready."""
        place = next(self._turn)
        if place >= len(self._places):
            self._places.append(self._make())
        return self._places[place].ready()

    def close(self) -> None:
        """Leave them all."""
        for place in self._places:
            place.close()
