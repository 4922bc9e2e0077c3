"""Answers about the timeline of a schedule."""

from typing import Literal

from duetick.api.views.fields import EndReason, IsoTime, ShownState, TypedDict
from duetick.api.views.schedules import DefinitionView, HeldView


class TimelineEntry(TypedDict):
    """The outcome of one fire time in short, or of a range of `count` times up to `until`."""

    at: IsoTime
    until: IsoTime | None
    count: int
    origin: str
    state: ShownState
    reason: EndReason | None


class ClockChangeView(TypedDict):
    """A change of a zone's clocks: its distance from UTC before and after, such as +01:00."""

    at: IsoTime
    before: str
    after: str


class FaultView(TypedDict):
    """Times that do not add up, from the `first` to the `last`, as a verification tells them."""

    problem: Literal["missing", "unexpected", "doubled", "miscounted", "undefined"]
    first: IsoTime
    last: IsoTime
    count: int
    why: str


TimelineView = TypedDict(
    "TimelineView",
    {
        "from": IsoTime,
        "to": IsoTime,
        "timezone": str | None,
        "entries": list[TimelineEntry],
        "definitions": list[DefinitionView],
        "pauses": list[HeldView],
        "clockChanges": list[ClockChangeView],
        "ahead": list[IsoTime],
        "leftOut": list[IsoTime],
        "unaccounted": list[FaultView],
    },
)
"""A schedule `from` an instant on, before the instant `to`: the outcomes, the newest first; the
definitions that were in force, the oldest first; the pauses of groups that covered some of it; the
changes of its zone's clocks; the fire times `ahead`, as things stand; the times that are `leftOut`
by a pause of the schedule which holds; and the times that have no outcome, or one too many. If
there were more outcomes than one answer holds, `from` is later than it was asked for: ask again
with that as `to`.
"""
