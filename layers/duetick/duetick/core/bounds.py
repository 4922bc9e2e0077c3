"""Bounds of a forecast: the most that the stack delivers, and that operators or partners allow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from duetick.core.store import Store
from duetick.core.wire import iso
from duetick.domain.errors import say_count
from duetick.domain.forecasting import Outlook
from duetick.domain.limits import OF_ACTION, OF_FLOW, WINDOWS, Limit, Limits, Per, say_rate
from duetick.domain.minutes import Sums
from duetick.domain.pace import Pace, best_pace
from duetick.domain.schedule import Json
from duetick.domain.spreading import Grid, Over, fitting_spread, windows_over
from duetick.domain.standing import OF_USER
from duetick.domain.workers import REPORTS_KEPT_MS

if TYPE_CHECKING:
    from duetick.core.forecast import Question

BoundKind: TypeAlias = Literal["stack", "limit", "given"]
Source: TypeAlias = Literal["measured", "ordered", "given", "unknown"]

MOST_REPORTS: Final = 1_000
PERS: Final[tuple[Per, ...]] = get_args(Per)
MOST_IN_A_WINDOW: Final = 10**9
"""The most runs of a bound: no stack delivers as many."""

MOST_SHOWN: Final = 100
"""The most windows of one bound that an answer names."""


class Addition(NamedTuple):
    """The sums of a schedule that is not saved: with the spread that it has, and without one."""

    sums: Sums
    without_spread: Sums


class _Judged(NamedTuple):
    """The occurrences that a bound is about, in the minutes in which they are due.

    A fitting spread is searched from the sums without the spread of the added schedule.
    """

    due: Sequence[int]
    without_spread: Sums


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that may be due in a window, how that is known, and where it is exceeded.

    `most` is None if nobody knows it. `spread` is the shortest one, in seconds, that would fit. It
    is None if no window is over, or if no spread fits: `advice` says which.
    """

    kind: BoundKind
    scope: str
    most: int | None
    per: Per
    source: Source
    said: str
    over: Sequence[Over] = ()
    spread: int | None = None
    advice: str = ""


def limits_within(limits: Limits, asked: "Question") -> Limits:
    """Return the limits whose scope lies in the question.

    Any other limit also counts occurrences beyond the question.
    """
    if not asked.operator:
        return Limits()
    return Limits(tuple(one for one in limits.every if _lies_in(one.scope, asked)))


def _lies_in(scope: str, asked: "Question") -> bool:
    if asked.is_all:
        return True
    if asked.user_id is not None:
        return asked.flow is None and scope == f"{OF_USER}{asked.user_id}"
    if asked.action is not None:
        return scope == f"{OF_ACTION}{asked.flow}/{asked.action}"
    return scope == f"{OF_FLOW}{asked.flow}" or scope.startswith(f"{OF_ACTION}{asked.flow}/")


def judge(
    store: Store, asked: "Question", outlook: Outlook, added: Addition | None
) -> Sequence[Bound]:
    """Return each known bound of a question, with the windows that exceed it."""
    found = list(_bounds(store, asked, outlook, added))
    return [_judge(bound, judged, outlook, has_added=added is not None) for bound, judged in found]


def _bounds(
    store: Store, asked: "Question", outlook: Outlook, added: Addition | None
) -> Iterator[tuple[Bound, _Judged]]:
    everything = _add_up(outlook.sums[0], added)
    if asked.allowed is not None:
        most, per = asked.allowed
        said = f"{say_rate(most, per)} are allowed, as was given."
        yield Bound("given", "all", most, per, "given", said), everything
    if asked.is_all:
        reports = store.workers(outlook.now - REPORTS_KEPT_MS, MOST_REPORTS)
        yield _of_stack(best_pace(reports)), everything
    for place, limit in enumerate(outlook.limits.every, 1):
        of_limit = added if added and _covers_added(limit, asked) else None
        judged = _add_up(outlook.sums[place], of_limit)
        for bound in _of_limit(limit, asked.lasts):
            yield bound, judged


def _add_up(sums: Sums, added: Addition | None) -> _Judged:
    """Return the sums with the added occurrences. Only the added ones would move, even if they have
    a spread: another one may fit.
    """
    if added is None:
        return _Judged(sums.due, sums)
    free = added.without_spread
    movable = [max(0, one) for one in free.movable]
    placed = Sums(_add(sums.due, free.due), movable, free.ragged, free.densest)
    return _Judged(_add(sums.due, added.sums.due), placed)


