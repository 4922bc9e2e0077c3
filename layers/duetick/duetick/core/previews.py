"""The next fire times for people: local time, UTC, and changes of the clock."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from duetick.core.wire import EPOCH, iso
from duetick.domain.attempts import counts_as_run
from duetick.domain.expression.zones import FAR_ZONES, Zone
from duetick.domain.firing import Times
from duetick.domain.rows import row_of
from duetick.domain.schedule import Json, Record, Schedule
from duetick.domain.states import State

if TYPE_CHECKING:
    from duetick.core.store import Store

UNBEGUN: Final = frozenset({State.SCHEDULED, State.QUEUED})
MOST_WAITING: Final = 1_000


@dataclass(frozen=True, slots=True)
class Preview:
    """A fire time. If a change of the clocks affects it, `clock` explains how."""

    at: int
    local: str
    clock: str | None

    def json(self) -> dict[str, Json]:
        """Return the fire time as the API shows it."""
        return {"utc": iso(self.at), "local": self.local, "clock": self.clock}


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of a zone's clock at an instant, from the local time that was `shown` to another."""

    at: int
    shown: int
    then: int

    @property
    def goes_forward(self) -> bool:
        """True if the clock skips local times; else it repeats some."""
        return self.then > self.shown

    @property
    def span(self) -> str:
        """The local times that the clock skips or repeats: from 02:00 to before 03:00."""
        first, last = sorted((self.shown, self.then))
        return f"from {_on_clock(first)} to before {_on_clock(last)}"


def changes_near(timezone: str | None, at: int, near: int) -> list[ClockChange]:
    """Return the changes of a zone's clock at most `near` milliseconds from an instant."""
    zone = FAR_ZONES[timezone]
    first, last = bisect_right(zone.starts, at - near), bisect_right(zone.starts, at + near)
    return [
        ClockChange(start, start + zone.offsets[place], start + zone.offsets[place + 1])
        for place, start in enumerate(zone.starts[first:last], first)
    ]


def local_time(timezone: str | None, at: int) -> str:
    """Return an instant in a zone's local time: 2026-12-01T10:00:00+01:00."""
    return _local(FAR_ZONES[timezone], at)


def previews(schedule: Schedule, now: int, count: int, *, spent: int = 0) -> list[Preview]:
    """Return the next `count` fire times after `now`.

    There are fewer if the schedule has fewer, or if its limit, of which so many runs are `spent`,
    allows fewer.
    """
    zone, before, found = FAR_ZONES[schedule.timezone], now, []
    for at in _walk(schedule, now, within_limit(schedule, count, spent)):
        found.append(Preview(at, _local(zone, at), _clock(zone, before, at)))
        before = at
    return found


def within_limit(schedule: Schedule, count: int, spent: int) -> int:
    """Return the number of fires, at most `count`, that the limit allows after the `spent` runs."""
    limit = schedule.policies.max_runs
    return count if limit is None else max(0, min(count, limit - spent))


def count_spent(store: "Store", record: Record, now: int) -> int:
    """Count the runs that have begun, and those that wait although their time has come.

    These wait in their spread, or for a limit of operators. Return 0 without a limit of runs.
    """
    if record.policies.max_runs is None:
        return 0
    waiting = store.ledger.find(
        record.user_id, record.key, state=UNBEGUN, limit=MOST_WAITING, before=now + 1
    )
    return record.runs + sum(counts_as_run(one) for one in waiting)


def _walk(schedule: Schedule, now: int, count: int) -> Iterator[int]:
    times, at = Times.of(row_of(Record.of(schedule), now)), now
    for _ in range(count):
        found = times.after(at)
        if found is None:
            return
        yield found
        at = found


def _on_clock(local: int) -> str:
    return (EPOCH + timedelta(milliseconds=local)).strftime("%H:%M")


def _local(zone: Zone, at: int) -> str:
    offset = zone.offsets[bisect_right(zone.starts, at)]
    sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60_000
    moment = EPOCH + timedelta(milliseconds=at + offset)
    clock = moment.replace(tzinfo=None).isoformat(timespec="seconds")
    return f"{clock}{sign}{minutes // 60:02}:{minutes % 60:02}"


def _clock(zone: Zone, before: int, at: int) -> str | None:
    """Return the change of the clocks at this fire, or since the fire before; None if none."""
    here = bisect_right(zone.starts, at)
    if here and at == zone.starts[here - 1] and zone.offsets[here] > zone.offsets[here - 1]:
        return "clocks go forward at this very moment; a time that they skip fires now"
    if _comes_again(zone, here, at):
        return "this local time comes twice, clocks go back after it: the first pass"
    if here and at + zone.offsets[here] < zone.starts[here - 1] + zone.offsets[here - 1]:
        return "this local time comes twice, clocks went back before it: the second pass"
    if here and before < zone.starts[here - 1]:
        moved = (zone.offsets[here] - zone.offsets[here - 1]) // 60_000
        way = "forward" if moved > 0 else "back"
        return f"clocks go {way} {abs(moved)} min before it, at {iso(zone.starts[here - 1])}"
    return None


def _comes_again(zone: Zone, here: int, at: int) -> bool:
    if here >= len(zone.starts):
        return False
    return at + zone.offsets[here] >= zone.starts[here] + zone.offsets[here + 1]
