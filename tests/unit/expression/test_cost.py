"""What a tick pays before it knows a single time: the import, and memory that is bounded."""

import subprocess
import sys

from duetick.domain.expression import next_fire, texts

HEAVY = {"croniter", "dataclasses", "datetime", "inspect", "zoneinfo", "importlib.resources"}
HEAVY |= {"difflib", "typing", "calendar", "dateutil", "pytz", "logging"}
LOADED = "import sys; before = set(sys.modules); {}; print(*sorted(set(sys.modules) - before))"


def _loads(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(code)], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_c02_the_import_brings_in_nothing_heavy() -> None:
    assert not HEAVY & _loads("import duetick.domain.expression")


def test_c02_a_tick_never_loads_croniter() -> None:
    code = (
        "from duetick.domain.expression import next_fire; next_fire('0 9 * * *', 'Asia/Tokyo', 0)"
    )
    assert not HEAVY & _loads(code)


def test_c02_the_write_path_loads_croniter_only_when_it_is_asked() -> None:
    assert "croniter" not in _loads("import duetick.core.second_opinion")


def test_i17_what_was_read_is_kept_but_never_without_bound() -> None:
    for minute in range(60):
        for hour in range(24):
            for weekday in range(1, 5):
                next_fire(f"{minute} {hour} * * {weekday}", None, 0)
    assert 0 < len(texts.EXPRESSIONS) <= 4096


def test_i17_what_is_refused_is_not_kept() -> None:
    kept = len(texts.EXPRESSIONS)
    for minute in range(60, 99):
        try:
            next_fire(f"{minute} * * * *", None, 0)
        except ValueError:
            continue
    assert len(texts.EXPRESSIONS) == kept