def _add(sums: Sequence[int], others: Sequence[int]) -> list[int]:
    return [one + other for one, other in zip(sums, others, strict=True)]


def _covers_added(limit: Limit, asked: "Question") -> bool:
    if asked.added is None:
        return False
    wanted = asked.added.wanted
    covering = Limits((limit,)).of(asked.added.user_id or "", wanted.flow, wanted.action)
    return bool(covering)


def _of_stack(pace: Pace | None) -> Bound:
    if pace is None:
        said = (
            "Nobody knows yet what the stack can deliver: no tick of the last 8 days had enough to "
            "do. Give a number, such as `most`."
        )
        return Bound("stack", "all", None, "minute", "unknown", said)
    least = "" if pace.full else "at least "
    why = (
        "it left work behind, so it was full"
        if pace.full
        else "no tick left work behind, so it may be more"
    )
    said = (
        f"The stack delivers {least}{pace.a_minute:,} a minute: the quickest tick of its last "
        f"reports delivered {pace.delivered:,} in {pace.took / 1_000:,.1f} s at {iso(pace.at)}; "
        f"{why}."
    )
    return Bound("stack", "all", pace.a_minute, "minute", "measured", said)


def _of_limit(limit: Limit, lasts: float | None) -> Iterator[Bound]:
    if limit.rate is not None:
        said = f"Operators limit {limit.scope} to {say_rate(limit.rate, limit.per)}."
        yield Bound("limit", limit.scope, limit.rate, limit.per, "ordered", said)
    if limit.parallel is None:
        return
    at_once = f"Operators let {limit.parallel:,} of {limit.scope} run at once"
    if lasts is None:
        said = (
            f"{at_once}. How many that is a minute depends on how long a run lasts: give `lasts`."
        )
        yield Bound("limit", limit.scope, None, "minute", "unknown", said)
        return
    most, per = _most_of(limit.parallel, lasts)
    said = f"{at_once}: {say_rate(most, per)} if a run lasts {lasts:g} s, as was given."
    yield Bound("limit", limit.scope, most, per, "ordered", said)


def _most_of(parallel: int, lasts: float) -> tuple[int, Per]:
    """Return the number of runs that fit into a window, and the window.

    It is the shortest one that has room for a run, which lasts a number of seconds, at most a day.
    """
    per = next(one for one in PERS if parallel * WINDOWS[one] >= lasts * 1_000)
    return int(min(parallel * WINDOWS[per] / (lasts * 1_000), MOST_IN_A_WINDOW)), per


def _judge(bound: Bound, judged: _Judged, outlook: Outlook, *, has_added: bool) -> Bound:
    if bound.most is None:
        return bound
    grid = Grid(outlook.span, bound.per)
    over = windows_over(judged.due, bound.most, grid)
    if not over:
        return bound
    spread = fitting_spread(judged.without_spread, bound.most, grid)
    fixed = judged.without_spread.fixed
    held = windows_over(fixed, bound.most, grid) if spread is None else ()
    advice = _advice(spread, len(held), has_added=has_added)
    return replace(bound, over=over, spread=spread, advice=advice)


def _advice(spread: int | None, held: int, *, has_added: bool) -> str:
    whose = "the schedules that are added" if has_added else "all schedules without a spread"
    if held:
        windows = say_count(held, "window")
        return f"No spread of {whose} is enough: {windows} would be over without them."
    if spread is None:
        return f"No spread of {whose} is enough: a day is the longest, and too much is due in it."
    return (
        f"With a spread of {spread:,} s for {whose}, no window of this span is over; the chance "
        "that one is, whatever their names are, is less than one in a million."
    )


def bounds_json(bounds: Sequence[Bound]) -> list[Json]:
    """Return the bounds as the API shows them."""
    return [_bound_json(one) for one in bounds]


def _bound_json(one: Bound) -> Json:
    return {
        "kind": one.kind,
        "scope": one.scope,
        "most": one.most,
        "per": one.per,
        "source": one.source,
        "said": one.said,
        "over": [_over_json(each, one.most) for each in one.over[:MOST_SHOWN]],
        "overCount": len(one.over),
        "spread": one.spread,
        "spreadSaid": one.advice,
    }


def _over_json(one: Over, most: int | None) -> Json:
    return {"at": iso(one.at), "due": one.due, "most": most, "clearedAt": iso(one.cleared_at)}
