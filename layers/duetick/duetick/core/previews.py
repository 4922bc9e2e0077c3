"""The next fire times as a person reads them: local, UTC, and what the clocks do about them."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from duetick.core.wire import EPOCH, iso
from duetick.domain.expression.zones import FAR_ZONES, Zone
from duetick.domain.firing import Times
from duetick.domain.mirror import row_of
from duetick.domain.schedule import Json, Schedule


@dataclass(frozen=True, slots=True)
class Preview:
    """One fire time; `clock` says so where a change of the clocks bears on it."""

    at: int
    local: str
    clock: str | None

    def json(self) -> dict[str, Json]:
        """As the API shows it."""
        return {"utc": iso(self.at), "local": self.local, "clock": self.clock}


def previews(schedule: Schedule, now: int, count: int) -> list[Preview]:
    """The next `count` fire times after `now`, or as many as there are."""
    zone, before, found = FAR_ZONES[schedule.timezone], now, []
    for at in _walk(schedule, now, count):
        found.append(Preview(at, _local(zone, at), _clock(zone, before, at)))
        before = at
    return found


def _walk(schedule: Schedule, now: int, count: int) -> Iterator[int]:
    times, at = Times.of(row_of(schedule, now)), now
    for _ in range(count):
        found = times.after(at)
        if found is None:
            return
        yield found
        at = found


def _local(zone: Zone, at: int) -> str:
    offset = zone.offsets[bisect_right(zone.starts, at)]
    sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60_000
    moment = EPOCH + timedelta(milliseconds=at + offset)
    clock = moment.replace(tzinfo=None).isoformat(timespec="seconds")
    return f"{clock}{sign}{minutes // 60:02}:{minutes % 60:02}"


def _clock(zone: Zone, before: int, at: int) -> str | None:
    """What the clocks do between two fires, or at this one."""
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
