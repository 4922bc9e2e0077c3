"""Backfills for operators: foreseen, started, shown, stopped and continued.

A backfill is a standing order. Ticks bring its occurrences (`duetick.core.tick.backfilling`), so
nobody has to stay.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, get_args

from duetick.core.keeping import find_kept_since
from duetick.core.retrying import retry
from duetick.core.store import Store
from duetick.core.wire import held_json, iso
from duetick.domain.backfilling import (
    KIND,
    MOST_AT_ONCE,
    MOST_LOOKED_AT,
    MOST_TIMES,
    MOST_TIMES_EVER,
    Backfill,
    Together,
    has_fired,
    id_of,
    name_of,
    window_of,
)
from duetick.domain.errors import (
    BackfillNotFound,
    BackfillStands,
    InvalidSchedule,
    NotFound,
    check_all,
)
from duetick.domain.group_pauses import GroupPause
from duetick.domain.identity import BACKFILL_ORIGIN, SCHEDULE_ORIGIN, is_job
from duetick.domain.occurrence import LATEST, Occurrence
from duetick.domain.pausing import is_paused
from duetick.domain.redaction import redact_text
from duetick.domain.schedule import LONGEST_NOTE, Json, Record, check_timing
from duetick.domain.standing import StandingOrder
from duetick.domain.transitions import has_ended

AT_ONCE: Final = 100
"""The occurrences of one read of the history."""

TRIES: Final = 8
MOST_STANDING: Final = 100
"""The most backfills that stand at a time: each tick reads them all."""

NOBODY_WROTE: Final = "Others wrote the backfill meanwhile. Try again."


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """The backfill that an operator wants: its times, in [since, until), and its order.

    Without an `overlap`, the times run side by side if more than one may run `at_once`, else one
    after another. `by` is the operator, `note` says why. A span that names more than `most` times
    is refused.
    """

    user_id: str
    key: str
    since: int
    until: int
    at_once: int = 1
    overlap: Together | None = None
    only_missing: bool = True
    newest_first: bool = False
    most: int = MOST_TIMES
    by: str = ""
    note: str = ""


class Plan(NamedTuple):
    """The plan of a backfill. `outcomes` counts its times by what the history has of them.

    Times that have `fired` are brought only if all are wanted. The backfill takes `ticks` at least,
    and so `least_seconds`. It waits while its schedule is paused, or a group's pause holds the
    schedule.
    """

    one: Backfill
    first: int | None
    last: int | None
    fired: int
    to_bring: int
    outcomes: Mapping[str, int]
    ticks: int
    least_seconds: int
    is_paused: bool
    held_by: GroupPause | None


class Ordered(NamedTuple):
    """A backfill as it was ordered, with its progress. It is over since `ended_at`."""

    name: str
    since: int
    ended_at: int | None
    one: Backfill

    @property
    def state(self) -> str:
        """The phase as operators see it: it is running until its last occurrence has ended."""
        return self.one.phase if self.ended_at or self.one.brings_more else "running"


class Backfills:
    """The backfills of one database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def plan(self, wanted: BackfillRequest) -> Plan:
        """Return the plan of a backfill. Nothing changes.

        Raises NotFound, or InvalidSchedule naming everything that is wrong.
        """
        now = self._store.now()
        _check(wanted, now)
        found = self._store.schedules.get(wanted.user_id, wanted.key)
        if found is None or is_job(found.key):
            raise NotFound
        check_timing(found.cron, found.timezone)
        one = _backfill(wanted, found)
        _check_total(one.total, wanted.most)
        return self._foresee(one, found, now)

    def start(self, plan: Plan) -> Ordered:
        """Start a backfill as it was planned.

        Raises BackfillStands if another one of the schedule stands that has some of its times.
        """
        one = plan.one
        if not one.total:
            none = f"{one.cron!r} names no time in the span; choose another one."
            raise InvalidSchedule("from", none, "out_of_range")
        standing = self.find(ended_after=LATEST)
        _check_standing(one, standing)
        now = self._store.now()
        one = replace(one, changed_at=now, changed_by=one.by)
        name = name_of(one.user_id, secrets.token_hex(8))
        order = StandingOrder(KIND, name, now, one.dump())
        if not self._store.shelf.keep_order(order):
            raise BackfillStands(NOBODY_WROTE)
        self._store.standing.forget()
        return read_ordered(order)

    def find(
        self, user_id: str | None = None, key: str | None = None, *, ended_after: int = 0
    ) -> Sequence[Ordered]:
        """Return the backfills that stand, or that ended after an instant; the newest first."""
        every = map(read_ordered, self._store.shelf.orders(KIND, ended_after))
        named = ((user_id, "user_id"), (key, "key"))
        found = [
            each
            for each in every
            if all(name is None or getattr(each.one, field) == name for name, field in named)
        ]
        return sorted(found, key=lambda each: (-each.since, each.name))

    def get(self, name: str) -> Ordered:
        """Return a backfill. Raises BackfillNotFound."""
        return read_ordered(self._order(name))

    def stop(self, name: str, by: str = "") -> Ordered:
        """Stop a backfill: the occurrences that it has brought go on, and nothing more is brought.
        A tick that works on it may still finish its step.
        """
        return self._change(name, lambda one: replace(one, phase="stopped", waits_for=None), by)

    def go_on(self, name: str, by: str = "") -> Ordered:
        """Continue a backfill that was stopped, where it was."""
        return self._change(name, lambda one: replace(one, phase="running"), by)

    def _order(self, name: str) -> StandingOrder:
        for order in self._store.shelf.orders(KIND, 0):
            if id_of(order) == name:
                return order
        raise BackfillNotFound(f"There is no backfill {name[:64]!r}. A list shows their names.")

    def _change(self, name: str, way: Callable[[Backfill], Backfill], by: str) -> Ordered:
        def attempt() -> Ordered:
            order = self._order(name)
            one = Backfill.load(order)
            after = way(one)
            if order.ended_at is not None or not one.brings_more or after.phase == one.phase:
                return read_ordered(order)
            now = self._store.now()
            changed = order.change(replace(after, changed_at=now, changed_by=by).dump())
            if not self._store.shelf.keep_order(changed):
                raise BackfillStands(NOBODY_WROTE)
            self._store.standing.forget()
            return read_ordered(changed)

        return retry(attempt, BackfillStands, TRIES)

    def _foresee(self, one: Backfill, found: Record, now: int) -> Plan:
        times = one.times
        each = list(_outcomes(self._store, one)) if one.total else []
        outcomes = Counter(outcome for _, outcome in each)
        if one.only_missing:
            _check_known(each, found.created_at, find_kept_since(self._store, now))
        fired = outcomes["fired"] + outcomes["under_way"]
        to_bring = one.total - fired if one.only_missing else one.total
        steps = max(-(-to_bring // one.at_once), -(-one.total // MOST_LOOKED_AT))
        return Plan(
            one,
            first=times.after(one.since - 1) if one.total else None,
            last=times.newest(one.since - 1, one.until - 1) if one.total else None,
            fired=fired,
            to_bring=to_bring,
            outcomes=dict(sorted(outcomes.items())),
            ticks=steps,
            least_seconds=max(0, steps - 1) * self._store.schedules.tick_seconds,
            is_paused=is_paused(found, now),
            held_by=self._store.pauses.current(now).holding(one.user_id, found.flow, now),
        )


def read_ordered(order: StandingOrder) -> Ordered:
    """Return the backfill of an order."""
    return Ordered(id_of(order), order.since, order.ended_at, Backfill.load(order))


def _check(wanted: BackfillRequest, now: int) -> None:
    """Raise InvalidSchedule naming everything that is wrong with a request for any schedule."""
    check_all(
        lambda: _check_span(wanted, now),
        partial(_check_whole, "at_once", wanted.at_once, MOST_AT_ONCE),
        partial(_check_whole, "most", wanted.most, MOST_TIMES_EVER),
        lambda: _check_overlap(wanted),
        lambda: _check_note(wanted.note),
    )


def _check_span(wanted: BackfillRequest, now: int) -> None:
    if wanted.since >= wanted.until:
        wrong = f"is not before `to`, {iso(wanted.until)}; choose an earlier time."
        raise InvalidSchedule("from", wrong, "out_of_range")
    if wanted.until > now:
        ahead = f"lies ahead: it is {iso(now)}, and a backfill is of the past."
        raise InvalidSchedule("to", ahead, "out_of_range")


def _check_whole(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        wrong = f"expected a whole number from 1 to {most}, got {value}."
        raise InvalidSchedule(name, wrong, "out_of_range")


def _check_overlap(wanted: BackfillRequest) -> None:
    known = get_args(Together)
    if wanted.overlap is not None and wanted.overlap not in known:
        raise InvalidSchedule("overlap", f"expected one of {', '.join(known)}.", "not_one_of")
    if wanted.overlap == "wait" and wanted.at_once > 1:
        alone = (
            "is more than 1, and with overlap `wait` one runs after another; choose `allow`, or "
            "leave overlap out."
        )
        raise InvalidSchedule("at_once", alone, "out_of_range")


def _check_note(note: str) -> None:
    if len(note) > LONGEST_NOTE or not note.isprintable():
        wanted = f"expected at most {LONGEST_NOTE} characters that can be seen."
        raise InvalidSchedule("note", wanted, "too_long" if note.isprintable() else "character")


def _check_total(total: int, most: int) -> None:
    if total > most:
        raise InvalidSchedule(
            "most",
            f"is {most:,}, and the span names {total:,} times; choose a shorter span, or allow "
            f"more (at most {MOST_TIMES_EVER:,}).",
            "out_of_range",
        )


def _check_standing(one: Backfill, standing: Sequence[Ordered]) -> None:
    if len(standing) >= MOST_STANDING:
        raise BackfillStands(
            f"{MOST_STANDING} backfills stand already, which is the most. Let one end first."
        )
    for other, there in ((each.name, each.one) for each in standing):
        same = (there.user_id, there.key) == (one.user_id, one.key)
        if same and there.since < one.until and one.since < there.until:
            raise BackfillStands(
                f"The backfill {other} of this schedule stands, from {iso(there.since)} to "
                f"{iso(there.until)}: it has some of these times. Wait for its end, or choose "
                "another span."
            )


def _backfill(wanted: BackfillRequest, found: Record) -> Backfill:
    one = Backfill(
        user_id=wanted.user_id,
        key=wanted.key,
        of=found.created_at,
        cron=found.cron,
        timezone=found.timezone,
        anchor=found.anchor,
        window=window_of(found),
        since=wanted.since,
        until=wanted.until,
        total=0,
        at_once=wanted.at_once,
        overlap=wanted.overlap or ("allow" if wanted.at_once > 1 else "wait"),
        only_missing=wanted.only_missing,
        newest_first=wanted.newest_first,
        by=wanted.by,
        note=wanted.note,
    )
    return replace(one, total=one.times.count(one.since - 1, one.until - 1))


def _check_known(each: Sequence[tuple[int, str]], made_at: int, kept: int) -> None:
    """Raise InvalidSchedule if a purge may have deleted the outcome of a missing time: it may have
    fired.

    No time before the schedule's creation has fired.
    """
    if any(outcome == "none" and made_at < at <= kept for at, outcome in each):
        gone = (
            f"lies before {iso(kept)}, and the history of some of these times is deleted, so that "
            "they may have fired; choose a later time, or bring all times, fired or not."
        )
        raise InvalidSchedule("from", gone, "out_of_range")


def _outcomes(store: Store, one: Backfill) -> Iterator[tuple[int, str]]:
    """Yield each time with its outcome in the history, the newest first.

    A read that begins at a time finds all entries of it, and of times before it. So a sparse
    schedule costs at most a read for each time, however long its history is.
    """
    page: Sequence[Occurrence] = ()
    for at in replace(one, newest_first=True, cursor=None).list_ahead():
        if not page or not _shows(page, at):
            page = store.ledger.find(one.user_id, one.key, before=at + 1, limit=AT_ONCE)
        yield at, _outcome(page, at)


def _shows(page: Sequence[Occurrence], at: int) -> bool:
    """Return True if a page has all that is kept of a time: it is short, or reaches further."""
    if len(page) < AT_ONCE:
        return True
    own = (each.nominal_at for each in page if each.origin == SCHEDULE_ORIGIN)
    return page[-1].nominal_at < at and min(own, default=LATEST) <= at


def _outcome(page: Sequence[Occurrence], at: int) -> str:
    """Return the outcome of a time in one word: `fired`, `under_way`, a reason, or `none`."""
    here = [each for each in page if each.nominal_at == at]
    fired = [each for each in here if has_fired(each)]
    if fired:
        done = any(map(has_ended, fired))
        return "fired" if done else "under_way"
    own = [each for each in page if each.origin == SCHEDULE_ORIGIN and each.nominal_at <= at]
    newest = max(own, key=lambda each: each.nominal_at, default=None)
    if newest and at <= (newest.range_end or newest.nominal_at):
        return str(newest.reason)
    return next((str(each.reason) for each in here), "none")


def plan_json(plan: Plan) -> dict[str, Json]:
    """Return a plan as the API shows it."""
    return {
        "order": _order_json(plan.one),
        "first": iso(plan.first),
        "last": iso(plan.last),
        "fired": plan.fired,
        "toBring": plan.to_bring,
        "outcomes": dict(plan.outcomes),
        "ticks": plan.ticks,
        "leastSeconds": plan.least_seconds,
        "paused": plan.is_paused,
        "heldBy": held_json(plan.held_by),
    }


def backfill_json(found: Ordered) -> dict[str, Json]:
    """Return a backfill as the API shows it."""
    one = found.one
    return {
        "id": found.name,
        "origin": f"{BACKFILL_ORIGIN}{found.name}",
        "order": _order_json(one),
        "state": found.state,
        "waitsFor": one.waits_for,
        "by": one.by,
        "note": redact_text(one.note) or "",
        "startedAt": iso(found.since),
        "changedAt": iso(one.changed_at),
        "changedBy": one.changed_by,
        "endedAt": iso(found.ended_at),
        "cursor": iso(one.cursor),
        "brought": one.brought,
        "firedBefore": one.fired_before,
        "underWay": len(one.under_way),
        "succeeded": one.succeeded,
        "failed": one.failed,
        "cancelled": one.cancelled,
    }


def _order_json(one: Backfill) -> Json:
    return {
        "user": one.user_id,
        "key": one.key,
        "cron": one.cron,
        "timezone": one.timezone,
        "from": iso(one.since),
        "to": iso(one.until),
        "atOnce": one.at_once,
        "overlap": one.overlap,
        "onlyMissing": one.only_missing,
        "newestFirst": one.newest_first,
        "times": one.total,
    }
