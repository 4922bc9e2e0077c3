"""`duetick occurrences …`: operators find, retry, cancel and delete those of all users.

An id, which each log line shows, names one occurrence. Filters name many, first as a dry run.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from duetick.cli import asking
from duetick.cli.asking import add_json, add_limit, add_place, add_why
from duetick.cli.parsing import note_parser, whole
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.showing import NOMINAL_TIME, field, say, show_many, show_one
from duetick.core.occurrences import MOST_CHANGED, SHOWN_STATES
from duetick.domain.states import Reason

if TYPE_CHECKING:
    from duetick.api.views import ChangedOccurrences
    from duetick.cli.asking import Commands, Options
    from duetick.domain.occurrence import ScheduleName
    from duetick.occurrences import OccurrencesClient

AT_MOST: Final = 1_000
FILTERS: Final = ("state", "reason", "flow", "label", "user", "key", "since", "until")
SUMMED: Final[Mapping[str, Any]] = {
    "changed": 0,
    "declined": 0,
    "first": [],
    "firstDeclined": [],
}
"""The sum over the pages of a run."""

CHANGED: Final = {"retry": "retried", "cancel": "cancelled", "delete": "deleted"}

NAMES: Final = (
    field("OCCURRENCE", "id"),
    field("USER", "user"),
    field("KEY", "key"),
    NOMINAL_TIME,
    field("STATE", "state"),
    field("REASON", "reason"),
)
LISTED: Final = (*NAMES, field("ATTEMPTS", "attempts"), field("ERROR", "error"))
EVENTS: Final = (
    field("AT", "at"),
    field("BEFORE", "before"),
    field("AFTER", "after"),
    field("NOTE", "note"),
)
FAILURES: Final = (field("ATTEMPT", "attempt"), field("AT", "at"), field("ERROR", "error"))

_VERBS: Final = {
    "list": "those that run, wait or are dead; with --user those in any state",
    "show": "one occurrence: its attempts, its transitions, and its schedule",
    "retry": "let dead ones begin once more, from now on",
    "cancel": "end those that run or wait",
    "delete": "delete the texts of ended occurrences; their outcome stays",
}


def add_occurrences(commands: "Commands") -> None:
    """Add `occurrences` with its verbs."""
    noun = commands.add_parser("occurrences", help="the occurrences of all users, for operators")
    add_place(noun)
    verbs = noun.add_subparsers(required=True, dest="verb")
    for verb, told in _VERBS.items():
        one = note_parser(verbs.add_parser(verb, help=told, description=told))
        if verb == "show":
            one.add_argument("id")
        if verb in CHANGED:
            _add_change(verb, one)
        _add_filters(one.add_argument_group("which"), names_one=verb == "show")
        if verb == "list":
            add_limit(one)
        add_json(one)
        add_place(one.add_argument_group("who asks whom"), again=True)
    noun.set_defaults(command=_run)


def _add_change(verb: str, parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ids", nargs="*", metavar="id", help="an id; without one, the filters name the occurrences"
    )
    parser.add_argument("--all", action="store_true", help="take all that fit, without a filter")
    parser.add_argument(
        "--yes",
        action="store_true",
        help=f"{verb} the occurrences of the filters; without it a dry run",
    )
    parser.add_argument(
        "--at-most", type=whole(1), default=AT_MOST, help=f"the most in one run; default {AT_MOST}"
    )
    parser.add_argument("--cursor", help="go on where an earlier run stopped")
    add_why(parser)


def _add_filters(parser: "Options", *, names_one: bool) -> None:
    parser.add_argument("--user", help="the user of the schedule; '' of a static one")
    parser.add_argument("--key", help="the key of the schedule")
    if names_one:
        return
    parser.add_argument(
        "--state", choices=list(SHOWN_STATES), help="the state; running is queued and processing"
    )
    parser.add_argument("--reason", choices=[one.value for one in Reason])
    parser.add_argument("--flow")
    parser.add_argument("--label", metavar="NAME=TEXT")
    parser.add_argument("--from", dest="since", help="such as 2026-12-01T09:00:00Z")
    parser.add_argument("--to", dest="until", help="the end: times before it")


def _run(chosen: argparse.Namespace) -> None:
    with asking.advice(chosen):
        client = asking.operators_of(chosen).occurrences
        match chosen.verb:
            case "list":
                _list(client, chosen)
            case "show":
                _show(client, chosen)
            case _ if chosen.ids:
                _change(client, chosen)
            case _:
                _change_many(client, chosen)


def _filters(chosen: argparse.Namespace) -> dict[str, str | None]:
    return {name: getattr(chosen, name) for name in FILTERS}


def _of(chosen: argparse.Namespace) -> "ScheduleName | None":
    """Return the schedule that --user and --key name."""
    if (chosen.user is None) != (chosen.key is None):
        raise WrongUsage("--user and --key belong together: they name the schedule of an id.")
    return None if chosen.user is None else (chosen.user, chosen.key)


def _list(client: "OccurrencesClient", chosen: argparse.Namespace) -> None:
    filters = _filters(chosen)
    if filters["user"] is None and filters["reason"] is None:
        filters["state"] = filters["state"] or "dead"
    show_many(client.list(filters), LISTED, as_json=chosen.json, limit=chosen.limit)


def _show(client: "OccurrencesClient", chosen: argparse.Namespace) -> None:
    found: Mapping[str, Any] = client.get(chosen.id, of=_of(chosen))
    if chosen.json:
        show_one(found, as_json=True)
        return
    schedule = found["schedule"] or {}
    apart = {name: found[name] for name in found if name not in ("events", "failures", "schedule")}
    facts = {"schedule": schedule.get("state", "deleted"), "input": schedule.get("input")}
    show_one(apart | facts, as_json=False)
    for rows, columns in ((found["failures"], FAILURES), (found["events"], EVENTS)):
        if rows:
            print()
            show_many(rows, columns, as_json=False)


def _change(client: "OccurrencesClient", chosen: argparse.Namespace) -> None:
    of, change = _of(chosen), getattr(client, chosen.verb)
    for name in chosen.ids:
        answer = change(name, of=of)
        if chosen.json:
            show_one(answer, as_json=True)
        else:
            done = CHANGED[chosen.verb] if answer["changed"] else "as it was"
            print(f"{name}  {done}: {answer['occurrence']['state']}")


def _change_many(client: "OccurrencesClient", chosen: argparse.Namespace) -> None:
    """Change page after page, at first as a dry run. If some are declined, the exit code is 1."""
    if not (chosen.all or any(value is not None for value in _filters(chosen).values())):
        raise WrongUsage("Name occurrences by their ids or by filters, or all with --all.")
    whole_run: dict[str, Any] = dict(SUMMED)
    for page in _pages(client, chosen):
        found: Mapping[str, Any] = page
        added = {name: whole_run[name] + found[name] for name in SUMMED}
        whole_run = {**added, "cursor": found["cursor"]}
        print(_sum_up(whole_run, chosen), end="…\n", file=sys.stderr)
    _show_run(whole_run, chosen)
    if whole_run["declined"]:
        raise CliProblem(f"{whole_run['declined']:,} were declined.")


def _show_run(done: Mapping[str, Any], chosen: argparse.Namespace) -> None:
    if chosen.json:
        show_one({"dryRun": not chosen.yes, **done}, as_json=True)
        return
    if done["first"] and not chosen.yes:
        show_many(done["first"], NAMES, as_json=False)
        if done["changed"] > len(done["first"]):
            say(f"These are the first {len(done['first'])}.")
    print(f"{_sum_up(done, chosen)}.{'' if chosen.yes else ' --yes does it.'}")
    for one in done["firstDeclined"]:
        say(f"{one['id']} of {one['user']}/{one['key']}: {one['why']}")


def _sum_up(done: Mapping[str, Any], chosen: argparse.Namespace) -> str:
    verb = CHANGED[chosen.verb] if chosen.yes else f"would be {CHANGED[chosen.verb]}"
    return f"{done['changed']:,} {verb}"


def _pages(
    client: "OccurrencesClient", chosen: argparse.Namespace
) -> "Iterator[ChangedOccurrences]":
    change, cursor, left = getattr(client, f"{chosen.verb}_many"), chosen.cursor, chosen.at_most
    try:
        while left > 0:
            limit = min(left, MOST_CHANGED)
            page: ChangedOccurrences = change(
                _filters(chosen), dry_run=not chosen.yes, limit=limit, cursor=cursor
            )
            cursor, left = page["cursor"], left - page["changed"]
            yield page
            if cursor is None:
                return
        say(f"--at-most {chosen.at_most} is reached; --cursor {cursor} goes on.")
    except KeyboardInterrupt:
        say(f"--cursor {cursor} goes on." if cursor else "The same command begins again.")
        raise
