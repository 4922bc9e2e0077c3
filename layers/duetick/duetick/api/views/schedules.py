"""Answers about schedules, their fire times and their rows."""

from typing import Literal, NotRequired

from duetick.api.views.fields import IsoTime, TypedDict
from duetick.api.views.flows import PoliciesView
from duetick.api.views.problems import ErrorView


class PauseView(TypedDict):
    """A pause that has not ended."""

    since: IsoTime
    note: str
    until: IsoTime | None


class PrincipalView(TypedDict):
    """The principal of the action."""

    userId: str
    orgId: str | None
    attributes: dict[str, str]


class HeldView(TypedDict):
    """The pause of a user, a flow or everything (`scope`) that keeps a schedule from firing."""

    scope: str
    since: IsoTime
    until: IsoTime | None


class ScheduleView(TypedDict):
    """A schedule. `enabled` is false while it is paused; `heldBy` is a pause that an operator set
    on its user, its flow or everything. One that will never fire again is done. Machines and
    operators read its `user`, and the `principal` that the application named. If `dryRun` is true,
    nothing is stored.
    """

    dryRun: NotRequired[bool]
    user: NotRequired[str]
    principal: NotRequired[PrincipalView | None]
    key: str
    state: Literal["active", "paused", "done"]
    cron: str
    timezone: str | None
    flow: str
    action: str
    input: object
    enabled: bool
    paused: PauseView | None
    heldBy: HeldView | None
    policies: PoliciesView
    labels: dict[str, str]
    externalId: str | None
    version: int
    createdAt: IsoTime
    updatedAt: IsoTime
    nextFireAt: IsoTime | None
    lastRunAt: IsoTime | None
    doneAt: IsoTime | None
    runs: int
    defect: str | None


class SchedulePage(TypedDict):
    """Schedules ordered by key. `cursor` asks for the next page; null: there is none."""

    schedules: list[ScheduleView]
    cursor: str | None


class FireTime(TypedDict):
    """A fire time. `clock` says if a change of the clocks affects it."""

    utc: IsoTime
    local: str
    clock: str | None


class UpcomingView(TypedDict):
    """The next fire times."""

    upcoming: list[FireTime]


class PreviewView(TypedDict):
    """An expression as a put keeps it, in words, with its next fire times and warnings."""

    cron: str
    words: str
    timezone: str | None
    upcoming: list[FireTime]
    warnings: list[str]


class DefinitionView(TypedDict):
    """The fire times of a schedule from `since` on, and whether it fired at them."""

    since: IsoTime
    cron: str
    timezone: str | None
    standing: Literal["active", "paused", "done", "deleted"]
    pausedUntil: IsoTime | None
    policies: PoliciesView


class AnyScheduleView(TypedDict):
    """A schedule of any user in short, or a row without a record, which has no action, no labels
    and version 0.
    """

    user: str
    key: str
    state: Literal["active", "paused", "done", "unreadable"]
    cron: str | None
    timezone: str | None
    flow: str | None
    action: str | None
    labels: dict[str, str]
    version: int
    nextFireAt: IsoTime | None
    heldBy: HeldView | None


class AllSchedulesPage(TypedDict):
    """Schedules of all users, in the order of the store. `cursor` asks for the next page; null:
    there is none.
    """

    schedules: list[AnyScheduleView]
    cursor: str | None


class UnreadableView(TypedDict):
    """A row whose cron or time zone cannot be read: `since` when, and the error."""

    user: str
    key: str
    cron: str
    timezone: str | None
    flow: str
    error: str
    since: IsoTime


class UnreadablePage(TypedDict):
    """Rows that cannot be read. `cursor` asks for the next page; null: there is none."""

    unreadable: list[UnreadableView]
    cursor: str | None


class MendedView(TypedDict):
    """The result for one row: it was `mended` if it was wrong. With its next time."""

    mended: bool
    nextFireAt: IsoTime | None


class PutView(TypedDict):
    """The answer to one schedule of a batch: its status, and the schedule or the error. A schedule
    that fires more often than the tick comes has a `warning`. A schedule that a limit of the minute
    refuses may be put again after `retryAfter` seconds.
    """

    status: int
    schedule: ScheduleView | None
    warning: str | None
    error: ErrorView | None
    retryAfter: int | None


class PutViews(TypedDict):
    """The answers to a batch, in its order."""

    schedules: list[PutView]
