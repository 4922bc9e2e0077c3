"""One pass: claim, then deliver. Claims go on while deliveries do; each keeps within the time."""

import heapq
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

from duetick.core.claiming import MARGIN, Claiming
from duetick.core.tally import Tally, TickReport
from duetick.core.turns import Turns
from duetick.domain.schedule import Identity, Occurrence
from duetick.ports import Delivery, Store, Transport

Observer: TypeAlias = Callable[[Occurrence, int], object]

CHUNK: Final = 1_000
SLOTS: Final = 64
FIRST_CHUNK: Final = 4 * SLOTS
CLAIM_SECONDS: Final = 0.25
"""What a claim of a chunk takes, at most, beside deliveries that keep the processor busy."""
SOON: Final = 20.0
"""Seconds in which what was claimed is begun, whatever waits: the shortest lease is 36."""
AHEAD: Final = 5_000
"""Held for later at once: what all comes due in one second is the overlapping tick's as well."""
FIRST_MOMENT: Final = 0.1
DOWN: Final = frozenset({0, 401, 403, 429})
"""Statuses below 500 that say more of the endpoint than of the occurrence."""
GLANCE: Final = 0.5
"""Seconds after which a tick that waits looks whether it is to stop."""

logger = logging.getLogger("duetick.tick")


def never() -> bool:
    """Nobody stops it."""
    return False


