"""What fires for an index row that is due: the one decision of claim, explain and verify."""

from dataclasses import dataclass, replace
from typing import Final

from duetick.domain.expression import count, fires, newest, next_fire
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import IndexRow

MOST_AT_ONCE: Final = 100_000
"""More than a day of grace of a schedule that fires each second."""


@dataclass(frozen=True, slots=True)
class Missed:
    """Nominal times that do not fire, collapsed into one range."""

    first: int
    last: int
    count: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of every nominal time up to now, and when the row is due again."""

    fires: tuple[int, ...]
    missed: tuple[Missed, ...]
    next_at: int | None


@dataclass(frozen=True, slots=True)
class Times:
    """The nominal times of one row: its own next one, then those that its expression names."""

    cron: str
    timezone: str | None
    anchor: int
    policies: Policies

    @classmethod
    def of(cls, row: IndexRow) -> "Times":
        """The times of an index row."""
        return cls(row.cron, row.timezone, row.anchor, row.policies)

    def after(self, instant: int) -> int | None:
        """The first one later than `instant`."""
        p, since = self.policies, self._since(instant)
        found = next_fire(
            self.cron, self.timezone, since, gap=p.gap, repeat=p.repeat, anchor=self.anchor
        )
        return None if found is None or found > self._until(found) else found

    def between(self, after: int, until: int) -> list[int]:
        """Those in (after, until]."""
        p, since, end = self.policies, self._since(after), self._until(until)
        if end <= since:
            return []
        return fires(
            self.cron,
            self.timezone,
            since,
            end,
            gap=p.gap,
            repeat=p.repeat,
            anchor=self.anchor,
            limit=MOST_AT_ONCE,
        )

    def count(self, after: int, until: int) -> int:
        """How many are in (after, until]."""
        p, since, end = self.policies, self._since(after), self._until(until)
        if end <= since:
            return 0
        return count(
            self.cron, self.timezone, since, end, gap=p.gap, repeat=p.repeat, anchor=self.anchor
        )

    def newest(self, after: int, until: int) -> int | None:
        """The last one in (after, until]."""
        p, since, end = self.policies, self._since(after), self._until(until)
        if end <= since:
            return None
        return newest(
            self.cron, self.timezone, since, end, gap=p.gap, repeat=p.repeat, anchor=self.anchor
        )

    def _since(self, after: int) -> int:
        """Where the window begins, if that is later."""
        start = self.policies.starts_at
        return after if start is None else max(after, start - 1)

    def _until(self, until: int) -> int:
        """Where the window ends, if that is earlier."""
        end = self.policies.ends_at
        return until if end is None else min(until, end)


def unfired(row: IndexRow, fired_through: int | None) -> IndexRow | None:
    """The row at its first time that has not fired; None where there is none.

    Only a row that was set back differs. `fired_through` is the newest time that was claimed.
    """
    if fired_through is None or row.next_fire_at > fired_through:
        return row
    following = Times.of(row).after(fired_through)
    return None if following is None else replace(row, next_fire_at=following)


def may_count_from_anchor(cron: str) -> bool:
    """Whether its times may: only a rate's do, so that any other row's anchor is no matter.

    A text in which "rate" stands somewhere else costs a decision of its own, no more.
    """
    return "rate" in cron.lower()


def decide(row: IndexRow, now: int, ahead: int = 0) -> Decision:
    """On time each fires; what is past its grace goes to the misfire policy.

    With `ahead`, the times of (now, now + ahead] fire as well: no policy applies to the future.
    Raises ValueError where the expression or the zone cannot be read.
    """
    times, first, end = Times.of(row), row.next_fire_at, now + ahead
    grace = row.policies.on_time_ms
    if now - first > grace:
        return _decide_late(times, first, now, now - grace - 1, end)
    following = times.after(first)
    if following is None or following > end:
        return Decision((first,), (), following)
    return Decision((first, *times.between(first, end)), (), times.after(end))


class Decisions:
    """Decides once for all rows of a claim that are alike; raises as `decide` does."""

    __slots__ = ("_ahead", "_known", "_now")

    def __init__(self, now: int, ahead: int = 0) -> None:
        self._now = now
        self._ahead = ahead
        self._known: dict[tuple[object, ...], Decision] = {}

    def of(self, row: IndexRow) -> Decision:
        """What becomes of a row."""
        anchor = row.anchor if may_count_from_anchor(row.cron) else 0
        group = (row.cron, row.timezone, row.next_fire_at, anchor, row.policies)
        decision = self._known.get(group)
        if decision is None:
            decision = self._known[group] = decide(row, self._now, self._ahead)
        return decision


def _decide_late(times: Times, first: int, now: int, edge: int, end: int) -> Decision:
    """`edge` is the last instant that is past its grace; `first` is at or before it."""
    young = tuple(times.between(edge, end))
    on_time = bool(young) and young[0] <= now
    caught_up = _catch_up(times, first, edge, on_time, now)
    missed = _collapse(times, first, caught_up[0] - 1 if caught_up else edge)
    return Decision((*caught_up, *young), missed, times.after(end))


def _catch_up(times: Times, first: int, edge: int, on_time: bool, now: int) -> tuple[int, ...]:
    """Those of [first, edge] that still fire."""
    policies = times.policies
    longest = policies.longest_lateness
    oldest = first if longest is None else max(first, now - longest * 1_000)
    match policies.misfire:
        case Misfire.SKIP:
            return ()
        case Misfire.LATEST:
            return () if on_time else tuple(_last(times, first, oldest, edge, 1))
        case Misfire.ALL:
            return tuple(_last(times, first, oldest, edge, policies.catch_up))


def _last(times: Times, first: int, oldest: int, edge: int, wanted: int) -> list[int]:
    """The last `wanted` of [oldest, edge], ascending; `first` counts as one of the times."""
    found: list[int] = []
    until = edge
    while len(found) < wanted:
        last = times.newest(max(first, oldest - 1), until)
        if last is None:
            if first >= oldest:
                found.append(first)
            break
        found.append(last)
        until = last - 1
    return found[::-1]


def _collapse(times: Times, first: int, until: int) -> tuple[Missed, ...]:
    """[first, until] as one range; empty where nothing is in it."""
    if until < first:
        return ()
    last = times.newest(first, until)
    return (Missed(first, first if last is None else last, 1 + times.count(first, until)),)
