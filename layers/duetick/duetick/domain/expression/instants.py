"""What the rest of Duetick asks of an expression in a zone: which instants it names."""

from __future__ import annotations

from itertools import islice, pairwise, takewhile

from duetick.domain.expression.daymap import read_days
from duetick.domain.expression.firing import DAWN, DUSK, Options
from duetick.domain.expression.texts import plan_of
from duetick.domain.expression.zones import FAR_ZONES, NEAR, ZONES, check_zone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from duetick.domain.expression.texts import Plan
    from duetick.domain.expression.zones import Zone

    Gap = Literal["run", "skip"]
    Repeat = Literal["first", "both"]

_YEAR = 366 * 86_400_000
_MOST_FIRES = 10_000
_OPTIONS = {
    (gap, repeat): Options(run=gap == "run", once=repeat == "first")
    for gap in ("run", "skip")
    for repeat in ("first", "both")
}


def next_fire(
    text: str,
    timezone: str | None,
    after: int,
    *,
    gap: Gap = "run",
    repeat: Repeat = "first",
    anchor: int = 0,
) -> int | None:
    """Return the first fire strictly later than `after`; None: never again.

    Fire k of a rate is `anchor` + k times its interval. Where `after` lies before the anchor, k may
    be negative; a schedule's anchor is its creation, and nothing asks for its times before that.
    """
    after = after if after > DAWN else DAWN
    return _next(plan_of(text), timezone, after, _options(gap, repeat), anchor)


def _next(
    plan: Plan, timezone: str | None, after: int, options: Options, anchor: int
) -> int | None:
    try:
        zone = ZONES[timezone]
    except TypeError:  # it cannot be a key
        check_zone(timezone)
        raise
    found = plan.next(zone, after, options, anchor)
    if found is None or found >= NEAR:
        return plan.next(FAR_ZONES[timezone], after, options, anchor)
    return found


def _clock(timezone: str | None, until: int) -> Zone:
    check_zone(timezone)
    return (ZONES if until < NEAR else FAR_ZONES)[timezone]


def _options(gap: Gap, repeat: Repeat) -> Options:
    try:
        return _OPTIONS[gap, repeat]
    except KeyError:
        raise ValueError(
            f'gap is "run" or "skip", repeat "first" or "both"; not {gap!r} and {repeat!r}'
        ) from None


def _walk(
    plan: Plan, timezone: str | None, after: int, options: Options, anchor: int
) -> Iterator[int]:
    found = _next(plan, timezone, max(after, DAWN), options, anchor)
    while found is not None:
        yield found
        found = _next(plan, timezone, found, options, anchor)


def upcoming(
    text: str,
    timezone: str | None,
    after: int,
    count: int,
    *,
    gap: Gap = "run",
    repeat: Repeat = "first",
    anchor: int = 0,
) -> list[int]:
    """Return the next `count` fires, or as many as there are."""
    check_zone(timezone)
    times = _walk(plan_of(text), timezone, after, _options(gap, repeat), anchor)
    return list(islice(times, count))


def fires(
    text: str,
    timezone: str | None,
    after: int,
    until: int,
    *,
    limit: int | None = None,
    gap: Gap = "run",
    repeat: Repeat = "first",
    anchor: int = 0,
) -> list[int]:
    """Return the fires later than `after` and not later than `until`, at most the first `limit`."""
    times = _walk(plan_of(text), timezone, after, _options(gap, repeat), anchor)
    return list(islice(takewhile(lambda time: time <= until, times), limit))


def newest(
    text: str,
    timezone: str | None,
    after: int,
    until: int,
    *,
    gap: Gap = "run",
    repeat: Repeat = "first",
    anchor: int = 0,
) -> int | None:
    """Return the last fire later than `after` and not later than `until`, found from its end."""
    options, after, until = _options(gap, repeat), max(after, DAWN), min(until, DUSK)
    if until <= after:
        return None
    return plan_of(text).newest(_clock(timezone, until), after, until, options, anchor)


def count(
    text: str,
    timezone: str | None,
    after: int,
    until: int,
    *,
    gap: Gap = "run",
    repeat: Repeat = "first",
    anchor: int = 0,
) -> int:
    """Return how many fires are later than `after` and not later than `until`, without a walk."""
    options, after, until = _options(gap, repeat), max(after, DAWN), min(until, DUSK)
    if until <= after:
        return 0
    return plan_of(text).count(_clock(timezone, until), after, until, options, anchor)


def smallest_gap(
    text: str,
    timezone: str | None,
    after: int,
    *,
    gap: Gap = "run",
    repeat: Repeat = "first",
    anchor: int = 0,
) -> int:
    """Return the least time between two fires, over 366 days from `after` or 10,000 fires.

    Where fewer than two fires lie within that, the answer is the 366 days.
    """
    times = fires(
        text,
        timezone,
        after,
        after + _YEAR,
        limit=_MOST_FIRES,
        gap=gap,
        repeat=repeat,
        anchor=anchor,
    )
    return min((later - earlier for earlier, later in pairwise(times)), default=_YEAR)


def targets(
    text: str,
    timezone: str | None,
    nominal: int,
    *,
    gap: Gap = "run",
    repeat: Repeat = "first",
) -> tuple[str, ...]:
    """Return the targets of a day map that are due at that nominal time, as written."""
    options = _options(gap, repeat)
    clock = _clock(timezone, nominal)
    return tuple(
        name
        for name, days in plan_of(text).targets
        if days and read_days(days)[1].next(clock, nominal - 1, options, 0) == nominal
    )
