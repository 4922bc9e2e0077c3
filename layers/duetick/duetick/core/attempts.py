"""One begun attempt: it is settled once, by its end or by its action's own transaction."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from duetick.domain.errors import ConfigurationError, DuetickError, StoreUnavailable
from duetick.domain.schedule import Occurrence
from duetick.ports import SUCCEEDED, Clock, Ledger, Outcome, Transaction

Sleep: TypeAlias = Callable[[float], object]

TRIES: Final = 4
PAUSE: Final = 0.25


class Attempt:
    """What has begun and has to be settled."""

    def __init__(
        self, ledger: Ledger, occurrence: Occurrence, clock: Clock, sleep: Sleep = time.sleep
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._sleep = sleep
        self.occurrence = occurrence
        self.committed = False

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """See `Context.transaction`."""
        if self.committed:
            raise ConfigurationError("The attempt is settled: it has one transaction.")
        with self._ledger.settling(self.occurrence, self._clock) as effects:
            yield effects
        self.committed = True

    def settle(self, outcome: Outcome) -> Occurrence | None:
        """Write the outcome; None where the lease is another's by now.

        A database that is away for a moment must not turn a success into a loss: to settle again
        says the same, so it is safe.
        """
        if self.committed:
            outcome = SUCCEEDED
        for tried in range(1, TRIES):
            try:
                return self._ledger.settle(self.occurrence, outcome, now=self._clock())
            except StoreUnavailable:
                self._sleep(PAUSE * tried)
        return self._ledger.settle(self.occurrence, outcome, now=self._clock())


@contextmanager
def renewed(ledger: Ledger, occurrence: Occurrence, clock: Clock) -> Iterator[None]:
    """Hold the lease for as long as the block takes: a crash is noticed within one lease."""
    over = threading.Event()
    thread = threading.Thread(
        target=_renew, args=(ledger, occurrence, clock, over), daemon=True, name="renew"
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _renew(ledger: Ledger, occurrence: Occurrence, clock: Clock, over: threading.Event) -> None:
    while not over.wait(occurrence.policies.lease_ms / 3_000):
        try:
            if ledger.renew(occurrence, now=clock()) is None:
                return
        except DuetickError:
            continue
