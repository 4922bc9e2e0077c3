"""Late edits: the reasons why a claimed occurrence may not begin any more."""

from duetick.domain.firing import Times
from duetick.domain.identity import SCHEDULE_ORIGIN, is_failure_hook, stands_beside
from duetick.domain.occurrence import Occurrence
from duetick.domain.schedule import Record
from duetick.domain.states import Reason


def why_cancelled(occurrence: Occurrence, record: Record | None) -> Reason | None:
    """Return the reason why a change after the claim cancels the occurrence, or None.

    Only a change of timing, a pause or a delete cancels. If the occurrence has begun once, or a
    backfill has brought it, only a delete or a disabling cancels it. A failure hook is cancelled by
    a delete, or if its schedule names none any more. If its row has no record (`redefined_at` 0),
    nothing does.
    """
    if occurrence.redefined_at == 0:
        return None
    if record is None or _is_of_deleted(occurrence, record):
        return Reason.SCHEDULE_DELETED
    if is_failure_hook(occurrence.origin):
        return None if record.policies.on_failure else Reason.SUPERSEDED
    if occurrence.attempts or stands_beside(occurrence.origin):
        return None if record.enabled or record.pause else Reason.DISABLED
    return (
        _why_unbegun_cancelled(occurrence, record) if occurrence.origin == SCHEDULE_ORIGIN else None
    )


def _why_unbegun_cancelled(occurrence: Occurrence, record: Record) -> Reason | None:
    if not record.enabled:
        return Reason.DISABLED
    if record.redefined_at == occurrence.redefined_at or _still_fires(occurrence, record):
        return None
    return Reason.SUPERSEDED


def _is_of_deleted(occurrence: Occurrence, record: Record) -> bool:
    """Return True if the occurrence began under a deleted schedule of the same name, or a backfill
    or a death of that one brought it.
    """
    is_its = occurrence.attempts > 0 or stands_beside(occurrence.origin)
    return is_its and occurrence.redefined_at < record.created_at


def _still_fires(occurrence: Occurrence, record: Record) -> bool:
    """Return True if the changed schedule also fires at the time that was claimed ahead."""
    nominal_at = occurrence.nominal_at
    times = Times(record.cron, record.timezone, record.anchor, record.policies)
    try:
        return nominal_at > record.redefined_at and times.names(nominal_at)
    except ValueError:
        return False
