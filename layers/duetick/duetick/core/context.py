"""The context of an action: the occurrence that it runs for, and its schedule."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict

from duetick.core.flow_settings import FlowSettings
from duetick.domain.errors import ConfigurationError
from duetick.domain.expression import targets
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.schedule import Json, Occurrence, Principal, Schedule
from duetick.ports import Transaction

if TYPE_CHECKING:
    from typing import Unpack

    from duetick.core.agents import AgentSchedules
    from duetick.core.definitions import GivenPolicies
    from duetick.domain.jobs import Job


class JobFields(TypedDict, total=False):
    """The fields of a job besides action and input. `delay` is in seconds; `at` is milliseconds, or
    a text of the API.
    """

    flow: str
    delay: float
    at: int | str
    key: str
    policies: "GivenPolicies"
    labels: Mapping[str, str]


class EnqueueJob(Protocol):
    """The function by which an action enqueues a job."""

    def __call__(
        self, context: "Context", action: str, given: Json, /, **more: "Unpack[JobFields]"
    ) -> "Job":
        """Return the job."""


OpenSchedules: TypeAlias = Callable[[str, str], "AgentSchedules"]
Settling: TypeAlias = Callable[[], AbstractContextManager[Transaction]]


@dataclass(frozen=True, slots=True)
class Context:
    """The context of an action. Times are milliseconds since the epoch.

    The action runs as the `principal`. `labels` are those of the schedule as this attempt began.
    `targets` are the due targets of a day map, as written. If the nominal time was past its grace,
    the run catches a misfire up, and `catching_up` is True. `body` is from the outside caller who
    brought the occurrence; None if nobody did. `settings` are those of the deployment.
    """

    flow: str
    schedule_id: str
    principal: Principal
    cron: str
    timezone: str | None
    origin: str
    nominal_at: int
    dispatched_at: int
    attempt: int
    occurrence_id: str
    labels: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    catching_up: bool = False
    body: Json = None
    settings: FlowSettings = field(default_factory=FlowSettings, compare=False)
    settling: Settling | None = field(default=None, repr=False, compare=False)
    open_schedules: OpenSchedules | None = field(default=None, repr=False, compare=False)
    enqueue_job: EnqueueJob | None = field(default=None, repr=False, compare=False)

    @property
    def lateness_ms(self) -> int:
        """The milliseconds from the nominal time to the dispatch."""
        return self.dispatched_at - self.nominal_at

    @property
    def schedules(self) -> "AgentSchedules":
        """The schedules of the user for whom the action runs: to read, create, pause, delete."""
        if self.open_schedules is None:
            raise ConfigurationError("ctx.schedules works while dispatch runs the action.")
        return self.open_schedules(self.principal.user_id, self.flow)

    def enqueue(self, action: str, given: Json = None, /, **more: "Unpack[JobFields]") -> "Job":
        """Enqueue a job of the principal's: `action` runs once with that input, now or later.

        Within the block of `transaction()` it is there if that is committed, and not otherwise;
        elsewhere it is there at once. The job of a `key` is made once in a day: an action that may
        run again gives one. Without a `flow` it is this one.
        """
        if self.enqueue_job is None:
            raise ConfigurationError("ctx.enqueue() works while dispatch runs the action.")
        return self.enqueue_job(self, action, given, **more)

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Open the transaction of this attempt: its effects are committed with its success, or not.

        The end of the `with` block settles the attempt. Put everything that must not happen twice
        inside it, and use it once.
        """
        if self.settling is None:
            raise ConfigurationError("ctx.transaction() works while dispatch runs the action.")
        return self.settling()

    @classmethod
    def of(
        cls,
        schedule: Schedule,
        occurrence: Occurrence,
        now: int,
        settling: Settling | None = None,
        open_schedules: OpenSchedules | None = None,
    ) -> "Context":
        """Return the context of a begun occurrence, with the schedule as it is now."""
        return cls(
            flow=schedule.flow,
            schedule_id=occurrence.schedule_id,
            principal=_copy(schedule.runs_as),
            cron=schedule.cron,
            timezone=schedule.timezone,
            origin=occurrence.origin,
            nominal_at=occurrence.nominal_at,
            dispatched_at=now,
            attempt=occurrence.attempts,
            occurrence_id=occurrence.id,
            labels=dict(schedule.labels),
            targets=_targets(schedule, occurrence),
            catching_up=_is_catching_up(occurrence, schedule),
            settling=settling,
            open_schedules=open_schedules,
        )


def _targets(schedule: Schedule, occurrence: Occurrence) -> tuple[str, ...]:
    """Return the targets that are due.

    A failure hook has none: it may even tell of a cron that cannot be read.
    """
    if occurrence.death:
        return ()
    p, at = schedule.policies, occurrence.nominal_at
    return targets(schedule.cron, schedule.timezone, at, gap=p.gap, repeat=p.repeat)


def _copy(principal: Principal) -> Principal:
    """Copy the principal, so that no action sees the changes of another."""
    return replace(principal, attributes=dict(principal.attributes))


def _is_catching_up(occurrence: Occurrence, schedule: Schedule) -> bool:
    """Return True if the occurrence was claimed past its grace. A late retry does not count."""
    late = occurrence.created_at - occurrence.nominal_at
    return occurrence.origin == SCHEDULE_ORIGIN and late > schedule.policies.on_time_ms
