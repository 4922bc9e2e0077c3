"""The routes of the API, with their bodies and answers, as data for serving and OpenAPI."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final, TypeAlias

from duetick.api import operations
from duetick.api.calls import ApiCall
from duetick.core.answers import Answer
from duetick.core.rights import BY_EXTERNAL

Respond: TypeAlias = Callable[[ApiCall], Answer]

OWN: Final = "/api"
ANY: Final = "/api/users/{user}"


@dataclass(frozen=True, slots=True)
class Later:
    """An operation of a module that is imported at its first call: no other request pays for it."""

    module: str
    name: str

    def __call__(self, call: ApiCall) -> Answer:
        """Run the operation."""
        return self.function(call)

    @property
    def function(self) -> Respond:
        """The operation itself."""
        found: Respond = getattr(import_module(f"duetick.api.{self.module}"), self.name)
        return found


@dataclass(frozen=True, slots=True)
class Route:
    """One operation. `path` follows `/api`, or `/api/users/{user}`; `{key}` is one segment. `body`
    and `query` name shapes of `models`, `answers` names shapes of `views`: a call loads only the
    shapes that it needs.

    A `conditional` route takes If-Match; a route that `creates` takes If-None-Match too. `refusals`
    are the statuses beyond those that every route may have. A route `of_all` users names no user,
    and is for operators. A route `of_any` is for the user of a token, and for machines and
    operators, who name no user there; if it is `alone`, it has no twin below a user. A route that
    `reads` changes nothing, even with another method than GET. A route that `erases` a user is
    recorded without the user. `told` are the fields of the body, or of the query, that the record
    of an operator's call has beside the names of the path. A call that `finds` an occurrence is
    about its user.
    """

    method: str
    path: str
    run: Respond
    answers: dict[int, str | None]
    body: str | None = None
    query: str | None = None
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
    told: tuple[str, ...] = ()
    finds: bool = False

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.run.name if isinstance(self.run, Later) else self.run.__name__

    @property
    def summary(self) -> str:
        """The text of the operation."""
        run = self.run.function if isinstance(self.run, Later) else self.run
        return inspect.cleandoc(run.__doc__ or "").replace("\n", " ")

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
    def may_be_dry(self) -> bool:
        """True if a call may ask that nothing be stored."""
        return self.query == "DryQuery"

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
FORECAST: Final = "/forecast"
JOBS: Final = "/jobs"
AGENTS: Final = "/mcp"
"""The path of the agents' protocol, which is no route of REST."""
OF_USERS: Final = ("/schedules", ACTIONS, FLOWS, FORECAST, JOBS, UPCOMING)
"""The beginnings of the paths that a user's token opens."""
LIST: Final = "/schedules"
ONE: Final = "/schedules/{key}"
BACKFILLS: Final = "/backfills"
STATIC: Final = "/static-schedules/{flow}/{id}"
SHOWN: Final[dict[int, str | None]] = {200: "ScheduleView"}
PUT: Final[dict[int, str | None]] = {200: "ScheduleView", 201: "ScheduleView"}

OCCURRENCES: Final = "/occurrences"
FILTERS: Final = ("state", "reason", "origin", "flow", "label", "user", "key", "from", "to")
CHANGED: Final[dict[int, str | None]] = {200: "ChangedOccurrence"}
CHANGED_MANY: Final[dict[int, str | None]] = {200: "ChangedOccurrences"}

