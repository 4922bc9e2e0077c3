"""The formats of sources: the options and the reader of each, and the usual input of its items."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.transfer import apscheduler, eventbridge, pgboss, tables
from duetick.cli.transfer.crontab import CrontabReader
from duetick.cli.transfer.items import FileReader, SourcePart
from duetick.cli.transfer.rows import MARK, SourceRow, rows_of_database, rows_of_file
from duetick.domain.expression import InvalidTimezone, check_zone
from duetick.domain.schedule import Json

if TYPE_CHECKING:
    from duetick.cli.asking import Options

FROM_AWS: Final = "aws"
STDIN: Final = "-"
SYSTEM: Final = ("/etc/crontab", "/etc/cron.d/")
"""In these places, the lines of a crontab name a user."""

ZONEINFO: Final = "zoneinfo/"


@dataclass(frozen=True, slots=True)
class Format:
    """A format: the function that adds its options, and the one that reads its items.

    `usual` is the input of an item if no rule names one.
    """

    told: str
    add_options: Callable[["Options"], object]
    items: Callable[[argparse.Namespace, int], Iterator[SourcePart]]
    usual: Mapping[str, Json]


def texts(chosen: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file; of the standard input for `-`."""
    if not chosen.files:
        raise WrongUsage("Name the files to read, or - for the standard input.")
    for name in chosen.files:
        try:
            data = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
            text = data.decode()
        except OSError as problem:
            raise CliProblem(f"{name} cannot be read ({problem.strerror}).") from problem
        except UnicodeDecodeError as problem:
            raise CliProblem(f"{name} is no text in UTF-8.") from problem
        yield ("stdin" if name == STDIN else name), text.removeprefix(MARK)


def _each_file(read: FileReader) -> Callable[[argparse.Namespace, int], Iterator[SourcePart]]:
    def items(chosen: argparse.Namespace, _now: int) -> Iterator[SourcePart]:
        for name, text in texts(chosen):
            yield from read(name, text)

    return items


# Crontabs.


def _add_crontab(parser: "Options") -> None:
    parser.add_argument(
        "--timezone", help="the zone of the crontab's machine; without it, this machine's"
    )
    parser.add_argument(
        "--system",
        action=argparse.BooleanOptionalAction,
        help="each line names a user, as in /etc/crontab and /etc/cron.d; known by the path",
    )


def _crontab(chosen: argparse.Namespace, _now: int) -> Iterator[SourcePart]:
    zone = chosen.timezone or machine_zone()
    try:
        check_zone(zone)
    except InvalidTimezone as problem:
        raise WrongUsage(f"--timezone: {problem}") from None
    for name, text in texts(chosen):
        system = chosen.system
        if system is None:
            system = str(Path(name).absolute()).startswith(SYSTEM)
        yield from CrontabReader(zone, with_user=system).read(name, text)


def machine_zone() -> str | None:
    """Return the time zone of this machine; None if it is UTC, or not known."""
    named = os.environ.get("TZ", "").removeprefix(":")
    linked = os.path.realpath("/etc/localtime").partition(ZONEINFO)[2]
    for zone in (named, linked):
        try:
            check_zone(zone)
        except InvalidTimezone:
            continue
        return zone
    return None


# Databases.


def _add_database(parser: "Options") -> None:
    parser.add_argument(
        "--from",
        dest="database",
        metavar="URL",
        help="the database, in place of a dump of it: postgresql://… or sqlite:///file.db",
    )
    parser.add_argument("--schema", help="the schema of its tables")


def _add_pgboss(parser: "Options") -> None:
    _add_database(parser)


def _add_apscheduler(parser: "Options") -> None:
    _add_database(parser)
    parser.add_argument(
        "--table", default=apscheduler.TABLE_3, help="the table of version 3; default: %(default)s"
    )


def _rows(
    chosen: argparse.Namespace, queries: list[str], names: list[str]
) -> Iterator[tuple[str, list[SourceRow]]]:
    """Yield the rows of the database, or of each file."""
    if chosen.database:
        if chosen.files:
            raise WrongUsage("Either --from, or files.")
        yield chosen.database.partition("://")[0], rows_of_database(chosen.database, queries)
        return
    if not chosen.files:
        raise WrongUsage("Name the dumps to read, or the database by --from.")
    for name in chosen.files:
        path = Path(name)
        try:
            yield name, rows_of_file(path, names, queries)
        except OSError as problem:
            raise CliProblem(f"{name} cannot be read ({problem.strerror}).") from problem


def _pgboss(chosen: argparse.Namespace, now: int) -> Iterator[SourcePart]:
    schema = chosen.schema or "pgboss"
    queries = [pgboss.QUERY.format(schema=f"{_quote(schema)}."), pgboss.QUERY.format(schema="")]
    for name, rows in _rows(chosen, queries, [pgboss.TABLE]):
        yield from pgboss.read_rows(name, rows, now)


def _apscheduler(chosen: argparse.Namespace, now: int) -> Iterator[SourcePart]:
    prefix = f"{_quote(chosen.schema)}." if chosen.schema else ""
    queries = [
        apscheduler.QUERY_3.format(table=prefix + _quote(chosen.table)),
        apscheduler.QUERY_4.format(schema=prefix),
    ]
    for name, rows in _rows(chosen, queries, [chosen.table, "schedules"]):
        yield from apscheduler.read_rows(name, rows, now)


def _quote(name: str) -> str:
    """Return an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


# EventBridge.


def _add_eventbridge(parser: "Options") -> None:
    parser.add_argument(
        "--from",
        dest="database",
        metavar=FROM_AWS,
        choices=[FROM_AWS],
        help="ask AWS, with the credentials of this shell, in place of files",
    )
    parser.add_argument("--group", help="with --from aws: the schedules of that group alone")


def _eventbridge(chosen: argparse.Namespace, now: int) -> Iterator[SourcePart]:
    if chosen.database is None:
        yield from _each_file(eventbridge.read)(chosen, now)
        return
    from duetick.cli.transfer.aws import documents

    for place, document in documents(chosen.group):
        yield from eventbridge.read_document(place, document)


def _add_nothing(_parser: "Options") -> None:
    """Add no option."""


FORMATS: Final[Mapping[str, Format]] = {
    "crontab": Format(
        "crontabs, of users or of the system",
        _add_crontab,
        _crontab,
        {"input": {"command": "{command}"}},
    ),
    "eventbridge": Format(
        "EventBridge: what `aws scheduler get-schedule` and `aws events list-rules` print",
        _add_eventbridge,
        _eventbridge,
        {"input": "{input}"},
    ),
    "pgboss": Format("pg-boss: its table `schedule`", _add_pgboss, _pgboss, {"input": "{data}"}),
    "apscheduler": Format(
        "APScheduler: the table of a job store (3) or of a data store (4)",
        _add_apscheduler,
        _apscheduler,
        {"input": "{kwargs}"},
    ),
    "csv": Format("CSV: a line for each schedule", _add_nothing, _each_file(tables.read_csv), {}),
    "jsonl": Format(
        "JSON Lines: an object for each schedule",
        _add_nothing,
        _each_file(tables.read_json_lines),
        {},
    ),
}
