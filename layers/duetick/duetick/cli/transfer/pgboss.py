"""pg-boss: the rows of its table `schedule`, from version 9 on.

pg-boss reads cron by cron-parser: five fields, or six with the second first. Either the day of
month or the day of week has to match, unless one is a bare star: so a star with a step is spelled
out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from duetick.cli.transfer.items import (
    NotReadable,
    RefusedItem,
    SourceItem,
    SourcePart,
    Timing,
    read_number,
    unreadable,
)
from duetick.domain.expression import InvalidExpression, InvalidTimezone, check_zone, count, parse
from duetick.domain.expression.parts import parts_of
from duetick.domain.expression.spelling import spell_out
from duetick.domain.schedule import Json

TABLE: Final = "schedule"
QUERY: Final = "SELECT * FROM {schema}schedule"
DAY_OF_MONTH, DAY_OF_WEEK = 2, 4
HOURS: Final = 24
LOOKED_AT: Final = 3 * 366 * 86_400_000
"""The time in which clock changes are looked for."""

CLOCKS: Final = (
    "where a clock change skips one of its times, it fires right after the change here; pg-boss "
    "may fire later, or leave it out"
)
STEPS: Final = {DAY_OF_MONTH: "1-31", DAY_OF_WEEK: "0-6"}
MOST_ATTEMPTS: Final = 185
LONGEST_TIMEOUT: Final = 900
PRIORITIES: Final = 100
MISSED: Final[Mapping[str, str]] = {"skip": "skip", "once": "latest"}
READ: Final = frozenset(
    {"tz", "key", "missed", "retryLimit", "retryDelay", "retryBackoff", "retryDelayMax", "priority"}
    | {"expireInSeconds", "expireInMinutes", "expireInHours"}
)
"""The options that have a counterpart. Any other is told."""


def read_rows(name: str, rows: Iterable[Mapping[str, Any]], now: int) -> Iterator[SourcePart]:
    """Yield the items of rows, as of `now`."""
    for row in rows:
        queue, key = str(row.get("name") or ""), str(row.get("key") or "")
        whole = f"{queue}/{key}" if key else queue
        place, text = f"{name} {whole}", f"{row.get('cron')} {row.get('timezone') or ''}".strip()
        try:
            yield _item(place, text, whole, row, now)
        except NotReadable as problem:
            yield RefusedItem(place, text, problem.why, problem.instead)


def _item(place: str, text: str, name: str, row: Mapping[str, Any], now: int) -> SourceItem:
    if not row.get("name"):
        raise NotReadable("the row has no name of a queue", "the table `schedule` of pg-boss")
    notes: list[str] = []
    if row.get("kind") == "rrule" or str(row.get("cron", "")).upper().startswith(
        ("RRULE", "DTSTART", "FREQ=")
    ):
        raise NotReadable("it is an RRULE", "a cron for it, such as 0 9 * * 1")
    options = _object(row.get("options"))
    zone = str(options.get("tz") or row.get("timezone") or "UTC")
    try:
        check_zone(zone)
    except InvalidTimezone as problem:
        raise unreadable(problem, "an IANA name, such as Europe/Berlin") from None
    cron = _cron(str(row.get("cron") or ""), notes)
    if zone != "UTC":
        cron = _as_clocks_change(cron, zone, notes, now)
    timing = Timing(cron, None if zone == "UTC" else zone, _policies(options, notes))
    facts: dict[str, Json] = {
        "name": str(row["name"]),
        "key": str(row.get("key") or ""),
        "data": _json(row.get("data")),
        "options": options,
    }
    return SourceItem(place, text, name, timing, facts, notes)


def _cron(text: str, notes: list[str]) -> str:
    """Return the five fields that fire alike."""
    parts = text.split()
    if len(parts) == 6:
        parts = _without_seconds(parts, notes)
    if len(parts) == 5:
        parts = ["*" if part == "?" else part for part in parts]
        both = parts[DAY_OF_MONTH] != "*" and parts[DAY_OF_WEEK] != "*"
        for place, whole in STEPS.items():
            if both and parts[place].startswith("*/"):
                parts[place] = whole + parts[place][1:]
    try:
        return parse(" ".join(parts))
    except InvalidExpression as problem:
        raise unreadable(problem, "five fields such as 0 9 * * 1-5") from None


def _as_clocks_change(cron: str, zone: str, notes: list[str], now: int) -> str:
    """Return the cron that follows clock changes as cron-parser does: unless each hour is named, a
    time that is repeated fires once.
    """
    parts = parts_of(cron)
    if parts and len(parts.hours) < HOURS and not parts.is_fixed:
        rest = cron.split()[2:]
        cron = " ".join([spell_out(parts.minutes), spell_out(parts.hours), *rest])
    until = now + LOOKED_AT
    if count(cron, zone, now, until) != count(cron, zone, now, until, gap="skip"):
        notes.append(CLOCKS)
    return cron


def _without_seconds(parts: list[str], notes: list[str]) -> list[str]:
    second, *others = parts
    if not second.isdigit():
        raise NotReadable(
            "it names seconds, and cron here resolves to the minute",
            f"{' '.join(others)}, or rate(30 seconds) in a deployment with look-ahead",
        )
    if int(second):
        notes.append(f"it fires at the full minute here, not at second {second}")
    return others


def _policies(options: Mapping[str, Any], notes: list[str]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    missed = MISSED.get(str(options.get("missed")))
    if missed:
        found["misfire"] = missed
    if options.get("retryLimit") is not None:
        found |= _retries(options, notes)
    if options.get("priority"):
        wanted = read_number("priority", options["priority"])
        found["priority"] = max(-PRIORITIES, min(wanted, PRIORITIES))
        if found["priority"] != wanted:
            notes.append(f"its priority {wanted} is {found['priority']} here, the most there is")
    seconds = _expiry(options)
    if seconds:
        found["timeout"] = min(seconds, LONGEST_TIMEOUT)
        if seconds > LONGEST_TIMEOUT:
            notes.append(f"it may run {LONGEST_TIMEOUT} s here, not {seconds} s")
    others = sorted(options.keys() - READ)
    if others:
        notes.append(f"without a counterpart here: {', '.join(others)}")
    return found


def _retries(options: Mapping[str, Any], notes: list[str]) -> dict[str, Json]:
    limit = read_number("retryLimit", options["retryLimit"])
    if limit == 0:
        return {"delivery": "at_most_once"}
    retry: dict[str, Json] = {"attempts": min(limit + 1, MOST_ATTEMPTS)}
    if limit >= MOST_ATTEMPTS:
        notes.append(f"it has {MOST_ATTEMPTS} attempts here, not {limit + 1}")
    retry["backoff"] = "exponential" if options.get("retryBackoff") else "fixed"
    delay = read_number("retryDelay", options.get("retryDelay") or 0)
    longest = read_number("retryDelayMax", options.get("retryDelayMax") or 0)
    if delay:
        retry["first"] = delay
    if longest or delay:
        retry["longest"] = longest or max(3_600, delay)
    return {"delivery": "at_least_once", "retry": retry}


def _expiry(options: Mapping[str, Any]) -> int:
    """Return the seconds that a job of the schedule may run; 0 if it says nothing."""
    parts = (("expireInSeconds", 1), ("expireInMinutes", 60), ("expireInHours", 3_600))
    return sum(read_number(name, options.get(name) or 0) * size for name, size in parts)


def _object(value: object) -> dict[str, Any]:
    read = _json(value)
    return read if isinstance(read, dict) else {}


def _json(value: object) -> Json:
    """Return a column of JSON, as a driver gives it or as a dump writes it."""
    try:
        read: Json = json.loads(value if isinstance(value, str) else json.dumps(value))
    except (TypeError, ValueError):
        return str(value)
    return read
