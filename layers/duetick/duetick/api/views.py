"""What the API answers, as its client reads it too. Times are UTC text: 2026-12-01T09:00:00Z.

The published document is made of these; nothing here needs more than the standard library.
"""

import sys
from typing import Literal, NotRequired, TypeAlias

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:
    from typing_extensions import TypedDict  # the older one hides from pydantic what is required

Instant: TypeAlias = str


class RetryView(TypedDict):
    """When a failed attempt is tried again (at least once). Durations are seconds."""

    backoff: Literal["none", "fixed", "exponential"]
    attempts: int
    first: int
    longest: int


class PoliciesView(TypedDict):
    """How the schedule is fired."""

    delivery: Literal["at_most_once", "at_least_once", "effectively_once"]
    retry: RetryView
    overlap: Literal["skip", "allow", "wait"]
    misfire: Literal["latest", "all", "skip"]
    grace: int
    catchUp: int
    longestLateness: int | None
    spread: int
    gap: Literal["run", "skip"]
    repeat: Literal["first", "both"]
    priority: int
    timeout: int
    startsAt: Instant | None
    endsAt: Instant | None
    maxRuns: int | None


class PauseView(TypedDict):
    """A pause that holds."""

    since: Instant
    note: str
    until: Instant | None


class ScheduleView(TypedDict):
    """A schedule. `enabled` is false while it is paused."""

    key: str
    cron: str
    timezone: str | None
    flow: str
    action: str
    input: object
    enabled: bool
    paused: PauseView | None
    policies: PoliciesView
    labels: dict[str, str]
    externalId: str | None
    version: int
    createdAt: Instant
    updatedAt: Instant
    nextFireAt: Instant | None
    lastRunAt: Instant | None
    runs: int
    defect: str | None


class SchedulePage(TypedDict):
    """Schedules ordered by key; `cursor` asks for the next page, null where there is none."""

    schedules: list[ScheduleView]
    cursor: str | None


class FireTime(TypedDict):
    """`clock` says so where a change of the clocks bears on it."""

    utc: Instant
    local: str
    clock: str | None


class UpcomingView(TypedDict):
    """The next fire times."""

    upcoming: list[FireTime]


class OccurrenceView(TypedDict):
    """What became of one fire time, or (with `until` and `count`) of a range of them."""

    id: str
    nominalFireTime: Instant
    origin: str
    state: str
    reason: str | None
    attempts: int
    until: Instant | None
    count: int
    error: str | None
    begunAt: Instant | None
    updatedAt: Instant


class HistoryPage(TypedDict):
    """The newest first."""

    history: list[OccurrenceView]
    cursor: str | None


class RunView(TypedDict):
    """A run by hand, handed to dispatch; the history tells what becomes of it."""

    origin: str
    nominalFireTime: Instant
    state: str


class UserOccurrence(OccurrenceView):
    """An occurrence with the key of its schedule."""

    key: str


class ExportView(TypedDict):
    """A part of everything that is kept of a user; `cursor` asks for the next, null at the end."""

    user: str
    schedules: list[ScheduleView]
    history: list[UserOccurrence]
    cursor: str | None


class ErasedView(TypedDict):
    """How many schedules there were."""

    schedules: int


class ErrorView(TypedDict):
    """What is wrong, and what to do. `limit` and `value` name a quota."""

    error: str
    message: str
    limit: NotRequired[str]
    value: NotRequired[int]
