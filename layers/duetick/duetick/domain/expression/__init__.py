"""When a schedule fires: the one place that reads a cron text and a zone.

Pure but for one input: no clock, no environment, and of files only the zones of the pinned tzdata
package, read when a zone is first asked for. Everywhere
`timezone` is an IANA name, or None for UTC; times are milliseconds since the epoch; `gap` says
whether a fixed local time that a forward change skips runs ("run", at the change) or not
("skip"); `repeat` whether one that a backward change repeats fires on the "first" pass or on
"both". The calendar goes from the year 1 to the end of 2199; later than that, nothing fires.

A cold start pays for this import, so that it stays small: no datetime, no dataclasses, and names
for types alone behind a TYPE_CHECKING of our own, since `typing` costs as much as all of this.
"""

from duetick.domain.expression.errors import InvalidExpression, InvalidTimezone
from duetick.domain.expression.instants import (
    count,
    fires,
    newest,
    next_fire,
    smallest_gap,
    targets,
    upcoming,
)
from duetick.domain.expression.texts import from_day_map, parse, sub_minute
from duetick.domain.expression.zones import TZDATA_VERSION, check_zone

__all__ = [
    "TZDATA_VERSION",
    "InvalidExpression",
    "InvalidTimezone",
    "check_zone",
    "count",
    "fires",
    "from_day_map",
    "newest",
    "next_fire",
    "parse",
    "smallest_gap",
    "sub_minute",
    "targets",
    "upcoming",
]
