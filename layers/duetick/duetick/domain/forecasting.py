"""The occurrences that are due in each minute ahead, from the expressions of rows.

  Alike: rows that fire alike ──▶ Outlook ──▶ Series: the fires of an expression, once ──▶ Sums
  Waits: what is recorded     ──▶                                         a number for each minute

The functions that claim decide here too, so that what is counted is what fires.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import gcd
from typing import Any, Final, NamedTuple, TypeAlias

from duetick.domain.alike import Alike, Waits
from duetick.domain.claims import fires_of, spread_ms
from duetick.domain.expression import check_zone, step_of
from duetick.domain.firing import Times, TimesOutside, decide, move_past_mark
from duetick.domain.group_pauses import NO_PAUSES, Hole, Pauses
from duetick.domain.limits import NO_LIMITS, Limits
from duetick.domain.minutes import MinuteSpan, Sums
from duetick.domain.occurrence import IndexRow
from duetick.domain.policies import DAY, MINUTE_MS, Policies

DAY_MS: Final = DAY * 1_000
HOUR_MS: Final = 60 * MINUTE_MS

MOST_GROUPS: Final = 200_000
"""The most groups of rows that are counted before their fires are added up."""

MOST_FIRES: Final = 2_000_000
"""The most fires of expressions that are remembered until then: each takes sixteen bytes."""

MOST_OF_A_ROW: Final = 1_000_000

Where: TypeAlias = tuple[int, ...]
"""The numbers of the sums to which occurrences belong."""


class Totals(NamedTuple):
    """The totals of a forecast: the schedules that were read, and the occurrences of the span by
    what makes them due.

    Rows that cannot be read, and the times of pauses, are left out and counted.
    """

    schedules: int = 0
    fires: int = 0
    waiting: int = 0
    jobs: int = 0
    unreadable: int = 0
    paused: int = 0


class Series(NamedTuple):
    """The fires of an expression, and their minutes in the span.

    If it is not `whole`, some fires lie within a minute: the minute then depends on the spread.
    """

    times: Sequence[int]
    minutes: Sequence[int]
    whole: bool
    densest: int


class _Timing(NamedTuple):
    """The parts that decide an expression's fires. With `reaches`, a spread may move them far."""

    cron: str
    timezone: str | None
    choices: tuple[str, str, int | None, int | None]
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


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows that fire alike, with what their texts say: policies, and the step of a rate."""

    alike: Alike
    policies: Policies
    step: int | None
    where: Where
    holes: tuple[Hole, ...]

    @property
    def number(self) -> int:
        """The number of rows."""
        return self.alike.number

    @property
    def moves(self) -> bool:
        """True if a spread would move their fires: they have none."""
        return not self.policies.spread

    @property
    def moves_evenly(self) -> bool:
        """True if they have a spread and no names: they stand for any names."""
        return bool(self.policies.spread) and not self.alike.names

    @property
    def left(self) -> int | None:
        """The runs that each has left; None if nothing limits them."""
        limit = self.policies.max_runs
        return None if limit is None else max(0, limit - self.alike.spent)

    def times(self, first: int) -> Times:
        """Return the times that their expression names. A rate counts from its next time."""
        cron, timezone, anchor = self.alike.cron, self.alike.timezone, self.alike.anchor
        return Times(cron, timezone, first if anchor is None else anchor, self.policies)

    def fires(self, first: int) -> Times:
        """Return these times without those of pauses."""
        times = self.times(first)
        if not self.holes:
            return times
        return TimesOutside(times.cron, times.timezone, times.anchor, self.policies, self.holes)

    def row(self, user_id: str = "", key: str = "") -> IndexRow:
        """Return one of the rows, by its name."""
        one = self.alike
        anchor = one.next_fire_at if one.anchor is None else one.anchor
        timing = one.cron, one.timezone, one.next_fire_at, one.flow, anchor
        return IndexRow(user_id, key, *timing, policies=self.policies)

    def is_paused(self, at: int) -> bool:
        """Return True if a pause leaves a time out."""
        return any(start <= at < end for start, end in self.holes)

    def places(self, unit: int) -> Mapping[int, int]:
        """Return the number of rows at each place in their spread, rounded down to a unit."""
        spread, names = self.policies.spread, self.alike.names
        if not spread:
            return {0: self.number}
        found = Counter(spread_ms(*name, spread) // unit * unit for name in names)
        sign = self.number // len(names)
        return found if sign > 0 else {place: -many for place, many in found.items()}


@dataclass(slots=True)
class Outlook:
    """The occurrences due in a span as of now, added up from rows and from what waits.

    The first of the `sums` has everything; the others are those of the limits, in their order.
    """

    span: MinuteSpan
    now: int
    pauses: Pauses = NO_PAUSES
    limits: Limits = NO_LIMITS
    sums: list[Sums] = field(default_factory=list)
    totals: Counter[str] = field(default_factory=Counter)
    _unread: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    _series: dict[_Timing, Series] = field(default_factory=dict)
    _remembered: int = 0
    _groups: Counter[_Group] = field(default_factory=Counter)
    _combs: Counter[_Comb] = field(default_factory=Counter)
    _wheres: dict[tuple[str, str, str], Where] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.sums:
            self.sums = [Sums.of(self.span) for _ in range(1 + len(self.limits.every))]

    def add(self, rows: Iterable[Alike]) -> None:
        """Add rows. Those whose next time lies behind the span only count."""
        for one in rows:
            self.totals["schedules"] += one.number
            if one.next_fire_at > self.span.last:
                continue
            if one.names:
                self._read(one)
            else:
                self._unread[one[1:]] += one.number
            if len(self._unread) > MOST_GROUPS:
                self._read_all()

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
        self._read_all()
        self._add_up()
        return Totals(**{name: self.totals[name] for name in Totals._fields})

    def _read_all(self) -> None:
        """Read the rows that were counted. Rows of several parts of a store are one group here."""
        for alike, number in self._unread.items():
            self._read(Alike(number, *alike))
        self._unread.clear()

    def _read(self, one: Alike) -> None:
        """Add the fires of rows. If they cannot be read, they are counted so."""
        try:
            policies, step = Policies.load(one.policies), step_of(one.cron)
            check_zone(one.timezone)
            holes = self.pauses.spans(one.user_id, one.flow) if self.pauses else ()
            where = self._where(one.user_id, one.flow, one.action)
            self._expect(_Rows(one, policies, step, where, holes))
        except ValueError:
            self.totals["schedules"] -= one.number
            self.totals["unreadable"] += one.number
        groups = len(self._groups) + len(self._combs)
        if groups > MOST_GROUPS or self._remembered > MOST_FIRES:
            self._add_up()

    def _expect(self, rows: _Rows) -> None:
        if rows.holes:
            self._leave_out(rows)
        first, left = self._begin(rows)
        if first is None or left == 0 or first > self.span.last:
            return
        odd_rate = rows.step and (rows.holes or rows.alike.anchor is not None)
        if rows.moves_evenly:
            self._spread_evenly(rows, self._walk(rows, first, left))
        elif left is not None or odd_rate:
            for at in self._walk(rows, first, left):
                self._spread(rows, at)
        elif rows.step:
            self._comb(rows, first, rows.step)
        else:
            self._group(rows, first)

    def _begin(self, rows: _Rows) -> tuple[int | None, int | None]:
        """Return the next time that is not due yet, and the runs that are left for it.

        The occurrences that the next tick makes of due rows are added.
        """
        one, left = rows.alike, rows.left
        if one.next_fire_at > self.now and one.mark is None:
            return one.next_fire_at, left
        row = move_past_mark(rows.row(), one.mark)
        if row is None or row.next_fire_at > self.now:
            return (None if row is None else row.next_fire_at), left
        decision = decide(row, self.now, 0, rows.holes)
        for user_id, key in one.names or [("", "")]:
            named = rows.row(user_id, key)
            for made in islice(fires_of(named, decision, self.now, 0), left):
                number = rows.number // max(1, len(one.names))
                self._fire(rows, max(made.due_at, self.now), number, moves=False)
        return decision.next_at, None if left is None else max(0, left - len(decision.fires))

    def _leave_out(self, rows: _Rows) -> None:
        """Count the times of the span that pauses leave out."""
        first = rows.alike.next_fire_at
        since = max(first - 1, self.now, self.span.since - 1)
        named = rows.times(first).count(since, self.span.last)
        fires = rows.fires(first).count(since, self.span.last)
        self.totals["paused"] += rows.number * (named - fires)

    # Rows of a cron: their fires are worked out once.

    def _group(self, rows: _Rows, first: int) -> None:
        policies, one = rows.policies, rows.alike
        choices = policies.gap, policies.repeat, policies.starts_at, policies.ends_at
        timing = _Timing(one.cron, one.timezone, choices, rows.holes, not rows.moves)
        series = self._series.get(timing) or self._enumerate(timing, rows)
        place = bisect_left(series.times, first)
        if not (_names(series.times, place, first) or rows.is_paused(first)):
            self._spread(rows, first)  # a row fires for its next time, whatever named that
        if not series.whole:
            for at in series.times[place:]:
                self._spread(rows, at)
            return
        for shift, number in rows.places(MINUTE_MS).items():
            group = _Group(timing, place, shift // MINUTE_MS, rows.where)
            self._groups[group] += number
            self.totals["fires"] += number * self._count_fires(group, series)

    def _count_fires(self, group: _Group, series: Series) -> int:
        start = max(group.place, bisect_left(series.minutes, -group.shift))
        return max(0, bisect_left(series.minutes, self.span.minutes - group.shift) - start)

    def _enumerate(self, timing: _Timing, rows: _Rows) -> Series:
        """Return the fires from now on, or from as long before the span as a spread may reach."""
        since = max(self.now, self.span.since - 1 - (DAY_MS if timing.reaches else 0))
        fires = rows.fires(0).between(since, self.span.last)
        whole = all(at % MINUTE_MS == 0 for at in fires)
        minutes = array("q", map(self.span.minute, fires))
        series = Series(array("q", fires), minutes, whole, _densest(fires))
        self._series[timing] = series
        self._remembered += len(fires) + 10
        return series

    # Rows of a rate: of their anchors, only the phase matters.

    def _comb(self, rows: _Rows, first: int, step: int) -> None:
        end = rows.policies.ends_at
        last = self.span.last if end is None else first + (end - first) // step * step
        unit = gcd(step, MINUTE_MS)
        for shift, number in rows.places(1).items():
            until = min(last + shift, self.span.last) // unit
            begin = _advance(first + shift, self.span.since, step) // unit
            if begin <= until:
                self._combs[_Comb(step, unit, begin, until, rows.where, rows.moves)] += number
                self.totals["fires"] += number * (1 + (until - begin) * unit // step)

    # Rows of which each fire is looked at.

    def _walk(self, rows: _Rows, first: int, left: int | None) -> Sequence[int]:
        """Return the fires of rows that may be due in the span.

        The rows have a limit of runs, move evenly, have a rate that a pause interrupts, or have a
        next time that is none of their rate's.
        """
        times = rows.fires(first)
        since = max(first, self.span.since - 1 - rows.policies.spread * 1_000)
        begun = [] if rows.is_paused(first) else [first]
        before = len(begun) + times.count(first, since) if since > first else 0
        most = MOST_OF_A_ROW if left is None else max(0, left - before)
        found = times.between(since, self.span.last, most)
        return [*(begun if not before else ()), *found][:most]

    def _spread_evenly(self, rows: _Rows, fires: Sequence[int]) -> None:
        """Add fires of rows without a name, whose places fill the spread evenly: the number of each
        minute is their share of it, rounded so that nothing is lost on the whole.
        """
        window, given, share = rows.policies.spread * 1_000, 0, 0
        for minute, part in enumerate(self._shares(fires, window)):
            share += part * rows.number
            number = share // window - given
            given += number
            if number:
                self.totals["fires"] += number
                self._put(minute, number, rows.where, moves=False)

    def _shares(self, fires: Sequence[int], window: int) -> Iterator[int]:
        """Yield the milliseconds of each minute that windows after the fires cover, added up."""
        whole, parts = [0] * (self.span.minutes + 1), [0] * self.span.minutes
        for at in fires:
            begin, end = max(at, self.span.since), min(at + window, self.span.until)
            first, last = self.span.minute(begin), self.span.minute(end)
            if begin >= end:
                continue
            parts[first] -= begin - self.span.since - first * MINUTE_MS
            whole[first] += MINUTE_MS
            whole[last] -= MINUTE_MS
            if last < self.span.minutes:
                parts[last] += end - self.span.since - last * MINUTE_MS
        covered = 0
        for change, part in zip(whole, parts, strict=False):
            covered += change
            yield covered + part

    def _spread(self, rows: _Rows, at: int) -> None:
        """Add one fire of each row, at its place in the spread."""
        for shift, number in rows.places(1).items():
            self._fire(rows, at + shift, number, moves=rows.moves)

    def _fire(self, rows: _Rows, due_at: int, number: int, *, moves: bool) -> None:
        if self.span.has(due_at):
            self.totals["fires"] += number
            self._put(self.span.minute(due_at), number, rows.where, moves=moves)
            ragged = rows.step is not None or due_at % MINUTE_MS != 0
            self._note(rows.where, 1, ragged=ragged, moves=moves)

    # Sums.

    def _add_up(self) -> None:
        """Add the fires of the groups that were counted, and forget them."""
        for group, number in self._groups.items():
            series, moves = self._series[group.timing], not group.timing.reaches
            for minute in series.minutes[group.place :]:
                self._put(minute + group.shift, number, group.where, moves=moves)
            self._note(group.where, series.densest, ragged=False, moves=moves)
        for comb, number in self._combs.items():
            for part in range(comb.first * comb.unit, comb.last * comb.unit + 1, comb.step):
                self._put(self.span.minute(part), number, comb.where, moves=comb.moves)
            self._note(comb.where, -(-HOUR_MS // comb.step), ragged=True, moves=comb.moves)
        self._groups.clear()
        self._combs.clear()
        self._series.clear()
        self._remembered = 0

    def _put(self, minute: int, number: int, where: Where, *, moves: bool) -> None:
        if 0 <= minute < self.span.minutes:
            for place in where:
                self.sums[place].due[minute] += number
                self.sums[place].movable[minute] += number if moves else 0

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
        """Return the due time of an occurrence that waits, after the pauses.

        None means that a pause cancels the occurrence, or that the pause has no known end.
        """
        due_at = max(one.due_at, self.now)
        while held := self.pauses.holding(one.user_id, one.flow, due_at):
            if not one.kept or held.until is None:
                return None
            due_at = held.end
        return due_at


def _names(times: Sequence[int], place: int, at: int) -> bool:
    """Return True if a series has a fire in the minute of a time."""
    return place < len(times) and times[place] // MINUTE_MS == at // MINUTE_MS


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
