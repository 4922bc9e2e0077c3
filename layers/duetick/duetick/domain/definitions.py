"""Definitions: the user's fields, dated. They outlive the record, and verify reads them."""

from typing import Literal, NamedTuple, TypeAlias

from duetick.domain.expression import TZDATA_VERSION, digest_of
from duetick.domain.pausing import resume
from duetick.domain.policies import Policies
from duetick.domain.schedule import Record

Standing: TypeAlias = Literal["active", "paused", "done", "deleted", "unknown"]
"""Whether a schedule fires under a definition, and why not: it is done if its limit is used up. An
earlier release did not say: that is unknown."""


class Definition(NamedTuple):
    """The fire times of a schedule from `since` on, and whether it fires at them.

    It takes the place of the definition since `before`, if there is one (0: none). The policies are
    those without a pause: a pause with an end is `paused_until`. `zone` is the digest of the zone's
    rules; None if it has no zone, or one that cannot be read. The flow decides which pauses of
    groups apply; an earlier release did not say it: that is None.
    """

    user_id: str
    key: str
    since: int
    cron: str
    timezone: str | None
    policies: Policies
    anchor: int
    standing: Standing
    paused_until: int | None = None
    zone: str | None = None
    tzdata: str = TZDATA_VERSION
    before: int = 0
    flow: str | None = None

    @property
    def is_last(self) -> bool:
        """True if the schedule is deleted."""
        return self.standing == "deleted"


def define(record: Record, since: int, standing: Standing, *, before: int = 0) -> Definition:
    """Return the definition that a record gives from an instant on."""
    return Definition(
        user_id=record.user_id,
        key=record.key,
        since=since,
        cron=record.cron,
        timezone=record.timezone,
        policies=resume(record).policies if record.pause else record.policies,
        anchor=record.anchor,
        standing=standing,
        paused_until=record.pause.until if record.pause else None,
        zone=digest_of(record.timezone),
        before=before,
        flow=record.flow,
    )


def standing_of(record: Record) -> Standing:
    """Return the standing of a record that is not deleted."""
    if not record.enabled:
        return "paused"
    return "done" if record.used_up else "active"
