"""The instants that an expression names in a zone, for the rest of Duetick."""

from __future__ import annotations

from itertools import islice, takewhile
from typing import TYPE_CHECKING, Literal

from duetick.domain.expression.daymap import read_days
from duetick.domain.expression.firing import DAWN, DUSK, Once, Options, Recurring
from duetick.domain.expression.texts import plan_of
from duetick.domain.expression.zones import FAR_ZONES, NEAR, ZONES, check_zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetick.domain.expression.texts import Plan
    from duetick.domain.expression.zones import Zone

    Gap = Literal["run", "skip"]
    Repeat = Literal["first", "both"]
    ClockRule = Literal["fixed", "once", "real", "elapsed"]

_OPTIONS = {
    gap: {repeat: Options(run=gap == "run", once=repeat == "first") for repeat in ("first", "both")}
    for gap in ("run", "skip")
}
_USUAL = _OPTIONS["run"]["first"]


def next_fire(
    text: str,
    timezone: str | None,
    after: int,
    *,
    gap: Gap = "run",
    repeat: Repeat = "first",
    anchor: int = 0,
) -> int | None:
    """Return the first fire strictly later than `after`, or None if none follows.

    Fire k of a rate is `anchor` + k times its interval. If `after` is before the anchor, k may be
    negative. The anchor of a schedule is its creation, and no caller reads times before that.
    """
    after = after if after > DAWN else DAWN
    return _next(plan_of(text), timezone, after, _options(gap, repeat), anchor)


def _next(
    plan: Plan, timezone: str | None, after: int, options: Options, anchor: int
) -> int | None:
    found = plan.next(_zone(ZONES, timezone), after, options, anchor)
    if found is None or found >= NEAR:
        return plan.next(FAR_ZONES[timezone], after, options, anchor)
    return found


def _clock(timezone: str | None, until: int) -> Zone:
    return _zone(ZONES if until < NEAR else FAR_ZONES, timezone)


def _zone(zones: Mapping[str | None, Zone], timezone: str | None) -> Zone:
    try:
        return zones[timezone]
    except TypeError:  # the value is not hashable
        check_zone(timezone)
        raise


def _options(gap: Gap, repeat: Repeat) -> Options:
    if gap == "run" and repeat == "first":  # to compare is quicker than to look up
        return _USUAL
    try:
        return _OPTIONS[gap][repeat]
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
    """Return the next `count` fires; fewer if the expression has fewer."""
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
    """Return the fires in (after, until], at most the first `limit`."""
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
    """Return the last fire in (after, until], or None. The search begins at `until`."""
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
    """Count the fires in (after, until], without visiting each."""
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
    """Return the least time between two fires, within 366 days.

    The first fire later than `after` begins that span. If the span has fewer than two fires, return
    366 days.
    """
    from duetick.domain.expression.gaps import YEAR, least_gap  # only writes need this import

    options = _options(gap, repeat)
    first = next_fire(text, timezone, after, gap=gap, repeat=repeat, anchor=anchor)
    if first is None:
        return YEAR
    return least_gap(plan_of(text), _clock(timezone, first + YEAR), options, first)


def clock_rule(text: str) -> ClockRule:
    """Return the rule by which an expression follows changes of the clock.

    `fixed` and `once` depend on the local time, and skipped or repeated times are special; `once`
    has no second pass. `real` fires whenever the clock reads a matching minute. `elapsed` does not
    follow the clock.
    """
    plan = plan_of(text)
    if isinstance(plan, Recurring):
        return "fixed" if plan.almanac.fixed else "real"
    return "once" if isinstance(plan, Once) else "elapsed"


def targets(
    text: str,
    timezone: str | None,
    nominal: int,
    *,
    gap: Gap = "run",
    repeat: Repeat = "first",
) -> tuple[str, ...]:
    """Return the targets of a day map that are due at a nominal time, as written."""
    options = _options(gap, repeat)
    clock = _clock(timezone, nominal)
    return tuple(
        name
        for name, days in plan_of(text).targets
        if days and read_days(days)[1].next(clock, nominal - 1, options, 0) == nominal
    )
