"""The answers of the API, as its client reads them too. Times are UTC text: 2026-12-01T09:00:00Z.

The OpenAPI document is made from them. They need only the standard library.
"""

import sys
from typing import Literal, NotRequired, TypeAlias

from duetick.core.wrong import Kind
from duetick.domain.codes import Code
from duetick.domain.limits import Per
from duetick.domain.recovering import Recovery
from duetick.domain.verdicts import Verdict

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:
    from typing_extensions import TypedDict  # the older one hides from pydantic what is required

IsoTime: TypeAlias = str
ShownState: TypeAlias = Literal[
    "scheduled", "queued", "processing", "retrying", "succeeded", "dead", "cancelled", "deleted"
]
"""The state of an occurrence in which a reader may find it: it passes through `failed`."""

EndReason: TypeAlias = Literal[
    "fired",
    "failed",
    "lost",
    "rejected",
    "poisoned",
    "overlap",
    "missed",
    "paused",
    "disabled",
    "schedule_deleted",
    "superseded",
    "quota",
    "operator",
]


class RetryView(TypedDict):
    """The retries of failed attempts (at least once). Durations are seconds."""

    backoff: Literal["none", "fixed", "exponential"]
    attempts: int
    first: int
    longest: int
    jitter: int


class PoliciesView(TypedDict):
    """The policies of a schedule."""

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
    startsAt: IsoTime | None
    endsAt: IsoTime | None
    maxRuns: int | None
    afterCompletion: Literal["keep", "delete"]
    pauseAfter: int | None
    onFailure: str | None


class JobPoliciesView(TypedDict):
    """The policies of a job."""

    delivery: Literal["at_most_once", "at_least_once", "effectively_once"]
    retry: RetryView
    priority: int
    timeout: int
    onFailure: str | None


class ActionView(TypedDict):
    """An action. Its schedules have its `policies` unless they choose others; they may choose those
    in `mayChange`. If `users` is false, only the application may schedule it.
    """

    flow: str
    action: str
    users: bool
    policies: PoliciesView
    mayChange: list[str]


class OfferView(TypedDict):
    """An action of a flow, with the JSON Schema of its input. The rest is as in `/api/actions`."""

    action: str
    users: bool
    policies: PoliciesView
    mayChange: list[str]
    background: bool
    input: dict[str, object]


class FlowView(TypedDict):
    """A flow and those of its actions that a schedule may name."""

    flow: str
    actions: list[OfferView]


class FlowsView(TypedDict):
    """The flows of the deployment; for a user, those with an action that users may schedule."""

    flows: list[FlowView]


class ActionsView(TypedDict):
    """The actions of all flows."""

    actions: list[ActionView]


class PauseView(TypedDict):
    """A pause that has not ended."""

    since: IsoTime
    note: str
    until: IsoTime | None


class PrincipalView(TypedDict):
    """Whom the action runs as."""

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
    """An expression as a put keeps it, in words, with its next fire times, and what to mind."""

    cron: str
    words: str
    timezone: str | None
    upcoming: list[FireTime]
    warnings: list[str]


class ForecastSums(TypedDict):
    """What is `due` in a span: `fires` of crons, what is recorded and `waiting`, `jobs`. `added` is
    what the schedule that is not saved would add.
    """

    due: int
    fires: int
    waiting: int
    jobs: int
    added: int


class FullestView(TypedDict):
    """The minute in which the most is due."""

    at: IsoTime
    due: int


class OverView(TypedDict):
    """A window in which more is `due` than `most`. If what is too much waits, all of it has begun
    by `clearedAt`; null if that is not within the span.
    """

    at: IsoTime
    due: int
    most: int
    clearedAt: IsoTime | None


