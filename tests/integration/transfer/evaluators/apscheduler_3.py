"""APScheduler 3 itself: a store with its jobs, and the fire times of each.

Runs in an environment of its own. Arguments: the file of the store. Lines of JSON come in, each a
job: its id, what `add_job` takes, and the span of its fire times; their lists go out.
"""

import json
import sys
from datetime import UTC, datetime
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.calendarinterval import (
    CalendarIntervalTrigger,
)
from apscheduler.triggers.combining import AndTrigger, OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

Trigger: TypeAlias = Any

KINDS = {
    "cron": CronTrigger,
    "interval": IntervalTrigger,
    "date": DateTrigger,
    "calendar": CalendarIntervalTrigger,
}


def trigger_of(kind: str, given: dict[str, Any], zone: str) -> Trigger:
    """Return the trigger of that kind, in a zone."""
    if kind in ("or", "and"):
        parts = [trigger_of(kind, part, zone) for kind, part in given["triggers"]]
        return OrTrigger(parts) if kind == "or" else AndTrigger(parts)
    return KINDS[kind](**given, timezone=ZoneInfo(zone))


def tell(found: list[int]) -> None:
    """Tell the fire times."""
    sys.stdout.write(f"{json.dumps(found)}\n")


def fires(trigger: Trigger, after: int, until: int) -> list[int]:
    """Return the fire times in a span, in milliseconds."""
    before, now = None, datetime.fromtimestamp(after / 1_000, UTC)
    found: list[int] = []
    while True:
        before = trigger.get_next_fire_time(before, now)
        if before is None or before.timestamp() * 1_000 > until:
            return found
        now = before
        found.append(round(before.timestamp() * 1_000))


def main() -> None:
    """Make the store, and tell the fire times."""
    store = SQLAlchemyJobStore(url=f"sqlite:///{sys.argv[1]}")
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone=UTC)
    scheduler.start(paused=True)
    for line in sys.stdin:
        job = json.loads(line)
        trigger = trigger_of(job["kind"], job["given"], job["zone"])
        made = scheduler.add_job(
            job.get("func", "os:getcwd"), trigger, id=job["id"], **job.get("more", {})
        )
        if job.get("paused"):
            made.pause()
        if job["span"]:
            tell(fires(trigger, *job["span"]))
    scheduler.shutdown()


main()
