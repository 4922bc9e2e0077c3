"""croniter as the second reader of users' texts, and its known mistakes."""

from random import Random

import pytest
from croniter import CroniterError, croniter
from duetick.core import second_opinion
from duetick.core.second_opinion import KNOWN_MISTAKES, Mistake, confirm
from duetick.domain.expression import InvalidExpression, parse, upcoming

from tests.unit.expression.times import ms

NOW = ms("2026-11-18T10:00")


@pytest.mark.parametrize(
    "text",
    [
        *("* * * * *", "*/5 9-17 * * MON-FRI", "0 9 1,15 * *", "0 0 13 * FRI", "@daily", "@weekly"),
        *("0 0 29 2 *", "0 0 L * *", "0 0 15W * *", "0 9 * * TUE#2", "5/20 * * JAN-JUN 7"),
    ],
)
def test_i17_what_both_readers_read_alike_is_confirmed(text: str) -> None:
    confirm(text, NOW)


@pytest.mark.parametrize(
    "text",
    [
        *("rate(5 minutes)", "at(2026-12-01T09:00:00)", "cron(0 9 ? * 2-2 *)", "days(mon 09:00)"),
    ],
)
def test_i17_forms_that_croniter_does_not_know_are_not_put_to_it(text: str) -> None:
    confirm(text, NOW)


@pytest.mark.parametrize("mistake", KNOWN_MISTAKES, ids=lambda mistake: mistake.example)
def test_i17_croniter_still_makes_each_mistake_and_ours_stands(mistake: Mistake) -> None:
    assert _croniter(mistake.example) != upcoming(mistake.example, None, NOW, 6)
    assert mistake.found_in(parse(mistake.example).split(" "))
    confirm(mistake.example, NOW)


@pytest.mark.parametrize("mistake", KNOWN_MISTAKES, ids=lambda mistake: mistake.example)
def test_i17_no_mistake_excuses_a_plain_expression(mistake: Mistake) -> None:
    for text in ("* * * * *", "0 9 * * 1-5", "*/5 9-17 1,15 1-6 *", "0 0 13 * 5", "0 9 * * 1#2"):
        assert not mistake.found_in(text.split(" "))


def test_i17_readers_that_disagree_refuse_the_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_opinion, "upcoming", lambda *_: [ms("2026-11-19T10:01")])
    with pytest.raises(
        InvalidExpression, match=r"disagree .*2026-11-19 10:01 and 2026-11-19 09:00"
    ):
        confirm("0 9 * * *", NOW)


def test_i17_what_croniter_alone_refuses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_opinion, "KNOWN_MISTAKES", ())
    with pytest.raises(InvalidExpression, match="and no times"):
        confirm("0 0 LW * *", NOW)


def test_i17_what_we_refuse_needs_no_second_opinion() -> None:
    with pytest.raises(InvalidExpression, match="outside 0-59"):
        confirm("75 * * * *", NOW)


@pytest.mark.slow
def test_i17_among_thousands_of_expressions_every_disagreement_is_a_known_mistake() -> None:
    random, confirmed = Random(17), 0
    for _ in range(2_500):
        text = _any(random)
        try:
            parse(text)
        except InvalidExpression:
            continue
        confirm(text, NOW)
        confirmed += 1
    assert confirmed > 2_000


def _any(random: Random) -> str:
    fields = [
        _list(random, low, high) for low, high in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
    ]
    for at in range(5):
        if random.random() < 0.4:
            fields[at] = "*"
    if random.random() < 0.15:
        fields[2] = random.choice(("L", "LW", "15W", "31W", "1W,5"))
    if random.random() < 0.15:
        fields[4] = random.choice(("MON", "FRIL", "TUE#2", "7#1,3", "FRI-SUN", "SAT-SUN"))
    return " ".join(fields)


def _list(random: Random, low: int, high: int) -> str:
    items: list[str] = []
    for _ in range(random.choice((1, 1, 2, 3))):
        first, last = sorted((random.randint(low, high), random.randint(low, high)))
        step = random.randint(1, high)
        forms = (
            str(first),
            f"{first}-{last}",
            f"*/{step}",
            f"{first}-{last}/{step}",
            f"{first}/{step}",
            *(("*",) if items else ()),
        )
        items.append(random.choice(forms))
    return ",".join(items)


def _croniter(text: str) -> list[int]:
    try:
        times = croniter(text, NOW / 1000)
        return [round(times.get_next(float) * 1000) for _ in range(6)]
    except CroniterError:
        return []
