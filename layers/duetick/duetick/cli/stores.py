"""`duetick migrate`, `check`, `rebuild`: the operations on a whole store.

With --store the command works itself; with --stack the stack's function `migrate` does. Each change
is recorded: its operator is the user who is logged in here, or the signer.
"""

import argparse
import getpass
import shlex
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from duetick.cli import local_note
from duetick.cli.asking import add_json, add_why
from duetick.cli.parsing import note_parser
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.showing import field, say, show_many, show_one
from duetick.cli.store_address import advice, check_is_there, hide_secrets
from duetick.core.operations import Asked, record, record_around
from duetick.core.repair import repair
from duetick.core.rows import SETTING, TAKEN_OVER
from duetick.core.store import Store
from duetick.domain.errors import SchemaOutdated, StoreUnavailable
from duetick.stores import open_store

if TYPE_CHECKING:
    from duetick.cli.asking import Commands

DEFAULT_FOLDER: Final = ".cache"
DEFAULT_STORE: Final = f"sqlite:///{DEFAULT_FOLDER}/duetick.db"
IN_MEMORY: Final = "sqlite://"
EACH: Final = 10_000
"""The schedules after which a line of progress appears."""

_DIFFERENCES: Final = (field("PROBLEM", "problem"), field("USER", "user"), field("KEY", "key"))


def add_stores(commands: "Commands") -> None:
    """Add the commands."""
    migrate = _add(commands, "migrate", "create or update a store's schema")
    migrate.set_defaults(command=_migrate)
    check = _add(commands, "check", "name each schedule whose row is not as its record requires")
    add_json(check)
    check.set_defaults(command=_check)
    rebuild = _add(
        commands, "rebuild", "mend the differences that check finds; a dry run without --yes"
    )
    rebuild.add_argument("--yes", action="store_true", help="do it")
    add_json(rebuild)
    rebuild.set_defaults(command=_rebuild)


def _add(commands: "Commands", name: str, told: str) -> argparse.ArgumentParser:
    parser = note_parser(commands.add_parser(name, help=told, description=told))
    add_store(parser)
    add_why(parser)
    return parser


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the store: one that is reached from here, or a stack's."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--store",
        help=f"default: the store of the local stack that runs here, else {DEFAULT_STORE}",
    )
    which.add_argument("--stack", help="the name of a deployed stack: its function migrate does it")


def store_of(chosen: argparse.Namespace) -> str:
    """Return the address of the store: as it is given, or of the local stack that runs here."""
    if chosen.store is not None:
        return str(chosen.store)
    running = {one.store for one in local_note.find(Path.cwd()) if one.store}
    if len(running) > 1:
        every = ", ".join(sorted(map(hide_secrets, running)))
        raise WrongUsage(f"Several local stacks run here. Name the store of one: --store {every}.")
    if running == {IN_MEMORY}:
        raise WrongUsage("The local stack keeps its schedules in memory: only it reaches them.")
    return running.pop() if running else DEFAULT_STORE


