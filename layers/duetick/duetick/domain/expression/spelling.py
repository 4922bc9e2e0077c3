"""The fields of an expression, written anew from the values that they name."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def spell(values: Iterable[int], low: int, high: int) -> str:
    """Return the shortest plain field for these values: `*` for all from `low` to `high`.

    A step is written `0-55/5`: a field that begins with a star would change how day of month and
    day of week go together, and what clock changes do.
    """
    wanted = sorted(set(values))
    if wanted == [*range(low, high + 1)]:
        return "*"
    return spell_out(wanted)


def spell_out(values: Iterable[int]) -> str:
    """Return the field as `spell` does, but without a star."""
    wanted = sorted(set(values))
    step = _step(wanted)
    if step > 1:
        return f"{wanted[0]}-{wanted[-1]}/{step}"
    return ",".join(_ranges(wanted))


def spell_from(values: Iterable[int], low: int, high: int) -> str:
    """Return the field as EventBridge's users write it: a step from a first value is `0/5`."""
    wanted = sorted(set(values))
    if wanted == [*range(low, high + 1)]:
        return "*"
    step = _step(wanted)
    if step > 1 and wanted[-1] + step > high:
        return f"{wanted[0]}/{step}"
    return ",".join(_ranges(wanted))


def _step(wanted: list[int]) -> int:
    """Return the step between all of three values or more; 0 if there is none."""
    steps = {after - before for before, after in pairwise(wanted)}
    return steps.pop() if len(wanted) > 2 and len(steps) == 1 else 0


def _ranges(wanted: list[int]) -> Iterator[str]:
    """Yield the runs of neighbours."""
    first = last = wanted[0]
    for value in [*wanted[1:], None]:
        if value == last + 1:
            last = value
            continue
        yield str(first) if first == last else f"{first}-{last}"
        if value is not None:
            first = last = value
