"""`ctx.settings`: the settings of a deployment as a type, and the texts of its secret."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import boto3
import pytest
from duetick import Context, Flow, Schedule
from duetick.core.deployment import deploy
from duetick.core.dispatch import ResolveContext
from duetick.core.flow_settings import FlowSettings
from duetick.core.flows import Flows
from duetick.domain.errors import ConfigurationError, InvalidSchedule, SchemaOutdated
from duetick.domain.schedule import Json
from duetick.runtime.flow_settings import open_flow_settings
from duetick.runtime.settings import Settings
from duetick.stores import open_store
from duetick.testing import Stage, fire
from moto import mock_aws
from pydantic import BaseModel

DAY = 86_400_000


@dataclass(frozen=True)
class Mail:
    """The settings of a flow that sends mail."""

    sender: str
    copies: int = 1

    def __post_init__(self) -> None:
        if "@" not in self.sender:
            raise ValueError(f"sender: expected an address, got {self.sender!r}.")


class Model(BaseModel):
    """The same as a pydantic model."""

    sender: str
    copies: int = 1


SETTINGS: dict[str, Json] = {"sender": "me@example.com", "region": "of another flow"}


def sending(read: list[object], shape: type[object] = Mail) -> Flow:
    """Return a flow that reads its settings."""
    flow = Flow("mail")

    @flow.action("send", policies={"delivery": "at_least_once"})
    def send(_input: Json, ctx: Context) -> None:
        read.append(ctx.settings.read(shape))

    return flow


@pytest.mark.parametrize("shape", [Mail, Model])
def test_an_action_reads_its_part_of_the_settings_as_a_type(shape: type[object]) -> None:
    read: list[object] = []
    assert fire(sending(read, shape), action="send", settings=SETTINGS).state == "succeeded"
    assert read == [shape(sender="me@example.com")]  # type: ignore[call-arg]


WRONG: list[tuple[Mapping[str, Json], str]] = [
    ({}, "sender: is missing."),
    ({"sender": 7}, "sender: expected text, got a number."),
    ({"sender": "me@example.com", "copies": "two"}, "copies: expected a whole number, got text."),
    ({"sender": "me"}, "sender: expected an address, got 'me'."),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_settings_that_do_not_fit_name_the_field_and_where_settings_are(
    given: Mapping[str, Json], said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        FlowSettings(given).read(Mail)
    assert str(refused.value).startswith(f"The settings do not fit Mail. {said} The settings are ")
    assert "the stack's parameter Settings, settings.local.json" in str(refused.value)


def test_an_attempt_without_its_settings_is_dead_at_once_and_no_retry_is_wasted() -> None:
    with Stage(sending([])) as stage:
        mine = stage.schedules(flow="mail")
        mine.create("daily", cron="@daily", action="send")
        with pytest.raises(ConfigurationError):
            stage.tick(DAY)
        (entry,) = stage.store.ledger.find("ann", "daily")
        (shown,) = mine.history("daily")
    assert (entry.state, entry.reason, entry.attempts) == ("dead", "failed", 1)
    assert entry.error
    assert "sender: is missing" in entry.error
    assert shown["error"] == "The action failed."


def test_settings_are_a_mapping_that_tells_nobody_its_values() -> None:
    settings = FlowSettings({"sender": "me", "api_key": "sesame"})
    assert (settings["sender"], settings.get("nothing", 3), len(settings)) == ("me", 3, 2)
    assert "nothing" not in settings
    assert repr(settings) == "FlowSettings(api_key, sender)"
    with pytest.raises(KeyError) as missing:
        settings["nothing"]
    assert str(missing.value).startswith("There is no setting 'nothing'; known are: api_key, ")


def declaring() -> Flow:
    """Return a flow that declares its settings."""
    flow = Flow("mail", settings=Mail)
    flow.action("send")(lambda _given, _ctx: None)
    return flow


def test_a_stage_whose_settings_do_not_fit_a_flow_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^mail: .*sender: is missing"):
        Stage(declaring())


def test_a_deployment_whose_settings_do_not_fit_is_refused_before_it_changes_anything() -> None:
    store = open_store("sqlite://")
    unfit = Flows({"mail": declaring()}, settings=FlowSettings({"sender": "me"}))
    with pytest.raises(ConfigurationError, match=r"^mail: .*expected an address"):
        deploy(store, lambda: unfit)
    with pytest.raises(SchemaOutdated):
        store.check_schema()
    fit = Flows({"mail": declaring()}, settings=FlowSettings(SETTINGS))
    assert deploy(store, lambda: fit)["schema"] == "up to date"
    store.close()


@pytest.mark.parametrize("shape", [int, dict[str, str], list[Mail]])
def test_a_flow_declares_a_dataclass_or_a_model(shape: type[object]) -> None:
    with pytest.raises(InvalidSchedule, match="expected a dataclass or a pydantic model"):
        Flow("mail", settings=shape)


def test_resolvers_and_computed_inputs_have_the_settings_too() -> None:
    flow, read = Flow("mail"), list[Json]()

    @flow.resolver
    def resolve(schedule_id: str, ctx: ResolveContext) -> Schedule:
        return Schedule("ann", "k", "0 9 * * *", "mail", str(ctx.settings["action"]))

    @flow.action("send", input=lambda ctx: ctx.settings["text"])
    def send(given: Json, ctx: Context) -> None:
        read.append(given)

    with Stage(flow, settings={"action": "send", "text": "hello"}) as stage:
        stage.schedules(flow="mail").create("k", cron="0 9 * * *", action="send")
        assert stage.tick(DAY).delivered == 1
    assert read == ["hello"]


def test_a_secret_that_was_read_and_a_setting_of_a_secret_name_stand_in_no_error() -> None:
    flow = Flow("pay")

    @flow.action("pay")
    def pay(_input: Json, ctx: Context) -> None:
        key, account = ctx.settings.secret("partner"), ctx.settings["apiKey"]
        raise ConnectionError(f"POST /pay with {key} of {account}: refused")

    told = {"settings": {"apiKey": "sk-setting"}, "secrets": {"partner": "pk-secret"}}
    with Stage(flow, **told) as stage:  # type: ignore[arg-type]
        stage.schedules(flow="pay").create("k", cron="@daily", action="pay")
        with pytest.raises(ConnectionError):
            stage.tick(DAY)
        (entry,) = stage.store.ledger.find("ann", "k")
    assert entry.error == "ConnectionError: POST /pay with [withheld] of [withheld]: refused"


def test_a_test_without_the_secret_says_what_to_pass() -> None:
    flow = Flow("pay")

    @flow.action("pay")
    def pay(_input: Json, ctx: Context) -> None:
        ctx.settings.secret("partner")

    with pytest.raises(
        ConfigurationError, match=r"no secret 'partner'; known are: other\. .*`fire`"
    ):
        fire(flow, action="pay", secrets={"other": "x"})
    with pytest.raises(ConfigurationError, match=r"There are no secrets of settings\."):
        FlowSettings().secret("partner")


@pytest.fixture
def arn(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A Secrets Manager with a secret of settings."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        client = boto3.client("secretsmanager")
        yield client.create_secret(Name="s", SecretString='{"partner": "first"}')["ARN"]


def rotated(arn: str, text: str) -> None:
    """Make another text the current one."""
    boto3.client("secretsmanager").put_secret_value(SecretId=arn, SecretString=text)


def opened(**variables: str) -> FlowSettings:
    """Return the settings of an environment."""
    named = {f"DUETICK_{name.upper()}": value for name, value in variables.items()}
    return open_flow_settings(Settings.read({"DUETICK_STORE": "sqlite://", **named}))


def test_a_secret_is_kept_for_a_while_and_read_anew_when_it_has_to_be(arn: str) -> None:
    settings = opened(flow_settings_secret_arn=arn)
    assert settings.secret("partner") == "first"
    rotated(arn, json.dumps({"partner": "second", "bank": "b"}))
    assert settings.secret("partner") == "first"
    assert settings.secret("partner", fresh=True) == "second"
    rotated(arn, json.dumps({"partner": "third", "mint": "m"}))
    assert settings.secret("mint") == "m"  # a name that is new is asked for


def test_a_secret_is_asked_by_nobody_who_does_not_need_it() -> None:
    assert opened(flow_settings_secret_arn="arn:aws:nowhere").get("x") is None


@pytest.mark.parametrize("text", ["{", "[]", '"sender"', "sender=me"])
def test_settings_that_are_no_object_are_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected a JSON object") as refused:
        opened(flow_settings=text)
    assert text not in str(refused.value).replace('{"sender"', "")


def test_a_secret_holds_texts_alone(arn: str) -> None:
    rotated(arn, json.dumps({"partner": {"key": "sesame"}, "ok": "y"}))
    with pytest.raises(ConfigurationError, match=r"holds what is no text: partner\.$"):
        opened(flow_settings_secret_arn=arn).secret("ok")


def test_a_local_stack_reads_secrets_from_its_environment() -> None:
    settings = opened(flow_settings='{"a": 1}', flow_settings_secret='{"partner": "here"}')
    assert (settings["a"], settings.secret("partner")) == (1, "here")
