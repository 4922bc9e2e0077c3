"""The suite's registration with pytest, before its import: rewritten assertions explain more."""

import sys
from typing import Final

SUITE: Final = "duetick.testing.conformance"


def explain() -> None:
    """Let pytest rewrite the suite, if it is pytest that runs."""
    if sys.modules.get("pytest"):
        import pytest

        pytest.register_assert_rewrite(SUITE)


def need_pytest() -> None:
    """Raise a helpful ImportError if pytest is not installed."""
    try:
        import pytest
    except ImportError as error:
        raise ImportError(
            "The conformance suite of duetick.testing needs pytest, which is not installed. Add it "
            "to the environment that runs your tests: pip install pytest."
        ) from error
    del pytest
