"""Nothing of an erased user stays, and nothing of another's goes."""

from dataclasses import replace

from duetick.ports import CallerKey, Store
from duetick.testing.conformance.retries import failed
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    BAD,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
    hostile,
    row,
    schedule,
)
from duetick.testing.conformance.suite import Capability, StoreSuite, begun, drain, only


class ErasureConformance(StoreSuite):
    """Nothing of an erased user stays, and nothing of another's goes."""

    @hostile
    def test_everything_of_the_user_goes(self, store: Store, name: str) -> None:
        for user in (name, "bob"):
            wanted = schedule(user=user, cron="* * * * *")
            store.schedules.put(replace(wanted, input="x" * 2_000), now=NOON)
        drain(store, NOON + MINUTE + SECOND)
        assert store.erase(name) == 1
        assert not store.schedules.list(name).schedules
        assert not store.ledger.find(name)
        assert store.index.get(name, "digest") is None
        assert len(store.ledger.find("bob")) == len(store.schedules.list("bob").schedules) == 1

    def test_the_history_of_deleted_schedules_goes_too(self, store: Store) -> None:
        store.schedules.put(schedule(cron="* * * * *"), now=NOON)
        drain(store, NOON + MINUTE)
        store.schedules.delete("ada", "digest", now=NOON + 3 * MINUTE)
        assert store.erase("ada") == 0
        assert not store.ledger.find("ada")

    def test_rows_without_a_record_go_too(self, store: Store) -> None:
        store.index.upsert(row("poisoned", cron=BAD))
        drain(store, SOON)
        store.index.upsert(row("due"))
        store.erase("ada")
        assert store.index.get("ada", "due") is None
        assert (*store.index.poisoned(), *store.check(now=SOON)) == ()
        assert drain(store, SOON) == []

    def test_what_had_fired_is_not_known_any_more(self, store: Store) -> None:
        for _ in range(2):
            store.index.upsert(row())
            assert only(drain(store, SOON)).nominal_at == NOON
            store.index.remove("ada", "digest")
            store.erase("ada")

    def test_what_was_defined_is_not_known_any_more(self, store: Store) -> None:
        """The date of a definition would move another one made at the same time."""
        timings = []
        for _ in range(2):
            timings.append(store.schedules.put(schedule(), now=NOON).timing)
            store.erase("ada")
        assert timings[0] == timings[1]

    def test_traces_go_too(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        retrying = failed(store, AT_LEAST_ONCE)
        assert store.ledger.events(retrying)
        store.erase("ada")
        store.index.upsert(row(at=retrying.nominal_at))
        again = only(drain(store, retrying.nominal_at + 1))
        assert again.identity == retrying.identity
        assert list(store.ledger.events(again)) == []

    def test_a_callers_key_goes_too(self, store: Store) -> None:
        key = CallerKey("reminders", "order-7", MINUTE)
        asked = replace(by_hand(), idempotency_key=key.key)
        for taken in (key, None):
            begun(store.ledger.begin(asked, now=NOON, key=taken))
            assert (store.ledger.holds(key, now=NOON) is None) == (taken is None)
            store.erase("ada")

    def test_an_outside_id_is_free_again(self, store: Store) -> None:
        self.needs(Capability.EXTERNAL_IDS)
        store.schedules.put(schedule(external_id="project-7"), now=NOON)
        store.erase("ada")
        store.schedules.put(schedule(user="bob", external_id="project-7"), now=NOON)

    def test_an_erased_user_may_begin_anew(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON, at_most=1)
        store.erase("ada")
        assert store.erase("ada") == 0
        assert store.schedules.put(schedule(), now=NOON, at_most=1).version == 1
