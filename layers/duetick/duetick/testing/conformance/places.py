"""D-08: a retry that a tick passes over keeps its place before the next successor."""

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.policies import Overlap
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import MINUTE, NOON, SECOND
from duetick.testing.conformance.second_attempts import alone, fail_first, successor
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    must,
    only,
    recorded,
    refused,
    start,
)

PASSED_OVER = NOON + 4 * MINUTE
"""A tick finds the successor of 12:01 under way. Its begin kept the place until 12:04:30."""


def long_run(store: Store) -> Occurrence:
    """Begin the successor of 12:01. Its lease is renewed beyond the tick that passes over."""
    running = start(store, successor(store), NOON + MINUTE)
    for minute in (1, 2, 3):
        at = NOON + minute * MINUTE + 50 * SECOND
        running = must(store.ledger.renew(running, now=at))
    return running


class PlaceConformance(StoreSuite):
    """The place of a retry, while ticks find its schedule busy."""

    @alone
    def test_d08_a_retry_that_a_tick_passes_over_keeps_its_place(
        self, store: Store, overlap: Overlap
    ) -> None:
        if overlap is Overlap.WAIT:
            self.needs(Capability.WAIT)
        retry = fail_first(store, overlap)
        running = long_run(store)
        assert list(store.ledger.claim_waiting(PASSED_OVER)) == []
        store.ledger.settle(running, SUCCEEDED, now=PASSED_OVER + SECOND)
        second = successor(store, 5)
        answer = refused(store.ledger.begin(second, now=NOON + 5 * MINUTE))
        assert answer.reason is Reason.OVERLAP
        ready = store.ledger.claim_waiting(NOON + 5 * MINUTE + SECOND)
        again = only([one for one in ready if one.identity == retry.identity])
        assert start(store, again, NOON + 5 * MINUTE + SECOND).attempts == 2

    def test_d08_of_two_retries_the_one_that_is_not_leased_keeps_its_place(
        self, store: Store
    ) -> None:
        """A tick leases the first. When it has run, the second goes before the next successor."""
        first = fail_first(store)
        running = start(store, successor(store), NOON + MINUTE)
        second = must(store.ledger.settle(running, FAILED, now=NOON + MINUTE))
        leased = only(store.ledger.claim_waiting(PASSED_OVER))
        assert leased.identity == first.identity
        again = start(store, leased, PASSED_OVER)
        store.ledger.settle(again, SUCCEEDED, now=PASSED_OVER + SECOND)
        answer = refused(store.ledger.begin(successor(store, 5), now=NOON + 5 * MINUTE))
        assert answer.reason is Reason.OVERLAP
        assert recorded(store, second).state is State.RETRYING
