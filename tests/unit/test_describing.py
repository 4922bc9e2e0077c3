"""C-01 in words: the meaning of an expression, for people who are about to save it."""

import random
from collections.abc import Iterator

import pytest
from duetick.core.describing import in_words
from duetick.domain.expression import InvalidExpression, parse, upcoming

from tests.unit.expression.times import ms

SAID = {
    "* * * * *": "Every minute.",
    "*/5 * * * *": "Every 5 minutes.",
    "*/7 * * * *": "At every 7th minute from 0 on, every day.",
    "*/15 9-17 1,15 * *": "Every 15 minutes, in the hours 9 to 17, on the 1st and the 15th of the "
    "month.",
    "0 9 * * MON-FRI": "At 09:00, on Monday to Friday.",
    "@daily": "At 00:00, every day.",
    "0 9,17 * * *": "At 09:00 and 17:00, every day.",
    "0 0 13 * 5": "At 00:00, on the 13th of the month, and also on Friday (either is enough).",
    "0 0 */2 * 1": "At 00:00, on every 2nd day of the month from the 1st on, if that day is Monday "
    "too.",
    "30 8 L * *": "At 08:30, on the last day of the month.",
    "0 9 15W * *": "At 09:00, on the working day nearest to the 15th of the month.",
    "0 9 LW 1-6 *": "At 09:00, on the last working day of the month, in January to June.",
    "0 9 * * TUE#2": "At 09:00, on the 2nd Tuesday of the month.",
    "0 9 * * FRIL": "At 09:00, on the last Friday of the month.",
    "cron(0 9 ? * MON-FRI *)": "At 09:00, on Monday to Friday.",
    "cron(0 9 1 * ? 2027)": "At 09:00, on the 1st of the month, in 2027.",
    "rate(1 hour)": "Every hour, counted from when the schedule is made.",
    "at(2026-12-01T09:00:00)": "Once, on 1 December 2026 at 09:00.",
    "days(mon 09:00, thu 17:30, fri 09:00)": "At 09:00 on Monday and Friday and at 17:30 on "
    "Thursday.",
    "days(x: mon 09:00; Y: tue 10:00)": "x: at 09:00 on Monday; Y: at 10:00 on Tuesday.",
}


@pytest.mark.parametrize("cron", SAID)
def test_c01_an_expression_is_a_sentence(cron: str) -> None:
    assert in_words(cron) == SAID[cron]


def test_c01_what_cannot_be_read_has_no_words() -> None:
    with pytest.raises(InvalidExpression):
        in_words("75 * * * *")


def lines(dice: random.Random) -> Iterator[str]:
    """Five fields of every kind."""
    while True:
        date = dice.choice([_field(dice, 1, 31), "L", "LW", "15W,20", "*", "*"])
        weekday = dice.choice([_field(dice, 0, 7), "1#2", "5L,2", "*", "*"])
        month = dice.choice([_field(dice, 1, 12), "*"])
        yield f"{_field(dice, 0, 59)} {_field(dice, 0, 23)} {date} {month} {weekday}"


def _field(dice: random.Random, low: int, high: int) -> str:
    return ",".join(_item(dice, low, high) for _ in range(dice.choice([1, 1, 1, 2])))


def _item(dice: random.Random, low: int, high: int) -> str:
    first, last = sorted(dice.choices(range(low, high + 1), k=2))
    step = dice.randint(1, high - low)
    kinds = ("*", f"*/{step}", f"{first}", f"{first}-{last}", f"{first}-{last}/{step}")
    return dice.choice([*kinds, f"{first}/{step}"])


def test_c01_expressions_with_the_same_words_fire_alike() -> None:
    """So the words leave nothing out that matters."""
    dice, said = random.Random(7), dict[str, tuple[str, list[int]]]()
    read = 0
    for line in lines(dice):
        try:
            cron = parse(line)
        except InvalidExpression:
            continue
        times = upcoming(cron, "Europe/Berlin", ms("2026-11-23"), 20)
        other, seen = said.setdefault(in_words(cron), (cron, times))
        assert times == seen, (cron, other)
        read += 1
        if read == 3_000:
            break
    assert len(said) < read, "none had the words of another"
