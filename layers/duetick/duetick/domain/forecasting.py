"""The occurrences that are due in each minute ahead, from the expressions of rows.

  Alike: rows that fire alike ──▶ Outlook ──▶ Series: the fires of an expression, once ──▶ Sums
  Waits: what is recorded     ──▶                                          a number for each minute

The functions that claim decide here too, so that what is counted is what fires.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import gcd
from typing import Final, NamedTuple, TypeAlias

from duetick.domain.alike import Alike, Waits
from duetick.domain.claims import fires_of, spread_ms
from duetick.domain.expression import check_zone, step_of
from duetick.domain.firing import Times, TimesOutside, decide, unfired
from duetick.domain.group_pauses import NO_PAUSES, Hole, Pauses
from duetick.domain.limits import NO_LIMITS, Limits
from duetick.domain.occurrence import IndexRow
from duetick.domain.policies import DAY, MINUTE_MS

DAY_MS: Final = DAY * 1_000
HOUR_MS: Final = 60 * MINUTE_MS

MOST_GROUPS: Final = 200_000
"""The most groups of rows that are counted before their fires are added up."""

MOST_FIRES: Final = 2_000_000
"""The most fires of expressions that are remembered until then: each takes sixteen bytes."""

MOST_OF_A_ROW: Final = 1_000_000

Where: TypeAlias = tuple[int, ...]
"""The numbers of the sums to which occurrences belong."""


class MinuteSpan(NamedTuple):
    """A span of whole minutes: from `since` until before `until`."""

    since: int
    until: int

    @property
    def minutes(self) -> int:
        """The number of minutes."""
        return (self.until - self.since) // MINUTE_MS

    @property
    def last(self) -> int:
        """The last instant."""
        return self.until - 1

    def has(self, at: int) -> bool:
        """Return True if an instant lies in the span."""
        return self.since <= at < self.until

    def minute(self, at: int) -> int:
        """Return the number of the minute of an instant, counted from the start of the span."""
        return (at - self.since) // MINUTE_MS


@dataclass(slots=True)
class Sums:
    """The occurrences that are due in each minute of a span. Those in `movable` would have another
    minute if their schedules had a spread.

    If these are `ragged`, some fire within a minute. `densest` is the most of them that one
    schedule has within an hour.
    """

    due: list[int]
    movable: list[int]
    ragged: bool = False
    densest: int = 1

    @property
    def fixed(self) -> list[int]:
        """The occurrences of each minute that no spread would move."""
        return [due - moves for due, moves in zip(self.due, self.movable, strict=True)]

    @classmethod
    def of(cls, span: MinuteSpan) -> "Sums":
        """Return the sums of a span in which nothing is due."""
        return cls([0] * span.minutes, [0] * span.minutes)


class Totals(NamedTuple):
    """The schedules that were read, the occurrences of the span by what makes them due, and what is
    left out: rows that cannot be read, and the times of pauses.
    """

    schedules: int = 0
    fires: int = 0
    waiting: int = 0
    jobs: int = 0
    unreadable: int = 0
    paused: int = 0


class Series(NamedTuple):
    """The fires of an expression, and their minutes in the span. `left_out` are those of pauses.

    If it is not `whole`, some fires lie within a minute, and their minutes depend on the spread.
    """

    times: Sequence[int]
    minutes: Sequence[int]
    left_out: Sequence[int]
    whole: bool
    densest: int


class _Timing(NamedTuple):
    """Whatever decides the fires of an expression. With `reaches`, a spread may move them far."""

    cron: str
    timezone: str | None
    policies: tuple[str, str, int | None, int | None]
    holes: tuple[Hole, ...]
    reaches: bool


class _Group(NamedTuple):
    """Rows whose fires begin at one place of a series, and move by as many minutes."""

    timing: _Timing
    place: int
    shift: int
    where: Where


class _Comb(NamedTuple):
    """Rows with a rate that fire in the same minutes: `first` and `last`, counted in `unit`."""

    step: int
    unit: int
    first: int
    last: int
    where: Where
    moves: bool


@dataclass(slots=True)
class Outlook:
    """What is due in a span as of now, added up from rows and from what waits.

    The first of the `sums` has everything; the others are those of the limits, in their order.
    """

    span: MinuteSpan
    now: int
    pauses: Pauses = NO_PAUSES
    limits: Limits = NO_LIMITS
    sums: list[Sums] = field(default_factory=list)
    totals: Counter[str] = field(default_factory=Counter)
    _series: dict[_Timing, Series] = field(default_factory=dict)
    _remembered: int = 0
    _groups: Counter[_Group] = field(default_factory=Counter)
    _combs: Counter[_Comb] = field(default_factory=Counter)
    _wheres: dict[tuple[str, str, str], Where] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.sums:
            self.sums = [Sums.of(self.span) for _ in range(1 + len(self.limits.every))]

    def add(self, rows: Iterable[Alike]) -> None:
        """Add the fires of rows. Those that cannot be read are counted."""
        for one in rows:
            try:
                self._add(one)
                self.totals["schedules"] += one.number
            except ValueError:
                self.totals["unreadable"] += one.number
            if self._is_full:
                self._add_up()

    def add_waiting(self, found: Iterable[Waits]) -> None:
        """Add what waits. A pause holds it until its end, or leaves it out."""
        for one in found:
            due_at = self._after_pauses(one)
            if due_at is None:
                self.totals["paused"] += one.number
            elif self.span.has(due_at):
                self.totals["jobs" if one.job else "waiting"] += one.number
                where = self._where(one.user_id, one.flow, one.action)
                self._put(self.span.minute(due_at), one.number, where, moves=False)

    def finish(self) -> Totals:
        """Add everything up, so that the sums are whole. Return the totals."""
        self._add_up()
        return Totals(**{name: self.totals[name] for name in Totals._fields})

    @property
    def _is_full(self) -> bool:
        groups = len(self._groups) + len(self._combs)
        return groups > MOST_GROUPS or self._remembered > MOST_FIRES

    def _add(self, one: Alike) -> None:
        step = step_of(one.cron)
        check_zone(one.timezone)
        first, left = self._begin(one)
        if first is None or left == 0 or first > self.span.last:
            return
        holes = self.pauses.spans(one.user_id, one.flow) if self.pauses else ()
        if left is not None or (step and (holes or one.anchor is not None)):
            self._walk(one, first, holes, left)
        elif step:
            self._comb(one, first, step)
        else:
            self._group(one, first, holes)

    def _begin(self, one: Alike) -> tuple[int | None, int | None]:
        """Return the next time that is not due yet, and the runs that are left for it; None if
        nothing limits them. Add what the next tick makes of rows that are due.
        """
        limit = one.policies.max_runs
        left = None if limit is None else max(0, limit - one.spent)
        row = unfired(_row(one), one.mark)
        if row is None or row.next_fire_at > self.now:
            return (None if row is None else row.next_fire_at), left
        decision = decide(row, self.now, 0, self.pauses.spans(one.user_id, one.flow))
        for user_id, key in one.names or [(row.user_id, row.key)]:
            named = replace(row, user_id=user_id, key=key)
            for made in islice(fires_of(named, decision, self.now, 0), left):
                count = 1 if one.names else one.number
                self._fire(one, max(made.due_at, self.now), count, moves=False)
        return decision.next_at, None if left is None else max(0, left - len(decision.fires))

    # Rows of a cron: their fires are worked out once.

    def _group(self, one: Alike, first: int, holes: tuple[Hole, ...]) -> None:
        policies = one.policies
        choices = policies.gap, policies.repeat, policies.starts_at, policies.ends_at
        timing = _Timing(one.cron, one.timezone, choices, holes, policies.spread > 0)
        series = self._series.get(timing) or self._enumerate(timing, one)
        place, out = bisect_left(series.times, first), bisect_left(series.left_out, first)
        self.totals["paused"] += one.number * (len(series.left_out) - out)
        if not (_names(series.times, place, first) or _covers(holes, first)):
            self._spread(one, first)  # a row fires for its next time, whatever named that
        if not series.whole:
            for at in series.times[place:]:
                self._spread(one, at)
            return
        where = self._where(one.user_id, one.flow, one.action)
        for shift, count in _places(one, MINUTE_MS).items():
            group = _Group(timing, place, shift // MINUTE_MS, where)
            self._groups[group] += count
            self.totals["fires"] += count * self._count_fires(group, series)

    def _count_fires(self, group: _Group, series: Series) -> int:
        start = max(group.place, bisect_left(series.minutes, -group.shift))
        return max(0, bisect_left(series.minutes, self.span.minutes - group.shift) - start)

    def _enumerate(self, timing: _Timing, one: Alike) -> Series:
        """Return the fires from now on, or from as long before the span as a spread may reach."""
        since = max(self.now, self.span.since - 1 - (DAY_MS if timing.reaches else 0))
        every = _times(one, 0)
        fires = _outside(every, timing.holes).between(since, self.span.last)
        left_out: Sequence[int] = ()
        if timing.holes:
            named = every.between(max(self.now, self.span.since - 1), self.span.last)
            left_out = [at for at in named if _covers(timing.holes, at)]
        whole = all(at % MINUTE_MS == 0 for at in fires)
        minutes = array("q", map(self.span.minute, fires))
        series = Series(array("q", fires), minutes, left_out, whole, _densest(fires))
        self._series[timing] = series
        self._remembered += len(fires) + len(left_out) + 10
        return series

    # Rows of a rate: of their anchors, only the phase within a minute's part matters.

    def _comb(self, one: Alike, first: int, step: int) -> None:
        end = one.policies.ends_at
        last = self.span.last if end is None else first + (end - first) // step * step
        unit, moves = gcd(step, MINUTE_MS), not one.policies.spread
        where = self._where(one.user_id, one.flow, one.action)
        for shift, count in _places(one, 1).items():
            until = min(last + shift, self.span.last) // unit
            begin = _advance(first + shift, self.span.since, step) // unit
            if begin <= until:
                self._combs[_Comb(step, unit, begin, until, where, moves)] += count
                self.totals["fires"] += count * (1 + (until - begin) * unit // step)

    # Rows that are told apart.

    def _walk(self, one: Alike, first: int, holes: tuple[Hole, ...], left: int | None) -> None:
        """Add the fires of a row with a limit of runs, of a rate that a pause interrupts, or of a
        rate whose next time is none of its own.
        """
        times, most = _times(one, first), MOST_OF_A_ROW if left is None else left
        fires = [] if _covers(holes, first) else [first]
        fires += _outside(times, holes).between(first, self.span.last, most)
        for at in fires[:left]:
            self._spread(one, at)
        if holes:
            since = max(first, self.span.since) - 1
            outside = _outside(times, holes).count(since, self.span.last)
            self.totals["paused"] += one.number * (times.count(since, self.span.last) - outside)

    def _spread(self, one: Alike, at: int) -> None:
        """Add one fire of each row, at its place in the spread."""
        for shift, count in _places(one, 1).items():
            self._fire(one, at + shift, count, moves=not one.policies.spread)

    def _fire(self, one: Alike, due_at: int, count: int, *, moves: bool) -> None:
        if self.span.has(due_at):
            self.totals["fires"] += count
            where = self._where(one.user_id, one.flow, one.action)
            self._put(self.span.minute(due_at), count, where, moves=moves)
            self._note(where, 1, ragged=due_at % MINUTE_MS != 0, moves=moves)

    # Sums.

    def _add_up(self) -> None:
        """Add the fires of the groups that were counted, and forget them."""
        for group, count in self._groups.items():
            series, moves = self._series[group.timing], not group.timing.reaches
            for minute in series.minutes[group.place :]:
                self._put(minute + group.shift, count, group.where, moves=moves)
            self._note(group.where, series.densest, ragged=False, moves=moves)
        for comb, count in self._combs.items():
            for part in range(comb.first * comb.unit, comb.last * comb.unit + 1, comb.step):
                self._put(self.span.minute(part), count, comb.where, moves=comb.moves)
            self._note(comb.where, -(-HOUR_MS // comb.step), ragged=True, moves=comb.moves)
        self._groups.clear()
        self._combs.clear()
        self._series.clear()
        self._remembered = 0

    def _put(self, minute: int, count: int, where: Where, *, moves: bool) -> None:
        if 0 <= minute < self.span.minutes:
            for place in where:
                self.sums[place].due[minute] += count
                self.sums[place].movable[minute] += count if moves else 0

    def _note(self, where: Where, densest: int, *, ragged: bool, moves: bool) -> None:
        for place in where if moves else ():
            sums = self.sums[place]
            sums.ragged = sums.ragged or ragged
            sums.densest = max(sums.densest, densest)

    def _where(self, user_id: str, flow: str, action: str) -> Where:
        if not self.limits:
            return (0,)
        named = user_id, flow, action
        if named not in self._wheres:
            covering = {one.scope for one in self.limits.of(*named)}
            places = (n for n, one in enumerate(self.limits.every, 1) if one.scope in covering)
            self._wheres[named] = 0, *places
        return self._wheres[named]

    def _after_pauses(self, one: Waits) -> int | None:
        """Return when an occurrence that waits is due; None if a pause cancels it, or has no end
        that anybody knows.
        """
        due_at = max(one.due_at, self.now)
        while held := self.pauses.holding(one.user_id, one.flow, due_at):
            if not one.kept or held.until is None:
                return None
            due_at = held.end
        return due_at


def _row(one: Alike) -> IndexRow:
    """Return one of the rows, without its name."""
    anchor = one.next_fire_at if one.anchor is None else one.anchor
    timing = one.cron, one.timezone, one.next_fire_at, one.flow, anchor
    return IndexRow(one.user_id, "", *timing, policies=one.policies)


def _times(one: Alike, first: int) -> Times:
    return Times(one.cron, one.timezone, first if one.anchor is None else one.anchor, one.policies)


def _outside(times: Times, holes: tuple[Hole, ...]) -> Times:
    if not holes:
        return times
    return TimesOutside(times.cron, times.timezone, times.anchor, times.policies, holes)


def _covers(holes: tuple[Hole, ...], at: int) -> bool:
    return any(start <= at < end for start, end in holes)


def _names(times: Sequence[int], place: int, at: int) -> bool:
    """Return True if the series has a fire in the minute of a time."""
    return place < len(times) and times[place] // MINUTE_MS == at // MINUTE_MS


def _places(one: Alike, unit: int) -> Counter[int]:
    """Return how many of the rows have which place in the spread, rounded down to a unit.

    Rows without a name are spread evenly, as names do on the whole.
    """
    spread = one.policies.spread
    if not spread:
        return Counter({0: one.number})
    if one.names:
        sign = 1 if one.number > 0 else -1
        found = Counter(spread_ms(*name, spread) // unit * unit for name in one.names)
        return found if sign > 0 else Counter({at: -count for at, count in found.items()})
    unit, window = max(unit, MINUTE_MS), spread * 1_000
    edges = [*range(0, window, unit), window]
    rows = [round(one.number * edge / window) for edge in edges]
    return Counter({edge: rows[n + 1] - rows[n] for n, edge in enumerate(edges[:-1])})


def _advance(at: int, since: int, step: int) -> int:
    """Return the first instant of a rate from another one on."""
    return at if at >= since else at + -(-(since - at) // step) * step


def _densest(fires: Sequence[int]) -> int:
    """Return the most fires within an hour."""
    most, start = 1, 0
    for end, at in enumerate(fires):
        while at - fires[start] >= HOUR_MS:
            start += 1
        most = max(most, end - start + 1)
    return most
