"""The bodies and queries that the API takes. Names are camelCase, times are UTC text."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from duetick.api.calls import USUAL_PAGE
from duetick.api.views import EndReason, ShownState
from duetick.core.occurrences import OriginKind
from duetick.core.reports import MOST_WORKERS
from duetick.domain.backfilling import MOST_AT_ONCE, MOST_TIMES, MOST_TIMES_EVER, Together
from duetick.domain.identity import LONGEST_ID
from duetick.domain.limits import MOST_AT_ONCE as MOST_LEASES
from duetick.domain.limits import MOST_IN_A_WINDOW, Per
from duetick.domain.recovering import Recovery
from duetick.domain.schedule import LONGEST_NOTE

Instant: TypeAlias = Annotated[str, Field(examples=["2026-12-01T09:00:00Z"])]
Id: TypeAlias = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
DayMap: TypeAlias = Annotated[
    dict[str, JsonValue],
    Field(
        description="A time for each day, or such a map for each target. A day whose time is no "
        "text does not fire.",
        examples=[{"mon": "09:00", "tuesday": None, "wed": {"time": "17:30"}}],
    ),
]
Count: TypeAlias = Annotated[int, Field(ge=1, le=100)]


class Shape(BaseModel):
    """The base of all shapes. It refuses unknown fields and values of another type.

    A shape is built at its first use: a request needs one or two of them.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", strict=True, defer_build=True
    )


def _without_defaults(schema: dict[str, JsonValue]) -> None:
    """Remove the defaults. Each action has its own, so the document names none."""
    properties = schema["properties"]
    for one in properties.values() if isinstance(properties, dict) else ():
        if isinstance(one, dict):
            one.pop("default", None)


MOST_JOBS: Final = 500
"""The most jobs of one call."""

MOST_PUTS: Final = 500
"""The most schedules of one call."""


class RetryShape(Shape):
    """The retries of failed attempts (at least once). Durations are seconds."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    backoff: Literal["none", "fixed", "exponential"] = "exponential"
    attempts: int = 5
    first: int = 10
    longest: int = 3_600
    jitter: int = 0


class PoliciesShape(Shape):
    """The policies of a schedule. An absent field has the action's default: see `/api/actions`,
    which also has the fields that a schedule may choose.
    """

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    delivery: Literal["at_most_once", "at_least_once", "effectively_once"] = "at_most_once"
    retry: RetryShape = RetryShape()
    overlap: Literal["skip", "allow", "wait"] = "skip"
    misfire: Literal["latest", "all", "skip"] = "latest"
    grace: int = 150
    catch_up: int = 10
    longest_lateness: int | None = None
    spread: int = 0
    gap: Literal["run", "skip"] = "run"
    repeat: Literal["first", "both"] = "first"
    priority: int = 0
    timeout: int = 25
    starts_at: Instant | None = None
    ends_at: Instant | None = None
    max_runs: int | None = None
    after_completion: Literal["keep", "delete"] = "keep"
    pause_after: int | None = None
    on_failure: str | None = None


class PrincipalShape(Shape):
    """The principal of the action. Only operators name one."""

    user_id: Annotated[str, Field(min_length=1)]
    org_id: str | None = None
    attributes: dict[str, str] | None = None


class ScheduleBody(Shape):
    """A whole schedule, to create or replace one."""

    cron: Annotated[str, Field(examples=["0 9 * * MON-FRI"])] | DayMap
    flow: str
    action: str
    timezone: Annotated[str | None, Field(examples=["Europe/Berlin"])] = None
    input: JsonValue = None
    enabled: bool = True
    policies: PoliciesShape | None = None
    labels: dict[str, str] | None = None
    external_id: Id | None = None
    principal: PrincipalShape | None = None


class JobPoliciesShape(Shape):
    """The policies of a job. An absent field has the action's default."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)

    delivery: Literal["at_most_once", "at_least_once", "effectively_once"] = "at_most_once"
    retry: RetryShape = RetryShape()
    priority: int = 0
    timeout: int = 25
    on_failure: str | None = None


class JobBody(Shape):
    """A job: an action that runs once, `at` a time, after a `delay` in seconds, or now. Within a
    day, the same `key` in one flow makes nothing more.
    """

    flow: str
    action: str
    input: JsonValue = None
    at: Instant | None = None
    delay: Annotated[float | None, Field(ge=0)] = None
    key: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    policies: JobPoliciesShape | None = None
    labels: dict[str, str] | None = None


