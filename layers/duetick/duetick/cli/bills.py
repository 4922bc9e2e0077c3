"""`duetick costs`: the costs of any deployment, or the bill of one with your own numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from duetick.cli.asking import add_json
from duetick.cli.costs import (
    BACKENDS,
    DAYS,
    MILLION,
    WAYS,
    Backend,
    Lines,
    Usage,
    at_rest,
    every,
    over,
    per_million,
    storage,
    table,
)
from duetick.cli.parsing import more_than_nothing, note_parser, several, whole
from duetick.cli.prices import GB_SECOND, Prices
from duetick.cli.problem import CliProblem
from duetick.cli.showing import show_one

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from duetick.cli.asking import Commands

MEMORY: Final = (128, 10_240)
"""Megabytes that a Lambda function may have."""

MOST_IN_PACK: Final = 100


@dataclass(frozen=True, slots=True)
class Load:
    """Schedules that fire alike: their number, the fires of each in a day, the fires of a pack."""

    schedules: float
    fires_a_day: float
    pack_fires: float = 100.0


def bill(backend: Backend, loads: Sequence[Load], usage: Usage, prices: Prices) -> Lines:
    """Return the costs of a month with these loads: at rest, of the fires, of the kept bytes."""
    total: Counter[str] = Counter(at_rest(backend, usage, prices))
    for load in loads:
        millions = load.schedules * load.fires_a_day * DAYS / MILLION
        each = per_million(backend, replace(usage, pack_fires=load.pack_fires), prices)
        total.update({name: cost * millions for name, cost in each.items()})
    kept = replace(usage, schedules=round(sum(load.schedules for load in loads)))
    total.update(storage(backend, kept, prices))
    return dict(total)


def bills(loads: Sequence[Load], usage: Usage, prices: Prices) -> dict[str, dict[str, float]]:
    """Return the bill of each backend and way, by its title."""
    return {
        f"{backend}, {way}, a month of yours": dict(bill(backend, loads, over(way, usage), prices))
        for backend in BACKENDS
        for way in WAYS
    }


def add_costs(commands: Commands) -> None:
    """Add the command."""
    parser = note_parser(
        commands.add_parser(
            "costs",
            help="the costs of a deployment, and of a million fires",
            description="Without --schedules, the costs at rest, of a million fires, and of what "
            "is kept. With it, the bill of a month, for each backend: over the API, over the "
            "queue, and with Trigger=managed. Several numbers, such as --schedules 100000,1000 "
            "--fires 1,288, are kinds of schedules that fire differently.",
        )
    )
    parser.add_argument(
        "--tick-minutes",
        type=more_than_nothing,
        default=1.0,
        help="minutes between two ticks; always 60 with Trigger=managed",
    )
    parser.add_argument(
        "--memory", type=whole(*MEMORY), default=512, help="the memory of each function in MB"
    )
    parser.add_argument("--architecture", choices=("arm64", "x86_64"), default="arm64")
    numbers = several(more_than_nothing)
    parser.add_argument("--users", type=more_than_nothing, default=1.0, help="of your application")
    parser.add_argument("--schedules", type=numbers, help="of each user, by kind")
    parser.add_argument("--fires", type=numbers, help="of each schedule in a day, by kind")
    parser.add_argument(
        "--pack",
        type=several(whole(1, MOST_IN_PACK)),
        default=[MOST_IN_PACK],
        help="fires that share a pack of the queue, on average, by kind: those that are due in "
        "the same second, 100 at most",
    )
    add_json(parser)
    parser.set_defaults(command=_show)


def _show(chosen: argparse.Namespace) -> None:
    usage = Usage(tick_minutes=chosen.tick_minutes, memory_gb=chosen.memory / 1024)
    prices = Prices(lambda_gb_second=GB_SECOND[chosen.architecture])
    loads = _loads(chosen)
    costs = bills(loads, usage, prices) if loads else every(usage, prices)
    if chosen.json:
        show_one(costs, as_json=True)
    else:
        print(table(costs))


def _loads(chosen: argparse.Namespace) -> list[Load]:
    """Return the loads of the arguments. One number stands for each kind."""
    if not (chosen.schedules or chosen.fires):
        return []
    if not (chosen.schedules and chosen.fires):
        raise CliProblem("A bill needs --schedules and --fires: how many, and how often in a day.")
    given = (chosen.schedules, chosen.fires, chosen.pack)
    kinds = max(map(len, given))
    if any(len(numbers) not in (1, kinds) for numbers in given):
        raise CliProblem(
            "--schedules, --fires and --pack name different numbers of kinds. Give each of them "
            f"one number, or {kinds}."
        )
    filled = [numbers if len(numbers) == kinds else numbers * kinds for numbers in given]
    return [
        Load(chosen.users * schedules, fires, pack)
        for schedules, fires, pack in zip(*filled, strict=True)
    ]