class BoundView(TypedDict):
    """The most that may be due in each minute, hour or day of the clock: what the stack has shown
    (`measured`), what an operator `ordered`, or what was `given`; null if it is `unknown`. Then the
    first windows that are over, and the shortest `spread` in seconds with which none is.
    """

    kind: Literal["stack", "limit", "given"]
    scope: str
    most: int | None
    per: Per
    source: Literal["measured", "ordered", "given", "unknown"]
    said: str
    over: list[OverView]
    overCount: int
    spread: int | None
    spreadSaid: str


class ForecastCost(TypedDict):
    """The read units that a forecast takes on DynamoDB, by the last hourly count; null before the
    first. Unless it is `agreed`, nothing was read.
    """

    readUnits: int | None
    schedules: int | None
    countedAt: IsoTime | None
    agreed: bool


ForecastView = TypedDict(
    "ForecastView",
    {
        "at": IsoTime,
        "from": IsoTime,
        "to": IsoTime,
        "due": list[int],
        "delivered": list[int] | None,
        "added": list[int] | None,
        "sums": ForecastSums,
        "schedules": int,
        "unreadable": int,
        "paused": int,
        "partly": bool,
        "fullest": FullestView | None,
        "bounds": list[BoundView],
        "cost": ForecastCost | None,
        "cursor": str | None,
    },
)
"""How many occurrences are due in each minute: `due` and `added` have a number for each minute
`from` an instant on, and so has `delivered` of what lies behind. `schedules` are the rows that were
read; those that are `unreadable` do not fire, nor do the times that pauses leave out (`paused`). If
it is told only `partly`, more waits than was counted. With a `cursor`, these are the sums so far,
and there are no bounds yet.
"""


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


class JobView(TypedDict):
    """A job: one occurrence without a schedule, due `at` a time. Its other fields are those of a
    line of the history. It has `endedAt` once nothing more becomes of it.
    """

    user: NotRequired[str]
    id: str
    key: str | None
    flow: str
    action: str
    input: object
    at: IsoTime
    policies: JobPoliciesView
    state: ShownState
    reason: EndReason | None
    labels: dict[str, str]
    attempts: int
    error: str | None
    failures: list[FailureView]
    failureHook: str | None
    nextAttemptAt: IsoTime | None
    begunAt: IsoTime | None
    updatedAt: IsoTime
    createdAt: IsoTime
    endedAt: IsoTime | None


class JobsPage(TypedDict):
    """Jobs ordered by id. `cursor` asks for the next page; null: there is none."""

    jobs: list[JobView]
    cursor: str | None


class HistoryPage(TypedDict):
    """A page of the history, the newest first."""

    history: list[OccurrenceView]
    cursor: str | None


class DefinitionView(TypedDict):
    """The fire times of a schedule from `since` on, and whether it fired at them."""

    since: IsoTime
    cron: str
    timezone: str | None
    standing: Literal["active", "paused", "done", "deleted"]
    pausedUntil: IsoTime | None
    policies: PoliciesView


class EventView(TypedDict):
    """A transition of an occurrence beyond claim, begin and settle. `note` says why."""

    at: IsoTime
    before: ShownState | Literal["failed"]
    after: ShownState | Literal["failed"]
    note: str | None


class ExplanationView(TypedDict):
    """The explanation of one time. `said` are its sentences, the verdict first.

    `definition` was in force then. `occurrence` is the history's entry of that time, which may be a
    range, with its `events`. If the time is no fire time, `before` and `after` are those beside it.
    `upcoming` are the next fire times from now on.
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
    those that have `fired`. `outcomes` counts the times by what the history has of them. It takes
    at least so many ticks, and seconds. If the schedule is `paused`, or `heldBy` the pause of a
    group, the backfill waits for the end of that.
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
    """A backfill, and how far it is: times up to the `cursor` were brought, or had fired before.
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


class RunView(TypedDict):
    """A run by hand, handed to dispatch. The history has its outcome."""

    origin: str
    nominalFireTime: IsoTime
    state: ShownState