class JobsBody(Shape):
    """The jobs to enqueue: each as the body of a single one."""

    jobs: Annotated[list[dict[str, JsonValue]], Field(min_length=1, max_length=MOST_JOBS)]


class NewSchedule(ScheduleBody):
    """A schedule to create. Without a key, it gets a random one."""

    key: Id | None = None


class SchedulePut(ScheduleBody):
    """A schedule of a batch, to create or replace. With `ifVersion`, it is put only if the schedule
    has this version; 0: only if there is none.
    """

    key: Id
    if_version: Annotated[int | None, Field(ge=0)] = None


class AnySchedulePut(SchedulePut):
    """A schedule of a batch, with its user."""

    user: Id


class SchedulesBody(Shape):
    """The schedules to put: each as the body of a single one, with its `key`, and perhaps the
    version that it replaces (`ifVersion`; 0: none). A batch of all users names the `user` of each.
    """

    schedules: Annotated[list[dict[str, JsonValue]], Field(min_length=1, max_length=MOST_PUTS)]


class PreviewBody(Shape):
    """An expression to look at before anything is saved: its next `limit` times after `after`, or
    from now on. Only the policies that name fire times count.
    """

    cron: Annotated[str, Field(examples=["0 9 * * MON-FRI"])] | DayMap
    timezone: Annotated[str | None, Field(examples=["Europe/Berlin"])] = None
    policies: PoliciesShape | None = None
    after: Instant | None = None
    limit: Count = 10


class ForecastSchedule(Shape):
    """A schedule that is not saved. With the `key` of a saved schedule, it takes that schedule's
    place, and the fields that are left out are that schedule's. Without a key, `copies` users get
    one each.
    """

    cron: Annotated[str, Field(examples=["0 9 * * *"])] | DayMap | None = None
    timezone: Annotated[str | None, Field(examples=["Europe/Berlin"])] = None
    policies: PoliciesShape | None = None
    flow: str | None = None
    action: str | None = None
    key: Id | None = None
    copies: Annotated[int, Field(ge=1, le=10_000_000)] = 1


class ForecastBody(Shape):
    """The question of a forecast: the occurrences due `from` an instant (now) until another (a day
    later), at most eight days; of a flow, or of one of its actions. `most` are allowed in each
    `per` of the clock, in UTC. A run `lasts` a number of seconds. On DynamoDB, `yes` agrees to the
    cost of the read.
    """

    since: Annotated[Instant | None, Field(alias="from")] = None
    until: Annotated[Instant | None, Field(alias="to")] = None
    flow: str | None = None
    action: str | None = None
    schedule: ForecastSchedule | None = None
    most: Annotated[int | None, Field(ge=1, le=10**9)] = None
    per: Per = "minute"
    lasts: Annotated[float | None, Field(gt=0, le=86_400)] = None
    yes: bool = False
    cursor: str | None = None


class DryQuery(Shape):
    """With `dryRun`, everything is checked and nothing is stored."""

    model_config = ConfigDict(strict=False)

    dry_run: bool = False


class ScheduleChange(Shape):
    """The fields to change. null resets a field to its default. In policies and labels, each name
    changes by itself.
    """

    cron: str | DayMap | None = None
    flow: str | None = None
    action: str | None = None
    timezone: str | None = None
    input: JsonValue = None
    enabled: bool | None = None
    policies: dict[str, JsonValue] | None = None
    labels: dict[str, str | None] | None = None
    external_id: Id | None = None
    principal: PrincipalShape | None = None


class PauseBody(Shape):
    """The reason and the end of a pause. Without an end, it lasts until the schedule is resumed."""

    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""
    until: Instant | None = None


class LimitBody(Shape):
    """The bounds of a limit: `parallel` run at once, `rate` begin in each `per` of the clock, in
    UTC. One of the two is needed.
    """

    parallel: Annotated[int | None, Field(ge=1, le=MOST_LEASES)] = None
    rate: Annotated[int | None, Field(ge=1, le=MOST_IN_A_WINDOW)] = None
    per: Per = "minute"
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""


class RecoverBody(Shape):
    """The way of a recovery. Unless `dryRun` is false, nothing is changed."""

    how: Recovery = "skip"
    dry_run: bool = True


