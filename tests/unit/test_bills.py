"""The bill of a month with one's own numbers of users, schedules, fires and packs."""

import json

import pytest
from duetick.cli.bills import Load, bill, bills
from duetick.cli.costs import (
    BACKENDS,
    DAYS,
    WAYS,
    Usage,
    at_rest,
    over,
    per_million,
    storage,
)
from duetick.cli.main import main
from duetick.cli.prices import Prices

from tests.documents import TEXT

SHOP = [Load(100_000, 1, 100), Load(1_000, 288, 3)]
SHOP_ASKED = ["--schedules", "100000,1000", "--fires", "1,288", "--pack", "100,3"]


def asked(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, dict[str, float]]:
    """Return the answer of the command."""
    assert main(["costs", *options, "--json"]) == 0
    found: dict[str, dict[str, float]] = json.loads(capsys.readouterr().out)
    return found


def test_a_bill_is_what_is_kept_what_rests_and_what_fires() -> None:
    usage = over("queue")
    fires = Usage(way="queue", log_successes=0.0, pack_fires=10)
    millions = 1_000 * 24 * DAYS / 1_000_000
    parts = (
        sum(at_rest("dynamodb", usage).values()),
        sum(per_million("dynamodb", fires).values()) * millions,
        sum(storage("dynamodb", Usage(schedules=1_000)).values()),
    )
    found = bill("dynamodb", [Load(1_000, 24, 10)], usage, Prices())
    assert sum(found.values()) == pytest.approx(sum(parts))


def test_two_kinds_of_schedules_add_up() -> None:
    both, first, second = (
        bill("postgres", loads, Usage(), Prices()) for loads in (SHOP, SHOP[:1], SHOP[1:])
    )
    rest = sum(at_rest("postgres").values())
    assert sum(both.values()) + rest == pytest.approx(sum(first.values()) + sum(second.values()))


def test_the_command_bills_each_backend_in_each_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = asked(capsys, *SHOP_ASKED)
    assert len(found) == 9
    assert found.keys() == bills(SHOP, Usage(), Prices()).keys()
    assert found["dynamodb, queue, a month of yours"] == pytest.approx(
        bills(SHOP, Usage(), Prices())["dynamodb, queue, a month of yours"]
    )


def test_users_multiply_the_schedules(capsys: pytest.CaptureFixture[str]) -> None:
    many = asked(capsys, "--users", "2000", "--schedules", "5", "--fires", "1")
    assert many == asked(capsys, "--schedules", "10000", "--fires", "1")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--schedules", "10"], "A bill needs --schedules and --fires"),
        (["--fires", "10"], "A bill needs --schedules and --fires"),
        (["--schedules", "1,2", "--fires", "1,2,3"], "Give each of them one number, or 3."),
    ],
)
def test_numbers_that_do_not_fit_are_refused_with_what_to_give(
    capsys: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    assert main(["costs", *options]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["x", "1,", "0", "-5", "1;2"])
def test_a_wrong_number_is_refused_by_its_option(
    capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    with pytest.raises(SystemExit):
        main(["costs", "--schedules", wrong, "--fires", "1"])
    assert "--schedules: expected a number of more than 0" in capsys.readouterr().err


def test_the_readme_repeats_the_bill_of_a_shop() -> None:
    found = bills(SHOP, Usage(), Prices())
    for name in BACKENDS:
        bills_of = [sum(found[f"{name}, {way}, a month of yours"].values()) for way in WAYS]
        row = f"| {name} |" + "".join(f" {cost:.0f} $ |" for cost in bills_of)
        assert row in TEXT, row
    assert f"duetick costs {' '.join(SHOP_ASKED)}" in TEXT
