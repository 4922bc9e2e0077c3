"""No test is left out of a run in silence."""

import pytest

from tests.lab.cache import TOP

pytestmark = pytest.mark.slow  # each runs a pytest of its own

TWINS = """
import pytest

class Twins(pytest.Module):
    def collect(self):
        return [
            pytest.Function.from_parent(self, name="test_bread", callobj=lambda: None)
            for _ in range(2)
        ]

def pytest_pycollect_makemodule(module_path, parent):
    return Twins.from_parent(parent, path=module_path)
"""
"""As schemathesis names the cases of a test that has no parameter."""
BREAD = """
import pytest
def test_bread(): ...
def test_cake(): pytest.skip("no sugar")
def test_tart(): ...
"""
LOST = "2 were collected and 1 reported*"
PARALLEL = ("-p", "xdist", "-n", "1", "--dist", "loadfile")


@pytest.fixture(autouse=True)
def bakery(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """To load everybody's plugins takes longer than these tests do."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini(f"[pytest]\npythonpath = {TOP}")


def test_a_run_that_reports_fewer_tests_than_it_collected_fails(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["tests.lab.counting"]\n' + TWINS)
    pytester.makepyfile("")
    result = pytester.runpytest_subprocess(*PARALLEL)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*tests that were not run*", LOST])


@pytest.mark.parametrize("options", [(), PARALLEL, ("-k", "bread"), ("--collect-only",)])
def test_a_run_that_reports_all_that_it_collected_passes(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    pytester.makeconftest('pytest_plugins = ["tests.lab.counting"]')
    pytester.makepyfile(BREAD)
    result = pytester.runpytest_subprocess(*options)
    assert result.ret == pytest.ExitCode.OK
    assert "tests that were not run" not in result.stdout.str()


def test_a_run_that_ends_at_its_first_failure_says_how_many_it_left_out(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest('pytest_plugins = ["tests.lab.counting"]')
    pytester.makepyfile("def test_bread(): assert False\ndef test_cake(): ...")
    result = pytester.runpytest_subprocess("-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([LOST])
