"""One pass of a tick that hands on through a queue: claim ahead, pack, send. It waits for nothing.

If a limit may cover a row, the row is not packed, for no answer would tell when its place is free
again: an ordinary tick delivers it in the time that remains.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from duetick.core.backpressure import LEAST, ROUND_MS, Handed, begin_handing, keep_handed
from duetick.core.correlation import in_tick, tick_id
from duetick.core.store import Store
from duetick.core.threads import REAL, Threads
from duetick.core.tick.claims import MARGIN, Claims
from duetick.core.tick.delivery import Slots, Undelivered
from duetick.core.tick.frame import Frame, look_first
from duetick.core.tick.helpers import Helpers
from duetick.core.tick.loop import CHUNK, SLOTS, Tick, never
from duetick.core.tick.places import NoPlaces
from duetick.core.tick.report import Tally, TickReport
from duetick.domain.packs import MOST_LEASES, SHARE, OutgoingMessage, Packer
from duetick.domain.schedule import Occurrence
from duetick.ports import Observer, PackTransport, Sending, Tell, Transport, Witness, tell_nobody

LOOK_AHEAD: Final = 120_000
"""Milliseconds: as far as to the tick after the next one, so that one of them may be late."""

SOON_MS: Final = 5_000
"""A pack that is due by then is sent even if it is not full."""

MOST_HELD: Final = 20_000
"""The most occurrences that wait in open packs."""

MOST_SEEN: Final = 200_000
"""The most occurrences that a tick remembers, so that it sends none twice."""

MOST_HEAVY: Final = 100
"""The most users that a claim leaves out because they have had a pack of their own."""

TRIES: Final = 2
"""The number of times that a message is sent: a second one of it begins nothing twice."""

DOWN_AFTER: Final = 3
"""The rounds without success after which the queue counts as down."""

EARLY_MS: Final = 250
"""A pack should be there so long before its due time. If it comes earlier, dispatch waits, and
that is billed.
"""
LONGEST_WAIT_MS: Final = 700

logger = logging.getLogger("duetick.tick")


@in_tick()
def run_pack_tick(
    store: Store,
    queue: PackTransport,
    transport: Transport,
    *,
    now: int | None = None,
    budget: float = 55.0,
    on_dispatch: Observer | None = None,
    witness: Witness | None = None,
    look_ahead: int = LOOK_AHEAD,
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
    helpers: Helpers | None = None,
) -> TickReport:
    """Claim until nothing is due by `look_ahead` or the time is nearly spent. Send the claimed in
    packs.

    The parameters are those of `run_tick`. The `transport` delivers the rows that limits cover.
    `on_dispatch` sees these and rejected ones; of packs, dispatch tells. The `helpers` are other
    ticks for parts of a backlog.
    """
    first = look_first(store, now, look_ahead, witness, take_in)
    at = first.now
    frame = Frame(store, at, budget, Tally(tell, late_after), elapsed=elapsed, stopped=stopped)
    if first.is_idle:
        return frame.end_idle()
    of_tick = Slots(slots, most_slots)
    tick = Tick(frame, transport, on_dispatch=on_dispatch, slots=of_tick, threads=threads)
    claim = partial(
        Claims, store, at, chunk, look_ahead=look_ahead, elapsed=elapsed, tell=tell, late=late
    )
    helpers = helpers or Helpers(store)
    part = helpers.assignment.part if helpers.assignment else None
    packed = claim(
        slots=8 * SHARE, places=NoPlaces(store), part=part, nothing_waits=first.nothing_waits
    )
    limited = claim(slots=slots, budget=budget, places=tick.places)
    with frame.complete(packed, limited):
        Packing(frame, queue, sleep, on_dispatch, helpers=helpers).run(packed, at + look_ahead)
        if store.limits.current(frame.clock()):
            tick.run(limited, sleep)
    return frame.report


class Packing:
    """The packs of one tick: claimed, arranged, sent."""

    def __init__(
        self,
        frame: Frame,
        queue: PackTransport,
        sleep: Callable[[float], object],
        on_dispatch: Observer | None,
        *,
        helpers: Helpers,
    ) -> None:
        self._frame = frame
        self._helpers = helpers
        self._until = frame.now
        self._queue = queue
        self._sleep = sleep
        self._packer = Packer(tick_id())
        self._undelivered = Undelivered(frame.store, frame.tally, frame.clock, on_dispatch)
        self._handed: Handed | None = None
        self._users: Counter[str] = Counter()
        self._heavy: set[str] = set()
        self._seen: set[int] = set()
        self._came_back: list[Occurrence] = []
        self._claimed = self._failures = 0

    def run(self, claims: Claims, until: int) -> None:
        """Claim and send until nothing more is due by then, or the tick must not hand on more."""
        self._until = until
        try:
            if self._frame.may_begin():
                self._take_in(claims, claims.look_around(LEAST))
            if self._frame.report.claimed:
                self._frame.reporter.begin()
            self._go_on(claims)
            while not claims.over and self._handed and self._may_wait():
                self._begin_round(self._handed)
                self._go_on(claims)
            if claims.over and self._may_go_on():
                self._frame.bring_backfills(self._add)
            self._send_rest()
            if not claims.over and self._is_out_of_time():
                self._helpers.go_on(self._frame.clock())
        finally:
            self._give_back_rest()
            if self._handed and (self._handed.handed or self._handed.bound):
                left = int(not claims.over)
                keep_handed(self._frame.store, self._handed._replace(left=left))
        self._frame.raise_claim_error()

    def _take_in(self, claims: Claims, chunks: Iterator[Sequence[Occurrence]]) -> None:
        self._frame.take_in(claims, chunks, self._add, self._may_go_on)

    def _go_on(self, claims: Claims) -> None:
        """Claim chunks of rows. A row may give several occurrences, which count in a bound."""
        per_row = 1
        while not claims.over and self._may_go_on():
            before, rows = self._claimed, max(1, self._room() // per_row)
            self._take_in(claims, claims.take(rows, self._heavy))
            per_row = max(1, -(-(self._claimed - before) // rows))
            self._share(claims)

    def _share(self, claims: Claims) -> None:
        """Start helpers for a backlog, as long as no bound holds for the handing on."""
        if self._handed is None or self._handed.bound is None:
            frame = self._frame
            part = self._helpers.share(frame.seconds_spent(), self._until, frame.clock())
            claims.part = part or claims.part

    def _is_out_of_time(self) -> bool:
        """Return True if the time alone has ended this tick: the queue takes packs, unbounded."""
        is_bound = self._handed is not None and self._handed.bound is not None
        return not (is_bound or self._failures >= DOWN_AFTER or self._frame.claim_error)

    def _may_go_on(self) -> bool:
        if self._helpers.is_theirs or self._failures >= DOWN_AFTER:
            return False
        return self._frame.may_begin() and self._room() > 0

    def _may_wait(self) -> bool:
        """Return True if a bound alone keeps the tick from going on, and a round has the time."""
        has_time = self._frame.remaining() > MARGIN + ROUND_MS / 1_000
        is_over = self._helpers.is_theirs or self._failures >= DOWN_AFTER
        return has_time and self._frame.may_begin() and not is_over

    def _begin_round(self, handed: Handed) -> None:
        """Send the claimed occurrences, wait for dispatch to take them, and read how the round
        went.
        """
        self._send([*self._packer.take(self._frame.clock())])
        keep_handed(self._frame.store, (self._handed or handed)._replace(left=1))
        self._sleep(ROUND_MS / 1_000)
        self._handed = begin_handing(self._frame.store, self._frame.clock())
        self._claimed = 0

    def _room(self) -> int:
        """Return the number of occurrences that this round may still claim."""
        bound = self._handed.bound if self._handed else None
        return CHUNK if bound is None else min(CHUNK, bound - self._claimed)

    def _add(self, claimed: Sequence[Occurrence]) -> None:
        """Pack claimed occurrences. Send each message that is full or due soon.

        An idle tick reads no notes: they are read after the first claim that has occurrences.
        """
        if claimed and self._handed is None:
            self._handed = begin_handing(self._frame.store, self._frame.clock())
        self._claimed += len(claimed)
        fresh = [one for one in claimed if self._is_fresh(one)]
        carried = [one for one in fresh if not self._is_rejected(one)]
        now = self._frame.clock()
        messages = [*self._packer.add(carried, now), *self._packer.take(now, now + SOON_MS)]
        if self._packer.held > MOST_HELD:
            messages += self._packer.take(now)
        self._send(messages)

    def _is_fresh(self, one: Occurrence) -> bool:
        """Return False if this very tick has claimed it before: another one has its place."""
        self._count_user(one.user_id)
        name = hash(one.identity)
        if name in self._seen:
            self._came_back.append(one)
            return False
        if len(self._seen) < MOST_SEEN:
            self._seen.add(name)
        return True

    def _count_user(self, user_id: str) -> None:
        self._users[user_id] += 1
        if self._users[user_id] >= MOST_LEASES and len(self._heavy) < MOST_HEAVY:
            self._heavy.add(user_id)

    def _is_rejected(self, one: Occurrence) -> bool:
        rejected = self._undelivered.reject(one)
        if rejected is None:
            return False
        lateness_ms = max(0, self._frame.clock() - one.due_at)
        self._frame.tally.count_answer(one, rejected, lateness_ms)
        self._undelivered.observe(one, rejected)
        return True

    def _send_rest(self) -> None:
        messages = [*self._packer.take(self._frame.clock())]
        self._wait_for_phase(messages)
        self._send(messages)

    def _wait_for_phase(self, messages: Sequence[OutgoingMessage]) -> None:
        """Wait for less than a second, so that packs come shortly before they are due.

        A queue delays by whole seconds. Dispatch waits for the rest, for which each pack is billed.
        """
        now = self._frame.clock()
        rests = sorted((one.due_at - now) % 1_000 for one in messages if one.due_at > now)
        if len(rests) < 2 or not self._frame.may_begin():
            return
        wait = (rests[len(rests) // 2] - EARLY_MS) % 1_000
        if wait <= LONGEST_WAIT_MS:
            self._sleep(wait / 1_000)

    def _send(self, messages: Sequence[OutgoingMessage]) -> None:
        """Send messages. Give back the occurrences that the queue does not take."""
        left = list(messages)
        for _ in range(TRIES):
            if left:
                left = self._send_once(left)
        self._failures = self._failures + 1 if left and len(left) == len(messages) else 0
        for message in left:
            self._undelivered.give_back_all(message.occurrences, self._frame.remaining())

    def _send_once(self, messages: Sequence[OutgoingMessage]) -> list[OutgoingMessage]:
        """Send messages. Return those that the queue may not have."""
        left: list[OutgoingMessage] = []
        now = self._frame.clock()
        for message, sending in zip(messages, self._try(messages, now), strict=True):
            if sending == "sent":
                self._frame.tally.count_handed_on(message, max(0, now - message.due_at))
                self._note(message)
            else:
                left.append(message)
        return left

    def _note(self, message: OutgoingMessage) -> None:
        if self._handed:
            self._handed = self._handed.hand_on(len(message.occurrences), message.due_at)

    def _try(self, messages: Sequence[OutgoingMessage], now: int) -> Sequence[Sending]:
        """Send messages. If the transport raises, every message is in doubt."""
        try:
            return self._queue.send(messages, now)
        except Exception:
            logger.exception("a queue raised", extra={"action": "transport_failed"})
            return ["in_doubt" for _ in messages]

    def _give_back_rest(self) -> None:
        """Release the occurrences that have no time left, or that have to wait for another of their
        schedule.
        """
        rest = [one for message in self._packer.take(0) for one in message.occurrences]
        waiting = [*rest, *self._packer.behind, *self._came_back]
        self._undelivered.give_back_all(waiting, self._frame.remaining())
