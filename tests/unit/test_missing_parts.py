"""The lab says out loud which parts it cannot run."""

import pytest

from tests.lab.cache import TOP
from tests.lab.missing import STRICT

pytestmark = pytest.mark.slow  # each runs a pytest of its own

USES_A_MISSING_PART = """
import pytest
from tests.lab.missing import missing

@pytest.fixture(scope="session")
def oven():
    missing("The oven", "no gas", "Turn it on.")

def test_bread(oven): ...
def test_cake(oven): ...
"""
SAID = "The oven did not run: no gas. Turn it on."


@pytest.fixture(autouse=True)
def without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """To load everybody's takes longer than these tests do."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def kitchen(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini(f"[pytest]\npythonpath = {TOP}")
    pytester.makeconftest('pytest_plugins = ["tests.lab.missing"]')
    pytester.makepyfile(USES_A_MISSING_PART)
    return pytester


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")])
def test_a_missing_part_skips_its_tests_and_is_named_once_in_the_summary(
    kitchen: pytest.Pytester, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(STRICT, raising=False)
    result = kitchen.runpytest_subprocess(*options)
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*missing from the lab*", SAID])
    assert result.outlines.count(SAID) == 1


def test_where_everything_has_to_run_a_missing_part_is_an_error(
    kitchen: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STRICT, "1")
    result = kitchen.runpytest_subprocess()
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*missing from the lab*", SAID])


@pytest.mark.parametrize(("reason", "code"), [("no time", 1), ("Mine lacks the capability 'x'", 0)])
def test_where_everything_has_to_run_a_skip_fails_unless_a_store_says_what_it_lacks(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, reason: str, code: int
) -> None:
    monkeypatch.setenv(STRICT, "1")
    pytester.makeini(f"[pytest]\npythonpath = {TOP}")
    pytester.makeconftest('pytest_plugins = ["tests.lab.missing"]')
    made = pytester.makepyfile(f"import pytest\ndef test_bread(): pytest.skip({reason!r})")
    result = pytester.runpytest_subprocess()
    assert result.ret == code
    told = f"skipped, where {STRICT}=1 fails it" in result.stdout.str()
    assert told == (f"{made.name}::test_bread" in result.stdout.str()) == bool(code)