class BackfillBody(Shape):
    """The fire times to make again: `from` an instant on, before the instant `to`, both past.

    `overlap` is `wait` (one after another) or `allow` (side by side, at most `atOnce`); without it,
    `allow` if `atOnce` is more than 1. With `onlyMissing`, times that have fired are left out. A
    span of more than `most` times is refused.
    """

    since: Annotated[Instant, Field(alias="from")]
    until: Annotated[Instant, Field(alias="to")]
    dry_run: bool = True
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""
    at_once: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 1
    overlap: Together | None = None
    only_missing: bool = True
    newest_first: bool = False
    most: Annotated[int, Field(ge=1, le=MOST_TIMES_EVER)] = MOST_TIMES


class PageQuery(Shape):
    """The part of a list to return."""

    model_config = ConfigDict(strict=False)

    limit: Count = USUAL_PAGE
    cursor: str | None = None


class HistoryQuery(PageQuery):
    """A part of a history: in one state, `from` an instant on, before the instant `to`."""

    state: ShownState | None = None
    since: Annotated[Instant | None, Field(alias="from")] = None
    until: Annotated[Instant | None, Field(alias="to")] = None


class ExplainQuery(Shape):
    """The time to explain; now by default."""

    at: Instant | None = None


class SoughtQuery(PageQuery):
    """A part of a list of schedules: of a flow, with a `label` (NAME=TEXT), with a `text` in key,
    cron, flow, action, outside id or labels.
    """

    flow: str | None = None
    label: Annotated[str | None, Field(examples=["team=garden"])] = None
    text: str | None = None


class ListQuery(SoughtQuery):
    """A part of a list. Without `state`, it has the active and the paused schedules. A `text` is
    looked for in key, cron, flow, action, outside id and labels.
    """

    state: Literal["active", "paused", "done", "all"] | None = None


class JobsQuery(PageQuery):
    """A part of a list of jobs: in one state, of one flow. `pending` have not ended."""

    state: Literal["pending", "ended", "all"] | ShownState | None = None
    flow: str | None = None


class OperationsQuery(PageQuery):
    """A part of the record: of all operators, about one user, or of operators whose name contains a
    text.
    """

    user: str | None = None
    who: str | None = None


class SpanQuery(Shape):
    """A span: `from` an instant on, before the instant `to`."""

    since: Annotated[Instant | None, Field(alias="from")] = None
    until: Annotated[Instant | None, Field(alias="to")] = None


class WorkersQuery(Shape):
    """The number of reports."""

    model_config = ConfigDict(strict=False)

    limit: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 20


class AllQuery(SoughtQuery):
    """A part of all schedules. Without `state`, it has all schedules that are not done. A `text` is
    looked for in the name of the user, too.
    """

    state: Literal["active", "paused", "done", "unreadable", "all"] | None = None


class NamedQuery(Shape):
    """The schedule of an occurrence: its user and its key. The user of a static schedule is empty.
    Give both, or neither.
    """

    user: str | None = None
    key: Id | None = None


class Occurrences(Shape):
    """A filter of occurrences. A `label` is NAME=TEXT. The span begins at `from` and ends before
    `to`. The origin of an occurrence begins with `origin`.
    """

    state: Literal["running"] | ShownState | None = None
    reason: EndReason | None = None
    origin: OriginKind | None = None
    flow: str | None = None
    label: Annotated[str | None, Field(examples=["team=garden"])] = None
    user: str | None = None
    key: Id | None = None
    since: Annotated[Instant | None, Field(alias="from")] = None
    until: Annotated[Instant | None, Field(alias="to")] = None


class OccurrencesQuery(Occurrences, PageQuery):
    """A page of the occurrences that a filter names."""


class ManyOccurrences(Occurrences):
    """The occurrences to change: those that the filter names, `limit` in one call, after a
    `cursor`. Unless `dryRun` is false, nothing is changed.
    """

    dry_run: bool = True
    limit: Count = 100
    cursor: str | None = None


class PausesQuery(Shape):
    """The pauses that stand, and those that ended since `from`."""

    since: Annotated[Instant | None, Field(alias="from")] = None


class CursorQuery(Shape):
    """The place in a list to go on from."""

    model_config = ConfigDict(strict=False)

    cursor: str | None = None


class CountQuery(Shape):
    """The number of results."""

    model_config = ConfigDict(strict=False)

    limit: Count = 10
