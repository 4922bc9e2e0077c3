"""The frame of one tick: its time, its report, and every step but the deliveries."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from duetick.core.correlation import tick_id
from duetick.core.store import Store
from duetick.core.tick.claims import MARGIN, Claims
from duetick.core.tick.report import Tally, TickReport
from duetick.core.witness import NOTE, check_witness, is_trusted
from duetick.core.workers import Reporter, end_tick
from duetick.domain.schedule import Occurrence
from duetick.domain.workers import Worker
from duetick.ports import Glance, Witness

logger = logging.getLogger("duetick.tick")


class Frame:
    """The time of a tick, from its `now` on, and its report."""

    def __init__(
        self,
        store: Store,
        now: int,
        budget: float,
        tally: Tally,
        *,
        elapsed: Callable[[], float],
        stopped: Callable[[], bool],
        late: int = 0,
    ) -> None:
        self.store = store
        self.now = now
        self.tally = tally
        self.report = tally.report
        self.claim_error: Exception | None = None
        self.saw_backfills = False
        self._late = late
        self._elapsed = elapsed
        self._stopped = stopped
        self._start = elapsed()
        self._end = self._start + budget
        self._may_end_a_schedule = False
        life = int((budget + MARGIN) * 1_000)
        self.reporter = Reporter(store, Worker(tick_id(), "tick", now, now + life))

    def clock(self) -> int:
        """Return the time of the tick: its `now`, and the time that has passed since its start."""
        return self.now + int(self.seconds_spent() * 1_000)

    def seconds_spent(self) -> float:
        """Return the seconds since its start."""
        return self._elapsed() - self._start

    def remaining(self) -> float:
        """Return the seconds until its end."""
        return self._end - self._elapsed()

    def may_begin(self) -> bool:
        """Return True if there is time to begin something, and nothing stops the tick."""
        return self.remaining() > MARGIN and not self._stopped()

    def take_in(
        self,
        claims: Claims,
        chunks: Iterator[Sequence[Occurrence]],
        add: Callable[[Sequence[Occurrence]], object],
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Take chunks in. If a claim fails, the chunks before it are delivered first."""
        try:
            for claimed in chunks:
                self.count(claimed)
                add(claimed)
                if not may_go_on():
                    break
        except Exception as error:
            logger.exception("claim failed", extra={"action": "claim_failed"})
            self.claim_error, claims.over = error, True

    def count(self, claimed: Iterable[Occurrence]) -> None:
        """Count claimed occurrences, and note if one of them may end a schedule."""
        for one in claimed:
            self.report.claimed += 1
            if one.policies.after_completion == "delete":
                self._may_end_a_schedule = True

    def bring_backfills(self, add: Callable[[Sequence[Occurrence]], object]) -> None:
        """Take in the occurrences that backfills bring. Nothing else is due any more, so they delay
        nothing.
        """
        self.saw_backfills = True
        try:
            orders = self.store.standing.at(self.clock())
            if any(one.kind == "backfill" for one in orders):
                from duetick.core.tick.backfilling import bring

                for brought in bring(self.store, orders, self.clock, self.may_begin):
                    self.count(brought)
                    add(brought)
        except Exception:
            logger.exception("backfills failed", extra={"action": "backfill_failed"})

    def purge(self) -> None:
        """Delete schedules that are done, in the time that is left.

        A tick asks for them only if it claimed one that is deleted when its last occurrence ends.
        """
        if not self._may_end_a_schedule or not self.may_begin():
            return
        from duetick.core.done import delete_done  # for a schedule that ends alone

        try:
            delete_done(self.store, self.clock(), may_go_on=self.may_begin)
        except Exception:
            logger.exception("purge failed", extra={"action": "purge_failed"})

    def raise_claim_error(self) -> None:
        """Raise the error of the claim that failed, if one did."""
        if self.claim_error:
            raise self.claim_error

    def end_idle(self) -> TickReport:
        """Report a tick that has found nothing to do."""
        end_tick(self.reporter, self.report, self.now, raised=False)
        return self.report

    @contextmanager
    def complete(self, *claims: Claims) -> Iterator[None]:
        """Run the tick in the block. Then complete its report, and keep it as a worker's."""
        raised = True
        try:
            yield
            if not claims[0].over:  # the last claim found something
                self.report.backlog = self.store.index.backlog(self.now - self._late)
            self.purge()
            raised = False
        finally:
            self.report.poisoned = sum(one.poisoned for one in claims)
            self.report.lost += sum(one.lost for one in claims)
            end_tick(self.reporter, self.report, self.clock(), raised=raised)


class FirstLook(NamedTuple):
    """The state of the database as a tick begins. A store that has no glance says nothing."""

    now: int
    is_idle: bool = False
    nothing_waits: bool = False


def look_first(
    store: Store,
    now: int | None,
    ahead: int,
    witness: Witness | None,
    take_in: Callable[[], object] | None,
) -> FirstLook:
    """Look whether there is anything to do, and take the rows of the inbox in.

    If the store is older than its witness, StoreRestored is raised: nothing may be claimed.
    """
    glance = _look(store, now, ahead)
    at = glance.now if glance else store.now() if now is None else now
    if take_in and (glance is None or glance.brought):
        take_in()
    if witness and not (glance and is_trusted(glance.note, at)):
        _check(store, witness, at)
    if glance is None:
        return FirstLook(at)
    return FirstLook(at, glance.is_idle, not (glance.waits or glance.brought))


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


def _check(store: Store, witness: Witness, now: int) -> None:
    try:
        check_witness(store, witness, now)
    except Exception:
        logger.exception("claim failed", extra={"action": "claim_failed"})
        raise
