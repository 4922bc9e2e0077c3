"""Every test can have the lab, and leaves no deployment behind."""

import os
import sys
from collections.abc import Iterator
from unittest import mock

import pytest

pytest_plugins = ["tests.lab.missing", "tests.lab.fixtures", "pytester"]


@pytest.fixture(autouse=True)
def no_deployment_is_left_behind() -> Iterator[None]:
    """The environment is as it was, and what was wired from it is forgotten."""
    _forget_wiring()
    with mock.patch.dict(os.environ):
        yield
    _forget_wiring()


def _forget_wiring() -> None:
    wiring = sys.modules.get("duetick.runtime.wiring")
    for made in vars(wiring).values() if wiring else ():
        if hasattr(made, "cache_clear"):
            made.cache_clear()
