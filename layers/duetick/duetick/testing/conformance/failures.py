"""J-07: the texts of each failed attempt, for operators and for the user."""

import pytest

from duetick.core.histories import lines
from duetick.core.store import Store
from duetick.core.wire import FAILED as UNTOLD
from duetick.core.wire import iso
from duetick.domain.attempts import SUCCEEDED, Outcome
from duetick.domain.failures import Failure, failures_of
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import NOON, QUIET, SECOND, by_hand, row
from duetick.testing.conformance.suite import (
    Capability,
    StoreSuite,
    drain,
    must,
    only,
    recorded,
    start,
)

RAW = Outcome(State.FAILED, Reason.FAILED, "KeyError: 'card'")
CHOSEN = Outcome(State.FAILED, Reason.FAILED, "ActionFailed: Declined.", told="Declined.")


def with_attempts(attempts: int) -> Policies:
    """Return the policies for that many attempts, ten seconds apart."""
    retry = {"backoff": "fixed", "attempts": attempts, "first": 10}
    return Policies.of({"delivery": Delivery.AT_LEAST_ONCE, "retry": retry})


def begin_first(store: Store, policies: Policies) -> Occurrence:
    """Begin the first attempt of an occurrence at noon."""
    store.index.upsert(row(cron=QUIET, policies=policies, at=NOON - SECOND))
    return start(store, only(drain(store, NOON)), NOON)


def fail(store: Store, running: Occurrence, outcome: Outcome, now: int) -> Occurrence:
    """Settle the attempt as failed. Return the occurrence."""
    return must(store.ledger.settle(running, outcome, now=now))


def begin_again(store: Store, waiting: Occurrence) -> Occurrence:
    """Begin the next attempt. Return the occurrence."""
    return start(store, only(store.ledger.claim_waiting(waiting.due_at)), waiting.due_at)


def failures(store: Store, one: Occurrence) -> list[Failure]:
    """Return the failed attempts as the ledger has them."""
    found = recorded(store, one)
    return failures_of(found, store.ledger.events(found))


class FailureConformance(StoreSuite):
    """The failed attempts of an occurrence, with their times and texts."""

    @pytest.mark.parametrize("outcome", [RAW, CHOSEN])
    def test_j07_what_the_user_may_read_is_kept_beside_the_error(
        self, store: Store, outcome: Outcome
    ) -> None:
        for attempts in (1, 2):
            after = fail(store, begin_first(store, with_attempts(attempts)), outcome, NOON + 5)
            assert (after.error, after.told) == (outcome.error, outcome.told)
            assert recorded(store, after) == after
            store.erase("ada")

    def test_j07_a_success_takes_back_what_was_told(self, store: Store) -> None:
        waiting = fail(store, begin_first(store, with_attempts(2)), CHOSEN, NOON)
        done = must(store.ledger.settle(begin_again(store, waiting), SUCCEEDED, now=waiting.due_at))
        assert (done.error, done.told) == (None, None)
        assert recorded(store, done) == done

    def test_j07_each_failed_attempt_is_told_with_its_time(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        first = fail(store, begin_first(store, with_attempts(4)), CHOSEN, NOON + 1)
        second = fail(store, begin_again(store, first), RAW, first.due_at + 2)
        lost = begin_again(store, second)
        leased = only(store.ledger.claim_waiting(must(lost.lease_until)))
        last = start(store, leased, must(lost.lease_until))
        dead = fail(store, last, CHOSEN, must(lost.lease_until) + 3)
        assert dead.state is State.DEAD
        assert failures(store, dead) == [
            Failure(1, NOON + 1, CHOSEN.error, CHOSEN.told),
            Failure(2, first.due_at + 2, RAW.error),
            Failure(3, must(lost.lease_until), lost=True),
            Failure(4, must(lost.lease_until) + 3, CHOSEN.error, CHOSEN.told),
        ]

    def test_j07_an_attempt_that_was_lost_for_good_is_told(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        running = begin_first(store, Policies())
        assert list(store.ledger.claim_waiting(must(running.lease_until))) == []
        assert failures(store, running) == [Failure(1, must(running.lease_until), lost=True)]

    def test_j07_a_page_is_told_with_the_failures_of_each(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        waiting = fail(store, begin_first(store, with_attempts(3)), RAW, NOON + 1)
        other = start(store, by_hand("other"), NOON)
        done = must(store.ledger.settle(other, SUCCEEDED, now=NOON))
        page = [recorded(store, waiting), recorded(store, done)]
        user, operator = (lines(store.ledger, page, operator=who) for who in (False, True))
        assert [one["failures"] for one in operator] == [
            [{"attempt": 1, "at": user[0]["updatedAt"], "error": RAW.error}],
            [],
        ]
        assert [one["error"] for one in user] == [UNTOLD, None]
        assert [one["nextAttemptAt"] for one in user] == [iso(waiting.due_at), None]
