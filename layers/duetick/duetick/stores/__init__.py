"""Stores: one contract, and a database behind it. Only the chosen one is imported."""

from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from duetick.domain.errors import InvalidStoreUrl
from duetick.ports import Clock, Store

_KNOWN = "sqlite:///file.db, sqlite:// (memory), postgresql://…, dynamodb://table?region=…"


def open_store(url: str | Callable[[], object], *, clock: Clock | None = None) -> Store:
    """The store at an address, or on connections of a factory of your own. Never runs DDL.

    `clock` replaces the store's own (milliseconds since the epoch).
    """
    if callable(url):
        return _open_connections(url, clock)
    scheme, separator, _ = url.partition("://")
    if scheme == "sqlite":
        return _open_sqlite(url, clock)
    if scheme == "dynamodb":
        return _open_dynamodb(url, clock)
    if scheme in ("postgresql", "postgres"):
        return _open_postgres(url, clock)
    begins = repr(scheme[:20]) if separator else "no scheme"
    raise InvalidStoreUrl(f"No store has an address that begins with {begins}. Known: {_KNOWN}.")


def _open_sqlite(url: str, clock: Clock | None) -> Store:
    from duetick.stores.sqlite.database import connect_file
    from duetick.stores.sqlite.store import open_sqlite

    parts = urlsplit(url)
    if parts.netloc:
        raise InvalidStoreUrl(
            f"{url!r} names a host. A file is sqlite:///relative.db or sqlite:////absolute.db."
        )
    return open_sqlite(connect_file(unquote(parts.path)[1:] or ":memory:"), clock)


def _open_dynamodb(url: str, clock: Clock | None) -> Store:
    from duetick.stores.dynamodb.store import open_dynamodb

    return open_dynamodb(url, clock)


def _open_postgres(url: str, clock: Clock | None) -> Store:
    from duetick.stores.postgres.store import open_postgres

    return open_postgres(url, clock)


def _open_connections(connect: Callable[[], object], clock: Clock | None) -> Store:
    from duetick.stores.connections import open_connections

    return open_connections(connect, clock)
