"""The recovery of a row after its store was restored from a backup.

Between the backup and the restore ticks went on, and no record is left of what fired. The times
that were due by then are passed over: they become a range that says so.
"""

from dataclasses import replace
from typing import Final, Literal, NamedTuple, TypeAlias

from duetick.domain.firing import Times, decide, move_past_mark
from duetick.domain.occurrence import IndexRow, Missed, Occurrence, range_of
from duetick.domain.states import Reason

Recovery: TypeAlias = Literal["fire", "latest", "skip"]
"""The fate of unknown times: misfires as after downtime; the newest alone may fire; none fires."""

UNKNOWN: Final = (
    "unknown: the store was restored from a backup that is older; these times may have fired"
)
"""The error of a range, and the note of an occurrence, whose outcome a restore lost."""


class Passed(NamedTuple):
    """The row after its unknown times, and the range that has them, if there are any."""

    row: IndexRow | None
    unknown: tuple[Occurrence, ...] = ()


class Foreseen(NamedTuple):
    """The numbers of a row's times that a recovery lets fire, and that it records as missed."""

    fires: int = 0
    recorded: int = 0


def pass_over(
    row: IndexRow, mark: int | None, until: int, now: int, *, keeps_newest: bool
) -> Passed:
    """Pass over the times of a due row up to `until`. Nothing changes if there are none.

    With `keeps_newest`, the row stays due for the newest of them. Raises ValueError if the
    expression or the zone cannot be read.
    """
    fresh = move_past_mark(row, mark)
    if fresh is None or fresh.next_fire_at > until:
        return Passed(row)
    times, first, end = Times.of(fresh), fresh.next_fire_at, until
    if keeps_newest:
        newest = times.newest(first, until)
        if newest is None:
            return Passed(row)
        end = newest - 1
    last, count = times.newest(first, end) or first, 1 + times.count(first, end)
    whole = range_of(fresh, Missed(first, last, count), Reason.MISSED, now)
    following = times.after(end)
    after = None if following is None else replace(row, next_fire_at=following)
    return Passed(after, (replace(whole, error=UNKNOWN, told=UNKNOWN),))


def foresee(
    row: IndexRow,
    mark: int | None,
    until: int,
    now: int,
    how: Recovery,
    *,
    holes: tuple[tuple[int, int], ...] = (),
) -> Foreseen:
    """Return the effect of a recovery, and of the claim that follows it at once.

    That claim leaves out the times in `holes`. Raises ValueError if the expression or the zone
    cannot be read.
    """
    recorded, after = 0, move_past_mark(row, mark)
    if how != "fire":
        passed = pass_over(row, mark, until, now, keeps_newest=how == "latest")
        recorded, after = sum(one.count for one in passed.unknown), passed.row
        after = move_past_mark(after, mark) if after else None
    if after is None or after.next_fire_at > now:
        return Foreseen(0, recorded)
    decided = decide(after, now, 0, holes)
    return Foreseen(len(decided.fires), recorded + sum(one.count for one in decided.missed))
