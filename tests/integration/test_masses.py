"""The benchmark of a minute's mass still runs, and its verdict is one: small, on SQLite."""

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
SMALL = ["--store", "sqlite", "--due", "20", "--spread", "2", "--mass", "50", "--workers", "1"]

pytestmark = pytest.mark.slow


def measured(*options: str) -> subprocess.CompletedProcess[str]:
    """Measure a small run to its end."""
    command = [sys.executable, "-m", "tests.benchmarks.packs", *SMALL, "--backlog", *options]
    return subprocess.run(
        command, cwd=TOP, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("transport", ["queue", "api"])
def test_a_mass_fires_over_each_transport_and_every_time_is_accounted_for(transport: str) -> None:
    done = measured("--transport", transport)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one user: 50 succeeded" in done.stdout
    assert "the others: 20 succeeded" in done.stdout
    assert "70 times, 0 under way, 0 faults" in done.stdout


def test_a_run_whose_time_is_over_says_what_has_not_succeeded() -> None:
    done = measured("--transport", "api", "--within", "0")
    assert done.returncode == 1
    assert "70 have not succeeded" in done.stdout
