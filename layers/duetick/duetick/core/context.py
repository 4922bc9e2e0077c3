"""What an action is told of the occurrence that it runs for."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from duetick.domain.errors import ConfigurationError
from duetick.domain.expression import targets
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.schedule import Occurrence, Principal, Schedule
from duetick.ports import Transaction

if TYPE_CHECKING:
    from duetick.core.agents import AgentSchedules

OpenSchedules: TypeAlias = Callable[[str, str], "AgentSchedules"]
Settling: TypeAlias = Callable[[], AbstractContextManager[Transaction]]


@dataclass(frozen=True, slots=True)
class Context:
    """Times are milliseconds since the epoch. The principal is whom the action runs as.

    `targets` are the parts of a day map that are due, as they are written. `catching_up` says
    that the nominal time is past its grace: this is a misfire made good.
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
    targets: tuple[str, ...] = ()
    catching_up: bool = False
    settling: Settling | None = field(default=None, repr=False, compare=False)
    open_schedules: OpenSchedules | None = field(default=None, repr=False, compare=False)

    @property
    def lateness_ms(self) -> int:
        """How long after its nominal time it was dispatched."""
        return self.dispatched_at - self.nominal_at

    @property
    def schedules(self) -> "AgentSchedules":
        """The schedules of the user that the action acts for: to read, make, pause, delete."""
        if self.open_schedules is None:
            raise ConfigurationError("ctx.schedules works while dispatch runs the action.")
        return self.open_schedules(self.principal.user_id, self.flow)

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Effects that are committed with the success of this attempt, or not at all.

        The end of the `with` block settles the attempt: put everything that must not happen
        twice inside it, and use it once.
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
        """The context of a begun occurrence, by the schedule as it is now."""
        policies = schedule.policies
        return cls(
            flow=schedule.flow,
            schedule_id=occurrence.schedule_id,
            principal=_own(schedule.runs_as),
            cron=schedule.cron,
            timezone=schedule.timezone,
            origin=occurrence.origin,
            nominal_at=occurrence.nominal_at,
            dispatched_at=now,
            attempt=occurrence.attempts,
            occurrence_id=occurrence.id,
            targets=targets(
                schedule.cron,
                schedule.timezone,
                occurrence.nominal_at,
                gap=policies.gap,
                repeat=policies.repeat,
            ),
            catching_up=_catching_up(occurrence, schedule),
            settling=settling,
            open_schedules=open_schedules,
        )


def _own(principal: Principal) -> Principal:
    """A copy: what an action changes in it must not be there for the next one."""
    return replace(principal, attributes=dict(principal.attributes))


def _catching_up(occurrence: Occurrence, schedule: Schedule) -> bool:
    """Told from when it was made: a retry long after an on-time claim catches nothing up."""
    late = occurrence.created_at - occurrence.nominal_at
    return occurrence.origin == SCHEDULE_ORIGIN and late > schedule.policies.on_time_ms
