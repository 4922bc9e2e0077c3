"""`duetick jobs …`: the API's operations on jobs, at a terminal."""

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from duetick.cli import asking
from duetick.cli.asking import add_json, add_limit
from duetick.cli.parsing import note_parser
from duetick.cli.plain_output import plain
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.putting import json_of, label
from duetick.cli.schedules import HISTORY, add_connection
from duetick.cli.showing import Column, ShownItem, field, show_many, show_one
from duetick.client import Client
from duetick.core.wire import require_json
from duetick.domain.schedule import Json

if TYPE_CHECKING:
    from duetick.cli.asking import Commands

_VERBS: Final = {
    "add": "enqueue one; or hundreds, as JSON on the standard input, by --batch",
    "list": "a user's jobs, by id",
    "show": "one",
    "cancel": "end one that waits or runs",
    "history": "what became of it, and what told of its death",
    "explain": "why it ran, or did not, or whether it will",
}
_OF_ALL: Final = frozenset({"add", "list"})
"""The verbs that take no id."""


def add_jobs(commands: "Commands") -> None:
    """Add `jobs` with its verbs. The connection may stand before the verb or after it."""
    noun = commands.add_parser("jobs", help="a user's jobs; for an operator the jobs of any user")
    add_connection(noun)
    verbs = noun.add_subparsers(required=True, dest="verb")
    for verb, told in _VERBS.items():
        one = note_parser(verbs.add_parser(verb, help=told, description=told))
        if verb not in _OF_ALL:
            one.add_argument("id")
        _add_options(verb, one)
        add_json(one)
        add_connection(one.add_argument_group("who asks whom"), again=True)
    noun.set_defaults(command=_run)


def _add_options(verb: str, parser: argparse.ArgumentParser) -> None:
    if verb == "add":
        parser.add_argument("--flow")
        parser.add_argument("--action")
        parser.add_argument("--input", help="JSON")
        parser.add_argument("--at", help="such as 2026-12-01T09:00:00Z")
        parser.add_argument("--delay", type=float, help="seconds from now")
        parser.add_argument(
            "--key", help="a key of yours: a repeat with it makes nothing more for a day"
        )
        parser.add_argument("--policies", help="JSON, such as '{\"priority\": 5}'")
        parser.add_argument("--label", action="append", default=[], metavar="NAME=TEXT")
        parser.add_argument("--batch", action="store_true", help="a JSON list on standard input")
    if verb == "list":
        parser.add_argument("--state", help="the state: such as pending, ended or dead")
        parser.add_argument("--flow")
    if verb in ("list", "history"):
        add_limit(parser)


def _run(chosen: argparse.Namespace) -> None:
    with asking.advice(chosen):
        _DONE[chosen.verb](asking.users_client(chosen), chosen)


_LIST: Final = (
    field("ID", "id"),
    field("STATE", "state"),
    Column("ACTION", lambda item: f"{item['flow']}.{item['action']}"),
    field("AT", "at"),
    field("ATTEMPTS", "attempts"),
    field("KEY", "key"),
)
_BATCH: Final = (
    field("STATUS", "status"),
    Column("ID", lambda item: (item["job"] or {}).get("id")),
    Column("ERROR", lambda item: (item["error"] or {}).get("message")),
)


def _add(client: Client, chosen: argparse.Namespace) -> None:
    if chosen.batch:
        _add_batch(client, chosen)
        return
    missing = [f"--{name}" for name in ("flow", "action") if getattr(chosen, name) is None]
    if missing:
        raise WrongUsage(f"A job needs {' and '.join(missing)}.")
    made = client.enqueue(_fields(chosen))
    show_one(made.body, as_json=chosen.json)


def _fields(chosen: argparse.Namespace) -> dict[str, Json]:
    """Return the job that the options name."""
    names = ("flow", "action", "at", "delay", "key")
    fields: dict[str, Json] = {
        name: getattr(chosen, name) for name in names if getattr(chosen, name) is not None
    }
    for name in ("input", "policies"):
        if getattr(chosen, name) is not None:
            fields[name] = json_of(f"--{name}", getattr(chosen, name))
    labels: dict[str, Json] = dict(map(label, chosen.label))
    return fields | ({"labels": labels} if labels else {})


def _add_batch(client: Client, chosen: argparse.Namespace) -> None:
    """Enqueue the jobs of the standard input. If one is refused, the command fails at its end."""
    listed = require_json(sys.stdin.read(), "the standard input")
    if not isinstance(listed, list):
        raise CliProblem("--batch takes a JSON list of jobs on the standard input.")
    jobs = [one for one in listed if isinstance(one, dict)]
    if len(jobs) < len(listed):
        raise CliProblem("Each job of the list is a JSON object.")
    answers = client.enqueue_many(jobs)["jobs"]
    show_many(answers, _BATCH, as_json=chosen.json, none="No jobs.")
    refused = sum(one["job"] is None for one in answers)
    if refused:
        raise CliProblem(f"{refused} of {len(answers)} were refused.")


def _list(client: Client, chosen: argparse.Namespace) -> None:
    found = client.jobs(state=chosen.state, flow=chosen.flow)
    show_many(found, _LIST, as_json=chosen.json, limit=chosen.limit, none="No jobs.")


def _explain(client: Client, chosen: argparse.Namespace) -> None:
    found = client.explain_job(chosen.id)
    if chosen.json:
        show_one(found, as_json=True)
        return
    for sentence in found["said"]:
        print(plain(sentence))


def _history(client: Client, chosen: argparse.Namespace) -> None:
    found = client.job_history(chosen.id)
    show_many(found, HISTORY, as_json=chosen.json, limit=chosen.limit)


def _show(found: ShownItem, chosen: argparse.Namespace) -> None:
    show_one(found, as_json=chosen.json)


_DONE: Final[Mapping[str, Callable[[Client, argparse.Namespace], None]]] = {
    "add": _add,
    "list": _list,
    "show": lambda client, one: _show(client.job(one.id), one),
    "cancel": lambda client, one: _show(client.cancel_job(one.id), one),
    "history": _history,
    "explain": _explain,
}
"""Each verb: what it asks, and how the answer is shown."""
