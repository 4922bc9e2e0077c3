"""The stack that a command asks (a local one, an address, or a deployed one), and the caller.

A local stack is found by itself. A user is known by a token. An operator is known by the operator's
token of a local stack, or signs with the credentials of the shell for a deployed one.
"""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from duetick.cli import local_note
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.showing import say
from duetick.client import ApiError, Client

if TYPE_CHECKING:
    from duetick.operators import Operators

    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]
    Options: TypeAlias = argparse.ArgumentParser | argparse._ArgumentGroup

LOCAL: Final = "http://127.0.0.1:8080"
MOST_SHOWN: Final = 50

RUNS_IT: Final = (
    "Does `make run` run, in this folder or above it? Or name another place: --url (or "
    "DUETICK_URL), or --stack."
)
RIGHT_URL: Final = (
    "Is the address (--url, or DUETICK_URL) right, and does `make run`, or what listens there, run?"
)
PRIVATE: Final = "Is the stack's API a private one? Then ask from inside its VPC."
NOBODY_HERE: Final = (
    "No local stack runs in this folder or above it; `make run` starts one. Or name whom to ask: "
    "--stack NAME, signed with the credentials of this shell; or --url, with {variable}."
)
NAME_YOURSELF: Final = (
    "A token is needed: --token, or DUETICK_TOKEN. The local stack prints one as it starts."
)
NO_OPERATOR: Final = (
    "This is for operators: a local stack takes DUETICK_OPERATOR, which it prints as it starts; "
    "--stack NAME signs with the credentials of this shell."
)
WRONG_TOKEN: Final = {
    401: "`duetick token` prints one of the local stack, `duetick token --operator` the "
    "operator's. Or unset DUETICK_TOKEN and DUETICK_OPERATOR: the command finds them.",
    403: "Whoever signs needs the right execute-api:Invoke on this path.",
}


class StackPlace(NamedTuple):
    """The address of a stack, and its known tokens."""

    url: str
    token: str
    operator: str
    is_named: bool


def add_place(parser: "Options", *, again: bool = False) -> None:
    """Add the options that name the stack to ask. With `again`, options before a verb stay."""
    default = argparse.SUPPRESS if again else None
    parser.add_argument("--url", default=default, help="the address of the API; or set DUETICK_URL")
    parser.add_argument(
        "--stack",
        default=default,
        help="the name of a deployed stack: calls are an operator's, signed, without a token",
    )


def add_why(parser: "Options", *, again: bool = False) -> None:
    """Add the reason of an operator's write."""
    default = argparse.SUPPRESS if again else ""
    parser.add_argument(
        "--why", default=default, help="your reason: it is recorded with the operation"
    )


def add_json(parser: "Options") -> None:
    """Add the choice of a script."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_limit(parser: "Options") -> None:
    """Add the option that limits the lines of a list."""
    parser.add_argument(
        "--limit",
        type=_limit,
        default=MOST_SHOWN,
        help=f"the most entries; default {MOST_SHOWN}, or all",
    )


def _limit(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, or all; got {text[:40]!r}")
    return int(text)


def place_of(chosen: argparse.Namespace) -> StackPlace:
    """Return the stack to ask: the address that is given, or the local stack that runs here."""
    url = chosen.url or os.environ.get("DUETICK_URL", "")
    running = local_note.find(Path.cwd())
    if url:
        running = [one for one in running if one.url == url.rstrip("/")]
    elif len(running) > 1:
        urls = ", ".join(one.url for one in running)
        raise WrongUsage(f"Several local stacks run here: {urls}. Name one with --url.")
    note = running[0] if running else local_note.LocalNote(url or LOCAL, "", "", 0)
    return StackPlace(
        note.url,
        getattr(chosen, "token", None) or os.environ.get("DUETICK_TOKEN", "") or note.token,
        os.environ.get("DUETICK_OPERATOR", "") or note.operator,
        bool(url or running),
    )


def users_client(chosen: argparse.Namespace) -> Client:
    """Return the client of a user: the one of the token, or one that an operator names."""
    if chosen.user:
        return operators_of(chosen).of(chosen.user)
    if chosen.stack:
        raise WrongUsage("--stack needs --user: whose schedules?")
    place = place_of(chosen)
    if not place.token:
        named = place.is_named
        raise CliProblem(NAME_YOURSELF if named else NOBODY_HERE.format(variable="DUETICK_TOKEN"))
    return Client(place.url, token=place.token)


def operators_of(chosen: argparse.Namespace) -> "Operators":
    """Return the client of an operator."""
    from duetick.operators import Operators

    why = getattr(chosen, "why", "")
    if chosen.stack:
        if chosen.url:
            raise WrongUsage("Either --stack or --url.")
        from duetick.cli.deployed import Deployed

        return Deployed.find(chosen.stack).operators(why)
    place = place_of(chosen)
    if not place.operator:
        named = place.is_named
        raise CliProblem(NO_OPERATOR if named else NOBODY_HERE.format(variable="DUETICK_OPERATOR"))
    return Operators(place.url, token=place.operator, why=why)


def warn_of_unknown(operators: "Operators", kind: str, name: str) -> None:
    """Say that no flow, or no action, of the deployment has that name: it may be misspelled, and
    nothing is held then. A name that is gone may be meant, so that is no error.
    """
    if kind not in ("flow", "action"):
        return
    try:
        flows = {one["flow"]: one["actions"] for one in operators.client.flows()}
    except ApiError:  # what was asked for is done
        return
    known = [*flows]
    if kind == "action":
        known = [f"{flow}/{each['action']}" for flow, actions in flows.items() for each in actions]
    if name not in known:
        say(f"No {kind} {name!r} is deployed; is it misspelled? Deployed: {', '.join(known)}.")


@contextmanager
def advice(chosen: argparse.Namespace) -> Iterator[None]:
    """Say what to look at if nobody answers a call, or if its caller is refused."""
    try:
        yield
    except ApiError as problem:
        if problem.status == 0:
            raise CliProblem(f"{problem} {_where(chosen)}") from problem
        if problem.status in WRONG_TOKEN and problem.code in ("unauthorized", "refused"):
            which = WRONG_TOKEN[403 if chosen.stack else 401]
            raise CliProblem(f"{problem} {which}") from problem
        raise


def _where(chosen: argparse.Namespace) -> str:
    if chosen.stack:
        return PRIVATE
    return RIGHT_URL if place_of(chosen).is_named else RUNS_IT
