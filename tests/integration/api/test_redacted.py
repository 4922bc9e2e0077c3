"""J-11: a planted canary is found in no answer but its owner's, and in no log."""

import json
from dataclasses import replace

import pytest
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from duetick.cli.plain_log import PlainFormatter
from duetick.client import ApiError, Client, Fields
from duetick.core.agents import AgentSchedules
from duetick.core.context import Context
from duetick.core.flows import Flow, Flows
from duetick.core.schedules import UserSchedules
from duetick.domain.errors import InvalidSchedule
from duetick.domain.redaction import WITHHELD
from duetick.domain.schedule import Json
from flows import reminders

from tests.integration.api.asking import HELLO, MINUTE, refused
from tests.integration.local_product import Product

CANARY = "canary of ann's"
PLANTED: list[tuple[Json, tuple[str, ...]]] = [
    ({"text": CANARY}, ("text",)),
    ({"text": "x", "to": [{"apiKey": CANARY}]}, ()),
    ({"text": "x", "to": {"iban": {"parts": [CANARY]}}}, ("iban",)),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", PLANTED)
@pytest.mark.parametrize("failure", [RuntimeError, InvalidSchedule, KeyError])
def test_j11_a_canary_is_its_owners_alone(
    running: Product,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    case: tuple[Json, tuple[str, ...]],
    failure: type[Exception],
) -> None:
    planted, withheld = case

    def remind(given: Json, ctx: Context) -> None:
        message = f"cannot tell {json.dumps(given)}"
        raise failure("text", message) if failure is InvalidSchedule else failure(message)

    known = reminders.reminders.actions
    takes = replace(known["remind"].takes, annotation=object)
    failing = replace(known["remind"], run=remind, takes=takes, withheld=frozenset(withheld))
    monkeypatch.setitem(known, "remind", failing)

    ann, machine = running.client("ann"), running.operator("ann")
    policies: Json = {"delivery": "at_least_once", "retry": {"attempts": 2, "first": 1}}
    own = ann.put("k", HELLO | {"cron": "* * * * *", "input": planted, "policies": policies})
    told: list[object] = [ann.run("k")]
    for _ in range(3):
        running.clock.now += MINUTE
        running.tick()
    told += [*ann.history("k"), *machine.history("k"), machine.get("k").body, machine.export()]
    told += machine.list()
    status, answer = running.call(
        "POST",
        "/api/flows/reminders/schedules/ann~2Fk/dispatch",
        {"idempotencyKey": "mine"},
        running.stack.secret,
    )
    shown = [*map(PlainFormatter().format, caplog.records)]
    shown += map(LambdaPowertoolsFormatter().format, caplog.records)
    logged = "\n".join(shown)
    assert own.body["input"] == planted
    assert (status, answer["error"]) == (500, "action_failed")
    assert "cannot tell" in str(told)
    assert "Traceback" in logged
    assert "canary" not in json.dumps([*told, answer])
    assert "canary" not in logged


def test_j11_what_an_operator_is_not_shown_is_not_written_back_as_its_mark(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = reminders.reminders.actions
    monkeypatch.setitem(known, "remind", replace(known["remind"], withheld=frozenset({"text"})))
    ann, machine = running.client("ann"), running.operator("ann")
    ann.put("k", HELLO)
    marked: Fields = {"input": {"text": "[withheld]"}}
    assert machine.get("k").body["input"] == marked["input"]
    with pytest.raises(ApiError, match="PATCH the other fields") as problem:
        machine.put("k", HELLO | marked)
    assert (problem.value.status, problem.value.code) == (400, "invalid_schedule")
    assert refused(machine.change, "k", marked) == (400, "invalid_schedule")
    assert refused(machine.create, HELLO | marked) == (400, "invalid_schedule")
    machine.change("k", {"cron": "0 8 * * *"})
    assert ann.get("k").body["input"] == HELLO["input"]
    assert ann.put("k", HELLO | marked).body["input"] == marked["input"], "a user's own words"
    machine.change("k", {"cron": "0 7 * * *"})


def test_j11_an_input_of_many_levels_is_shown_as_far_as_it_is_looked_at(
    running: Product, client: Client
) -> None:
    """An agent may make one that no body can bring."""

    def remind(given: object, ctx: Context) -> None:
        """Never called."""

    flow = Flow("reminders")
    flow.action("remind")(remind)
    own = UserSchedules(running.store, Flows({"reminders": flow}), "you", running.clock)
    deep: Json = {"token": "canary"}
    for _ in range(600):
        deep = [deep]
    AgentSchedules(own, "reminders").create("k", cron="@daily", action="remind", input=deep)
    operator = running.operator("you")
    shown = [operator.get("k").body, *operator.list(), operator.export()]
    assert WITHHELD in json.dumps(shown)
    assert "canary" not in json.dumps(shown)
    assert client.get("k").status == 200


def test_j11_json_of_many_levels_in_a_text_hides_no_other_mistake(client: Client) -> None:
    deep = "[" * 5_000 + "]" * 5_000
    body: Fields = HELLO | {"input": {"text": "x", "deep": deep}, "cron": "x"}
    with pytest.raises(ApiError) as problem:
        client.create(body)
    told = [(each["field"], each["code"]) for each in problem.value.problems]
    assert ("/input/deep", "unknown_field") in told
    assert "/cron" in [field for field, _ in told]
