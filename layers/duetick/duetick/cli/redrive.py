"""`duetick redrive`: the packs that came back too often are taken once more."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from duetick.cli.asking import add_json, add_why
from duetick.cli.parsing import note_parser
from duetick.cli.problem import CliProblem
from duetick.cli.showing import show_one
from duetick.cli.stores import take_step
from duetick.runtime.redriving import Redriven

if TYPE_CHECKING:
    import argparse

    from duetick.cli.asking import Commands


def add_redrive(commands: Commands) -> None:
    """Add the command."""
    parser = note_parser(
        commands.add_parser(
            "redrive",
            help="take the packs that came back too often once more",
            description="Packs that came back five times lie in PackDeadLetters, and an alarm says "
            "so. This puts them into the queue of packs again. It is safe: what has ended or was "
            "begun elsewhere begins nothing, and so does what came too late.",
        )
    )
    parser.add_argument("--stack", required=True, help="the name of a deployed stack")
    add_why(parser)
    add_json(parser)
    parser.add_argument("--yes", action="store_true", help="do it; without this it is a dry run")
    parser.set_defaults(command=_redrive)


def _redrive(chosen: argparse.Namespace) -> None:
    done = Redriven(**take_step(chosen, Step="redrive", DryRun=not chosen.yes))
    if chosen.json:
        show_one(asdict(done), as_json=True)
    else:
        print(_describe(done))
    if done.left and chosen.yes:
        raise CliProblem(f"About {done.left} are left: do it again, and it goes on.")


def _describe(done: Redriven) -> str:
    if not done.messages and not done.left:
        return "No pack came back too often: there is nothing to redrive."
    held = f"{done.occurrences} occurrences, of which {done.alive} may begin yet"
    lines = [f"{done.messages} packs of {held}."]
    if done.unreadable:
        lines.append(f"{done.unreadable} more cannot be read by this code.")
    if done.dry_run:
        lines[0] = f"About {done.left} packs lie there. Of the first: {lines[0]}"
        lines.append("Nothing was moved. `duetick redrive --yes` does.")
    else:
        lines.append("They are in the queue of packs again. The others come back by their leases.")
    return "\n".join(lines)
