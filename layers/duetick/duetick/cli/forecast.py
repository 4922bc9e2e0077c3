"""`duetick forecast`: the occurrences due in each minute ahead, those that a schedule would add,
and the minutes with too many.
"""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from duetick.cli import asking
from duetick.cli.asking import add_json, add_place
from duetick.cli.forecast_chart import lines
from duetick.cli.parsing import more_than_nothing, not_empty, note_parser, whole
from duetick.cli.plain_output import plain
from duetick.cli.problem import WrongUsage
from duetick.cli.putting import cron_of, object_of
from duetick.cli.showing import say, show_one, terminal_width
from duetick.client import Client
from duetick.domain.limits import Per
from duetick.domain.schedule import Json

if TYPE_CHECKING:
    from duetick.api.views import ForecastView
    from duetick.cli.asking import Commands

Allowed: TypeAlias = tuple[int, Per]


def add_forecast(commands: "Commands") -> None:
    """Add the command."""
    told = "what is due in each minute ahead, and where that is too much"
    parser = note_parser(commands.add_parser("forecast", help=told, description=told))
    whose = parser.add_argument_group("whose; without any of these, operators see everything")
    whose.add_argument("--user", type=not_empty, help="operators: forecast this user's schedules")
    whose.add_argument(
        "--mine", action="store_true", help="forecast the schedules of the token's user"
    )
    whose.add_argument("--token", help="with --mine: the user's token; or set DUETICK_TOKEN")
    whose.add_argument("--flow", type=not_empty, help="forecast this flow alone")
    whose.add_argument("--action", help="forecast this action of --flow alone")
    parser.add_argument("--from", dest="since", help="such as 2026-12-01T09:00:00Z; now without it")
    parser.add_argument(
        "--to", dest="until", help="the end: times before it; a day later without it"
    )
    parser.add_argument(
        "--yes", action="store_true", help="DynamoDB: agree to the cost of the read"
    )
    _add_schedule(parser.add_argument_group("a schedule that is not saved"))
    allowed = parser.add_argument_group("what is allowed")
    allowed.add_argument("--most", type=_read_allowed, help="such as 60/minute, 5000/hour")
    allowed.add_argument("--lasts", type=more_than_nothing, help="the seconds that a run takes")
    add_json(parser)
    add_place(parser)
    parser.set_defaults(command=_forecast)


def _add_schedule(parser: "asking.Options") -> None:
    parser.add_argument("--cron")
    parser.add_argument("--timezone")
    parser.add_argument("--policies", help="JSON, such as '{\"spread\": 600}'")
    parser.add_argument(
        "--key", help="with --user or --mine: the key of the schedule whose place it takes"
    )
    parser.add_argument("--copies", type=whole(1), help="the number of users who get one")


def _read_allowed(text: str) -> Allowed:
    """Return the number and the window of `60/minute`."""
    number, _, window = text.partition("/")
    for per in get_args(Per):
        if window == per and number.isascii() and number.isdecimal():
            return int(number), per
    raise argparse.ArgumentTypeError(f"expected such as 60/minute, 5000/hour: {text[:40]}")


def _forecast(chosen: argparse.Namespace) -> None:
    with asking.advice(chosen):
        found = _read(_client(chosen), _body(chosen))
        if chosen.flow and not chosen.mine:
            asking.warn_of_unknown(asking.operators_of(chosen), "flow", chosen.flow)
    if chosen.json:
        show_one(found, as_json=True)
        return
    cost = found["cost"]
    if cost and not cost["agreed"]:
        print(_cost_in_words(cost))
        return
    for line in lines(found, terminal_width()):
        print(plain(line))


def _client(chosen: argparse.Namespace) -> Client:
    if chosen.mine and chosen.user:
        raise WrongUsage("Either --mine or --user.")
    if chosen.mine or chosen.user:
        return asking.users_client(chosen)
    return asking.operators_of(chosen).client


def _body(chosen: argparse.Namespace) -> dict[str, Json]:
    """Return the body of the call, with the chosen fields alone."""
    most, per = chosen.most or (None, None)
    given: dict[str, Json] = {
        "from": chosen.since,
        "to": chosen.until,
        "flow": chosen.flow,
        "action": chosen.action,
        "schedule": _schedule(chosen) or None,
        "most": most,
        "per": per,
        "lasts": chosen.lasts,
        "yes": chosen.yes or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _schedule(chosen: argparse.Namespace) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "cron": None if chosen.cron is None else cron_of(chosen.cron),
        "timezone": chosen.timezone,
        "policies": None if chosen.policies is None else object_of("--policies", chosen.policies),
        "key": chosen.key,
        "copies": chosen.copies,
    }
    given: dict[str, Json] = {name: one for name, one in fields.items() if one is not None}
    if given and chosen.cron is None and chosen.key is None:
        raise WrongUsage("A schedule that is not saved needs --cron; or --key, to change that one.")
    for name in ("flow", "action") if given else ():
        if getattr(chosen, name) is not None:
            given[name] = getattr(chosen, name)
    return given


def _read(client: Client, body: Mapping[str, Json]) -> "ForecastView":
    """Read the forecast to its end, and tell the progress."""
    *_, whole_one = map(_tell, client.forecast_parts(body))
    return whole_one


def _tell(part: "ForecastView") -> "ForecastView":
    if part["cursor"] is not None:
        say(f"{part['schedules']:,} schedules read so far …")
    return part


def _cost_in_words(cost: Mapping[str, Any]) -> str:
    if cost["readUnits"] is None:
        return (
            "The forecast would read every schedule of the table, and no hourly count has said yet "
            "how many there are: some 52,000 read units for each 100,000. Repeat it with --yes."
        )
    from duetick.cli.costs import MILLION
    from duetick.cli.prices import Prices

    dollars = cost["readUnits"] * Prices().read_million / MILLION
    return (
        f"The forecast would read about {cost['readUnits']:,} read units of DynamoDB, "
        f"{dollars:.4f} $: {cost['schedules']:,} schedules, as counted at {cost['countedAt']}. "
        "Nothing was read. Repeat it with --yes."
    )
