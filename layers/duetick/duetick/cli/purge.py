"""`duetick purge`: everything whose time is over leaves a store.

With --store the command purges itself. With --stack the stack's function `migrate` purges, in as
many invocations as it needs.
"""

import argparse
import shlex
import time
from typing import TYPE_CHECKING, Final

from duetick.cli.asking import add_json, add_why
from duetick.cli.parsing import note_parser, whole
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.showing import say, show_one
from duetick.cli.store_address import hide_secrets
from duetick.cli.stores import add_store, open_checked, operating, store_of, take_step
from duetick.core.done import Purged
from duetick.core.ids import new_name
from duetick.core.keeping import read_retention
from duetick.core.purge import purge_within
from duetick.core.store import Store
from duetick.domain.retention import LONGEST_DAYS, USUAL, Retention

if TYPE_CHECKING:
    from duetick.cli.asking import Commands

LONGEST_SECONDS: Final = 86_400
EACH: Final = 10_000
"""The occurrences after which a line of progress appears."""


def add_purge(commands: "Commands") -> None:
    """Add the command."""
    told = "delete what is over"
    parser = note_parser(commands.add_parser("purge", help=told, description=told))
    add_store(parser)
    parser.add_argument(
        "--days", type=whole(1, LONGEST_DAYS), help="default: the days of the last purge, or 30"
    )
    parser.add_argument("--dead-days", type=whole(1, LONGEST_DAYS), help="default: 90")
    parser.add_argument("--by-flow", default="", help="such as 'billing=365 noise=7/14'")
    add_why(parser)
    add_json(parser)
    parser.set_defaults(command=_purge)


def _purge(chosen: argparse.Namespace) -> None:
    done = _purge_stack(chosen) if chosen.stack else _purge_store(chosen)
    if done is None:
        place = f"--stack {chosen.stack}" if chosen.stack else f"--store {_hide(store_of(chosen))}"
        raise CliProblem(f"Another purge is at work: `duetick locks {place}` says whose.")
    if chosen.json:
        show_one(done._asdict(), as_json=True)
    else:
        print(
            f"{done.retired:,} occurrences left, {done.deleted:,} schedules that were done, and "
            f"{done.forgotten:,} marks, definitions, keys, counts and reports."
        )
    if chosen.stack and done.more:
        shows = f"`duetick locks --stack {chosen.stack}` shows it"
        say(f"There is more: it goes on by itself. {shows}.")


def _hide(address: str) -> str:
    return shlex.quote(hide_secrets(address))


def _purge_store(chosen: argparse.Namespace) -> Purged | None:
    with open_checked(store_of(chosen)) as store, operating(store, "purge", chosen.why):
        return purge_within(
            LONGEST_SECONDS,
            store,
            retention=_retention(store, chosen),
            owner=new_name("purge"),
            tell=_Progress().show,
            rest=time.sleep,
        )


def _purge_stack(chosen: argparse.Namespace) -> Purged | None:
    """Let the stack purge, by the days of its deployment."""
    if _has_days(chosen):
        raise WrongUsage("A stack keeps to the days of its deployment: set RetentionDays there.")
    found = take_step(chosen, Step="purge")["purged"]
    return Purged(**found) if isinstance(found, dict) else None


def _has_days(chosen: argparse.Namespace) -> bool:
    return bool(chosen.days or chosen.dead_days or chosen.by_flow)


def _retention(store: Store, chosen: argparse.Namespace) -> Retention:
    """Return the retention that the options name, or that of the last purge."""
    if not _has_days(chosen):
        return read_retention(store, USUAL)
    usual = USUAL.usual
    days = chosen.days or usual.ended, chosen.dead_days or usual.dead
    try:
        return Retention.of(*days, chosen.by_flow)
    except ValueError as error:
        raise CliProblem(str(error)) from error


class _Progress:
    """The lines of a long purge, on the error output."""

    def __init__(self) -> None:
        self._told = 0

    def show(self, done: Purged) -> None:
        """Print a line after each `EACH` occurrences."""
        if done.retired >= self._told + EACH:
            self._told = done.retired
            say(f"{done.retired:,} occurrences …")
