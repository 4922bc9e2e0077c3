"""The journal: notes by which ended leases are found without a scan.

A note says: read these schedules, not before that time. The rule of all writers: every occurrence
under way is covered by a note, no later than the end of its lease.

- A claim writes its note first, then the schedules' items. The note has the time for which each row
  was due. While a row still has that time, the claim may yet be written, so the note stays.
- A begin or a renewal moves the end of a lease to a later time. The next reader of the note then
  writes a new one.
- A retry, a release or a wait moves the time to an earlier one, and writes its own note afterwards.
  If that fails, the old note still covers the occurrence.
- A pause without an end keeps retries waiting. They are read each hour, and when the pause ends.
- A note is dropped when all of its schedules were read and covered by new notes.

One note for a whole chunk keeps this cheap: some forty bytes for each row.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Final, NamedTuple

from duetick.stores.dynamodb.layout import Layout
from duetick.stores.dynamodb.occurrences import number, text
from duetick.stores.dynamodb.schema import SCHEMA_KEY
from duetick.stores.dynamodb.table import Item, Key, Table

PARTITION: Final = SCHEMA_KEY[0]
BUCKET_MS: Final = 30_000
ROWS_IN_A_NOTE: Final = 500
AT_LEAST_MS: Final = 3_600_000


def look_at(wake: int, now: int) -> int:
    """Return the time to read a schedule that wakes at `wake`: each hour, if that is far away."""
    return min(wake, now + AT_LEAST_MS)


class NoteLine(NamedTuple):
    """A line of a note: read the schedule at `wake`. Its row was due for the time `seen`."""

    user_id: str
    key: str
    wake: int
    seen: int | None = None


class Note(NamedTuple):
    """A note: lines that are written and dropped together."""

    key: Key
    lines: tuple[NoteLine, ...]


class Journal:
    """The notes of one table."""

    def __init__(self, table: Table, layout: Layout) -> None:
        self._table = table
        self._layout = layout

    def write(self, lines: Iterable[NoteLine]) -> None:
        """Write the lines. Lines of about the same time share a note."""
        ordered = sorted(lines, key=lambda line: line.wake)
        for bucket, together in groupby(ordered, key=lambda line: line.wake // BUCKET_MS):
            for part in _parts(list(together)):
                self._table.put(_item(bucket, part))

    def due(self, now: int) -> Iterator[Note]:
        """Yield the notes that may have a due line, the earliest first."""
        found = self._table.query(
            "p = :p AND s < :s",
            {":p": text(PARTITION), ":s": text(_sort(now // BUCKET_MS + 1, ""))},
            page=50,
        )
        return self._notes(found)

    def all(self) -> Iterator[Note]:
        """Yield every note."""
        return self._notes(self._table.query("p = :p", {":p": text(PARTITION)}, page=50))

    def _notes(self, found: Iterator[Item]) -> Iterator[Note]:
        """Read the notes of a query. The schema's item comes before them."""
        for item in found:
            if item["s"]["S"] == SCHEMA_KEY[1]:
                self._layout.pass_by(item)
            else:
                yield _read(item)

    def drop(self, note: Note) -> None:
        """Delete a note. Other notes must cover all of its schedules by now."""
        self._table.delete(note.key)


def _parts(lines: Sequence[NoteLine]) -> Iterator[Sequence[NoteLine]]:
    rest = iter(lines)
    while part := list(islice(rest, ROWS_IN_A_NOTE)):
        yield part


def _sort(bucket: int, tail: str) -> str:
    return f"{bucket + 10**12:013d}#{tail}"


def _item(bucket: int, lines: Sequence[NoteLine]) -> Item:
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
        NoteLine(user_id, key, first + wake, first + seen[0] if seen else None)
        for user_id, key, wake, *seen in json.loads(item["j"]["S"])
    )
    return Note((item["p"]["S"], item["s"]["S"]), lines)
