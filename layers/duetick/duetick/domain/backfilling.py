"""Backfills: an operator lets the fire times of a schedule in a span of the past be made again.

                 ┌ look at those under way: which have ended, and how
  Book.backfill ─┼ why_waiting: paused, unreadable, not claimed yet
                 └ bring the next times, while there is room ──▶ the backfill, further on

A backfill has an origin of its own, so no occurrence of it is ever a scheduled one. They stand
beside the schedule: they neither take its place nor wait for it, and use up none of its runs. What
a backfill has done is found again in the ledger by name, so that a repeat brings nothing twice.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from duetick.domain.firing import Times
from duetick.domain.identity import BACKFILL_ORIGIN, stands_beside
from duetick.domain.occurrence import IndexRow, NewOccurrence, Occurrence
from duetick.domain.overlap import beside
from duetick.domain.pausing import is_paused, resume
from duetick.domain.policies import BOUNDS, DAY, MINUTE_MS, Policies
from duetick.domain.rows import new_occurrence
from duetick.domain.schedule import Record
from duetick.domain.standing import OrderKind, StandingOrder, prefix_of_user
from duetick.domain.states import State, end_state
from duetick.domain.transitions import has_ended, record

KIND: Final[OrderKind] = "backfill"

MOST_AT_ONCE: Final = 20
MOST_TIMES: Final = 1_000
MOST_TIMES_EVER: Final = 10_000
"""The most times that an operator may allow a backfill to have."""

MOST_BESIDE: Final = 20
"""The most occurrences of all backfills of a schedule that are under way."""

MOST_UNDER_WAY: Final = 30
"""A schedule with so many occurrences under way gets none of a backfill: the schedule's own need
the room that is left, where a store has little.
"""

MOST_LOOKED_AT: Final = 60
"""The most times of one step: most of them may have fired already."""

KEPT_STOPPED_MS: Final = 30 * DAY * 1_000
"""The time after which a backfill that was stopped, and never continued, ends."""

CAUGHT_UP_MS: Final = 15 * MINUTE_MS
"""The time after a stop in which ticks look for what others brought at the same time."""

LEAST_PRIORITY: Final = next(low for name, low, _ in BOUNDS if name == "priority")

Together: TypeAlias = Literal["wait", "allow"]
"""The fate of an occurrence of a backfill while another one of it runs: `wait` (one after another)
or `allow` (side by side).
"""

Phase: TypeAlias = Literal["running", "stopped", "done", "schedule_deleted", "abandoned"]
"""The phase of a backfill. The last three are final."""

Hindrance: TypeAlias = Literal["paused", "unreadable", "not_claimed", "busy"]
"""A running backfill waits for one of these: the end of a pause; a cron and zone that can be read;
the claim of a time that ticks have not decided about; the end of occurrences of its schedule.
"""


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill of the times in [since, until), and how far it is.

    The times are those of the schedule's expression when the backfill was ordered. `of` names that
    schedule: the instant of its creation. `total` counts the times. Up to the `cursor`, each was
    brought (`brought`), or had fired before (`fired_before`). `under_way` are the brought ones that
    have not ended; the others succeeded, failed, were cancelled, or are gone from the ledger.
    """

    user_id: str
    key: str
    of: int
    cron: str
    timezone: str | None
    anchor: int
    window: str | None
    since: int
    until: int
    total: int
    at_once: int = 1
    overlap: Together = "wait"
    only_missing: bool = True
    newest_first: bool = False
    by: str = ""
    note: str = ""
    phase: Phase = "running"
    waits_for: Hindrance | None = None
    cursor: int | None = None
    under_way: tuple[int, ...] = ()
    brought: int = 0
    fired_before: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    changed_at: int = 0
    changed_by: str = ""

    @property
    def times(self) -> Times:
        """The times of the expression, of which those in [since, until) are the backfill's."""
        return Times(self.cron, self.timezone, self.anchor, Policies.load(self.window))

    @property
    def brings_more(self) -> bool:
        """True if the backfill brings more, once it is continued if it was stopped."""
        return self.phase in ("running", "stopped")

    @property
    def is_over(self) -> bool:
        """True if the backfill brings nothing more and none of its occurrences is under way."""
        return not self.brings_more and not self.under_way

    def list_ahead(self) -> Iterator[int]:
        """Yield the times that the backfill has not looked at, in its order."""
        times, at = self.times, self.cursor
        while True:
            at = self._next(times, at)
            if at is None:
                return
            yield at

    def _next(self, times: Times, at: int | None) -> int | None:
        if self.newest_first:
            return times.newest(self.since - 1, (self.until if at is None else at) - 1)
        found = times.after(self.since - 1 if at is None else at)
        return found if found is not None and found < self.until else None

    def dump(self) -> str:
        """Return the backfill as the body of its order."""
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def load(cls, order: StandingOrder) -> "Backfill":
        """Return the backfill of an order. Fields that a later release has are ignored."""
        kept = json.loads(order.body)
        known = {name: kept[name] for name in cls.__slots__ if name in kept}
        return cls(**{**known, "under_way": tuple(known.get("under_way", ()))})


