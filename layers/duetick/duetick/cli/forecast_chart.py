"""A forecast as text: a bar for each stretch of time, then where too much is due.

It has no colours and plain characters alone, fits 80 columns, and reads the same in a pipe.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from duetick.cli.plain_output import plain
from duetick.domain.errors import say_count

WIDTH: Final = 80
MOST_LINES: Final = 26
"""The most bars: a day by the hour has 25."""

MOST_OVER: Final = 5
"""The most windows of a bound that are told one by one."""

STRETCHES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
"""The minutes for which a bar may stand."""

DAY_MINUTES: Final = 1_440
BESIDE: Final = 25
"""The characters of a line beside its two numbers and its bar: the times, the gaps, the mark."""


class Bar(NamedTuple):
    """A stretch of time: the numbers of occurrences that were delivered, are due and would be
    added, and the fullest minute. `mark` says that a bound is exceeded.
    """

    start: datetime
    delivered: int
    due: int
    added: int
    fullest: int
    fullest_at: datetime
    mark: str


def lines(found: Mapping[str, Any], width: int | None = None) -> Iterator[str]:
    """Yield the lines of a forecast."""
    yield from _wrap(_summary(found))
    bars = _bars(found)
    if any(bar.fullest for bar in bars):
        yield ""
        yield from _chart(bars, min(width or WIDTH, WIDTH))
        yield ""
        yield from _wrap(_legend(found))
    for said in (*_tell_left_out(found), *_bounds(found["bounds"])):
        yield ""
        yield from _wrap(said)


def _summary(found: Mapping[str, Any]) -> str:
    sums = found["sums"]
    parts = [say_count(sums["fires"], "fire time"), say_count(sums["jobs"], "job")]
    parts.append(f"{sums['waiting']:,} recorded before")
    said = (
        f"Due from {found['from']} to {found['to']}: {say_count(sums['due'], 'occurrence')} "
        f"({', '.join(parts)}). Active schedules that were read: {found['schedules']:,}."
    )
    if found["added"] is not None:
        said += f" The schedule that is not saved adds {sums['added']:,}."
    if found["fullest"]:
        top = found["fullest"]
        said += f" The fullest minute is {top['at']}: {top['due']:,}."
    return said


def _legend(found: Mapping[str, Any]) -> str:
    said = "Times are UTC. The bar is the fullest minute of its line: # is due"
    said += ", + is added" if found["added"] is not None else ""
    said += ", = was delivered" if found["delivered"] is not None else ""
    is_over = any(one["overCount"] for one in found["bounds"])
    return f"{said}{'; ! is too much, as told below' if is_over else ''}."


def _bars(found: Mapping[str, Any]) -> list[Bar]:
    start, due = datetime.fromisoformat(found["from"]), found["due"]
    nothing = [0] * len(due)
    added, delivered = (found[name] or nothing for name in ("added", "delivered"))
    over = {datetime.fromisoformat(one["at"]) for bound in found["bounds"] for one in bound["over"]}
    size = next((one for one in STRETCHES if len(due) / one <= MOST_LINES), DAY_MINUTES)
    first = -((start.hour * 60 + start.minute) % size)
    places = range(first, len(due), size)
    spans = [(max(0, place), min(len(due), place + size)) for place in places]
    return [_bar(start, span, (delivered, due, added), over) for span in spans]


def _bar(
    start: datetime,
    span: tuple[int, int],
    numbers: tuple[Sequence[int], Sequence[int], Sequence[int]],
    over: set[datetime],
) -> Bar:
    first, end = span
    parts = [each[first:end] for each in numbers]
    together = [sum(each) for each in zip(*parts, strict=True)]
    fullest = max(range(len(together)), key=together.__getitem__)
    begin, close = (start + timedelta(minutes=one) for one in span)
    delivered, due, added = map(sum, parts)
    return Bar(
        *(begin, delivered, due, added),
        together[fullest],
        begin + timedelta(minutes=fullest),
        "!" if any(begin <= one < close for one in over) else "",
    )


def _chart(bars: Sequence[Bar], width: int) -> Iterator[str]:
    numbers = [f"{bar.delivered + bar.due + bar.added:,}" for bar in bars]
    fullest = [f"{bar.fullest:,}" for bar in bars]
    most = max(bar.fullest for bar in bars)
    widths = max(3, *map(len, numbers)), max(7, *map(len, fullest))
    room = max(10, width - sum(widths) - BESIDE)
    yield f"{'FROM':11}  {'ALL':>{widths[0]}}  {'FULLEST':>{widths[1]}}  AT"
    for bar, number, top in zip(bars, numbers, fullest, strict=True):
        at = f"{bar.fullest_at:%H:%M}" if bar.fullest else ""
        line = f"{bar.start:%m-%d %H:%M}  {number:>{widths[0]}}  {top:>{widths[1]}}  {at:5}  "
        yield f"{line}{_draw_bar(bar, most, room)}{bar.mark}".rstrip()


def _draw_bar(bar: Bar, most: int, room: int) -> str:
    """Return the bar of the fullest minute. Each part that is there has one character at least."""
    length = -(-bar.fullest * room // most) if bar.fullest > 0 else 0
    whole = max(1, bar.delivered + bar.due + max(0, bar.added))
    added = round(length * max(0, bar.added) / whole)
    delivered = round(length * bar.delivered / whole)
    return "=" * delivered + "#" * (length - added - delivered) + "+" * added


def _tell_left_out(found: Mapping[str, Any]) -> Iterator[str]:
    if found["unreadable"]:
        rows = say_count(found["unreadable"], "row")
        yield f"{rows} cannot be read and will not fire: `duetick unreadable` names them."
    if found["paused"]:
        yield f"Pauses of groups leave out {say_count(found['paused'], 'time')}: `duetick pauses`."
    if found["partly"]:
        yield "More waits than was counted: the numbers of what waits are too low."


def _bounds(bounds: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in bounds:
        yield " ".join([one["said"], *_over(one)])


def _over(bound: Mapping[str, Any]) -> Iterator[str]:
    if bound["most"] is None:
        return
    if not bound["overCount"]:
        yield "Nothing exceeds that."
        return
    told = "; ".join(map(_window, bound["over"][:MOST_OVER]))
    more = bound["overCount"] - MOST_OVER
    others = f"; and {say_count(more, bound['per'])} more" if more > 0 else ""
    yield f"More is due in {say_count(bound['overCount'], bound['per'])}: {told}{others}."
    yield bound["spreadSaid"]


def _window(one: Mapping[str, Any]) -> str:
    end = f"by {one['clearedAt']}" if one["clearedAt"] else "after this span"
    return f"{one['due']:,} at {one['at']}, all begun {end}"


def _wrap(said: str) -> Iterator[str]:
    """Yield lines of at most `WIDTH` characters."""
    line = ""
    for word in plain(said).split():
        if line and len(line) + 1 + len(word) > WIDTH:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line
