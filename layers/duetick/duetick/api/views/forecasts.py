"""Answers about forecasts."""

from typing import Literal

from duetick.api.views.fields import IsoTime, TypedDict
from duetick.domain.limits import Per


class ForecastSums(TypedDict):
    """The occurrences that are `due` in a span: `fires` of crons, recorded ones that are `waiting`,
    and `jobs`. The schedule that is not saved would add `added`.
    """

    due: int
    fires: int
    waiting: int
    jobs: int
    added: int


class FullestView(TypedDict):
    """The minute in which the most is due."""

    at: IsoTime
    due: int


class OverView(TypedDict):
    """A window in which more is `due` than `most`. If the excess waits, all of it has begun by
    `clearedAt`; null if that is not within the span.
    """

    at: IsoTime
    due: int
    most: int
    clearedAt: IsoTime | None


class BoundView(TypedDict):
    """The most that may be due in each minute, hour or day of the clock, and its source: the pace
    of the stack (`measured`), an operator's limit (`ordered`), or the question (`given`); null if
    it is `unknown`. Then the first windows in which more is due, and the shortest `spread` in
    seconds that fits.
    """

    kind: Literal["stack", "limit", "given"]
    scope: str
    most: int | None
    per: Per
    source: Literal["measured", "ordered", "given", "unknown"]
    said: str
    over: list[OverView]
    overCount: int
    spread: int | None
    spreadSaid: str


class ForecastCost(TypedDict):
    """The read units that a forecast takes on DynamoDB, by the last hourly count; null before the
    first. Unless it is `agreed`, nothing was read.
    """

    readUnits: int | None
    schedules: int | None
    countedAt: IsoTime | None
    agreed: bool


ForecastView = TypedDict(
    "ForecastView",
    {
        "at": IsoTime,
        "from": IsoTime,
        "to": IsoTime,
        "due": list[int],
        "delivered": list[int] | None,
        "added": list[int] | None,
        "sums": ForecastSums,
        "schedules": int,
        "unreadable": int,
        "paused": int,
        "partly": bool,
        "fullest": FullestView | None,
        "bounds": list[BoundView],
        "cost": ForecastCost | None,
        "cursor": str | None,
    },
)
"""How many occurrences are due in each minute: `due` and `added` have a number for each minute
`from` an instant on, and so has `delivered` of what lies behind. `schedules` are the rows that were
read; those that are `unreadable` do not fire, nor do the times that pauses leave out (`paused`). If
it is told only `partly`, more waits than was counted. With a `cursor`, these are the sums so far,
and there are no bounds yet.
"""
