"""The claims of one tick, in which users take turns.

A tick takes a share of every user's occurrences first. After that it claims whenever the line would
last for less than a quarter of a second. It leaves out the users whose share stands in line, and
never takes more than it can deliver in the time that remains.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from duetick.core.log_lines import log_dead
from duetick.core.store import Store
from duetick.core.tick.places import Places
from duetick.domain.group_pauses import Pauses
from duetick.domain.limits import Limits
from duetick.domain.schedule import Occurrence
from duetick.ports import Part, Tell, tell_nobody

MARGIN: Final = 5.0
"""Seconds that a delivery may take beyond its action's timeout, and the least that it may take."""

LOOK_AROUND: Final = 1.0
"""Seconds in which a tick looks for users before it begins to deliver."""

STEP_MS: Final = 20_000
"""A tick that goes on claims as of its own start, and later by whole steps: a lease counts from
that, and has to outlive the way to dispatch.
"""

FRUITLESS: Final = 0.25
"""Seconds for which a claim goes on while rows only advance, as a pause or a policy has it."""


def fit_look_ahead(look_ahead: int, budget: float | None) -> int:
    """Return the milliseconds that a tick claims ahead.

    A tick that waits for what it claims has a budget, and claims no further ahead than it lasts.
    """
    if budget is None:
        return look_ahead
    return max(0, min(look_ahead, int((budget - MARGIN) * 1_000)))


