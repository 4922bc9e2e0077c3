"""The numbers of shards of the index `due`: the present one, and earlier ones that may have rows.

The schema's item names every number in use; a tick reads the partitions of all of them. A number
comes into use before the first row is written under it. It goes out of use in two steps, because
a process may still write under it. First, a rebuild moves all rows and dates the number. Then a
later rebuild finds that date old enough, moves the rows that came since, and removes the number.
A process that writes under a dated number removes the date; it reads the schema's item at least
once a minute.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from duetick.domain.errors import MIGRATE, SchemaOutdated
from duetick.stores.dynamodb.errors import Conflict
from duetick.stores.dynamodb.occurrences import maybe_number, number
from duetick.stores.dynamodb.schema import SCHEMA_KEY, VERSION
from duetick.stores.dynamodb.table import Item, Table, Update
from duetick.stores.versions import check_version

LOOK_SECONDS: Final = 60
FRESH_SECONDS: Final = 5
FORGET_AFTER_MS: Final = 300_000


class Layout:
    """The numbers of shards of one table. This process writes under `shards`."""

    def __init__(self, table: Table, shards: int) -> None:
        self._table = table
        self.shards = shards
        self._looked_at: float | None = None
        self._passed: tuple[float, Item, int | None] | None = None
        self._announced_jobs = False

    def pass_by(self, item: Item) -> None:
        """Keep the schema's item, found by a read of the journal: `read` then needs no request."""
        self._passed = (time.time(), item, self._table.date)

    def jobs(self) -> Sequence[int]:
        """Return every number in use if there may be jobs, else none.

        The schema's item that a read of the journal has just passed on says so.
        """
        item = self._passed[1] if self._passed else self._table.get(SCHEMA_KEY)
        return _counts(item) if item and "jobs" in item else ()

    def announce_jobs(self) -> None:
        """Say that there are jobs: before the first one is written, no tick looks for any."""
        if not self._announced_jobs:
            self._table.update(SCHEMA_KEY, _HAS_JOBS)
            self._announced_jobs = True

    def read(self) -> tuple[Sequence[int], int | None]:
        """Return every number in use, and the service's clock if it is known."""
        passed, self._passed = self._passed, None
        if passed and 0 <= time.time() - passed[0] < FRESH_SECONDS:
            _, item, date = passed
            return _counts(item), date
        return self._look()

    def _look(self) -> tuple[Sequence[int], int | None]:
        item = self._table.get(SCHEMA_KEY)
        date = self._table.date
        counts = _counts(item)
        if self.shards in counts and not _left_at(item, self.shards):
            self._looked_at = time.monotonic()
        return counts, date

    def announce(self) -> None:
        """Bring this process's number into use. A row may be written only after this."""
        at = time.monotonic()
        if self._looked_at is not None and at - self._looked_at < LOOK_SECONDS:
            return
        self._look()
        if self._looked_at is None or self._looked_at < at:
            self._table.update(SCHEMA_KEY, _use(self.shards))
            self._looked_at = at

    def leaving(self, now: int) -> Mapping[int, int]:
        """Return the other numbers whose dates are old enough, with their dates."""
        item = self._table.get(SCHEMA_KEY)
        dates = {count: _left_at(item, count) for count in _counts(item) if count != self.shards}
        return {c: at for c, at in dates.items() if at and now - at >= FORGET_AFTER_MS}

    def leave(self, leaving: Mapping[int, int], now: int) -> None:
        """Remove the leaving numbers, unless they came back into use, and date the other numbers.

        All rows must have been moved before.
        """
        for count, left_at in leaving.items():
            self._try(_remove(count, left_at))
        for count in _counts(self._table.get(SCHEMA_KEY)):
            if count != self.shards:
                self._try(_date(count, now))

    def _try(self, update: Update) -> None:
        try:
            self._table.update(SCHEMA_KEY, update)
        except Conflict:
            return


def usable(item: Item | None) -> Item:
    """Return the schema's item; raise SchemaOutdated if this code cannot use the table."""
    if item is None:
        raise SchemaOutdated(f"The table is empty; this code needs version {VERSION}. {MIGRATE}")
    version, oldest = maybe_number(item, "version") or 0, maybe_number(item, "oldest_code") or 0
    check_version(VERSION, version, oldest)
    return item


def _counts(item: Item | None) -> Sequence[int]:
    """Return the numbers in use. The item is at hand, so the version is checked at each tick."""
    item = usable(item)
    return sorted(int(count) for count in item["shards"]["NS"])


def _left_at(item: Mapping[str, Any] | None, count: int) -> int | None:
    return maybe_number(item or {}, f"left{count}")


_HAS_JOBS: Final = Update(
    "SET #jobs = :one", "attribute_exists(p)", {"#jobs": "jobs"}, {":one": number(1)}
)


def _use(count: int) -> Update:
    names = {"#n": "shards", "#left": f"left{count}"}
    values: Item = {":n": {"NS": [str(count)]}}
    return Update("ADD #n :n REMOVE #left", "attribute_exists(p)", names, values)


def _date(count: int, now: int) -> Update:
    names = {"#n": "shards", "#left": f"left{count}"}
    condition = "contains(#n, :c) AND attribute_not_exists(#left)"
    return Update("SET #left = :now", condition, names, {":c": number(count), ":now": number(now)})


def _remove(count: int, left_at: int) -> Update:
    names = {"#n": "shards", "#left": f"left{count}"}
    values: Item = {":n": {"NS": [str(count)]}, ":left": number(left_at)}
    return Update("DELETE #n :n REMOVE #left", "#left = :left", names, values)
