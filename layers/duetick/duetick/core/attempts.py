"""One begun attempt: it is settled once, by its end or by its action's own transaction."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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
        self._given: AbstractContextManager[Transaction] | None = None
        self._entered = self._over = False
        self.occurrence = occurrence
        self.committed = False

    def transaction(self) -> AbstractContextManager[Transaction]:
        """See `Context.transaction`. It is kept: one that is left open must not just be dropped."""
        if self.committed or self._over:
            raise ConfigurationError("The attempt is settled: it has one transaction.")
        if self._entered:
            raise ConfigurationError("ctx.transaction() is open already: use that one.")
        self._given = self._transaction()
        return self._given

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        self._entered = True
        try:
            with self._ledger.settling(self.occurrence, self._clock) as effects:
                yield effects
            self.committed = True
        finally:
            self._entered = False

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Around the action: a transaction that it leaves open is undone, and fails the attempt."""
        try:
            yield
        finally:
            left = self._undo()
        if left:
            raise left

    def _undo(self) -> ConfigurationError | None:
        if not self._entered or self._given is None:
            return None
        left = ConfigurationError(
            "The action left ctx.transaction() open, and nothing of it was written. "
            "Use it in a `with` block."
        )
        self._given.__exit__(type(left), left, None)
        return left

    def settle(self, outcome: Outcome) -> Occurrence | None:
        """Write the outcome; None where the lease is another's by now.

        A database that is away for a moment must not turn a success into a loss: to settle again
        says the same, so it is safe.
        """
        self._over = True
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
