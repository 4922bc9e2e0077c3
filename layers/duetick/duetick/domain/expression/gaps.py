"""The least time between two fires, without a walk along all of them.

Between two changes of the clock, a gap is one of local minutes, which an almanac tells by itself.
Around a change the fires are asked for, one by one. Only writes need this: no tick loads it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from duetick.domain.expression.almanac import NEVER_DAY
from duetick.domain.expression.firing import DAY, HORIZON, MINUTE, Recurring

if TYPE_CHECKING:
    from duetick.domain.expression.almanac import Almanac
    from duetick.domain.expression.firing import Interval, Once, Options
    from duetick.domain.expression.zones import Zone

YEAR: Final = 366 * DAY
WHOLE_DAY: Final = 1440
NONE: Final = YEAR // MINUTE
"""A gap in minutes that is longer than any within the span."""


def least_gap(plan: Recurring | Interval | Once, zone: Zone, options: Options, first: int) -> int:
    """Return the least time between two fires within 366 days from the fire `first` on; 366 days if
    there is no second one.
    """
    if not isinstance(plan, Recurring):
        second = plan.next(zone, first, options, first)
        return YEAR if second is None else min(second - first, YEAR)
    until = min(first + YEAR, HORIZON - 1)
    least = min(_of_stretches(plan, zone, options, first, until) * MINUTE, YEAR)
    return min([least, *_of_changes(plan, zone, options, first, until)])


def _of_stretches(plan: Recurring, zone: Zone, options: Options, first: int, until: int) -> int:
    """Return the least gap of two fires between the same two changes of the clock, in minutes."""
    once = options.once and plan.almanac.fixed
    floor, least = lowest(plan.almanac), NONE
    for i in range(bisect_right(zone.starts, first), bisect_right(zone.starts, until) + 1):
        start = max(first, zone.starts[i - 1]) if i else first
        low = -(-(start + zone.offsets[i]) // MINUTE)
        low = max(low, zone.fresh[i]) if once else low
        last = min(until, zone.ends[i] - 1)
        least = min(least, within(plan.almanac, low, (last + zone.offsets[i]) // MINUTE, floor))
        if least <= floor:
            break
    return least


def _of_changes(plan: Recurring, zone: Zone, options: Options, first: int, until: int) -> list[int]:
    """Return the gaps around each change of the clock.

    They lie between the last fire before the change and the two fires that follow.
    """
    found: list[int] = []
    begin, end = bisect_left(zone.starts, first), bisect_right(zone.starts, until)
    for change in zone.starts[begin:end]:
        times = [plan.newest(zone, first - 1, change - 1, options, 0)]
        times.append(plan.next(zone, change - 1, options, 0))
        if times[-1] is not None:
            times.append(plan.next(zone, times[-1], options, 0))
        fires = [one for one in times if one is not None and one <= until]
        found += (later - earlier for earlier, later in pairwise(fires))
    return found


def lowest(almanac: Almanac) -> int:
    """Return a lower bound of the gaps between named minutes."""
    rows = almanac.week
    least = min(map(within_day, set(rows)))
    named = [place for place, row in enumerate([*rows, *rows]) if 1 in row]
    for day, following in pairwise(named):
        apart = (following - day) * WHOLE_DAY
        least = min(least, apart - rows[day % 7].rfind(1) + rows[following % 7].find(1))
    return least


def within(almanac: Almanac, low: int, high: int, floor: int) -> int:
    """Return the least gap of named minutes from `low` to `high`, both included.

    The search ends at a gap of `floor`, below which there is none.
    """
    least, before = NONE, None
    minute = almanac.first(low)
    while minute <= high and least > floor:
        day, rest = divmod(minute, WHOLE_DAY)
        if day >= NEVER_DAY:
            break
        row = almanac.minutes_of(day)
        end = min(WHOLE_DAY, high - day * WHOLE_DAY + 1)
        if before is not None:
            least = min(least, minute - before)
        part = row if rest == row.find(1) and end == WHOLE_DAY else row[rest:end]
        least = min(least, within_day(part))
        before = day * WHOLE_DAY + row.rfind(1, 0, end)
        minute = almanac.first((day + 1) * WHOLE_DAY)
    return least


_KNOWN: Final[dict[bytes, int]] = {}
_MOST_KNOWN: Final = 1_024


def within_day(row: bytes) -> int:
    """Return the least gap of the named minutes of a day."""
    known = _KNOWN.get(row)
    if known is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        places = [minute for minute, named in enumerate(row) if named]
        known = min((later - earlier for earlier, later in pairwise(places)), default=NONE)
        _KNOWN[row] = known
    return known
