"""The second opinion: croniter must read a plain expression as we do, or it is not accepted.

Two readers are rarely wrong in the same way. They are compared in UTC, because croniter has
different rules for clock changes. For croniter's known mistakes, listed here, our reader counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from duetick.domain.expression import InvalidExpression, parse, upcoming
from duetick.domain.expression.fields import DAY_OF_MONTH, DAY_OF_WEEK, read

_FIRES = 6
_LEAST = 2
_MOST_ASKED = 4_096
_NEAR_MS = 5 * 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake of croniter: what it does, an example, and a test for it."""

    does: str
    example: str
    found_in: Callable[[list[str]], bool]


def confirm(text: str, after: int) -> None:
    """Raise InvalidExpression if croniter's next fires after `after` differ from ours.

    Only five fields and macros are compared: croniter reads no other form.
    """
    canonical = parse(text)
    fields = canonical.split(" ")
    if "(" in canonical:
        return
    ours = _choose_times(upcoming(canonical, None, after, _FIRES), after)
    theirs = _ask(text, canonical, after, len(ours) or _FIRES)
    if ours != theirs and not any(mistake.found_in(fields) for mistake in KNOWN_MISTAKES):
        raise InvalidExpression(
            f"{canonical}: two readers of cron disagree about it ({_show(ours)} and "
            f"{_show(theirs)}), so that it may not mean what you think; write it more plainly, "
            "for example: 0 9 * * 1-5"
        )


def _choose_times(ours: list[int], after: int) -> list[int]:
    """Return the times to compare: those of the next years, and two at least.

    No more are compared, for croniter walks day by day to a rare date.
    """
    near = [time for time in ours if time < after + _NEAR_MS]
    return near if len(near) >= _LEAST else ours[:_LEAST]


@lru_cache(_MOST_ASKED)
def _ask(text: str, canonical: str, after: int, count: int) -> list[int]:
    """Return croniter's next fires. Callers ask as of the day: each text costs once a day."""
    from croniter import CroniterError, croniter  # only writes need this import

    plain = canonical if text.strip().startswith("@") else text
    try:
        times = croniter(plain, datetime.fromtimestamp(after / 1000, UTC))
        return [round(times.get_next(float) * 1000) for _ in range(count)]
    except CroniterError:
        return []


def _show(times: list[int]) -> str:
    if not times:
        return "no times"
    return ", ".join(
        f"{datetime.fromtimestamp(time / 1000, UTC):%Y-%m-%d %H:%M}" for time in times[:2]
    )


def _range_of_one(fields: list[str]) -> bool:
    for last, field in zip(("59", "23", "31", "12", "6"), fields, strict=True):
        for item in field.split(","):
            body, slash, _ = item.partition("/")
            low, dash, high = body.partition("-")
            if (dash and low == high) or (slash and body == last):
                return True
    return False


def _both_restricted(fields: list[str]) -> bool:
    return fields[2] != "*" and fields[4] != "*"


def _star_beside_another(fields: list[str]) -> bool:
    return _both_restricted(fields) and "*" in (fields[2][0], fields[4][0])


def _star_later_in_a_list(fields: list[str]) -> bool:
    return any("*" in fields[at].split(",")[1:] for at in (2, 4))


def _all_days_beside_a_star(fields: list[str]) -> bool:
    dates, weekdays = read(DAY_OF_MONTH, fields[2]), read(DAY_OF_WEEK, fields[4])
    everything = len(dates.values) == 31 or len(weekdays.values) == 7
    return _both_restricted(fields) and everything and any(",*" in fields[at] for at in (2, 4))


def _date_never_comes(fields: list[str]) -> bool:
    try:
        parse(" ".join([*fields[:4], "*"]))
    except InvalidExpression:
        return True
    return False


def _beyond_28_w(fields: list[str]) -> bool:
    return any(day in fields[2].split(",") for day in ("29W", "30W", "31W"))


KNOWN_MISTAKES = (
    Mistake("reads a range of one value as *", "9-9 * * * *", _range_of_one),
    Mistake(
        "lets either of day-of-month and day-of-week match, though one begins with *",
        "0 0 7 * */4",
        _star_beside_another,
    ),
    Mistake(
        "takes a * anywhere in a list of days for the whole field",
        "0 0 5,* * 1",
        _star_later_in_a_list,
    ),
    Mistake(
        "takes a list of all days for * beside a list with a star in it",
        "0 0 4,*/19 * 0-6",
        _all_days_beside_a_star,
    ),
    Mistake(
        "finds nothing where the date never comes, though the weekday does",
        "0 0 31 2 1",
        _date_never_comes,
    ),
    Mistake(
        "wants both day-of-month and an nth weekday to match",
        "0 0 1 * 0#1",
        lambda fields: "#" in fields[4] and _both_restricted(fields),
    ),
    Mistake(
        "refuses an nth weekday beside another",
        "0 0 * * 1#2,3",
        lambda fields: "#" in fields[4] and "," in fields[4],
    ),
    Mistake("refuses the last weekday of a kind", "0 0 * * 5L", lambda fields: "L" in fields[4]),
    Mistake("refuses the last working day", "0 0 LW * *", lambda fields: "LW" in fields[2]),
    Mistake(
        "refuses the nearest working day beside another day",
        "0 0 15W,20 * *",
        lambda fields: "W" in fields[2] and "," in fields[2],
    ),
    Mistake("moves 31W to the end of a shorter month", "0 0 31W * *", _beyond_28_w),
    Mistake(
        "forgets the day-of-week beside 15W",
        "0 0 15W * 1",
        lambda fields: "W" in fields[2] and _both_restricted(fields),
    ),
)
