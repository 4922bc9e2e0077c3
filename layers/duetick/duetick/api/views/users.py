"""Answers about all that is kept of a user: an export, and an erasure."""

from duetick.api.views.fields import TypedDict
from duetick.api.views.jobs import JobView
from duetick.api.views.occurrences import ExportedOccurrence
from duetick.api.views.schedules import ScheduleView


class ExportView(TypedDict):
    """A part of a user's data. `cursor` asks for the next part; null: there is none."""

    user: str
    schedules: list[ScheduleView]
    jobs: list[JobView]
    history: list[ExportedOccurrence]
    cursor: str | None


class ErasedView(TypedDict):
    """The number of schedules that were deleted."""

    schedules: int
