"""Answers about the whole store: the operators' overview, faults, workers, locks, operations."""

from typing import Literal

from duetick.api.views.fields import IsoTime, TypedDict
from duetick.api.views.orders import BackfillsInShort, LimitsInShort, PausesInShort
from duetick.core.wrong import Kind
from duetick.domain.recovering import Recovery


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
    """A flow, or a `flow/action`, that is not deployed, and the number of active schedules that
    name it.
    """

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
    """The last pass of the hourly verification: the time up to which it has seen every schedule,
    its end, and the number of `faults`, which are times that do not add up; null if it is not
    known. The pass since has found `faultsSince` so far.
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


class RestoredView(TypedDict):
    """A restore from a backup that is not recovered, so that no tick claims: the last instant that
    the store noted, the instant of its witness, and the time at which a tick found the restore.
    """

    noted: IsoTime | None
    witnessed: IsoTime
    foundAt: IsoTime


class FailingFlow(TypedDict):
    """A flow, and how many of these dead it has."""

    flow: str
    dead: int


class FailingUser(TypedDict):
    """A user, and how many of these dead the user has. An empty user stands for static
    schedules.
    """

    user: str
    dead: int


class FailingView(TypedDict):
    """The flows and the users with the most of the newest dead of the last day. `of` is the number
    of these dead.
    """

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
    """The faults (`wrong`), the worst first. The rows and jobs that are due, and those due for more
    than `lateAfter` seconds, which is two ticks. Occurrences by state, those that died in the last
    day with their users and flows, and the rows that cannot be read. A restore for which no tick
    claims. The last ticks, the pauses that hold, the limits and the backfills that stand. The last
    results of the hourly work. The bells, if EventBridge rings.
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
