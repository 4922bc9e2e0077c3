"""Shelves on connections that the caller makes. The connection's type decides the backend."""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from duetick.domain.errors import InvalidStoreUrl, NoTransactions
from duetick.ports import Shelf
from duetick.stores.sql.shelf import SqlShelf

Connection = TypeVar("Connection")


def open_connections(connect: Callable[[], object]) -> Shelf:
    """Make the first connection, open its backend, and check that it can hold a transaction."""
    first = _connect_first(connect)
    if isinstance(first, sqlite3.Connection):
        return _open_sqlite(first, connect)
    if _is_pg8000(first):
        return _open_postgres(first, connect)
    raise InvalidStoreUrl(
        f"A connection of type {type(first).__module__}.{type(first).__qualname__} is not known; "
        "give a factory of sqlite3 or pg8000 connections."
    )


def _connect_first(connect: Callable[[], object]) -> object:
    """Make the first connection. If pg8000 fails, raise the same error as for later connections."""
    try:
        return connect()
    except Exception as error:
        if _is_pg8000(error):
            from duetick.stores.postgres.errors import FACTORYS_PLACE, connecting

            with connecting(FACTORYS_PLACE):
                raise
        raise


def _is_pg8000(connection_or_error: object) -> bool:
    """Compare the name of the module: isinstance would import pg8000 for SQLite too."""
    bases = type(connection_or_error).__mro__
    return any(base.__module__.startswith("pg8000.") for base in bases)


def _open_postgres(first: object, connect: Callable[[], object]) -> Shelf:
    from pg8000.core import CoreConnection

    from duetick.stores.postgres.shelf import open_postgres

    shelf = open_postgres(_reuse(first, connect, CoreConnection))
    return _check(shelf, autocommit=bool(getattr(first, "autocommit", False)))


def _check(shelf: SqlShelf, *, autocommit: bool = False) -> Shelf:
    """Return the shelf if its first connection can hold a transaction; else close it and raise."""
    try:
        shelf.check_transactions()
        if autocommit:
            raise NoTransactions(
                "The connection commits each statement by itself. Give a factory of connections "
                "with autocommit off."
            )
    except BaseException:
        shelf.close()
        raise
    return shelf


def _reuse(
    first: object, connect: Callable[[], object], kind: type[Connection]
) -> Callable[[], Connection]:
    """Return a factory that returns the first connection, then connections of `connect`."""
    unused = [first]

    def reuse_or_connect() -> Connection:
        made = unused.pop() if unused else connect()
        if not isinstance(made, kind):
            raise InvalidStoreUrl("The factory gave a connection of another kind than at first.")
        return made

    return reuse_or_connect


def _open_sqlite(first: sqlite3.Connection, connect: Callable[[], object]) -> Shelf:
    from duetick.stores.sqlite.shelf import open_sqlite

    return _check(open_sqlite(_reuse(first, connect, sqlite3.Connection)))
