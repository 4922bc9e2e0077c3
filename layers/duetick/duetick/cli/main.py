"""The `duetick` command."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from duetick.cli.local import LocalStack, shown
from duetick.cli.problem import Problem
from duetick.cli.schedules import add_schedules
from duetick.domain.errors import DuetickError
from duetick.stores import open_store

DEFAULT_STORE: Final = "sqlite:///.cache/duetick.db"

WELCOME: Final = """
Duetick listens on {url} and ticks each minute. Schedules are kept in {store}.
A first schedule, in another terminal (you are the user "you"):

  curl -X PUT {url}/api/schedules/hello \\
    -H "Authorization: Bearer {token}" \\
    -d '{{"cron": "* * * * *", "flow": "reminders", "action": "remind",
         "input": {{"text": "hello"}}}}'

At the next full minute it fires: a line appears here. What became of it:

  curl {url}/api/schedules/hello/history \\
    -H "Authorization: Bearer {token}"

The command speaks to it too: `duetick schedules list`, `duetick schedules --help`, after

  export DUETICK_TOKEN={token} DUETICK_URL={url}

Ctrl-C stops.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        chosen.command(chosen)
        sys.stdout.flush()
    except (Problem, DuetickError) as problem:
        print(f"duetick: {problem}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read, `head` perhaps, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="duetick", description="Per-user schedules.")
    commands = parser.add_subparsers(required=True, metavar="command")
    local = commands.add_parser("local", help="run the whole product on this machine")
    local.add_argument("--port", type=int, default=8080)
    local.add_argument("--project", type=Path, default=Path(), help="the folder of template.yaml")
    local.add_argument("--store", default=DEFAULT_STORE, help=f"default: {DEFAULT_STORE}")
    local.set_defaults(command=_local)
    migrate = commands.add_parser("migrate", help="create or update a store's schema")
    migrate.add_argument("--store", default=DEFAULT_STORE, help=f"default: {DEFAULT_STORE}")
    migrate.set_defaults(command=_migrate)
    costs = commands.add_parser("costs", help="what a deployment costs, and a million fires")
    costs.add_argument("--tick-minutes", type=float, default=1.0)
    costs.add_argument("--memory", type=int, default=512, help="megabytes of each function")
    costs.add_argument("--architecture", choices=("arm64", "x86_64"), default="arm64")
    costs.set_defaults(command=_costs)
    add_schedules(commands)
    return parser


def _local(chosen: argparse.Namespace) -> None:
    if chosen.store == DEFAULT_STORE:
        _make_folder(Path(".cache"))
    stack = LocalStack(chosen.project, chosen.store, chosen.port)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stack.stop())
    text = WELCOME.format(url=stack.server.url, store=shown(chosen.store), token=stack.token)
    print(text, flush=True)
    stack.run()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise Problem(
            f"The folder {folder.absolute()} cannot be made ({error.strerror}). Move what is in "
            "its way, or choose a place of yours: --store sqlite:////absolute/path/file.db."
        ) from error


def _migrate(chosen: argparse.Namespace) -> None:
    store = open_store(chosen.store)
    store.migrate()
    store.check_schema()
    store.close()
    print("The schema is up to date.")


def _costs(chosen: argparse.Namespace) -> None:
    from duetick.cli.costs import GB_SECOND, Prices, Usage, table

    usage = Usage(tick_minutes=chosen.tick_minutes, memory_gb=chosen.memory / 1024)
    print(table(usage, Prices(lambda_gb_second=GB_SECOND[chosen.architecture])))
