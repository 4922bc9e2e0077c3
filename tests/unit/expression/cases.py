"""Cases for the oracle: the changes of clocks, expressions that fire there, and the comparison."""

import datetime
import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib.resources import files
from random import Random
from typing import Literal

from duetick.domain.expression import (
    InvalidExpression,
    count,
    fires,
    newest,
    next_fire,
    targets,
    upcoming,
)

from tests.unit.expression import oracle

HOUR, DAY = 3600, 86_400_000
BEFORE, BEHIND = 30 * HOUR, 54 * HOUR


Gap = Literal["run", "skip"]
Repeat = Literal["first", "both"]
OPTIONS: tuple[tuple[Gap, Repeat], ...] = (
    ("run", "first"),
    ("run", "both"),
    ("skip", "first"),
    ("skip", "both"),
)


def second(year: int, month: int = 1, day: int = 1) -> int:
    """Return midnight UTC of a day, in seconds."""
    return int(datetime.datetime(year, month, day, tzinfo=datetime.UTC).timestamp())


def clocks() -> list[list[str]]:
    """Return the zone names. The several names of one clock are together."""
    groups: dict[bytes, list[str]] = {}
    for name in oracle.zone_names():
        data = files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
        groups.setdefault(data, []).append(name)
    return list(groups.values())


def expressions(random: Random, name: str, change: int, wanted: int) -> list[str]:
    """Return expressions that fire near a change of the zone's clock, of every shape."""
    return [_expression(random, oracle.local_second(name, change)) for _ in range(wanted)]


def _expression(random: Random, local: int) -> str:
    near = oracle.EPOCH + datetime.timedelta(seconds=local + random.randrange(-2, 3) * HOUR)
    minutes = (
        *(str(near.minute), str(random.randrange(60)), "0", "30", "*/7", "*", "0-59", "5/20"),
        *("*/1", f"{random.randrange(30)}-{random.randrange(30, 60)}/4", "10,*/25", "*/25,10"),
    )
    hours = (
        *(str(near.hour), f"{near.hour},{random.randrange(24)}", "0-4", "*", "*/2", "0-23"),
        *(f"{near.hour}/3", "23,0", "*,5"),
    )
    date, weekday = random.choice(_dates(random, near))
    month = random.choice(("*", "*", "*", str(near.month), near.strftime("%b"), "1-12/2"))
    return f"{random.choice(minutes)} {random.choice(hours)} {date} {month} {weekday}"


