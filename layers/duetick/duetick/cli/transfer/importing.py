"""`duetick import FORMAT`: a dry run with a report; with --yes the import itself."""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from duetick.cli import asking
from duetick.cli.asking import add_json, add_limit
from duetick.cli.parsing import note_parser
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.putting import json_of, label, object_of
from duetick.cli.schedules import add_connection
from duetick.cli.showing import say, show_many, show_one
from duetick.cli.transfer.formats import FORMATS, Format
from duetick.cli.transfer.plan import Here, ImportPlan, find_known, make_plan
from duetick.cli.transfer.report import COLUMNS, Line, count_verdicts, lines, sum_up
from duetick.cli.transfer.rules import MappingRule, MappingRules, read_rules
from duetick.cli.transfer.sending import (
    Destination,
    EveryUser,
    OneUser,
    PutResult,
    SeePuts,
    remove,
    send,
)

if TYPE_CHECKING:
    from duetick.cli.asking import Commands, Options
    from duetick.domain.schedule import Json

TOLD: Final = "schedules of other schedulers and of files: a dry run, and with --yes the import"
EACH: Final = 1_000
"""The schedules after which a line of progress appears."""


def add_import(commands: "Commands") -> None:
    """Add `import` with its formats."""
    noun = commands.add_parser("import", help=TOLD, description=TOLD)
    formats = noun.add_subparsers(required=True, dest="format")
    for name, one in FORMATS.items():
        parser = note_parser(formats.add_parser(name, help=one.told, description=one.told))
        parser.add_argument("files", nargs="*", metavar="FILE", help="- is the standard input")
        one.add_options(parser)
        _add_rules(parser)
        _add_doing(parser)
        add_limit(parser)
        add_json(parser)
        add_connection(parser.add_argument_group("who asks whom"))
        parser.add_argument("--all-users", action="store_true", help="operators: items name users")
    noun.set_defaults(command=_import)


def _add_rules(parser: "Options") -> None:
    for name in ("flow", "action"):
        parser.add_argument(f"--{name}", help="for the items that no rule of --rules matches")
    parser.add_argument("--input", help='JSON with places, such as \'{"what": "{command}"}\'')
    parser.add_argument(
        "--policies", help="the policies of all, as JSON; null leaves one to the action"
    )
    parser.add_argument(
        "--label", action="append", default=[], metavar="NAME=TEXT", help="a label of all schedules"
    )
    parser.add_argument("--rules", type=Path, help="a file of rules: they name what each item runs")
    parser.add_argument("--prefix", default="", help="a text before each key")
    parser.add_argument("--source", help="the name of the source; default: the format")


def _add_doing(parser: "Options") -> None:
    parser.add_argument("--yes", action="store_true", help="do it; without it a dry run")
    parser.add_argument(
        "--remove",
        action="store_true",
        help="also delete the schedules that are gone from the source",
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="replace schedules of the same keys that no import of this source made",
    )


def _import(chosen: argparse.Namespace) -> None:
    one = FORMATS[chosen.format]
    source = chosen.source or chosen.format
    now = time.time_ns() // 1_000_000
    rules = _rules(chosen, one)
    found = [*one.items(chosen, now)]
    with asking.advice(chosen):
        door, user = _door(chosen)
        here = [*find_known(door.list_made_by(source), source)]
        plan = make_plan(found, rules, here, source, user=user)
        _check_users(plan, chosen)
        outcomes = _send(door, plan, chosen)
        left = _remove(door, plan, chosen)
    _show(lines(plan, outcomes, left), chosen, source)


def _rules(chosen: argparse.Namespace, one: Format) -> MappingRules:
    """Return the rules of the file, followed by the rule that the options make."""
    fields: dict[str, Json] = {}
    if (chosen.flow is None) != (chosen.action is None):
        raise WrongUsage("--flow and --action belong together.")
    if chosen.flow is not None:
        fields |= {**one.usual, "flow": chosen.flow, "action": chosen.action}
    if chosen.input is not None:
        fields["input"] = json_of("--input", chosen.input)
    listed = [_with_usual(rule, one) for rule in read_rules(chosen.rules)] if chosen.rules else []
    policies = object_of("--policies", chosen.policies) if chosen.policies else None
    labels: dict[str, Json] = dict(map(label, chosen.label))
    return MappingRules([*listed, MappingRule({}, fields)], chosen.prefix, policies, labels)


