"""J-07: the lookups of operators in the ledger."""

from dataclasses import replace
from typing import Final

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.errors import InvalidQuery
from duetick.domain.schedule import Identity, Occurrence
from duetick.domain.states import LEASED, WAITING, State
from duetick.testing.conformance.samples import (
    DAILY,
    EACH_MINUTE,
    MINUTE,
    NOON,
    QUIET,
    SOON,
    by_hand,
    row,
)
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    drain,
    only,
    start,
)

FINDABLE: Final = {*LEASED, *WAITING, State.DEAD}


def claim_each_minute(store: Store, count: int) -> list[Occurrence]:
    """Claim that many occurrences of one row, oldest first."""
    store.index.upsert(row(cron=EACH_MINUTE))
    return [only(drain(store, SOON + n * MINUTE)) for n in range(count)]


def drain_one(store: Store) -> Occurrence:
    """Claim the scheduled occurrence of noon."""
    store.index.upsert(row())
    return only(drain(store, SOON))


def pages(
    store: Store,
    limit: int,
    *,
    user: str | None = "ada",
    key: str | None = None,
    state: State | frozenset[State] | None = None,
) -> list[Identity]:
    """Return the occurrences of all pages. Each page goes on after the last occurrence."""
    found: list[Identity] = []
    before: Identity | None = None
    for _ in range(20):
        page = store.ledger.find(user, key, state=state, limit=limit, before=before)
        if not page:
            return found
        found += [one.identity for one in page]
        before = found[-1]
    raise AssertionError("the pages never come to an end")


