"""J-02, T-01: a line of the log names the occurrence that it is about, and its outcome."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

import pytest
from duetick.core.log_lines import NEVER_BEGAN, NEVER_ENDED
from duetick.core.tick import run_tick
from duetick.core.timeouts import TimedOut
from duetick.core.wire import occurrence_json
from duetick.domain.attempts import Begun
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason
from duetick.ports import Delivered

from tests.delivery.scene import AT_LEAST_ONCE, MINUTE, NINE, Scene, fails

HOUR = 60 * MINUTE


class Refusing:
    """A transport to an endpoint that is down."""

    def __init__(self, why: str = "connection refused") -> None:
        self._why = why

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """Take nothing."""
        return Delivered(0, f"{self._why} after {timeout > 0}")

    def close(self) -> None:
        """Nothing is open."""


def line(caplog: pytest.LogCaptureFixture, action: str) -> logging.LogRecord:
    """Return the last line of that action."""
    return [one for one in caplog.records if vars(one).get("action") == action][-1]


def fields(record: logging.LogRecord) -> dict[str, object]:
    """Return the fields by which a line names an occurrence."""
    names = ("user", "schedule", "flow", "occurrence", "attempt")
    return {name: vars(record).get(name) for name in names}


def named(occurrence: Occurrence, attempt: int) -> dict[str, object]:
    """Return the expected name."""
    return {
        "user": "ada",
        "schedule": "ada/digest",
        "flow": "mail",
        "occurrence": occurrence.id,
        "attempt": attempt,
    }


def late(_limit: float, _call: Callable[[], None]) -> NoReturn:
    """Raise at once, as if the time were over."""
    raise TimedOut


@pytest.mark.parametrize("slow", [False, True])
def test_an_action_that_failed_is_named_with_its_attempt(
    scene: Scene,
    caplog: pytest.LogCaptureFixture,
    slow: bool,
) -> None:
    scene.put(cron="0 9 * * *", policies=AT_LEAST_ONCE)
    scene.act = fails
    if slow:
        scene.within = late
    claimed = scene.claim()
    scene.deliver(claimed)
    assert fields(line(caplog, "action_failed")) == named(claimed, 1)
    scene.clock.advance(HOUR)
    (again,) = scene.store.ledger.claim_waiting(scene.clock.now)
    scene.deliver(again)
    assert fields(line(caplog, "action_failed")) == named(claimed, 2)
    said = "longer than" if slow else "RuntimeError: no mail server"
    assert said in line(caplog, "action_failed").getMessage()


def test_a_delivery_that_failed_is_named_with_its_attempt(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.put(cron="0 9 * * *")
    run_tick(scene.store, Refusing(), now=NINE)
    (held,) = scene.store.ledger.find("ada", "digest")
    assert fields(line(caplog, "delivery_failed")) == named(held, 1)


@pytest.mark.parametrize("padding", ["", "x" * 170])
def test_j11_a_delivery_that_failed_is_logged_without_secrets(
    scene: Scene, caplog: pytest.LogCaptureFixture, padding: str
) -> None:
    why = f"{padding} no way to https://ann:canary-{'y' * 40}@h/x"
    scene.put(cron="0 9 * * *")
    run_tick(scene.store, Refusing(why), now=NINE)
    logged = str(vars(line(caplog, "delivery_failed"))["why"])
    assert "no way to" in logged
    assert len(logged) <= 200
    assert "canary" not in logged


@pytest.mark.parametrize(("begun", "says"), [(False, NEVER_BEGAN), (True, NEVER_ENDED)])
def test_lost_says_what_it_means(
    each_scene: Scene, caplog: pytest.LogCaptureFixture, begun: bool, says: str
) -> None:
    each_scene.put(cron="0 9 * * *")
    claimed = each_scene.claim()
    if begun:
        assert isinstance(each_scene.store.ledger.begin(claimed, now=NINE), Begun)
    run_tick(each_scene.store, each_scene.inline, now=NINE + 3 * HOUR)
    (lost,) = each_scene.store.ledger.find("ada", "digest")
    assert lost.reason is Reason.LOST
    record = line(caplog, "dead")
    assert fields(record) == named(lost, int(begun))
    assert vars(record)["reason"] == "lost"
    assert says in record.getMessage()
    assert occurrence_json(lost, (), operator=False)["error"] == says
    assert occurrence_json(replace(lost, reason=Reason.FAILED), (), operator=False)["error"] is None