def name_of(user_id: str, backfill: str) -> str:
    """Return the name of the order of a backfill. An erasure finds it by its user."""
    return f"{prefix_of_user(user_id)}{backfill}"


def id_of(order: StandingOrder) -> str:
    """Return the id of a backfill, by which everybody names it: the end of its order's name."""
    return order.name.rpartition("#")[2]


def origin_of(order: StandingOrder) -> str:
    """Return the origin of a backfill's occurrences."""
    return f"{BACKFILL_ORIGIN}{id_of(order)}"


def window_of(found: Record) -> str | None:
    """Return the policies that determine the times of a schedule, as text: without its pause."""
    p = resume(found).policies
    window = Policies(gap=p.gap, repeat=p.repeat, starts_at=p.starts_at, ends_at=p.ends_at)
    return window.dump()


def has_fired(one: Occurrence) -> bool:
    """Return True if the occurrence ran to its end, or may yet do so. A range did not.

    One that an operator deleted keeps the reason of its end, and has fired all the same.
    """
    if one.range_end is not None:
        return False
    return end_state(one.state, one.reason) is State.SUCCEEDED or not has_ended(one)


class BackfillPages(Protocol):
    """The part of a book's pages that a backfill reads."""

    def find(self, nominal_at: int, origin: str) -> Occurrence | None: ...
    def at(self, nominal_at: int) -> Sequence[Occurrence]: ...
    def find_unfinished(self) -> Sequence[Occurrence]: ...


class Seen(NamedTuple):
    """A schedule as a backfill sees it: its record, its row, if its row is unreadable, and if a
    pause of a group holds.
    """

    record: Record | None
    row: IndexRow | None
    unreadable: bool = False
    held: bool = False


class BackfillStep(NamedTuple):
    """A backfill after a step, and the occurrences that the step makes."""

    after: Backfill
    made: tuple[Occurrence, ...] = ()


def step(
    order: StandingOrder, ledger: BackfillPages, seen: Seen, now: int, new_id: Callable[[], str]
) -> BackfillStep:
    """Look at the occurrences under way, and bring as many of the next as there is room for."""
    unfinished, origin = ledger.find_unfinished(), origin_of(order)
    one = _look(Backfill.load(order), origin, ledger, unfinished)
    if one.phase == "stopped" and one.changed_at < now - KEPT_STOPPED_MS:
        return _end(one, "abandoned", origin, ledger)
    if one.phase != "running":
        return BackfillStep(_catch_up(one, origin, ledger) if _may_be_behind(one, now) else one)
    if seen.record is None or seen.record.created_at != one.of:
        return _end(one, "schedule_deleted", origin, ledger)
    waits_for = _why_waiting(seen, now)
    if waits_for:
        noted = one if one.waits_for == waits_for else _catch_up(one, origin, ledger)
        return BackfillStep(replace(noted, waits_for=waits_for))
    try:
        bringing = _Bringing(one, origin, ledger, seen.record)
        bringing.bring(seen.row, _room(unfinished))
    except ValueError:  # tzdata has dropped its zone
        return BackfillStep(replace(one, waits_for="unreadable"))
    return BackfillStep(
        bringing.one, tuple(record(each, new_id(), now) for each in bringing.make_wanted(now))
    )


def needs_step(one: Backfill, now: int) -> bool:
    """Return True unless the backfill was stopped, and all that it has brought has ended."""
    stays = one.phase == "stopped" and one.changed_at >= now - KEPT_STOPPED_MS
    return not stays or bool(one.under_way) or _may_be_behind(one, now)


def _may_be_behind(one: Backfill, now: int) -> bool:
    """Return True if a backfill was stopped so lately that a tick may have brought times unnoted.

    The stop kept the tick from writing the order.
    """
    return one.phase == "stopped" and now <= one.changed_at + CAUGHT_UP_MS


def _look(
    one: Backfill, origin: str, ledger: BackfillPages, unfinished: Sequence[Occurrence]
) -> Backfill:
    """Return the backfill with those that have ended counted."""
    known = {each.nominal_at for each in unfinished if each.origin == origin}
    for at in one.under_way:
        if at in known:
            continue
        found = ledger.find(at, origin)
        if found is None or has_ended(found):
            rest = tuple(other for other in one.under_way if other != at)
            one = _count(replace(one, under_way=rest), found)
    return one


