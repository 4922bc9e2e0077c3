"""The tables of pg-boss and APScheduler are read from databases and from dumps of them."""

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from duetick.cli.problem import CliProblem
from duetick.cli.transfer import apscheduler, pgboss
from duetick.cli.transfer.rows import rows_of_database, rows_of_file
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.connecting import connect_to

from tests.integration.transfer.evaluated import SINCE
from tests.integration.transfer.evaluated import apscheduler as make_apscheduler
from tests.integration.transfer.parts import items, only, refused

if TYPE_CHECKING:
    from collections.abc import Mapping

PGBOSS = """
    CREATE TABLE pgboss.schedule (
      name text, key text not null DEFAULT '', kind text not null DEFAULT 'cron',
      cron text not null, timezone text DEFAULT 'UTC', data jsonb, options jsonb,
      created_on timestamptz not null default now(), updated_on timestamptz not null default now(),
      last_job_id uuid, PRIMARY KEY (name, key)
    )
"""
"""The table of pg-boss 12, as it makes it."""

QUERIES = [pgboss.QUERY.format(schema='"pgboss".'), pgboss.QUERY.format(schema="")]
ROW = {"name": "mail", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin", "options": {}}


def row(**more: object) -> dict[str, Any]:
    return {**ROW, **more}


@pytest.fixture
def database(postgres_url: str) -> str:
    """A Postgres with pg-boss's table and three schedules."""
    with closing(connect_to(read_address(postgres_url))()) as connection:
        connection.run("CREATE SCHEMA pgboss")
        connection.run(PGBOSS)
        insert = (
            "INSERT INTO pgboss.schedule (name, key, cron, timezone, data, options) "
            "VALUES (:name, :key, :cron, :zone, CAST(:data AS jsonb), CAST(:options AS jsonb))"
        )
        given = [
            ("mail", "", "0 9 * * 1-5", "Europe/Berlin", {"to": "ann"}, {"retryLimit": 2}),
            ("mail", "bob", "*/5 * * * *", None, {"to": "bö\tb\\"}, {"tz": "Asia/Tokyo"}),
            ("rule", "", "FREQ=DAILY;BYHOUR=9", "UTC", None, {}),
        ]
        for name, key, cron, zone, data, options in given:
            parts = {"data": json.dumps(data), "options": json.dumps(options)}
            connection.run(insert, name=name, key=key, cron=cron, zone=zone, **parts)
    return postgres_url


@pytest.mark.slow
def test_the_table_of_pg_boss_is_read_from_its_postgres(database: str) -> None:
    found = [*pgboss.read_rows("postgresql", rows_of_database(database, QUERIES), SINCE)]
    first, second = items(found[:2])
    assert (first.name, first.facts["data"]) == ("mail", {"to": "ann"})
    assert (second.name, second.timing.timezone) == ("mail/bob", "Asia/Tokyo")
    assert second.facts["data"] == {"to": "bö\tb\\"}
    assert "RRULE" in refused(found[2:]).why


@pytest.mark.slow
def test_a_database_that_is_another_one_is_told(postgres_url: str) -> None:
    with pytest.raises(CliProblem, match=r"tables are not there.*--schema"):
        rows_of_database(postgres_url, QUERIES)


def test_a_plain_dump_is_read_as_the_table_is(tmp_path: Path) -> None:
    dump = tmp_path / "dump.sql"
    dump.write_text(
        "--\n-- PostgreSQL database dump\n--\n\n"
        "COPY pgboss.job (id, name) FROM stdin;\n1\tmail\n\\.\n\n"
        "COPY pgboss.schedule (name, key, cron, timezone, data, options) FROM stdin;\n"
        'mail\tbob\t*/5 * * * *\t\\N\t{"to": "b\\\\tb\\\\\\\\"}\t{}\n'
        "\\.\n"
    )
    found = only(pgboss.read_rows("dump", rows_of_file(dump, ["schedule"], QUERIES), SINCE))
    assert (found.name, found.timing.timezone) == ("mail/bob", None)
    assert found.facts["data"] == {"to": "b\tb\\"}


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.json"])
def test_rows_may_come_as_csv_and_as_json(tmp_path: Path, name: str) -> None:
    given = row(key="k", data={"to": "ann"})
    texts = {
        "rows.csv": "name,key,cron,timezone,data,options\nmail,k,0 9 * * 1-5,Europe/Berlin,"
        '"{""to"": ""ann""}",{}\n',
        "rows.jsonl": f"{json.dumps(given)}\n",
        "rows.json": json.dumps([given], indent=2),
    }
    (tmp_path / name).write_text(texts[name])
    found = only(
        pgboss.read_rows("rows", rows_of_file(tmp_path / name, ["schedule"], QUERIES), SINCE)
    )
    assert (found.name, found.facts["data"]) == ("mail/k", {"to": "ann"})


def test_the_options_of_pg_boss_become_policies_and_others_are_told() -> None:
    options = {
        "retryLimit": 200,
        "retryDelay": 30,
        "retryBackoff": True,
        "priority": 900,
        "expireInMinutes": 30,
        "missed": "once",
        "singletonKey": "x",
    }
    found = only(pgboss.read_rows("rows", [row(options=options)], SINCE))
    assert found.timing.policies == {
        "misfire": "latest",
        "delivery": "at_least_once",
        "retry": {"attempts": 185, "backoff": "exponential", "first": 30, "longest": 3600},
        "priority": 100,
        "timeout": 900,
    }
    for word in ("185 attempts", "100 here", "900 s here", "singletonKey"):
        assert any(word in note for note in found.notes), word


@pytest.mark.parametrize(
    "name", ["retryLimit", "priority", "expireInSeconds", "expireInMinutes", "expireInHours"]
)
def test_an_option_that_should_be_a_number_is_told_and_ends_no_import(name: str) -> None:
    wrong, right = row(options={name: "soon"}), row()
    first, second = pgboss.read_rows("rows", [wrong, right], SINCE)
    assert f"{name}: expected a whole number, got 'soon'" in refused([first]).why
    only([second])


@pytest.mark.parametrize(
    ("cron", "word"),
    [("*/10 * * * * *", "rate(30 seconds)"), ("75 * * * *", "30 9"), ("H 9 * * *", "spread")],
)
def test_a_cron_of_pg_boss_that_cannot_be_is_refused(cron: str, word: str) -> None:
    found = refused(pgboss.read_rows("rows", [row(cron=cron)], SINCE))
    assert word in f"{found.why} {found.instead}"


@pytest.mark.slow
def test_the_stores_that_apscheduler_makes_are_read(tmp_path: Path) -> None:
    hourly = {"id": "hourly", "kind": "cron", "given": {"hour": "*"}, "zone": "UTC", "span": None}
    or_ = {
        "id": "two",
        "kind": "or",
        "given": {"triggers": [["cron", {"hour": 1}], ["cron", {"hour": 5}]]},
        "zone": "Europe/Berlin",
        "span": None,
    }
    more = {"misfire_grace_time": 600, "max_instances": 3, "coalesce": False}
    given = {"args": [[1, "a"]], "kwargs": {"to": "ann"}}
    jobs: list[Mapping[str, object]] = [
        {**hourly, "more": more},
        {**or_, "paused": True},
        {**hourly, "id": "given", "func": "json:dumps", "more": given},
    ]
    make_apscheduler(3, tmp_path / "three.db", jobs)
    queries = [apscheduler.QUERY_3.format(table="apscheduler_jobs")]
    stored = rows_of_file(tmp_path / "three.db", [], queries)
    found = items(apscheduler.read_rows("jobs", stored, SINCE))
    named = {one.name: one for one in found}
    assert named.keys() == {"hourly", "two/1", "two/2", "given"}
    assert named["hourly"].timing.policies == {
        "misfire": "all",
        "overlap": "allow",
        "longestLateness": 600,
    }
    assert not named["two/1"].timing.enabled
    assert named["hourly"].facts["func"] == "os:getcwd"
    assert {name: named["given"].facts[name] for name in given} == given
    schedules: list[Mapping[str, object]] = [
        {**hourly, "start": SINCE, "kwargs": {"to": "ann"}, "paused": True},
        {**or_, "start": SINCE},
    ]
    for serializer in ("pickle", "json"):
        file = tmp_path / f"{serializer}.db"
        make_apscheduler(4, file, schedules, serializer)
        queries = [apscheduler.QUERY_4.format(schema="")]
        stored = rows_of_database(f"sqlite:///{file}", queries)
        found = items(apscheduler.read_rows("data", stored, SINCE))
        named = {one.name: one for one in found}
        assert named.keys() == {"hourly", "two/1", "two/2"}
        assert named["hourly"].facts["kwargs"] == {"to": "ann"}
        assert not named["hourly"].timing.enabled


def test_a_store_is_opened_to_be_read_alone(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE apscheduler_jobs (id text, job_state blob)")
        made.commit()
    before = file.read_bytes()
    with pytest.raises(CliProblem, match="readonly"):
        rows_of_database(f"sqlite:///{file}", ["DELETE FROM apscheduler_jobs"])
    assert file.read_bytes() == before


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(CliProblem, match="There is no file"):
        rows_of_database(f"sqlite:///{tmp_path}/none.db", ["SELECT 1"])
    assert not (tmp_path / "none.db").exists()


def test_a_scheme_that_nobody_reads_is_told_without_its_password() -> None:
    with pytest.raises(CliProblem, match="known are sqlite") as problem:
        rows_of_database("mysql://ann:sesame@host/db", ["SELECT 1"])
    assert "sesame" not in str(problem.value)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(timedelta(minutes=5), 300), (300_000_000, 300), ("00:05:00", 300), (None, None)],
)
def test_a_duration_is_read_as_each_database_writes_it(given: object, seconds: object) -> None:
    trigger = json.dumps(
        {
            "_apscheduler_json": [
                "apscheduler.triggers.cron:CronTrigger",
                {
                    "version": 1,
                    "timezone": "UTC",
                    "fields": ["*", "*", "*", "*", "*", "9", "0", "0"],
                    "start_time": "2026-12-01T00:00:00+00:00",
                    "end_time": None,
                },
            ]
        }
    )
    stored = {"id": "a", "trigger": trigger, "misfire_grace_time": given, "max_running_jobs": 1}
    found = only(apscheduler.read_rows("rows", [stored], SINCE))
    assert found.timing.policies.get("longestLateness") == seconds


