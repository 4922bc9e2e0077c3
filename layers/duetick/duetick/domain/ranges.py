"""The ranges of the ledger: a range is one cancelled occurrence for several nominal times."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from duetick.domain.firing import Times, TimesOutside, move_past_mark
from duetick.domain.group_pauses import Hole
from duetick.domain.occurrence import IndexRow, Missed, Occurrence, range_of
from duetick.domain.pausing import resume
from duetick.domain.rows import row_of
from duetick.domain.schedule import Record
from duetick.domain.states import Reason


def range_of_due(
    row: IndexRow | None, mark: int | None, now: int, reason: Reason
) -> tuple[Occurrence, ...]:
    """Return the times up to `now` that a row is due for and no claim took, as one range."""
    if row is None or row.next_fire_at > now:
        return ()
    times = Times.of(row)
    try:
        fresh = move_past_mark(row, mark)
        if fresh is None or fresh.next_fire_at > now:
            return ()
        first = fresh.next_fire_at
        missed = Missed(first, times.newest(first, now) or first, 1 + times.count(first, now))
    except ValueError:
        missed = Missed(row.next_fire_at, row.next_fire_at, 1)
    return (range_of(row, missed, reason, now),)


def range_within(record: Record, since: int, now: int, reason: Reason) -> tuple[Occurrence, ...]:
    """Return the times in (since, now] for which the record had no row, as one range."""
    try:
        return range_of_row(row_of(record, now), since, now, reason, now)
    except ValueError:
        return ()


def range_of_row(
    row: IndexRow, since: int, until: int, reason: Reason, now: int
) -> tuple[Occurrence, ...]:
    """Return the times in (since, until] of a row's expression, as one range.

    Raises ValueError if the expression cannot be read.
    """
    times = Times.of(row)
    first, last = times.after(since), times.newest(since, until)
    if first is None or last is None:
        return ()
    return (range_of(row, Missed(first, last, times.count(since, until)), reason, now),)


def ranges_before(
    row: IndexRow, since: int, pauses: Sequence[Hole], now: int
) -> tuple[Occurrence, ...]:
    """Return as missed ranges the times after `since` that lie before or between some pauses.

    Raises ValueError if the expression cannot be read.
    """
    times = TimesOutside(row.cron, row.timezone, row.anchor, row.policies, tuple(pauses))
    gaps = times.gaps(since, max((end - 1 for _, end in pauses), default=since))
    return tuple(one for gap in gaps for one in range_of_row(row, *gap, Reason.MISSED, now))


def leave_out(whole: Occurrence, known: Iterable[int]) -> list[Occurrence]:
    """Return what remains of `whole`, a time or a range, without the known times, which have their
    own occurrences.

    Such an occurrence has origin `schedule`: it was claimed ahead of a change, or a caller
    requested it.
    """
    first, last = whole.nominal_at, whole.range_end
    inside = sorted(time for time in known if first <= time <= (last or first))
    if not inside:
        return [whole]
    if last is None:
        return []
    times = Times(whole.cron, whole.timezone, first, whole.policies)
    parts: list[Occurrence] = []
    start: int | None = first
    for time in inside:
        if start is not None:
            parts += _part(whole, times, start, time - 1)
            start = times.after(time) if time < last else None
    return parts if start is None else [*parts, *_part(whole, times, start, last)]


def divide(whole: Occurrence, at: int) -> list[Occurrence]:
    """Return the range up to `at`, and each of its times beyond as a range of one.

    The first of them takes the place of `whole`. Every one keeps its reason.
    """
    first, last = whole.nominal_at, whole.range_end
    if last is None or not at < last or first == last:
        return [whole]
    times = Times(whole.cron, whole.timezone, first, whole.policies)
    beyond = times.between(max(first, at), last)
    parts = _part(whole, times, first, at) or _part(whole, times, first, first)
    return parts + [part for time in beyond for part in _part(whole, times, time, time)]


def _part(whole: Occurrence, times: Times, start: int, until: int) -> list[Occurrence]:
    """Return the times in [start, until] as a range, if there are any. `start` is one of them."""
    if until < start:
        return []
    last = times.newest(start, until) or start
    count = 1 + times.count(start, until)
    return [replace(whole, nominal_at=start, due_at=start, range_end=last, count=count)]


def range_of_pause(record: Record, now: int) -> tuple[Occurrence, ...]:
    """Return the times that a pause with an end kept from firing, as one range.

    The range begins at `redefined_at`. The pause moved the start of the window; the range ends
    before that start. Claims after the pause move the mark, so the mark does not limit the range.
    """
    pause, start = record.pause, record.policies.starts_at
    if pause is None or pause.until is None or start is None:
        return ()
    until = min(now, pause.until - 1, start - 1)
    return range_within(resume(record), record.redefined_at, until, Reason.PAUSED)


def range_unfired(
    record: Record, row: IndexRow | None, mark: int | None, now: int, reason: Reason
) -> tuple[Occurrence, ...]:
    """Return the unfired times that a change of timing or a delete ends: paused and due ones.

    If the row of an active schedule was lost, or could not be read, no claim took the times since.
    """
    if not record.enabled:
        since = max(record.redefined_at, mark or 0)
        return range_within(resume(record), since, now, Reason.PAUSED)
    return range_of_pause(record, now) + range_unclaimed(record, row, mark, now, reason)


def range_unclaimed(
    record: Record, row: IndexRow | None, mark: int | None, now: int, reason: Reason
) -> tuple[Occurrence, ...]:
    """Return the times up to `now` that no claim took: the due ones, or all since the mark if the
    row of an active schedule was lost.
    """
    if row or record.done_at is not None or record.used_up or not record.enabled:
        return range_of_due(row, mark, now, reason)
    return range_within(record, max(record.redefined_at, mark or 0), now, reason)
