"""Answers about occurrences, and the history of a schedule."""

from typing import Literal

from duetick.api.views.fields import EndReason, IsoTime, ShownState, TypedDict
from duetick.api.views.schedules import DefinitionView, FireTime, ScheduleView
from duetick.domain.verdicts import Verdict


class FailureView(TypedDict):
    """A failed attempt: its end and its error."""

    attempt: int
    at: IsoTime
    error: str


class DeathView(TypedDict):
    """The death that a failure hook tells of: the id and the origin of the dead occurrence, and why
    it died.
    """

    occurrence: str
    origin: str
    reason: EndReason
    attempts: int
    at: IsoTime
    error: str | None


class OccurrenceView(TypedDict):
    """The outcome of one fire time, or (with `until` and `count`) of a range of them.

    `error`, also in `failures`, is the message that the action chose for its user; operators see
    the error that it raised. `failureHook` is the origin of the occurrence that tells of this one's
    death; that one has the `death`. `nextAttemptAt` is null unless another attempt follows.
    """

    id: str
    nominalFireTime: IsoTime
    origin: str
    state: ShownState
    reason: EndReason | None
    attempts: int
    labels: dict[str, str]
    until: IsoTime | None
    count: int
    error: str | None
    failures: list[FailureView]
    failureHook: str | None
    death: DeathView | None
    nextAttemptAt: IsoTime | None
    begunAt: IsoTime | None
    updatedAt: IsoTime


class HistoryPage(TypedDict):
    """A page of the history, the newest first."""

    history: list[OccurrenceView]
    cursor: str | None


class EventView(TypedDict):
    """A transition of an occurrence beyond claim, begin and settle. `note` says why."""

    at: IsoTime
    before: ShownState | Literal["failed"]
    after: ShownState | Literal["failed"]
    note: str | None


class ExplanationView(TypedDict):
    """The explanation of one time. `said` are its sentences, the verdict first.

    `definition` was in force then. `occurrence` is the history's entry of that time, which may be a
    range, with its `events`. If the time is no fire time, `before` and `after` are the fire times
    beside it. `upcoming` are the next fire times from now on.
    """

    at: IsoTime
    local: str | None
    verdict: Verdict
    said: list[str]
    definition: DefinitionView | None
    occurrence: OccurrenceView | None
    events: list[EventView]
    before: IsoTime | None
    after: IsoTime | None
    upcoming: list[FireTime]


class RunView(TypedDict):
    """A run by hand, handed to dispatch. The history has its outcome."""

    origin: str
    nominalFireTime: IsoTime
    state: ShownState


class ExportedOccurrence(OccurrenceView):
    """An occurrence of an export. `body` is the body that an outside caller sent."""

    key: str
    body: object


class AnyOccurrence(OccurrenceView):
    """An occurrence with the user, the key and the flow of its schedule."""

    user: str
    key: str
    flow: str


class OccurrencesPage(TypedDict):
    """A page of occurrences, the newest first. `cursor` asks for the next page; null: there is
    none.
    """

    occurrences: list[AnyOccurrence]
    cursor: str | None


class OccurrenceDetail(AnyOccurrence):
    """An occurrence with its transitions, and its schedule as it is now; null: it is deleted.
    Secrets of the input are withheld.
    """

    events: list[EventView]
    schedule: ScheduleView | None


class ChangedOccurrence(TypedDict):
    """An occurrence after a change. If it was so already, `changed` is false."""

    changed: bool
    occurrence: AnyOccurrence


class OccurrenceName(TypedDict):
    """The names of an occurrence, its flow, and its state before the change."""

    id: str
    user: str
    key: str
    flow: str
    nominalFireTime: IsoTime
    origin: str
    state: ShownState
    reason: EndReason | None


class DeclinedOccurrence(OccurrenceName):
    """An occurrence that cannot be changed as it is, and why."""

    why: str


class ChangedOccurrences(TypedDict):
    """The result of one call: the number of occurrences that it changed (in a dry run: would
    change), and the number that it declined. It names some of both. `cursor` goes on after them;
    null: there are no more.
    """

    dryRun: bool
    changed: int
    declined: int
    first: list[OccurrenceName]
    firstDeclined: list[DeclinedOccurrence]
    cursor: str | None
