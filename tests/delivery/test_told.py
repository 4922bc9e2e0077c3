"""D-09, D-11, D-15: the facts that travel with a call to its action, and those that do not."""

from dataclasses import replace
from types import SimpleNamespace
from typing import NoReturn

import pytest
from duetick.core.context import Context
from duetick.core.dispatch import Request
from duetick.core.tick import run_tick
from duetick.domain.errors import StoreUnavailable
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import Json, Occurrence, Principal
from duetick.domain.states import State
from duetick.runtime import gateway, invoking

from tests.delivery.scene import MINUTE, NINE, Scene, request

CALLER = "arn:aws:iam::1:role/scheduler"


def test_d11_the_caller_is_who_the_gateway_says() -> None:
    event = {
        "path": "/api/flows/mail/schedules/x/dispatch",
        "httpMethod": "POST",
        "headers": {"X-Caller": "root"},
        "body": None,
        "requestContext": {"requestId": "r", "identity": {"userArn": CALLER}},
    }
    call = gateway.dispatch_request(event, 12.0)
    assert isinstance(call, Request)
    assert (call.caller, call.seconds) == (Principal(CALLER), 12.0)


def test_a_background_invocation_has_its_own_time_and_the_same_caller() -> None:
    asked = replace(request("mail", "x", {}), caller=Principal(CALLER), seconds=3.0)
    again = invoking.from_event(invoking.to_event(asked), 900.0)
    assert again is not None
    assert (again.caller, again.seconds) == (Principal(CALLER), 900.0)
    assert (again.left or 0) > 890


def test_an_invocation_that_is_not_queued_is_not_called_queued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "dispatch")
    refuses = SimpleNamespace(invoke=lambda **_given: {"StatusCode": 429})
    monkeypatch.setattr(invoking, "client_of", lambda _service: refuses)
    with pytest.raises(StoreUnavailable, match="429"):
        invoking.enqueue(request("mail", "x", {}))


def test_d15_only_a_scheduled_one_catches_up(scene: Scene) -> None:
    scene.put(cron="0 * * * *", policies=Policies(misfire=Misfire.LATEST))
    scene.clock.advance(30 * MINUTE)
    scene.post(idempotencyKey="k")
    scene.post(origin="run:1", nominalFireTime=NINE)
    assert [ctx.catching_up for _, ctx in scene.ran] == [False, False]


@pytest.mark.parametrize(
    ("given", "status"), [(7, 202), (True, 400), (7.5, 400), ("7", 400), (None, 400)]
)
def test_d09_true_is_no_number(scene: Scene, given: Json, status: int) -> None:
    def count(number: int, _ctx: Context) -> None:
        scene.ran.append((number, _ctx))

    scene.flow.action("count")(count)
    scene.put(action="count", given=given)
    assert scene.post()[0] == status
    assert len(scene.ran) == int(status == 202)


class Raises:
    """A transport that breaks its promise never to raise."""

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> NoReturn:
        """Break it."""
        raise RuntimeError(occurrence.key, timeout)

    def close(self) -> None:
        """Nothing is open."""


def test_t02_a_transport_that_raises_is_a_transport_error(scene: Scene) -> None:
    for number in range(3):
        scene.put(f"k{number}", cron="0 9 * * *")
    seen: list[int] = []
    report = run_tick(
        scene.store,
        Raises(),
        now=NINE,
        on_dispatch=lambda _occurrence, status: seen.append(status),
    )
    assert (report.claimed, report.failed, seen) == (3, 3, [0, 0, 0])
    waiting = scene.store.ledger.claim_waiting(NINE + MINUTE)
    assert [o.state for o in waiting] == [State.QUEUED] * 3
