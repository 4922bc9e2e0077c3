"""A cold start is little more than what any handler with a logger and a database pays."""

from pathlib import Path
from typing import get_args

import pytest

from tests.benchmarks.cold_start import MOST, Backend, bench

RUNS = 7

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("backend", get_args(Backend))
def test_a_cold_start_keeps_its_ratio_to_a_bare_handler(
    backend: Backend, built: Path, tmp_path: Path
) -> None:
    with bench(backend, built.parent, tmp_path) as made:
        found = made.ratios(RUNS)
    ratios = {name: round(ratio, 2) for name, (_, _, ratio) in found.items()}
    assert all(ratios[name] <= most for name, most in MOST.items()), ratios
