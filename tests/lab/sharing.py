"""The shares of tests that the processes of a parallel run get, and the files that a quick one
leaves unread.
"""

import re
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/e2e", "tests/web")
"""The tests of each of these share what takes long to start: deployed stacks, a browser."""


class ByFile(LoadScopeScheduling):
    """A process takes one file after another; one process takes all that need a deployed stack, and
    one all that need a browser.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0]
        return next((one for one in TOGETHER if path.startswith(f"{one}/")), path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Share the tests by file, even if `--dist` says otherwise."""
    return ByFile(config, log)


@pytest.hookimpl
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file whose tests are all slow if only the others run.

    To read it would take each process as long as many tests do.
    """
    if config.option.markexpr != "not slow" or not collection_path.name.startswith("test_"):
        return None
    all_slow = re.search(
        r"^pytestmark = \[?pytest\.mark\.slow\b", collection_path.read_text(), re.M
    )
    return True if all_slow else None
