"""Open a store by its address. Only the chosen backend is imported."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from duetick.core.store import Store
from duetick.domain.cadence import EACH_MINUTE
from duetick.domain.errors import InvalidStoreUrl
from duetick.ports import Clock, Shelf

if TYPE_CHECKING:
    from duetick.core.managed.watched import Followers
    from duetick.domain.retention import Retention

_KNOWN = "sqlite:///file.db, sqlite:// (memory), postgresql://…, dynamodb://table?region=…"


def open_store(
    url: str | Callable[[], object],
    *,
    clock: Clock | None = None,
    look_ahead: bool = False,
    tick_seconds: int = EACH_MINUTE,
    retention: "Retention | None" = None,
    followers: "Followers | None" = None,
) -> Store:
    """Open the store at an address, or on the connections of a factory. Never runs DDL.

    `clock` replaces the store's clock (milliseconds since the epoch). With `look_ahead`, ticks
    claim ahead, so a put may accept a rate below a minute. A tick comes each `tick_seconds`: a put
    of a schedule that fires more often answers with a `warning`. `retention` is for DynamoDB, whose
    items have their expiry; elsewhere a purge takes it. `followers` makes it a managed store (see
    `Store`).
    """
    shelf = _open_shelf(url, retention, checks_clock=clock is None)
    return Store(
        shelf, clock, look_ahead=look_ahead, tick_seconds=tick_seconds, followers=followers
    )


def _open_shelf(
    url: str | Callable[[], object], retention: "Retention | None", *, checks_clock: bool
) -> Shelf:
    if callable(url):
        from duetick.stores.connections import open_connections

        return open_connections(url)
    scheme, separator, _ = url.partition("://")
    if scheme == "sqlite":
        return _open_sqlite(url)
    if scheme == "dynamodb":
        from duetick.stores.dynamodb.shelf import open_dynamodb

        if retention is None:
            return open_dynamodb(url, checks_clock=checks_clock)
        return open_dynamodb(url, checks_clock=checks_clock, retention=retention)
    if scheme in ("postgresql", "postgres"):
        from duetick.stores.postgres.shelf import open_postgres

        return open_postgres(url)
    begins = repr(scheme[:20]) if separator else "no scheme"
    raise InvalidStoreUrl(f"No store has an address that begins with {begins}. Known: {_KNOWN}.")


def _open_sqlite(url: str) -> Shelf:
    from duetick.stores.sqlite.database import connect_file
    from duetick.stores.sqlite.shelf import open_sqlite

    parts = urlsplit(url)
    if parts.netloc:
        raise InvalidStoreUrl(
            "The address names a host. A file is sqlite:///relative.db or sqlite:////absolute.db."
        )
    return open_sqlite(connect_file(unquote(parts.path)[1:] or ":memory:"))
