"""Which schedules to look at again, and when: what makes lost leases findable without a scan.

A note says: look at these schedules, not before that time. The rule that every writer keeps is
that an occurrence under way is covered by a note no later than the end of its lease.

- A claim writes its note first, then the schedules. A note remembers the time that each row was
  due for: while a row still says so, the claim may yet come, and the note stays.
- A begin or a renewal moves the end of a lease to later; whoever reads the note then writes a new
  one. A retry, a release or a wait moves it to earlier: they write a note of their own
  afterwards, and should that fail, the old one still covers.
- A note goes when everything that it names was looked at and covered anew.

One note for a whole chunk is what keeps this cheap: some forty bytes for each row.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final, NamedTuple

from duetick.stores.dynamodb.layout import Layout
from duetick.stores.dynamodb.occurrences import number, text
from duetick.stores.dynamodb.schema import SCHEMA_KEY
from duetick.stores.dynamodb.table import Item, Key, Table

PARTITION: Final = SCHEMA_KEY[0]
BUCKET_MS: Final = 30_000
ROWS_IN_A_NOTE: Final = 500


class Line(NamedTuple):
    """Look at the schedule at `wake`. `seen` is the time that its row was due for."""

    user_id: str
    key: str
    wake: int
    seen: int | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Some lines, found together."""

    key: Key
    lines: tuple[Line, ...]


class Journal:
    """The notes of one table."""

    def __init__(self, table: Table, layout: Layout) -> None:
        self._table = table
        self._layout = layout

    def write(self, lines: Iterable[Line]) -> None:
        """Note the lines, those of about the same time together."""
        ordered = sorted(lines, key=lambda line: line.wake)
        for bucket, together in groupby(ordered, key=lambda line: line.wake // BUCKET_MS):
            for part in _parts(list(together)):
                self._table.put(_item(bucket, part))

    def due(self, now: int) -> Iterator[Note]:
        """Notes that may name something to look at by now, the earliest first."""
        found = self._table.query(
            "p = :p AND s < :s",
            {":p": text(PARTITION), ":s": text(_sort(now // BUCKET_MS + 1, ""))},
            page=50,
        )
        return self._notes(found)

    def all(self) -> Iterator[Note]:
        """Every note."""
        return self._notes(self._table.query("p = :p", {":p": text(PARTITION)}, page=50))

    def _notes(self, found: Iterator[Item]) -> Iterator[Note]:
        """The schema's item stands ahead of them."""
        for item in found:
            if item["s"]["S"] == SCHEMA_KEY[1]:
                self._layout.pass_by(item)
            else:
                yield _read(item)

    def drop(self, note: Note) -> None:
        """Everything that it names is covered otherwise."""
        self._table.delete(note.key)


def _parts(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    rest = iter(lines)
    while part := list(islice(rest, ROWS_IN_A_NOTE)):
        yield part


def _sort(bucket: int, tail: str) -> str:
    return f"{bucket + 10**12:013d}#{tail}"


def _item(bucket: int, lines: Sequence[Line]) -> Item:
    first = lines[0].wake
    rows = [
        [line.user_id, line.key, line.wake - first]
        + ([] if line.seen is None else [line.seen - first])
        for line in lines
    ]
    return {
        "p": text(PARTITION),
        "s": text(_sort(bucket, secrets.token_hex(6))),
        "t": number(first),
        "j": text(json.dumps(rows, separators=(",", ":"), ensure_ascii=False)),
    }


def _read(item: Item) -> Note:
    first = int(item["t"]["N"])
    lines = tuple(
        Line(user_id, key, first + wake, first + seen[0] if seen else None)
        for user_id, key, wake, *seen in json.loads(item["j"]["S"])
    )
    return Note((item["p"]["S"], item["s"]["S"]), lines)
