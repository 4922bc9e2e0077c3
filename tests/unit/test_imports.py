"""A cold start pays only for what its function needs."""

import subprocess
import sys

import pytest

COSTLY = (
    "pydantic",
    "boto3",
    "croniter",
    "aws_lambda_powertools.event_handler",
    "http.client",
    "pytest",
)


@pytest.mark.parametrize(
    "module",
    [
        "duetick.core.tick",
        "duetick.transports.http",
        "duetick.core.dispatch",
        "duetick.core.agents",
    ],
)
def test_what_a_tick_and_a_dispatch_import_is_cheap(module: str) -> None:
    script = f"import sys, {module}; print([name for name in {COSTLY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_flow_with_targets_imports_no_client() -> None:
    script = "import sys, duetick.actions; print('boto3' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_events_are_loaded_by_nobody_who_has_none() -> None:
    parts = "duetick.core.tick, duetick.core.dispatch, duetick.runtime.wiring"
    script = (
        f"import sys, {parts}; print([name for name in sys.modules if name in "
        "('duetick.core.notices', 'duetick.runtime.announcing', 'botocore')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
