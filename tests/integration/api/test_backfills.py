"""A-03, O-04: operators backfill a schedule over the API and by the command; ticks carry it out."""

import json
import logging
from contextlib import closing
from pathlib import Path

import pytest
from duetick.cli.main import main
from duetick.client import ApiError, Client
from duetick.core.operations import NEWEST
from duetick.core.wire import iso
from duetick.stores import open_store
from duetick.testing.conformance.samples import schedule

from tests.integration.api.asking import DAY, HELLO, MINUTE, refused
from tests.integration.local_product import NINE, Product

SPAN = {"from": iso(NINE - 4 * DAY), "to": iso(NINE - DAY)}


@pytest.fixture
def operator(running: Product) -> Client:
    """Return an operator with a schedule of nine o'clock. Nothing has fired yet."""
    client = running.operator("you")
    client.put("hello", HELLO)
    return client


def ticks(running: Product, times: int) -> int:
    """Let minutes pass. Return the number of deliveries."""
    delivered = 0
    for _ in range(times):
        running.clock.now += MINUTE
        delivered += running.tick()["delivered"]
    return delivered


def test_o04_a_dry_run_comes_first_and_makes_nothing(running: Product, operator: Client) -> None:
    answer = operator.start_backfill("hello", SPAN)
    assert answer["started"] is None
    plan = answer["plan"]
    assert (plan["order"]["times"], plan["toBring"], plan["outcomes"]) == (3, 3, {"none": 3})
    assert (plan["first"], plan["last"]) == (iso(NINE - 4 * DAY), iso(NINE - 2 * DAY))
    assert (plan["ticks"], plan["leastSeconds"]) == (3, 120)
    assert ticks(running, 2) == 0
    assert operator.backfills() == {"backfills": []}


