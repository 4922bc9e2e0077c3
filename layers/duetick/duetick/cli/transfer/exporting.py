"""`duetick export FORMAT`: schedules in the forms of others, and the losses in those forms."""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from duetick.cli import asking
from duetick.cli.parsing import note_parser
from duetick.cli.plain_output import data_output
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.schedules import add_connection
from duetick.cli.showing import say
from duetick.cli.transfer import (
    apscheduler_writer,
    crontab_writer,
    eventbridge_writer,
    pgboss_writer,
    tables,
)
from duetick.cli.transfer.exported import (
    Exported,
    TellLoss,
    Write,
    definition,
    tell_end_of_pause,
    tell_withheld,
)
from duetick.domain.errors import say_count

if TYPE_CHECKING:
    from duetick.cli.asking import Commands
    from duetick.operators import Operators

TOLD: Final = "schedules as other schedulers and files have them; what these cannot say is told"
AT_ONCE: Final = 8

FORMATS: Final[Mapping[str, str]] = {
    "crontab": "a crontab; --run is what each line runs",
    "eventbridge": "documents for `aws scheduler create-schedule`; --target, --role",
    "pgboss": "rows for pg-boss; --queue is the name of the queue",
    "apscheduler": "rows of a data store of APScheduler 4, in JSON; --task is the function",
    "csv": "CSV, which an import reads back whole",
    "jsonl": "JSON Lines, which an import reads back whole",
}

TEMPLATES: Final[Mapping[str, Mapping[str, str]]] = {
    "crontab": {"run": crontab_writer.COMMAND},
    "eventbridge": {"target": eventbridge_writer.TARGET, "role": eventbridge_writer.ROLE},
    "pgboss": {"queue": pgboss_writer.QUEUE},
    "apscheduler": {"task": apscheduler_writer.TASK},
}
"""The options of a format, each with its default. A template names {key}, {flow}, {action}, …"""


def add_export(commands: "Commands") -> None:
    """Add `export` with its formats."""
    noun = commands.add_parser("export", help=TOLD, description=TOLD)
    formats = noun.add_subparsers(required=True, dest="format")
    for name, told in FORMATS.items():
        parser = note_parser(formats.add_parser(name, help=told, description=told))
        for option, usual in TEMPLATES.get(name, {}).items():
            parser.add_argument(f"--{option}", help=f"default: {usual}")
        parser.add_argument("--output", type=Path, help="a new file; without it stdout")
        parser.add_argument("--state", choices=["active", "paused", "done", "all"])
        parser.add_argument("--flow", help="the schedules of that flow")
        parser.add_argument("--label", metavar="NAME=TEXT", help="the schedules with that label")
        add_connection(parser.add_argument_group("who asks whom"))
        parser.add_argument(
            "--all-users", action="store_true", help="operators: the schedules of all users"
        )
    noun.set_defaults(command=_export)


def _export(chosen: argparse.Namespace) -> None:
    told: dict[str, list[str]] = defaultdict(list)

    def tell(one: Exported, what: str) -> None:
        told[one.name].append(what)

    with asking.advice(chosen):
        found = [*_schedules(chosen)]
    for one in found:
        tell_withheld(one, tell)
        tell_end_of_pause(one, tell)
    with _open(chosen.output) as file:
        lines = 0
        for line in _writer(chosen)(found, tell):
            print(line, file=file)
            lines += 1
    for name, notes in told.items():
        say(f"{name}: {'; '.join(notes)}")
    written = f"{say_count(len(found), 'schedule')}, {say_count(lines, 'line')}"
    say(f"{written}; not said in full: {len(told):,}.")


def _schedules(chosen: argparse.Namespace) -> Iterator[Exported]:
    filters = {name: getattr(chosen, name) for name in ("state", "flow", "label")}
    if chosen.all_users:
        if chosen.user:
            raise WrongUsage("Either --user or --all-users.")
        yield from _of_all(asking.operators_of(chosen), filters)
        return
    if chosen.stack and not chosen.user:
        raise WrongUsage("--stack needs --user, or --all-users.")
    for view in asking.users_client(chosen).list(**filters):
        yield Exported(chosen.user, view)


def _of_all(operators: "Operators", filters: Mapping[str, Any]) -> Iterator[Exported]:
    """Yield the schedules of all users, who are asked for side by side."""
    named = {one["user"] for one in operators.schedules(**filters) if one["action"] is not None}

    def list_of(user: str) -> list[Exported]:
        return [Exported(user, view) for view in operators.of(user).list(**filters)]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for found in pool.map(list_of, sorted(filter(None, named))):
            yield from found


def _writer(chosen: argparse.Namespace) -> Write:
    now = time.time_ns() // 1_000_000
    match chosen.format:
        case "crontab":
            return partial(crontab_writer.write, run=chosen.run)
        case "eventbridge":
            target = chosen.target or eventbridge_writer.TARGET
            role = chosen.role or eventbridge_writer.ROLE
            return partial(eventbridge_writer.write, target=target, role=role, now=now)
        case "pgboss":
            return partial(pgboss_writer.write, queue=chosen.queue, now=now)
        case "apscheduler":
            return partial(apscheduler_writer.write, task=chosen.task, now=now)
        case "csv":
            return _write_csv
        case _:
            return _write_json_lines


def _write_json_lines(schedules: list[Exported], _tell: TellLoss) -> Iterator[str]:
    for one in schedules:
        yield json.dumps(definition(one), ensure_ascii=False)


def _write_csv(schedules: list[Exported], _tell: TellLoss) -> Iterator[str]:
    yield from tables.csv_lines([definition(one) for one in schedules])


@contextmanager
def _open(path: Path | None) -> Iterator[TextIO]:
    """Open a new file; an existing one stays as it is."""
    if path is None:
        with data_output() as data:
            yield data
        return
    try:
        file = path.open("x", encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        raise CliProblem(
            f"{path} cannot be made ({problem.strerror}). Name a new file in a folder of yours."
        ) from problem
    try:
        with file:
            yield file
    except BaseException as problem:
        path.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            wrong = f"{path} cannot be written ({problem.strerror}). Nothing is left of it."
            raise CliProblem(wrong) from problem
        raise
