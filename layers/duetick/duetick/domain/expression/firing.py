"""The instants of local minutes: the rules of C-01, for each stretch of a zone's clock.

Within a stretch, an instant is its local time minus the offset. Between two stretches the clock
changes, and the rules apply:

- A *fixed* almanac fires when the clock first reaches a named minute. If a forward change passes
  the minute, the almanac fires at the change. Minutes below `Zone.fresh` are repeated.
- Any other almanac fires whenever a named minute begins on the clock. It also fires at a change
  that lands inside a named minute (offsets of the nineteenth century were not whole minutes).

The three plans have the same methods.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from duetick.domain.expression.almanac import FIRST_DAY, NEVER, NEVER_DAY

if TYPE_CHECKING:
    from duetick.domain.expression.almanac import Almanac
    from duetick.domain.expression.zones import Zone

MINUTE = 60_000
DAY = 86_400_000
HORIZON = NEVER_DAY * DAY
DAWN, DUSK = (FIRST_DAY + 2) * DAY, HORIZON + 2 * DAY  # the bounds of every search


class Options:
    """The two choices of C-01. They apply only to fixed almanacs and to `at(…)`."""

    __slots__ = ("once", "run")

    def __init__(self, *, run: bool, once: bool) -> None:
        """With `run`, skipped times fire. With `once`, repeated times fire once."""
        self.run: Final = run
        self.once: Final = once


class Recurring:
    """A plan that fires at the minutes of an almanac. `targets` are a day map's, by name."""

    __slots__ = ("almanac", "targets")

    def __init__(self, almanac: Almanac, targets: tuple[tuple[str, str], ...] = ()) -> None:
        """Take the almanac of all targets, and the text of each target's days."""
        self.almanac: Final = almanac
        self.targets: Final = targets

    def next(self, zone: Zone, after: int, options: Options, _anchor: int) -> int | None:
        """Return the first fire later than `after`, or None."""
        almanac, fresh = self.almanac, zone.fresh
        once = options.once and almanac.fixed
        i = bisect_right(zone.starts, after)
        searched, found = 1, 0
        while True:
            offset = zone.offsets[i]
            minute = (after + offset) // MINUTE + 1
            if once and minute < fresh[i]:
                minute = fresh[i]
            if not searched <= minute <= found:  # a rare date may lie many stretches ahead
                searched, found = minute, almanac.first(minute)
            time = found * MINUTE - offset
            if time < zone.ends[i]:
                return time if found < NEVER else None
            after = zone.ends[i] - 1
            i += 1
            if self._at_change(zone, i, options):
                return zone.starts[i - 1]

    def newest(
        self, zone: Zone, after: int, until: int, options: Options, _anchor: int
    ) -> int | None:
        """Return the last fire in (after, until], or None."""
        once = options.once and self.almanac.fixed
        i = bisect_right(zone.starts, until)
        searched, found = 0, 1
        while True:
            start = zone.starts[i - 1] if i else after
            low = self._first_minute(zone, i, max(start - 1, after), once)
            minute = (until + zone.offsets[i]) // MINUTE
            if not found <= minute <= searched:  # a rare date may lie many stretches back
                searched, found = minute, self.almanac.last(minute)
            if found >= low:
                return found * MINUTE - zone.offsets[i]
            if start <= after:
                return None
            if self._at_change(zone, i, options):
                return start
            i, until = i - 1, start - 1

    def count(self, zone: Zone, after: int, until: int, options: Options, _anchor: int) -> int:
        """Count the fires in (after, until]."""
        once = options.once and self.almanac.fixed
        total = 0
        for i in range(bisect_right(zone.starts, after), bisect_right(zone.starts, until) + 1):
            start = zone.starts[i - 1] if i else after
            low = self._first_minute(zone, i, max(start - 1, after), once)
            last = min(until, zone.ends[i] - 1)
            total += self.almanac.count(low, max(low, (last + zone.offsets[i]) // MINUTE + 1))
            if start > after and self._at_change(zone, i, options):
                total += not self._reads(zone, i)
        return total

    def _first_minute(self, zone: Zone, i: int, after: int, once: bool) -> int:
        minute = (after + zone.offsets[i]) // MINUTE + 1
        return max(minute, zone.fresh[i]) if once else minute

    def _at_change(self, zone: Zone, i: int, options: Options) -> bool:
        """Return True if the change that begins stretch `i` makes the plan fire by itself."""
        start = zone.starts[i - 1]
        before, landed = start + zone.offsets[i - 1], start + zone.offsets[i]
        if self.almanac.fixed:
            low = zone.fresh[i] if options.once else -(-before // MINUTE)
            skips = options.run and low * MINUTE < landed
            return skips and self.almanac.first(low) * MINUTE < landed
        minute = landed // MINUTE
        inside = landed % MINUTE != 0 and minute != (before - 1) // MINUTE
        return inside and self.almanac.first(minute) == minute

    def _reads(self, zone: Zone, i: int) -> bool:
        """Return True if a named minute begins at the start of stretch `i`."""
        minute, rest = divmod(zone.starts[i - 1] + zone.offsets[i], MINUTE)
        return rest == 0 and self.almanac.first(minute) == minute


class Interval:
    """A plan that fires at anchor + k * step for every whole k, in any zone (T-09)."""

    __slots__ = ("step", "targets")

    def __init__(self, step: int) -> None:
        """Take the step in milliseconds."""
        self.step: Final = step
        self.targets: tuple[tuple[str, str], ...] = ()

    def next(self, _zone: Zone, after: int, _options: Options, anchor: int) -> int | None:
        """Return the first fire later than `after`, or None."""
        time = after + self.step - (after - anchor) % self.step
        return time if time < HORIZON else None

    def newest(
        self, _zone: Zone, after: int, until: int, _options: Options, anchor: int
    ) -> int | None:
        """Return the last fire in (after, until], or None."""
        until = min(until, HORIZON - 1)
        time = until - (until - anchor) % self.step
        return time if time > after else None

    def count(self, _zone: Zone, after: int, until: int, _options: Options, anchor: int) -> int:
        """Count the fires in (after, until]."""
        until = min(until, HORIZON - 1)
        return max(0, (until - anchor) // self.step - (after - anchor) // self.step)


class Once:
    """A plan that fires once, when the clock first reaches or passes a local time."""

    __slots__ = ("_local", "targets")

    def __init__(self, local: int) -> None:
        """Take the local time, in milliseconds of the local clock."""
        self._local: Final = local
        self.targets: tuple[tuple[str, str], ...] = ()

    def next(self, zone: Zone, after: int, options: Options, _anchor: int) -> int | None:
        """Return the fire if it is later than `after`, else None."""
        time = self._time(zone, options)
        return time if time is not None and time > after else None

    def newest(
        self, zone: Zone, after: int, until: int, options: Options, _anchor: int
    ) -> int | None:
        """Return the fire if it is in (after, until], else None."""
        time = self._time(zone, options)
        return time if time is not None and after < time <= until else None

    def count(self, zone: Zone, after: int, until: int, options: Options, anchor: int) -> int:
        """Return 1 if the fire is in (after, until], else 0."""
        return int(self.newest(zone, after, until, options, anchor) is not None)

    def _time(self, zone: Zone, options: Options) -> int | None:
        i = bisect_right(zone.reached, self._local)
        time = self._local - zone.offsets[i]
        if i and time < zone.starts[i - 1]:
            return zone.starts[i - 1] if options.run else None
        return time
