"""`duetick recover`: the recovery of a store that was restored from a backup."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from duetick.cli.asking import add_json, add_why
from duetick.cli.parsing import note_parser
from duetick.cli.problem import CliProblem
from duetick.cli.showing import show_one
from duetick.cli.stores import add_store, open_checked, operating, store_of, take_step
from duetick.core.recovery import RECOVERIES, Recovered, recover
from duetick.runtime.witness import open_witness

if TYPE_CHECKING:
    import argparse

    from duetick.cli.asking import Commands

TOLD: Final = {
    "skip": "none of the unknown times fires: users see one missed range, whose error says that it "
    "is unknown",
    "latest": "of each schedule at most the newest fires, even with misfire all, and what was "
    "under way in the backup is dead: users see such a range, then one late fire",
    "fire": "each is a misfire, so misfire all fires several, and what was under way goes on: "
    "users see what any downtime leaves, and what ran before may run again",
}


def add_recover(commands: Commands) -> None:
    """Add the command."""
    parser = note_parser(
        commands.add_parser(
            "recover",
            help="after a restore from a backup: decide about the unknown times",
            description="After a restore from a backup ticks claim nothing, until this says what "
            "becomes of the unknown times: those between the backup and the restore.",
        )
    )
    told = "; ".join(f"{name}: {means}" for name, means in TOLD.items())
    parser.add_argument("how", nargs="?", choices=RECOVERIES, default="skip", help=told)
    add_store(parser)
    add_why(parser)
    add_json(parser)
    parser.add_argument(
        "--witness", default="", help="ssm:NAME; default: the file beside the SQLite file"
    )
    parser.add_argument("--yes", action="store_true", help="do it; without this it is a dry run")
    parser.set_defaults(command=_recover)


def _recover(chosen: argparse.Namespace) -> None:
    done = _of_stack(chosen) if chosen.stack else _of_store(chosen)
    if chosen.json:
        show_one(asdict(done), as_json=True)
    else:
        print(_describe(done))
    if not done.complete:
        again = "do it again, and it goes on" if chosen.yes else "there are more of them"
        raise CliProblem(f"The time ended first: {again}.")


def _of_stack(chosen: argparse.Namespace) -> Recovered:
    return Recovered(**take_step(chosen, Step="recover", How=chosen.how, DryRun=not chosen.yes))


def _of_store(chosen: argparse.Namespace) -> Recovered:
    address = store_of(chosen)
    witness = open_witness(chosen.witness, address)
    with open_checked(address) as store:
        if not chosen.yes:
            return recover(store, witness, chosen.how, now=store.now())
        with operating(store, "recover", chosen.why, target=chosen.how):
            return recover(store, witness, chosen.how, now=store.now(), dry_run=False)


def _describe(done: Recovered) -> str:
    if not done.restored:
        return "The store is as new as its witness: there is nothing to recover."
    since = f"noted at {done.noted}" if done.noted else "never noted"
    lines = [
        f"The store was {since}, and its witness at {done.witnessed}: it was restored.",
        f"Due by {done.until}, their outcome unknown: times of {done.schedules} schedules.",
        f"{done.how}: {done.recorded} are recorded as missed, {done.fires} may fire now.",
    ]
    if done.dry_run:
        return "\n".join([*lines, f"Nothing was changed. `duetick recover {done.how} --yes` does."])
    if done.lost:
        lines.append(f"{done.lost} that were under way are dead, reason lost.")
    then = "Ticks claim again." if done.complete else "No tick claims yet."
    return "\n".join([*lines, then])
