"""C-05: the least gap of a schedule, beside a walk along all of its fires."""

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal

import pytest
from duetick.domain.expression import InvalidExpression, fires, next_fire, parse, smallest_gap

from tests.unit.expression.times import ms

Gap = Literal["run", "skip"]
Repeat = Literal["first", "both"]
GAPS: Final[tuple[Gap, ...]] = ("run", "skip")
REPEATS: Final[tuple[Repeat, ...]] = ("first", "both")
YEAR = 366 * 86_400_000
MOST_WALKED = 30_000
ODD = (
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"),
    *("America/St_Johns", "Asia/Gaza", "Antarctica/Troll", "Pacific/Apia", "Europe/Dublin"),
)
STARTS = ("2026-11-23", "2011-12-20", "1994-12-01", "1883-11-01", "2197-06-01", "2198-12-20")


def walked(text: str, timezone: str | None, after: int, gap: Gap, repeat: Repeat) -> int | None:
    """Return the answer of a walk; None if that is too long."""
    first = next_fire(text, timezone, after, gap=gap, repeat=repeat)
    if first is None:
        return YEAR
    times = fires(
        text, timezone, first - 1, first + YEAR, limit=MOST_WALKED, gap=gap, repeat=repeat
    )
    if len(times) == MOST_WALKED:
        return None
    return min((later - earlier for earlier, later in pairwise(times)), default=YEAR)


def _field(dice: random.Random, low: int, high: int) -> str:
    first, last = sorted(dice.choices(range(low, high + 1), k=2))
    step = dice.randint(1, high - low)
    kinds = ("*", f"*/{step}", f"{first}", f"{first},{last}", f"{first}-{last}/{step}")
    return dice.choice([*kinds, f"{first}/{step}"])


def texts(dice: random.Random) -> Iterator[str]:
    """Yield expressions of each form, mostly with hours at which clocks change."""
    while True:
        hour = dice.choice([_field(dice, 0, 23), "0-23", "1-3", "2", "0,1,2,23", "*"])
        date = dice.choice([_field(dice, 1, 31), "L", "LW", "1,15W", "*", "*", "*"])
        weekday = dice.choice([_field(dice, 0, 7), "0#5", "0L", "*", "*", "*"])
        month = dice.choice([_field(dice, 1, 12), "*", "*"])
        yield f"{_field(dice, 0, 59)} {hour} {date} {month} {weekday}"
        days = dice.sample(["sun", "mon", "tue", "sat"], k=dice.randint(1, 4))
        named = [f"{day} {dice.randint(0, 3):02}:{dice.randint(0, 59):02}" for day in days]
        yield f"days({', '.join(named)})"
        yield f"rate({dice.randint(1, 600)} {dice.choice(['minutes', 'hours', 'days'])})"


def compare(number: int, seed: int) -> int:
    """Compare a number of answers with the walk's. Return the number that could be walked."""
    dice, compared = random.Random(seed), 0
    zones = [*ODD, None]
    for line in texts(dice):
        try:
            text = parse(line)
        except InvalidExpression:
            continue
        zone, after = dice.choice(zones), ms(dice.choice(STARTS)) + dice.randrange(YEAR)
        gap, repeat = dice.choice(GAPS), dice.choice(REPEATS)
        true = walked(text, zone, after, gap, repeat)
        if true is not None:
            found = smallest_gap(text, zone, after, gap=gap, repeat=repeat)
            assert found == true, (text, zone, after, gap, repeat)
            compared += 1
        if compared == number:
            return compared
    return compared


@pytest.mark.slow
def test_c05_the_smallest_gap_is_that_of_a_walk() -> None:
    assert compare(1_500, seed=1) == 1_500


@pytest.mark.slow
def test_c05_the_smallest_gap_is_that_of_a_walk_over_thousands_of_lines() -> None:
    assert compare(5_000, seed=2) == 5_000
