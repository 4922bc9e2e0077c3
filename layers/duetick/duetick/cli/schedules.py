"""`duetick schedules …`: the API's operations at a terminal. Answers are JSON, a line each."""

import argparse
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from duetick.cli.problem import Problem
from duetick.client import ApiError, Client, Reply
from duetick.domain.schedule import Json

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

LOCAL: Final = "http://127.0.0.1:8080"

ELSEWHERE: Final = "Does `make run` run? Name another address with --url, or DUETICK_URL."
PRIVATE: Final = "Is the stack's API a private one? Then ask from inside its VPC."


def add_schedules(commands: "Commands") -> None:
    """Add the noun with its verbs."""
    noun = commands.add_parser("schedules", help="a user's schedules, over the API")
    noun.add_argument("--url", default=os.environ.get("DUETICK_URL", LOCAL), help="the API's")
    noun.add_argument(
        "--token", default=os.environ.get("DUETICK_TOKEN", ""), help="or set DUETICK_TOKEN"
    )
    noun.add_argument("--stack", help="a deployed one, asked as an operator: signed, no token")
    noun.add_argument("--user", help="with --stack: whose schedules")
    verbs = noun.add_subparsers(required=True, metavar="verb", dest="verb")
    verbs.add_parser("list", help="all of them")
    for verb, told in _VERBS.items():
        one = verbs.add_parser(verb, help=told)
        one.add_argument("key")
        _add_options(verb, one)
    noun.set_defaults(command=_run)


_VERBS: Final = {
    "get": "one",
    "put": "create or replace",
    "pause": "keep it from firing",
    "resume": "let it fire again",
    "run": "fire it now",
    "delete": "delete it; its history stays",
    "history": "what became of its fire times",
    "upcoming": "its next fire times",
}


def _add_options(verb: str, parser: argparse.ArgumentParser) -> None:
    if verb == "put":
        for name in ("cron", "flow", "action"):
            parser.add_argument(f"--{name}", required=True)
        parser.add_argument("--timezone")
        parser.add_argument("--input", default="null", help="JSON")
        parser.add_argument(
            "--policies", default="null", help='JSON, such as \'{"delivery": "at_least_once"}\''
        )
        parser.add_argument(
            "--label", action="append", default=[], metavar="NAME=TEXT", help="as often as needed"
        )
    if verb == "run":
        parser.add_argument("--idempotency-key", help="repeated with it, it fires once in a day")
    if verb == "pause":
        parser.add_argument("--note", default="")
        parser.add_argument("--until", help="such as 2026-12-01T09:00:00Z; without it for ever")


def _run(chosen: argparse.Namespace) -> None:
    try:
        for line in _lines(_answer(_client(chosen), chosen)):
            print(json.dumps(line, ensure_ascii=False))
    except ApiError as problem:
        if problem.status:
            raise
        raise Problem(f"{problem} {PRIVATE if chosen.stack else ELSEWHERE}") from problem


def _client(chosen: argparse.Namespace) -> Client:
    if chosen.stack:
        from duetick.cli.deployed import client_of

        if not chosen.user:
            raise Problem("--stack needs --user: whose schedules?")
        return client_of(chosen.stack, chosen.user)
    if chosen.user:
        raise Problem("--user needs --stack: a token speaks for its own user alone.")
    if not chosen.token:
        raise Problem("A token is needed: --token, or DUETICK_TOKEN. `make run` prints one.")
    return Client(chosen.url, token=chosen.token)


def _answer(client: Client, chosen: argparse.Namespace) -> object:
    key = getattr(chosen, "key", "")
    match chosen.verb:
        case "list":
            return client.list()
        case "put":
            return client.put(key, _fields(chosen))
        case "pause":
            return client.pause(key, note=chosen.note, until=chosen.until)
        case "run":
            return client.run(key, idempotency_key=chosen.idempotency_key)
        case "upcoming":
            return client.upcoming(key)["upcoming"]
        case verb:
            return getattr(client, verb)(key)


def _fields(chosen: argparse.Namespace) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "cron": chosen.cron,
        "flow": chosen.flow,
        "action": chosen.action,
        "timezone": chosen.timezone or None,
        "input": _json("--input", chosen.input),
        "policies": _json("--policies", chosen.policies),
        "labels": dict(map(_label, chosen.label)) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _json(option: str, text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError as problem:
        raise Problem(f"{option} is not JSON: {problem}. Quote it for your shell.") from None
    return value


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Problem(f"--label is NAME=TEXT, such as team=garden; got {text[:40]!r}.")
    return name, value


def _lines(answer: object) -> Iterator[object]:
    if isinstance(answer, Reply):
        yield answer.body
    elif isinstance(answer, (Iterator, list)):
        yield from answer
    elif answer is not None:
        yield answer
