"""The limits of the deployed gateway: each route takes a number of calls in a second, and no
more.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Deployed, deploy
from tests.lab.emulated_aws import EmulatedAws
from tests.lab.sam import Sam

TOO_MANY = 429
CALLS = 30

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def narrow(
    sam: Sam, emulated_aws: EmulatedAws, quiet: Path, parameters: dict[str, str]
) -> Deployed:
    """A stack that takes a call a second, and dispatches as ever."""
    limits = {"UsersPerSecond": "1", "OperatorsPerSecond": "1", "TickConcurrency": "4"}
    return deploy(sam, emulated_aws, quiet, "narrow", {**parameters, **limits})


def statuses(call: Callable[[], int]) -> set[int]:
    """Return the statuses of the answers to a flood of calls."""
    return {call() for _ in range(CALLS)}


def test_a_flood_of_users_calls_is_refused_and_operators_are_heard_meanwhile(
    narrow: Deployed,
) -> None:
    token = narrow.user("ann")
    flood = statuses(lambda: narrow.as_user(token, "GET", "/api/schedules").status)
    assert flood == {200, TOO_MANY}
    assert narrow.call("GET", "/api/users/ann/schedules")[0] == 200


def test_a_flood_of_operators_calls_is_refused_and_ticks_are_heard_meanwhile(
    narrow: Deployed,
) -> None:
    path = "/api/users/bob/schedules"
    assert TOO_MANY in statuses(lambda: narrow.call("GET", path)[0])
    dispatch = "/api/flows/reminders/schedules/bob~2Fnone/dispatch"
    assert statuses(lambda: narrow.call("POST", dispatch, {})[0]) == {404}
