"""The one item in which everything happens to a schedule: a claim needs no transaction.

It holds the record, the index row, the high-water mark and `open`: the occurrences under way, and
those that ended since the last claim. What each attribute means:

`v cron tz flow act in pr off pol lab ext anc tim cre upd dis lra max ran` are the record (`ia`: its
input has an item of its own); `x` the index row's own definition where it is not the record's;
`st run` the row's place in the index `due`, `per pat` why and when it was poisoned (`run` stays);
`thru` the mark; `def` the newest definition; `rev` counts every write; `hold` names the occurrence
that keeps others from beginning, `ov` says that none does; `lms` is the lease that a begin takes.

An occurrence says only what the schedule's present definition does not: a change of the
definition therefore writes the old one into those that are under way.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final

from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.lifecycle import ended
from duetick.domain.mirror import row_of
from duetick.domain.occurrences import apart
from duetick.domain.policies import DAY, Overlap
from duetick.domain.schedule import IndexRow, Occurrence, Schedule
from duetick.domain.states import LEASED, State
from duetick.stores.dynamodb.occurrences import (
    Definition,
    Entry,
    definition_of,
    maybe_number,
    maybe_text,
    number,
    put_number,
    put_text,
    read_entry,
    shed,
    slot_of,
    text,
    write_entry,
)
from duetick.stores.dynamodb.records import dump_row, read_record, read_row, write_record
from duetick.stores.dynamodb.schema import DIRECTORIES
from duetick.stores.dynamodb.table import Item, Key

KEPT_MARK_SECONDS: Final = 400 * DAY
"""How long a deleted schedule's high-water mark outlives it: longer than any of its history."""


@dataclass(frozen=True, slots=True)
class Poison:
    """Why a row left the index."""

    error: str
    at: int


@dataclass(slots=True)
class Entity:
    """The item, read. Change it, then `write` it back under its revision.

    `apart`: the record's input is in an item of its own, and None here until it is fetched.
    """

    user_id: str
    key: str
    rev: int = 0
    record: Schedule | None = None
    apart: bool = False
    row: IndexRow | None = None
    poison: Poison | None = None
    fired_through: int | None = None
    defined_at: int = 0
    status: str | None = None
    open: dict[str, Entry] = field(default_factory=dict)

    @property
    def indexed(self) -> IndexRow | None:
        """The index row, unless it is poisoned."""
        return self.row if self.poison is None else None

    @property
    def gone(self) -> bool:
        """Whether there is neither record nor row: what is left is the mark."""
        return self.record is None and self.row is None

    @property
    def schedule(self) -> Schedule | None:
        """The record as callers see it."""
        if self.record is None:
            return None
        row = self.indexed
        return replace(
            self.record,
            next_fire_at=row.next_fire_at if row else None,
            defect=self.poison.error if self.poison else None,
        )

    @property
    def under_way(self) -> list[Entry]:
        """The occurrences that have not ended."""
        return [entry for entry in self.open.values() if not ended(entry.occurrence)]

    def finished(self, now: int) -> list[Entry]:
        """Those that ended and may leave for the history.

        One beyond the mark, or claimed ahead, stays: a change of timing may bring the mark back
        to now, and what is held here is what keeps a claim from making it again.
        """
        return [entry for entry in self.open.values() if self._may_leave(entry.occurrence, now)]

    def _may_leave(self, occurrence: Occurrence, now: int) -> bool:
        if not ended(occurrence) or occurrence.origin != SCHEDULE_ORIGIN:
            return ended(occurrence)
        through = now if self.fired_through is None else min(now, self.fired_through)
        return self.fired_through is not None and occurrence.nominal_at <= through

    def wake(self) -> int | None:
        """When the first of those under way must be looked at: its lease ends, or it is due."""
        return min((wake_of(entry.occurrence) for entry in self.under_way), default=None)

    def mark(self, through: int) -> None:
        """Everything up to `through` is accounted for: nothing of it is ever made again."""
        self.fired_through = max(through, self.fired_through or through)

    def keep(self, occurrence: Occurrence) -> bool:
        """Hold a new occurrence; False where one of its name is held already."""
        name = slot_of(occurrence)
        if name in self.open:
            return False
        self.open[name] = Entry(occurrence)
        return True

    @property
    def known(self) -> list[int]:
        """The nominal times of the schedule itself that are held here: all beyond the mark are."""
        held = (entry.occurrence for entry in self.open.values())
        return [one.nominal_at for one in held if one.origin == SCHEDULE_ORIGIN]

    @property
    def range_ends(self) -> list[int]:
        """Where the ranges end that are held here."""
        held = (entry.occurrence.range_end for entry in self.open.values())
        return [end for end in held if end is not None]

    def account(
        self,
        ranges: Iterable[Occurrence],
        new_id: Callable[[], str],
        left: Iterable[int] = (),
    ) -> None:
        """Hold ranges of times that do not fire, and see that no claim makes them again.

        `left` are times in them that have gone to the history.
        """
        known = [*self.known, *left]
        for held in ranges:
            for part in apart(held, known):
                self.keep(replace(part, id=new_id()))
            self.mark(held.range_end or held.nominal_at)

    def become(self, after: Occurrence, note: str | None = None) -> None:
        """A transition of one that is held."""
        name = slot_of(after)
        self.open[name] = self.open[name].become(after, note)


