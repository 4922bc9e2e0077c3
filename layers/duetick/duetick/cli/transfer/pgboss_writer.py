"""Schedules as rows of pg-boss, one JSON object to a line, as `boss.schedule()` takes them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from duetick.cli.transfer.exported import Exported, TellLoss, tell_clocks, time_each
from duetick.cli.transfer.items import digest
from duetick.cli.transfer.rules import as_text, fill
from duetick.domain.expression.parts import CannotSay, as_five, parts_of
from duetick.domain.schedule import Json

QUEUE: Final = "{flow}-{action}"
SAID: Final = frozenset({"delivery", "retry", "priority", "timeout", "misfire"})
MISSED: Final[Mapping[str, str]] = {"skip": "skip", "latest": "once"}
USUAL_TIMEOUT: Final = 25


def write(
    schedules: list[Exported], tell: TellLoss, *, now: int, queue: str | None = None
) -> Iterator[str]:
    """Yield a row for each schedule. `queue` is the template of its queue's name."""
    for one, cron in time_each(schedules, tell, _cron, "pg-boss", SAID):
        if not one.view["enabled"]:
            tell(one, "left out: it is paused, and pg-boss pauses no schedule")
            continue
        tell_clocks(one, tell, "pg-boss", now)
        row = {
            "name": as_text(fill(queue or QUEUE, one.facts)),
            "key": _key(one.name),
            "cron": cron,
            "timezone": one.zone,
            "data": one.view["input"],
            "options": _options(one, tell),
        }
        yield json.dumps(row, ensure_ascii=False)


def _cron(one: Exported) -> str:
    """Return five fields that cron-parser reads alike. Raises CannotSay."""
    five = as_five(one.cron)
    parts = parts_of(one.cron)
    if parts is None or parts.either:
        return five
    restricts_dates = not parts.any_date or parts.special_dates
    if restricts_dates and (not parts.any_weekday or parts.special_weekdays):
        raise CannotSay("pg-boss takes either day of two, and here both must match")
    if any(item.endswith("W") for item in parts.special_dates):
        raise CannotSay("pg-boss knows no W; for example: 0 9 L * *")
    return five


def _key(name: str) -> str:
    """Return a name as pg-boss takes keys: letters, digits, hyphen, underscore, dot, slash."""
    plain = re.sub(r"[^A-Za-z0-9_./-]+", "-", name)
    return name if plain == name else f"{plain}-{digest(name)}"


def _options(one: Exported, tell: TellLoss) -> dict[str, Json]:
    policies = one.view["policies"]
    found: dict[str, Any] = {"tz": one.zone}
    missed = MISSED.get(policies["misfire"])
    if missed:
        found["missed"] = missed
    else:
        tell(one, "pg-boss catches up with one time, not with all")
    if policies["delivery"] != "at_most_once":
        retry = policies["retry"]
        found["retryLimit"] = retry["attempts"] - 1
        found["retryDelay"] = retry["first"]
        found["retryBackoff"] = retry["backoff"] == "exponential"
        found["retryDelayMax"] = retry["longest"]
    else:
        found["retryLimit"] = 0
    if policies["priority"]:
        found["priority"] = policies["priority"]
    if policies["timeout"] != USUAL_TIMEOUT:
        found["expireInSeconds"] = policies["timeout"]
    return found
