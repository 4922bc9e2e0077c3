"""The published helpers: a clock that stands still, and a clear word where pytest is missing."""

import subprocess
import sys

import pytest
from duetick.testing import FakeClock, conformance

WITHOUT_PYTEST = """
import sys
sys.modules["pytest"] = None
from duetick import Flow
from duetick.testing import FakeClock, Stage, fire
flow = Flow("mails")
flow.action("send")(lambda given, ctx: None)
print(fire(flow, action="send").state)
"""

SUITE_WITHOUT_PYTEST = """
import sys
sys.modules["pytest"] = None
from duetick.testing import StoreConformance
"""


def test_i14_a_fake_clock_stands_still() -> None:
    clock = FakeClock(5)
    assert (clock(), clock()) == (5, 5)


def test_i14_a_fake_clock_goes_on_when_it_is_told() -> None:
    clock = FakeClock(5)
    assert clock.advance(10) == 15
    assert clock() == 15


def test_i14_a_fake_clock_never_goes_back() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        FakeClock(5).advance(-1)


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own. Return the output."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_flow_is_tested_without_pytest() -> None:
    assert run(WITHOUT_PYTEST).stdout == "succeeded\n"


def test_without_pytest_the_suite_says_what_is_missing() -> None:
    assert "duetick.testing needs pytest" in run(SUITE_WITHOUT_PYTEST).stderr


def test_the_suite_explains_its_assertions() -> None:
    assert type(conformance.suite.__loader__).__name__ == "AssertionRewritingHook"
