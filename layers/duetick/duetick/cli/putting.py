"""`duetick schedules put`: its options, and its change of a schedule."""

import argparse
from typing import TYPE_CHECKING

from duetick.cli.problem import CliProblem
from duetick.client import ApiError, Client, Reply
from duetick.core.wire import require_json
from duetick.domain.errors import InvalidSchedule, kind_of
from duetick.domain.schedule import Json

if TYPE_CHECKING:
    from duetick.api.views import ScheduleView


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Add the fields of a schedule."""
    for name in ("cron", "flow", "action"):
        parser.add_argument(f"--{name}", help="needed to create a schedule")
    parser.add_argument("--principal", help='operators: JSON, such as \'{"userId": "svc"}\'')
    parser.add_argument("--dry-run", action="store_true", help="check everything, store nothing")
    parser.add_argument("--timezone", help="an IANA name; '' removes the zone")
    parser.add_argument("--input", help="JSON")
    parser.add_argument(
        "--policies",
        help='JSON, such as \'{"delivery": "at_least_once"}\'; null removes one, or all',
    )
    parser.add_argument(
        "--label", action="append", default=[], metavar="NAME=TEXT", help="as often as needed"
    )
    parser.add_argument(
        "--no-label", action="append", default=[], metavar="NAME", help="removes that label"
    )


def put(client: Client, chosen: argparse.Namespace) -> "Reply[ScheduleView]":
    """Create the schedule, or change its named fields: a second put changes no other field."""
    fields, key = _fields(chosen), chosen.key
    try:
        found = client.get(key)
    except ApiError as problem:
        if problem.code != "schedule_not_found":
            raise
        return client.put(key, _whole(fields, chosen), dry_run=chosen.dry_run)
    return client.change(key, fields, if_match=found.etag, dry_run=chosen.dry_run)


def _whole(fields: dict[str, Json], chosen: argparse.Namespace) -> dict[str, Json]:
    """Return the fields that create a schedule, without those that remove a label or a policy."""
    missing = [f"--{name}" for name in ("cron", "flow", "action") if name not in fields]
    if missing:
        chosen.parser.error(f"there is none yet, and to create it needs {', '.join(missing)}")
    for name in ("labels", "policies"):
        named = fields.get(name)
        if isinstance(named, dict):
            fields[name] = {one: value for one, value in named.items() if value is not None}
    return fields


def _fields(chosen: argparse.Namespace) -> dict[str, Json]:
    """Return the fields that the options name."""
    fields: dict[str, Json] = {
        name: getattr(chosen, name)
        for name in ("flow", "action")
        if getattr(chosen, name) is not None
    }
    if chosen.cron is not None:
        fields["cron"] = cron_of(chosen.cron)
    if chosen.timezone is not None:
        fields["timezone"] = chosen.timezone or None
    for name in ("input", "policies", "principal"):
        if getattr(chosen, name) is not None:
            fields[name] = json_of(f"--{name}", getattr(chosen, name))
    labels: dict[str, Json] = dict(map(label, chosen.label))
    labels |= dict.fromkeys(chosen.no_label)
    return fields | ({"labels": labels} if labels else {})


def cron_of(text: str) -> Json:
    """Return a cron, which may be a day map in JSON."""
    return object_of("--cron", text) if text.lstrip().startswith("{") else text


def object_of(option: str, text: str) -> dict[str, Json]:
    """Return the JSON object that an option gives."""
    value = json_of(option, text)
    if not isinstance(value, dict):
        raise CliProblem(f"{option} is a JSON object; got {kind_of(value)}.")
    return value


def json_of(option: str, text: str) -> Json:
    try:
        return require_json(text, option)
    except InvalidSchedule as problem:
        raise CliProblem(f"{problem} Quote it for your shell.") from None


def label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise CliProblem(f"--label is NAME=TEXT, such as team=garden; got {text[:40]!r}.")
    return name, value
