"""An imported schedule fires as its source does: a year of both, by the source's own evaluator."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from duetick.cli.transfer import apscheduler, pgboss
from duetick.cli.transfer.items import RefusedItem, SourceItem, SourcePart

from tests.integration.transfer.evaluated import (
    SINCE,
    UNTIL,
    change_days,
    cron_parser,
    differences,
    here,
)
from tests.integration.transfer.evaluated import apscheduler as ask_apscheduler

pytestmark = pytest.mark.slow

ZONES = ("UTC", "Europe/Berlin", "America/Santiago")
SPAN = [SINCE, UNTIL]

Kind = tuple[str, dict[str, Any]]


class Case(NamedTuple):
    """A trigger of APScheduler, and whether it can be a schedule here."""

    name: str
    kind: Kind
    refused: str | None = None


CRONS = [
    Case("weekdays", ("cron", {"hour": 9, "day_of_week": "mon-fri"})),
    Case("quarters", ("cron", {"minute": "*/15"})),
    Case("numbers", ("cron", {"hour": "9-17/2", "minute": "5,35", "month": "1-6"})),
    Case("names", ("cron", {"month": "jan-mar", "day": "1,15", "hour": 8})),
    Case("second-friday", ("cron", {"day": "2nd fri", "hour": 8})),
    Case("last-friday", ("cron", {"day": "last fri", "hour": 8})),
    Case("last-day", ("cron", {"day": "last", "hour": 8})),
    Case("dates-and-last", ("cron", {"day": "1,15,last", "hour": 8})),
    Case("either-day", ("cron", {"day": "1,2nd fri", "hour": 8})),
    Case("first-monday", ("cron", {"day": "1-7", "day_of_week": "mon", "hour": 8})),
    Case("both-with-first", ("cron", {"day": "1,10", "day_of_week": "mon-wed", "hour": 8})),
    Case("both-with-sunday", ("cron", {"day": "10-20", "day_of_week": "sat,sun", "hour": 8})),
    Case("one-year", ("cron", {"year": 2027, "month": 3, "day_of_week": "tue", "hour": 7})),
    Case("each-second-hour", ("cron", {"hour": "*/2"})),
    Case("early", ("cron", {"hour": 2, "minute": 30})),
    Case("midnight", ("cron", {"hour": 0})),
    Case("small-hours", ("cron", {"hour": "1-3", "minute": "*/10"})),
    Case("weeks", ("cron", {"week": "1-10", "hour": 8}), "weeks of the year"),
    Case("seconds", ("cron", {"second": "*/10"}), "within a minute"),
    Case("friday-13", ("cron", {"day": 13, "day_of_week": "fri"}), "both the day"),
]
OTHERS = [
    Case("ten-minutes", ("interval", {"minutes": 10})),
    Case("six-hours", ("interval", {"hours": 6})),
    Case("week", ("interval", {"weeks": 1})),
    Case("months", ("calendar", {"months": 3, "hour": 8, "start_date": "2026-12-15"})),
    Case("each-week", ("calendar", {"weeks": 1, "hour": 8, "start_date": "2026-12-15"})),
    Case("year", ("calendar", {"years": 1, "hour": 8, "start_date": "2026-12-15"})),
    Case(
        "fortnight",
        ("calendar", {"weeks": 2, "hour": 8, "start_date": "2026-12-15"}),
        "no expression",
    ),
]


def rows(file: Path, query: str) -> list[dict[str, Any]]:
    """Return the rows of a store."""
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query)]


def judge(cases: list[tuple[Case, str]], found: dict[str, SourcePart], fired: list[Any]) -> None:
    """Check that each case fires alike, except on the days of clock changes that its notes tell."""
    lists = iter(fired)
    for case, zone in cases:
        part = found[f"{case.name}-{zone}"]
        if case.refused:
            assert isinstance(part, RefusedItem), case
            assert case.refused in part.why
            assert part.instead
            continue
        theirs = next(lists)
        assert isinstance(part, SourceItem), (case, part)
        days = differences(here(part.timing), theirs)
        name = None if zone == "UTC" else zone
        assert days <= change_days(name), (case, zone, part.timing, sorted(days)[:3])
        if days:
            assert any("clock" in note for note in part.notes), (case, zone, part.notes, days)
        assert len(theirs) > 0


def by_id(found: Iterator[SourcePart]) -> dict[str, SourcePart]:
    """Return the parts of a store by the ids of their jobs."""
    return {part.place.rpartition(" ")[2]: part for part in found}


def test_a_cron_of_apscheduler_3_fires_as_it_does_there(tmp_path: Path) -> None:
    cases = [(case, zone) for zone in ZONES for case in CRONS + OTHERS]
    jobs = [
        {
            "id": f"{case.name}-{zone}",
            "kind": case.kind[0],
            "given": case.kind[1] | _started(case.kind[0]),
            "zone": zone,
            "span": None if case.refused else SPAN,
        }
        for case, zone in cases
    ]
    fired = ask_apscheduler(3, tmp_path / "jobs.db", jobs)
    stored = rows(tmp_path / "jobs.db", "SELECT id, job_state FROM apscheduler_jobs")
    judge(cases, by_id(apscheduler.read_rows("jobs", stored, SINCE)), fired)


def _started(kind: str) -> dict[str, str]:
    return {"start_date": "2026-12-01T09:02:00"} if kind == "interval" else {}


@pytest.mark.parametrize("serializer", ["pickle", "json"])
def test_a_schedule_of_apscheduler_4_fires_as_it_does_there(
    tmp_path: Path, serializer: str
) -> None:
    cases = [(case, zone) for zone in ZONES[1:2] for case in CRONS + OTHERS]
    jobs = [
        {
            "id": f"{case.name}-{zone}",
            "kind": case.kind[0],
            "given": case.kind[1],
            "zone": zone,
            "start": SINCE + 9 * 3_600_000 + 120_000 if case.kind[0] == "interval" else SINCE,
            "span": None if case.refused else SPAN,
        }
        for case, zone in cases
    ]
    fired = ask_apscheduler(4, tmp_path / "data.db", jobs, serializer)
    query = apscheduler.QUERY_4.format(schema="")
    stored = rows(tmp_path / "data.db", query)
    judge(cases, by_id(apscheduler.read_rows("data", stored, SINCE)), fired)


CRON_PARSER = [
    *("*/15 * * * *", "0 9 * * 1-5", "0 9 * * 7", "0 9 1,15 * *", "0 9 */10 * *", "0 9 L * *"),
    *("0 9 * * 5L", "0 9 * * 1#2", "0 9 */2 * 1", "0 9 1 * */2", "0 9 13 * 5", "30 2 * * *"),
    *("0 */2 * * *", "*/10 1-3 * * *", "0 0 * * *", "@daily", "0 30 9 * * 1-5", "0 0 9 ? * 1"),
]


def test_a_cron_of_pg_boss_fires_as_it_does_there() -> None:
    """Each row as pg-boss keeps it; its evaluator is cron-parser's."""
    cases = [(cron, zone) for zone in ZONES[1:] for cron in CRON_PARSER]
    fired = cron_parser([(cron, zone, SINCE - 1, UNTIL) for cron, zone in cases])
    given = [
        {"name": "q", "key": str(place), "cron": cron, "timezone": zone, "options": {}}
        for place, (cron, zone) in enumerate(cases)
    ]
    parts = [*pgboss.read_rows("schedule", given, SINCE)]
    for (cron, zone), part, theirs in zip(cases, parts, fired, strict=True):
        assert isinstance(part, SourceItem), part
        days = differences(here(part.timing), theirs)
        assert days <= change_days(None if zone == "UTC" else zone), (cron, zone, part.timing)
        if days:
            assert any("clock" in note for note in part.notes), (cron, zone, part.notes, days)
