"""The `duetick` command."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from duetick.cli.backfill import add_backfill
from duetick.cli.bills import add_costs
from duetick.cli.console import add_console
from duetick.cli.doctor import add_doctor
from duetick.cli.forecast import add_forecast
from duetick.cli.jobs import add_jobs
from duetick.cli.limits import add_limits
from duetick.cli.local import LocalStack, LocalTransport
from duetick.cli.occurrences import add_occurrences
from duetick.cli.overview import add_overview
from duetick.cli.parsing import Parser, note_parser, read, whole
from duetick.cli.pauses import add_pauses
from duetick.cli.plain_log import log_to_stderr
from duetick.cli.plain_output import plain_output
from duetick.cli.problem import CliProblem
from duetick.cli.projects import add_projects
from duetick.cli.purge import add_purge
from duetick.cli.recover import add_recover
from duetick.cli.redrive import add_redrive
from duetick.cli.schedules import add_schedules
from duetick.cli.start import name_extra
from duetick.cli.store_address import hide_secrets
from duetick.cli.stores import DEFAULT_STORE, add_stores
from duetick.cli.tokens import add_token, keep_key
from duetick.cli.transfer.exporting import add_export
from duetick.cli.transfer.importing import add_import
from duetick.cli.upcoming import add_upcoming
from duetick.cli.verify import add_verify
from duetick.cli.welcome import welcome
from duetick.cli.workers import add_workers
from duetick.domain.errors import DuetickError
from duetick.domain.redaction import redact_text
from duetick.runtime import wiring
from duetick.version import VERSION

if TYPE_CHECKING:
    from duetick.cli.asking import Commands

EXIT_CODES: Final = "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 Ctrl-C."
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""The refusals of a system that has no room."""

VERBS: Final = (
    add_costs,
    add_stores,
    add_recover,
    add_redrive,
    add_verify,
    add_overview,
    add_console,
    add_workers,
    add_backfill,
    add_purge,
    add_schedules,
    add_jobs,
    add_upcoming,
    add_forecast,
    add_doctor,
    add_occurrences,
    add_pauses,
    add_limits,
    add_import,
    add_export,
    add_token,
    add_projects,
)
"""The functions that add the verbs, in the order of the help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Return the exit code: 0 if it was done, 1 if it was refused or failed, 2 if
    the arguments are wrong, 130 after Ctrl-C.
    """
    with plain_output():
        chosen = read(_parser(), arguments)
    # A local stack leaves the output of flows as it is.
    with nullcontext() if chosen.command is _local else plain_output():
        return _run(chosen)


def _run(chosen: argparse.Namespace) -> int:
    try:
        with nullcontext() if chosen.command is _local else log_to_stderr():
            chosen.command(chosen)
        sys.stdout.flush()
    except CliProblem as problem:
        print(f"duetick: {problem}", file=sys.stderr)
        return problem.code
    except DuetickError as problem:
        print(f"duetick: {redact_text(str(problem))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has stopped
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as problem:
        if os.environ.get("DUETICK_DEBUG"):
            raise
        print(f"duetick: {_unexpected(problem)}", file=sys.stderr)
        return 1
    return 0


def _unexpected(problem: Exception) -> str:
    """Return what is said of a problem that no part of the command knows."""
    if isinstance(problem, UnicodeEncodeError) and problem.reason.startswith("surrogates"):
        return "An argument is not UTF-8; write it in UTF-8."
    if isinstance(problem, OSError) and problem.errno in FULL:
        return f"{problem.filename or 'The output'} cannot be written ({problem.strerror})."
    why = redact_text(str(problem))
    told = f"unexpected: {type(problem).__name__}: {why}. DUETICK_DEBUG=1 shows where."
    return name_extra(problem) or told


@cache
def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = Parser(
        prog="duetick", description="Per-user schedules.", epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=f"duetick {VERSION}")
    commands = parser.add_subparsers(required=True)
    for add in (_add_local, *VERBS):
        add(commands)
    return parser


def _add_local(commands: "Commands") -> None:
    local = note_parser(commands.add_parser("local", help="run the whole product on this machine"))
    local.add_argument("--port", type=whole(), default=8080)
    local.add_argument(
        "--project", type=Path, default=Path(), help="the folder of your template.yaml and flows"
    )
    local.add_argument("--store", default=DEFAULT_STORE, help=f"default: {DEFAULT_STORE}")
    local.add_argument(
        "--transport",
        choices=get_args(LocalTransport),
        default="api",
        help="the way to dispatch: a call each, or packs through a queue in this process",
    )
    local.set_defaults(command=_local)


def _local(chosen: argparse.Namespace) -> None:
    if chosen.store == DEFAULT_STORE:
        _make_folder(Path(".cache"))
    stack = LocalStack(
        chosen.project, chosen.store, chosen.port, key=_key(), transport=chosen.transport
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stack.stop())
    text = welcome(
        wiring.flows(),
        url=stack.server.url,
        store=hide_secrets(chosen.store),
        token=stack.token,
        operator=stack.operator,
        console=stack.console,
        example=stack.example,
    )
    print(text, flush=True)
    stack.run()


def _key() -> bytes | None:
    """Return the key of this folder's stacks. Where none can be kept, tokens end with the stack."""
    try:
        return keep_key(Path())
    except OSError as problem:
        print(f"Tokens will end with this stack, no key can be kept: {problem}", file=sys.stderr)
        return None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise CliProblem(
            f"The folder {folder.absolute()} cannot be made ({error.strerror}). Move what is in "
            "its way, or choose a place of yours: --store sqlite:////absolute/path/file.db."
        ) from error