def whoever() -> str:
    """Return the user of the operating system, and the machine."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


@contextmanager
def open_checked(address: str, *, migrated: bool = True) -> Iterator[Store]:
    """Open a store whose schema is there. If the store cannot be used, say what to look at."""
    if migrated:
        check_is_there(address)
    try:
        with closing(open_store(address)) as store:
            if migrated:
                store.check_schema()
            yield store
    except SchemaOutdated:
        raise
    except StoreUnavailable as problem:
        shown = hide_secrets(address)
        why = str(problem).rstrip(".")
        said = f"The store {shown} cannot be used: {why}. {advice(address)}"
        raise CliProblem(said) from problem


@contextmanager
def operating(
    store: Store, verb: str, why: str, *, user_id: str | None = None, target: str = ""
) -> Iterator[None]:
    """Record the block as an operation of the user who is logged in here."""
    with record_around(store, Asked(whoever(), verb, user_id, target, why)):
        yield


def take_step(chosen: argparse.Namespace, **step: object) -> dict[str, Any]:
    """Let the function `migrate` of a stack take a step, in the name of the signer."""
    from duetick.cli.deployed import Deployed

    say(f"The function migrate of {chosen.stack} does it; this may take minutes …")
    stack = Deployed.find(chosen.stack)
    return stack.step({**step, "Who": stack.who(), "Why": getattr(chosen, "why", "")})


def _migrate(chosen: argparse.Namespace) -> None:
    if chosen.stack:
        show_one(take_step(chosen), as_json=True)
        return
    address = store_of(chosen)
    if address == DEFAULT_STORE:
        Path(DEFAULT_FOLDER).mkdir(exist_ok=True)
    with open_checked(address, migrated=False) as store:
        taken_over = store.migrate()
        store.check_schema()
        record(store, Asked(whoever(), "migrate", why=chosen.why))
    print("The schema is up to date.")
    if taken_over:
        home = f"the flow with a resolver, or where {SETTING} says"
        print(f"{TAKEN_OVER}: {taken_over}. They go to {home}.")


def _check(chosen: argparse.Namespace) -> None:
    found = _repair(chosen, dry_run=True)
    _show(found, chosen)
    if found["differences"]:
        raise CliProblem(f"{_sum_up(found)} {_what_mends(found, chosen)}")
    say(_sum_up(found))


def _rebuild(chosen: argparse.Namespace) -> None:
    found = _repair(chosen, dry_run=not chosen.yes)
    _show(found, chosen)
    say(_sum_up(found))
    if not chosen.yes:
        say("Nothing was changed: it was a dry run. With --yes it is done.")
    if found["unreadable"]:
        raise CliProblem(
            f"{found['unreadable']} cannot be read {'and stay' if chosen.yes else 'yet'}: {UNREAD}."
        )
    if not found["complete"]:
        raise CliProblem("The time ended first: do it again, and it goes on.")


UNREAD: Final = (
    "put each with a cron and a zone that can be read (`duetick schedules put KEY --user USER "
    "--cron … --timezone …`); what a deployment with its zone can read again, `duetick rebuild "
    "--yes` brings back"
)


def _what_mends(found: Mapping[str, object], chosen: argparse.Namespace) -> str:
    """Name the command that mends the differences, and the way for rows that cannot be read."""
    others = found["differences"] != found["unreadable"]
    where = f" --store {shlex.quote(hide_secrets(chosen.store))}" if chosen.store else ""
    where = f" --stack {shlex.quote(chosen.stack)}" if chosen.stack else where
    lines = [f"`duetick rebuild --yes{where}` mends them"] if others else []
    if found["unreadable"]:
        lines.append(f"{found['unreadable']} cannot be read: {UNREAD}")
    return "; but ".join(lines) + "."


def _repair(chosen: argparse.Namespace, *, dry_run: bool) -> dict[str, object]:
    if chosen.stack:
        return take_step(chosen, Step="rebuild", DryRun=dry_run)
    with open_checked(store_of(chosen)) as store:
        if dry_run:
            return repair(store, store.now(), saw=progress()).json()
        with operating(store, "rebuild", chosen.why):
            return repair(store, store.now(), dry_run=False, saw=progress()).json()


def progress() -> Callable[[], None]:
    """Return a function that is called for each schedule, and tells the progress on stderr."""
    seen = count(1)

    def see() -> None:
        number = next(seen)
        if number % EACH == 0:
            say(f"{number:,} schedules …")

    return see


def _show(found: dict[str, object], chosen: argparse.Namespace) -> None:
    if chosen.json:
        show_one(found, as_json=True)
        return
    named = found["found"]
    if isinstance(named, list) and named:
        show_many(named, _DIFFERENCES, as_json=False)


def _sum_up(found: dict[str, object]) -> str:
    mended = "" if found["dry_run"] else f", {found['mended']} mended"
    return f"{found['schedules']} schedules, {found['differences']} differences{mended}."
