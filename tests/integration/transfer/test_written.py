"""An import reads an export back, and it fires alike; the export tells what a form cannot say."""

import json
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from duetick.cli.problem import CliProblem
from duetick.cli.transfer import (
    apscheduler,
    apscheduler_writer,
    crontab_writer,
    eventbridge,
    eventbridge_writer,
    pgboss,
    pgboss_writer,
    tables,
)
from duetick.cli.transfer.crontab import CrontabReader
from duetick.cli.transfer.exported import Exported, definition
from duetick.cli.transfer.items import SourceItem, SourcePart
from duetick.cli.transfer.rules import MappedSchedule, MappingRules
from duetick.core.wire import schedule_json
from duetick.domain.expression import fires, next_fire
from duetick.domain.policies import Delivery, Misfire, Policies, Retry
from duetick.domain.schedule import Json, Record

from tests.integration.transfer.evaluated import HERE as EVALUATORS
from tests.integration.transfer.evaluated import SINCE, UNTIL, ask, change_days, differences, here
from tests.integration.transfer.parts import items, refused
from tests.lab.pythons import environment

Lines = Iterator[str]
HI: Json = {"text": "hi 100%"}
USUAL = Policies()
BERLIN = "Europe/Berlin"
CRONS: dict[str, tuple[str, str | None]] = {
    "weekdays": ("0 9 * * MON-FRI", BERLIN),
    "quarters": ("*/15 * * * *", BERLIN),
    "steps": ("5-59/10 9-17 * 1-6 *", "America/Santiago"),
    "either": ("0 9 13 * 5", None),
    "both": ("0 9 */2 * 1", None),
    "last": ("0 9 L * *", BERLIN),
    "friday": ("0 9 * * FRIL", BERLIN),
    "second": ("0 9 * * MON#2", None),
    "aws": ("cron(0/30 9 ? * 2-6 *)", BERLIN),
    "aws-year": ("cron(0 9 1 1 ? 2027)", BERLIN),
    "map": ("days(mon 09:00, thu 09:00)", BERLIN),
    "map-of-two": ("days(mon 09:00, thu 17:30)", BERLIN),
    "rate": ("rate(36 hours)", None),
    "hourly": ("rate(1 hour)", None),
    "once": ("at(2027-05-01T09:00:00)", BERLIN),
    "early": ("30 2 * * *", BERLIN),
    "working": ("0 9 15W * *", None),
}


def exported(
    key: str,
    *,
    user: str | None = None,
    given: Json = HI,
    policies: Policies = USUAL,
    enabled: bool = True,
    external_id: str | None = None,
) -> Exported:
    """Return a schedule as the API shows it."""
    cron, zone = CRONS[key]
    record = Record(
        user_id="ann",
        key=key,
        cron=cron,
        timezone=zone,
        flow="mail",
        action="send",
        input=given,
        policies=policies,
        enabled=enabled,
        external_id=external_id,
        labels={"team": "x"},
        created_at=SINCE,
        anchor=SINCE,
        next_fire_at=next_fire(cron, zone, SINCE, anchor=SINCE),
    )
    return Exported(user, schedule_json(record, SINCE))


class Told:
    """The losses of a form, by key."""

    def __init__(self) -> None:
        self.by_key: dict[str, list[str]] = {}

    def __call__(self, one: Exported, what: str) -> None:
        self.by_key.setdefault(one.key, []).append(what)


def write_crontab(every: list[Exported], tell: Told) -> Lines:
    return crontab_writer.write(every, tell)


def read_crontab(text: str) -> Iterator[SourcePart]:
    return (one for one in CrontabReader().read("x", text) if isinstance(one, SourceItem))


def read_rows(read: Callable[..., Iterator[SourcePart]], text: str) -> Iterator[SourcePart]:
    return read("x", map(json.loads, text.splitlines()), SINCE)


