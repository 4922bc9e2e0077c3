"""An attempt from begin to settle: J-02, J-05, J-13."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Outcome
from duetick.domain.errors import ConfigurationError
from duetick.domain.policies import Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Dialect, Transaction
from duetick.testing.conformance.samples import (
    ALLOW,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    StoreSuite,
    begun,
    drain,
    must,
    only,
    recorded,
    refused,
    start,
)

EFFECTS: Final[dict[Dialect, Callable[[Transaction], object]]] = {
    "sql": lambda effects: effects.run("SELECT 1"),
    "dynamodb": lambda effects: effects.write({"Put": {"Item": {"id": {"S": "x"}}}}),
}


def claim_one(store: Store) -> Occurrence:
    """Claim one occurrence of a row without a record, at noon."""
    store.index.upsert(row())
    return only(store.index.claim_due(SOON))


class AttemptConformance(StoreSuite):
    """The traces of begin, settle and their repeats in the ledger."""

    def test_t07_begin_counts_the_attempt(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON + SECOND)
        assert (running.state, running.attempts) == (State.PROCESSING, 1)
        assert running.begun_at == SOON + SECOND
        assert recorded(store, running) == running

    def test_t07_begin_holds_the_attempt_for_its_timeout(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON + SECOND)
        assert running.lease_until == SOON + SECOND + running.policies.lease_ms

    def test_t07_begin_hands_out_the_schedule_as_it_is_now(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        occurrence = only(store.index.claim_due(SOON + DAY))
        changed = store.schedules.put(replace(schedule(), input="new"), now=NOON + DAY)
        found = must(begun(store.ledger.begin(occurrence, now=SOON + DAY)).schedule)
        assert (found.input, found.version) == ("new", changed.version)

    @pytest.mark.parametrize("limit", [None, 1])
    def test_j02_a_begin_tells_the_schedule_as_it_leaves_it(
        self, store: Store, limit: int | None
    ) -> None:
        """Its last run is this one. If runs are limited, this one is counted."""
        store.schedules.put(schedule(policies=Policies(max_runs=limit)), now=NOON)
        occurrence = only(drain(store, SOON + DAY))
        found = begun(store.ledger.begin(occurrence, now=SOON + DAY)).schedule
        assert found == store.schedules.get("ada", "digest")

    def test_m05_a_row_without_a_record_begins_without_a_schedule(self, store: Store) -> None:
        assert begun(store.ledger.begin(claim_one(store), now=SOON)).schedule is None

    def test_t03_an_attempt_begins_once(self, store: Store) -> None:
        occurrence = claim_one(store)
        start(store, occurrence, SOON)
        assert refused(store.ledger.begin(occurrence, now=SOON)).verdict == "in_progress"
        assert recorded(store, occurrence).attempts == 1

    def test_t03_what_has_begun_does_not_begin_again_by_its_own_answer(self, store: Store) -> None:
        """The caller passes the occurrence that a begin returned, not the one that a claim did."""
        running = start(store, claim_one(store), SOON)
        assert refused(store.ledger.begin(running, now=SOON)).verdict == "in_progress"
        by_caller = start(store, by_hand(at=NOON + HOUR), NOON + HOUR)
        answer = refused(store.ledger.begin(by_caller, now=NOON + HOUR))
        assert answer.verdict == "in_progress"

    def test_j05_success_is_recorded(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        settled = must(store.ledger.settle(running, SUCCEEDED, now=SOON + SECOND))
        assert (settled.state, settled.reason) == (State.SUCCEEDED, Reason.FIRED)
        assert settled.lease_until is None
        assert recorded(store, running) == settled

    def test_j13_what_succeeded_never_begins_again(self, store: Store) -> None:
        occurrence = claim_one(store)
        store.ledger.settle(start(store, occurrence, SOON), SUCCEEDED, now=SOON)
        answer = refused(store.ledger.begin(occurrence, now=SOON + SECOND))
        assert (answer.verdict, answer.state) == ("duplicate", State.SUCCEEDED)

    def test_j05_the_same_outcome_twice_is_one(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        first = store.ledger.settle(running, SUCCEEDED, now=SOON)
        assert store.ledger.settle(running, SUCCEEDED, now=SOON + SECOND) == first

    def test_j05_the_same_failure_twice_is_one(self, store: Store) -> None:
        """The answer of the store was lost on the way, so the caller settles again."""
        running = start(store, claim_one(store), SOON)
        first = store.ledger.settle(running, FAILED, now=SOON)
        assert store.ledger.settle(running, FAILED, now=SOON + SECOND) == first

    def test_j13_an_outcome_does_not_change(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        settled = store.ledger.settle(running, SUCCEEDED, now=SOON)
        assert store.ledger.settle(running, FAILED, now=SOON + SECOND) is None
        assert recorded(store, running) == settled

    def test_j13_what_never_began_cannot_be_settled(self, store: Store) -> None:
        occurrence = claim_one(store)
        assert store.ledger.settle(occurrence, SUCCEEDED, now=SOON) is None
        assert recorded(store, occurrence) == occurrence

    def test_t03_a_failure_at_most_once_is_the_end(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        settled = must(store.ledger.settle(running, FAILED, now=SOON))
        assert (settled.state, settled.reason) == (State.DEAD, Reason.FAILED)
        assert settled.error == FAILED.error

    def test_j13_the_dead_never_begin(self, store: Store) -> None:
        occurrence = claim_one(store)
        store.ledger.settle(start(store, occurrence, SOON), FAILED, now=SOON)
        assert refused(store.ledger.begin(occurrence, now=SOON)).state is State.DEAD

    def test_j13_the_cancelled_never_begin(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        occurrence = only(store.index.claim_due(SOON + DAY))
        store.schedules.delete("ada", "digest", now=NOON + DAY)
        store.ledger.begin(occurrence, now=SOON + DAY)
        answer = refused(store.ledger.begin(occurrence, now=SOON + DAY + SECOND))
        assert (answer.verdict, answer.state) == ("duplicate", State.CANCELLED)

    def test_i04_what_was_never_recorded_is_unknown(self, store: Store) -> None:
        stranger = replace(claim_one(store), nominal_at=NOON - DAY, fence=3)
        assert refused(store.ledger.begin(stranger, now=SOON)).verdict == "unknown"
        assert store.ledger.settle(stranger, SUCCEEDED, now=SOON) is None
        assert store.ledger.release(stranger, now=SOON) is False
        assert store.ledger.renew(stranger, now=SOON) is None

    def test_j02_every_occurrence_has_an_id_of_its_own(self, store: Store) -> None:
        for key in ("a", "b", "c"):
            store.index.upsert(row(key))
        ids = {o.id for o in drain(store, SOON)}
        assert len(ids) == 3
        assert all(one.startswith("occ_") for one in ids)

    def test_j02_an_occurrence_tells_when_it_was_made_and_moved(self, store: Store) -> None:
        store.index.upsert(row())
        running = start(store, only(drain(store, SOON + SECOND)), SOON + 2 * SECOND)
        assert (running.created_at, running.updated_at) == (SOON + SECOND, SOON + 2 * SECOND)

    def test_j02_a_schedule_tells_when_it_last_ran(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        start(store, only(drain(store, SOON + DAY)), SOON + DAY + SECOND)
        assert must(store.schedules.get("ada", "digest")).last_run_at == SOON + DAY + SECOND

    def test_j02_the_last_run_is_the_latest_begin(self, store: Store) -> None:
        """An older occurrence may begin after a newer one."""
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=ALLOW), now=NOON)
        older, newer = sorted(drain(store, SOON + 2 * MINUTE), key=lambda o: o.nominal_at)
        start(store, newer, SOON + 2 * MINUTE)
        start(store, older, SOON + 2 * MINUTE + SECOND)
        found = must(store.schedules.get("ada", "digest"))
        assert found.last_run_at == SOON + 2 * MINUTE + SECOND

    def test_j02_a_schedule_made_anew_has_not_run(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        start(store, only(drain(store, SOON + DAY)), SOON + DAY)
        store.schedules.delete("ada", "digest", now=SOON + DAY + SECOND)
        store.schedules.put(schedule(), now=SOON + DAY + MINUTE)
        assert must(store.schedules.get("ada", "digest")).last_run_at is None

    def test_j05_a_settled_attempt_is_settled_otherwise_by_no_outcome(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        settled = must(store.ledger.settle(running, SUCCEEDED, now=SOON))
        stopped = Outcome(State.CANCELLED, Reason.OPERATOR)
        assert store.ledger.settle(running, stopped, now=SOON + SECOND) is None
        assert recorded(store, running) == settled
        assert list(store.ledger.events(running)) == []

    def test_t04_a_transaction_refuses_what_the_store_does_not_speak(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        for dialect, effect in EFFECTS.items():
            if dialect == store.dialect:
                continue
            with (
                pytest.raises(ConfigurationError),
                store.ledger.settling(running, lambda: SOON) as effects,
            ):
                effect(effects)
        assert recorded(store, running) == running

    def test_j05_an_attempt_may_be_settled_as_cancelled(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        stopped = Outcome(State.CANCELLED, Reason.OPERATOR, "by hand")
        settled = must(store.ledger.settle(running, stopped, now=SOON))
        assert (settled.state, settled.reason) == (State.CANCELLED, Reason.OPERATOR)
        assert recorded(store, running) == settled
