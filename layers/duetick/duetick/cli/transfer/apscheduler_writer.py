"""Schedules as rows of a data store of APScheduler 4, with the JSON of its serializer.

`JSONSerializer` reads the columns `trigger`, `args` and `kwargs`; a row is a JSON object.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from duetick.cli.transfer.apscheduler import MAGIC
from duetick.cli.transfer.exported import Exported, TellLoss, tell_clocks, time_each
from duetick.cli.transfer.rules import as_text, fill
from duetick.domain.expression.parts import CannotSay, ExpressionParts, parts_of
from duetick.domain.expression.spelling import spell, spell_out

TASK: Final = "{flow}:{action}"
SAID: Final = frozenset({"misfire", "longestLateness", "spread", "overlap", "startsAt", "endsAt"})
DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
PLACES: Final = ("1st", "2nd", "3rd", "4th", "5th")
TRIGGERS: Final = "apscheduler.triggers"
COALESCED: Final[Mapping[str, str]] = {"all": "all"}
UNITS: Final[Mapping[str, int]] = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


def write(
    schedules: list[Exported], tell: TellLoss, *, now: int, task: str | None = None
) -> Iterator[str]:
    """Yield a row for each schedule. `task` is the template of the function that it runs."""
    for one, trigger in time_each(schedules, tell, _trigger, "APScheduler", SAID):
        tell_clocks(one, tell, "APScheduler", now)
        func = as_text(fill(task or TASK, one.facts))
        given = one.view["input"]
        kwargs = given if isinstance(given, dict) else {"input": given}
        policies = one.view["policies"]
        row = {
            "id": one.name,
            "task_id": func,
            "func": func,
            "trigger": json.dumps(trigger),
            "args": "[]",
            "kwargs": json.dumps(kwargs, ensure_ascii=False),
            "paused": not one.view["enabled"],
            "coalesce": COALESCED.get(policies["misfire"], "latest"),
            "misfire_grace_time": _micros(policies["longestLateness"] or _unless_late(policies)),
            "max_jitter": _micros(policies["spread"] or None),
            "max_running_jobs": None if policies["overlap"] == "allow" else 1,
        }
        yield json.dumps(row, ensure_ascii=False)


def _unless_late(policies: Mapping[str, Any]) -> int | None:
    """Return the seconds after which a missed time is not caught up; None if it always is."""
    return int(policies["grace"]) if policies["misfire"] == "skip" else None


def _micros(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1_000_000


def _object(kind: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return {MAGIC: [f"{TRIGGERS}.{kind}", {"version": 1, **state}]}


def _trigger(one: Exported) -> dict[str, Any]:
    policies = one.view["policies"]
    start = policies["startsAt"] or one.view["createdAt"]
    window = {"start_time": start, "end_time": policies["endsAt"], "last_fire_time": None}
    if one.cron.startswith("at("):
        at = one.view["nextFireAt"]
        if at is None:
            raise CannotSay("its time is over, or paused")
        return _object("date:DateTrigger", {"run_time": at, "completed": False})
    if one.cron.startswith("rate("):
        interval = _interval(one.cron)
        begin = {**window, "start_time": one.view["nextFireAt"] or start}
        return _object("interval:IntervalTrigger", {"interval": interval, **begin})
    found = [_object("cron:CronTrigger", state) for state in _fields(one, window)]
    if len(found) == 1:
        return found[0]
    parts = [inner[MAGIC] for inner in found]
    return _object("combining:OrTrigger", {"triggers": parts, "next_fire_times": []})


def _interval(cron: str) -> list[int]:
    """Return weeks, days, hours, minutes, seconds and microseconds of a rate."""
    number, unit = cron.removeprefix("rate(").removesuffix(")").split()
    return [0, 0, 0, 0, int(number) * UNITS[unit.removesuffix("s")], 0]


def _fields(one: Exported, window: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the state of a cron trigger for each: there all fields have to match."""
    parts = parts_of(one.cron)
    if parts is None:
        raise CannotSay("it is no cron")
    years = "*" if parts.years is None else spell_out(parts.years)
    month, hour = spell(parts.months, 1, 12), _clock(parts.hour, parts.hours, 23)
    minute = _clock(parts.minute, parts.minutes, 59)
    for day, weekday in _days(parts):
        fields = [years, month, day, "*", weekday, hour, minute, "0"]
        yield {"timezone": one.zone, "fields": fields, **window}


def _clock(text: str, values: frozenset[int], high: int) -> str:
    """Return minute or hour. A star stays one."""
    return text if text.startswith("*") and "," not in text else spell(values, 0, high)


def _days(parts: ExpressionParts) -> list[tuple[str, str]]:
    """Return day of month and day of week of each trigger."""
    restricts_dates = not parts.any_date or bool(parts.special_dates)
    restricts_weekdays = not parts.any_weekday or bool(parts.special_weekdays)
    date = ",".join([*_plain(parts.dates, 1, 31), *map(_date, parts.special_dates)])
    placed = [_place(item) for item in parts.special_weekdays]
    weekday = ",".join(DAYS[day] for day in sorted(parts.weekdays))
    if not restricts_weekdays:
        return [(date, "*")]
    if not restricts_dates:
        by_place = [(",".join(placed), "*")] if placed else []
        return [*by_place, *([("*", weekday)] if parts.weekdays else [])]
    if not parts.either:
        if placed:
            raise CannotSay("a weekday by its place in the month beside a day of it")
        return [(date, weekday)]
    either = [(date, "*")]
    either += [(",".join(placed), "*")] if placed else []
    return [*either, *([("*", weekday)] if parts.weekdays else [])]


def _plain(values: frozenset[int], low: int, high: int) -> list[str]:
    return [spell(values, low, high)] if values else []


def _date(item: str) -> str:
    if item != "L":
        raise CannotSay("APScheduler knows no W; for example: 0 9 L * *")
    return "last"


def _place(item: str) -> str:
    """Return a weekday by its place in the month: 5L, 1#2."""
    day = DAYS[int(item[0])]
    return f"last {day}" if item.endswith("L") else f"{PLACES[int(item[2]) - 1]} {day}"
