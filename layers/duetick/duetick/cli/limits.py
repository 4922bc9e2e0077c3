"""`duetick limit`, `unlimit` and `limits`: operators limit a user, a flow or an action."""

import argparse
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from duetick.cli.asking import add_json, add_place, add_why, advice, operators_of, warn_of_unknown
from duetick.cli.parsing import note_parser
from duetick.cli.showing import field, show_many
from duetick.domain.limits import Per, say_rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetick.api.views import LimitView
    from duetick.cli.asking import Commands

KINDS: Final = ("user", "flow", "action")

Rate: TypeAlias = tuple[int | None, Per]

NO_RATE: Final[Rate] = (None, "minute")

COLUMNS: Final = (
    field("SCOPE", "scope"),
    field("PARALLEL", "parallel"),
    field("RATE", "rate"),
    field("PER", "per"),
    field("RUNNING", "running"),
    field("BEGUN", "begun"),
    field("FULL UNTIL", "fullUntil"),
    field("BY", "by"),
    field("NOTE", "note"),
)


def add_limits(commands: "Commands") -> None:
    """Add the three commands."""
    told = "operators: limit how much of a user, a flow or an action runs at once, or begins"
    limit = _add(commands, "limit", told)
    limit.add_argument("--parallel", type=int, help="the most occurrences that run at once")
    limit.add_argument(
        "--rate", type=_rate, help="the most that begin: such as 60/minute, 5/hour, 9/day"
    )
    limit.add_argument("--note", default="", help="a text for other operators, who list the limits")
    add_why(limit)
    _add_scope(limit)
    limit.set_defaults(command=_limit)
    unlimit = _add(commands, "unlimit", "operators: lift a limit")
    add_why(unlimit)
    _add_scope(unlimit)
    unlimit.set_defaults(command=_unlimit)
    listed = _add(commands, "limits", "operators: the limits, and the number that runs under each")
    listed.set_defaults(command=_list)


def _add(commands: "Commands", name: str, told: str) -> argparse.ArgumentParser:
    parser = note_parser(commands.add_parser(name, help=told, description=told))
    add_json(parser)
    add_place(parser)
    return parser


def _add_scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("name", help="the user, the flow, or flow/action")


def _rate(text: str) -> Rate:
    """Return the number and the window of `60/minute`."""
    number, _, window = text.partition("/")
    for per in get_args(Per):
        if window == per and number.isascii() and number.isdecimal():
            return int(number), per
    raise argparse.ArgumentTypeError(f"expected a rate such as 60/minute, 5/hour or 9/day: {text}")


def _limit(chosen: argparse.Namespace) -> None:
    given: Rate | None = chosen.rate
    rate, per = given or NO_RATE
    if chosen.parallel is None and rate is None:
        chosen.parser.error("say --parallel, or --rate, or both")
    with advice(chosen):
        operators = operators_of(chosen)
        made = operators.limit(
            _scope(chosen), parallel=chosen.parallel, rate=rate, per=per, note=chosen.note
        )
        warn_of_unknown(operators, chosen.kind, chosen.name)
    if chosen.json:
        _show(chosen, [made])
    else:
        print(f"Limited: {in_words(made)}. Occurrences that run already do not count.")


def _unlimit(chosen: argparse.Namespace) -> None:
    with advice(chosen):
        ended = operators_of(chosen).unlimit(_scope(chosen))["limits"]
    if chosen.json:
        _show(chosen, ended)
    elif ended:
        print("Lifted. What waits begins with the next tick.")
    else:
        print("It has no limit.")


def _list(chosen: argparse.Namespace) -> None:
    with advice(chosen):
        found = operators_of(chosen).limits()["limits"]
    _show(chosen, found)


def in_words(one: "LimitView") -> str:
    """Return the bounds of a limit in words."""
    parts = [f"{one['parallel']} at once"] if one["parallel"] else []
    parts += [say_rate(one["rate"], one["per"])] if one["rate"] else []
    return f"{one['scope']} to {' and '.join(parts)}"


def _show(chosen: argparse.Namespace, found: "Sequence[Mapping[str, object]]") -> None:
    show_many([dict(one) for one in found], COLUMNS, as_json=chosen.json)


def _scope(chosen: argparse.Namespace) -> str:
    return f"{chosen.kind}:{chosen.name}"
