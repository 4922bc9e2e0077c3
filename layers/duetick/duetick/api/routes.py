"""The routes of the API, with their bodies and answers, as data for serving and OpenAPI."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from duetick.api import (
    backfills,
    group_pauses,
    jobs,
    limits,
    occurrences,
    operations,
    records,
    recovery,
)
from duetick.api.calls import ApiCall
from duetick.api.models import (
    AllQuery,
    BackfillBody,
    CountQuery,
    CursorQuery,
    DryQuery,
    ExplainQuery,
    HistoryQuery,
    JobBody,
    JobsBody,
    JobsQuery,
    LimitBody,
    ListQuery,
    ManyOccurrences,
    NamedQuery,
    NewSchedule,
    OccurrencesQuery,
    OperationsQuery,
    PageQuery,
    PauseBody,
    PausesQuery,
    PreviewBody,
    RecoverBody,
    ScheduleBody,
    ScheduleChange,
    Shape,
    WorkersQuery,
)
from duetick.api.views import (
    ActionsView,
    AllSchedulesPage,
    AnyScheduleView,
    BackfillAnswer,
    BackfillList,
    BackfillView,
    ChangedOccurrence,
    ChangedOccurrences,
    EnqueuedViews,
    ErasedView,
    ExplanationView,
    ExportView,
    FlowsView,
    GroupPausesView,
    GroupPauseView,
    HistoryPage,
    JobsPage,
    JobView,
    LimitsView,
    LimitView,
    LocksView,
    MendedView,
    OccurrenceDetail,
    OccurrencesPage,
    OperationsView,
    OverviewView,
    PreviewView,
    RecoveredView,
    RunView,
    SchedulePage,
    ScheduleView,
    UnreadablePage,
    UpcomingView,
    WorkersView,
)
from duetick.core.answers import Answer
from duetick.core.rights import BY_EXTERNAL

Respond: TypeAlias = Callable[[ApiCall], Answer]

OWN: Final = "/api"
ANY: Final = "/api/users/{user}"


@dataclass(frozen=True, slots=True)
class Route:
    """One operation. `path` follows `/api`, or `/api/users/{user}`; `{key}` is one segment.

    A `conditional` route takes If-Match; a route that `creates` takes If-None-Match too. `refusals`
    are the statuses beyond those that every route may have. A route `of_all` users, which names
    none, is for operators. One that is `of_any` is for the user of a token, and for machines and
    operators too, who name no user there; if it is `alone`, it has no twin below a user. One that
    `reads` changes nothing, whatever its method. One that `erases` a user is recorded without the
    user.
    """

    method: str
    path: str
    run: Respond
    answers: dict[int, type | None]
    body: type[Shape] | None = None
    query: type[Shape] | None = None
    refusals: tuple[int, ...] = ()
    conditional: bool = False
    creates: bool = False
    idempotent: bool = False
    operators_only: bool = False
    of_all: bool = False
    of_any: bool = False
    alone: bool = False
    reads: bool = False
    erases: bool = False
    exports: bool = False

    @property
    def is_logged(self) -> bool:
        """True if an operator's call is logged and recorded: it writes, or exports all data of a
        user.
        """
        return (self.method != "GET" and not self.reads) or self.exports

    def is_of_operators(self, base: str) -> bool:
        """Return True if the route is for machines and operators, below that prefix."""
        return self.of_all or base == ANY

    @property
    def writes(self) -> bool:
        """True if a call counts as a write of the user. A run does not: it has its own limit."""
        counts = self.method != "GET" and not self.reads
        return counts and self.run is not operations.run_schedule

    @property
    def bases(self) -> tuple[str, ...]:
        """The prefixes of the path."""
        if self.of_all or self.alone:
            return (OWN,)
        return (ANY,) if self.operators_only else (OWN, ANY)


ACTIONS: Final = "/actions"
FLOWS: Final = "/flows"
UPCOMING: Final = "/upcoming"
OF_USERS: Final = ("/schedules", ACTIONS, FLOWS, UPCOMING)
"""The beginnings of the paths that a user's token opens."""
LIST: Final = "/schedules"
ONE: Final = "/schedules/{key}"
BACKFILLS: Final = "/backfills"
STATIC: Final = "/static-schedules/{flow}/{id}"
JOBS: Final = "/jobs"
SHOWN: Final[dict[int, type | None]] = {200: ScheduleView}
PUT: Final[dict[int, type | None]] = {200: ScheduleView, 201: ScheduleView}

