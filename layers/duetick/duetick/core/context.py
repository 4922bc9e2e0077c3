"""What an action is told of the occurrence that it runs for."""

from dataclasses import dataclass

from duetick.domain.schedule import Occurrence, Principal


@dataclass(frozen=True, slots=True)
class Context:
    """Times are milliseconds since the epoch. The principal is whom the action runs as."""

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

    @property
    def lateness_ms(self) -> int:
        """How long after its nominal time it was dispatched."""
        return self.dispatched_at - self.nominal_at

    @classmethod
    def of(cls, flow: str, occurrence: Occurrence, principal: Principal, now: int) -> "Context":
        """The context of a begun occurrence."""
        return cls(
            flow=flow,
            schedule_id=occurrence.schedule_id,
            principal=principal,
            cron=occurrence.cron,
            timezone=occurrence.timezone,
            origin=occurrence.origin,
            nominal_at=occurrence.nominal_at,
            dispatched_at=now,
            attempt=occurrence.attempts,
            occurrence_id=occurrence.id,
        )
