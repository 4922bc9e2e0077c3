"""The fire times of a schedule: the only package that reads cron texts and zones.

It uses no clock and no environment. It reads only the zones of the pinned tzdata package, each on
first use.

- `timezone` is an IANA name, or None for UTC. Times are milliseconds since the epoch.
- `gap`: if a forward change of the clock skips a fixed local time, the schedule fires at the change
  ("run") or not at all ("skip").
- `repeat`: if a backward change repeats a fixed local time, the schedule fires on the "first" pass
  or on "both".
- The calendar goes from the year 1 to the end of 2199. Nothing fires later.

Every cold start imports this package, so it is kept small: no datetime and no dataclasses.
"""

from duetick.domain.expression.errors import InvalidExpression, InvalidTimezone
from duetick.domain.expression.instants import (
    clock_rule,
    count,
    fires,
    newest,
    next_fire,
    smallest_gap,
    targets,
    upcoming,
)
from duetick.domain.expression.rules import digest_of, learn
from duetick.domain.expression.texts import from_day_map, parse, step_of, sub_minute
from duetick.domain.expression.zones import TZDATA_VERSION, check_zone, rules_of

__all__ = [
    "TZDATA_VERSION",
    "InvalidExpression",
    "InvalidTimezone",
    "check_zone",
    "clock_rule",
    "count",
    "digest_of",
    "fires",
    "from_day_map",
    "learn",
    "newest",
    "next_fire",
    "parse",
    "rules_of",
    "smallest_gap",
    "step_of",
    "sub_minute",
    "targets",
    "upcoming",
]
