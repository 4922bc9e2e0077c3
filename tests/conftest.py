"""Every test can have the lab, and leaves no deployment behind."""

import os
import sys
from collections.abc import Generator, Iterator
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.lab.memory",
    "tests.lab.missing",
    "tests.lab.counting",
    "tests.lab.fixtures",
    "tests.lab.sharing",
    "pytester",
]

# The same examples every time, however long a busy machine takes for one.
settings.register_profile(
    "lab", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("lab")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape half pairs in a test's output: it travels between processes as UTF-8."""
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.fixture(autouse=True)
def no_deployment_is_left_behind() -> Iterator[None]:
    """Keep the environment as it was, and forget the objects that were wired from it.

    The terminal of the tests may have any width: tables are not folded to it.
    """
    _forget_wiring()
    with mock.patch.dict(os.environ):
        os.environ.pop("COLUMNS", None)
        yield
    _forget_wiring()


def _forget_wiring() -> None:
    wiring = sys.modules.get("duetick.runtime.wiring")
    for made in vars(wiring).values() if wiring else ():
        if hasattr(made, "cache_clear"):
            made.cache_clear()
