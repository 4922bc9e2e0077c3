"""D-01 and D-02: the routes, and the order in which dispatch looks at a call."""

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, cast

import pytest
from duetick.core.dispatch import Request
from duetick.domain.states import Reason, State
from duetick.runtime import gateway

from tests.delivery.scene import Scene, fails, request, told

if TYPE_CHECKING:
    from duetick.core.store import Store


class Untouchable:
    """A store that no unauthenticated call may reach. Only its kind is known from the start."""

    dialect = "sql"

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"the store's {name} was touched")


@pytest.mark.parametrize("body", ["{", '{"fence": 1e400}', "x" * 10**6, '{"userId": 7}'])
@pytest.mark.parametrize("flow", ["mail", "mial", "%FF", "..", ""])
def test_d02_nothing_is_looked_at_before_the_caller_is_known(
    scene: Scene, flow: str, body: str
) -> None:
    scene.store = cast("Store", Untouchable())
    scene.flow.resolver(fails)
    call = request(flow, "ada/digest", body, headers={}, method="DELETE")
    assert told(scene.dispatch(call))[0] == 401


def test_d02_the_form_of_the_id_comes_first(scene: Scene) -> None:
    call = request("mail", "ada/\x00", {}, headers={})
    assert told(scene.dispatch(call))[0] == 400


def test_d02_what_cannot_run_is_not_recorded_for_a_caller(scene: Scene) -> None:
    scene.put(action="sned")
    assert scene.post()[0] == 400
    assert scene.history() == []


def test_d09_what_cannot_run_is_recorded_for_a_tick(scene: Scene) -> None:
    scene.put(action="sned")
    assert scene.deliver(scene.claim())[0] == 400
    assert scene.history() == [(State.DEAD, Reason.REJECTED)]


def test_d01_a_flow_tells_its_static_schedules_and_nobodys_own(scene: Scene) -> None:
    scene.put()
    scene.flow.schedule("nightly", cron="0 3 * * *", timezone="Europe/Berlin", action="send")
    scene.flow.resolver(lambda _id, _ctx: None)
    listing = replace(request("mail", "x", {}), path_id=None, method="GET")
    status, body = told(scene.dispatch(listing))
    assert (status, body["resolver"]) == (200, True)
    (static,) = body["schedules"] if isinstance(body["schedules"], list) else []
    assert isinstance(static, dict)
    assert (static["id"], static["cron"], static["action"]) == ("nightly", "0 3 * * *", "send")
    assert "digest" not in str(body)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/flows/mail/schedules", 200),
        ("POST", "/api/flows/mail/schedules", 405),
        ("GET", "/api/flows/mail/schedules/ada/digest/dispatch", 405),
        ("POST", "/api/flows/mail/schedules/ada/digest", 404),
        ("POST", "/api/flows/mail/schedule/x/dispatch", 404),
        ("POST", "/api/flows/%FF/schedules/x/dispatch", 404),
    ],
)
def test_d01_routes(scene: Scene, method: str, path: str, status: int) -> None:
    event = {
        "path": path,
        "httpMethod": method,
        "headers": {"Authorization": "x"},
        "body": None,
        "requestContext": {"requestId": "r"},
    }
    call = gateway.dispatch_request(event)
    answer = scene.dispatch(call) if isinstance(call, Request) else call
    assert answer.status == status
    wanted = {"allow": "POST" if method == "GET" else "GET"}
    assert answer.headers == (wanted if status == 405 else {})
