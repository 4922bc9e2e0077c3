"""Each trigger's event, as AWS sends it, through the handler that it is for."""

import json
from typing import Any

import pytest
from duetick.ports import Store
from duetick.runtime import wiring

from tests.integration.events.recorded import EVENTS, Handle, event, load_and_handle
from tests.integration.local_product import NINE, Clock

USED = {
    *(
        "audit",
        "scheduler",
        "rule",
        "dispatch-iam",
        "dispatch-secret",
        "operators-iam",
        "users-cognito",
        "users-lambda",
    ),
    *("custom-resource-create", "custom-resource-update", "custom-resource-delete"),
}


def test_every_recorded_event_is_tried_here() -> None:
    assert {path.stem for path in EVENTS.iterdir()} == USED


@pytest.mark.parametrize("name", ["scheduler", "rule"])
def test_t01_either_schedule_of_eventbridge_makes_a_tick(handle: Handle, name: str) -> None:
    report = handle("tick", event(name))
    assert (report["claimed"], report["failed"]) == (0, 0)


def test_an_operators_call_reaches_the_user_in_the_path(handle: Handle, store: Store) -> None:
    answer = handle("schedules", event("operators-iam"))
    assert answer["statusCode"] == 201
    assert store.schedules.get("ann", "hello")


def test_a_users_call_reaches_the_subject_of_the_token(handle: Handle, store: Store) -> None:
    given = event("users-cognito")
    assert handle("schedules", given)["statusCode"] == 201
    assert store.schedules.get(given["requestContext"]["authorizer"]["claims"]["sub"], "hello")


def test_metrics_that_are_turned_off_are_never_printed(
    handle: Handle, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(250):
        assert handle("dispatch", event("dispatch-iam"))["statusCode"] == 404
    assert "_aws" not in capsys.readouterr().out


def authorized(granted: object, **changes: object) -> dict[str, Any]:
    """The call of a user for whom a function of one's own vouches, with what it says."""
    given = event("users-lambda")
    given["requestContext"]["authorizer"] = granted
    return given | changes


def test_a_users_call_reaches_the_principal_that_a_function_names(
    handle: Handle, store: Store
) -> None:
    assert handle("schedules", event("users-lambda"))["statusCode"] == 201
    assert [one.key for one in store.schedules.list("ann").schedules] == ["hello"]
    assert store.schedules.list("bob").schedules == ()


@pytest.mark.parametrize(
    "granted",
    [
        None,
        {},
        {"principalId": None},
        {"principalId": "", "sub": "bob"},
        {"integrationLatency": 312, "user": "bob", "claims": '{"sub": "bob"}'},
        {"claims": {"username": "bob"}, "principalId": "bob"},
    ],
)
def test_whom_no_function_names_is_nobody(handle: Handle, store: Store, granted: object) -> None:
    assert handle("schedules", authorized(granted))["statusCode"] == 401
    assert store.schedules.list("bob").schedules == ()


@pytest.mark.parametrize("principal", ["bob/theirs", "../bob", "..", "bob\x00", "b" * 200])
def test_d05_a_principal_that_no_user_can_be_is_refused(
    handle: Handle, store: Store, principal: str
) -> None:
    answer = handle("schedules", authorized({"principalId": principal}))
    assert answer["statusCode"] == 400
    assert json.loads(answer["body"])["error"] == "invalid_schedule_id"


def test_a_principal_of_a_function_opens_no_operators_route(handle: Handle, store: Store) -> None:
    given = authorized({"principalId": "ann"}, path="/api/users/bob/schedules/hello")
    assert handle("schedules", given)["statusCode"] == 403
    assert store.schedules.list("bob").schedules == ()


def test_d01_a_signed_call_dispatches(handle: Handle, store: Store, clock: Clock) -> None:
    handle("schedules", event("operators-iam"))
    clock.now = NINE + 2_000
    assert handle("dispatch", event("dispatch-iam"))["statusCode"] == 202
    (ended,) = store.ledger.find("ann", "hello")
    assert ended.nominal_at == NINE


@pytest.mark.parametrize(("secret", "status"), [("the-secret", 202), ("another", 401), ("", 401)])
def test_d17_secret_mode_asks_for_the_secret(
    handle: Handle, clock: Clock, monkeypatch: pytest.MonkeyPatch, secret: str, status: int
) -> None:
    handle("schedules", event("operators-iam"))
    clock.now = NINE + 2_000
    monkeypatch.setenv("DUETICK_DISPATCH_AUTH", "secret")
    monkeypatch.setenv("DUETICK_DISPATCH_SECRET", secret)
    assert handle("dispatch", event("dispatch-secret"))["statusCode"] == status


def test_by_hand_it_takes_both_steps_and_says_what_it_did(store: Store) -> None:
    done = load_and_handle("migrate", {})
    store.check_schema()
    declared = [one.key for one in wiring.flows().static()]
    assert done == {
        "schema": "up to date",
        "schedules": {"put": declared, "kept": [], "removed": []},
    }


def test_t12_each_hour_it_counts_what_is_active_and_names_what_should_be(
    handle: Handle, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    handle("schedules", event("operators-iam"))
    assert handle("migrate", event("audit")) == {"active": 1, "unindexed": 0}
    store.index.remove("ann", "hello")
    assert handle("migrate", event("audit")) == {"active": 0, "unindexed": 1}
    (line,) = (line for line in caplog.records if line.message == "unindexed")
    assert (vars(line)["user"], vars(line)["key"]) == ("ann", "hello")


@pytest.mark.parametrize(("seconds", "warned"), [("1", False), ("60", False), ("1800", True)])
def test_t13_an_expression_tighter_than_the_cadence_is_warned_of(
    handle: Handle, monkeypatch: pytest.MonkeyPatch, seconds: str, warned: bool
) -> None:
    monkeypatch.setenv("DUETICK_TICK_SECONDS", seconds)
    given = event("operators-iam")
    given["body"] = given["body"].replace("0 9 * * *", "*/5 * * * *")
    answer = handle("schedules", given)
    assert answer["statusCode"] == 201
    told = str(answer.get("headers") or answer.get("multiValueHeaders"))
    assert ("a tick comes each" in told) is warned
