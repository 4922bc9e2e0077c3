"""The triggers of APScheduler as expressions.

`timings` gives one schedule for each part of a trigger. It looks at clock changes, for which the
two have other rules.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from duetick.cli.transfer.apscheduler_fields import (
    NAMES,
    CronFields,
    expression_of,
    read_fields,
    text_of,
)
from duetick.cli.transfer.items import NotReadable, Timing
from duetick.cli.transfer.pickles import StandIn
from duetick.domain.expression import count, parse
from duetick.domain.expression.parts import offsets_within
from duetick.domain.expression.spelling import spell
from duetick.domain.schedule import Json

if TYPE_CHECKING:
    from duetick.domain.expression.instants import Gap, Repeat

NotedTiming: TypeAlias = tuple[Timing, Sequence[str]]
"""A timing, and what is otherwise here."""

YEAR_MS: Final = 366 * 86_400_000
LOOKED_AT: Final = 3 * YEAR_MS
"""The time in which clock changes are looked for."""

CLOCKS: Final = (
    "where a clock change skips one of its times, it fires right after the change here; "
    "APScheduler may fire later, or leave it out"
)
TWICE: Final = "it fires twice where a clock change repeats its time, as there (repeat is both)"
WALL: Final = (
    "where clocks change, it follows the wall clock as there, and Duetick's rule in that hour"
)
MIDNIGHT: Final = (
    "APScheduler leaves out the first midnight after clocks went forward; here it fires"
)


def timings(trigger: object, now: int) -> list[NotedTiming]:
    """Return the timing of each part of a trigger. Clock changes are looked for from `now` on.

    Raises NotReadable.
    """
    kind = trigger.ref.rpartition(":")[2] if isinstance(trigger, StandIn) else ""
    read = _READERS.get(kind)
    if read is None or not isinstance(trigger, StandIn):
        named = kind or type(trigger).__name__
        known = ", ".join(_READERS)
        raise NotReadable(f"its trigger {named} is not known", f"one of {known}")
    return read(trigger.state, now)


def object_of(ref: object, state: object) -> StandIn:
    """Return the stand-in of an object that is written as its class and its state."""
    made: StandIn = type("StandIn", (StandIn,), {"ref": str(ref)})()
    made.__setstate__(state)
    return made


def zone_name(zone: object) -> str | None:
    """Return the IANA name of a zone; None for UTC."""
    if zone is None or zone is UTC or zone == "UTC":
        return None
    key = zone if isinstance(zone, str) else getattr(zone, "key", None)
    if not isinstance(key, str):
        raise NotReadable(f"its zone {zone} has no IANA name", "a zone such as Europe/Berlin")
    return None if key == "UTC" else key


def _instant(value: object) -> int | None:
    """Return milliseconds since the epoch of a date and time, or of its text."""
    if value is None:
        return None
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise NotReadable(f"the time {value!r} has no zone", "a time with its zone")
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _iso(instant: int) -> str:
    moment = datetime.fromtimestamp(instant / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _window(start: int | None, end: int | None) -> dict[str, Json]:
    bounds = {"startsAt": start, "endsAt": end}
    return {name: _iso(at) for name, at in bounds.items() if at is not None}


# Cron.


def _cron(state: Mapping[str, Any], now: int) -> list[NotedTiming]:
    texts = [text_of(one) for one in state["fields"]]
    read = read_fields(dict(zip(NAMES, texts, strict=True)))
    notes: list[str] = []
    zone = zone_name(state.get("timezone"))
    start = _instant(state.get("start_date") or state.get("start_time"))
    end = _instant(state.get("end_date") or state.get("end_time"))
    policies = _window(start, end)
    if state.get("jitter"):
        policies["spread"] = round(float(state["jitter"]))
        notes.append("its random jitter is a fixed place in that window here (spread)")
    timing = Timing(expression_of(read, notes), zone, policies)
    return [_as_clocks_change(timing, read, notes, now)]


def _as_clocks_change(timing: Timing, read: CronFields, notes: list[str], now: int) -> NotedTiming:
    """Return the timing with the policies that come nearest to APScheduler's clock changes."""
    if timing.timezone is None:
        return timing, notes
    usual = _count_fires(timing, now, "run", "first")
    policies = dict(timing.policies)
    if usual != _count_fires(timing, now, "run", "both"):
        policies["repeat"] = "both"
        notes.append(TWICE)
    if usual != _count_fires(timing, now, "skip", "first"):
        notes.append(CLOCKS)
    elif 0 in read.values["hour"] and _has_changes(timing, now):
        notes.append(MIDNIGHT)
    return replace(timing, policies=policies), notes