Form = tuple[Callable[[list[Exported], Told], Lines], Callable[[str], Iterator[SourcePart]]]
FORMS: dict[str, Form] = {
    "crontab": (write_crontab, read_crontab),
    "eventbridge": (
        partial(eventbridge_writer.write, target="a:function:send", role="b", now=SINCE),
        partial(eventbridge.read, "x"),
    ),
    "pgboss": (
        partial(pgboss_writer.write, now=SINCE),
        partial(read_rows, pgboss.read_rows),
    ),
    "apscheduler": (
        partial(apscheduler_writer.write, now=SINCE),
        partial(read_rows, apscheduler.read_rows),
    ),
}
LEFT_OUT = {
    "crontab": {"last", "friday", "second", "aws-year", "rate", "hourly", "once", "working"},
    "eventbridge": {"either", "both", "map-of-two"},
    "pgboss": {"both", "aws-year", "map-of-two", "rate", "hourly", "once", "working"},
    "apscheduler": {"map-of-two", "working"},
}


def original(key: str) -> list[int]:
    cron, zone = CRONS[key]
    return fires(cron, zone, SINCE - 1, UNTIL, anchor=SINCE)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_read_back_and_fires_alike_for_a_year(form: str) -> None:
    write, read = FORMS[form]
    told = Told()
    text = "\n".join(write([exported(key) for key in CRONS], told))
    found: dict[str, list[SourceItem]] = {}
    for one in items(read(text)):
        found.setdefault(_key_of(one), []).append(one)
    left_out = {key for key, notes in told.by_key.items() if "left out" in notes[0]}
    assert left_out == LEFT_OUT[form]
    assert found.keys() >= CRONS.keys() - left_out - {"map-of-two"}
    for key in CRONS.keys() - left_out - {"map-of-two", "rate", "hourly"}:
        ours = {at for one in found[key] for at in here(one.timing)}
        days = differences(ours, original(key))
        assert days <= change_days(CRONS[key][1]), (key, found[key], sorted(days)[:3])
        if days:
            assert any("clock" in note for note in told.by_key[key]), (key, days)


def _key_of(one: SourceItem) -> str:
    """Return the key of an exported schedule: behind the queue, before the part of a trigger."""
    name = one.name.removeprefix("mail-send/")
    return name.rpartition("/")[0] if name.endswith(("/1", "/2")) else name


def test_a_map_of_two_times_is_two_lines_of_a_crontab_and_that_is_told() -> None:
    told = Told()
    text = "\n".join(crontab_writer.write([exported("map-of-two")], told))
    found = items(read_crontab(text))
    assert sorted(at for one in found for at in here(one.timing)) == original("map-of-two")
    assert "2 lines" in told.by_key["map-of-two"][0]


def test_a_line_of_a_crontab_quotes_what_a_shell_and_cron_would_read() -> None:
    run = "send {input} # {key}"
    (_, _, line) = crontab_writer.write([exported("quarters")], Told(), run)
    assert line == r"""*/15 * * * * send '{"text": "hi 100\%"}' # quarters"""


@pytest.mark.parametrize("form", FORMS)
def test_policies_that_a_form_has_come_back_and_others_are_told(form: str) -> None:
    policies = Policies(
        delivery=Delivery.AT_LEAST_ONCE,
        retry=Retry(attempts=3, first=30),
        spread=120,
        priority=7,
        max_runs=5,
        misfire=Misfire.ALL,
        ends_at=UNTIL,
    )
    write, read = FORMS[form]
    told = Told()
    text = "\n".join(write([exported("weekdays", policies=policies)], told))
    (found,) = items(read(text))
    kept = {
        "crontab": {},
        "eventbridge": {"delivery": "at_least_once", "spread": 120},
        "pgboss": {"delivery": "at_least_once", "priority": 7},
        "apscheduler": {"misfire": "all", "spread": 120},
    }
    assert kept[form].items() <= found.timing.policies.items()
    said = "; ".join(told.by_key["weekdays"])
    for name in ("maxRuns", "priority", "spread", "delivery", "endsAt"):
        assert (name in said) is (name not in found.timing.policies), (name, said)


@pytest.mark.parametrize("form", FORMS)
def test_a_paused_schedule_stays_paused_or_is_told(form: str) -> None:
    write, read = FORMS[form]
    told = Told()
    lines = [*write([exported("weekdays", enabled=False)], told)]
    found = items(read("\n".join(lines)))
    assert [one.timing.enabled for one in found] == ([False] if found else [])
    assert bool(found) is not ("paused" in "; ".join(told.by_key.get("weekdays", [])))


