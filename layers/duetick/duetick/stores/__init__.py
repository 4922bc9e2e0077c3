"""Stores: one contract, and a database behind it. Only the chosen one is imported."""

from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from duetick.domain.errors import InvalidStoreUrl
from duetick.ports import Clock, Store

_KNOWN = "sqlite:///file.db, sqlite:// (memory), postgresql://…, dynamodb://table?region=…"


def open_store(
    url: str | Callable[[], object], *, clock: Clock | None = None, look_ahead: bool = False
) -> Store:
    """The store at an address, or on connections of a factory of your own. Never runs DDL.

    `clock` replaces the store's own (milliseconds since the epoch). `look_ahead` says that ticks
    claim ahead, so that a put may accept a rate below a minute.
    """
    if callable(url):
        return _open_connections(url, clock, look_ahead)
    scheme, separator, _ = url.partition("://")
    if scheme == "sqlite":
        return _open_sqlite(url, clock, look_ahead)
    if scheme == "dynamodb":
        return _open_dynamodb(url, clock, look_ahead)
    if scheme in ("postgresql", "postgres"):
        return _open_postgres(url, clock, look_ahead)
    begins = repr(scheme[:20]) if separator else "no scheme"
    raise InvalidStoreUrl(f"No store has an address that begins with {begins}. Known: {_KNOWN}.")


def _open_sqlite(url: str, clock: Clock | None, look_ahead: bool) -> Store:
    from duetick.stores.sqlite.database import connect_file
    from duetick.stores.sqlite.store import open_sqlite

    parts = urlsplit(url)
    if parts.netloc:
        raise InvalidStoreUrl(
            f"{url!r} names a host. A file is sqlite:///relative.db or sqlite:////absolute.db."
        )
    return open_sqlite(
        connect_file(unquote(parts.path)[1:] or ":memory:"), clock, look_ahead=look_ahead
    )


def _open_dynamodb(url: str, clock: Clock | None, look_ahead: bool) -> Store:
    from duetick.stores.dynamodb.store import open_dynamodb

    return open_dynamodb(url, clock, look_ahead=look_ahead)


def _open_postgres(url: str, clock: Clock | None, look_ahead: bool) -> Store:
    from duetick.stores.postgres.store import open_postgres

    return open_postgres(url, clock, look_ahead=look_ahead)


def _open_connections(
    connect: Callable[[], object], clock: Clock | None, look_ahead: bool
) -> Store:
    from duetick.stores.connections import open_connections

    return open_connections(connect, clock, look_ahead=look_ahead)
