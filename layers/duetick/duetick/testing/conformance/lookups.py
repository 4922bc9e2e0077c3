"""Schedules listed in pages, and found by an outside id."""

import pytest

from duetick.core.store import Store
from duetick.domain.errors import InvalidCursor, InvalidSchedule
from duetick.testing.conformance.samples import (
    NOON,
    hostile,
    schedule,
)
from duetick.testing.conformance.suite import Capability, StoreSuite, must


class LookupConformance(StoreSuite):
    """Lists, pages, and outside ids (G-08)."""

    def test_m01_a_list_is_ordered_by_key_and_of_one_user(self, store: Store) -> None:
        for key in ("b", "a", "Z", "ä", "c"):
            store.schedules.put(schedule(key), now=NOON)
        store.schedules.put(schedule("other", user="bob"), now=NOON)
        listed = [one.key for one in store.schedules.list("ada").schedules]
        assert listed == ["Z", "a", "b", "c", "ä"]

    def test_m01_pages_hold_every_schedule_once(self, store: Store) -> None:
        wanted = [f"k{number:03}" for number in range(25)]
        for key in wanted:
            store.schedules.put(schedule(key), now=NOON)
        assert self._list_keys(store, limit=10) == wanted

    @hostile
    def test_m01_a_page_can_begin_after_a_hostile_id(self, store: Store, name: str) -> None:
        wanted = sorted([name, name + "2"])
        for key in wanted:
            store.schedules.put(schedule(key), now=NOON)
        assert self._list_keys(store, limit=1) == wanted

    def test_m01_the_last_page_has_no_cursor(self, store: Store) -> None:
        for key in ("a", "b"):
            store.schedules.put(schedule(key), now=NOON)
        assert store.schedules.list("ada", limit=2).cursor is None

    @pytest.mark.parametrize("cursor", ["!!!", "%%%", "ünïcode", "abc", "AAAA", "eHh4" * 500])
    def test_m01_a_cursor_that_no_page_carried_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(InvalidCursor):
            store.schedules.list("ada", cursor=cursor)

    def _list_keys(self, store: Store, limit: int) -> list[str]:
        found: list[str] = []
        cursor: str | None = None
        for _ in range(100):
            page = store.schedules.list("ada", limit=limit, cursor=cursor)
            found += [one.key for one in page.schedules]
            cursor = page.cursor
            if cursor is None:
                return found
        raise AssertionError("the pages never come to an end")

    def test_g08_an_outside_id_leads_to_its_schedule(self, store: Store) -> None:
        self.needs(Capability.EXTERNAL_IDS)
        made = store.schedules.put(schedule(external_id="project-7"), now=NOON)
        assert store.schedules.find_by_external("project-7") == made
        assert store.schedules.find_by_external("project-8") is None

    def test_g08_an_outside_id_has_one_owner(self, store: Store) -> None:
        self.needs(Capability.EXTERNAL_IDS)
        made = store.schedules.put(schedule("first", external_id="project-7"), now=NOON)
        with pytest.raises(InvalidSchedule):
            store.schedules.put(schedule("second", external_id="project-7"), now=NOON)
        assert store.schedules.find_by_external("project-7") == made
        assert store.schedules.get("ada", "second") is None

    def test_g08_an_outside_id_is_free_again_after_a_delete(self, store: Store) -> None:
        self.needs(Capability.EXTERNAL_IDS)
        store.schedules.put(schedule("first", external_id="project-7"), now=NOON)
        store.schedules.delete("ada", "first", now=NOON)
        assert store.schedules.find_by_external("project-7") is None
        made = store.schedules.put(schedule("second", external_id="project-7"), now=NOON)
        assert store.schedules.find_by_external("project-7") == made

    def test_g08_an_outside_id_that_was_given_up_leads_nowhere(self, store: Store) -> None:
        self.needs(Capability.EXTERNAL_IDS)
        store.schedules.put(schedule(external_id="project-7"), now=NOON)
        store.schedules.put(schedule(external_id="project-8"), now=NOON)
        assert store.schedules.find_by_external("project-7") is None
        assert must(store.schedules.find_by_external("project-8")).key == "digest"

    @hostile
    def test_g08_an_outside_id_may_be_hostile(self, store: Store, name: str) -> None:
        self.needs(Capability.EXTERNAL_IDS)
        made = store.schedules.put(schedule(external_id=name), now=NOON)
        assert store.schedules.find_by_external(name) == made