def _read_back(lines: str, definitions: list[dict[str, Json]]) -> Iterator[SourcePart]:
    if lines == "csv":
        return tables.read_csv("x", "\n".join(tables.csv_lines(definitions)))
    return tables.read_json_lines("x", "\n".join(map(json.dumps, definitions)))


@pytest.mark.parametrize("lines", ["jsonl", "csv"])
def test_a_file_of_definitions_holds_all_of_them(lines: str) -> None:
    policies = Policies(delivery=Delivery.AT_LEAST_ONCE, spread=60)
    every = [
        exported(key, user="ann", policies=policies, external_id=f"crm-{key}") for key in CRONS
    ]
    definitions = [definition(one) for one in every]
    found = items(_read_back(lines, definitions))
    for one, given in zip(found, definitions, strict=True):
        whole = {"user": "ann", "key": one.name, "cron": one.timing.cron, **one.given}
        whole |= {"timezone": one.timing.timezone, "policies": dict(one.timing.policies)}
        assert {name: value for name, value in whole.items() if value is not None} == given


@pytest.mark.parametrize("lines", ["jsonl", "csv"])
def test_a_file_of_definitions_leaves_nothing_to_the_defaults_of_an_action(lines: str) -> None:
    given = exported("weekdays", policies=USUAL, given={})
    (found,) = items(_read_back(lines, [definition(given)]))
    read = MappingRules([]).apply(found)
    assert isinstance(read, MappedSchedule)
    assert read.definition["policies"] == given.view["policies"]
    assert read.definition["input"] == {}


WRONG_KINDS: list[dict[str, Json]] = [
    {"enabled": "no"},
    {"key": ["nightly"]},
    {"enabled": "0"},
    {"enabled": 0},
    {"policies": "spread"},
    {"labels": ["team"]},
]


@pytest.mark.parametrize("wrong", WRONG_KINDS, ids=str)
def test_a_field_of_another_kind_is_refused_and_never_left_out(wrong: dict[str, Json]) -> None:
    (name,) = wrong
    assert name in refused(_read_back("jsonl", [definition(exported("weekdays")) | wrong])).why


@pytest.mark.parametrize("cell", ["no", "0", "off"])
def test_a_cell_that_says_no_in_other_words_makes_no_schedule_that_fires(cell: str) -> None:
    text = f"key,cron,flow,action,enabled\na,0 9 * * *,mail,send,{cell}"
    assert "expected true or false" in refused(tables.read_csv("x", text)).why


def test_an_input_whose_secrets_an_operator_does_not_read_is_told_and_not_taken_back() -> None:
    one = exported("weekdays", given={"text": "a", "apiKey": "[withheld]"})
    (found,) = tables.read_json_lines("x", json.dumps(definition(one)))
    assert "withheld" in getattr(found, "why", "")


@pytest.mark.slow
def test_apscheduler_4_itself_reads_what_is_written_and_fires_alike() -> None:
    keys = [key for key in CRONS if key not in LEFT_OUT["apscheduler"]]
    every = [exported(key) for key in keys]
    rows = map(json.loads, apscheduler_writer.write(every, Told(), now=SINCE))
    python = environment("apscheduler4", "APScheduler 4") / "bin" / "python"
    lines = [[row["trigger"], [SINCE, UNTIL]] for row in rows]
    answers = ask([python, EVALUATORS / "apscheduler_4.py", "-"], lines)
    for key, theirs in zip(keys, answers, strict=True):
        ours = [at for at in original(key) if at > SINCE or not key.startswith(("rate", "hourly"))]
        days = differences(theirs, ours)
        assert days <= change_days(CRONS[key][1]), (key, sorted(days)[:3])


def test_a_column_that_comes_twice_is_refused() -> None:
    with pytest.raises(CliProblem, match="the column cron comes twice; leave one of them out"):
        [*tables.read_csv("x", "key,cron,cron\na,0 9 * * *,@daily\n")]