def _count_fires(timing: Timing, now: int, gap: "Gap", repeat: "Repeat") -> int:
    """Count the fire times of the years whose clock changes are compared."""
    return count(timing.cron, timing.timezone, now, now + LOOKED_AT, gap=gap, repeat=repeat)


def _has_changes(timing: Timing, now: int) -> bool:
    """Return True if clocks of the zone change, where not all hours are named."""
    changes = offsets_within(timing.timezone, now, now + LOOKED_AT)
    return len(changes) > 1 and timing.cron.split()[1] != "*"


# The other triggers.


def _interval(state: Mapping[str, Any], now: int) -> list[NotedTiming]:
    seconds = _length(state["interval"])
    if seconds != int(seconds) or seconds < 1:
        raise NotReadable(f"its interval of {seconds} s has no whole seconds", "rate(60 seconds)")
    start = _instant(state.get("start_date") or state.get("start_time")) or 0
    end = _instant(state.get("end_date") or state.get("end_time"))
    policies = _window(start, end)
    notes: list[str] = []
    if state.get("jitter"):
        policies["spread"] = round(float(state["jitter"]))
        notes.append("its random jitter is a fixed place in that window here (spread)")
    zone, local = _wall(state.get("start_time"), start)
    fixed = _divides(int(seconds), local)
    if fixed is None:
        notes.append("it counts from its creation here, not from its start there")
        return [(Timing(_rate(int(seconds)), None, policies), notes)]
    timing = Timing(fixed, zone, policies)
    if zone and len(offsets_within(zone, now, now + LOOKED_AT)) > 1:
        notes.append(WALL)
    return [(timing, notes)]


def _length(interval: object) -> float:
    """Return the seconds of an interval: of version 3 a duration, of version 4 its parts."""
    if isinstance(interval, timedelta):
        return interval.total_seconds()
    if not isinstance(interval, list | tuple):
        raise NotReadable("its interval cannot be read", "a trigger of APScheduler")
    names = ("weeks", "days", "hours", "minutes", "seconds", "microseconds")
    parts = dict(zip(names, map(float, interval), strict=True))
    return timedelta(**parts).total_seconds()


def _wall(start: object, instant: int) -> tuple[str | None, int]:
    """Return the zone whose wall clock an interval follows, and its start on that clock.

    Version 4 adds to a local time if its start is kept with a named zone. In any other case the
    interval is elapsed time, and the clock is UTC's.
    """
    named = isinstance(start, datetime) and isinstance(getattr(start.tzinfo, "key", None), str)
    if not isinstance(start, datetime) or not named:
        return None, instant
    zone = zone_name(start.tzinfo)
    return zone, _instant(start.replace(tzinfo=UTC)) or 0


