"""The `duetick` command."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from duetick.cli.asking import add_json
from duetick.cli.backfill import add_backfill
from duetick.cli.console import add_console
from duetick.cli.doctor import add_doctor
from duetick.cli.forecast import add_forecast
from duetick.cli.jobs import add_jobs
from duetick.cli.limits import add_limits
from duetick.cli.local import LocalStack
from duetick.cli.occurrences import add_occurrences
from duetick.cli.overview import add_overview
from duetick.cli.parsing import known_by_its_parser, more_than_nothing, read, whole
from duetick.cli.pauses import add_pauses
from duetick.cli.plain_log import kept_off_answers
from duetick.cli.problem import CliProblem
from duetick.cli.projects import add_projects
from duetick.cli.purge import add_purge
from duetick.cli.recover import add_recover
from duetick.cli.schedules import add_schedules
from duetick.cli.showing import show_one
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

MEMORY: Final = (128, 10_240)
"""Megabytes that a Lambda function may have."""

EXIT_CODES: Final = "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 130 Ctrl-C."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Return the exit code: 0 if it was done, 1 if it was refused or failed, 2 if
    the arguments are wrong, 130 after Ctrl-C.
    """
    chosen = read(_parser(), arguments)
    try:
        with nullcontext() if chosen.command is _local else kept_off_answers():
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
        told = f"{type(problem).__name__}: {problem}"
        print(f"duetick: unexpected: {told}. DUETICK_DEBUG=1 shows where.", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="duetick", description="Per-user schedules.", epilog=EXIT_CODES
    )
    parser.add_argument("--version", action="version", version=f"duetick {VERSION}")
    commands = parser.add_subparsers(required=True)
    local = known_by_its_parser(
        commands.add_parser("local", help="run the whole product on this machine")
    )
    local.add_argument("--port", type=whole(), default=8080)
    local.add_argument(
        "--project", type=Path, default=Path(), help="the folder of your template.yaml and flows"
    )
    local.add_argument("--store", default=DEFAULT_STORE, help=f"default: {DEFAULT_STORE}")
    local.set_defaults(command=_local)
    costs = known_by_its_parser(
        commands.add_parser("costs", help="what a deployment costs, and a million fires")
    )
    costs.add_argument("--tick-minutes", type=more_than_nothing, default=1.0)
    costs.add_argument(
        "--memory", type=whole(*MEMORY), default=512, help="megabytes of each function"
    )
    costs.add_argument("--architecture", choices=("arm64", "x86_64"), default="arm64")
    add_json(costs)
    costs.set_defaults(command=_costs)
    add_stores(commands)
    add_recover(commands)
    add_verify(commands)
    add_overview(commands)
    add_console(commands)
    add_workers(commands)
    add_backfill(commands)
    add_purge(commands)
    add_schedules(commands)
    add_jobs(commands)
    add_upcoming(commands)
    add_forecast(commands)
    add_doctor(commands)
    add_occurrences(commands)
    add_pauses(commands)
    add_limits(commands)
    add_import(commands)
    add_export(commands)
    add_token(commands)
    add_projects(commands)
    return parser


def _local(chosen: argparse.Namespace) -> None:
    if chosen.store == DEFAULT_STORE:
        _make_folder(Path(".cache"))
    stack = LocalStack(chosen.project, chosen.store, chosen.port, key=_key())
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


def _costs(chosen: argparse.Namespace) -> None:
    from duetick.cli.costs import GB_SECOND, Prices, Usage, every, table

    usage = Usage(tick_minutes=chosen.tick_minutes, memory_gb=chosen.memory / 1024)
    prices = Prices(lambda_gb_second=GB_SECOND[chosen.architecture])
    if chosen.json:
        show_one(every(usage, prices), as_json=True)
    else:
        print(table(usage, prices))
