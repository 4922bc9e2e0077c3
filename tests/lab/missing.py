"""The parts that the lab cannot run here. Their tests are skipped, or fail with
DUETICK_LAB_STRICT=1."""

import os
from collections.abc import Generator
from typing import NoReturn

import pytest

STRICT = "DUETICK_LAB_STRICT"
LACKS = "lacks the capability"
_PROPERTY = "missing part of the lab"


class MissingPartError(Exception):
    """A part of the lab, the reason why it cannot run on this machine, and what to do."""

    def __init__(self, part: str, why: str, what_to_do: str) -> None:
        super().__init__(f"{part} did not run: {why}. {what_to_do}")


def missing(part: str, why: str, what_to_do: str) -> NoReturn:
    """Say that a part of the lab cannot run here; the tests that need it are skipped, out loud."""
    raise MissingPartError(part, why, what_to_do)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    absent = call.excinfo and call.excinfo.value
    if isinstance(absent, MissingPartError):
        item.user_properties.append((_PROPERTY, str(absent)))
        outcome = _outcome(str(absent)).with_traceback(absent.__traceback__)
        call.excinfo = pytest.ExceptionInfo.from_exception(outcome)
    return (yield)


def _outcome(message: str) -> BaseException:
    if os.environ.get(STRICT) == "1":
        return pytest.fail.Exception(message, pytrace=False)
    return pytest.skip.Exception(message)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """If nothing may be missing, fail the run for a skip, unless a store names what it lacks."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and _unexplained(reporter) and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for each in terminalreporter.stats.values() for report in each]
    found = {text for report in reports for text in _properties(report)}
    if found:
        terminalreporter.section("missing from the lab", red=True, bold=True)
        for text in sorted(found):
            terminalreporter.write_line(text)
    if skipped := _unexplained(terminalreporter):
        terminalreporter.section(f"skipped, where {STRICT}=1 fails it", red=True, bold=True)
        for name in sorted(skipped):
            terminalreporter.write_line(name)


def _unexplained(reporter: pytest.TerminalReporter) -> set[str]:
    """Return the tests that a strict run skipped, except for a lack of a store."""
    if os.environ.get(STRICT) != "1":
        return set()
    skipped = reporter.stats.get("skipped", [])
    return {report.nodeid for report in skipped if LACKS not in str(report.longrepr)}


def _properties(report: object) -> list[str]:
    pairs = report.user_properties if isinstance(report, pytest.TestReport) else []
    return [str(text) for name, text in pairs if name == _PROPERTY]
