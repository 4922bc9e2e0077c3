"""The cost of a tick before its first time: the import, and bounded memory."""

import subprocess
import sys
import tracemalloc

import pytest
from duetick.domain.expression import next_fire, texts

HEAVY = {"croniter", "dataclasses", "datetime", "inspect", "zoneinfo", "importlib.resources"}
HEAVY |= {"difflib", "calendar", "dateutil", "pytz", "logging"}
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
    for text in _texts(5_000):
        next_fire(text, None, 0)
        assert len(texts.EXPRESSIONS) <= 4_096
    assert len(texts.EXPRESSIONS) > 3_500


def test_i17_what_comes_round_in_turn_is_mostly_kept_though_not_all_of_it_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(texts, "_MOST_TEXTS", 64)
    asked, read, reader = _texts(70), list[str](), texts._read

    def counted(text: str) -> texts.Expression:
        read.append(text)
        return reader(text)

    monkeypatch.setattr(texts, "_read", counted)
    texts.EXPRESSIONS.clear()
    for text in asked * 4:
        next_fire(text, None, 0)
    assert len(read) < len(asked) * 2


def test_i17_what_is_no_longer_asked_for_goes_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_MOST_TEXTS", 64)
    texts.EXPRESSIONS.clear()
    every = _texts(500)
    for text in every:
        next_fire(text, None, 0)
    assert not texts.EXPRESSIONS.keys() & set(every[:64])


def _texts(wanted: int) -> list[str]:
    return [f"{at % 60} {at // 60 % 24} * * {at // 1440}" for at in range(wanted)]


LONGEST_MAPS = ("z{}: sun 23:59", "{}: mon 00:00, tue 06:01, wed 12:02, thu 18:03, fri 23:59")


@pytest.mark.parametrize("part", LONGEST_MAPS)
def test_g05_a_day_map_costs_little_memory_however_many_targets_it_has(part: str) -> None:
    maps = []
    for number in range(100, 200):
        parts = [part.format(number * 100 + each) for each in range(100)]
        while len("; ".join(parts)) > texts.LONGEST_TEXT - 6:
            parts.pop()
        maps.append(f"days({'; '.join(parts)})")
    tracemalloc.start()
    texts.EXPRESSIONS.clear()
    for text in maps:
        next_fire(text, None, 0)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept / len(maps) < 20_000


def test_i17_what_is_refused_is_not_kept() -> None:
    kept = len(texts.EXPRESSIONS)
    for minute in range(60, 99):
        try:
            next_fire(f"{minute} * * * *", None, 0)
        except ValueError:
            continue
    assert len(texts.EXPRESSIONS) == kept