class ExportedOccurrence(OccurrenceView):
    """An occurrence of an export. `body` is what its caller sent, if the call came from outside."""

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
    """The result of one call: how many it changed (if it is a dry run: would change), and how many
    it declined. It names some of both. `cursor` goes on after them; null: there are no others.
    """

    dryRun: bool
    changed: int
    declined: int
    first: list[OccurrenceName]
    firstDeclined: list[DeclinedOccurrence]
    cursor: str | None


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
    """Whether the row was wrong and was mended, and its next time."""

    mended: bool
    nextFireAt: IsoTime | None


class CountView(TypedDict):
    """A count. If `more`, it may be more."""

    count: int
    more: bool


class CountedView(TypedDict):
    """The number of schedules in each state, as the last hourly count found them. Of these,
    `unindexed` have no row, `stale` have a wrong one, and no tick takes the rows of `overdue`.
    """

    at: IsoTime
    active: int
    paused: int
    done: int
    unindexed: int
    stale: int
    overdue: int


class GoneFlow(TypedDict):
    """A flow, or a `flow/action`, that is not deployed, and how many active schedules name it."""

    flow: str
    schedules: int


class GoneView(TypedDict):
    """The active schedules whose flow or action is not deployed, as the last deployment or hour
    counted them, and the five flows or actions that most of them name. Their times die.
    """

    at: IsoTime
    count: int
    first: list[GoneFlow]


class VerifiedView(TypedDict):
    """Up to when the hourly verification has seen every schedule, when it ended that, and how many
    `faults` it found: times that do not add up; null if that is not known. It has found
    `faultsSince` in what it has seen of the times since.
    """

    until: IsoTime | None
    endedAt: IsoTime | None
    faults: int | None
    faultsSince: int


class WorkerView(TypedDict):
    """The report of a tick, or of a run in the background. One without an end is at work; once its
    longest life is over, it is `lost`. `counts` are those of its numbers that are not 0.
    """

    id: str
    kind: Literal["tick", "background"]
    state: Literal["working", "ended", "lost"]
    startedAt: IsoTime
    endedAt: IsoTime | None
    milliseconds: int | None
    latenessMilliseconds: int
    counts: dict[str, int]


class TicksView(TypedDict):
    """The last five ticks, the newest first. If none is at work or has ended for `silentAfter`
    seconds, it is `silent`: nothing fires.
    """

    silent: bool
    silentAfter: int
    last: list[WorkerView]


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
    """How many limits stand, and five of them: first those that have no place."""

    count: int
    first: list[LimitView]


class PausesInShort(TypedDict):
    """How many pauses of groups hold, and the newest five."""

    count: int
    first: list[GroupPauseView]


class BackfillsInShort(TypedDict):
    """How many backfills stand, and the newest five."""

    count: int
    first: list[BackfillView]


class RestoredView(TypedDict):
    """A restore from a backup that is not recovered, so that no tick claims: the last instant that
    the store noted, that of its witness, and when a tick found it.
    """

    noted: IsoTime | None
    witnessed: IsoTime
    foundAt: IsoTime


class FailingFlow(TypedDict):
    """A flow, and how many of the dead are of it."""

    flow: str
    dead: int


class FailingUser(TypedDict):
    """A user, and how many of the dead are of that user; empty: of static schedules."""

    user: str
    dead: int


class FailingView(TypedDict):
    """The flows and the users that most of the newest dead of the last day are of: `of` so many."""

    of: int
    flows: list[FailingFlow]
    users: list[FailingUser]


class WrongView(TypedDict):
    """One thing that is wrong, in a sentence. Its `kind` says where to look next."""

    kind: Kind
    said: str


class BellsView(TypedDict):
    """The bells of EventBridge that may not be as their rows require, and since when the first.
    They `areLate` if that is for two hours.
    """

    pending: CountView
    since: IsoTime | None
    areLate: bool


