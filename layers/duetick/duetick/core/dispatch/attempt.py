"""A begun attempt. It is settled once: by its end, or by its action's own transaction."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeAlias

from duetick.core.retrying import retry
from duetick.core.store import Ledger
from duetick.domain.attempts import SUCCEEDED, Outcome
from duetick.domain.errors import ConfigurationError, DuetickError, StoreUnavailable
from duetick.domain.schedule import Occurrence
from duetick.ports import Clock, Effects, Transaction

Sleep: TypeAlias = Callable[[float], object]

TRIES: Final = 4
PAUSE: Final = 0.25


class Attempt:
    """An attempt that has begun and has to be settled."""

    def __init__(self, ledger: Ledger, occurrence: Occurrence, clock: Clock, sleep: Sleep) -> None:
        self._ledger = ledger
        self._clock = clock
        self._sleep = sleep
        self._opened: AbstractContextManager[Transaction] | None = None
        self.effects: Effects | None = None
        """The transaction that is open, if one is."""
        self.after_commit: list[Callable[[], None]] = []
        """Calls that follow the commit of the transaction, in order. None of them raises."""
        self._entered = self._is_over = False
        self.occurrence = occurrence
        self.committed = False

    def transaction(self) -> AbstractContextManager[Transaction]:
        """See `Context.transaction`. The attempt keeps it: one left open has to be undone."""
        if self.committed or self._is_over:
            raise ConfigurationError("The attempt is settled: it has one transaction.")
        if self._entered:
            raise ConfigurationError("ctx.transaction() is open already: use that one.")
        self._opened = self._transaction()
        return self._opened

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        self._entered = True
        try:
            with self._ledger.settling(self.occurrence, self._clock) as effects:
                self.effects = effects
                try:
                    yield effects
                finally:
                    self.effects = None
            self.committed = True
        finally:
            self._entered = False
        for follow in self.after_commit:
            follow()

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Run the action in the block. If it leaves a transaction open, undo that and fail the
        attempt.
        """
        try:
            yield
        finally:
            unfinished = self._undo()
        if unfinished:
            raise unfinished

    def _undo(self) -> ConfigurationError | None:
        if not self._entered or self._opened is None:
            return None
        unfinished = ConfigurationError(
            "The action left ctx.transaction() open, and nothing of it was written. "
            "Use it in a `with` block."
        )
        self._opened.__exit__(type(unfinished), unfinished, None)
        return unfinished

    def settle(self, outcome: Outcome) -> Occurrence | None:
        """Write the outcome. Return None if another lease has the occurrence by now.

        If the database is away for a moment, the write is tried again: a success must not turn into
        a loss. A repeat writes the same outcome, so it is safe.
        """
        ended = self.end(outcome)
        return retry(
            lambda: self._ledger.settle(self.occurrence, ended, now=self._clock()),
            StoreUnavailable,
            TRIES,
            lambda tried: self._sleep(PAUSE * tried),
        )

    def end(self, outcome: Outcome) -> Outcome:
        """End the attempt, so that no transaction of it opens any more. Return the outcome to
        write.

        An attempt whose transaction has committed has succeeded.
        """
        self._is_over = True
        return SUCCEEDED if self.committed else outcome


@contextmanager
def renew_while_running(ledger: Ledger, occurrence: Occurrence, clock: Clock) -> Iterator[None]:
    """Renew the lease while the block runs. A crash is noticed within one lease."""
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
