"""How the processes of a parallel run share the tests."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

STACKS = "tests/e2e"
"""These build the template once and share its stacks. They wait more than they compute."""


class ByFile(LoadScopeScheduling):
    """A process takes one file after another; one process takes all that need a deployed stack."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::", 1)[0]
        return STACKS if path.startswith(f"{STACKS}/") else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Share them like this, whatever `--dist` says."""
    return ByFile(config, log)
