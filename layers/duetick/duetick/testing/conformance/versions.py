"""Changes of a certain version, and limits of schedules, runs and writes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import get_args

import pytest

from duetick.core.store import Store
from duetick.domain.errors import QuotaReached, VersionConflict
from duetick.domain.schedule import Pause, Schedule
from duetick.ports import Counted
from duetick.testing.conformance.samples import DAY, MINUTE, NOON, hostile, schedule
from duetick.testing.conformance.suite import Capability, StoreSuite, must


class VersionConformance(StoreSuite):
    """Compare-and-set of records."""

    def test_a_change_of_the_version_that_is_there_is_made(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON, if_version=0)
        changed = replace(made, action="other")
        assert store.schedules.put(changed, now=NOON, if_version=1).version == 2

    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_a_change_of_another_version_changes_nothing(self, store: Store, version: int) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        kept = store.schedules.put(replace(made, action="other"), now=NOON)
        with pytest.raises(VersionConflict):
            store.schedules.put(schedule(cron="* * * * *"), now=NOON, if_version=version)
        assert store.schedules.get("ada", "digest") == kept

    def test_a_schedule_that_is_not_there_has_the_version_zero(self, store: Store) -> None:
        with pytest.raises(VersionConflict):
            store.schedules.put(schedule(), now=NOON, if_version=1)
        assert store.schedules.get("ada", "digest") is None

    def test_a_delete_of_another_version_deletes_nothing(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        with pytest.raises(VersionConflict):
            store.schedules.delete("ada", "digest", now=NOON, if_version=2)
        assert store.schedules.get("ada", "digest")
        assert store.schedules.delete("ada", "digest", now=NOON, if_version=1)

    def test_a_schedule_that_was_made_again_is_another_one_of_the_same_version(
        self, store: Store
    ) -> None:
        """This holds even if the delete and the creation happen at one instant."""
        old = store.schedules.put(schedule(), now=NOON)
        store.schedules.delete("ada", "digest", now=NOON)
        new = store.schedules.put(schedule(), now=NOON)
        assert (old.version, new.version) == (1, 1)
        with pytest.raises(VersionConflict):
            store.schedules.put(replace(old, action="other"), now=NOON, if_version=old)
        with pytest.raises(VersionConflict):
            store.schedules.delete("ada", "digest", now=NOON, if_version=old)
        assert store.schedules.get("ada", "digest") == new
        store.schedules.put(replace(new, action="other"), now=NOON, if_version=new)
        assert must(store.schedules.get("ada", "digest")).action == "other"

    def test_of_several_creations_at_once_one_wins(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        stores = [store, *(self.another(store) for _ in range(3))]

        def create(number: int) -> bool:
            wanted = schedule(cron=f"{number} 6 * * *")
            return _create(stores[number % 4], wanted, if_version=0)

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(create, range(8))) == 1
        assert must(store.schedules.get("ada", "digest")).version == 1

    def test_a_pause_comes_back_whole(self, store: Store) -> None:
        pause = Pause(NOON, "holidays, 日本", NOON + DAY, NOON - DAY)
        made = store.schedules.put(replace(schedule(), pause=pause), now=NOON)
        assert must(store.schedules.get("ada", "digest")).pause == made.pause == pause


class QuotaConformance(StoreSuite):
    """The number of a user's schedules."""

    def test_one_more_than_a_user_may_have_is_refused(self, store: Store) -> None:
        for key in ("a", "b"):
            store.schedules.put(schedule(key), now=NOON, at_most=2)
        with pytest.raises(QuotaReached) as refused:
            store.schedules.put(schedule("c"), now=NOON, at_most=2)
        assert (refused.value.limit, refused.value.value) == ("schedules", 2)
        assert store.schedules.get("ada", "c") is None

    def test_a_user_who_may_have_none_gets_none(self, store: Store) -> None:
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule(), now=NOON, at_most=0)
        assert store.schedules.get("ada", "digest") is None

    def test_what_is_wrong_of_a_schedule_is_said_before_that_it_is_one_too_many(
        self, store: Store
    ) -> None:
        store.schedules.put(schedule("a"), now=NOON, at_most=1)
        with pytest.raises(ValueError, match="cron"):
            store.schedules.put(schedule("b", cron="0 12 * *"), now=NOON, at_most=1)

    def test_a_change_and_another_user_are_not_counted(self, store: Store) -> None:
        store.schedules.put(schedule("a"), now=NOON, at_most=1)
        store.schedules.put(schedule("a", cron="0 7 * * *"), now=NOON, at_most=1)
        store.schedules.put(schedule("a", user="bob"), now=NOON, at_most=1)

    def test_a_deleted_schedule_makes_room(self, store: Store) -> None:
        store.schedules.put(schedule("a"), now=NOON, at_most=1)
        store.schedules.delete("ada", "a", now=NOON)
        store.schedules.put(schedule("b"), now=NOON, at_most=1)
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule("a"), now=NOON, at_most=1)

    def test_creations_at_once_do_not_slip_past_the_limit(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        stores = [store, *(self.another(store) for _ in range(3))]

        def create(number: int) -> bool:
            return _create(stores[number % 4], schedule(f"k{number}"), at_most=5)

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(create, range(16))) == 5
        assert len(store.schedules.list("ada").schedules) == 5


class RateConformance(StoreSuite):
    """The limit of a user's counted actions in a minute."""

    def test_a_user_has_so_many_in_each_minute(self, store: Store) -> None:
        first, last = NOON - NOON % MINUTE, NOON - NOON % MINUTE + MINUTE - 1
        asked = [first, first, last, last, last + 1, last + 1, last + 1]
        answers = [store.allow("ada", "runs", 2, now=now) for now in asked]
        assert answers == [True, True, False, False, True, True, False]

    def test_what_is_counted_apart_is_limited_apart(self, store: Store) -> None:
        kinds = get_args(Counted)
        assert [store.allow("ada", one, 1, now=NOON) for one in kinds] == [True] * len(kinds)
        assert [store.allow("ada", one, 1, now=NOON) for one in kinds] == [False] * len(kinds)
        assert store.allow("ada", "writes", 2, now=NOON)
        assert not store.allow("ada", "runs", 1, now=NOON)

    @hostile
    def test_what_a_user_does_is_not_anothers_and_is_erased(self, store: Store, name: str) -> None:
        for counted in get_args(Counted):
            assert [store.allow(user, counted, 1, now=NOON) for user in (name, "bob")] == [True] * 2
        store.erase(name)
        for counted in get_args(Counted):
            assert store.allow(name, counted, 1, now=NOON)
            assert not store.allow("bob", counted, 1, now=NOON)

    def test_a_limit_of_none_lets_none(self, store: Store) -> None:
        assert not store.allow("ada", "writes", 0, now=NOON)

    def test_several_at_once_do_not_slip_past_the_limit(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        stores = [store, *(self.another(store) for _ in range(3))]

        def ask(number: int) -> bool:
            return stores[number % 4].allow("ada", "writes", 5, now=NOON)

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(ask, range(16))) == 5


def _create(
    store: Store, wanted: Schedule, *, if_version: int | None = None, at_most: int | None = None
) -> bool:
    """Create a schedule. Return True if it was created."""
    try:
        store.schedules.put(wanted, now=NOON, if_version=if_version, at_most=at_most)
    except (VersionConflict, QuotaReached):
        return False
    return True
