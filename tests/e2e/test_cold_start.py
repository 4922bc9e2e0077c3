"""A cold start is little more than what any handler with a logger and a database pays."""

from importlib.util import cache_from_source
from pathlib import Path
from typing import Final, get_args

import pytest

from tests.benchmarks.cold_start import MOST, Backend, Start, bench

RUNS = 7
MORE = 28
"""On a busy machine, where each answer of the database is waited for: there what was computed
decides, and not the waiting."""

UNCHECKED: Final = 0b01
"""A compiled file that is told by its content, and is believed: a zip file keeps no exact times."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("backend", get_args(Backend))
def test_a_cold_start_keeps_its_ratio_to_a_bare_handler(
    backend: Backend, built: Path, tmp_path: Path
) -> None:
    with bench(backend, built.parent, tmp_path) as made:
        few = made.best(RUNS)
        if kept(few, "spent"):
            return
        more = made.best(MORE)
    assert kept(more, "spent") or kept(more, "computed"), (few, more)


def kept(best: dict[str, Start], what: str) -> bool:
    """Whether no function has more than is promised."""
    return all(getattr(best[name] / best["bare"], what) <= most for name, most in MOST.items())


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