class Claims:
    """The chunks of one tick, until nothing more is due: then it is `over`.

    `lost` counts occurrences that had no attempt or time left, `poisoned` rows that cannot be read.
    With a `budget`, the claims go no further ahead than the tick lasts. If several ticks share the
    rows, each claims a `part`; the first also claims the waiting occurrences.
    """

    def __init__(
        self,
        store: Store,
        now: int,
        chunk: int,
        *,
        slots: int,
        look_ahead: int,
        budget: float | None = None,
        elapsed: Callable[[], float] = time.monotonic,
        tell: Tell = tell_nobody,
        places: Places | None = None,
        late: int = 0,
        part: Part | None = None,
        nothing_waits: bool = False,
    ) -> None:
        self._store = store
        self._late = late
        self._places = places or Places(store)
        self._limited = False
        self._tell = tell
        self._elapsed = elapsed
        self._start = elapsed()
        self._broken_off = False
        self._now = now
        self._chunk = chunk
        self._least_share = max(1, slots // 8)
        self._ahead = fit_look_ahead(look_ahead, budget)
        self._sources = (self._claim_waiting, self._claim_due)
        if part and part.number:
            self._sources = (self._claim_due, self._claim_due)
        self.part = part
        self._nothing_waits = nothing_waits
        self._found_users: set[str] = set()
        self._others_are_over = False
        self.over = False
        self.lost = 0
        self.poisoned = 0

    def look_around(self, most: int) -> Iterator[list[Occurrence]]:
        """Yield a share of every user's occurrences, at most `most` in all.

        After a second, the users that were not found wait. Retries and ended leases come before due
        rows. If the tick has seen that nothing waits, it looks for due rows alone.
        """
        counted: Counter[str] = Counter()
        self.over, end = True, self._elapsed() + LOOK_AROUND
        for source in self._sources[self._nothing_waits :]:
            more = True
            while more and counted.total() < most and (not counted or self._elapsed() < end):
                filled = {user for user, count in counted.items() if count >= self._least_share}
                limit = min(self._chunk, most - counted.total())
                taken = [*source(limit, self._least_share, filled)]
                counted.update(one.user_id for one in taken)
                more = len(taken) == limit or any(
                    counted[one.user_id] >= self._least_share for one in taken
                )
                self.over = self.over and not (taken or self._broken_off or self._limited)
                yield taken
        self._found_users.update(counted)

    def next(
        self, deliverable: int, full: Callable[[int], Collection[str]]
    ) -> Iterator[list[Occurrence]]:
        """Yield as many occurrences as the remaining time can deliver; none is the end.

        `full` returns the users with a whole share of a given size in line. A waiting occurrence is
        claimed only if it was due as the tick began. So an occurrence that this tick releases is
        left for the next one, and an endpoint that is down is not called over and over.
        """
        limit = max(1, min(self._chunk, deliverable))
        share = max(self._least_share, limit // max(1, len(self._found_users)))
        left_out = full(share)
        claimed = self._claim(limit, share, left_out)
        if not claimed and left_out and not self._broken_off:
            claimed = self._claim(limit, share, ())
        self._sources = self._sources[::-1]  # a mass of retries must not hold up the due rows
        self.over = not claimed and not self._broken_off
        yield claimed

    def take(self, limit: int, left_out: Collection[str]) -> Iterator[list[Occurrence]]:
        """Yield a chunk of the users who are not left out; once they have nothing due, of all.

        None is the end, as in `next`.
        """
        limit = max(1, min(self._chunk, limit))
        claimed: list[Occurrence] = []
        if left_out and not self._others_are_over:
            claimed = self._claim(limit, self._least_share, left_out)
            self._others_are_over = not claimed and not self._broken_off
        if not claimed:
            claimed = self._claim(limit, None if left_out else self._least_share, ())
        self._sources = self._sources[::-1]
        self.over = not claimed and not self._broken_off
        yield claimed

    def _claim(self, limit: int, share: int | None, leave_out: Collection[str]) -> list[Occurrence]:
        first, then = self._sources
        claimed = first(limit, share, leave_out) or then(limit, share, leave_out)
        if self._limited and not claimed:  # what was claimed under a limit waits
            claimed = self._claim_waiting(limit, share, leave_out)
        self._found_users.update(one.user_id for one in claimed)
        return [*claimed]

    def _claim_waiting(
        self, limit: int, share: int | None, leave_out: Collection[str]
    ) -> Sequence[Occurrence]:
        now, limits = self._as_of(), self._limits()
        claimed = self._store.ledger.claim_waiting(
            now,
            limit,
            ahead=self._ahead,
            leave_out=leave_out,
            share=share,
            pauses=self._pauses(),
            limits=limits,
            late=now - self._now,
            on_lost=self._count_lost,
        )
        self._places.take(limits, claimed)
        return claimed

    def _claim_due(
        self, limit: int, share: int | None, leave_out: Collection[str]
    ) -> Sequence[Occurrence]:
        end, self._broken_off = self._elapsed() + FRUITLESS, False

        def may_go_on() -> bool:
            self._broken_off = self._elapsed() >= end
            return not self._broken_off

        now = self._as_of()
        return self._store.index.claim_due(
            now,
            limit,
            ahead=max(0, self._now + self._ahead - now),
            leave_out=leave_out,
            share=share,
            pauses=self._pauses(),
            limits=self._limits(),
            late=self._late,
            part=self.part,
            may_go_on=may_go_on,
            on_poisoned=self._count_poisoned,
        )

    def _as_of(self) -> int:
        """Return the time up to which rows count as due now."""
        return self._now + (self._clock() - self._now) // STEP_MS * STEP_MS

    def _pauses(self) -> Pauses:
        """Return the pauses that stand, after this tick has announced to each how far it claims."""
        until = max(self._now + self._ahead, self._as_of())
        return self._store.pauses.announce(self._clock(), until)

    def _limits(self) -> Limits:
        """Return the limits that stand, with the places that this tick is going to take."""
        limits = self._places.limits(self._clock())
        self._limited = bool(limits)
        return limits

    def _clock(self) -> int:
        return self._now + int((self._elapsed() - self._start) * 1_000)

    def _count_lost(self, occurrence: Occurrence) -> None:
        self.lost += 1
        log_dead(occurrence)
        self._tell("dead", occurrence)

    def _count_poisoned(self, occurrence: Occurrence) -> None:
        self.poisoned += 1
        log_dead(occurrence)
        self._tell("poisoned", occurrence)
