"""Answers about the standing orders of operators: backfills, pauses of groups, limits."""

from typing import Literal

from duetick.api.views.fields import IsoTime, TypedDict
from duetick.api.views.schedules import HeldView
from duetick.domain.limits import Per

BackfillOrder = TypedDict(
    "BackfillOrder",
    {
        "user": str,
        "key": str,
        "cron": str,
        "timezone": str | None,
        "from": IsoTime,
        "to": IsoTime,
        "atOnce": int,
        "overlap": Literal["wait", "allow"],
        "onlyMissing": bool,
        "newestFirst": bool,
        "times": int,
    },
)
"""The order of a backfill: the times of a schedule `from` an instant on, before the instant `to`.
`times` counts them.
"""


class BackfillPlan(TypedDict):
    """The plan of a backfill: the times that it would bring, from the `first` to the `last`, and
    those that have `fired`. `outcomes` counts the times by their outcomes in the history. The ticks
    and the seconds are the least that the backfill takes. If the schedule is `paused`, or `heldBy`
    the pause of a group, the backfill waits for that pause's end.
    """

    order: BackfillOrder
    first: IsoTime | None
    last: IsoTime | None
    fired: int
    toBring: int
    outcomes: dict[str, int]
    ticks: int
    leastSeconds: int
    paused: bool
    heldBy: HeldView | None


class BackfillView(TypedDict):
    """A backfill and its progress: times up to the `cursor` were brought, or had fired before.
    `waitsFor` says why it brings nothing just now.
    """

    id: str
    order: BackfillOrder
    origin: str
    state: Literal["running", "stopped", "done", "schedule_deleted", "abandoned"]
    waitsFor: Literal["paused", "unreadable", "not_claimed", "busy"] | None
    by: str
    note: str
    startedAt: IsoTime
    changedAt: IsoTime
    changedBy: str
    endedAt: IsoTime | None
    cursor: IsoTime | None
    brought: int
    firedBefore: int
    underWay: int
    succeeded: int
    failed: int
    cancelled: int


class BackfillAnswer(TypedDict):
    """The plan of a backfill; and the backfill, unless it was a dry run."""

    plan: BackfillPlan
    started: BackfillView | None


class BackfillList(TypedDict):
    """The backfills of a user's schedules, the newest first."""

    backfills: list[BackfillView]


class GroupPauseView(TypedDict):
    """A pause of `user:<id>`, `flow:<name>` or `all`, from `since` until before `until`."""

    scope: str
    since: IsoTime
    until: IsoTime | None
    holds: bool
    note: str
    by: str
    resumedAt: IsoTime | None
    resumedBy: str | None


class LimitView(TypedDict):
    """A limit of `user:<id>`, `flow:<name>` or `action:<flow>/<action>`: `parallel` run at once,
    `rate` begin in each `per`. `running` have begun under it and not ended, `begun` count in its
    window. If it has no place, it has one again by `fullUntil`, or sooner.
    """

    scope: str
    parallel: int | None
    rate: int | None
    per: Per
    running: int
    begun: int
    fullUntil: IsoTime | None
    note: str
    by: str
    changedAt: IsoTime


class LimitsInShort(TypedDict):
    """The number of limits, and five of them: those without a place come first."""

    count: int
    first: list[LimitView]


class PausesInShort(TypedDict):
    """The number of the pauses of groups that hold, and the newest five."""

    count: int
    first: list[GroupPauseView]


class BackfillsInShort(TypedDict):
    """The number of the backfills that stand, and the newest five."""

    count: int
    first: list[BackfillView]


class GroupPausesView(TypedDict):
    """Pauses of users, of flows, or of everything."""

    pauses: list[GroupPauseView]


class LimitsView(TypedDict):
    """Limits of users, of flows, or of actions."""

    limits: list[LimitView]