def _count(one: Backfill, ended: Occurrence | None) -> Backfill:
    """Return the backfill with one more that has ended; None is gone from the ledger."""
    if ended is None:
        return one
    state = end_state(ended.state, ended.reason)
    if state is State.SUCCEEDED:
        return replace(one, succeeded=one.succeeded + 1)
    if state is State.DEAD:
        return replace(one, failed=one.failed + 1)
    return replace(one, cancelled=one.cancelled + 1)


def _end(one: Backfill, phase: Phase, origin: str, ledger: BackfillPages) -> BackfillStep:
    """End a backfill before its last time. What a step that died had brought is noted first."""
    one = _catch_up(one, origin, ledger)
    return BackfillStep(replace(one, phase=phase, waits_for=None))


def _catch_up(one: Backfill, origin: str, ledger: BackfillPages) -> Backfill:
    """Return the backfill with the occurrences that a step brought and did not note.

    The step died, or another one wrote the order first. If the backfill then waits for long and a
    purge deletes an occurrence, the backfill would bring it again.
    """
    with suppress(ValueError):  # tzdata has dropped its zone
        fired = 0
        for at in islice(one.list_ahead(), MOST_LOOKED_AT):
            mine = ledger.find(at, origin)
            fired += mine is None
            if mine:
                one = _note(replace(one, fired_before=one.fired_before + fired), mine)
                fired = 0
    return one


def _note(one: Backfill, brought: Occurrence) -> Backfill:
    """Return the backfill with one that is recorded."""
    at = brought.nominal_at
    one = replace(one, cursor=at, brought=one.brought + 1)
    if has_ended(brought):
        return _count(one, brought)
    return replace(one, under_way=(*one.under_way, at))


def _why_waiting(seen: Seen, now: int) -> Hindrance | None:
    if seen.held or (seen.record and is_paused(seen.record, now)):
        return "paused"
    return "unreadable" if seen.unreadable else None


def _room(under_way: Sequence[Occurrence]) -> int:
    """Return how many more may be under way, for the sake of the schedule's own ones."""
    others = sum(stands_beside(one.origin) for one in under_way)
    return max(0, min(MOST_BESIDE - others, MOST_UNDER_WAY - len(under_way)))


class _Bringing:
    """The times that one step brings, and the backfill after it."""

    def __init__(self, one: Backfill, origin: str, ledger: BackfillPages, found: Record) -> None:
        self.one = one
        self._origin = origin
        self._ledger = ledger
        self._record = found
        self._new: list[int] = []

    def bring(self, row: IndexRow | None, room: int) -> None:
        """Bring the next times. Those that the row is due for are for the next claim to decide."""
        for looked_at, at in enumerate(self.one.list_ahead()):
            if looked_at == MOST_LOOKED_AT or not self._may_take(at, row, room):
                return
            self._take(at)
        self.one = replace(self.one, phase="done", waits_for=None)

    def _may_take(self, at: int, row: IndexRow | None, room: int) -> bool:
        """Return True if the time may be brought now; else note what it waits for."""
        waits_for: Hindrance | None = None
        is_full = len(self.one.under_way) >= self.one.at_once
        if row is not None and row.next_fire_at <= at:
            waits_for = "not_claimed"
        elif not is_full and len(self._new) < room:
            self.one = replace(self.one, waits_for=None)
            return True
        elif not is_full and not self._new:
            waits_for = "busy"
        self.one = replace(self.one, waits_for=waits_for)
        return False

    def _take(self, at: int) -> None:
        """Bring the time, unless it has fired, or a step before this one has brought it."""
        here = self._ledger.at(at)
        mine = next((each for each in here if each.origin == self._origin), None)
        if mine:
            self.one = _note(self.one, mine)
            return
        one = replace(self.one, cursor=at)
        if one.only_missing and any(map(has_fired, here)):
            self.one = replace(one, fired_before=one.fired_before + 1)
            return
        self.one = replace(one, brought=one.brought + 1, under_way=(*one.under_way, at))
        self._new.append(at)

    def make_wanted(self, now: int) -> Iterator[NewOccurrence]:
        """Yield the occurrences that are new, due now."""
        policies = replace(beside(self._record.policies), priority=LEAST_PRIORITY)
        for at in self._new:
            wanted = new_occurrence(self._record, at, self._origin, now)
            cron, timezone = self.one.cron, self.one.timezone
            yield replace(wanted, cron=cron, timezone=timezone, policies=policies)
