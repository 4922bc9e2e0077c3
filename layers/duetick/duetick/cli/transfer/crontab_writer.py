"""Schedules as a crontab: lines with CRON_TZ before them, and the key of each in a comment."""

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from duetick.cli.transfer.crontab import KEY, ZONE
from duetick.cli.transfer.exported import Exported, TellLoss, time_each
from duetick.cli.transfer.rules import as_text, fill
from duetick.domain.expression.parts import CannotSay, as_five, parts_of

if TYPE_CHECKING:
    from duetick.domain.schedule import Json

COMMAND = "duetick schedules run {key}"
DAY_AND_TIME = re.compile(r"(\w{3}) (\d\d:\d\d)")
RUN_OF_USER = "duetick schedules run {key} --user {user}"


def write(schedules: list[Exported], tell: TellLoss, run: str | None = None) -> Iterator[str]:
    """Yield the lines of a crontab. `run` is the template of the command of each line."""
    zone = None
    by_zone = sorted(schedules, key=lambda one: (one.zone, one.name))
    for one, times in time_each(by_zone, tell, _times, "cron", ()):
        if one.zone != zone:
            zone = one.zone
            yield f"{ZONE}={zone}"
        yield f"# {KEY}: {one.name}"
        yield from _lines(one, times, run or (RUN_OF_USER if one.user else COMMAND), tell)


def _lines(one: Exported, times: list[str], run: str, tell: TellLoss) -> Iterator[str]:
    facts: dict[str, Json] = {
        name: shlex.quote(as_text(value)) for name, value in one.facts.items()
    }
    command = as_text(fill(run, facts)).replace("%", r"\%").replace("\n", " ")
    if not one.view["enabled"]:
        tell(one, "it is paused: its line is a comment")
    if len(times) > 1:
        tell(one, f"it is {len(times)} lines, each a schedule of its own if it is imported")
    for cron in times:
        yield f"{'' if one.view['enabled'] else '#'}{cron} {command}"


def _times(one: Exported) -> list[str]:
    """Return the five fields of each line. Raises CannotSay."""
    times = _times_of_days(one.cron) or [one.cron]
    parts = parts_of(times[0])
    if parts and (parts.special_dates or parts.special_weekdays):
        raise CannotSay("cron knows no L, W and #; for example: 0 9 1 * *")
    return [as_five(text) for text in times]


def _times_of_days(cron: str) -> list[str]:
    """Return a day map for each time of a day map with several times; nothing for any other
    cron.
    """
    try:
        parts_of(cron)
    except CannotSay:
        named = sorted(set(DAY_AND_TIME.findall(cron)), key=lambda found: found[1])
        clocks = dict.fromkeys(time for _, time in named)
        return [
            f"days({', '.join(f'{day} {time}' for day, at in named if at == time)})"
            for time in clocks
        ]
    return []
