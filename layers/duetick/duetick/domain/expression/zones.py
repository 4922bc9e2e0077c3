"""The zones of the pinned tzdata package, as stretches of time with one offset each.

The system's database is never read, whatever PYTHONTZPATH says: the fire times of a schedule must
not depend on the machine. Times are in milliseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from importlib import import_module
from itertools import accumulate, pairwise
from operator import add
from struct import unpack_from
from typing import TYPE_CHECKING, Final

from duetick.domain.errors import kind_of
from duetick.domain.expression.almanac import (
    FIRST_DAY,
    FIRST_YEAR,
    LAST_YEAR,
    YEAR_STARTS,
    month_lengths,
    weekday,
)
from duetick.domain.expression.errors import InvalidTimezone, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = import_module("tzdata")
TZDATA_VERSION: str = _PACKAGE.IANA_VERSION

MINUTE = 60_000
FOREVER = 1 << 62
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Zone:
    """A zone's clock: stretch `i` runs from `starts[i - 1]` up to `ends[i]` with `offsets[i]`.

    `reached[i]` is the latest local time that the clock has shown by the end of stretch `i`.
    `fresh[i]` is the first whole local minute that no stretch before `i` has shown: the clock
    repeats the minutes below it.
    """

    __slots__ = ("ends", "fresh", "offsets", "reached", "starts")

    def __init__(self, starts: list[int], offsets: list[int]) -> None:
        """Take the instants of the changes, ascending, and the offsets: one more than changes."""
        self.starts: Final = tuple(starts)
        self.ends: Final = (*starts, FOREVER)
        self.offsets: Final = tuple(offsets)
        self.reached: Final = tuple(accumulate(map(add, starts, offsets), max))
        self.fresh: Final = (-FOREVER, *(-(-local // MINUTE) for local in self.reached))


class _Zones(dict[str | None, Zone]):
    """A cache of zones. The rule of each is applied up to the start of one year."""

    def __init__(self, until_year: int) -> None:
        """Take that year."""
        super().__init__()
        self._until: Final = until_year

    def __missing__(self, name: str | None) -> Zone:
        check_zone(name)
        return self.learn(name, rules_of(name))

    def learn(self, name: str | None, rules: bytes) -> Zone:
        """Keep a zone of these rules under a name."""
        self[name] = zone = _read(rules, self._until)
        return zone


def check_zone(name: str | None) -> None:
    """Raise InvalidTimezone unless `name` is the exact name of an IANA zone, or None for UTC."""
    if name is None:
        return
    if not isinstance(name, str):
        raise InvalidTimezone(f"a name is text, not {kind_of(name)}")
    if name not in ZONE_NAMES:
        raise InvalidTimezone(_unknown(name[:64]))


def rules_of(name: str | None) -> bytes:
    """Return the rules of a zone of the package: the content of its file."""
    return _data(f"zoneinfo/{name or 'UTC'}")


def _data(path: str) -> bytes:
    with open(f"{_PACKAGE.__path__[0]}/{path}", "rb") as file:
        return file.read()


def _unknown(name: str) -> str:
    if not name:
        return "an empty name is no zone; leave it out for UTC, or write 'Europe/Berlin'"
    from duetick.domain.expression.nearest import nearest, zone_of_offset  # for refusals only

    if offset := zone_of_offset(name, ZONE_NAMES):
        hint = f"for that offset write {offset!r} (the sign is the other way round there), or a "
        return f"{quote(name)} is no IANA zone; {hint}place such as 'Europe/Berlin'"
    offers = " or ".join(map(repr, nearest(name, ZONE_NAMES)))
    hint = f"did you mean {offers}?" if offers else "names look like 'Europe/Berlin'"
    return f"{quote(name)} is no IANA zone (upper and lower case count); {hint}"


def _read(data: bytes, until_year: int) -> Zone:
    """Read a TZif file: its 64-bit block, then the rule in its footer, year by year."""
    second = 44 + _block_size(data, 0, 4)
    _, _, _, changes, types, _ = unpack_from(">6l", data, second + 20)
    at = second + 44
    instants = unpack_from(f">{changes}q", data, at)
    kinds = data[at + changes * 8 : at + changes * 9]
    utc_offsets = [unpack_from(">l", data, at + changes * 9 + each * 6)[0] for each in range(types)]
    footer = data[second + 44 + _block_size(data, second, 8) :].strip(b"\n").decode("ascii")
    points = [(when, utc_offsets[kind]) for when, kind in zip(instants, kinds, strict=True)]
    points += _by_rule(footer, instants[-1] if instants else -FOREVER, until_year)
    return _stretches(utc_offsets[0], points)


def _block_size(data: bytes, header: int, width: int) -> int:
    is_ut, is_std, leaps, changes, types, letters = unpack_from(">6l", data, header + 20)
    return int(changes * (width + 1) + types * 6 + letters + leaps * (width + 4) + is_std + is_ut)


def _stretches(first: int, points: list[tuple[int, int]]) -> Zone:
    starts, offsets = [], [first * 1000]
    for when, offset in points:
        if offset * 1000 != offsets[-1]:  # a change of name alone is no change of the clock
            starts.append(when * 1000)
            offsets.append(offset * 1000)
    return Zone(starts, offsets)


def _by_rule(footer: str, after: int, until_year: int) -> list[tuple[int, int]]:
    """Return the changes of a rule later than `after`. A rule: CET-1CEST,M3.5.0,M10.5.0/3."""
    names, _, rules = footer.partition(",")
    if not rules:
        return []
    standard, rest = _offset(names)
    summer = _offset(rest)[0] if rest[-1].isdigit() else standard + 3600
    begins, ends = rules.split(",")
    first = bisect_right(YEAR_STARTS, max(after // 86_400, FIRST_DAY)) - 1
    years = YEAR_STARTS[first : until_year - FIRST_YEAR + 1]
    points = [(local - standard, summer) for local in _local_times(begins, years)]
    points += [(local - summer, standard) for local in _local_times(ends, years)]
    return sorted(point for point in points if point[0] > after)


def _offset(text: str) -> tuple[int, str]:
    """Return the first offset of a rule, and the rest. In POSIX, west of Greenwich is positive."""
    text = text.partition(">")[2] if text[0] == "<" else text.lstrip(_LETTERS)
    rest = text.lstrip("+-:0123456789")
    return -_seconds(text[: len(text) - len(rest)]), rest


def _seconds(text: str) -> int:
    hours, minutes, seconds = (*(int(part) for part in text.lstrip("+-").split(":")), 0, 0)[:3]
    size = hours * 3600 + minutes * 60 + seconds
    return -size if text[0] == "-" else size


def _local_times(rule: str, years: tuple[int, ...]) -> Iterator[int]:
    """Yield the local time of Mmonth.week.weekday/time in each year but the last."""
    date, _, time = rule.partition("/")
    month, week, on = (int(part) for part in date.removeprefix("M").split("."))
    of_day = _seconds(time or "2")
    in_kind: dict[tuple[int, int], int] = {}  # there are 14 kinds of year
    for start, end in pairwise(years):
        kind = weekday(start), end - start
        if kind not in in_kind:
            in_kind[kind] = _nth_day(*kind, month, week, on)
        yield (start + in_kind[kind]) * 86_400 + of_day


def _nth_day(january_1: int, days: int, month: int, week: int, on: int) -> int:
    """Return the day of the year. The fifth week means the last one, even if it is the fourth."""
    lengths = month_lengths(days == 366)
    before = sum(lengths[: month - 1])
    day = (on - january_1 - before) % 7 + 7 * (week - 1)
    return before + (day if day < lengths[month - 1] else day - 7)


ZONE_NAMES = frozenset(_data("zones").decode("ascii").split())
# Each lookup returns a zone's clock by name (UTC for None), or raises InvalidTimezone. ZONES is
# correct up to NEAR, and few callers need later times: those take three times as long to compute.
# Only names of the package's list become paths. So no other file can be read, and the caches cannot
# grow beyond that list.
ZONES = _Zones(2050)
FAR_ZONES = _Zones(LAST_YEAR + 1)
NEAR = (YEAR_STARTS[2050 - FIRST_YEAR] - 2) * 86_400_000
