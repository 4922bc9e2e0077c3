"""One pass of a tick: claim, then deliver. Claims go on during the deliveries, all within the
budget.
"""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from functools import partial
from typing import Final

from duetick.core.correlation import in_tick
from duetick.core.store import Store
from duetick.core.threads import REAL, Start, Threads
from duetick.core.tick.claims import MARGIN, Claims, fit_look_ahead
from duetick.core.tick.delivery import Deliveries, Slots, Undelivered
from duetick.core.tick.frame import Frame, look_first
from duetick.core.tick.places import Places
from duetick.core.tick.report import Tally, TickReport
from duetick.core.tick.turns import Turns
from duetick.domain.schedule import Identity, Occurrence
from duetick.ports import Observer, Tell, Transport, Witness, tell_nobody

CHUNK: Final = 1_000
SLOTS: Final = 64
FIRST_CHUNK: Final = 3 * SLOTS
"""The occurrences that a tick takes before it knows its pace. The third round of the slots begins
before the leases end, however long a delivery takes within its policy's timeout.
"""
IN_LINE: Final = 15.0
"""The seconds of deliveries that a tick has in line at most. The leases last longer, and so do they
for one round of the slots.
"""
CLAIM_SECONDS: Final = 0.25
"""The longest that a claim of a chunk takes beside deliveries that keep the processor busy."""
AHEAD: Final = 5_000
"""The most occurrences that wait for their time. The overlapping tick takes its part of a mass that
comes due in one second.
"""
FIRST_MOMENT: Final = 0.1
GLANCE: Final = 0.5
"""Seconds after which a tick that waits looks whether it has to stop."""


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
    most_slots: int = 0,
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

    It delivers `slots` at once at first, and up to `most_slots` if answers take long.

    `on_dispatch` sees every delivery with its status, 0 for a transport error. With `look_ahead`
    (milliseconds), occurrences that come due by then are claimed too, and each is delivered at its
    own time. If `stopped` returns True, no delivery begins any more, and the running ones are
    finished. `tell` hears of each occurrence that this tick knows to be dead, poisoned, or later
    than `late_after` (milliseconds); it must return at once. If a claim raises, that error is
    raised after the deliveries. If the store is older than its `witness`, StoreRestored is raised
    before the first claim. `take_in` takes the rows of the inbox in before the first claim. If
    bells ring for the rows, a tick claims those that are due for `late` milliseconds.

    A tick that finds nothing to do looks once, and reports.
    """
    first = look_first(store, now, fit_look_ahead(look_ahead, budget), witness, take_in)
    at = first.now
    tally = Tally(tell, late_after)
    frame = Frame(store, at, budget, tally, elapsed=elapsed, stopped=stopped, late=late)
    if first.is_idle:
        return frame.end_idle()
    of_tick = Slots(slots, most_slots)
    tick = Tick(frame, transport, on_dispatch=on_dispatch, slots=of_tick, threads=threads)
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
        nothing_waits=first.nothing_waits,
    )
    with frame.complete(claims):
        tick.run(claims, sleep)
    return frame.report


class Tick:
    """The deliveries of one tick, over a transport that waits for answers."""

    def __init__(
        self,
        frame: Frame,
        transport: Transport,
        *,
        on_dispatch: Observer | None,
        slots: Slots,
        threads: Threads,
    ) -> None:
        self._frame = frame
        self._threads = threads
        self._slots = slots
        self._turns = Turns((), slots.now, threads)
        self._later: list[tuple[int, int, Occurrence]] = []
        self._seen: set[Identity] = set()
        self._came_back: list[Occurrence] = []
        self._undelivered = Undelivered(frame.store, frame.tally, frame.clock, on_dispatch)
        self.places = Places(frame.store)
        self._deliveries = Deliveries(
            transport, frame.tally, frame.clock, self._undelivered, places=self.places
        )
        self._failures = 0
        self._workers = self._number = 0

    def run(self, claims: Claims, sleep: Callable[[float], object]) -> None:
        """Claim and deliver until the end of the tick."""
        with self._threads.open_threads(self._slots.most) as start:
            try:
                if self._frame.may_begin():
                    self._take_in(claims, claims.look_around(min(FIRST_CHUNK, AHEAD)))
                if self._later:
                    self._line_up_due(start)
                    self._frame.reporter.begin()
                while self._frame.may_begin() and self._step(claims, start, sleep):
                    pass
            finally:
                self._release_rest()
                self._turns.close()
        self._frame.raise_claim_error()

    def _step(self, claims: Claims, start: Start, sleep: Callable[[float], object]) -> bool:
        """Claim, or wait until the next occurrence is due, or until a limit has a place again.
        Return False if nothing is left.
        """
        self._line_up_due(start)
        if self._turns.in_line > self._workers:
            self._start_workers(start, self._turns.in_line)
        self.places.free_begun(self._frame.clock())
        if self.places.has_freed and not self._frame.claim_error:
            claims.over = False
        threshold = self._claim_below(claims)
        if self._turns.in_line < threshold:
            self._take_in(claims, claims.next(self._count_deliverable(), self._full_users))
        elif claims.over and not (self._frame.saw_backfills or self._is_endpoint_down()):
            self._frame.bring_backfills(self._add)
        elif self._turns.in_line:
            self._turns.wait_until_fewer(max(threshold, 1), self._due_in())
        elif self._later:
            sleep(self._due_in())
        elif self.places.waits and not (self._frame.claim_error or self._is_endpoint_down()):
            self._turns.wait_until(lambda: self.places.has_freed, GLANCE)
        else:
            return False
        return True

    def _claim_below(self, claims: Claims) -> int:
        """Return the length of the line below which the tick claims; 0 if the tick must not claim
        now.

        The line has to last for the deliveries that begin during one claim.
        """
        if claims.over or self._is_endpoint_down() or len(self._later) >= AHEAD:
            return 0
        return max(self._slots.now, int(self._pace() * CLAIM_SECONDS))

    def _full_users(self, share: int) -> set[str]:
        """Return the users who have a share of the occurrences that are claimed and not begun."""
        later = Counter(one.user_id for _, _, one in self._later)
        return self._turns.full(share, later)

    def _due_in(self) -> float:
        """Return the seconds until the next occurrence is due, at most `GLANCE`."""
        if not self._later:
            return GLANCE
        return max(0.0, min((self._later[0][0] - self._frame.clock()) / 1_000, GLANCE))

    def _take_in(self, claims: Claims, chunks: Iterator[Sequence[Occurrence]]) -> None:
        self._frame.take_in(claims, chunks, self._add)

    def _add(self, claimed: Sequence[Occurrence]) -> None:
        for occurrence in claimed:
            if occurrence.identity in self._seen:
                self._came_back.append(occurrence)
                self.places.forget(occurrence)
                continue
            self._seen.add(occurrence.identity)
            self._number += 1
            heapq.heappush(self._later, (occurrence.due_at, self._number, occurrence))

    def _line_up_due(self, start: Start) -> None:
        """Put the occurrences that are due into the line, with enough workers for them."""
        due: list[Occurrence] = []
        now = self._frame.clock()
        while self._later and self._later[0][0] <= now:
            due.append(heapq.heappop(self._later)[2])
        if due:
            self._turns.add(due)
            self._start_workers(start, len(due))

    def _start_workers(self, start: Start, most: int) -> None:
        """Start a worker for each slot that has none, at most `wanted`."""
        wanted = min(self._slots.now, self._workers + most)
        for _ in range(wanted - self._workers):
            start(partial(copy_context().run, self._work))
        self._workers = max(self._workers, wanted)

    def _work(self) -> None:
        while (occurrence := self._turns.take()) is not None:
            try:
                self._deliver(occurrence)
            finally:
                self._turns.free(occurrence)

    def _deliver(self, occurrence: Occurrence) -> None:
        remaining = self._frame.remaining()
        if not self._frame.may_begin():
            self._release([occurrence])
            return
        timeout = min(occurrence.policies.timeout + MARGIN, remaining)
        began = self._frame.seconds_spent()
        endpoint = self._deliveries.deliver(occurrence, timeout)
        self._slots.note(self._frame.seconds_spent() - began, is_busy=endpoint == "busy")
        if self._slots.adapt(self._turns.in_line):
            self._turns.resize(self._slots.now)
        self._failures = 0 if endpoint == "up" else self._failures + 1

    def _release_rest(self) -> None:
        """Release the occurrences that have no time left, and those that this very tick claimed
        twice.

        Such an occurrence waits for another one, or another host's clock is behind ours: it would
        only come back once more.
        """
        later = [occurrence for _, _, occurrence in self._later]
        self._release([*self._turns.rest(), *later, *self._came_back])
        self._later.clear()

    def _release(self, occurrences: Sequence[Occurrence]) -> None:
        self._undelivered.give_back_all(occurrences, self._frame.remaining())

    def _is_endpoint_down(self) -> bool:
        """Return True if the endpoint takes nothing: more occurrences would only be leased."""
        return self._failures >= self._slots.now

    def _count_deliverable(self) -> int:
        """Return the number of further occurrences that can be delivered before their leases end.

        The pace so far decides. If there is the time, it is a round of the slots at least.
        """
        if not self._frame.tally.done:
            return FIRST_CHUNK
        left = self._frame.remaining() - MARGIN
        one_round = self._slots.now if left > IN_LINE else 0
        return max(one_round, int(self._pace() * min(left, IN_LINE))) - self._turns.in_line

    def _pace(self) -> float:
        """Return the deliveries per second. The first moment says too little, so it counts as
        longer.
        """
        return self._frame.tally.done / max(self._frame.seconds_spent(), FIRST_MOMENT)
