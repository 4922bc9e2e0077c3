"""Creations that may be repeated: the write that makes a schedule also records its creation."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from duetick.core.store import Store
from duetick.domain.creation import Made, Repeatable
from duetick.domain.errors import QuotaReached, VersionConflict
from duetick.domain.policies import Policies, Retry
from duetick.testing.conformance.samples import DAY, NOON, SECOND, hostile, schedule
from duetick.testing.conformance.suite import Capability, StoreSuite, must

ASKED = Repeatable("order-7", "what was asked", NOON + DAY)


class CreationConformance(StoreSuite):
    """The creation that a key names, and the end of the key."""

    @pytest.mark.parametrize("policies", [Policies(), Policies(max_runs=3, retry=Retry(first=60))])
    def test_what_a_creation_made_is_kept_in_mind_whatever_becomes_of_it(
        self, store: Store, policies: Policies
    ) -> None:
        wanted = schedule(policies=policies)
        made = store.schedules.put(wanted, now=NOON, if_version=0, repeatable=ASKED)
        store.schedules.put(schedule(cron="0 7 * * *"), now=NOON + SECOND)
        store.schedules.delete("ada", "digest", now=NOON + SECOND)
        kept = must(store.schedules.creation("ada", "order-7", now=NOON + DAY - 1))
        assert kept == Made("what was asked", NOON, made.next_fire_at, made.policies)

    def test_a_key_is_forgotten_at_its_end(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON, if_version=0, repeatable=ASKED)
        assert store.schedules.creation("ada", "order-7", now=NOON + DAY) is None
        later = Repeatable("order-7", "another", NOON + 2 * DAY)
        other = schedule("other", enabled=False)
        store.schedules.put(other, now=NOON + DAY, if_version=0, repeatable=later)
        kept = store.schedules.creation("ada", "order-7", now=NOON + DAY)
        assert kept == Made("another", NOON + DAY, None, other.policies)

    def test_a_key_that_is_taken_makes_nothing(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON, if_version=0, repeatable=ASKED)
        with pytest.raises(VersionConflict):
            store.schedules.put(schedule("other"), now=NOON, if_version=0, repeatable=ASKED)
        assert store.schedules.get("ada", "other") is None

    def test_a_repeat_where_no_room_is_left_is_one_too_many(self, store: Store) -> None:
        """The quota is asked before the name of the creation."""
        store.schedules.put(schedule(), now=NOON, at_most=1, repeatable=ASKED)
        with pytest.raises((QuotaReached, VersionConflict)) as refused:
            store.schedules.put(schedule("other"), now=NOON, at_most=1, repeatable=ASKED)
        assert refused.type is QuotaReached
        assert store.schedules.get("ada", "other") is None

    def test_what_was_not_made_is_not_kept_in_mind(self, store: Store) -> None:
        store.schedules.put(schedule("other"), now=NOON, at_most=1)
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule(), now=NOON, at_most=1, repeatable=ASKED)
        assert store.schedules.creation("ada", "order-7", now=NOON) is None

    @hostile
    def test_a_key_is_one_users_and_is_erased_with_them(self, store: Store, name: str) -> None:
        for user in (name, "bob"):
            store.schedules.put(schedule(user=user), now=NOON, if_version=0, repeatable=ASKED)
        store.erase(name)
        assert store.schedules.creation(name, "order-7", now=NOON) is None
        assert store.schedules.creation("bob", "order-7", now=NOON)

    def test_of_several_creations_at_once_with_one_key_one_wins(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        stores = [store, *(self.another(store) for _ in range(3))]

        def create(number: int) -> bool:
            wanted = schedule(f"k{number}")
            try:
                stores[number % 4].schedules.put(wanted, now=NOON, if_version=0, repeatable=ASKED)
            except VersionConflict:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(create, range(8))) == 1
        assert len(store.schedules.list("ada").schedules) == 1
