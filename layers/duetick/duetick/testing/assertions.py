"""Imported before the suite: its assertions explain themselves only if pytest rewrites them."""

try:
    import pytest
except ImportError as error:
    raise ImportError(
        "duetick.testing needs pytest, which is not installed. Add it to the environment that "
        "runs your tests: pip install pytest."
    ) from error

pytest.register_assert_rewrite("duetick.testing.conformance")