class FindConformance(StoreSuite):
    """Lookups by schedule, by user and by state, in pages."""

    def test_j07_the_newest_are_found_first(self, store: Store) -> None:
        made = claim_each_minute(store, 3)
        assert list(store.ledger.find("ada", "digest")) == made[::-1]

    def test_j07_what_is_found_is_bounded(self, store: Store) -> None:
        made = claim_each_minute(store, 5)
        assert list(store.ledger.find("ada", "digest", limit=2)) == made[:2:-1]

    def test_j07_a_page_goes_on_before_the_last_one_seen(self, store: Store) -> None:
        made = claim_each_minute(store, 5)
        found = store.ledger.find("ada", "digest", limit=2, before=made[3].nominal_at)
        assert list(found) == [made[2], made[1]]

    def test_j07_pages_hold_every_occurrence_once(self, store: Store) -> None:
        made = claim_each_minute(store, 45)
        found: list[Occurrence] = []
        before: int | None = None
        for _ in range(3):
            page = store.ledger.find("ada", "digest", limit=16, before=before)
            found += page
            before = page[-1].nominal_at if page else 0
        assert found == made[::-1]

    @pytest.mark.parametrize("key", ["digest", None])
    def test_j07_pages_divide_what_shares_a_time(self, store: Store, key: str | None) -> None:
        """A page ends between the runs by hand and the scheduled occurrence of one instant."""
        made = [drain_one(store)]
        for number in range(6):
            running = start(store, by_hand(run=f"run:{number}"), SOON)
            store.ledger.settle(running, SUCCEEDED, now=SOON)
            made.append(running)
        found = pages(store, 2, key=key)
        assert sorted(found) == sorted(o.identity for o in made)

    def test_j07_pages_of_the_dead_divide_what_shares_a_time(self, store: Store) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        made = [row(f"k{number}", user=f"u{number}") for number in range(7)]
        for one in made:
            store.index.upsert(one)
        for occurrence in drain(store, SOON):
            store.ledger.settle(start(store, occurrence, SOON), FAILED, now=SOON)
        found = pages(store, 3, user=None, state=State.DEAD)
        assert [name[0] for name in found] == [one.user_id for one in made]

    def test_j07_nothing_of_the_time_itself_is_found_before_it(self, store: Store) -> None:
        drain_one(store)
        start(store, by_hand(), SOON)
        assert list(store.ledger.find("ada", "digest", before=NOON)) == []
        assert len(store.ledger.find("ada", "digest", before=NOON + 1)) == 2

    @pytest.mark.parametrize("state", [None, *sorted(set(State) - FINDABLE)])
    def test_j07_what_no_index_answers_is_refused(self, store: Store, state: State | None) -> None:
        with pytest.raises(InvalidQuery, match="by user"):
            store.ledger.find(state=state)

    def test_j07_a_key_without_its_user_is_refused(self, store: Store) -> None:
        with pytest.raises(InvalidQuery, match="user"):
            store.ledger.find(key="digest", state=State.DEAD)

    def test_j07_one_user_finds_nothing_of_another(self, store: Store) -> None:
        store.index.upsert(row(user="bob"))
        drain(store, SOON)
        assert list(store.ledger.find("ada")) == []
        assert list(store.ledger.find("ada", "digest")) == []

    def test_j07_a_user_finds_all_schedules(self, store: Store) -> None:
        for key in ("a", "b"):
            store.index.upsert(row(key))
        drain(store, SOON)
        assert {o.key for o in store.ledger.find("ada")} == {"a", "b"}

    def test_j07_a_state_narrows_what_is_found(self, store: Store) -> None:
        first, second = claim_each_minute(store, 2)
        store.ledger.settle(start(store, first, SOON), SUCCEEDED, now=SOON)
        found = store.ledger.find("ada", "digest", state=State.SUCCEEDED)
        assert only(found).identity == first.identity
        assert only(store.ledger.find("ada", state=State.QUEUED)) == second
        assert list(store.ledger.find("ada", state=State.DEAD)) == []

    def test_j07_what_is_absent_is_none(self, store: Store) -> None:
        assert store.ledger.get("ada", "digest", NOON, "schedule") is None

    def test_j07_the_dead_of_all_users_are_found(self, store: Store) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        for user in ("ada", "bob"):
            store.index.upsert(row(user=user, cron="bad"))
        store.index.upsert(row("good", cron=DAILY))
        drain(store, SOON)
        found = store.ledger.find(state=State.DEAD)
        assert {o.user_id for o in found} == {"ada", "bob"}
        assert len(found) == 2

    def test_j07_those_that_wait_are_found_for_all_users(self, store: Store) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        spread = replace(row().policies, spread=3_600)
        store.index.upsert(row("spread", policies=spread))
        store.index.upsert(row("bad", cron="bad"))
        drain(store, SOON)
        assert only(store.ledger.find(state=State.SCHEDULED)).key == "spread"
        assert list(store.ledger.find(state=State.RETRYING)) == []

    def test_o05_those_that_run_are_found_for_all_users_in_one_order(self, store: Store) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        for number, user in enumerate(("ada", "bob", "cyd")):
            store.index.upsert(row(user=user, cron=QUIET, at=SOON - number * MINUTE))
        claimed = drain(store, SOON)
        begun = start(store, next(one for one in claimed if one.user_id == "bob"), SOON)
        found = pages(store, 1, user=None, state=LEASED)
        assert [name[0] for name in found] == ["ada", "bob", "cyd"]
        assert only(store.ledger.find(state=State.PROCESSING)).identity == begun.identity
        assert {o.user_id for o in store.ledger.find(state=State.QUEUED)} == {"ada", "cyd"}

    def test_o05_states_of_different_indexes_are_not_found_together(self, store: Store) -> None:
        with pytest.raises(InvalidQuery, match="need attention"):
            store.ledger.find(state=[State.DEAD, State.RETRYING])

    def test_j07_one_that_needs_attention_is_found_by_its_id(self, store: Store) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        store.index.upsert(row(user="bob"))
        store.index.upsert(row(user="ada"))
        running, other = drain(store, SOON)
        assert store.ledger.find_by_id(running.id) == running
        dead = store.ledger.settle(start(store, other, SOON), FAILED, now=SOON)
        assert dead is not None
        assert store.ledger.find_by_id(dead.id) == dead
        assert store.ledger.find_by_id("occ_000000000000") is None
        for never in ("anything", "occ_\0", "occ_\ud800"):
            assert store.ledger.find_by_id(never) is None
