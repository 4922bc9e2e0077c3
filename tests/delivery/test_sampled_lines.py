"""The lines of successes are a sample, as `LogSuccesses` says; failures have theirs in any case."""

from itertools import count
from types import SimpleNamespace

import pytest
from duetick.domain.errors import ConfigurationError
from duetick.domain.schedule import Occurrence
from duetick.runtime import telemetry, wiring
from duetick.runtime.settings import Settings

from tests.delivery.scene import NINE

STORE = {"DUETICK_STORE": "sqlite://"}
QUEUE = {"DUETICK_QUEUE": "https://sqs.eu-west-1.amazonaws.com/123456789012/packs"}


def sample(monkeypatch: pytest.MonkeyPatch, percent: int) -> None:
    """Let a percentage of the successes have a line."""
    monkeypatch.setattr(wiring, "settings", lambda: SimpleNamespace(log_successes=percent))
    monkeypatch.setattr(wiring, "_successes", count())


@pytest.mark.parametrize("percent", [0, 1, 7, 50, 99, 100])
def test_as_many_successes_have_a_line_as_the_setting_says(
    monkeypatch: pytest.MonkeyPatch, percent: int
) -> None:
    sample(monkeypatch, percent)
    assert sum(wiring.logs_success() for _ in range(1_000)) == 10 * percent


@pytest.mark.parametrize(("percent", "successes"), [(0, 0), (50, 5), (100, 10)])
def test_a_failure_has_its_line_whatever_the_setting_says(
    monkeypatch: pytest.MonkeyPatch, percent: int, successes: int
) -> None:
    sample(monkeypatch, percent)
    assert all(wiring.has_line(status) for status in (404, 422, 500, 503))
    assert sum(wiring.has_line(202) for _ in range(10)) == successes


@pytest.mark.parametrize(
    ("given", "percent"),
    [
        ({}, 100),
        (QUEUE, 0),
        ({"DUETICK_LOG_SUCCESSES": "5"}, 5),
        ({**QUEUE, "DUETICK_LOG_SUCCESSES": "100"}, 100),
    ],
)
def test_unasked_all_successes_of_calls_have_a_line_and_none_of_packs(
    given: dict[str, str], percent: int
) -> None:
    assert Settings.read({**STORE, **given}).log_successes == percent


@pytest.mark.parametrize("wrong", ["101", "-1", "some"])
def test_a_percentage_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match="DUETICK_LOG_SUCCESSES is a percentage"):
        Settings.read({**STORE, "DUETICK_LOG_SUCCESSES": wrong})


@pytest.mark.parametrize(
    ("percent", "status", "lines"), [(100, 202, 1), (0, 202, 0), (100, 422, 0)]
)
def test_a_success_in_a_pack_has_a_line_if_it_is_one_of_the_sample(
    monkeypatch: pytest.MonkeyPatch, percent: int, status: int, lines: int
) -> None:
    """A failure has its own line, from the place where it failed."""
    sample(monkeypatch, percent)
    monkeypatch.setattr(wiring, "observe", lambda *_: None)
    told: list[Occurrence] = []
    monkeypatch.setattr(telemetry, "record_success", lambda one, _status: told.append(one))
    wiring._observe_packed(Occurrence("ada", "k", "* * * * *", None, NINE, 1), status)
    assert len(told) == lines