class OverviewView(TypedDict):
    """What is `wrong`, the worst first. The rows and jobs that are due, and those due for more
    than `lateAfter` seconds, which is two ticks. Occurrences by state, those that died in the last
    day and whose they are, and the rows that cannot be read. A restore for which no tick claims.
    The last ticks, the pauses that hold, the limits and the backfills that stand. What the hourly
    work has found last. The bells, if EventBridge rings.
    """

    at: IsoTime
    wrong: list[WrongView]
    lateAfter: int
    due: CountView
    late: CountView
    queued: CountView
    running: CountView
    scheduled: CountView
    retrying: CountView
    dead: CountView
    failing: FailingView
    unreadable: CountView
    restored: RestoredView | None
    ticks: TicksView
    pauses: PausesInShort
    limits: LimitsInShort
    backfills: BackfillsInShort
    counted: CountedView | None
    gone: GoneView | None
    verified: VerifiedView
    bells: BellsView | None


class WorkersView(TypedDict):
    """Reports of workers, the newest first."""

    workers: list[WorkerView]


class LockView(TypedDict):
    """A named lock: its owner has it until a time, unless it is extended. Then it is `free`."""

    name: str
    state: Literal["held", "free"]
    owner: str
    since: IsoTime
    until: IsoTime


class LocksView(TypedDict):
    """The named locks."""

    locks: list[LockView]


class OperationView(TypedDict):
    """An operation. `outcome` is `done`, `dry_run`, `failed`, or the code of the error that refused
    it. It is `begun` if the operation is under way, or its process died.
    """

    id: str
    at: IsoTime
    who: str
    verb: str
    user: str | None
    target: str
    why: str
    outcome: str


class OperationsView(TypedDict):
    """A page of operations. `cursor` asks for the next one; null: there is none."""

    operations: list[OperationView]
    cursor: str | None


class GroupPausesView(TypedDict):
    """Pauses of users, of flows, or of everything."""

    pauses: list[GroupPauseView]


class LimitsView(TypedDict):
    """Limits of users, of flows, or of actions."""

    limits: list[LimitView]


class RecoveredView(TypedDict):
    """A recovery after a restore. `schedules` have `recorded` times that are missed, and `fires`
    that ticks may fire now. `lost` were under way in the backup; a dry run does not know them. If
    it is not `complete`, repeat it. `restored` is false if there is nothing to recover.
    """

    how: Recovery
    dryRun: bool
    restored: bool
    noted: IsoTime | None
    witnessed: IsoTime | None
    until: IsoTime | None
    schedules: int
    fires: int
    recorded: int
    lost: int
    complete: bool


class ProblemView(TypedDict):
    """One problem. `field` is a JSON pointer into the body, empty for the whole body. For a header,
    or a part of the path or query, it is the name.
    """

    field: str
    code: Code
    message: str


class ErrorView(TypedDict):
    """An error, and what to do. Every refusal has this form, also one of the gateway before any of
    our code runs: then the code is `refused` or `unavailable`. `problems` lists all that is wrong
    with the request; `limit` and `value` name a quota.
    """

    error: str
    message: str
    problems: NotRequired[list[ProblemView]]
    limit: NotRequired[str]
    value: NotRequired[int]


class PutView(TypedDict):
    """The answer to one schedule of a batch: its status, and the schedule or the error. A schedule
    that fires more often than the tick comes has a `warning`. One that a limit of the minute
    refuses may be put again `retryAfter` so many seconds.
    """

    status: int
    schedule: ScheduleView | None
    warning: str | None
    error: ErrorView | None
    retryAfter: int | None


class PutViews(TypedDict):
    """The answers to a batch, in its order."""

    schedules: list[PutView]


class EnqueuedView(TypedDict):
    """The answer to one job of a batch: its status, and its job or its error."""

    status: int
    job: JobView | None
    error: ErrorView | None


class EnqueuedViews(TypedDict):
    """The answers to a batch, in its order."""

    jobs: list[EnqueuedView]
