"""A store on connections that the caller makes: which backend it is, the connection tells."""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from duetick.domain.errors import InvalidStoreUrl, NoTransactions
from duetick.ports import Clock, Store
from duetick.stores.sql.store import SqlStore

Connection = TypeVar("Connection")


def open_connections(
    connect: Callable[[], object], clock: Clock | None, *, look_ahead: bool = False
) -> Store:
    """Take the first connection to see what it is, and try a transaction on it at once."""
    first = _first(connect)
    if isinstance(first, sqlite3.Connection):
        return _open_sqlite(first, connect, clock, look_ahead)
    if _is_pg8000(first):
        return _open_postgres(first, connect, clock, look_ahead)
    raise InvalidStoreUrl(
        f"A connection of type {type(first).__module__}.{type(first).__qualname__} is not known; "
        "give a factory of sqlite3 or pg8000 connections."
    )


def _first(connect: Callable[[], object]) -> object:
    """The first connection; that there is none is told as it is later on, if it is Postgres."""
    try:
        return connect()
    except Exception as error:
        if _is_pg8000(error):
            from duetick.stores.postgres.errors import FACTORYS_PLACE, connecting

            with connecting(FACTORYS_PLACE):
                raise
        raise


def _is_pg8000(made: object) -> bool:
    """Told by the name of its module: asking pg8000 itself would import it for SQLite too."""
    return any(base.__module__.startswith("pg8000.") for base in type(made).__mro__)


def _open_postgres(
    first: object, connect: Callable[[], object], clock: Clock | None, look_ahead: bool
) -> Store:
    from pg8000.core import CoreConnection

    from duetick.stores.postgres.store import open_postgres

    store = open_postgres(_again(first, connect, CoreConnection), clock, look_ahead=look_ahead)
    return _checked(store, autocommit=bool(getattr(first, "autocommit", False)))


def _checked(store: SqlStore, *, autocommit: bool = False) -> Store:
    """The store, if its first connection keeps a transaction; else nothing is left open."""
    try:
        store.check_transactions()
        if autocommit:
            raise NoTransactions(
                "The connection commits each statement by itself. Give a factory of connections "
                "with autocommit off."
            )
    except BaseException:
        store.close()
        raise
    return store


def _again(
    first: object, connect: Callable[[], object], kind: type[Connection]
) -> Callable[[], Connection]:
    """The factory, which gives the connection that was looked at first."""
    unused = [first]

    def again() -> Connection:
        made = unused.pop() if unused else connect()
        if not isinstance(made, kind):
            raise InvalidStoreUrl("The factory gave a connection of another kind than at first.")
        return made

    return again


def _open_sqlite(
    first: sqlite3.Connection,
    connect: Callable[[], object],
    clock: Clock | None,
    look_ahead: bool,
) -> Store:
    from duetick.stores.sqlite.store import open_sqlite

    again = _again(first, connect, sqlite3.Connection)
    return _checked(open_sqlite(again, clock, look_ahead=look_ahead))
