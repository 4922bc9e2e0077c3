"""The dispatch of a message: its packs one after another, each side by side.

                ┌ over: its lease has ended; acknowledged, and the database is not asked
 a pack ──┬─────┼ alone: what another invocation runs, and whose flow is gone
          │     └ begin of many ─▶ a thread each ─▶ ended ─▶ settle of many
          └ waits for its second

An attempt is settled at most `SETTLE_WITHIN_MS` after it has ended, even if others are slow.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from duetick.core.answers import Answer, error
from duetick.core.dispatch.calls import Call, Request, request_of
from duetick.core.dispatch.delivery import Dispatch, Parts, Run
from duetick.core.dispatch.stopping import answer_to
from duetick.core.log_lines import about
from duetick.core.threads import Start, Threads, WaitPoint
from duetick.core.timeouts import ABANDONED, RESERVE
from duetick.domain.attempts import Begun, Refused
from duetick.domain.errors import DuetickError
from duetick.domain.identity import is_call
from duetick.domain.packs import MOST_LEASES, Pack, ReceivedMessage
from duetick.domain.schedule import Occurrence
from duetick.domain.transitions import lease_over
from duetick.ports import Clock, Observer, Tell

SETTLE_WITHIN_MS: Final = 250
"""Milliseconds from the end of an action to the write that settles it, if the store answers."""

SLICE_MS: Final = 200
"""Occurrences that are due within so many milliseconds begin together."""

LONGEST_EARLY_MS: Final = 5_000
"""A pack that is due later than that was sent by a host whose clock is ahead: it comes again."""

MOST_THREADS: Final = MOST_LEASES + 28
"""The most threads, with those of actions that have not ended in their time."""

LEAST_SECONDS: Final = RESERVE + 1.0
"""The least time of an invocation in which something begins."""

TRIES: Final = 4
PAUSE_MS: Final = 250
COMES_BACK_IN: Final = 5
"""Seconds after which a message comes again of which a part was not begun."""

ACCEPTED: Final = 202
GIVEN_BACK: Final = frozenset({"dispatch_failed", "flow_unregistered"})
"""The errors of an occurrence that went alone, and may begin yet."""

LOST: Final = error("dispatch_failed", "Something unexpected happened; the log says more.")
"""The answer of a begun occurrence whose end is not known: its lease ends."""

logger = logging.getLogger("duetick.dispatch")

DispatchOf: TypeAlias = Callable[[Occurrence, Request], Dispatch]
"""A function that finds the flow of an occurrence. It raises `Stop` as for any call."""


@dataclass(slots=True)
class PackReport:
    """The result of a message. `leases` is begun + refused + over + not_begun.

    `refused` counts the occurrences that another of their schedule, a pause or an earlier delivery
    kept from their begin. `over` counts those that came after the end of their lease. `succeeded`
    and `failed` count those that began. If the message has to come again, it comes after
    `comes_back_in` seconds.
    """

    packs: int = 0
    leases: int = 0
    begun: int = 0
    succeeded: int = 0
    failed: int = 0
    refused: int = 0
    over: int = 0
    not_begun: int = 0
    not_settled: int = 0
    lateness_ms: int = 0
    comes_back_in: int | None = None

    def come_back(self, seconds: int = COMES_BACK_IN) -> None:
        """Let the message come again."""
        self.comes_back_in = min(seconds, self.comes_back_in or seconds)

    def began(self, lateness_ms: int, count: int = 1) -> None:
        """Count occurrences that began so late."""
        self.begun += count
        self.lateness_ms = max(self.lateness_ms, lateness_ms)

    def keep_back(self, count: int, seconds: int = COMES_BACK_IN) -> None:
        """Count occurrences that were not begun: their message comes again."""
        if count:
            self.not_begun += count
            self.come_back(seconds)


class PackEnd(NamedTuple):
    """The end of an occurrence in dispatch, with its answer; None if its run is to be settled.

    `late` is the lateness of an occurrence that went alone.
    """

    occurrence: Occurrence
    answer: Answer | None = None
    run: Run | None = None
    dispatch: Dispatch | None = None
    late: int = 0


@dataclass(frozen=True, slots=True)
class PackParts:
    """The parts that the dispatch of a message uses besides those of each call."""

    parts: Parts
    dispatch_of: DispatchOf
    threads: Threads
    left: Callable[[], float | None]
    on_dispatch: Observer
    tell: Tell
    late_after: int | None = None

    @property
    def clock(self) -> Clock:
        """The clock of the store."""
        return self.parts.clock

    def has_time(self) -> bool:
        """Return True if the invocation has the time to begin something."""
        left = self.left()
        return left is None or left >= LEAST_SECONDS


def dispatch_message(message: ReceivedMessage, parts: PackParts) -> PackReport:
    """Dispatch the packs of a message, each after the end of the one before."""
    report = PackReport()
    for pack in message.packs:
        report.packs += 1
        report.leases += len(pack)
        PackRun(parts, report).run(pack)
    return report


class PackRun:
    """One pack: it begins what is due, and settles what has ended."""

    def __init__(self, parts: PackParts, report: PackReport) -> None:
        self._parts = parts
        self._report = report
        self._changed: WaitPoint = parts.threads.conditions()[0]
        self._ended: list[PackEnd] = []
        self._first_end = 0
        self._running = 0
        self._tried = 0

    def run(self, pack: Pack) -> None:
        """Dispatch a pack. If one of its occurrences fails, the others go on."""
        alive = self._alive(pack)
        if len(alive) == 1:
            self._run_one(alive[0])
            return
        slices = deque(in_slices(alive))
        with self._parts.threads.open_threads(min(len(pack), MOST_THREADS)) as start:
            while slices or self._running or self._ended:
                self._step(slices, start)

    def _run_one(self, one: Occurrence) -> None:
        """Dispatch an occurrence here, as a call of the API does: a signal can interrupt it."""
        self._wait(one.due_at - self._parts.clock())
        if not self._parts.has_time():
            self._report.keep_back(1)
            return
        dispatch = self._find(one)
        if dispatch:
            self._end(self._deliver_alone(one, dispatch))
        self._settle()

    def _alive(self, pack: Pack) -> list[Occurrence]:
        """Return the occurrences that may begin. A lease that is over begins nothing: the store is
        not asked.
        """
        now = self._parts.clock()
        alive = [one for one in pack if not lease_over(one, now)]
        self._report.over += len(pack) - len(alive)
        early = [one for one in alive if one.due_at > now + LONGEST_EARLY_MS]
        if early:
            self._report.keep_back(len(early), -(-(early[0].due_at - now) // 1_000))
        return [one for one in alive if one.due_at <= now + LONGEST_EARLY_MS]

    def _step(self, slices: deque[list[Occurrence]], start: Start) -> None:
        now = self._parts.clock()
        due_in = slices[0][-1].due_at - now if slices else SETTLE_WITHIN_MS
        if slices and due_in <= 0:
            self._begin(slices.popleft(), start)
        elif self._ended and self._settle_in(now) <= 0:
            self._settle()
        else:
            waits = [due_in] if slices else []
            waits += [self._settle_in(now)] if self._ended else []
            self._wait(min(waits, default=1_000))

    def _settle_in(self, now: int) -> int:
        """Return the milliseconds until the ended attempts are settled, together with others."""
        if self._tried:
            return self._first_end + PAUSE_MS * self._tried - now
        if not self._running:
            return 0
        return self._first_end + SETTLE_WITHIN_MS - now

    def _wait(self, milliseconds: int) -> None:
        """Wait at most so long for the first end, or for all ends."""
        if milliseconds <= 0:
            return
        with self._changed:
            known = len(self._ended)

            def is_ready() -> bool:
                return len(self._ended) > known and (not known or not self._running)

            self._changed.wait_for(is_ready, milliseconds / 1_000)

    # Begin.

    def _begin(self, due: Sequence[Occurrence], start: Start) -> None:
        """Begin the occurrences that are due: most share a write with others, some begin alone."""
        room = MOST_THREADS - ABANDONED.count() - self._running
        room = max(0, room) if self._parts.has_time() else 0
        self._report.keep_back(len(due[room:]))
        together: list[tuple[Occurrence, Dispatch]] = []
        for one in due[:room]:
            dispatch = self._find(one)
            if dispatch and goes_alone(one, dispatch):
                self._start(one, start, partial(self._deliver_alone, one, dispatch))
            elif dispatch:
                together.append((one, dispatch))
        if together:
            self._begin_many(sorted(together, key=_by_name), start)

    def _find(self, one: Occurrence) -> Dispatch | None:
        """Return the dispatch of an occurrence. If its flow is gone, reject the occurrence and
        return None.
        """
        request = replace(request_of(one), seconds=self._parts.left())
        found: list[Dispatch] = []

        def find() -> Answer:
            found.append(self._parts.dispatch_of(one, request))
            return Answer(200, {})

        answer = answer_to(request, find)
        if not found:
            self._end(PackEnd(one, answer))
        return found[0] if found else None

    def _begin_many(self, pairs: Sequence[tuple[Occurrence, Dispatch]], start: Start) -> None:
        ledger, now = self._parts.parts.store.ledger, self._parts.clock()
        dispatches = {one.identity: dispatch for one, dispatch in pairs}
        try:
            found = ledger.begin_many(
                [one for one, _ in pairs],
                now=now,
                on_lost=self._parts.parts.record_lost,
                find_action=lambda one: dispatches[one.identity].action_of(one),
            )
        except DuetickError as problem:
            _log_not_begun(pairs[0][0], problem)
            self._report.keep_back(len(pairs))
            return
        for (one, dispatch), begun in zip(pairs, found, strict=True):
            if isinstance(begun, Begun):
                self._note_begin(one, now)
                self._start(one, start, partial(self._act, one, dispatch, begun))
            elif isinstance(begun, Refused):
                self._end(PackEnd(one, dispatch.refuse(begun)))
            else:
                _log_not_begun(one, begun)
                self._report.keep_back(1)

    def _note_begin(self, one: Occurrence, now: int) -> None:
        late = max(0, now - one.due_at)
        self._report.began(late)
        bound = self._parts.late_after
        if bound is not None and late > bound:
            self._parts.tell("late", one)

    # Run.

    def _start(self, one: Occurrence, start: Start, work: Callable[[], PackEnd]) -> None:
        def run() -> None:
            ended = PackEnd(one, LOST)
            try:
                ended = work()
            except BaseException:
                details = {"action": "dispatch_failed", **about(one)}
                logger.exception("dispatch failed", extra=details)
            finally:
                with self._changed:
                    self._running -= 1
                    self._put(ended)
                    self._changed.notify()

        self._running += 1
        start(partial(copy_context().run, run))

    def _act(self, one: Occurrence, dispatch: Dispatch, begun: Begun) -> PackEnd:
        return PackEnd(one, None, dispatch.act(begun), dispatch)

    def _deliver_alone(self, one: Occurrence, dispatch: Dispatch) -> PackEnd:
        late = max(0, self._parts.clock() - one.due_at)
        return PackEnd(one, answer_to(dispatch.request, dispatch.deliver), late=late)

    def _end(self, ended: PackEnd) -> None:
        with self._changed:
            self._put(ended)

    def _put(self, ended: PackEnd) -> None:
        if not self._ended:
            self._first_end = self._parts.clock()
        self._ended.append(ended)

    # Settle.

    def _settle(self) -> None:
        """Settle the attempts that have ended. An attempt that the store did not take is tried
        again.
        """
        with self._changed:
            ended, self._ended = self._ended, []
        for one in ended:
            if one.answer:
                self._note_alone(one, one.answer)
        runs = [one for one in ended if one.run]
        if runs:
            self._settle_many(runs)

    def _settle_many(self, runs: Sequence[PackEnd]) -> None:
        ends = [(one.run.attempt.occurrence, one.run.outcome) for one in runs if one.run]
        ledger = self._parts.parts.store.ledger
        try:
            settled = ledger.settle_many(ends, now=self._parts.clock())
        except DuetickError as problem:
            settled = [problem for _ in ends]
        unsettled: list[PackEnd] = []
        for one, after in zip(runs, settled, strict=True):
            if isinstance(after, DuetickError):
                unsettled.append(one)
            else:
                self._conclude(one, after)
        self._try_again(unsettled)

    def _conclude(self, one: PackEnd, after: Occurrence | None) -> None:
        if one.run is None or one.dispatch is None:
            return
        if after is not None:
            self._parts.parts.show_settled(after, one.run.stop)
        conclude = partial(one.dispatch.conclude, one.run, after)
        answer = answer_to(one.dispatch.request, conclude)
        self._count_end(answer)
        self._observe(one.occurrence, answer.status)

    def _try_again(self, unsettled: Sequence[PackEnd]) -> None:
        """Keep the ends that were not settled for another try, if the invocation has time for
        one.
        """
        self._tried = self._tried + 1 if unsettled else 0
        if not unsettled:
            return
        if self._tried < TRIES and self._parts.has_time():
            with self._changed:
                self._first_end = self._parts.clock()
                self._ended += unsettled
            return
        self._tried = 0
        self._report.not_settled += len(unsettled)
        self._report.come_back()

    def _note_alone(self, one: PackEnd, answer: Answer) -> None:
        """Count the answer of an occurrence that went alone, or was refused."""
        code = answer.body.get("error")
        if answer.status == ACCEPTED or code == "action_failed":
            self._report.began(one.late)
            self._count_end(answer)
        elif answer is LOST:
            self._report.not_settled += 1
        elif code in GIVEN_BACK:
            self._report.keep_back(1)
        else:
            self._report.refused += 1
        self._observe(one.occurrence, answer.status)

    def _count_end(self, answer: Answer) -> None:
        self._report.succeeded += answer.status == ACCEPTED
        self._report.failed += answer.status != ACCEPTED

    def _observe(self, one: Occurrence, status: int) -> None:
        try:
            self._parts.on_dispatch(one, status)
        except BaseException:
            details = {"action": "hook_failed", **about(one)}
            logger.warning("a hook raised", extra=details, exc_info=True)


def in_slices(pack: Iterable[Occurrence]) -> Iterator[list[Occurrence]]:
    """Yield the occurrences that are due at nearly the same time, the earliest first."""
    found: list[Occurrence] = []
    for one in sorted(pack, key=lambda one: one.due_at):
        if found and one.due_at > found[0].due_at + SLICE_MS:
            yield found
            found = []
        found.append(one)
    if found:
        yield found


def goes_alone(one: Occurrence, dispatch: Dispatch) -> bool:
    """Return True if the begin of an occurrence needs more than its lease.

    Its flow has actions that run in the background, or its caller sent a body.
    """
    return dispatch.flow.has_background or is_call(one.origin)


def call_of(one: Occurrence, flow: str) -> Call:
    """Return the call that delivers an occurrence to a flow."""
    return Call(
        flow=flow,
        schedule_id=one.schedule_id,
        user_id=one.user_id,
        key=one.key,
        nominal_at=one.nominal_at,
        fence=one.fence,
        origin=one.origin,
        caller_key=None,
    )


def _by_name(pair: tuple[Occurrence, Dispatch]) -> tuple[str, str]:
    return pair[0].user_id, pair[0].key


def _log_not_begun(one: Occurrence, problem: DuetickError) -> None:
    details = {"action": "pack_not_begun", **about(one)}
    logger.warning("not begun, and it comes back: %s", problem, extra=details)
