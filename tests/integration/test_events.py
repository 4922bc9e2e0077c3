"""Each trigger's event, as AWS sends it, through the handler that it is for."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from duetick.cli.context import LocalContext
from duetick.ports import Store
from duetick.runtime import wiring
from duetick.stores import open_store

from tests.integration.handlers import load_handler
from tests.integration.local_product import Clock

EVENTS = Path(__file__).parents[2] / "events"
NINE = 1_796_115_600_000  # 2026-12-01T09:00:00Z
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


Handle: TypeAlias = Callable[[str, object], dict[str, Any]]
"""One invocation of a function's handler."""


def event(name: str) -> dict[str, Any]:
    """A recorded event."""
    read: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return read


@pytest.fixture
def clock() -> Clock:
    return Clock(NINE - 1_800_000)


@pytest.fixture
def store(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the functions use."""
    address = f"sqlite:///{tmp_path}/events.db"
    opened = open_store(address, clock=clock)
    monkeypatch.setenv("DUETICK_STORE", address)
    monkeypatch.setenv("DUETICK_API_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    monkeypatch.setattr(wiring, "store", lambda: opened)
    yield opened
    opened.close()


@pytest.fixture
def handle(store: Store) -> Handle:
    """Each handler as at a cold start, on a migrated store."""
    store.migrate()
    return load_and_handle


def load_and_handle(
    function: str, given: object, context: LocalContext | None = None
) -> dict[str, Any]:
    """One invocation."""
    answer: dict[str, Any] = load_handler(function)(given, context or LocalContext())
    return answer


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


class CloudFormation:
    """The place where a custom resource's answer goes."""

    def __init__(self, refusals: int = 0) -> None:
        self.answers: list[dict[str, Any]] = []
        self.content_types: list[str | None] = []
        outer, left = self, [503] * refusals

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status = left.pop() if left else 200
                if status == 200:
                    outer.answers.append(json.loads(body))
                    outer.content_types.append(self.headers["content-type"])
                self.send_response(status)
                self.end_headers()

            def log_request(self, code: object = "-", size: object = "-") -> None:
                """Quiet."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()

    def asks(self, name: str, **changes: object) -> dict[str, Any]:
        """A recorded request, to be answered here."""
        url = f"http://127.0.0.1:{self._server.server_port}/answer?X-Amz-Signature=example"
        return {**event(f"custom-resource-{name}"), "ResponseURL": url, **changes}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def cloudformation(request: pytest.FixtureRequest) -> Iterator[CloudFormation]:
    place = CloudFormation(getattr(request, "param", 0))
    yield place
    place.close()


@pytest.mark.parametrize("name", ["create", "update"])
def test_i10_a_deploy_migrates_and_is_told_so(
    store: Store, cloudformation: CloudFormation, name: str
) -> None:
    asked = cloudformation.asks(name)
    load_and_handle("migrate", asked)
    store.check_schema()
    (answer,) = cloudformation.answers
    assert answer["Status"] == "SUCCESS"
    for echoed in ("StackId", "RequestId", "LogicalResourceId"):
        assert answer[echoed] == asked[echoed]
    assert answer["PhysicalResourceId"] == "Schema"
    assert cloudformation.content_types == [""]


def test_m06_the_second_step_registers_static_schedules(
    handle: Handle, store: Store, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.reminders import reminders

    monkeypatch.setattr(reminders, "static", {})
    reminders.schedule("nightly", cron="0 3 * * *", action="remind", input={"text": "up"})
    handle("migrate", cloudformation.asks("create", ResourceProperties={"Step": "schedules"}))
    assert store.index.get("", "reminders/nightly")
    assert cloudformation.answers[0]["Status"] == "SUCCESS"


def test_a_delete_keeps_the_data_and_is_answered(
    handle: Handle, store: Store, cloudformation: CloudFormation
) -> None:
    handle("schedules", event("operators-iam"))
    handle("migrate", cloudformation.asks("delete"))
    assert store.schedules.get("ann", "hello")
    assert cloudformation.answers[0]["Status"] == "SUCCESS"


@pytest.mark.parametrize("more", ["", 9_000 * ".", 9_000 * "ü"], ids=["short", "long", "umlauts"])
def test_a_failure_is_answered_with_its_reason_and_not_tried_again(
    store: Store, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    def fail() -> None:
        raise PermissionError(f"no right to create tables{more}")

    monkeypatch.setattr(store, "migrate", fail)
    assert load_and_handle("migrate", cloudformation.asks("create")) == {}
    (answer,) = cloudformation.answers
    assert answer["Status"] == "FAILED"
    assert "no right to create tables" in answer["Reason"]
    assert len(json.dumps(answer)) < 4_096


def test_flows_that_cannot_be_imported_fail_the_deployment_with_the_reason(
    handle: Handle, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETICK_FLOWS", "flows_that_are_not_there")
    handle("migrate", cloudformation.asks("update", ResourceProperties={"Step": "schedules"}))
    assert "flows_that_are_not_there" in cloudformation.answers[0]["Reason"]


def test_what_takes_too_long_is_answered_before_the_function_ends(
    store: Store, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetick.runtime.custom_resource.RESERVE", 0.8)
    ended = threading.Event()
    monkeypatch.setattr(store, "migrate", lambda: ended.wait(60))
    late = cloudformation.asks("create")
    running = threading.Thread(target=load_and_handle, args=("migrate", late, LocalContext(1_000)))
    running.start()
    while not cloudformation.answers and running.is_alive():
        ended.wait(0.01)
    ended.set()
    running.join()
    (answer,) = cloudformation.answers
    assert (answer["Status"], "did not end" in answer["Reason"]) == ("FAILED", True)


@pytest.mark.parametrize("cloudformation", [2], indirect=True)
def test_an_answer_that_is_refused_is_sent_again(
    handle: Handle, cloudformation: CloudFormation
) -> None:
    handle("migrate", cloudformation.asks("update"))
    assert len(cloudformation.answers) == 1


def test_by_hand_it_takes_both_steps_and_says_what_it_did(store: Store) -> None:
    done = load_and_handle("migrate", {})
    store.check_schema()
    declared = [one.key for one in wiring.flows().static()]
    assert done == {
        "schema": "up to date",
        "schedules": {"put": declared, "kept": [], "removed": []},
    }


def test_t12_each_hour_it_counts_what_is_active_and_what_should_be(
    handle: Handle, store: Store
) -> None:
    handle("schedules", event("operators-iam"))
    assert handle("migrate", event("audit")) == {"active": 1, "unindexed": 0}
    store.index.remove("ann", "hello")
    assert handle("migrate", event("audit")) == {"active": 0, "unindexed": 1}


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
