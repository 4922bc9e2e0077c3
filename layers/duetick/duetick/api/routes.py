"""The API as data: each route with what it takes and answers. Serving and OpenAPI both read it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from duetick.api import operations
from duetick.api.calls import Call
from duetick.api.models import (
    CountQuery,
    CursorQuery,
    NewSchedule,
    PageQuery,
    PauseBody,
    ScheduleBody,
    ScheduleChange,
    Shape,
)
from duetick.api.views import (
    ErasedView,
    ExportView,
    HistoryPage,
    RunView,
    SchedulePage,
    ScheduleView,
    UpcomingView,
)
from duetick.core.answers import Answer
from duetick.core.schedules import BY_EXTERNAL

Operation: TypeAlias = Callable[[Call], Answer]

OWN: Final = "/api"
ANY: Final = "/api/users/{user}"


@dataclass(frozen=True, slots=True)
class Route:
    """One operation. `path` follows `/api`, or `/api/users/{user}`; `{key}` is one segment.

    `conditional` takes If-Match (`creates`: If-None-Match too). `refusals` are the statuses
    besides those that every route may have.
    """

    method: str
    path: str
    run: Operation
    answers: dict[int, type | None]
    body: type[Shape] | None = None
    query: type[Shape] | None = None
    refusals: tuple[int, ...] = ()
    conditional: bool = False
    creates: bool = False
    idempotent: bool = False
    operators_only: bool = False

    @property
    def bases(self) -> tuple[str, ...]:
        """What the path stands behind."""
        return (ANY,) if self.operators_only else (OWN, ANY)


LIST: Final = "/schedules"
ONE: Final = "/schedules/{key}"
SHOWN: Final[dict[int, type | None]] = {200: ScheduleView}
PUT: Final[dict[int, type | None]] = {200: ScheduleView, 201: ScheduleView}

ROUTES: Final = (
    Route("GET", LIST, operations.list_schedules, {200: SchedulePage}, query=PageQuery),
    Route(
        "POST", LIST, operations.create_schedule, {201: ScheduleView},
        body=NewSchedule, refusals=(409, 413), idempotent=True,
    ),
    Route("GET", f"{LIST}/{BY_EXTERNAL}/{{key}}", operations.get_by_external, SHOWN,
          refusals=(404,)),
    Route("GET", ONE, operations.get_schedule, SHOWN, refusals=(404,)),
    Route(
        "PUT", ONE, operations.put_schedule, PUT,
        body=ScheduleBody, refusals=(409, 412, 413), conditional=True, creates=True,
    ),
    Route(
        "PATCH", ONE, operations.change_schedule, SHOWN,
        body=ScheduleChange, refusals=(404, 409, 412, 413), conditional=True,
    ),
    Route(
        "DELETE", ONE, operations.delete_schedule, {204: None},
        refusals=(404, 412), conditional=True,
    ),
    Route(
        "POST", f"{ONE}/pause", operations.pause_schedule, SHOWN,
        body=PauseBody, refusals=(404, 409, 412, 413), conditional=True,
    ),
    Route(
        "POST", f"{ONE}/resume", operations.resume_schedule, SHOWN,
        refusals=(404, 409, 412), conditional=True,
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
        query=PageQuery, refusals=(404,),
    ),
    Route(
        "GET", "/export", operations.export_user, {200: ExportView},
        query=CursorQuery, operators_only=True,
    ),
    Route("DELETE", "", operations.erase_user, {200: ErasedView}, operators_only=True),
)  # fmt: skip