def wake_of(occurrence: Occurrence) -> int:
    """When an occurrence that has not ended must be looked at."""
    if occurrence.state in LEASED:
        return occurrence.lease_until or 0
    return occurrence.due_at


def item_key(user_id: str, key: str) -> Key:
    """Where a schedule's item is."""
    return f"U#{user_id}", f"S#{key}"


def input_key(user_id: str, key: str) -> Key:
    """Where an input is that is too large for the schedule's item."""
    return f"I#{user_id}/{key}", "I"


def name_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """The user and the key that an item's own key says."""
    return item["p"]["S"].removeprefix("U#"), item["s"]["S"].removeprefix("S#")


def _digest(user_id: str, key: str) -> int:
    data = f"{user_id}\0{key}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest())


def status_of(user_id: str, key: str, shards: int) -> str:
    """The partition of the index `due` that a row stands in."""
    return "active" if shards == 1 else f"active#{_digest(user_id, key) % shards}"


def statuses(shards: int) -> list[str]:
    """Every partition that `status_of` can name."""
    return ["active"] if shards == 1 else [f"active#{shard}" for shard in range(shards)]


def write(entity: Entity, shards: int, now: int) -> Item:
    """The whole item, one revision on. `now` only dates the end of what is gone."""
    partition, sort = item_key(entity.user_id, entity.key)
    item: Item = {"p": text(partition), "s": text(sort), "rev": number(entity.rev + 1)}
    put_number(item, "thru", entity.fired_through)
    put_number(item, "def", entity.defined_at or None)
    if entity.record:
        write_record(item, entity.record, apart=entity.apart)
    if entity.row:
        _write_row(item, entity, entity.row, shards)
    _write_open(item, entity)
    if entity.gone:
        item["ttl"] = number(now // 1_000 + KEPT_MARK_SECONDS)
    else:
        item["dir"] = text(str(_digest(entity.user_id, entity.key) % DIRECTORIES))
    return item


def _write_row(item: Item, entity: Entity, row: IndexRow, shards: int) -> None:
    item["run"] = number(row.next_fire_at)
    if entity.record is None or row != row_of(entity.record, row.next_fire_at):
        item["x"] = text(dump_row(row))
    if entity.poison:
        put_text(item, "per", entity.poison.error[:1_000] or "unreadable")
        item["pat"] = number(entity.poison.at)
    else:
        item["st"] = text(status_of(entity.user_id, entity.key, shards))


def _write_open(item: Item, entity: Entity) -> None:
    usual = _usual(entity.record, entity.row)
    entries = {name: write_entry(entry, usual) for name, entry in entity.open.items()}
    shed([entries[name] for name in sorted(entries)])
    item["open"] = {"M": {name: {"M": entry} for name, entry in entries.items()}}
    source = entity.record or entity.row
    if source:
        item["lms"] = number(source.policies.lease_ms)
        if source.policies.overlap is Overlap.ALLOW:
            item["ov"] = text("a")
    put_text(item, "hold", _holder(entity))
    _write_attention(item, entity)


def _usual(record: Schedule | None, row: IndexRow | None) -> Definition | None:
    source = record or row
    return definition_of(source) if source else None


def _holder(entity: Entity) -> str | None:
    """One that runs. The quick settle of an exclusive one lets go of it without a look at others:
    where there are others, which began when the policy allowed that, one of those is named.
    """
    running = {n: e.occurrence for n, e in entity.open.items() if excludes(e.occurrence)}
    shares = (name for name, one in running.items() if one.policies.overlap is Overlap.ALLOW)
    return next(shares, next(iter(running), None))


def excludes(occurrence: Occurrence) -> bool:
    """Whether it is running, which keeps others of its schedule from beginning, unless they may."""
    return occurrence.state is State.PROCESSING


def _write_attention(item: Item, entity: Entity) -> None:
    held = [entry.occurrence for entry in entity.open.values()]
    dead = [occurrence.nominal_at for occurrence in held if occurrence.state is State.DEAD]
    if entity.poison:
        item |= {"att": text("poisoned"), "aat": number(max(entity.poison.at, *dead, 0))}
    elif dead:
        item |= {"att": text("open"), "aat": number(max(dead))}


def read(item: Mapping[str, Any]) -> Entity:
    """What `write` wrote."""
    user_id, key = name_of(item)
    record = read_record(item, user_id, key) if "v" in item else None
    row = read_row(item, user_id, key, record) if "run" in item else None
    usual = _usual(record, row)
    return Entity(
        user_id=user_id,
        key=key,
        rev=int(item["rev"]["N"]),
        record=record,
        apart="ia" in item,
        row=row,
        poison=Poison(item["per"]["S"], int(item["pat"]["N"])) if "per" in item else None,
        fired_through=maybe_number(item, "thru"),
        defined_at=maybe_number(item, "def") or 0,
        status=maybe_text(item, "st"),
        open={
            name: read_entry(entry["M"], user_id, key, name, usual)
            for name, entry in item["open"]["M"].items()
        },
    )