DUMP = "COPY pgboss.schedule (name, key, cron, timezone, data, options) FROM stdin;\n{}\n\\.\n"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085"])
def test_a_separator_of_unicodes_is_part_of_a_row(tmp_path: Path, separator: str) -> None:
    data = json.dumps({"a": f"x{separator}y"}, ensure_ascii=False)
    file = tmp_path / "dump.sql"
    file.write_text(DUMP.format(f"q\tk\t0 9 * * *\tUTC\t{data}\t\\N"))
    (row,) = rows_of_file(file, ["schedule"], [])
    assert row["data"] == data


def test_a_dump_that_was_cut_is_told(tmp_path: Path) -> None:
    file = tmp_path / "dump.sql"
    file.write_text(DUMP.format("q\tk\t0 9 * * *"))
    with pytest.raises(CliProblem, match=r"3 cells, and its table 6 columns\. Is the dump whole"):
        rows_of_file(file, ["schedule"], [])


TRIGGERS: list[tuple[str, object]] = [
    ("cron:CronTrigger", {"version": 1, "timezone": "UTC"}),
    ("cron:CronTrigger", {"version": 1, "timezone": "UTC", "fields": ["*"]}),
    ("cron:CronTrigger", 5),
    ("interval:IntervalTrigger", {"version": 1}),
    ("calendarinterval:CalendarIntervalTrigger", {"version": 1, "interval": [1]}),
    ("date:DateTrigger", {"version": 1, "run_time": "soon"}),
    ("combining:OrTrigger", {"version": 1, "triggers": 5}),
]


@pytest.mark.parametrize(("name", "state"), TRIGGERS)
def test_a_trigger_of_another_form_is_refused_and_ends_no_import(name: str, state: object) -> None:
    odd = json.dumps({"_apscheduler_json": [f"apscheduler.triggers.{name}", state]})
    rows: list[dict[str, object]] = [
        {"id": "odd", "trigger": odd},
        {"id": "long", "misfire_grace_time": 10**400},
    ]
    found = [*apscheduler.read_rows("f", rows, SINCE)]
    assert [type(one).__name__ for one in found] == ["RefusedItem", "RefusedItem"]
