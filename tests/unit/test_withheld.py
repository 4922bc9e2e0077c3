"""J-11: the fields that an action withholds are found in nothing that Duetick writes."""

import json
import logging
import sys
from collections.abc import Collection
from dataclasses import dataclass

import pytest
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from duetick import Context, Flow
from duetick.cli.plain_log import PlainFormatter
from duetick.core import action
from duetick.core.dispatch import Dispatcher, Request
from duetick.core.flows import Flows
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import Delivery, Policies, Retry
from duetick.domain.redaction import WITHHELD, Secrets
from duetick.domain.schedule import Json
from duetick.domain.states import Reason, State
from duetick.runtime import telemetry
from duetick.testing import Stage
from pydantic import BaseModel

CANARY = 'canary\n"dotterel"'
FORMS = ("canary", "dotterel")
DEEP = "[" * 5_000 + "]" * 5_000


@dataclass(frozen=True, slots=True)
class Account:
    """The account that gets the money."""

    iban: str
    note: str = ""

    def __post_init__(self) -> None:
        if self.note == "refuse":
            raise ValueError(f"cannot pay {self.iban!r}")


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment to an account."""

    to: list[Account]
    cents: int = 0


class Card(BaseModel):
    """A model of pydantic's."""

    number: int


def pays(*, withheld: tuple[str, ...] = ("iban",)) -> Flow:
    """Return a flow whose action quotes its input when it fails."""
    flow = Flow("bank")

    @flow.action("pay", redact=withheld)
    def pay(payment: Payment, ctx: Context) -> None:
        raise RuntimeError(f"no way to {payment}, {json.dumps(payment.to[0].iban)}" + " " * 600)

    return flow


def paying(note: str = "") -> Json:
    """Return an input with a canary."""
    return {"to": [{"iban": CANARY, "note": note}], "cents": 5}


def told_by(caplog: pytest.LogCaptureFixture) -> str:
    """Return all that any formatter could write of the logged lines."""
    return "\n".join(
        f"{record.getMessage()} {vars(record)} {caplog.handler.format(record)}"
        for record in caplog.records
    )


def test_j11_a_field_that_an_action_withholds_is_in_no_log_error_or_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with Stage(pays()) as stage:
        schedule = stage.schedules(flow="bank").create(
            "rent",
            cron="0 9 * * *",
            action="pay",
            input=paying(),
            policies=Policies(delivery=Delivery.AT_LEAST_ONCE, retry=Retry(attempts=2)),
        )
        with pytest.raises(RuntimeError, match="canary"):
            stage.fire(schedule)
        (occurrence,) = stage.store.ledger.find("ann")
        written = told_by(caplog) + str(occurrence) + str(stage.store.ledger.events(occurrence))
    assert "no way to" in written
    assert WITHHELD in str(occurrence.error)
    assert "Traceback" in written
    assert [form for form in FORMS if form in written] == []


@pytest.mark.parametrize("name", ["password", "apiKey"])
def test_j11_a_value_whose_name_tells_is_withheld_wherever_an_error_quotes_it(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    flow = Flow("mail")

    @flow.action("send")
    def send(given: dict[str, str], ctx: Context) -> None:
        raise RuntimeError(f"{given[name]} is not right")

    with Stage(flow) as stage:
        made = stage.schedules(flow="mail").create(
            "k", cron="0 9 * * *", action="send", input={name: "canary"}
        )
        with pytest.raises(RuntimeError):
            stage.fire(made)
        (occurrence,) = stage.store.ledger.find("ann")
    assert occurrence.error == f"RuntimeError: {WITHHELD} is not right"
    assert "canary" not in told_by(caplog)


def test_j11_a_refusal_of_an_input_does_not_quote_what_is_withheld() -> None:
    with (
        Stage(pays()) as stage,
        pytest.raises(InvalidSchedule, match=r"cannot pay .*withheld") as problem,
    ):
        stage.schedules(flow="bank").create(
            "rent", cron="0 9 * * *", action="pay", input=paying("refuse")
        )
    assert "canary" not in str(problem.value)


def test_j11_a_refusal_of_an_input_that_is_too_deep_says_that_it_is() -> None:
    with Stage(pays()) as stage, pytest.raises(InvalidSchedule, match="is too deep") as problem:
        stage.schedules(flow="bank").create(
            "rent", cron="0 9 * * *", action="pay", input={"to": [], "deep": DEEP, "iban": CANARY}
        )
    assert [flaw.code for flaw in problem.value.flaws] == ["unknown_field"] * 2


@pytest.mark.parametrize("delivery", [Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE])
@pytest.mark.parametrize("given", [{"deep": DEEP}, {1: "no JSON"}])
def test_j11_an_attempt_is_settled_though_its_input_cannot_be_looked_through(
    given: Json, delivery: Delivery, caplog: pytest.LogCaptureFixture
) -> None:
    flow = Flow("mail")

    @flow.action("send", input=lambda _ctx: given)
    def send(given: object, ctx: Context) -> None:
        raise RuntimeError(f"canary: no way to {given}")

    with Stage(flow) as stage:
        made = stage.schedules(flow="mail").create(
            "k",
            cron="0 9 * * *",
            action="send",
            policies=Policies(delivery=delivery, retry=Retry(attempts=1)),
        )
        with pytest.raises(RuntimeError):
            stage.fire(made)
        (occurrence,) = stage.store.ledger.find("ann")
        assert (occurrence.state, occurrence.reason) == (State.DEAD, Reason.FAILED)
        assert WITHHELD in str(occurrence.error)
        assert "canary" not in told_by(caplog) + str(occurrence)


def test_j11_an_input_is_looked_through_once_for_an_error_and_once_for_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Json] = []

    class Counted(Secrets):
        @classmethod
        def of(cls, value: Json, own: Collection[str] = ()) -> Secrets:
            looked.append(value)
            return Secrets.of(value, own)

    monkeypatch.setattr(action, "Secrets", Counted)
    with Stage(pays()) as stage:
        bank = stage.schedules(flow="bank")
        made = bank.create("rent", cron="0 9 * * *", action="pay", input=paying())
        with pytest.raises(RuntimeError, match="canary"):
            stage.fire(made)
        assert looked == [paying()]
        with pytest.raises(InvalidSchedule):
            bank.create("k", cron="0 9 * * *", action="pay", input={"a": 1, "b": 2, "c": 3})
        assert len(looked) == 2


