"""Run the suite against a store in this process, and tell which of its tests fail.

Only a failed assertion counts as a failure that the suite found. Any other error, in the set-up or
in the test, is passed on: a store that does not work at all proves nothing about the suite.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import pytest
from duetick.core.store import Store
from duetick.testing.conformance.suite import StoreSuite

Test = Callable[..., None]

OTHERS: Final = 1 if "DUETICK_ALL_TESTS" in os.environ else 12
"""Of the tests that a defect does not concern, a broken store runs one in so many."""


@dataclass(slots=True)
class Verdict:
    """The names of the suite's tests by their end. A test with parameters fails if it fails with
    one.
    """

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)


def names_of(suite: StoreSuite) -> Sequence[str]:
    """Return all of the suite's tests."""
    return sorted(name for name in dir(suite) if name.startswith("test_"))


def judge(
    suite: StoreSuite,
    opened: Callable[[], AbstractContextManager[Store]],
    names: Sequence[str] | None = None,
) -> Verdict:
    """Run the suite, or some of its tests, each on a store that `opened` gives."""
    verdict = Verdict()
    for name in names_of(suite) if names is None else names:
        test: Test = getattr(suite, name)
        for given in _parameters(test):
            with opened() as store:
                _group(verdict, test, store, given).add(name)
    verdict.passed -= verdict.failed
    return verdict


def _group(verdict: Verdict, test: Test, store: Store, given: dict[str, object]) -> set[str]:
    try:
        test(store=store, **given)
    except (AssertionError, pytest.fail.Exception):
        return verdict.failed
    except pytest.skip.Exception:
        return verdict.skipped
    return verdict.passed


def _parameters(test: Test) -> Iterator[dict[str, object]]:
    """Yield each combination of the values of its parametrize marks."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    for values in product(*(mark.args[1] for mark in marks)):
        given: dict[str, object] = {}
        for mark, value in zip(marks, values, strict=True):
            names = mark.args[0]
            one = isinstance(names, str)
            given |= {names: value} if one else dict(zip(names, value, strict=True))
        yield given
