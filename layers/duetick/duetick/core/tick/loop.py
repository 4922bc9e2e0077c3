"""One pass of a tick: claim, then deliver. Claims go on meanwhile, all within the budget."""

import heapq
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from functools import partial
from typing import Final

from duetick.core.correlation import in_tick, tick_id
from duetick.core.done import delete_done
from duetick.core.store import Store
from duetick.core.tick.claims import MARGIN, Claims, claimed_ahead
from duetick.core.tick.delivery import Deliveries
from duetick.core.tick.places import Places
from duetick.core.tick.report import Tally, TickReport
from duetick.core.tick.threads import REAL, Start, Threads
from duetick.core.tick.turns import Turns
from duetick.core.witness import NOTE, check_witness, is_trusted
from duetick.core.workers import Reporter, end_tick
from duetick.domain.schedule import Identity, Occurrence
from duetick.domain.workers import Worker
from duetick.ports import Glance, Observer, Tell, Transport, Witness, tell_nobody

CHUNK: Final = 1_000
SLOTS: Final = 64
FIRST_CHUNK: Final = 4 * SLOTS
CLAIM_SECONDS: Final = 0.25
"""The longest that a claim of a chunk takes beside deliveries that keep the processor busy."""
AHEAD: Final = 5_000
"""The most occurrences that wait for their time. The overlapping tick takes its part of a mass that
comes due in one second.
"""
FIRST_MOMENT: Final = 0.1
GLANCE: Final = 0.5
"""Seconds after which a tick that waits looks whether it has to stop."""

logger = logging.getLogger("duetick.tick")


def never() -> bool:
    """Return False: nothing stops the tick."""
    return False


@in_tick()
def run_tick(
    store: Store,
    transport: Transport,
    *,
    now: int | None = None,
    budget: float = 55.0,
    on_dispatch: Observer | None = None,
    witness: Witness | None = None,
    look_ahead: int = 0,
    chunk: int = CHUNK,
    slots: int = SLOTS,
    stopped: Callable[[], bool] = never,
    elapsed: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
    threads: Threads = REAL,
    tell: Tell = tell_nobody,
    late_after: int | None = None,
    late: int = 0,
    take_in: Callable[[], object] | None = None,
) -> TickReport:
    """Claim until nothing is due or `budget` seconds are nearly spent; deliver what is claimed.

    `on_dispatch` sees every delivery with its status, 0 for a transport error. With `look_ahead`
    (milliseconds), occurrences that come due by then are claimed too, and each is delivered at its
    own time. If `stopped` returns True, no delivery begins any more, and those that run are
    finished. `tell` hears of each occurrence that this tick knows to be dead, poisoned, or later
    than `late_after` (milliseconds); it must return at once. If a claim raises, that error is
    raised after the deliveries. If the store is older than its `witness`, StoreRestored is raised
    before the first claim. `take_in` takes the rows of the inbox in, before that. If bells ring for
    the rows, a tick claims those that are due for `late` milliseconds.

    A tick that finds nothing to do looks once, and reports.
    """
    glance = _look(store, now, claimed_ahead(look_ahead, budget))
    at = glance.now if glance else store.now() if now is None else now
    if take_in and (glance is None or glance.brought):
        take_in()
    if witness and not (glance and is_trusted(glance.note, at)):
        _check(store, witness, at)
    if glance and glance.is_idle:
        return _end_idle(store, at, budget)
    tick = Tick(
        store,
        transport,
        now=at,
        budget=budget,
        on_dispatch=on_dispatch,
        slots=slots,
        elapsed=elapsed,
        stopped=stopped,
        threads=threads,
        tally=Tally(tell, late_after),
    )
    claims = Claims(
        store,
        at,
        chunk,
        slots=slots,
        look_ahead=look_ahead,
        budget=budget,
        elapsed=elapsed,
        tell=tell,
        places=tick.places,
        late=late,
        nothing_waits=glance is not None and not (glance.waits or glance.brought),
    )
    raised = True
    try:
        tick.run(claims, sleep)
        if not claims.over:  # the last claim found something
            tick.report.backlog = store.index.backlog(at - late)
        tick.purge()
        raised = False
    finally:
        tick.report.poisoned = claims.poisoned
        tick.report.lost += claims.lost
        tick.tell_end(raised=raised)
    return tick.report