def test_j11_a_models_refusal_names_the_field_and_not_its_value() -> None:
    flow = Flow("cards")

    @flow.action("charge")
    def charge(card: Card, ctx: Context) -> None:
        """Never called."""

    with Stage(flow) as stage, pytest.raises(InvalidSchedule, match="number") as problem:
        stage.schedules(flow="cards").create(
            "k", cron="0 9 * * *", action="charge", input={"number": "canary"}
        )
    assert "canary" not in str(problem.value)
    assert "\n" not in str(problem.value)


def test_j11_the_list_of_static_schedules_withholds_it_too() -> None:
    flow = pays()
    flow.schedule("rent", cron="@daily", action="pay", input=paying())
    flow.schedule("keyed", cron="@daily", action="pay", input={"to": [], "cents": 7})
    with Stage(flow) as stage:
        dispatch = Dispatcher(
            stage.store, Flows({"bank": flow}), lambda _request: True, stage.clock
        )
        body = json.dumps(dispatch(Request("bank", None, {}, "", "r", method="GET")).body)
    assert "canary" not in body
    assert WITHHELD in body
    assert '"cents": 7' in body


@pytest.mark.parametrize(
    "planted",
    [
        {"body": '{"password": "canary"}'},
        {"body": json.dumps({"body": json.dumps({"jwt": ["canary"]})})},
        {"url": "https://h/x?token=canary"},
        {"https://h/x?token=canary": 1},
        {"curl": "-H 'Authorization: Digest C canary'"},
        {"body": '{"whatever": "canary"}'},
        {"apikey": "canary", "accesskey": "canary", "apiKeys": ["canary"], "keys": {"a": "canary"}},
    ],
)
def test_j11_a_preview_looks_into_texts(planted: Json) -> None:
    flow = Flow("open")

    @flow.action("take", redact=("whatever",))
    def take(given: dict[str, object], ctx: Context) -> None:
        raise RuntimeError(f"no way to {json.dumps(given)}")

    flow.schedule("k", cron="@daily", action="take", input=planted)
    shown = flow.preview(flow.static["k"])
    assert "canary" not in json.dumps(shown)
    assert WITHHELD in json.dumps(shown)
    told = flow.actions["take"].secrets(planted).without(f"no way to {planted}")
    assert "canary" not in told


def test_an_action_that_is_gone_withholds_all_of_it() -> None:
    flow = pays()
    flow.schedule("rent", cron="@daily", action="pay", input=paying())
    schedule = flow.static["rent"]
    assert Flows({}).preview(schedule) == WITHHELD
    del flow.actions["pay"]
    assert flow.preview(schedule) == WITHHELD


@pytest.mark.parametrize(("names", "says"), [(("ibam",), "cents, iban"), ("iban", r"\('iban',\)")])
def test_a_name_that_would_withhold_nothing_is_refused(names: tuple[str, ...], says: str) -> None:
    with pytest.raises(InvalidSchedule, match=says):
        pays(withheld=names)


def test_what_takes_any_field_may_withhold_any() -> None:
    flow = Flow("open")

    @flow.action("take", redact=("whatever",))
    def take(given: dict[str, str], ctx: Context) -> None:
        """Take nothing."""

    flow.action("pass", redact=("whatever",), target=lambda _given, _ctx: None)
    assert {action.withheld for action in flow.actions.values()} == {frozenset({"whatever"})}


def test_j11_a_stack_that_is_logged_tells_nothing_behind_a_secrets_name() -> None:
    try:
        raise RuntimeError("no way in with password=canary")
    except RuntimeError:
        raised = sys.exc_info()
    (handler,) = telemetry.logger.handlers
    record = logging.LogRecord("duetick.x", logging.ERROR, "x.py", 1, "it failed", (), raised)
    assert handler.filter(record)
    as_json = LambdaPowertoolsFormatter().format(record)
    for shown in (as_json, PlainFormatter().format(record)):
        assert "no way in" in shown
        assert "Traceback" in shown
        assert "canary" not in shown
    assert json.loads(as_json)["exception_name"] == "RuntimeError"
