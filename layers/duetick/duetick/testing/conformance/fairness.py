"""T-14 and I-02: a claim leaves users out, and takes no more than a share of each other user."""

from collections import Counter
from collections.abc import Sequence

from duetick.core.store import Store
from duetick.domain.schedule import Occurrence
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    HOUR,
    MINUTE,
    NOON,
    QUIET,
    SECOND,
    SOON,
    hostile,
    keys,
    row,
)
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    drain,
    must,
    start,
)

RETRIED = NOON + MINUTE
"""An instant at which the retries of occurrences that failed at noon are due."""


def due(store: Store, user: str, count: int, since: int = NOON - MINUTE) -> None:
    """Index that many rows of a user, due one second after another."""
    for number in range(count):
        store.index.upsert(
            row(f"{user}{number}", user=user, cron=QUIET, at=since + number * SECOND)
        )


def retrying(store: Store, **counts: int) -> None:
    """Make that many occurrences of each user wait for a retry. The users come in that order."""
    for place, (user, count) in enumerate(counts.items()):
        now = NOON - HOUR + place * MINUTE
        for number in range(count):
            key = f"{user}{number}"
            store.index.upsert(row(key, user=user, cron=QUIET, at=now, policies=AT_LEAST_ONCE))
        for one in drain(store, now + SECOND):
            store.ledger.settle(start(store, one, now), FAILED, now=now)


def abandon(store: Store, **counts: int) -> int:
    """Lease a number of occurrences of each user. Return the instant at which the leases are
    over.
    """
    for place, (user, count) in enumerate(counts.items()):
        due(store, user, count, NOON + place * SECOND)
    return max(must(one.lease_until) for one in drain(store, NOON + MINUTE))


def users(found: Sequence[Occurrence]) -> Counter[str]:
    """Return the number of occurrences of each user."""
    return Counter(one.user_id for one in found)


class FairnessConformance(StoreSuite):
    """T-14: the due rows, and the occurrences that wait, of users who take turns."""

    def test_i02_with_users_left_out_a_claim_takes_the_oldest_of_all_others(
        self, store: Store
    ) -> None:
        due(store, "ada", 3)
        due(store, "bob", 3, NOON - 30 * SECOND)
        due(store, "eve", 3, NOON - 20 * SECOND)
        found = store.index.claim_due(SOON, 4, leave_out={"ada", "nobody"})
        assert keys(found) == ["bob0", "bob1", "bob2", "eve0"]

    def test_i02_the_rows_of_users_left_out_stay_due(self, store: Store) -> None:
        due(store, "ada", 2)
        due(store, "bob", 1)
        assert keys(store.index.claim_due(SOON, leave_out=["ada"])) == ["bob0"]
        assert store.index.claim_due(SOON, leave_out=["ada"]) == []
        assert users(drain(store, SOON)) == {"ada": 2}

    def test_i02_more_rows_of_users_left_out_than_one_page_hide_no_other(
        self, store: Store
    ) -> None:
        due(store, "ada", 25)
        due(store, "bob", 1, NOON)
        assert keys(store.index.claim_due(SOON, 5, leave_out=["ada"])) == ["bob0"]

    @hostile
    def test_i02_a_user_left_out_may_have_any_name(self, store: Store, name: str) -> None:
        due(store, name, 1)
        due(store, name + "2", 1)
        assert users(store.index.claim_due(SOON, leave_out=[name])) == {name + "2": 1}
        assert users(store.index.claim_due(SOON)) == {name: 1}

    def test_t14_a_claim_takes_no_more_than_a_share_of_each_user(self, store: Store) -> None:
        """The share is the oldest of each user."""
        due(store, "ada", 4)
        due(store, "bob", 4, NOON - 57 * SECOND)
        found = store.index.claim_due(SOON, 6, share=2)
        assert sorted(keys(found)) == ["ada0", "ada1", "bob0", "bob1"]

    def test_t14_what_is_beyond_a_share_stays_due(self, store: Store) -> None:
        due(store, "ada", 5)
        assert keys(store.index.claim_due(SOON, 4, share=2)) == ["ada0", "ada1"]
        assert keys(store.index.claim_due(SOON)) == ["ada2", "ada3", "ada4"]

    def test_t14_a_share_limits_nothing_where_everything_fits(self, store: Store) -> None:
        due(store, "ada", 5)
        due(store, "bob", 1)
        assert users(store.index.claim_due(SOON, 10, share=2)) == {"ada": 5, "bob": 1}

    def test_t14_shares_and_users_left_out_lead_to_every_user_in_turn(self, store: Store) -> None:
        due(store, "ada", 20)
        for user in ("bob", "cy", "dan", "eve"):
            due(store, user, 1, NOON)
        first = store.index.claim_due(SOON, 4, share=2)
        assert users(first) == {"ada": 2}
        others = store.index.claim_due(SOON, 4, leave_out=users(first), share=2)
        assert users(others) == {"bob": 1, "cy": 1, "dan": 1, "eve": 1}

    def test_t14_retries_of_users_left_out_stay(self, store: Store) -> None:
        retrying(store, ada=3, bob=2)
        found = store.ledger.claim_waiting(RETRIED, 2, leave_out={"ada"})
        assert users(found) == {"bob": 2}
        assert list(store.ledger.claim_waiting(RETRIED, leave_out={"ada"})) == []
        assert users(store.ledger.claim_waiting(RETRIED)) == {"ada": 3}

    def test_t14_ended_leases_of_users_left_out_stay(self, store: Store) -> None:
        over = abandon(store, ada=3, bob=2)
        assert users(store.ledger.claim_waiting(over, 2, leave_out={"ada"})) == {"bob": 2}
        assert list(store.ledger.claim_waiting(over, leave_out={"ada"})) == []
        assert users(store.ledger.claim_waiting(over)) == {"ada": 3}

    @hostile
    def test_t14_a_user_whose_retries_stay_may_have_any_name(self, store: Store, name: str) -> None:
        retrying(store, **{name: 1, name + "2": 1})
        found = store.ledger.claim_waiting(RETRIED, leave_out=[name])
        assert users(found) == {name + "2": 1}
        assert users(store.ledger.claim_waiting(RETRIED)) == {name: 1}

    def test_t14_no_more_retries_than_a_share_of_each_user_are_leased(self, store: Store) -> None:
        retrying(store, ada=3, bob=3)
        found = store.ledger.claim_waiting(RETRIED, 4, share=2)
        assert max(users(found).values()) == 2
        rest = [*store.ledger.claim_waiting(RETRIED), *store.ledger.claim_waiting(RETRIED)]
        assert users([*found, *rest]) == {"ada": 3, "bob": 3}

    def test_t14_no_more_ended_leases_than_a_share_of_each_user_are_taken(
        self, store: Store
    ) -> None:
        over = abandon(store, ada=5)
        assert users(store.ledger.claim_waiting(over, 4, share=2)) == {"ada": 2}
        assert users(store.ledger.claim_waiting(over)) == {"ada": 3}

    def test_t14_a_share_of_what_waits_limits_nothing_where_everything_fits(
        self, store: Store
    ) -> None:
        retrying(store, ada=4, bob=1)
        found = store.ledger.claim_waiting(RETRIED, 10, share=2)
        assert users(found) == {"ada": 4, "bob": 1}

    def test_t14_what_comes_due_ahead_is_shared_too(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        due(store, "ada", 5)
        due(store, "bob", 1)
        early = NOON - 2 * MINUTE
        found = store.index.claim_due(early, 4, ahead=3 * MINUTE, leave_out=["bob"], share=2)
        assert users(found) == {"ada": 2}