def test_a03_ticks_carry_a_backfill_out_and_it_ends(
    running: Product, operator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    order = SPAN | {"note": "the mail server was down"}
    made = operator.start_backfill("hello", order, dry_run=False)["started"]
    assert made is not None
    assert (made["state"], made["note"], made["by"] != "") == ("running", order["note"], True)
    assert ticks(running, 1) == 1
    assert operator.backfill(made["id"])["underWay"] == 1
    with caplog.at_level(logging.INFO, "duetick"):
        assert ticks(running, 3) == 2
    (shown,) = operator.backfills()["backfills"]
    assert (shown["state"], shown["succeeded"], shown["underWay"]) == ("done", 3, 0)
    history = [line for line in operator.history("hello") if line["origin"] == made["origin"]]
    assert [line["state"] for line in history] == ["succeeded"] * 3
    assert "backfill_ended" in {getattr(line, "action", "") for line in caplog.records}
    explained = operator.explain("hello", at=history[0]["nominalFireTime"])
    assert f"Besides, {made['origin']} has this very time: succeeded." in explained["said"]


def test_o04_a_backfill_is_stopped_and_continued(running: Product, operator: Client) -> None:
    made = operator.start_backfill("hello", SPAN, dry_run=False)["started"]
    assert made is not None
    ticks(running, 1)
    assert operator.stop_backfill(made["id"])["state"] == "stopped"
    assert ticks(running, 3) == 0
    assert operator.continue_backfill(made["id"])["state"] == "running"
    assert ticks(running, 2) == 2


def test_d12_a_backfill_of_another_user_does_not_exist(running: Product, operator: Client) -> None:
    made = operator.start_backfill("hello", SPAN, dry_run=False)["started"]
    assert made is not None
    other = running.operator("bob")
    for verb in (other.backfill, other.stop_backfill, other.continue_backfill):
        assert refused(verb, made["id"]) == (404, "backfill_not_found")
    assert other.backfills() == {"backfills": []}
    assert refused(other.start_backfill, "hello", SPAN) == (404, "schedule_not_found")
    assert operator.backfill(made["id"])["state"] == "running"


def test_o04_a_second_one_of_the_same_times_is_refused(operator: Client) -> None:
    operator.start_backfill("hello", SPAN, dry_run=False)
    with pytest.raises(ApiError, match="has some of these times") as problem:
        operator.start_backfill("hello", SPAN, dry_run=False)
    assert (problem.value.status, problem.value.code) == (409, "backfill_exists")


def test_o04_a_refusal_names_each_field(operator: Client) -> None:
    order = SPAN | {"to": iso(NINE + DAY), "atOnce": 3, "overlap": "wait"}
    with pytest.raises(ApiError) as problem:
        operator.start_backfill("hello", order)
    assert [each["field"] for each in problem.value.problems] == ["/to", "/atOnce"]
    with pytest.raises(ApiError, match="names 3 times"):
        operator.start_backfill("hello", SPAN | {"most": 2})


@pytest.mark.parametrize(
    ("at_once", "overlap", "means"),
    [(1, None, "wait"), (3, None, "allow"), (3, "allow", "allow"), (1, "allow", "allow")],
)
def test_o04_more_than_one_at_once_run_side_by_side(
    operator: Client, at_once: int, overlap: str | None, means: str
) -> None:
    order = SPAN | {"atOnce": at_once} | ({"overlap": overlap} if overlap else {})
    plan = operator.start_backfill("hello", order)["plan"]
    assert (plan["order"]["overlap"], plan["ticks"]) == (means, 3 // at_once)


def test_o04_the_command_does_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"sqlite:///{tmp_path / 'duetick.db'}"

    def told(*arguments: str) -> list[dict[str, object]]:
        capsys.readouterr()
        code = main(["backfill", *arguments, "--store", address, "--json"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        found = json.loads(printed.out)
        return found if isinstance(found, list) else [found]

    with closing(open_store(address, clock=lambda: NINE)) as store:
        store.migrate()
        store.schedules.put(schedule("hello", user="you"))
    monkeypatch.setattr("duetick.stores.sqlite.database.SqliteDatabase.now", lambda _: NINE)
    span = ["--from", str(SPAN["from"]), "--to", str(SPAN["to"])]
    (dry,) = told("start", "hello", "--user", "you", *span, "--at-once", "3")
    assert isinstance(dry["plan"], dict)
    assert (dry["started"], dry["plan"]["order"]["overlap"]) == (None, "allow")
    refused_one = ["start", "hello", "--user", "you", *span, "--at-once", "3", "--overlap", "wait"]
    assert main(["backfill", *refused_one, "--store", address]) == 1
    assert "choose `allow`, or leave overlap out" in capsys.readouterr().err
    (answer,) = told("start", "hello", "--user", "you", *span, "--yes", "--why", "why")
    assert isinstance(answer["plan"], dict)
    made = answer["started"]
    assert isinstance(made, dict)
    assert made["note"] == "why"
    assert [one["id"] for one in told("list")] == [made["id"]]
    assert told("list", "--user", "bob") == []
    for verb, state in (("show", "running"), ("stop", "stopped"), ("continue", "running")):
        assert [one["state"] for one in told(verb, str(made["id"]))] == [state]
    with closing(open_store(address)) as store:
        done = store.shelf.operations(NEWEST, 10)
    assert {one.user_id for one in done} == {"you"}, "so that an erasure finds them"


def test_o04_the_command_asks_a_stack_too(
    running: Product,
    operator: Client,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = operator.start_backfill("hello", SPAN, dry_run=False)["started"]
    assert made is not None
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    url = ["--url", running.stack.server.url, "--user", "you"]
    assert main(["backfill", "stop", made["id"], *url]) == 0
    assert "stopped" in capsys.readouterr().out
    assert main(["backfill", "list", *url]) == 0
    assert made["id"] in capsys.readouterr().out
    assert main(["backfill", "list", "--url", running.stack.server.url]) == 2