def _with_usual(rule: MappingRule, one: Format) -> MappingRule:
    """Return a rule of the file with the usual input, unless it names one."""
    return MappingRule(rule.match, {**one.usual, **rule.fields}, rule.skips)


def _door(chosen: argparse.Namespace) -> tuple[Destination, str | None]:
    """Return the API, and the user of all schedules of the import if an operator names one."""
    if chosen.all_users:
        if chosen.user:
            raise WrongUsage("Either --user or --all-users.")
        return EveryUser(asking.operators_of(chosen)), None
    if chosen.stack and not chosen.user:
        raise WrongUsage("--stack needs --user, or --all-users if the items name their users.")
    return OneUser(asking.users_client(chosen)), chosen.user


def _check_users(plan: ImportPlan, chosen: argparse.Namespace) -> None:
    """Check that each schedule has a user, or none does."""
    named = [one for one in plan.planned if one.wanted.user is not None]
    if chosen.all_users and len(named) < len(plan.planned):
        first = next(one for one in plan.planned if one.wanted.user is None)
        raise CliProblem(
            f"{first.wanted.item.place} names no user: with --all-users each item does, by a rule "
            "or in its column `user`."
        )
    if not chosen.all_users and not chosen.user and named:
        raise CliProblem(
            f"{named[0].wanted.item.place} names a user: an operator imports that, with "
            "--all-users, or --user USER."
        )


def _send(door: Destination, plan: ImportPlan, chosen: argparse.Namespace) -> list[PutResult]:
    writes = [one for one in plan.planned if one.writes]
    return send(
        door,
        writes,
        dry_run=not chosen.yes,
        takes_over=chosen.take_over,
        see=_progress(len(writes), "put" if chosen.yes else "checked"),
        sleep=_wait,
    )


def _wait(seconds: float) -> None:
    if seconds > 1:
        say(f"The limit of the minute is reached; it goes on in {seconds:g} s …")
    time.sleep(seconds)


def _progress(whole: int, done: str) -> SeePuts:
    """Return the function that tells the progress on stderr, after each thousand."""
    counted = [0]

    def see(more: int) -> None:
        before, counted[0] = counted[0], counted[0] + more
        if before // EACH != counted[0] // EACH:
            say(f"{counted[0]:,} of {whole:,} {done} …")

    return see


def _remove(door: Destination, plan: ImportPlan, chosen: argparse.Namespace) -> Mapping[Here, str]:
    """Return the verdicts on the schedules that are gone from the source."""
    if not chosen.remove:
        return dict.fromkeys(plan.gone, "gone")
    if plan.refused and plan.gone:
        say("Nothing is removed while items are refused: what is gone may be one of them.")
        return dict.fromkeys(plan.gone, "gone")
    if not chosen.yes:
        return dict.fromkeys(plan.gone, "removed")
    kept = dict(remove(door, plan.gone, sleep=_wait))
    for one, why in kept.items():
        say(f"{one.key} is not removed: {why}")
    return {one: "gone" if one in kept else "removed" for one in plan.gone}


def _show(found: list[Line], chosen: argparse.Namespace, source: str) -> None:
    dry = not chosen.yes
    refused = count_verdicts(found)["refused"]
    if chosen.json:
        document: dict[str, Any] = {
            "source": source,
            "dryRun": dry,
            "counts": count_verdicts(found),
        }
        show_one({**document, "lines": [one.show(dry_run=dry) for one in found]}, as_json=True)
    else:
        show_many(_interesting(found, dry=dry), COLUMNS, as_json=False, limit=chosen.limit)
        print(sum_up(found, dry_run=dry))
    sys.stdout.flush()
    if refused:
        raise CliProblem(f"{refused:,} were refused: the lines say why, and what to write instead.")


def _interesting(found: list[Line], *, dry: bool) -> Iterator[dict[str, Any]]:
    """Yield the lines. Those that somebody has to look at come first."""
    order = ("refused", "gone", "removed", "edited", "changed", "new", "same", "no schedule")
    ranked = sorted(found, key=lambda one: (order.index(one.verdict), one.how is None))
    return (one.show(dry_run=dry) for one in ranked)
