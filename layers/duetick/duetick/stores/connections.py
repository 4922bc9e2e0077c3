"""A store on connections that the caller makes: which backend it is, the connection tells."""

import sqlite3
from collections.abc import Callable

from duetick.domain.errors import InvalidStoreUrl
from duetick.ports import Clock, Store


def open_connections(connect: Callable[[], object], clock: Clock | None) -> Store:
    """Take the first connection to see what it is, and try a transaction on it at once."""
    first = connect()
    if isinstance(first, sqlite3.Connection):
        return _open_sqlite(first, connect, clock)
    raise InvalidStoreUrl(
        f"A connection of type {type(first).__module__}.{type(first).__qualname__} is not known; "
        "give a factory of sqlite3 or pg8000 connections."
    )


def _open_sqlite(
    first: sqlite3.Connection, connect: Callable[[], object], clock: Clock | None
) -> Store:
    from duetick.stores.sqlite.store import open_sqlite

    unused = [first]

    def again() -> sqlite3.Connection:
        made = unused.pop() if unused else connect()
        if not isinstance(made, sqlite3.Connection):
            raise InvalidStoreUrl("The factory gave a connection of another kind than at first.")
        return made

    store = open_sqlite(again, clock)
    store.check_transactions()
    return store
