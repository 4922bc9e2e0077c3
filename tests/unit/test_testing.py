"""The published helpers: a clock that stands still, and a clear word where pytest is missing."""

import subprocess
import sys

import pytest
from duetick.testing import FakeClock

WITHOUT_PYTEST = """
import sys
sys.modules["pytest"] = None
import duetick.testing
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


def test_without_pytest_the_import_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYTEST], capture_output=True, text=True, check=False
    )
    assert "duetick.testing needs pytest" in done.stderr
