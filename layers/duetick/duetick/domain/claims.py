"""The claim of due rows: decided once for rows that are alike, then named for each row.

                         ┌ Template: next time, mark,
  row ──▶ Templates.of ──┤   and occurrences without a name ──▶ name_for(row) ──▶ the ledger
                         └ or the error of a row that cannot be read

Rows are alike if they fire alike: the same cron, zone, due time and policies. Thousands of users
with one cron cost one decision.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeAlias, cast

from duetick.domain.firing import (
    Decision,
    Times,
    collapse,
    decide,
    may_count_from_anchor,
    move_past_mark,
)
from duetick.domain.group_pauses import NO_PAUSES, Hole, Pauses
from duetick.domain.limits import NO_LIMITS, Limits
from duetick.domain.occurrence import (
    LATEST,
    IndexRow,
    Missed,
    Occurrence,
    occurrence_of,
    poison,
    range_of,
)
from duetick.domain.policies import Misfire, Policies
from duetick.domain.states import Reason, State
from duetick.domain.transitions import lease_end

CATCH_UP_PACE_MS: Final = 60_000
MOST_REMEMBERED: Final = 20_000
LOOKS_BACK_MS: Final = 6 * 3_600_000
"""A look for others goes so far beyond a time: a backlog is mostly of a few hours."""

DueRow: TypeAlias = tuple[str, str, str, str | None, int, str, int, int, str | None, int | None]
"""The fields of an `IndexRow` in their order, the policies as text; then the mark."""

ByTime: TypeAlias = dict[int, tuple[Occurrence, ...]]
"""The occurrences of rows, without names, by the time for which the rows are due."""

Late: TypeAlias = dict[tuple[tuple[Missed, ...], int], tuple[Occurrence, ...]]
"""The occurrences of rows, without names, by the times that are missed and the one that fires."""


def spread_ms(user_id: str, key: str, window: int) -> int:
    """Return the fixed place of a schedule in a window of `window` seconds, in milliseconds."""
    if not window:
        return 0
    digest = blake2b(f"{user_id}\0{key}".encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) % (window * 1_000)


def fires_of(
    row: IndexRow, decision: Decision, now: int, ahead: int, *, waits: bool = False
) -> Iterator[Occurrence]:
    """Yield the occurrences that fire: leased if they are due by now + ahead, else scheduled.

    If a limit may cover them, all of them wait: a tick leases those that have a place.
    """
    late = now - row.policies.on_time_ms
    spread = spread_ms(row.user_id, row.key, row.policies.spread)
    for place, nominal_at in enumerate(decision.fires):
        due_at = nominal_at + spread
        if place and nominal_at < late:
            due_at = now + place * CATCH_UP_PACE_MS
        if waits:
            held, until = State.SCHEDULED, due_at  # see `transitions.is_held_back`
            yield occurrence_of(row, nominal_at, now, due_at=due_at, state=held, lease_until=until)
        elif due_at <= now + ahead:
            until = lease_end(row.policies, due_at, now)
            yield occurrence_of(row, nominal_at, now, due_at=due_at, fence=1, lease_until=until)
        else:
            yield occurrence_of(row, nominal_at, now, due_at=due_at, state=State.SCHEDULED)


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """The claim of all rows that are alike: occurrences without a name, the next time, the mark.

    If the rows fire no more, `next_at` is None. If the rows cannot be read, `error` says why.
    """

    made: tuple[Occurrence, ...]
    next_at: int | None
    mark: int
    error: str | None = None

    def within(self, room: int) -> "Template":
        """Return the template with as many fires as there is room for.

        The row stays due for the other fires.
        """
        fires = [one for one in self.made if one.range_end is None]
        if self.error is not None or len(fires) <= room:
            return self
        ranges = tuple(one for one in self.made if one.range_end is not None)
        return Template(
            (*ranges, *fires[:room]), fires[room].nominal_at, fires[room].nominal_at - 1
        )


@dataclass(slots=True)
class Quiet:
    """The time up to the end of a tick's window in which an expression names nothing.

    The expression names nothing between `since` and `next_at`. `busy` is the last time that it is
    known to name; if `busy` is `since`, that is the newest time. `made` has the occurrences of rows
    that fire the time for which they are due, by that time. `late` has those of rows that are due
    for an older time. Expressions with the same policies share `made`, and `alike`, from which
    `late` is filled.
    """

    times: Times
    end: int
    made: ByTime
    alike: Late
    late: ByTime
    since: int
    busy: int
    next_at: int | None = None

    def reaches(self, first: int) -> bool:
        """Return True if the expression names nothing after the time for which a row is due.

        Few calls decide that for any number of times: the second looks hours beyond its own.
        """
        if first >= self.since or first < self.busy:
            return first >= self.since
        try:
            self._look(first)
        except ValueError:
            self.busy = LATEST
        return first >= self.since

    def _look(self, first: int) -> None:
        if self.since < LATEST:
            beyond = first - LOOKS_BACK_MS
            newest = self.times.newest(beyond, self.since)
            self.since, self.busy = newest or beyond, newest or self.busy
            return
        following = self.times.after(first)
        if following is None or following > self.end:
            self.since, self.next_at = first, following
            return
        self.since = self.busy = self.times.newest(following, self.end) or following
        self.next_at = self.times.after(self.end)

    def newest_late(self, first: int, now: int) -> int | None:
        """Return the newest time if a row that is due for `first` fires that time alone, else None.

        The newest time is past its grace then, and the other times are older still.
        """
        if not first < self.since == self.busy < now - self.times.policies.on_time_ms:
            return None
        return self.since if self.times.policies.misfire is Misfire.LATEST else None


class Templates:
    """The templates of one tick, under the pauses of groups and the limits that it has read."""

    def __init__(
        self, now: int, ahead: int, pauses: Pauses = NO_PAUSES, limits: Limits = NO_LIMITS
    ) -> None:
        self.now = now
        self.ahead = ahead
        self.pauses = pauses
        self.limits = limits
        self._known: dict[tuple[object, ...], Template] = {}
        self._quiet: dict[tuple[object, ...], Quiet] = {}
        self._kinds: dict[str | None, tuple[Policies, ByTime, Late, bool]] = {}
        self._made: dict[tuple[object, ...], tuple[Occurrence, ...]] = {}

    @property
    def is_full(self) -> bool:
        """True if the templates should be forgotten, because there are so many."""
        return len(self._known) > MOST_REMEMBERED

    def of(self, row: DueRow) -> Template:
        """Return the template of a row. Rows that are alike share one."""
        user_id, _, cron, timezone, next_fire_at, flow, _, _, policies, mark = row
        is_set_back = mark is not None and mark >= next_fire_at
        extra = _extras(row) if policies or is_set_back or may_count_from_anchor(cron) else None
        holes = self.pauses.holes(user_id, flow) if self.pauses.every else ()
        waits = self.limits.concerns(user_id, flow)
        alike = (cron, timezone, next_fire_at, policies, extra, holes, waits)
        template = self._known.get(alike)
        if template is None:
            template = self._make(index_row(row), mark, holes, waits=waits)
            self._known[alike] = template
        return template

    def usual(self, row: DueRow) -> tuple[tuple[Occurrence, ...], int, int] | None:
        """Return the occurrences, the next time and the mark of a row that fires once and goes on.

        They are those of the row's template. None means: ask for the template.

        Few times of an expression are decided, however many its rows are due for.
        """
        first, mark = row[4], row[9]
        if mark is not None and mark >= first:
            return None
        quiet = self._quiet.get((row[2], row[3], row[8])) or self._listen(row)
        reached = first >= quiet.since or quiet.reaches(first)
        fires = first if reached else quiet.newest_late(first, self.now)
        if fires is None or quiet.next_at is None:
            return None
        made = (quiet.made if fires == first else quiet.late).get(first)
        return made or self._make_usual(quiet, index_row(row), fires), quiet.next_at, fires

    def _make_usual(self, quiet: Quiet, row: IndexRow, fires: int) -> tuple[Occurrence, ...]:
        """Return the occurrences of a row that fires once. Times before that are missed."""
        fired = quiet.made.get(fires)
        if fired is None:
            decision = Decision((fires,), (), quiet.next_at)
            fired = quiet.made[fires] = self._occurrences(row, decision, waits=False)
        first = row.next_fire_at
        if fires == first:
            return fired
        missed = collapse(quiet.times, first, fires - 1)
        made = quiet.alike.get((missed, fires))
        if made is None:
            ranges = [range_of(row, one, Reason.MISSED, self.now) for one in missed]
            made = quiet.alike[missed, fires] = (*ranges, *fired)
        quiet.late[first] = made
        return made

    def _listen(self, row: DueRow) -> Quiet:
        """Return the facts of an expression: none are known yet.

        Some expressions are never quiet: those that count from an anchor, and those whose policies
        depend on more than one time.
        """
        cron, timezone, policies = row[2], row[3], row[8]
        kind = self._kinds.get(policies)
        if kind is None:
            read = Policies.load(policies)
            kind = self._kinds[policies] = read, {}, {}, self._may_be_quiet(read)
        read, made, alike, may_be = kind
        busy = -LATEST if may_be and not may_count_from_anchor(cron) else LATEST
        times = Times(cron, timezone, 0, read)
        quiet = Quiet(times, self.now + self.ahead, made, alike, {}, LATEST, busy)
        self._quiet[cron, timezone, policies] = quiet
        return quiet

    def _may_be_quiet(self, policies: Policies) -> bool:
        if self.pauses.every or self.limits or policies.spread:
            return False
        return policies.longest_lateness is None and policies.misfire is not Misfire.SKIP

    def _make(
        self, row: IndexRow, mark: int | None, holes: tuple[Hole, ...], *, waits: bool
    ) -> Template:
        try:
            fresh = move_past_mark(row, mark)
            if fresh is None or fresh.next_fire_at > self.now + self.ahead:
                next_at = None if fresh is None else fresh.next_fire_at
                return Template((), next_at, mark or row.next_fire_at)
            decision = decide(fresh, self.now, self.ahead, holes)
            left_out = _newest(fresh, self.now + self.ahead) if holes else fresh.next_fire_at
        except ValueError as error:
            return Template((poison(row, error, self.now),), None, row.next_fire_at, str(error))
        reached = max((left_out, *decision.fires, *(m.last for m in decision.missed)))
        made = self._occurrences(fresh, decision, waits=waits)
        return Template(made, decision.next_at, reached)

    def _occurrences(
        self, row: IndexRow, decision: Decision, *, waits: bool
    ) -> tuple[Occurrence, ...]:
        """Return the occurrences of a decision. Expressions with the same fire times share them."""
        spread = (row.user_id, row.key) if row.policies.spread else None
        alike = (decision.fires, decision.missed, row.policies, spread, waits)
        made = self._made.get(alike)
        if made is None:
            missed = [range_of(row, part, Reason.MISSED, self.now) for part in decision.missed]
            made = (*missed, *fires_of(row, decision, self.now, self.ahead, waits=waits))
            self._made[alike] = made
        return made


def _newest(row: IndexRow, until: int) -> int:
    """Return the last time up to an instant for which a row is due."""
    return Times.of(row).newest(row.next_fire_at, until) or row.next_fire_at


class LastTick:
    """The templates of the current tick, kept from chunk to chunk."""

    def __init__(self) -> None:
        self._templates = Templates(0, 0)

    def at(
        self, now: int, ahead: int, pauses: Pauses = NO_PAUSES, limits: Limits = NO_LIMITS
    ) -> Templates:
        """Return the templates of the tick at that time."""
        known, wanted = self._templates, (now, ahead, pauses, limits.scopes)
        if (known.now, known.ahead, known.pauses, known.limits.scopes) != wanted or known.is_full:
            self._templates = Templates(now, ahead, pauses, limits)
        return self._templates


def due_row(row: IndexRow, mark: int | None) -> DueRow:
    """Return an index row as a claim takes it."""
    return (
        row.user_id,
        row.key,
        row.cron,
        row.timezone,
        row.next_fire_at,
        row.flow,
        row.anchor,
        row.redefined_at,
        row.policies.dump(),
        mark,
    )


def index_row(row: DueRow) -> IndexRow:
    """Return the index row that a claim took."""
    return IndexRow(*row[:8], Policies.load(row[8]))


class _Named:
    """The fields of a new occurrence, which become it. A claim names thousands, and the constructor
    of a frozen type takes four times as long.
    """

    __slots__ = Occurrence.__slots__

    def __init__(self, row: DueRow, made: Occurrence, name: str) -> None:
        self.user_id, self.key, self.cron, self.timezone = row[0], row[1], row[2], row[3]
        self.flow, self.redefined_at = row[5], row[7]
        self.id = name
        self.nominal_at = made.nominal_at
        self.fence = made.fence
        self.origin = made.origin
        self.state = made.state
        self.reason = made.reason
        self.due_at = made.due_at
        self.attempts = made.attempts
        self.priority = made.priority
        self.lease_until = made.lease_until
        self.policies = made.policies
        self.range_end = made.range_end
        self.count = made.count
        self.error = made.error
        self.idempotency_key = made.idempotency_key
        self.labels = made.labels
        self.created_at = made.created_at
        self.begun_at = made.begun_at
        self.updated_at = made.updated_at
        self.told = made.told
        self.death = made.death


def name_for(row: DueRow, made: Occurrence, name: str) -> Occurrence:
    """Return an occurrence of a template as an occurrence of this row."""
    named = _Named(row, made, name)
    object.__setattr__(named, "__class__", Occurrence)
    return cast("Occurrence", named)


def _extras(row: DueRow) -> tuple[object, ...]:
    """Return the other fields that affect the times of this row: anchor, name (by spread), mark."""
    user_id, key, cron, _, next_fire_at, _, anchor, _, policies, mark = row
    return (
        anchor if may_count_from_anchor(cron) else None,
        (user_id, key) if policies and "spread" in policies else None,
        mark if mark is not None and mark >= next_fire_at else None,
    )


def pick_shares(users: Sequence[str], share: int) -> list[int]:
    """Return the places in the sequence that remain if no user gets more than a share of it."""
    counted: Counter[str] = Counter()
    places: list[int] = []
    for place, user in enumerate(users):
        counted[user] += 1
        if counted[user] <= share:
            places.append(place)
    return places
