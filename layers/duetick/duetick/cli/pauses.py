"""`duetick pause`, `resume` and `pauses`: a user, a flow, or everything at once, for operators."""

import argparse
from typing import TYPE_CHECKING, Final

from duetick.cli.asking import add_json, add_place, add_why, advice, operators_of, warn_of_unknown
from duetick.cli.parsing import note_parser
from duetick.cli.showing import field, show_many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetick.cli.asking import Commands

KINDS: Final = ("user", "flow", "all")

COLUMNS: Final = (
    field("SCOPE", "scope"),
    field("SINCE", "since"),
    field("UNTIL", "until"),
    field("HOLDS", "holds"),
    field("BY", "by"),
    field("NOTE", "note"),
)


def add_pauses(commands: "Commands") -> None:
    """Add the three commands."""
    pause = _add(commands, "pause", "operators: keep a user, a flow or everything from firing")
    pause.add_argument("--note", default="", help="a text for other operators, who list the pauses")
    pause.add_argument("--until", help="such as 2026-12-01T09:00:00Z; without it until a resume")
    add_why(pause)
    _add_scope(pause)
    pause.set_defaults(command=_pause)
    resume = _add(commands, "resume", "operators: end a pause, so that the next times fire again")
    add_why(resume)
    _add_scope(resume)
    resume.set_defaults(command=_resume)
    told = "operators: the pauses that stand, and those of the last thirty days"
    listed = _add(commands, "pauses", told)
    listed.add_argument("--from", dest="since", help="also the pauses that ended after this time")
    listed.set_defaults(command=_list)


def _add(commands: "Commands", name: str, told: str) -> argparse.ArgumentParser:
    parser = note_parser(commands.add_parser(name, help=told, description=told))
    add_json(parser)
    add_place(parser)
    return parser


def _add_scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("name", nargs="?", help="the user, or the flow")


def _pause(chosen: argparse.Namespace) -> None:
    scope = _scope(chosen)
    with advice(chosen):
        operators = operators_of(chosen)
        made = operators.pause(scope, note=chosen.note, until=chosen.until)
        warn_of_unknown(operators, chosen.kind, chosen.name)
    if chosen.json:
        _show(chosen, [made])
    else:
        print(f"Paused from {made['since']} until {made['until'] or 'a resume'}.")


def _resume(chosen: argparse.Namespace) -> None:
    scope = _scope(chosen)
    with advice(chosen):
        ended = operators_of(chosen).resume(scope)["pauses"]
    if chosen.json:
        _show(chosen, ended)
    elif ended:
        latest = max(str(one["until"]) for one in ended)
        print(f"Resumed. Times from {latest} on fire.")
    else:
        print("It was not paused.")


def _list(chosen: argparse.Namespace) -> None:
    with advice(chosen):
        found = operators_of(chosen).pauses(since=chosen.since)["pauses"]
    _show(chosen, found)


def _show(chosen: argparse.Namespace, found: "Sequence[Mapping[str, object]]") -> None:
    show_many([dict(one) for one in found], COLUMNS, as_json=chosen.json)


def _scope(chosen: argparse.Namespace) -> str:
    if (chosen.kind == "all") != (chosen.name is None):
        chosen.parser.error("name the user or the flow, and nothing with all")
    return "all" if chosen.kind == "all" else f"{chosen.kind}:{chosen.name}"
