"""A deployment asks for its schema and its schedules: CloudFormation is always answered."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from duetick.cli.context import LocalContext
from duetick.core.store import Store

from tests.integration.events.recorded import Handle, event, load_and_handle


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
        """Return a recorded request, to be answered here."""
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


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("DUETICK_RETENTION_DAYS", "1.5", "DUETICK_RETENTION_DAYS"),
        ("DUETICK_RETENTION_BY_FLOW", "billing=0", "from 1 to 365"),
        ("DUETICK_RETENTION_BY_FLOW", "billing=7/999", "got 7 and 999"),
        ("DUETICK_QUOTA_RUNS", "2.5", "DUETICK_QUOTA_RUNS"),
    ],
)
def test_a_number_that_no_function_would_start_with_fails_the_deployment_with_the_reason(
    cloudformation: CloudFormation,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    told: str,
) -> None:
    monkeypatch.setenv("DUETICK_STORE", "sqlite://")
    monkeypatch.setenv(name, value)
    load_and_handle("migrate", cloudformation.asks("update"))
    (answer,) = cloudformation.answers
    assert answer["Status"] == "FAILED"
    assert told in answer["Reason"]


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
