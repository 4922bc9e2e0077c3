"""The retention of what has ended: until when an occurrence is kept, and what is never deleted.

Its time begins with its end. Of a schedule that is active or paused, the newest twenty occurrences
stay whatever their age: by nominal time, fires and runs by hand alike. A failure hook is none of
them, and is kept for as long as what is dead. Nothing that is under way is ever deleted.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from duetick.domain.identity import is_failure_hook, is_job
from duetick.domain.occurrence import LATEST, Identity
from duetick.domain.policies import DAY
from duetick.domain.states import State

KEPT_AT_LEAST: Final = 20
"""The newest occurrences of a schedule that stay."""

HELD: Final = LATEST
"""The end of the time of an occurrence that stays as one of the newest twenty."""

LONGEST_DAYS: Final = 365
"""Less than the 400 days for which a mark and the definitions are kept."""


class Days(NamedTuple):
    """The days for which what succeeded or was cancelled is kept, and for which the dead are."""

    ended: int = 30
    dead: int = 90


USUAL_DAYS: Final = Days()


class Ended(Protocol):
    """The parts of an occurrence that has ended which its retention needs."""

    @property
    def nominal_at(self) -> int: ...
    @property
    def origin(self) -> str: ...
    @property
    def flow(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def range_end(self) -> int | None: ...
    @property
    def updated_at(self) -> int: ...


class Newest(NamedTuple):
    """The newest occurrences of one schedule, as its retention sees them.

    `fires` is False if the schedule is done or deleted: nothing of it stays beyond its time.
    `last` is the nominal time and origin of its twentieth occurrence, counted from the newest;
    None if it has fewer.
    """

    fires: bool
    last: tuple[int, str] | None

    def has(self, nominal_at: int, origin: str) -> bool:
        """Return True if the occurrence is one of the newest that stay."""
        return self.fires and (self.last is None or (nominal_at, origin) >= self.last)


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of a deployment: the usual days, and those of single flows."""

    usual: Days = USUAL_DAYS
    of_flow: Mapping[str, Days] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for days in (self.usual, *self.of_flow.values()):
            if not 1 <= days.ended <= days.dead <= LONGEST_DAYS:
                raise ValueError(
                    f"retention: expected days from 1 to {LONGEST_DAYS}, and for the dead no fewer "
                    f"than for the others; got {days.ended} and {days.dead}."
                )

    @property
    def shortest_ms(self) -> int:
        """The time for which everything is kept, of whatever flow."""
        return min(one.ended for one in (self.usual, *self.of_flow.values())) * DAY * 1_000

    @property
    def longest_ms(self) -> int:
        """The time for which anything is kept, but for the newest of a schedule."""
        return max(one.dead for one in (self.usual, *self.of_flow.values())) * DAY * 1_000

    def expires_at(self, one: Ended) -> int:
        """Return the instant from which on an occurrence may be deleted, but for the newest."""
        days = self.of_flow.get(one.flow, self.usual)
        as_dead = one.state == State.DEAD or is_failure_hook(one.origin)
        kept = days.dead if as_dead else days.ended
        return ended_at(one) + kept * DAY * 1_000

    def judge(self, one: Ended, newest: Newest, now: int) -> int | None:
        """Return the instant until which an occurrence stays; None if it leaves now."""
        expires_at = self.expires_at(one)
        if expires_at > now:
            return expires_at
        if is_failure_hook(one.origin):
            return None
        return HELD if newest.has(one.nominal_at, one.origin) else None

    def dump(self) -> str:
        """Return the retention as JSON."""
        return json.dumps({"": self.usual, **self.of_flow}, sort_keys=True)

    @classmethod
    def of(cls, days: int, dead_days: int, by_flow: str) -> "Retention":
        """Return the retention of a deployment's settings.

        `by_flow` is a text such as `billing=365 noise=7/14`: of each flow the days, and those of
        its dead. The dead are kept no shorter than the others.
        """
        found = dict(_read_flow(one, dead_days) for one in by_flow.replace(",", " ").split())
        return cls(Days(days, max(days, dead_days)), found)

    @classmethod
    def load(cls, text: str) -> "Retention":
        """Return the retention that `dump` wrote."""
        found = {flow: Days(*days) for flow, days in json.loads(text).items()}
        return cls(found.pop(""), found)


def _read_flow(text: str, dead_days: int) -> tuple[str, Days]:
    flow, _, numbers = text.partition("=")
    ended, _, dead = numbers.partition("/")
    if not (flow and ended.isdecimal() and (dead or "0").isdecimal()):
        raise ValueError(
            f"retention: expected flow=days or flow=days/days of the dead, got {text[:40]!r}."
        )
    return flow, Days(int(ended), max(int(ended), int(dead) if dead else dead_days))


USUAL: Final = Retention()


def ended_at(one: Ended) -> int:
    """Return the instant at which the retention begins: the end, or its last time if that is later.

    So nothing leaves before its own nominal time is long over, whatever the clocks said. A job has
    a name of its own, and is never made again.
    """
    if is_job(one.origin):
        return one.updated_at
    last = one.nominal_at if one.range_end is None else one.range_end
    return max(one.updated_at, last)


class Retired(NamedTuple):
    """The result of one batch: the names of the occurrences that left, and how many were seen."""

    left: Sequence[Identity] = ()
    seen: int = 0


class Horizon(NamedTuple):
    """The instant up to which occurrences may have been deleted, however the settings changed.

    `past` has each retention before: its time, and the instant up to which it was in force.
    """

    shortest_ms: int
    past: Sequence[tuple[int, int]] = ()

    def at(self, now: int) -> int:
        """Return the instant after which everything that ended is still there."""
        return max(now - self.shortest_ms, *(min(end, now - ms) for ms, end in self.past), 0)

    def change(self, shortest_ms: int, now: int) -> "Horizon":
        """Return the horizon after a change of the retention. A retention that no longer matters is
        dropped.
        """
        if shortest_ms == self.shortest_ms:
            return self
        past = [(ms, end) for ms, end in (*self.past, (self.shortest_ms, now)) if ms < shortest_ms]
        return Horizon(shortest_ms, [(ms, end) for ms, end in past if end > now - shortest_ms])
