"""`duetick upcoming "0 9 * * MON" --timezone …`: when a cron fires, without any server."""

import argparse
import time
from typing import TYPE_CHECKING

from duetick.cli.asking import add_json
from duetick.cli.parsing import note_parser, whole
from duetick.cli.putting import cron_of
from duetick.cli.schedules import UPCOMING
from duetick.cli.showing import say, show_many
from duetick.core.describing import in_words
from duetick.core.previews import previews
from duetick.core.wire import instant
from duetick.domain.expression import from_day_map, parse
from duetick.domain.policies import Policies
from duetick.domain.schedule import Schedule

if TYPE_CHECKING:
    from duetick.cli.asking import Commands

MOST = 1_000
CRON = 'such as "0 9 * * MON", @daily, "rate(5 minutes)", or a day map in JSON'


def add_upcoming(commands: "Commands") -> None:
    """Add the command."""
    told = "the next fire times of a cron, UTC and local, with changes of the clocks"
    parser = note_parser(commands.add_parser("upcoming", help=told, description=told))
    parser.add_argument("cron", help=CRON)
    parser.add_argument("--timezone", help="an IANA name, such as Europe/Berlin; UTC without it")
    parser.add_argument("--count", type=whole(1, MOST), default=10)
    parser.add_argument("--after", help="such as 2026-12-01T09:00:00Z; now without it")
    parser.add_argument("--gap", choices=["run", "skip"], default="run", help="as the policy gap")
    parser.add_argument(
        "--repeat", choices=["first", "both"], default="first", help="as the policy repeat"
    )
    add_json(parser)
    parser.set_defaults(command=_upcoming)


def _upcoming(chosen: argparse.Namespace) -> None:
    since = instant("--after", chosen.after)
    after = time.time_ns() // 1_000_000 if since is None else since
    policies = Policies(gap=chosen.gap, repeat=chosen.repeat)
    given = cron_of(chosen.cron)
    cron = from_day_map(given) if isinstance(given, dict) else parse(chosen.cron)
    schedule = Schedule(
        "you", "upcoming", cron, "flow", "action", timezone=chosen.timezone, policies=policies
    )
    found = [one.json() for one in previews(schedule, after, chosen.count)]
    say(in_words(cron))
    show_many(found, UPCOMING, as_json=chosen.json, none="It never fires after that time.")
