"""From local minutes to instants: C-01's rules, walked stretch by stretch of a zone's clock.

Within a stretch an instant is its local time less the offset. Between two stretches the clock
changes, and there the rules speak:

- A *fixed* almanac fires when the clock first reaches a named minute or, in a forward change,
  passes it: at the change. What a backward change repeats lies below `Zone.fresh`.
- Any other fires whenever a named minute begins on the clock, and where a change lands inside one
  that it was not reading (offsets of the nineteenth century were not whole minutes).

All three plans answer the same questions, each from its own kind of time.
"""

from __future__ import annotations

from bisect import bisect_right

from duetick.domain.expression.almanac import FIRST_DAY, NEVER, NEVER_DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from duetick.domain.expression.almanac import Almanac
    from duetick.domain.expression.zones import Zone

MINUTE = 60_000
DAY = 86_400_000
HORIZON = NEVER_DAY * DAY
DAWN, DUSK = (FIRST_DAY + 2) * DAY, HORIZON + 2 * DAY  # nothing is looked for beyond these


class Options:
    """C-01's two choices; only what is fixed heeds them."""

    __slots__ = ("once", "run")

    def __init__(self, *, run: bool, once: bool) -> None:
        """Say whether what is skipped runs, and whether what is repeated runs once."""
        self.run: Final = run
        self.once: Final = once


class Recurring:
    """Fires at the minutes of an almanac; `targets` are the days of a day map's, by name."""

    __slots__ = ("almanac", "targets")

    def __init__(self, almanac: Almanac, targets: tuple[tuple[str, str], ...] = ()) -> None:
        """Take the whole, and what each target writes into days(…) if it has any."""
        self.almanac: Final = almanac
        self.targets: Final = targets

    def next(self, zone: Zone, after: int, options: Options, _anchor: int) -> int | None:
        """Return the first fire later than `after`."""
        almanac, fresh = self.almanac, zone.fresh
        once = options.once and almanac.fixed
        i = bisect_right(zone.starts, after)
        asked, found = 1, 0
        while True:
            offset = zone.offsets[i]
            minute = (after + offset) // MINUTE + 1
            if once and minute < fresh[i]:
                minute = fresh[i]
            if not asked <= minute <= found:  # a rare date may lie many stretches ahead
                asked, found = minute, almanac.first(minute)
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
        """Return the last fire later than `after` and not later than `until`."""
        once = options.once and self.almanac.fixed
        i = bisect_right(zone.starts, until)
        asked, found = 0, 1
        while True:
            start = zone.starts[i - 1] if i else after
            low = self._first_minute(zone, i, max(start - 1, after), once)
            minute = (until + zone.offsets[i]) // MINUTE
            if not found <= minute <= asked:  # a rare date may lie many stretches back
                asked, found = minute, self.almanac.last(minute)
            if found >= low:
                return found * MINUTE - zone.offsets[i]
            if start <= after:
                return None
            if self._at_change(zone, i, options):
                return start
            i, until = i - 1, start - 1

    def count(self, zone: Zone, after: int, until: int, options: Options, _anchor: int) -> int:
        """Return how many fires are later than `after` and not later than `until`."""
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
        """Say whether the change that begins stretch `i` makes the plan fire by itself."""
        start = zone.starts[i - 1]
        left, landed = start + zone.offsets[i - 1], start + zone.offsets[i]
        if self.almanac.fixed:
            low = zone.fresh[i] if options.once else -(-left // MINUTE)
            skips = options.run and low * MINUTE < landed
            return skips and self.almanac.first(low) * MINUTE < landed
        minute = landed // MINUTE
        inside = landed % MINUTE != 0 and minute != (left - 1) // MINUTE
        return inside and self.almanac.first(minute) == minute

    def _reads(self, zone: Zone, i: int) -> bool:
        """Say whether a named minute begins at the very instant that begins stretch `i`."""
        minute, rest = divmod(zone.starts[i - 1] + zone.offsets[i], MINUTE)
        return rest == 0 and self.almanac.first(minute) == minute


class Interval:
    """Fires at anchor + k * step for every whole k, whatever the zone's clock does (T-09)."""

    __slots__ = ("step", "targets")

    def __init__(self, step: int) -> None:
        """Take the step in milliseconds."""
        self.step: Final = step
        self.targets: tuple[tuple[str, str], ...] = ()

    def next(self, _zone: Zone, after: int, _options: Options, anchor: int) -> int | None:
        """Return the first fire later than `after`."""
        time = after + self.step - (after - anchor) % self.step
        return time if time < HORIZON else None

    def newest(
        self, _zone: Zone, after: int, until: int, _options: Options, anchor: int
    ) -> int | None:
        """Return the last fire later than `after` and not later than `until`."""
        until = min(until, HORIZON - 1)
        time = until - (until - anchor) % self.step
        return time if time > after else None

    def count(self, _zone: Zone, after: int, until: int, _options: Options, anchor: int) -> int:
        """Return how many fires are later than `after` and not later than `until`."""
        until = min(until, HORIZON - 1)
        return max(0, (until - anchor) // self.step - (after - anchor) // self.step)


class Once:
    """Fires a single time, when the clock first reaches or passes one local time."""

    __slots__ = ("_local", "targets")

    def __init__(self, local: int) -> None:
        """Take the local time, in milliseconds of the local clock."""
        self._local: Final = local
        self.targets: tuple[tuple[str, str], ...] = ()

    def next(self, zone: Zone, after: int, options: Options, _anchor: int) -> int | None:
        """Return the fire if it is later than `after`."""
        time = self._time(zone, options)
        return time if time is not None and time > after else None

    def newest(
        self, zone: Zone, after: int, until: int, options: Options, _anchor: int
    ) -> int | None:
        """Return the fire if it is later than `after` and not later than `until`."""
        time = self._time(zone, options)
        return time if time is not None and after < time <= until else None

    def count(self, zone: Zone, after: int, until: int, options: Options, anchor: int) -> int:
        """Return 1 if the fire is later than `after` and not later than `until`, else 0."""
        return int(self.newest(zone, after, until, options, anchor) is not None)

    def _time(self, zone: Zone, options: Options) -> int | None:
        i = bisect_right(zone.reached, self._local)
        time = self._local - zone.offsets[i]
        if i and time < zone.starts[i - 1]:
            return zone.starts[i - 1] if options.run else None
        return time
