"""Over how many partitions the index `due` is spread: now, and ever since rows may be left there.

The schema's item names every number of shards in use; a tick reads all of their partitions. A
number comes into use before the first row is written under it. It goes out in two steps, because
a process may still be writing under it: a rebuild moves all rows and marks it; a later one, which
finds the mark old, moves what came since and forgets it. Who writes under a marked number takes
the mark away, and looks at least once a minute.
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
    """The numbers of shards of one table, and the one that this process writes under."""

    def __init__(self, table: Table, shards: int) -> None:
        self._table = table
        self.shards = shards
        self._looked_at: float | None = None
        self._passed: tuple[float, Item, int | None] | None = None

    def pass_by(self, item: Item) -> None:
        """Take the item from who met it while reading the journal: the next `read` asks nobody."""
        self._passed = (time.time(), item, self._table.date)

    def read(self) -> tuple[Sequence[int], int | None]:
        """Every number in use, and the service's clock where it told."""
        passed, self._passed = self._passed, None
        if passed and 0 <= time.time() - passed[0] < FRESH_SECONDS:
            _, item, date = passed
            return _counts(item), date
        return self._look()

    def _look(self) -> tuple[Sequence[int], int | None]:
        item = self._table.get(SCHEMA_KEY)
        date = self._table.date
        counts = _counts(item)
        if self.shards in counts and not _marked(item, self.shards):
            self._looked_at = time.monotonic()
        return counts, date

    def announce(self) -> None:
        """Before a row is written: every tick has to know of this number."""
        at = time.monotonic()
        if self._looked_at is not None and at - self._looked_at < LOOK_SECONDS:
            return
        self._look()
        if self._looked_at is None or self._looked_at < at:
            self._table.update(SCHEMA_KEY, _use(self.shards))
            self._looked_at = at

    def leaving(self, now: int) -> Mapping[int, int]:
        """The other numbers that were marked long ago, each with its mark."""
        item = self._table.get(SCHEMA_KEY)
        marks = {count: _marked(item, count) for count in _counts(item) if count != self.shards}
        return {c: mark for c, mark in marks.items() if mark and now - mark >= FORGET_AFTER_MS}

    def leave(self, leaving: Mapping[int, int], now: int) -> None:
        """After all rows were moved: forget those, unless they came into use; mark the rest."""
        for count, mark in leaving.items():
            self._try(_forget(count, mark))
        for count in _counts(self._table.get(SCHEMA_KEY)):
            if count != self.shards:
                self._try(_mark(count, now))

    def _try(self, update: Update) -> None:
        try:
            self._table.update(SCHEMA_KEY, update)
        except Conflict:
            return


def usable(item: Item | None) -> Item:
    """The schema's item, where this code can use the table; raise SchemaOutdated where not."""
    if item is None:
        raise SchemaOutdated(f"The table is empty; this code needs version {VERSION}. {MIGRATE}")
    version, oldest = maybe_number(item, "version") or 0, maybe_number(item, "oldest_code") or 0
    check_version(VERSION, version, oldest)
    return item


def _counts(item: Item | None) -> Sequence[int]:
    """A tick asks each time, and so finds out each time: the item is at hand."""
    item = usable(item)
    return sorted(int(count) for count in item["shards"]["NS"])


def _marked(item: Mapping[str, Any] | None, count: int) -> int | None:
    return maybe_number(item or {}, f"left{count}")


def _use(count: int) -> Update:
    names = {"#n": "shards", "#left": f"left{count}"}
    values: Item = {":n": {"NS": [str(count)]}}
    return Update("ADD #n :n REMOVE #left", "attribute_exists(p)", names, values)


def _mark(count: int, now: int) -> Update:
    names = {"#n": "shards", "#left": f"left{count}"}
    condition = "contains(#n, :c) AND attribute_not_exists(#left)"
    return Update("SET #left = :now", condition, names, {":c": number(count), ":now": number(now)})


def _forget(count: int, mark: int) -> Update:
    names = {"#n": "shards", "#left": f"left{count}"}
    values: Item = {":n": {"NS": [str(count)]}, ":mark": number(mark)}
    return Update("DELETE #n :n REMOVE #left", "#left = :mark", names, values)
