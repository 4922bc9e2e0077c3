"""A run that reports fewer tests than it collected has failed."""

from collections.abc import Sequence

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Count in the process that reports: a worker of a parallel run sees only its share."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Count(), "count")


class Count:
    """Of the tests of one run: each is reported once for its setup, also where it is skipped."""

    def __init__(self) -> None:
        self._collected = 0
        self._reported = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Take the count of a run in one process."""
        self._collected = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Take the count of a parallel run. Each of its workers collects all tests."""
        self._collected = len(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one more."""
        self._reported += report.when == "setup"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that lost tests. A run that ended badly says why itself."""
        if self._lost(session.config) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._lost(terminalreporter.config):
            return
        terminalreporter.section("tests that were not run", red=True, bold=True)
        terminalreporter.write_line(
            f"{self._collected} were collected and {self._reported} reported. Did the run end "
            "early, or do several have one id? A parallel run takes those for one."
        )

    def _lost(self, config: pytest.Config) -> bool:
        return not config.option.collectonly and self._reported < self._collected