ROUTES: Final = (
    Route("GET", ACTIONS, operations.list_actions, {200: "ActionsView"}),
    Route("GET", FLOWS, operations.list_flows, {200: "FlowsView"}, of_any=True, alone=True),
    Route(
        "POST", UPCOMING, Later("reads", "preview"), {200: "PreviewView"},
        body="PreviewBody", refusals=(413,), of_any=True, alone=True, reads=True,
    ),
    Route(
        "POST", FORECAST, Later("forecast", "forecast"), {200: "ForecastView"},
        body="ForecastBody", refusals=(404, 413), of_any=True, reads=True,
    ),
    Route("GET", LIST, operations.list_schedules, {200: "SchedulePage"}, query="ListQuery"),
    Route(
        "POST", LIST, Later("writes", "create_schedule"), PUT,
        body="NewSchedule", query="DryQuery", refusals=(409, 413, 429), idempotent=True,
        told=("key",),
    ),
    Route(
        "POST", f"{LIST}/batch", Later("puts", "put_schedules"), {200: "PutViews"},
        body="SchedulesBody", query="DryQuery", refusals=(413, 429), told=("schedules",),
    ),
    Route("GET", f"{LIST}/{BY_EXTERNAL}/{{key}}", operations.get_by_external, SHOWN,
          refusals=(404,), of_any=True),
    Route("GET", ONE, operations.get_schedule, SHOWN, refusals=(404,)),
    Route(
        "PUT", ONE, Later("writes", "put_schedule"), PUT,
        body="ScheduleBody", query="DryQuery", refusals=(409, 412, 413, 429),
        conditional=True, creates=True,
    ),
    Route(
        "PATCH", ONE, Later("writes", "change_schedule"), SHOWN,
        body="ScheduleChange", query="DryQuery", refusals=(404, 409, 412, 413, 429),
        conditional=True,
    ),
    Route(
        "DELETE", ONE, operations.delete_schedule, {204: None},
        refusals=(404, 412, 429), conditional=True,
    ),
    Route(
        "POST", f"{ONE}/pause", Later("writes", "pause_schedule"), SHOWN,
        body="PauseBody", refusals=(404, 409, 412, 413, 429), conditional=True, told=("until",),
    ),
    Route(
        "POST", f"{ONE}/resume", operations.resume_schedule, SHOWN,
        refusals=(404, 409, 412, 429), conditional=True,
    ),
    Route(
        "POST", f"{ONE}/run", operations.run_schedule, {202: "RunView"},
        refusals=(404, 409, 429), idempotent=True,
    ),
    Route(
        "GET", f"{ONE}/upcoming", Later("reads", "upcoming"), {200: "UpcomingView"},
        query="CountQuery", refusals=(404,),
    ),
    Route(
        "GET", f"{ONE}/history", Later("reads", "history"), {200: "HistoryPage"},
        query="HistoryQuery", refusals=(404,),
    ),
    Route(
        "GET", f"{ONE}/explain", Later("reads", "explain"), {200: "ExplanationView"},
        query="ExplainQuery", refusals=(404,),
    ),
    Route(
        "GET", f"{ONE}/timeline", Later("reads", "show_timeline"), {200: "TimelineView"},
        query="SpanQuery", refusals=(404,),
    ),
    Route("GET", JOBS, Later("jobs", "list_jobs"), {200: "JobsPage"}, query="JobsQuery"),
    Route(
        "POST", JOBS, Later("jobs", "create_job"), {200: "JobView", 201: "JobView"},
        body="JobBody", refusals=(409, 413, 429), told=("flow", "action", "key"),
    ),
    Route(
        "POST", f"{JOBS}/batch", Later("jobs", "create_jobs"), {200: "EnqueuedViews"},
        body="JobsBody", refusals=(413, 429), told=("jobs",),
    ),
    Route("GET", f"{JOBS}/{{key}}", Later("jobs", "get_job"), {200: "JobView"}, refusals=(404,)),
    Route(
        "POST", f"{JOBS}/{{key}}/cancel", Later("jobs", "cancel_job"), {200: "JobView"},
        refusals=(404, 409, 429),
    ),
    Route(
        "GET", f"{JOBS}/{{key}}/history", Later("jobs", "job_history"), {200: "HistoryPage"},
        query="HistoryQuery", refusals=(404,),
    ),
    Route(
        "GET", f"{JOBS}/{{key}}/explain", Later("jobs", "explain_job"), {200: "ExplanationView"},
        refusals=(404,),
    ),
    Route(
        "POST", f"{ONE}/backfills", Later("backfills", "start_backfill"),
        {200: "BackfillAnswer", 201: "BackfillAnswer"},
        body="BackfillBody", refusals=(404, 409, 413), operators_only=True, told=("from", "to"),
    ),
    Route(
        "GET", BACKFILLS, Later("backfills", "list_backfills"), {200: "BackfillList"},
        operators_only=True,
    ),
    Route(
        "GET", f"{BACKFILLS}/{{key}}", Later("backfills", "get_backfill"), {200: "BackfillView"},
        refusals=(404,), operators_only=True,
    ),
    Route(
        "POST", f"{BACKFILLS}/{{key}}/stop", Later("backfills", "stop_backfill"),
        {200: "BackfillView"}, refusals=(404, 409), operators_only=True,
    ),
    Route(
        "POST", f"{BACKFILLS}/{{key}}/continue", Later("backfills", "continue_backfill"),
        {200: "BackfillView"}, refusals=(404, 409), operators_only=True,
    ),
    Route(
        "GET", "/export", Later("reads", "export_user"), {200: "ExportView"},
        query="CursorQuery", operators_only=True, exports=True,
    ),
    Route(
        "DELETE", "", operations.erase_user, {200: "ErasedView"},
        operators_only=True, erases=True,
    ),
    Route(
        "GET", "/overview", Later("records", "show_overview"), {200: "OverviewView"}, of_all=True,
    ),
    Route(
        "GET", "/workers", Later("records", "list_workers"), {200: "WorkersView"},
        query="WorkersQuery", of_all=True,
    ),
    Route("GET", "/locks", Later("records", "list_locks"), {200: "LocksView"}, of_all=True),
    Route(
        "GET", "/all-schedules", Later("records", "list_all_schedules"), {200: "AllSchedulesPage"},
        query="AllQuery", of_all=True,
    ),
    Route(
        "POST", "/all-schedules/batch", Later("puts", "put_all_schedules"), {200: "PutViews"},
        body="SchedulesBody", query="DryQuery", refusals=(413,), of_all=True, told=("schedules",),
    ),
    Route(
        "GET", "/unreadable", Later("records", "list_unreadable"), {200: "UnreadablePage"},
        query="PageQuery", of_all=True,
    ),
    Route(
        "POST", f"{ONE}/mend", Later("records", "mend_schedule"), {200: "MendedView"},
        refusals=(404, 409), operators_only=True,
    ),
    Route(
        "GET", "/operations", Later("records", "list_operations"), {200: "OperationsView"},
        query="OperationsQuery", of_all=True,
    ),
    Route(
        "GET", OCCURRENCES, Later("occurrences", "list_occurrences"), {200: "OccurrencesPage"},
        query="OccurrencesQuery", of_all=True,
    ),
    Route(
        "GET", f"{OCCURRENCES}/{{id}}", Later("occurrences", "get_occurrence"),
        {200: "OccurrenceDetail"}, query="NamedQuery", refusals=(404,), of_all=True,
    ),
    Route(
        "DELETE", f"{OCCURRENCES}/{{id}}", Later("occurrences", "delete_occurrence"), CHANGED,
        query="NamedQuery", refusals=(404, 409), of_all=True, told=("user",), finds=True,
    ),
    Route(
        "POST", f"{OCCURRENCES}/{{id}}/retry", Later("occurrences", "retry_occurrence"), CHANGED,
        query="NamedQuery", refusals=(404, 409), of_all=True, told=("user",), finds=True,
    ),
    Route(
        "POST", f"{OCCURRENCES}/{{id}}/cancel", Later("occurrences", "cancel_occurrence"), CHANGED,
        query="NamedQuery", refusals=(404, 409), of_all=True, told=("user",), finds=True,
    ),
    Route(
        "POST", "/all-occurrences/retry", Later("occurrences", "retry_occurrences"), CHANGED_MANY,
        body="ManyOccurrences", refusals=(413,), of_all=True, told=FILTERS,
    ),
    Route(
        "POST", "/all-occurrences/cancel", Later("occurrences", "cancel_occurrences"), CHANGED_MANY,
        body="ManyOccurrences", refusals=(413,), of_all=True, told=FILTERS,
    ),
    Route(
        "POST", "/all-occurrences/delete", Later("occurrences", "delete_occurrences"), CHANGED_MANY,
        body="ManyOccurrences", refusals=(413,), of_all=True, told=FILTERS,
    ),
    Route(
        "GET", "/pauses", Later("group_pauses", "list_pauses"), {200: "GroupPausesView"},
        query="PausesQuery", of_all=True,
    ),
    Route(
        "PUT", "/pauses/{scope}", Later("group_pauses", "pause_group"), {200: "GroupPauseView"},
        body="PauseBody", refusals=(413,), of_all=True, told=("until",),
    ),
    Route(
        "DELETE", "/pauses/{scope}", Later("group_pauses", "resume_group"),
        {200: "GroupPausesView"}, of_all=True,
    ),
    Route(
        "GET", STATIC, Later("statics", "get_static_schedule"), SHOWN, refusals=(404,),
        of_all=True,
    ),
    Route(
        "GET", f"{STATIC}/history", Later("statics", "static_history"), {200: "HistoryPage"},
        query="HistoryQuery", refusals=(404,), of_all=True,
    ),
    Route(
        "GET", f"{STATIC}/timeline", Later("statics", "static_timeline"), {200: "TimelineView"},
        query="SpanQuery", refusals=(404,), of_all=True,
    ),
    Route(
        "GET", f"{STATIC}/explain", Later("statics", "explain_static"), {200: "ExplanationView"},
        query="ExplainQuery", refusals=(404,), of_all=True,
    ),
    Route(
        "POST", f"{STATIC}/pause", Later("statics", "pause_static_schedule"),
        {200: "AnyScheduleView"}, body="PauseBody", refusals=(404, 413), of_all=True,
        told=("until",),
    ),
    Route(
        "POST", f"{STATIC}/resume", Later("statics", "resume_static_schedule"),
        {200: "AnyScheduleView"}, refusals=(404,), of_all=True,
    ),
    Route(
        "POST", "/recover", Later("recovery", "recover_store"), {200: "RecoveredView"},
        body="RecoverBody", refusals=(413,), of_all=True, told=("how",),
    ),
    Route("GET", "/limits", Later("limits", "list_limits"), {200: "LimitsView"}, of_all=True),
    Route(
        "PUT", "/limits/{scope}", Later("limits", "set_limit"), {200: "LimitView"},
        body="LimitBody", refusals=(413,), of_all=True, told=("parallel", "rate", "per"),
    ),
    Route(
        "DELETE", "/limits/{scope}", Later("limits", "lift_limit"), {200: "LimitsView"},
        of_all=True,
    ),
)  # fmt: skip