def forms(random: Random, name: str, change: int) -> list[str]:
    """Return at(…) at both edges of a change and inside it, days(…) and cron(…) near it."""
    before, landed = oracle.local_second(name, change - 1) + 1, oracle.local_second(name, change)
    low, high = sorted((before // 60, landed // 60))
    minutes = (*range(low - 1, low + 2), (low + high) // 2, *range(high - 1, high + 2))
    moments = [oracle.EPOCH + datetime.timedelta(minutes=minute) for minute in minutes]
    return [
        *(f"at({moment:%Y-%m-%dT%H:%M:%S})" for moment in moments if moment.year >= 1970),
        *(_day_map(random, moments, wanted) for wanted in (1, 3)),
        *(_six_fields(random, random.choice(moments)) for _ in range(3)),
    ]


def _day_map(random: Random, moments: list[datetime.datetime], wanted: int) -> str:
    maps = []
    for target in range(wanted):
        near = {f"{each:%a}".lower(): f"{each:%H:%M}" for each in random.sample(moments, 3)}
        days = ", ".join(f"{day} {time}" for day, time in near.items())
        maps.append(f"t{target}: {days}" if wanted > 1 else days)
    return f"days({'; '.join(maps)})"


def _six_fields(random: Random, near: datetime.datetime) -> str:
    minute = random.choice((str(near.minute), "*", "*/10", "0/20", "0,30"))
    hour = random.choice((str(near.hour), "*", "0-4", f"{near.hour}/3", "*/2"))
    on = near.isoweekday() % 7 + 1
    weekdays = (f"{on}", f"{near:%a}", f"{on}L", f"{on}#{(near.day - 1) // 7 + 1}", "1-7", "L", "*")
    date, weekday = random.choice(
        (("?", random.choice(weekdays)), (random.choice((str(near.day), "*", "L", "1/2")), "?"))
    )
    year = random.choice(("*", str(max(near.year, 1970)), "1970-2199"))
    return f"cron({minute} {hour} {date} * {weekday} {year})"


def _dates(random: Random, near: datetime.datetime) -> list[tuple[str, str]]:
    day, on = near.day, near.isoweekday()
    other = random.randrange(1, 29)
    dates = (
        "*",
        str(day),
        f"{other},{day}",
        "L",
        "LW",
        f"{day}W",
        f"{other}W",
        "*/2",
        "1-31",
        "1/3",
    )
    weekdays = (
        *("*", str(on), "0-7", "MON-FRI", "FRI-SUN", near.strftime("%a"), "*/2", f"{on}L"),
        *(f"{on}#{(day - 1) // 7 + 1}", "1/2", "SUN,WED#2"),
    )
    return [
        *[("*", "*")] * 20,
        *((date, "*") for date in dates),
        *(("*", weekday) for weekday in weekdays),
        (random.choice(dates), random.choice(weekdays)),
    ]


@dataclass
class Tally:
    """The checks and their faults; `again` are cases under a clock's further names."""

    cases: int = 0
    again: int = 0
    changes: int = 0
    wrong: list[str] = field(default_factory=list)

    def check(self, what: str, ours: object, theirs: object) -> None:
        """Count one case."""
        self.cases += 1
        if ours != theirs:
            self.wrong.append(f"{what}: {ours}, but the walk says {theirs}")


def check_change(
    random: Random,
    names: list[str],
    change: int,
    tally: Tally,
    *,
    wanted: int,
    shaped: int = 20,
    step: int = 60,
) -> None:
    """Walk the days around a change, and ask the module; a little under the clock's other names."""
    begin, end = change - BEFORE, change + BEHIND
    if step < 60:
        begin, end = change - 2 * HOUR, change + 2 * HOUR
    steps = oracle.clock(names[0], begin, end, step)
    tally.changes += 1
    asked, walked = Asked("", names[0], "run", "first"), list[int]()
    plain, shapes = expressions(random, names[0], change, wanted), forms(random, names[0], change)
    for text in (*plain, *random.sample(shapes, min(shaped, len(shapes)))):
        gap, repeat = random.choice(OPTIONS)
        heeded: Repeat = "first" if text.startswith("at") else repeat
        walked = oracle.walk(oracle.read(text), steps, gap, heeded)
        asked = Asked(text, names[0], gap, repeat)
        _compare(random, asked, (begin, change, end), walked, tally)
        if text.startswith("days(t"):
            _compare_targets(asked, steps, walked, tally)
    alias = Tally()
    for name in names[1:]:
        _compare(random, replace(asked, zone=name), (begin, change, end), walked, alias)
    tally.again += alias.cases
    tally.wrong += alias.wrong


def _compare_targets(ask: "Asked", steps: oracle.Clock, walked: list[int], tally: Tally) -> None:
    due: dict[int, list[str]] = {time: [] for time in walked}
    for part in ask.text[5:-1].split("; "):
        name, _, days = part.partition(": ")
        for time in oracle.walk(oracle.Days(days), steps, ask.gap, ask.repeat):
            due[time].append(name)
    for time, names in due.items():
        ours = targets(ask.text, ask.zone, time, gap=ask.gap, repeat=ask.repeat)
        tally.check(f"targets of {ask} at {time}", list(ours), names)


@dataclass(frozen=True)
class Asked:
    """One timing."""

    text: str
    zone: str
    gap: Gap
    repeat: Repeat


def _compare(
    random: Random, ask: Asked, window: tuple[int, int, int], walked: list[int], tally: Tally
) -> None:
    begin, change, end = (each * 1000 for each in window)
    for after in _afters(random, begin, change, end, walked):
        ours = next_fire(ask.text, ask.zone, after, gap=ask.gap, repeat=ask.repeat)
        later = bisect_right(walked, after)
        theirs = walked[later] if later < len(walked) else None
        if theirs is None and (ours is None or ours > end):
            ours = None
        tally.check(f"next of {ask} after {after}", ours, theirs)
    a, b = sorted((random.randrange(begin, end), random.randrange(begin, end)))
    inside = [time for time in walked if a < time <= b]
    what = f"{ask} in ({a}, {b}]"
    args = ask.text, ask.zone, a, b
    tally.check(f"fires of {what}", fires(*args, gap=ask.gap, repeat=ask.repeat), inside)
    tally.check(f"count of {what}", count(*args, gap=ask.gap, repeat=ask.repeat), len(inside))
    last = inside[-1] if inside else None
    tally.check(f"newest of {what}", newest(*args, gap=ask.gap, repeat=ask.repeat), last)


def _afters(random: Random, begin: int, change: int, end: int, walked: list[int]) -> Iterator[int]:
    yield from (begin, change - 1, change)
    yield from (random.randrange(begin, end) for _ in range(3))
    yield from (change + random.randrange(-2 * HOUR, 2 * HOUR) * 1000 for _ in range(2))
    near = walked[max(0, bisect_right(walked, change) - 1) :][:2]
    yield from itertools.chain.from_iterable((time - 1, time) for time in near)


def check_dates(random: Random, tally: Tally) -> None:
    """Ask for the next of a rare date, and find it by going through the calendar day by day."""
    near = oracle.EPOCH + datetime.timedelta(days=random.randrange(60_000))
    date, weekday = random.choice(_dates(random, near))
    text = f"0 0 {date} {random.choice(('*', '2', 'FEB', str(near.month)))} {weekday}"
    days = range((near - oracle.EPOCH).days + 1, 84_006)
    walked = oracle.Expression(text)
    theirs = next((day for day in days if walked.names(day * 1440)), None)
    try:
        ours = upcoming(text, None, (days[0] - 1) * DAY, 1)
    except InvalidExpression:
        ours = []
    expected = [] if theirs is None else [theirs * DAY]
    tally.check(f"date of {text!r} after day {days[0] - 1}", ours, expected)


def odd_changes(groups: Iterable[list[str]]) -> Iterator[tuple[list[str], int]]:
    """Return the changes from 1900 to 2020 that moved a clock by whole minutes, but not an hour.

    Among them are changes by 20 and 30 minutes, and by a day.
    """
    for names in groups:
        for change in oracle.changes(names[0], second(1900), second(2020)):
            before, behind = (oracle.local_second(names[0], change + at) for at in (-60, 0))
            moved = behind - before - 60
            if abs(moved) != HOUR and before % 60 == behind % 60 == change % 60 == 0:
                yield names, change


def inner_changes(groups: Iterable[list[str]]) -> Iterator[tuple[list[str], int]]:
    """Return the changes since 1800 of clocks that were not whole minutes from UTC."""
    for names in groups:
        for change in oracle.changes(names[0], second(1800), second(1980)):
            if any(oracle.local_second(names[0], change + at) % 60 for at in (-60, 0)):
                yield names, change
