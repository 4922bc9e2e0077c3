"""The decision which times of a due index row fire, shared by claim, explain and verify."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from duetick.domain.expression import count, fires, newest, next_fire
from duetick.domain.occurrence import IndexRow, Missed
from duetick.domain.policies import Misfire, Policies

MOST_AT_ONCE: Final = 100_000
"""The most times of one list: more than a day of grace of a schedule that fires each second."""


class Decision(NamedTuple):
    """The fate of every nominal time up to now, and the time at which the row is due again."""

    fires: tuple[int, ...]
    missed: tuple[Missed, ...]
    next_at: int | None


@dataclass(frozen=True, slots=True)
class Times:
    """The nominal times that the expression of a row names, within the schedule's window."""

    cron: str
    timezone: str | None
    anchor: int
    policies: Policies

    @classmethod
    def of(cls, row: IndexRow) -> "Times":
        """Return the times of an index row."""
        return cls(row.cron, row.timezone, row.anchor, row.policies)

    def after(self, instant: int) -> int | None:
        """Return the first time later than `instant`, or None."""
        p, since = self.policies, self._since(instant)
        found = next_fire(
            self.cron, self.timezone, since, gap=p.gap, repeat=p.repeat, anchor=self.anchor
        )
        return None if found is None or found > self._until(found) else found

    def names(self, at: int) -> bool:
        """Return True if `at` is one of the times."""
        return self.after(at - 1) == at

    def between(self, after: int, until: int, limit: int = MOST_AT_ONCE) -> list[int]:
        """Return the first times in (after, until], at most `limit`."""
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
            limit=limit,
        )

    def count(self, after: int, until: int) -> int:
        """Count the times in (after, until]."""
        p, since, end = self.policies, self._since(after), self._until(until)
        if end <= since:
            return 0
        return count(
            self.cron, self.timezone, since, end, gap=p.gap, repeat=p.repeat, anchor=self.anchor
        )

    def newest(self, after: int, until: int) -> int | None:
        """Return the last time in (after, until], or None."""
        p, since, end = self.policies, self._since(after), self._until(until)
        if end <= since:
            return None
        return newest(
            self.cron, self.timezone, since, end, gap=p.gap, repeat=p.repeat, anchor=self.anchor
        )

    def gaps(self, after: int, until: int) -> Iterator[tuple[int, int]]:
        """Yield the spans (after, until] in which times may fire: all of it."""
        yield after, until

    def _since(self, after: int) -> int:
        """Return `after`, or the start of the window if that is later."""
        start = self.policies.starts_at
        return after if start is None else max(after, start - 1)

    def _until(self, until: int) -> int:
        """Return `until`, or the end of the window if that is earlier."""
        end = self.policies.ends_at
        return until if end is None else min(until, end)


@dataclass(frozen=True, slots=True)
class TimesOutside(Times):
    """The nominal times outside of some spans: each from its first instant until before its end.

    The spans are in order, and do not overlap.
    """

    holes: tuple[tuple[int, int], ...] = ()

    def after(self, instant: int) -> int | None:
        """See `Times`."""
        found = Times.after(self, instant)
        for first, end in self.holes:
            if found is not None and first <= found < end:
                found = Times.after(self, end - 1)
        return found

    def between(self, after: int, until: int, limit: int = MOST_AT_ONCE) -> list[int]:
        """See `Times`."""
        found: list[int] = []
        for start, end in self.gaps(after, until):
            found += Times.between(self, start, end, limit - len(found))
        return found

    def count(self, after: int, until: int) -> int:
        """See `Times`."""
        return sum(Times.count(self, start, end) for start, end in self.gaps(after, until))

    def newest(self, after: int, until: int) -> int | None:
        """See `Times`."""
        gaps = reversed(list(self.gaps(after, until)))
        found = (Times.newest(self, start, end) for start, end in gaps)
        return next((time for time in found if time is not None), None)

    def gaps(self, after: int, until: int) -> Iterator[tuple[int, int]]:
        """Yield the spans (after, until] outside of the holes."""
        for first, end in self.holes:
            if after < min(first - 1, until):
                yield after, min(first - 1, until)
            after = max(after, end - 1)
        if after < until:
            yield after, until


def move_past_mark(row: IndexRow, mark: int | None) -> IndexRow | None:
    """Return the row at its first time beyond the mark; None if there is none.

    The time differs only if the row was set back.
    """
    if mark is None or row.next_fire_at > mark:
        return row
    following = Times.of(row).after(mark)
    return None if following is None else replace(row, next_fire_at=following)


def may_count_from_anchor(cron: str) -> bool:
    """Return True if the times may depend on the anchor: only a rate's do.

    If "rate" stands elsewhere in the text, the row only costs a separate decision.
    """
    return "rate" in cron.lower()


def decide(
    row: IndexRow, now: int, ahead: int = 0, holes: tuple[tuple[int, int], ...] = ()
) -> Decision:
    """Decide which times of a due row fire. A time past its grace goes to the misfire policy.

    With `ahead`, the times in (now, now + ahead] fire as well: no policy applies to the future.
    The times in `holes` are left out, as if nothing named them.
    Raises ValueError if the expression or the zone cannot be read.
    """
    times, first, end = Times.of(row), row.next_fire_at, now + ahead
    if holes:
        p = row.policies
        times = TimesOutside(row.cron, row.timezone, row.anchor, p, holes)
        if any(start <= first < stop for start, stop in holes):
            following = times.after(first)
            if following is None or following > end:
                return Decision((), (), following)
            first = following
    grace = row.policies.on_time_ms
    if now - first > grace:
        return _decide_late(times, first, now, now - grace - 1, end)
    following = times.after(first)
    if following is None or following > end:
        return Decision((first,), (), following)
    return Decision((first, *times.between(first, end)), (), times.after(end))


def _decide_late(times: Times, first: int, now: int, edge: int, end: int) -> Decision:
    """Decide about a row whose first time is past its grace. `edge` is the last instant past it."""
    following, young = times.after(edge), tuple[int, ...]()
    if following is not None and following <= end:
        young, following = tuple(times.between(edge, end)), times.after(end)
    on_time = bool(young) and young[0] <= now
    caught_up = _catch_up(times, first, edge, on_time, now)
    missed = collapse(times, first, caught_up[0] - 1 if caught_up else edge)
    return Decision((*caught_up, *young), missed, following)


def _catch_up(times: Times, first: int, edge: int, on_time: bool, now: int) -> tuple[int, ...]:
    """Return the times in [first, edge] that still fire."""
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
    """Return the last `wanted` times in [oldest, edge], ascending. `first` is one of the times."""
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


def collapse(times: Times, first: int, until: int) -> tuple[Missed, ...]:
    """Return the times in [first, until] as one range, or as one for each gap between holes."""
    missed: list[Missed] = []
    for after, end in times.gaps(first - 1, until):
        start = first if after == first - 1 else times.after(after)
        if start is not None and start <= end:
            last = times.newest(start, end)
            count = 0 if last is None else times.count(start, end)
            missed.append(Missed(start, last or start, 1 + count))
    return tuple(missed)
