"""Ticks in processes of their own, killed or side by side: nothing lost, nothing begun twice."""

import subprocess
import sys
from pathlib import Path

import pytest
from duetick.domain.states import State

from tests.delivery.endpoint import endpoint, hang
from tests.delivery.office import Office
from tests.delivery.scene import MINUTE, NINE
from tests.lab.waiting import wait

TOP = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def test_a_tick_that_is_killed_between_claim_and_delivery(
    open_office: Office, address: str
) -> None:
    """All that the tick claimed is leased, and nothing delivered: the end of the leases brings it
    back.
    """
    with endpoint(hang) as place:
        with ticking(address, place.url) as process:
            wait(lambda: len(place.requests) > 0)
            process.kill()
        leased = open_office.states()[State.QUEUED]
    assert leased > 0
    assert open_office.runs == {}
    for minute in (2, 4):
        open_office.tick(NINE + minute * MINUTE)
    assert open_office.states() == {State.SUCCEEDED: 20}
    assert set(open_office.runs.values()) == {1}


def ticking(address: str, url: str) -> "subprocess.Popen[bytes]":
    """Start a tick at nine in a process of its own."""
    command = [sys.executable, "-m", "tests.delivery.tick_process", address, url]
    return subprocess.Popen(command, cwd=TOP, stdout=subprocess.DEVNULL)


def test_two_ticks_in_two_processes_deliver_each_once(open_office: Office, address: str) -> None:
    """As when EventBridge fires twice."""
    with (
        ticking(address, open_office.server.url) as one,
        ticking(address, open_office.server.url) as other,
    ):
        assert [one.wait(120), other.wait(120)] == [0, 0]
    assert open_office.states() == {State.SUCCEEDED: 20}
    assert set(open_office.runs.values()) == {1}


@pytest.mark.parametrize("after", [3, 12])
def test_a_tick_that_is_killed_leaves_nothing_behind(
    open_office: Office, address: str, after: int
) -> None:
    with ticking(address, open_office.server.url) as process:
        wait(lambda: len(open_office.scene.ran) >= after or process.poll() is not None)
        process.kill()
    wait(lambda: open_office.busy == 0)
    for minute in (2, 4):
        open_office.tick(NINE + minute * MINUTE)
    assert open_office.states() == {State.SUCCEEDED: 20}
    assert set(open_office.runs.values()) == {1}