def _divides(seconds: int, start: int) -> str | None:
    """Return the cron that fires alike, if the interval divides an hour, a day or a week."""
    if seconds % 60 or start % 60_000:
        return None
    minutes, at = seconds // 60, start // 60_000
    minute, hour = at % 60, at // 60 % 24
    if 60 % minutes == 0:
        return parse(f"{spell(range(minute % minutes, 60, minutes), 0, 59)} * * * *")
    if minutes % 60 == 0 and 24 % (minutes // 60) == 0:
        every = minutes // 60
        return parse(f"{minute} {spell(range(hour % every, 24, every), 0, 23)} * * *")
    if minutes == 7 * 24 * 60:
        return parse(f"{minute} {hour} * * {(at // 1_440 + 4) % 7}")
    return None


def _rate(seconds: int) -> str:
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds % size == 0:
            return parse(f"rate({seconds // size} {unit})")
    return parse(f"rate({seconds} seconds)")


def _once(state: Mapping[str, Any], _now: int) -> list[NotedTiming]:
    at = _instant(state.get("run_date") or state.get("run_time"))
    if at is None or state.get("completed"):
        raise NotReadable("it has fired, and fires no more", "nothing: leave it out")
    moment = datetime.fromtimestamp(at // 1_000, UTC)
    notes = [] if at % 1_000 == 0 else ["it fires at the full second here"]
    return [(Timing(f"at({moment:%Y-%m-%dT%H:%M:%S})"), notes)]


def _calendar(state: Mapping[str, Any], _now: int) -> list[NotedTiming]:
    years, months, weeks, days = state["interval"]
    hour, minute, second = state["time"]
    zone, start = zone_name(state.get("timezone")), _day(state.get("start_date"))
    if start is None:
        raise NotReadable("it has no start date", "a trigger of APScheduler")
    notes: list[str] = (
        [] if not second else [f"it fires at the full minute, not at second {second}"]
    )
    cron = _calendar_cron((years, months, weeks, days), start, hour, minute)
    policies: dict[str, Json] = {"gap": "skip"}
    end = _day(state.get("end_date"))
    for name, bound, clock in (("startsAt", start, "00:00:00"), ("endsAt", end, "23:59:59")):
        if bound:
            local = _local(bound, clock, zone)
            policies[name] = _iso(local)
    return [(Timing(cron, zone, policies), notes)]


def _day(value: object) -> date | None:
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value)[:10])


def _local(day: date, clock: str, zone: str | None) -> int:
    """Return the instant of a local time."""
    from zoneinfo import ZoneInfo

    moment = datetime.fromisoformat(f"{day.isoformat()}T{clock}")
    return _instant(moment.replace(tzinfo=ZoneInfo(zone) if zone else UTC)) or 0


def _calendar_cron(interval: tuple[int, int, int, int], start: date, hour: int, minute: int) -> str:
    years, months, weeks, days = interval
    clock = f"{minute} {hour}"
    if interval == (0, 0, 0, 1):
        return parse(f"{clock} * * *")
    if interval in ((0, 0, 1, 0), (0, 0, 0, 7)):
        return parse(f"{clock} * * {(start.weekday() + 1) % 7}")
    if not (weeks or days or years) and months and 12 % months == 0:
        named = spell((m for m in range(1, 13) if (m - start.month) % months == 0), 1, 12)
        return parse(f"{clock} {start.day} {named} *")
    if interval == (1, 0, 0, 0):
        return parse(f"{clock} {start.day} {start.month} *")
    raise NotReadable(
        "its interval is one that no expression here names "
        f"({years} years, {months} months, {weeks} weeks, {days} days)",
        "rate(14 days), which counts from its creation here",
    )


def _either(state: Mapping[str, Any], now: int) -> list[NotedTiming]:
    parts = [object_of(ref, inner) for ref, inner in state["triggers"]]
    if state.get("jitter"):
        raise NotReadable("it has jitter of its own", "jitter on each of its triggers")
    found = [told for part in parts for told in timings(part, now)]
    if len(found) > 1:
        note = "one schedule for each part: where two of them name one time, both fire here"
        return [(timing, (*notes, note)) for timing, notes in found]
    return found


def _both(state: Mapping[str, Any], now: int) -> list[NotedTiming]:
    parts = state["triggers"]
    if len(parts) == 1:
        return _either(state, now)
    raise NotReadable(
        "it fires where several triggers agree, which no expression here says",
        "one cron that names those times",
    )


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any], int], list[NotedTiming]]]] = {
    "CronTrigger": _cron,
    "IntervalTrigger": _interval,
    "DateTrigger": _once,
    "CalendarIntervalTrigger": _calendar,
    "OrTrigger": _either,
    "AndTrigger": _both,
}