OCCURRENCES: Final = "/occurrences"
CHANGED: Final[dict[int, type | None]] = {200: ChangedOccurrence}
CHANGED_MANY: Final[dict[int, type | None]] = {200: ChangedOccurrences}

ROUTES: Final = (
    Route("GET", ACTIONS, operations.list_actions, {200: ActionsView}),
    Route("GET", FLOWS, operations.list_flows, {200: FlowsView}, of_any=True, alone=True),
    Route(
        "POST", UPCOMING, operations.preview, {200: PreviewView},
        body=PreviewBody, refusals=(413,), of_any=True, alone=True, reads=True,
    ),
    Route("GET", LIST, operations.list_schedules, {200: SchedulePage}, query=ListQuery),
    Route(
        "POST", LIST, operations.create_schedule, PUT,
        body=NewSchedule, query=DryQuery, refusals=(409, 413, 429), idempotent=True,
    ),
    Route("GET", f"{LIST}/{BY_EXTERNAL}/{{key}}", operations.get_by_external, SHOWN,
          refusals=(404,), of_any=True),
    Route("GET", ONE, operations.get_schedule, SHOWN, refusals=(404,)),
    Route(
        "PUT", ONE, operations.put_schedule, PUT,
        body=ScheduleBody, query=DryQuery, refusals=(409, 412, 413, 429),
        conditional=True, creates=True,
    ),
    Route(
        "PATCH", ONE, operations.change_schedule, SHOWN,
        body=ScheduleChange, query=DryQuery, refusals=(404, 409, 412, 413, 429), conditional=True,
    ),
    Route(
        "DELETE", ONE, operations.delete_schedule, {204: None},
        refusals=(404, 412, 429), conditional=True,
    ),
    Route(
        "POST", f"{ONE}/pause", operations.pause_schedule, SHOWN,
        body=PauseBody, refusals=(404, 409, 412, 413, 429), conditional=True,
    ),
    Route(
        "POST", f"{ONE}/resume", operations.resume_schedule, SHOWN,
        refusals=(404, 409, 412, 429), conditional=True,
    ),
    Route(
        "POST", f"{ONE}/run", operations.run_schedule, {202: RunView},
        refusals=(404, 409, 429), idempotent=True,
    ),
    Route(
        "GET", f"{ONE}/upcoming", operations.upcoming, {200: UpcomingView},
        query=CountQuery, refusals=(404,),
    ),
    Route(
        "GET", f"{ONE}/history", operations.history, {200: HistoryPage},
        query=HistoryQuery, refusals=(404,),
    ),
    Route(
        "GET", f"{ONE}/explain", operations.explain, {200: ExplanationView},
        query=ExplainQuery, refusals=(404,),
    ),
    Route("GET", JOBS, jobs.list_jobs, {200: JobsPage}, query=JobsQuery),
    Route(
        "POST", JOBS, jobs.create_job, {200: JobView, 201: JobView},
        body=JobBody, refusals=(409, 413, 429),
    ),
    Route(
        "POST", f"{JOBS}/batch", jobs.create_jobs, {200: EnqueuedViews},
        body=JobsBody, refusals=(413, 429),
    ),
    Route("GET", f"{JOBS}/{{key}}", jobs.get_job, {200: JobView}, refusals=(404,)),
    Route(
        "POST", f"{JOBS}/{{key}}/cancel", jobs.cancel_job, {200: JobView},
        refusals=(404, 409, 429),
    ),
    Route(
        "GET", f"{JOBS}/{{key}}/history", jobs.job_history, {200: HistoryPage},
        query=HistoryQuery, refusals=(404,),
    ),
    Route(
        "GET", f"{JOBS}/{{key}}/explain", jobs.explain_job, {200: ExplanationView},
        refusals=(404,),
    ),
    Route(
        "POST", f"{ONE}/backfills", backfills.start_backfill,
        {200: BackfillAnswer, 201: BackfillAnswer},
        body=BackfillBody, refusals=(404, 409, 413), operators_only=True,
    ),
    Route("GET", BACKFILLS, backfills.list_backfills, {200: BackfillList}, operators_only=True),
    Route(
        "GET", f"{BACKFILLS}/{{key}}", backfills.get_backfill, {200: BackfillView},
        refusals=(404,), operators_only=True,
    ),
    Route(
        "POST", f"{BACKFILLS}/{{key}}/stop", backfills.stop_backfill, {200: BackfillView},
        refusals=(404, 409), operators_only=True,
    ),
    Route(
        "POST", f"{BACKFILLS}/{{key}}/continue", backfills.continue_backfill, {200: BackfillView},
        refusals=(404, 409), operators_only=True,
    ),
    Route(
        "GET", "/export", operations.export_user, {200: ExportView},
        query=CursorQuery, operators_only=True, exports=True,
    ),
    Route(
        "DELETE", "", operations.erase_user, {200: ErasedView},
        operators_only=True, erases=True,
    ),
    Route("GET", "/overview", records.show_overview, {200: OverviewView}, of_all=True),
    Route(
        "GET", "/workers", records.list_workers, {200: WorkersView},
        query=WorkersQuery, of_all=True,
    ),
    Route("GET", "/locks", records.list_locks, {200: LocksView}, of_all=True),
    Route(
        "GET", "/all-schedules", records.list_all_schedules, {200: AllSchedulesPage},
        query=AllQuery, of_all=True,
    ),
    Route(
        "GET", "/unreadable", records.list_unreadable, {200: UnreadablePage},
        query=PageQuery, of_all=True,
    ),
    Route(
        "POST", f"{ONE}/mend", records.mend_schedule, {200: MendedView},
        refusals=(404, 409), operators_only=True,
    ),
    Route(
        "GET", "/operations", records.list_operations, {200: OperationsView},
        query=OperationsQuery, of_all=True,
    ),
    Route(
        "GET", OCCURRENCES, occurrences.list_occurrences, {200: OccurrencesPage},
        query=OccurrencesQuery, of_all=True,
    ),
    Route(
        "GET", f"{OCCURRENCES}/{{id}}", occurrences.get_occurrence, {200: OccurrenceDetail},
        query=NamedQuery, refusals=(404,), of_all=True,
    ),
    Route(
        "DELETE", f"{OCCURRENCES}/{{id}}", occurrences.delete_occurrence, CHANGED,
        query=NamedQuery, refusals=(404, 409), of_all=True,
    ),
    Route(
        "POST", f"{OCCURRENCES}/{{id}}/retry", occurrences.retry_occurrence, CHANGED,
        query=NamedQuery, refusals=(404, 409), of_all=True,
    ),
    Route(
        "POST", f"{OCCURRENCES}/{{id}}/cancel", occurrences.cancel_occurrence, CHANGED,
        query=NamedQuery, refusals=(404, 409), of_all=True,
    ),
    Route(
        "POST", "/all-occurrences/retry", occurrences.retry_occurrences, CHANGED_MANY,
        body=ManyOccurrences, refusals=(413,), of_all=True,
    ),
    Route(
        "POST", "/all-occurrences/cancel", occurrences.cancel_occurrences, CHANGED_MANY,
        body=ManyOccurrences, refusals=(413,), of_all=True,
    ),
    Route(
        "POST", "/all-occurrences/delete", occurrences.delete_occurrences, CHANGED_MANY,
        body=ManyOccurrences, refusals=(413,), of_all=True,
    ),
    Route(
        "GET", "/pauses", group_pauses.list_pauses, {200: GroupPausesView},
        query=PausesQuery, of_all=True,
    ),
    Route(
        "PUT", "/pauses/{scope}", group_pauses.pause_group, {200: GroupPauseView},
        body=PauseBody, refusals=(413,), of_all=True,
    ),
    Route(
        "DELETE", "/pauses/{scope}", group_pauses.resume_group, {200: GroupPausesView},
        of_all=True,
    ),
    Route(
        "POST", f"{STATIC}/pause", records.pause_static_schedule, {200: AnyScheduleView},
        body=PauseBody, refusals=(404, 413), of_all=True,
    ),
    Route(
        "POST", f"{STATIC}/resume", records.resume_static_schedule,
        {200: AnyScheduleView}, refusals=(404,), of_all=True,
    ),
    Route(
        "POST", "/recover", recovery.recover_store, {200: RecoveredView},
        body=RecoverBody, refusals=(413,), of_all=True,
    ),
    Route("GET", "/limits", limits.list_limits, {200: LimitsView}, of_all=True),
    Route(
        "PUT", "/limits/{scope}", limits.set_limit, {200: LimitView},
        body=LimitBody, refusals=(413,), of_all=True,
    ),
    Route("DELETE", "/limits/{scope}", limits.lift_limit, {200: LimitsView}, of_all=True),
)  # fmt: skip
