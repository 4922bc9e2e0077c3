"""Jobs: one occurrence without a schedule, of origin `job:<id>`.

            put                    lease           begin · settle
  enqueue ──────▶ scheduled, due ──────▶ queued ──────────────────▶ … ─▶ ended: kept, then purged

A job has a book of its own, under a key that no schedule can have. The record in it says what to
run; it has neither row nor definitions, so that nothing counts or verifies it as a schedule. Its
occurrence is due once, and waits for pauses and limits as whatever stands beside a schedule. The
record is marked as the occurrence ends: until then the job is pending.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from duetick.domain.ending import KEPT_DONE_MS
from duetick.domain.errors import InvalidSchedule
from duetick.domain.identity import check_key, job_key
from duetick.domain.occurrence import Occurrence, storable
from duetick.domain.overlap import beside
from duetick.domain.policies import DAY, Policies
from duetick.domain.schedule import Record, Schedule
from duetick.domain.states import TERMINAL, Reason, State
from duetick.domain.transitions import has_ended

if TYPE_CHECKING:
    from duetick.domain.retention import Retention

FURTHEST_MS: Final = 366 * DAY * 1_000
"""The furthest that the due time of a job may be off: a year, also one that has 366 days."""

KEY_KEPT_MS: Final = DAY * 1_000
"""The time for which a job's key makes nothing more."""

KEPT_DEAD_MS: Final = 90 * DAY * 1_000
"""The time for which a job that is dead is kept, so that it can be retried, unless its retention is
another.
"""

LONGEST_SHOWN: Final = 128
"""The most characters that a job which was refused keeps of a name in its row."""

OF_JOBS: Final = ("delivery", "retry", "priority", "timeout", "on_failure")
"""The policies that a job has. The others are about a schedule's times."""


class Job(NamedTuple):
    """A job: what it runs, and its occurrence."""

    record: Record
    occurrence: Occurrence

    @property
    def id(self) -> str:
        """The id of the job, which is that of its occurrence."""
        return self.occurrence.id

    @property
    def is_pending(self) -> bool:
        """True if the job has not ended."""
        return not has_ended(self.occurrence)


class InboxRow(NamedTuple):
    """A row that another application wrote: the job that it asks for. The input is JSON as text."""

    id: int
    user_id: str
    flow: str
    action: str
    input: str | None = None
    due_at: int | None = None
    key: str | None = None


def make_refused_job(row: InboxRow, name: str, why: str, now: int) -> Job:
    """Return the job of a row that is wrong: it is dead, and says why. Of a name that is too long
    it has the beginning.
    """
    record = Record(
        user_id=row.user_id,
        key=job_key(name),
        cron=cron_of(now),
        flow=_cut(row.flow),
        action=_cut(row.action),
        policies=policies_of_job(Policies()),
        version=1,
        redefined_at=now,
        anchor=now,
        created_at=now,
        updated_at=now,
    )
    waiting = _occurrence_of(record, name, None if row.key is None else _cut(row.key), now)
    text = storable(why)
    dead = replace(waiting, state=State.DEAD, reason=Reason.REJECTED, error=text, told=text)
    return Job(mark_job(record, dead), dead)


def _cut(name: str) -> str:
    """Return a name that may be none: a bounded part of it, in characters that can be seen."""
    cut = storable(name[:LONGEST_SHOWN])
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in cut)


def policies_of_job(given: Policies) -> Policies:
    """Return the policies of a job: those that it may have, and the defaults of the others."""
    return beside(Policies(**{name: getattr(given, name) for name in OF_JOBS}))


def due_at_of(asked: int | None, now: int, field: str = "at") -> int:
    """Return the due time of a job. A time that has passed is now. Raises InvalidSchedule, which
    names the `field`, if it is further off than a year.
    """
    if asked is None or asked <= now:
        return now
    if asked > now + FURTHEST_MS:
        days = FURTHEST_MS // (DAY * 1_000)
        said = f"is more than {days} days from now; a schedule can fire that late."
        raise InvalidSchedule(field, said, "out_of_range")
    return asked


def new_job(
    wanted: Schedule, name: str, due_at: int, now: int, asked_key: str | None = None
) -> Job:
    """Return the job of a definition, due at a time. `name` is the id of its occurrence, and
    `asked_key` the key that its caller gave.

    The definition is checked, but for its key and its cron, which are the job's.
    """
    key = job_key(name)
    check_key(wanted.user_id, key)
    wanted.policies.retry.check_waits()
    record = replace(
        Record.of(wanted),
        key=key,
        cron=cron_of(due_at),
        timezone=None,
        enabled=True,
        external_id=None,
        pause=None,
        policies=policies_of_job(wanted.policies),
        version=1,
        redefined_at=now,
        anchor=due_at,
        created_at=now,
        updated_at=now,
    )
    return Job(record, _occurrence_of(record, name, asked_key, now))


def _occurrence_of(record: Record, name: str, asked_key: str | None, now: int) -> Occurrence:
    return Occurrence(
        user_id=record.user_id,
        key=record.key,
        cron=record.cron,
        timezone=None,
        nominal_at=record.anchor,
        origin=record.key,
        id=name,
        flow=record.flow,
        state=State.SCHEDULED,
        due_at=record.anchor,
        priority=record.policies.priority,
        redefined_at=record.redefined_at,
        policies=record.policies,
        idempotency_key=asked_key,
        labels=record.labels,
        created_at=now,
        updated_at=now,
    )


def cron_of(due_at: int) -> str:
    """Return the expression that names the due time, to the second, in UTC."""
    moment = datetime.fromtimestamp(due_at // 1_000, UTC)
    return f"at({moment:%Y-%m-%dT%H:%M:%S})"


def keep_job(record: Record, occurrence: Occurrence, retention: "Retention") -> Record:
    """Return the record of a job, kept for as long as its occurrence. One that an operator deleted
    leaves at once.
    """
    if record.done_at is None or occurrence.state not in TERMINAL:
        return record
    return replace(record, purge_at=retention.expires_at(occurrence))


def mark_job(record: Record, occurrence: Occurrence) -> Record:
    """Return the record of a job with the marks of its end, or without them if it is under way."""
    if not has_ended(occurrence):
        under_way = record.done_at is None
        return record if under_way else replace(record, done_at=None, purge_at=None)
    at, kept = occurrence.updated_at, KEPT_DONE_MS
    if occurrence.state is State.DEAD:
        kept = KEPT_DEAD_MS
    elif occurrence.state is State.DELETED:
        kept = 0
    return replace(record, done_at=at, purge_at=at + kept)
