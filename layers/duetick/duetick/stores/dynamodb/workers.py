"""Locks and the reports of workers on DynamoDB: each is one item, in a partition of its kind."""

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from duetick.domain.policies import DAY
from duetick.domain.workers import REPORTS_KEPT_MS, NamedLock, Worker, WorkerKind
from duetick.stores.dynamodb.errors import Conflict
from duetick.stores.dynamodb.occurrences import maybe_number, number, put_number, text
from duetick.stores.dynamodb.table import Item, Key, Table, Update, key_attributes

LOCKS: Final = "L"
WORKERS: Final = "W"


def _sort(started_at: int, name: str = "") -> str:
    return f"{started_at:017d}#{name}"


class Workers:
    """The locks and workers of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def acquire(self, lock: NamedLock, now: int) -> bool:
        """See `ports.Shelf`."""
        return self._update(
            (LOCKS, lock.name),
            Update(
                "SET #o = :o, #s = :s, #u = :u, #ttl = :ttl",
                "attribute_not_exists(p) OR #o = :o OR #u <= :now",
                {"#o": "owner", "#s": "since", "#u": "until", "#ttl": "ttl"},
                {
                    ":o": text(lock.owner),
                    ":s": number(lock.since),
                    ":u": number(lock.until),
                    ":ttl": number(_forgotten_at(lock.until)),
                    ":now": number(now),
                },
            ),
        )

    def extend(self, name: str, owner: str, until: int) -> bool:
        """See `ports.Shelf`."""
        return self._update(
            (LOCKS, name),
            Update(
                "SET #u = :u, #ttl = :ttl",
                "#o = :o",
                {"#o": "owner", "#u": "until", "#ttl": "ttl"},
                {
                    ":o": text(owner),
                    ":u": number(until),
                    ":ttl": number(_forgotten_at(until)),
                },
            ),
        )

    def unlock(self, name: str, owner: str) -> bool:
        """See `ports.Shelf`."""
        try:
            self._table.delete_if(
                (LOCKS, name), Update("", "#o = :o", {"#o": "owner"}, {":o": text(owner)})
            )
        except Conflict:
            return False
        return True

    def _update(self, key: Key, update: Update) -> bool:
        try:
            return bool(self._table.update(key, update))
        except Conflict:
            return False

    def locks(self) -> Sequence[NamedLock]:
        """See `ports.Shelf`."""
        items = self._table.query("p = :p", {":p": text(LOCKS)})
        return [
            NamedLock(
                one["s"]["S"],
                one["owner"]["S"],
                int(one["since"]["N"]),
                int(one["until"]["N"]),
            )
            for one in items
        ]

    def report(self, worker: Worker) -> None:
        """See `ports.Shelf`."""
        item: Item = key_attributes((WORKERS, _sort(worker.started_at, worker.id))) | {
            "kind": text(worker.kind),
            "silent": number(worker.silent_at),
            "late": number(worker.lateness_ms),
            "counts": text(json.dumps(dict(worker.counts), sort_keys=True)),
            "ttl": number((worker.started_at + REPORTS_KEPT_MS) // 1_000),
        }
        put_number(item, "ended", worker.ended_at)
        put_number(item, "lost", worker.lost_at)
        self._table.put(item)

    def workers(self, since: int, limit: int) -> Sequence[Worker]:
        """See `ports.Shelf`."""
        values = {":p": text(WORKERS), ":since": text(_sort(since))}
        condition = "p = :p AND s >= :since"
        items = self._table.query(condition, values, forward=False, page=limit)
        return [_read(item) for item in islice(items, limit)]


def _forgotten_at(until: int) -> int:
    """Return the expiry of a lock that nobody deleted, in seconds."""
    return until // 1_000 + DAY


def _read(item: Mapping[str, Any]) -> Worker:
    started, _, name = item["s"]["S"].partition("#")
    return Worker(
        id=name,
        kind=cast("WorkerKind", item["kind"]["S"]),
        started_at=int(started),
        silent_at=int(item["silent"]["N"]),
        ended_at=maybe_number(item, "ended"),
        lost_at=maybe_number(item, "lost"),
        lateness_ms=int(item["late"]["N"]),
        counts=json.loads(item["counts"]["S"]),
    )
