"""APScheduler 4 itself: a store with its schedules, the fire times of each, and a reader of ours.

Runs in an environment of its own. Arguments: the file of the store, and the serializer. Lines of
JSON come in, each a schedule: its id, its trigger, and the span of its fire times; their lists go
out. With `-` for the file, each line is a trigger as JSON, and its span.
"""

import asyncio
import json
import sys
from datetime import datetime
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from apscheduler import AsyncScheduler
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.serializers.json import JSONSerializer
from apscheduler.serializers.pickle import PickleSerializer
from apscheduler.triggers.calendarinterval import (
    CalendarIntervalTrigger,
)
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

Trigger: TypeAlias = Any

SERIALIZERS = {"json": JSONSerializer, "pickle": PickleSerializer}


def trigger_of(kind: str, given: dict[str, Any], zone: str, start: int) -> Trigger:
    """Return the trigger of that kind, in a zone, from a start on."""
    begin = datetime.fromtimestamp(start / 1_000, ZoneInfo(zone))
    match kind:
        case "cron":
            return CronTrigger(**given, timezone=ZoneInfo(zone), start_time=begin)
        case "interval":
            return IntervalTrigger(**given, start_time=begin)
        case "date":
            return DateTrigger(datetime.fromisoformat(given["run_time"]))
        case "calendar":
            return CalendarIntervalTrigger(**given, timezone=ZoneInfo(zone))
        case _:
            return OrTrigger(
                [trigger_of(kind, part, zone, start) for kind, part in given["triggers"]]
            )


def tell(found: list[int]) -> None:
    """Tell the fire times."""
    sys.stdout.write(f"{json.dumps(found)}\n")


def fires(trigger: Trigger, after: int, until: int) -> list[int]:
    """Return the fire times in a span, in milliseconds. A trigger of this version is used up by
    that.
    """
    found: list[int] = []
    while (at := trigger.next()) and at.timestamp() * 1_000 <= until:
        if at.timestamp() * 1_000 >= after:
            found.append(round(at.timestamp() * 1_000))
    return found


async def make(file: str, serializer: str) -> None:
    """Make the store, and tell the fire times."""
    data = SQLAlchemyDataStore(f"sqlite+aiosqlite:///{file}")
    data.serializer = SERIALIZERS[serializer]()
    async with AsyncScheduler(data) as scheduler:
        for line in sys.stdin:
            one = json.loads(line)
            parts = one["kind"], one["given"], one["zone"], one["start"]
            more = one.get("more", {})
            if "kwargs" in one:
                more = {**more, "kwargs": one["kwargs"]}
            await scheduler.add_schedule(
                "os:getcwd",
                trigger_of(*parts),
                id=one["id"],
                paused=one.get("paused", False),
                **more,
            )
            if one["span"]:
                kept = data.serializer.deserialize(data.serializer.serialize(trigger_of(*parts)))
                tell(fires(kept, *one["span"]))


def read() -> None:
    """Tell the fire times of triggers that others wrote as JSON."""
    for line in sys.stdin:
        text, span = json.loads(line)
        tell(fires(JSONSerializer().deserialize(text.encode()), *span))


if sys.argv[1] == "-":
    read()
else:
    asyncio.run(make(sys.argv[1], sys.argv[2]))
