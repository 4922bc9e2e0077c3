"""The index row that a record requires, and its comparison with the existing row."""

from dataclasses import replace
from typing import Final, Literal, TypeAlias

from duetick.domain.expression import digest_of
from duetick.domain.firing import Times
from duetick.domain.identity import is_job
from duetick.domain.occurrence import IndexRow, NewOccurrence
from duetick.domain.pausing import is_paused
from duetick.domain.policies import MINUTE_MS
from duetick.domain.schedule import Record

Disagreement: TypeAlias = Literal["unindexed", "stray", "stale", "unreadable", "done"]
"""The kind of a difference between record and row: see `duetick.core.store.Difference`."""

OVERDUE_MS: Final = 60 * MINUTE_MS
"""A row that is due for longer is overdue: the slowest cadence is an hour."""


def row_of(record: Record, next_fire_at: int) -> IndexRow:
    """Return the row that a record requires, due at a time."""
    return IndexRow(
        user_id=record.user_id,
        key=record.key,
        cron=record.cron,
        timezone=record.timezone,
        next_fire_at=next_fire_at,
        flow=record.flow,
        anchor=record.anchor,
        redefined_at=record.redefined_at,
        policies=record.policies,
    )


def new_occurrence(record: Record, nominal_at: int, origin: str, now: int) -> NewOccurrence:
    """Return the occurrence of a record that a caller requests, due now."""
    return NewOccurrence(
        user_id=record.user_id,
        key=record.key,
        cron=record.cron,
        timezone=record.timezone,
        nominal_at=nominal_at,
        origin=origin,
        due_at=now,
        flow=record.flow,
        redefined_at=record.redefined_at,
        policies=record.policies,
    )


def fresh_row(record: Record, after: int) -> IndexRow | None:
    """Return the row with the first time after an instant; None if the record never fires again."""
    if record.used_up:
        return None
    row = row_of(record, after)
    next_fire_at = Times.of(row).after(after)
    return None if next_fire_at is None else replace(row, next_fire_at=next_fire_at)


def accounted_until(source: Record | IndexRow, mark: int | None, now: int) -> int:
    """Return the instant up to which all times are accounted for. It may lie ahead."""
    return max(now, source.redefined_at, mark or 0)


def has_drifted(row: IndexRow, mark: int | None, now: int) -> bool:
    """Return True if a record's row waits for another time than the next one after its mark.

    A row that is due, or was set back, proves nothing. Raises ValueError if it cannot be read.
    """
    seen = accounted_until(row, mark, now)
    return row.next_fire_at > seen and row.next_fire_at != Times.of(row).after(seen)


def is_overdue(row: IndexRow | None, now: int) -> bool:
    """Return True if the row is due for so long that no tick can have seen it."""
    return row is not None and row.next_fire_at < now - OVERDUE_MS


def has_old_rules(record: Record | None, zone: str | None) -> bool:
    """Return True if a schedule was defined under other rules of its zone than today's.

    `zone` is the digest of those rules. None says that it is not known, or that there is no zone.
    """
    today = digest_of(record.timezone) if record and record.done_at is None else None
    return today is not None and zone not in (None, today)


def disagreement(
    record: Record | None, row: IndexRow | None, mark: int | None, now: int
) -> Disagreement | None:
    """Return the difference between a record and its row, or None.

    A row that never had a record (`redefined_at` 0) is left alone. A row that is known to be
    unreadable is the caller's matter. A job has no row.
    """
    if record and is_job(record.key):
        return None
    if record is None or not record.enabled:
        return "stray" if row and (record or row.redefined_at) else None
    try:
        if row is None:
            return _without_row(record, mark, now)
        required = record.done_at is None and row == row_of(record, row.next_fire_at)
        agrees = required and not has_drifted(row, mark, now)
    except ValueError:
        return "unreadable"
    return None if agrees else "stale"


def _without_row(record: Record, mark: int | None, now: int) -> Disagreement | None:
    if _needs_row(record, mark, now):
        return "unindexed"
    return None if record.done_at is not None or is_paused(record, now) else "done"


def _needs_row(record: Record, mark: int | None, now: int) -> bool:
    """Return True if a time is to come, or a past time is not accounted for."""
    if record.used_up:
        return False
    since = max(record.redefined_at, mark or 0)
    passed = Times.of(row_of(record, now)).newest(since, now)
    return passed is not None or fresh_row(record, max(now, since)) is not None