def _look(store: Store, now: int | None, ahead: int) -> Glance | None:
    if now is None and store.now != store.shelf.now:
        now = store.now()  # a clock that replaces the database's
    try:
        glance = store.shelf.look(now, ahead, NOTE)
    except Exception:
        logger.exception("claim failed", extra={"action": "claim_failed"})
        raise
    if glance and not glance.ordered:
        store.standing.know(glance.now, ())
    return glance


def _end_idle(store: Store, now: int, budget: float) -> TickReport:
    """Report a tick that has found nothing to do."""
    report = TickReport()
    end_tick(_reporter(store, now, budget), report, now, raised=False)
    return report


def _reporter(store: Store, now: int, budget: float) -> Reporter:
    life = int((budget + MARGIN) * 1_000)
    return Reporter(store, Worker(tick_id(), "tick", now, now + life))


def _check(store: Store, witness: Witness, now: int) -> None:
    try:
        check_witness(store, witness, now)
    except Exception:
        logger.exception("claim failed", extra={"action": "claim_failed"})
        raise


class Tick:
    """The deliveries of one tick, and their report."""

    def __init__(
        self,
        store: Store,
        transport: Transport,
        *,
        now: int,
        budget: float,
        on_dispatch: Observer | None,
        slots: int,
        elapsed: Callable[[], float],
        stopped: Callable[[], bool],
        threads: Threads,
        tally: Tally,
    ) -> None:
        self._store = store
        self._threads = threads
        self._now = now
        self._slots = slots
        self._elapsed = elapsed
        self._stopped = stopped
        self._start = elapsed()
        self._end = self._start + budget
        self._turns = Turns((), slots, threads)
        self._later: list[tuple[int, int, Occurrence]] = []
        self._seen: set[Identity] = set()
        self._came_back: list[Occurrence] = []
        self._tally = tally
        self.places = Places(store)
        self._deliveries = Deliveries(
            store, transport, self._tally, on_dispatch, self._clock, places=self.places
        )
        self._failures = 0
        self._workers = self._number = 0
        self._may_end_a_schedule = self._saw_backfills = False
        self._claim_error: Exception | None = None
        self.report = self._tally.report
        self._reporter = _reporter(store, now, budget)

    def run(self, claims: Claims, sleep: Callable[[float], object]) -> None:
        """Claim and deliver until the end of the tick."""
        with self._threads.started(self._slots) as start:
            try:
                if self._may_begin():
                    self._take_in(claims, claims.look_around(min(FIRST_CHUNK, AHEAD)))
                if self._later:
                    self._line_up_due(start)
                    self._reporter.begin()
                while self._may_begin() and self._step(claims, start, sleep):
                    pass
            finally:
                self._release_rest()
                self._turns.close()
        if self._claim_error:
            raise self._claim_error

    def tell_end(self, *, raised: bool) -> None:
        """Report the end of the tick, and whether it raised."""
        end_tick(self._reporter, self.report, self._clock(), raised=raised)

    def purge(self) -> None:
        """Delete schedules that are done, in the time that is left.

        A tick asks for them only if it claimed one that is deleted when its last occurrence ends.
        """
        if not self._may_end_a_schedule or not self._may_begin():
            return
        try:
            delete_done(self._store, self._clock(), may_go_on=self._may_begin)
        except Exception:
            logger.exception("purge failed", extra={"action": "purge_failed"})

    def _step(self, claims: Claims, start: Start, sleep: Callable[[float], object]) -> bool:
        """Claim, or wait until the next occurrence is due, or until a limit has a place again.
        Return False if nothing is left.
        """
        self._line_up_due(start)
        if self.places.has_freed and not self._claim_error:
            claims.over = False
        threshold = self._claim_below(claims)
        if self._turns.in_line < threshold:
            self._take_in(claims, claims.next(self._count_deliverable(), self._full_users))
        elif claims.over and not (self._saw_backfills or self._is_endpoint_down()):
            self._bring_backfills()
        elif self._turns.in_line:
            self._turns.wait_until_fewer(max(threshold, 1), self._due_in())
        elif self._later:
            sleep(self._due_in())
        elif self.places.waits and not (self._claim_error or self._is_endpoint_down()):
            self._turns.wait_until(lambda: self.places.has_freed, GLANCE)
        else:
            return False
        return True

    def _claim_below(self, claims: Claims) -> int:
        """Return the length of the line below which the tick claims; 0 if it must not claim now.

        The line has to last for the deliveries that begin during one claim.
        """
        if claims.over or self._is_endpoint_down() or len(self._later) >= AHEAD:
            return 0
        return max(self._slots, int(self._pace() * CLAIM_SECONDS))

    def _full_users(self, share: int) -> set[str]:
        """Return the users who have a share of the occurrences that are claimed and not begun."""
        later = Counter(one.user_id for _, _, one in self._later)
        return self._turns.full(share, later)

    def _due_in(self) -> float:
        """Return the seconds until the next occurrence is due, at most `GLANCE`."""
        if not self._later:
            return GLANCE
        return max(0.0, min((self._later[0][0] - self._clock()) / 1_000, GLANCE))

    def _take_in(self, claims: Claims, chunks: Iterator[Sequence[Occurrence]]) -> None:
        """Take chunks in. If a claim fails, the chunks before it are delivered first."""
        try:
            for claimed in chunks:
                self._add(claimed)
        except Exception as error:
            logger.exception("claim failed", extra={"action": "claim_failed"})
            self._claim_error, claims.over = error, True

    def _bring_backfills(self) -> None:
        """Take in what backfills bring, once nothing else is due: they delay nothing."""
        self._saw_backfills = True
        try:
            orders = self._store.standing.at(self._clock())
            if any(one.kind == "backfill" for one in orders):
                from duetick.core.tick.backfilling import bring

                for brought in bring(self._store, orders, self._clock, self._may_begin):
                    self._add(brought)
        except Exception:
            logger.exception("backfills failed", extra={"action": "backfill_failed"})

    def _add(self, claimed: Sequence[Occurrence]) -> None:
        self.report.claimed += len(claimed)
        for occurrence in claimed:
            if occurrence.identity in self._seen:
                self._came_back.append(occurrence)
                self.places.forget(occurrence)
                continue
            self._seen.add(occurrence.identity)
            self._number += 1
            if occurrence.policies.after_completion == "delete":
                self._may_end_a_schedule = True
            heapq.heappush(self._later, (occurrence.due_at, self._number, occurrence))

    def _line_up_due(self, start: Start) -> None:
        """Put the occurrences that are due into the line, with enough workers for them."""
        due: list[Occurrence] = []
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            due.append(heapq.heappop(self._later)[2])
        if due:
            self._turns.add(due)
            wanted = min(self._slots, self._workers + len(due))
            for _ in range(wanted - self._workers):
                start(partial(copy_context().run, self._work))
            self._workers = wanted

    def _work(self) -> None:
        while (occurrence := self._turns.take()) is not None:
            try:
                self._deliver(occurrence)
            finally:
                self._turns.done(occurrence)

    def _deliver(self, occurrence: Occurrence) -> None:
        remaining = self._remaining()
        if not self._may_begin():
            self._release([occurrence])
            return
        timeout = min(occurrence.policies.timeout + MARGIN, remaining)
        reached = self._deliveries.deliver(occurrence, timeout)
        self._failures = 0 if reached else self._failures + 1

    def _release_rest(self) -> None:
        """Release the occurrences that have no time left, and those that this very tick claimed
        twice.

        An occurrence that came back waits for another one, or another host's clock is behind ours:
        it would only come back once more.
        """
        later = [occurrence for _, _, occurrence in self._later]
        self._release([*self._turns.rest(), *later, *self._came_back])
        self._later.clear()

    def _release(self, occurrences: Sequence[Occurrence]) -> None:
        """Release occurrences while there is time. The ends of their leases free the others."""
        for occurrence in occurrences:
            if self._remaining() <= 0:
                break
            self._deliveries.give_back(occurrence)
        self._tally.gave_back(len(occurrences))

    def _is_endpoint_down(self) -> bool:
        """Return True if the endpoint takes nothing: more occurrences would only be leased."""
        return self._failures >= self._slots

    def _count_deliverable(self) -> int:
        """Return how many more occurrences can be delivered, at the pace so far."""
        if not self._tally.done:
            return FIRST_CHUNK
        return int(self._pace() * (self._remaining() - MARGIN)) - self._turns.in_line

    def _pace(self) -> float:
        """Return the deliveries per second. The first moment says too little, so it counts as
        longer.
        """
        return self._tally.done / max(self._elapsed() - self._start, FIRST_MOMENT)

    def _may_begin(self) -> bool:
        return self._remaining() > MARGIN and not self._stopped()

    def _remaining(self) -> float:
        return self._end - self._elapsed()

    def _clock(self) -> int:
        """Return the time of the tick: its `now`, and the time that has passed since its start."""
        return self._now + int((self._elapsed() - self._start) * 1_000)
