"""The ledger: all occurrences and their outcomes."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from duetick.core.standing import FreshOrders
from duetick.core.store.limits import ScopeLimits
from duetick.core.store.pauses import GroupPauses
from duetick.core.store.within import BeginWithin, FindAction
from duetick.domain.attempts import (
    RELEASED,
    SUCCEEDED,
    Begun,
    CallerKey,
    OnLost,
    Outcome,
    Refused,
    Settled,
    gives_run_back,
    refuse,
    refuse_key,
    settle,
    tell_lost,
)
from duetick.domain.book import Book
from duetick.domain.errors import DuetickError
from duetick.domain.failure_hooks import has_hook
from duetick.domain.failures import Event
from duetick.domain.group_pauses import NO_PAUSES, Pauses
from duetick.domain.identity import is_job
from duetick.domain.limits import NO_LIMITS, Limits
from duetick.domain.occurrence import (
    Identity,
    Leased,
    NewOccurrence,
    Occurrence,
    ScheduleName,
)
from duetick.domain.paging import check_findable, place_of
from duetick.domain.schedule import Record
from duetick.domain.standing import StandingOrder
from duetick.domain.states import State
from duetick.domain.transitions import has_ended, release, renew
from duetick.ports import Clock, Effects, Fair, KeyHeld, Query, Shelf, Terms

if TYPE_CHECKING:
    from duetick.domain.backfilling import BackfillStep
    from duetick.domain.operating import Operated, Operator

OnPaused: TypeAlias = Callable[[Record], object]
"""A function that sees each schedule that is paused because it failed too often in a row."""

T = TypeVar("T")

logger = logging.getLogger("duetick.failing")


def _ignore(_paused: Record) -> None:
    """Ignore the pause of a failing schedule: nobody counts the pauses."""


class Ledger:
    """All occurrences of a database. A method takes a leased occurrence where it takes a lease."""

    def __init__(
        self,
        shelf: Shelf,
        clock: Clock,
        new_id: Callable[[], str],
        pauses: GroupPauses | None = None,
        limits: ScopeLimits | None = None,
    ) -> None:
        self._shelf = shelf
        self.on_paused: OnPaused = _ignore
        standing = FreshOrders(shelf)
        self._pauses = pauses or GroupPauses(shelf, standing)
        self._limits = limits or ScopeLimits(shelf, standing)
        self._begin_within = BeginWithin(shelf, self._limits)
        self._clock = clock
        self._new_id = new_id

    def bring(
        self,
        asked: NewOccurrence,
        *,
        now: int | None = None,
        key: CallerKey | None = None,
        body: str | None = None,
    ) -> Occurrence | Refused:
        """Record the occurrence that a caller requests, under a lease for a call that begins it.

        If that call never comes, a tick finds the ended lease. The request is refused if the
        occurrence is recorded already, or if another run has the `key`. The key is read first; the
        write that records the occurrence takes it, and keeps the `body` that was sent, as JSON.
        """
        at, name = self._at(now), self._new_id()
        try:
            return self._shelf.change(
                asked.user_id,
                asked.key,
                at,
                lambda book: book.bring(asked, name, at),
                terms=Terms(key=key, body=body),
            )
        except KeyHeld as conflict:
            return conflict.refused

    def backfill(
        self, schedule: ScheduleName, order: StandingOrder, *, now: int | None = None
    ) -> "BackfillStep":
        """Bring the next occurrences of a backfill of a schedule, as many as there is room for.

        Each is leased. The caller writes the order. Until then a repeat finds the occurrences that
        this call recorded, and brings nothing twice.
        """
        at = self._at(now)
        pauses = self._pauses.current(at)
        return self._shelf.change(*schedule, at, lambda book: book.backfill(order, at, pauses))

    def body(self, identity: Identity) -> str | None:
        """Return the kept body of an occurrence's caller; None if none was kept."""
        return self._shelf.body(identity)

    def holds(self, key: CallerKey, *, now: int) -> Refused | None:
        """Return the refusal that `bring` would give for a caller's key, or None. The key is not
        taken.
        """
        found = self._shelf.key_holder(key)
        return refuse_key(*found, now) if found else None

    def begin(
        self,
        held: Leased,
        *,
        now: int | None = None,
        on_lost: OnLost | None = None,
        find_action: FindAction | None = None,
        needs_place: bool = True,
    ) -> Begun | Refused:
        """Begin an attempt if its fence, its schedule, the place, the limit of runs, the pauses of
        groups and the limits allow it. A begin sees a pause or a limit at most five seconds after
        it was made. If a limit has no place, the occurrence waits, unless it needs none.
        `find_action` is asked if the schedule has no record, and its flow has a limit of an action.

        One conditional write begins and counts the attempt. If another occurrence of the schedule
        runs after the end of its lease, that write ends it; `on_lost` sees it.
        """
        at = self._at(now)
        pauses, limits = self._pauses.current(at), self._limits.current(at)
        if needs_place and limits.concerns(held.user_id, held.flow or None):
            ask = find_action if limits.asks_action(held.flow or None) else None
            answer, lost = self._begin_within(held, at, pauses, ask)
            self._tell_lost(on_lost, lost, at)
            return answer
        if not pauses.of(held.user_id, held.flow or None):
            (begun,) = self._shelf.begin([held], at)
            if begun:
                return _raise_error(begun)
        return self._begin_generally(held, at, pauses, on_lost)

    def begin_many(
        self,
        held: Sequence[Leased],
        *,
        now: int,
        on_lost: OnLost | None = None,
        find_action: Callable[[Leased], str | None] | None = None,
    ) -> Sequence[Begun | Refused | DuetickError]:
        """Begin attempts of different schedules, in one trip if nothing prevents them.

        If pauses or limits may concern an attempt, or the trip did not begin it, `begin` begins it
        alone. If the store does not answer then, the error stands for the attempt. `find_action`
        answers as that of `begin` does.
        """
        pauses, limits = self._pauses.current(now), self._limits.current(now)

        def is_plain(one: Leased) -> bool:
            flow = one.flow or None
            return not (limits.concerns(one.user_id, flow) or pauses.of(one.user_id, flow))

        plain = [one for one in held if is_plain(one)]
        begun = dict(
            zip([one.identity for one in plain], self._shelf.begin(plain, now), strict=True)
        )

        def begin_alone(one: Leased) -> Begun | Refused | DuetickError:
            try:
                if one.identity not in begun:
                    ask = partial(find_action, one) if find_action else None
                    return self.begin(one, now=now, on_lost=on_lost, find_action=ask)
                known = self._shelf.occurrence(one.identity)
                refused = refuse(known, one, now) if known else None  # mostly it came twice
                return refused or self._begin_generally(one, now, pauses, on_lost)
            except DuetickError as error:
                return error

        return [begun.get(one.identity) or begin_alone(one) for one in held]

    def _begin_generally(
        self, held: Leased, at: int, pauses: Pauses, on_lost: OnLost | None
    ) -> Begun | Refused:
        def alter(book: Book) -> tuple[Begun | Refused, Sequence[Occurrence]]:
            return book.begin(held, at, pauses), book.lost

        answer, lost = self._shelf.change(held.user_id, held.key, at, alter, about=held)
        self._tell_lost(on_lost, lost, at)
        return answer

    def settle(
        self, held: Leased, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        """Write the end of a begun attempt. Return None if the fence is stale.

        If the schedule retries, a failure leaves the occurrence retrying until its attempts are
        spent.
        """
        at = self._at(now)
        settled = _settle_begun(held, outcome, at)
        (after,) = self._shelf.settle([settled], at) if settled else (None,)
        return self._conclude(held, outcome, at, _raise_error(after))

    def settle_many(
        self, ends: Sequence[tuple[Leased, Outcome]], *, now: int
    ) -> Sequence[Occurrence | DuetickError | None]:
        """Write the ends of attempts of different schedules, in one trip if they are as their
        begins left them. Any other is settled alone: if the store does not answer then, that
        error stands for the attempt.
        """
        worked_out = [_settle_begun(held, outcome, now) for held, outcome in ends]
        written = iter(self._shelf.settle([one for one in worked_out if one], now))
        after = [next(written) if one else None for one in worked_out]

        def conclude(
            held: Leased, outcome: Outcome, ended: Occurrence | DuetickError | None
        ) -> Occurrence | DuetickError | None:
            try:
                return self._conclude(held, outcome, now, _raise_error(ended))
            except DuetickError as error:
                return error

        return [conclude(*end, ended) for end, ended in zip(ends, after, strict=True)]

    def _conclude(
        self, held: Leased, outcome: Outcome, at: int, after: Occurrence | None
    ) -> Occurrence | None:
        """Do what follows the end of an attempt. If the attempt is not settled, settle it in the
        general way.
        """
        ended = after or self._shelf.change(
            held.user_id, held.key, at, lambda book: book.settle(held, outcome, at), about=held
        )
        self._limits.give_back(held, at)
        if ended:
            self._look_after([ended], at)
        return ended

    def reject(
        self, held: Leased, outcome: Outcome, *, now: int, on_lost: OnLost | None = None
    ) -> Occurrence | None:
        """Begin an occurrence that cannot run, and settle it with the outcome. Return None if it
        may not begin. It needs no place of a limit.
        """
        begun = self.begin(held, now=now, on_lost=on_lost, needs_place=False)
        if isinstance(begun, Refused):
            return None
        return self.settle(begun.occurrence, outcome, now=now)

    @contextmanager
    def settling(self, held: Leased, clock: Clock) -> Iterator[Effects]:
        """Open a transaction for an action's effects. Its commit settles the attempt as succeeded.

        If the block raises, nothing is written, not even the settling. If the fence is stale at the
        end of the block, or the attempt has ended (even with success), LeaseLost is raised and
        nothing is written: the effects would be made twice.
        """
        tried: list[bool] = []

        def alter(book: Book) -> None:
            found = book.pages.find(held.nominal_at, held.origin) if tried else None
            if found and found.fence == held.fence and found.state is State.SUCCEEDED:
                return  # the try before was committed, and its answer was lost
            tried.append(True)
            book.settle_running(held, SUCCEEDED, clock())

        with self._shelf.effects(held, clock, alter) as transaction:
            yield transaction

    def release(
        self, held: Leased, *, now: int | None = None, on_lost: OnLost | None = None
    ) -> bool:
        """Give a lease back if its attempt never began: the occurrence is due again, or lost if too
        late.

        If the attempt began, or the fence is stale, nothing changes and the answer is False. A late
        call with the old fence is refused, so a release is always safe.
        """
        at = self._at(now)
        after = self._write_lease(held, State.QUEUED, release, at, RELEASED)
        if after:
            self._tell_lost(on_lost, [after], at)
            return True

        def alter(book: Book) -> tuple[bool, Sequence[Occurrence]]:
            return book.release(held, at), book.lost

        name, alone = (held.user_id, held.key), not is_job(held.origin)
        released, lost = self._shelf.change(*name, at, alter, about=held, alone=alone)
        self._tell_lost(on_lost, lost, at)
        return released

    def renew(self, held: Leased, *, now: int | None = None) -> Occurrence | None:
        """Extend the lease of a begun attempt. Return None if the fence is stale."""
        at = self._at(now)
        name = held.user_id, held.key
        if isinstance(held, Occurrence):  # first, so that no place ends before its attempt
            self._limits.extend(held, renew(held, at).lease_until or at, at)
        return self._write_lease(held, State.PROCESSING, renew, at) or self._shelf.change(
            *name, at, lambda book: book.renew(held, at), about=held, alone=True
        )

    def _write_lease(
        self,
        held: Leased,
        state: State,
        step: Callable[[Occurrence, int], Occurrence],
        now: int,
        note: str | None = None,
    ) -> Occurrence | None:
        """Write the step of an occurrence that its holder has in that state. None means: the book
        decides.
        """
        if not isinstance(held, Occurrence) or held.state is not state:
            return None
        after = step(held, now)
        if _writes_more(after):
            return None
        event = None if note is None else Event(now, state, after.state, note)
        return self._shelf.write_lease(held, after, event)

    def write_off(self, held: Leased, *, now: int | None = None) -> Occurrence | None:
        """End a leased occurrence as lost, because a restore lost its outcome.

        If it began under this lease, or the fence is stale, nothing changes and the answer is None.
        """
        at, name = self._at(now), (held.user_id, held.key)
        alone = not is_job(held.origin)
        return self._shelf.change(
            *name, at, lambda book: book.write_off(held, at), about=held, alone=alone
        )

    def retry(
        self, found: Leased, by: "Operator", *, now: int | None = None, dry: bool = False
    ) -> "Operated":
        """Let a dead occurrence begin once more, from now on. One that is under way stays as it is.

        Raises OccurrenceConflict if it is not dead, or would not begin; OccurrenceNotFound if it is
        not there.
        """
        at = self._at(now)
        pauses = self._pauses.current(at)
        return self._shelf.change(
            found.user_id,
            found.key,
            at,
            lambda book: _of(book, dry=dry).retry(found, by, at, pauses),
            about=found,
        )

    def cancel(
        self, found: Leased, by: "Operator", *, now: int | None = None, dry: bool = False
    ) -> "Operated":
        """End an occurrence that runs or waits, reason `operator`. One that is cancelled stays so.

        An action that runs goes on, but cannot settle: its writes in a transaction are undone.
        Raises OccurrenceConflict if it has ended otherwise.
        """
        at = self._at(now)
        return self._shelf.change(
            found.user_id,
            found.key,
            at,
            lambda book: _of(book, dry=dry).cancel(found, by, at),
            about=found,
        )

    def discard(
        self, found: Leased, by: "Operator", *, now: int | None = None, dry: bool = False
    ) -> "Operated":
        """Delete the texts, labels and events of an occurrence that has ended, or never began.

        Its name, its times and the reason of its end stay, so that nothing fires again. Raises
        OccurrenceConflict if it may still begin or settle.
        """
        at = self._at(now)
        return self._shelf.change(
            found.user_id,
            found.key,
            at,
            lambda book: _of(book, dry=dry).discard(found, by, at),
            about=found,
        )

    def claim_waiting(
        self,
        now: int,
        limit: int = 100,
        *,
        ahead: int = 0,
        leave_out: Collection[str] = (),
        share: int | None = None,
        pauses: Pauses = NO_PAUSES,
        limits: Limits = NO_LIMITS,
        late: int = 0,
        on_lost: OnLost | None = None,
    ) -> Sequence[Occurrence]:
        """Lease occurrences that wait: ended leases first, then due scheduled and retrying ones.

        With `ahead`, occurrences that come due by then are leased too. `leave_out` and `share` work
        as for due rows. A retry that one of the `pauses` holds stays, and so does an occurrence for
        which one of the `limits` has no place. An occurrence that waits for less than `late`
        milliseconds stays too. An occurrence that may not be tried again becomes dead, reason
        `lost`, and is not in the answer.
        """
        fair = Fair(frozenset(leave_out), share, pauses, limits, late)
        while True:
            taken = self._shelf.lease(now, limit, ahead, fair)
            self._tell_lost(on_lost, taken, now)
            alive = [one for one in taken if one.state is State.QUEUED]
            if alive or not taken:
                return alive

    def find(
        self,
        user_id: str | None = None,
        key: str | None = None,
        *,
        state: State | Collection[State] | None = None,
        limit: int = 50,
        before: int | Identity | None = None,
    ) -> Sequence[Occurrence]:
        """Return the newest occurrences first; those of one time by user, key and origin.

        `before` is a time, whose occurrences are left out, or the identity of a page's last
        occurrence, after which the next page begins. Without a user, only those that run, that
        wait, or that are dead have an index; anything else raises InvalidQuery.
        """
        states = frozenset([state] if isinstance(state, State) else state or ())
        check_findable(user_id, key, states)
        return self._shelf.find(Query(user_id, key, states, place_of(before), limit))

    def find_by_id(self, name: str) -> Occurrence | None:
        """Return the occurrence of an id; None if there is none, or no index finds it.

        No id has a NUL or half a character, which not every database takes.
        """
        return self._shelf.find_by_id(name) if name.isprintable() else None

    def get(self, user_id: str, key: str, nominal_at: int, origin: str) -> Occurrence | None:
        """Return the occurrence of an identity, or None."""
        return self._shelf.occurrence((user_id, key, nominal_at, origin))

    def events(self, held: Leased) -> Sequence[Event]:
        """Return the transitions beyond claim, begin and settle, oldest first."""
        return self.events_of([held])[0]

    def events_of(self, occurrences: Sequence[Leased]) -> Sequence[Sequence[Event]]:
        """Return the events of each occurrence, as `events` does, in one trip."""
        return self._shelf.events([one.identity for one in occurrences])

    def _tell_lost(self, on_lost: OnLost | None, after: Sequence[Occurrence], now: int) -> None:
        tell_lost(on_lost, after)
        self._look_after(after, now)

    def _look_after(self, ended: Sequence[Occurrence], now: int) -> None:
        """Pause the schedules that a death among these makes fail too often in a row.

        If that fails, the occurrence has ended all the same, and the next death looks again.
        """
        for one in ended:
            if one.state is not State.DEAD or one.policies.pause_after is None:
                continue
            from duetick.core.store.failing import counts_as_failure, pause_failing

            try:
                paused = counts_as_failure(one) and pause_failing(self._shelf, one, now)
            except DuetickError as problem:
                details = {"action": "auto_pause_failed", "schedule": one.schedule_id}
                logger.warning("a failing schedule is not paused: %s", problem, extra=details)
            else:
                if paused:
                    self.on_paused(paused)

    def _at(self, now: int | None) -> int:
        return self._clock() if now is None else now


def _raise_error(answer: T | DuetickError) -> T:
    """Return the answer to one write; raise it if it is an error."""
    if isinstance(answer, DuetickError):
        raise answer
    return answer


def _of(book: Book, *, dry: bool) -> Book:
    """Return the book to change. In a dry run, return a copy, which is never written."""
    return book.copy() if dry else book


def _settle_begun(leased: Leased, outcome: Outcome, now: int) -> Settled | None:
    """Return the end of an attempt, worked out from the occurrence as it was begun; None if the
    holder has another one in hand, or if more is to be written with it: a run that is given back, a
    failure hook, the mark of a job's end.
    """
    if not isinstance(leased, Occurrence) or leased.state is not State.PROCESSING:
        return None
    if gives_run_back(leased, outcome):
        return None
    settled = settle(leased, outcome, now)
    return None if _writes_more(settled.after) else settled


def _writes_more(after: Occurrence) -> bool:
    """Return True if more is written with an occurrence: its failure hook, the end of its job."""
    return has_hook(after) or (is_job(after.origin) and has_ended(after))
