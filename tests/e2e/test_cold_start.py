"""A cold start is that of compiled layers, in the real runtime of Lambda."""

from importlib.util import cache_from_source
from pathlib import Path
from typing import Final, get_args

import pytest

from tests.benchmarks.cold_start import FUNCTIONS, Backend, bench

UNCHECKED: Final = 0b01
"""A compiled file that is told by its content, and is believed: a zip file keeps no exact times."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("backend", get_args(Backend))
def test_each_function_starts_and_answers_in_the_runtime_of_lambda(
    backend: Backend, built: Path, tmp_path: Path
) -> None:
    """The benchmark measures the times, on a quiet machine."""
    with bench(backend, built.parent, tmp_path) as made:
        best = made.best(1)
    assert set(best) == {"bare", *FUNCTIONS}


@pytest.mark.parametrize("layer", ["DepsLayer", "DuetickLayer"])
def test_a_layer_carries_what_python_would_compile_at_each_cold_start(
    layer: str, built: Path
) -> None:
    sources = list(built.with_name(layer).rglob("*.py"))
    assert len(sources) > 50
    for source in sources:
        compiled = Path(cache_from_source(str(source)))
        flags = int.from_bytes(compiled.read_bytes()[4:8], "little")
        assert flags == UNCHECKED, source


def test_the_packages_are_for_either_architecture(built: Path) -> None:
    extensions = {path.name for path in built.with_name("DepsLayer").rglob("*.so")}
    for machine in ("x86_64", "aarch64"):
        assert any(f"-{machine}-" in name for name in extensions)
    assert len({name.replace("aarch64", "x86_64") for name in extensions}) * 2 == len(extensions)
