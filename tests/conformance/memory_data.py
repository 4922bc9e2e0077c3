"""The dictionaries behind the store that was written from the README."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import RLock

from duetick.domain import mirror
from duetick.domain.creation import Made
from duetick.domain.occurrences import apart
from duetick.domain.schedule import Identity, IndexRow, Occurrence, Schedule
from duetick.domain.states import Reason
from duetick.ports import (
    Event,
)
from duetick.stores.ids import new_id


@dataclass
class Kept:
    """All that there is of one user's key."""

    record: Schedule | None = None
    row: IndexRow | None = None
    poison: Occurrence | None = None
    mark: int | None = None
    definitions: list[Schedule] = field(default_factory=list)

    @property
    def indexed(self) -> IndexRow | None:
        return None if self.poison else self.row

    @property
    def defined_at(self) -> int:
        return self.definitions[-1].timing if self.definitions else 0


@dataclass
class Data:
    """What the three parts share. Whoever holds the lock is alone: that is a transaction."""

    lock: RLock = field(default_factory=RLock)
    kept: dict[tuple[str, str], Kept] = field(default_factory=dict)
    ledger: dict[Identity, Occurrence] = field(default_factory=dict)
    events: dict[Identity, list[Event]] = field(default_factory=dict)
    caller_keys: dict[tuple[str, str], tuple[Identity, int]] = field(default_factory=dict)
    runs: dict[tuple[str, int], int] = field(default_factory=dict)
    made: dict[tuple[str, str], tuple[Made, int]] = field(default_factory=dict)

    def of(self, user_id: str, key: str) -> Kept:
        return self.kept.setdefault((user_id, key), Kept())

    def record(self, made: Iterable[Occurrence]) -> list[Occurrence]:
        """Those that were not in the ledger: nothing is made twice."""
        parts = [part for one in made for part in apart(one, self._fired(one))]
        new = [replace(one, id=new_id()) for one in parts if one.identity not in self.ledger]
        self.ledger |= {one.identity: one for one in new}
        return new

    def account(self, made: Sequence[Occurrence]) -> list[Occurrence]:
        """Record what was claimed or does not fire: nothing up to there is claimed any more."""
        for one in made:
            kept, through = self.of(one.user_id, one.key), one.range_end or one.nominal_at
            kept.mark = max(through, kept.mark or through)
        return self.record(made)

    def _fired(self, held: Occurrence) -> list[int]:
        name = (held.user_id, held.key, "schedule")
        return [time for user, key, time, origin in self.ledger if (user, key, origin) == name]

    def move(self, after: Occurrence, note: str | None = None) -> Occurrence:
        before, self.ledger[after.identity] = self.ledger[after.identity], after
        if note is not None:
            event = Event(after.updated_at, before.state, after.state, note)
            self.events.setdefault(after.identity, []).append(event)
        return after

    def fires_no_more(self, record: Schedule, reason: Reason, now: int) -> None:
        """Take it off the index. What was due is accounted for, what was defined stays dated."""
        kept = self.of(record.user_id, record.key)
        before = mirror.Before(record, kept.indexed, kept.mark, kept.defined_at)
        self.account(mirror.unfired_so_far(before, now, reason))
        end = max(now, kept.defined_at + 1)
        kept.definitions.append(replace(record, enabled=False, timing=end))
        kept.row, kept.poison = None, None

    def erase(self, user_id: str) -> int:
        mine = [self.kept.pop(name) for name in list(self.kept) if name[0] == user_id]
        self.ledger = {name: one for name, one in self.ledger.items() if name[0] != user_id}
        self.events = {name: some for name, some in self.events.items() if name[0] != user_id}
        self.runs = {name: one for name, one in self.runs.items() if name[0] != user_id}
        self.made = {name: one for name, one in self.made.items() if name[0] != user_id}
        self.caller_keys = {k: v for k, v in self.caller_keys.items() if v[0][0] != user_id}
        return sum(kept.record is not None for kept in mine)

    def siblings(self, one: Occurrence | Schedule) -> Iterator[Occurrence]:
        for other in list(self.ledger.values()):
            if (other.user_id, other.key) == (one.user_id, one.key):
                yield other