def run_tick(
    store: Store,
    transport: Transport,
    *,
    now: int | None = None,
    budget: float = 55.0,
    on_dispatch: Observer | None = None,
    look_ahead: int = 0,
    chunk: int = CHUNK,
    slots: int = SLOTS,
    stopped: Callable[[], bool] = never,
    elapsed: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> TickReport:
    """Claim until nothing is due or `budget` seconds are nearly spent, and deliver what is claimed.

    `on_dispatch` sees every delivery with its status, 0 for a transport error. With `look_ahead`
    (milliseconds), what comes due by then is claimed too, and delivered each at its own time.
    When `stopped` says so, nothing more is begun, and what is under way is finished. What a claim
    raises is raised when that is done.
    """
    at = store.now() if now is None else now
    tick = Tick(
        store,
        transport,
        now=at,
        budget=budget,
        on_dispatch=on_dispatch,
        slots=slots,
        elapsed=elapsed,
        stopped=stopped,
    )
    claiming = Claiming(store, at, chunk, look_ahead=look_ahead, budget=budget)
    tick.run(claiming, sleep)
    if not claiming.over:  # the last claim found something
        tick.report.backlog = store.index.backlog(at)
    tick.report.poisoned = claiming.poisoned
    tick.report.lost += claiming.lost
    return tick.report


class Tick:
    """The deliveries of one tick, and how they went."""

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
    ) -> None:
        self._store = store
        self._transport = transport
        self._now = now
        self._on_dispatch = on_dispatch
        self._slots = slots
        self._elapsed = elapsed
        self._stopped = stopped
        self._start = elapsed()
        self._end = self._start + budget
        self._turns = Turns((), slots)
        self._later: list[tuple[int, int, Occurrence]] = []
        self._seen: set[Identity] = set()
        self._again: list[Occurrence] = []
        self._tally = Tally()
        self._failures = 0
        self._workers = self._number = 0
        self._broken: Exception | None = None
        self.report = self._tally.report

    def run(self, claiming: Claiming, sleep: Callable[[float], object]) -> None:
        """Claim and deliver, to the end."""
        with ThreadPoolExecutor(self._slots, thread_name_prefix="deliver") as pool:
            try:
                while self._may_begin() and self._step(claiming, pool, sleep):
                    pass
            finally:
                self._give_back()
                self._turns.close()
        if self._broken:
            raise self._broken

    def _step(
        self, claiming: Claiming, pool: ThreadPoolExecutor, sleep: Callable[[float], object]
    ) -> bool:
        """Claim, or wait for the next to come due; False when there is nothing more to do."""
        self._ripen(pool)
        turns, more = self._turns, not claiming.over and not self._pointless()
        more = more and len(self._later) < AHEAD
        few = self._least() if more else 1
        foremost = turns.waiting < self._soon()
        if more and (turns.foremost if foremost else turns.waiting) < few:
            self._claim(claiming)
        elif turns.waiting:
            turns.wait_until_fewer(few, self._due_in(), foremost=foremost)
        elif self._later:
            sleep(self._due_in())
        else:
            return False
        return True

    def _due_in(self) -> float:
        """Seconds until another comes due, or until it is time to look up."""
        if not self._later:
            return GLANCE
        return max(0.0, min((self._later[0][0] - self._clock()) / 1_000, GLANCE))

    def _claim(self, claiming: Claiming) -> None:
        """Take a chunk in. Where that fails, what was claimed before is delivered first."""
        try:
            claimed = claiming.next(self._deliverable())
        except Exception as error:
            logger.exception("claim failed", extra={"action": "claim_failed"})
            self._broken, claiming.over = error, True
            return
        self.report.claimed += len(claimed)
        for occurrence in claimed:
            if occurrence.identity in self._seen:
                self._again.append(occurrence)
                continue
            self._seen.add(occurrence.identity)
            self._number += 1
            heapq.heappush(self._later, (occurrence.due_at, self._number, occurrence))

    def _ripen(self, pool: ThreadPoolExecutor) -> None:
        """What is due takes its turn."""
        due: list[Occurrence] = []
        now = self._clock()
        while self._later and self._later[0][0] <= now:
            due.append(heapq.heappop(self._later)[2])
        if due:
            self._turns.add(due)
            wanted = min(self._slots, self._workers + len(due))
            for _ in range(wanted - self._workers):
                pool.submit(self._work)
            self._workers = wanted

    def _work(self) -> None:
        while (occurrence := self._turns.take()) is not None:
            try:
                self._one(occurrence)
            finally:
                self._turns.done(occurrence)

    def _one(self, occurrence: Occurrence) -> None:
        left = self._left()
        if not self._may_begin():
            self._release([occurrence])
            return
        lateness_ms = self._clock() - occurrence.due_at
        timeout = min(occurrence.policies.timeout + MARGIN, left)
        delivery = self._deliver(occurrence, timeout)
        self._account_for(occurrence, delivery, lateness_ms)
        self._observe(occurrence, delivery)

    def _deliver(self, occurrence: Occurrence, timeout: float) -> Delivery:
        """What a transport or a hook raises, SystemExit too, must not take a thread away."""
        try:
            return self._transport.deliver(occurrence, timeout=timeout)
        except BaseException as error:
            logger.exception("a transport raised", extra={"action": "transport_failed"})
            return Delivery(0, f"{type(error).__name__}: {error}")

    def _account_for(self, occurrence: Occurrence, delivery: Delivery, lateness_ms: int) -> None:
        if self._tally.answered(occurrence, delivery, lateness_ms):
            self._failures = 0
            return
        never_began = self._give_up(occurrence)
        down = delivery.status in DOWN or delivery.status >= 500
        self._failures = self._failures + 1 if never_began and down else 0

    def _give_up(self, occurrence: Occurrence) -> bool:
        """Give back what never began. Where the store does not answer, its lease's end will."""
        try:
            return self._store.ledger.release(
                occurrence, now=self._clock(), on_lost=self._tally.lost
            )
        except Exception:
            logger.warning("not released", extra={"action": "release_failed"}, exc_info=True)
            return True

    def _give_back(self) -> None:
        """What there is no time for, and what came back in this very tick: it waits for another,
        or another's clock is behind ours, and it would only come back again.
        """
        later = [occurrence for _, _, occurrence in self._later]
        self._release([*self._turns.rest(), *later, *self._again])
        self._later.clear()

    def _release(self, occurrences: Sequence[Occurrence]) -> None:
        """In the tick's time: thousands are not waited for, the end of their leases frees them."""
        for occurrence in occurrences:
            if self._left() <= 0:
                break
            self._give_up(occurrence)
        self._tally.gave_back(len(occurrences))

    def _observe(self, occurrence: Occurrence, delivery: Delivery) -> None:
        try:
            if self._on_dispatch:
                self._on_dispatch(occurrence, delivery.status)
        except BaseException:
            logger.warning("a hook raised", extra={"action": "hook_failed"}, exc_info=True)

    def _pointless(self) -> bool:
        """Whether an endpoint that takes nothing should be given more: it would only be leased."""
        return self._failures >= self._slots

    def _least(self) -> int:
        """How many have to wait: at the pace so far they last until another claim is done."""
        return max(self._slots, int(self._pace() * CLAIM_SECONDS))

    def _deliverable(self) -> int:
        """How many more can be delivered, at the pace so far."""
        if not self._tally.done:
            return FIRST_CHUNK
        return int(self._pace() * (self._left() - MARGIN)) - self._turns.waiting

    def _soon(self) -> int:
        """As many are claimed ahead of the pace where one user's mass stands before the others'."""
        return int(self._pace() * min(self._left() - MARGIN, SOON))

    def _pace(self) -> float:
        """Deliveries a second. The first moment says too little to be taken for it."""
        return self._tally.done / max(self._elapsed() - self._start, FIRST_MOMENT)

    def _may_begin(self) -> bool:
        return self._left() > MARGIN and not self._stopped()

    def _left(self) -> float:
        return self._end - self._elapsed()

    def _clock(self) -> int:
        """The tick's time: what it was given, and as much as went by since."""
        return self._now + int((self._elapsed() - self._start) * 1_000)
