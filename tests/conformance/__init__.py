"""The stores against the published suite, and against models at random."""

import pytest

# Their assertions show what was compared, as those of a test do.
pytest.register_assert_rewrite("tests.conformance.lives", "tests.conformance.stateful")
