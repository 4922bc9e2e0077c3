"""J-01, J-03 and I-10: migrations, the clock, and what is said where nothing can be kept."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Final

import pytest

from duetick.domain.errors import DuetickError, SchemaOutdated, StoreUnavailable
from duetick.ports import SUCCEEDED, CallerKey, Store
from duetick.testing.conformance.concurrency import race
from duetick.testing.conformance.samples import DAY, NOON, SECOND, by_hand, row, schedule
from duetick.testing.conformance.suite import Capability, StoreSuite, must

HELD: Final = replace(by_hand(), fence=3)
KEY: Final = CallerKey("reminders", "k", SECOND)


def _commits_effects(store: Store) -> None:
    with store.ledger.settling(HELD, lambda: NOON):
        pass


CALLS: Final[Mapping[str, Callable[[Store], object]]] = {
    "check_schema": lambda store: store.check_schema(),
    "check": lambda store: store.check(now=NOON),
    "rebuild": lambda store: store.rebuild(now=NOON),
    "erase": lambda store: store.erase("ada"),
    "admit_run": lambda store: store.admit_run("ada", 1, now=NOON),
    "index.upsert": lambda store: store.index.upsert(row()),
    "index.remove": lambda store: store.index.remove("ada", "digest"),
    "index.get": lambda store: store.index.get("ada", "digest"),
    "index.claim_due": lambda store: store.index.claim_due(NOON),
    "index.poisoned": lambda store: store.index.poisoned(),
    "index.backlog": lambda store: store.index.backlog(NOON),
    "index.restore": lambda store: store.index.restore("ada", "digest", now=NOON),
    "schedules.put": lambda store: store.schedules.put(schedule(), now=NOON),
    "schedules.made": lambda store: store.schedules.made("ada", "once", now=NOON),
    "schedules.get": lambda store: store.schedules.get("ada", "digest"),
    "schedules.list": lambda store: store.schedules.list("ada"),
    "schedules.delete": lambda store: store.schedules.delete("ada", "digest", now=NOON),
    "schedules.find_by_external": lambda store: store.schedules.find_by_external("project"),
    "ledger.begin": lambda store: store.ledger.begin(HELD, now=NOON),
    "ledger.bring": lambda store: store.ledger.bring(by_hand(), now=NOON),
    "ledger.holds": lambda store: store.ledger.holds(KEY, now=NOON),
    "ledger.settle": lambda store: store.ledger.settle(HELD, SUCCEEDED, now=NOON),
    "ledger.settling": _commits_effects,
    "ledger.release": lambda store: store.ledger.release(HELD, now=NOON),
    "ledger.renew": lambda store: store.ledger.renew(HELD, now=NOON),
    "ledger.claim_waiting": lambda store: store.ledger.claim_waiting(NOON),
    "ledger.find": lambda store: store.ledger.find("ada"),
    "ledger.get": lambda store: store.ledger.get(*HELD.identity),
    "ledger.events": lambda store: store.ledger.events(HELD),
}
"""Whatever can be asked of a store."""


def ending_otherwise(store: Store, error: type[DuetickError]) -> list[str]:
    """The calls that end in anything but that error: an answer, or another error of ours."""
    found = []
    for name, call in CALLS.items():
        try:
            call(store)
        except error:
            continue
        except DuetickError:
            pass
        found.append(name)
    return found


class SchemaConformance(StoreSuite):
    """J-01, J-03 and I-10."""

    def test_j03_without_a_time_the_store_asks_its_own_clock(self, store: Store) -> None:
        before = store.now()
        made = store.schedules.put(schedule())
        assert 0 < before <= made.created_at <= store.now()

    def test_j01_migrating_again_changes_nothing(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        store.migrate()
        store.check_schema()
        assert must(store.schedules.get("ada", "digest")).next_fire_at == NOON + DAY

    def test_j01_migrating_at_the_same_time_as_another_is_safe(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        race([s.migrate for s in (store, self.another(store))])
        store.check_schema()

    def test_i10_whatever_is_asked_of_an_unmigrated_store_it_says_so(self, store: Store) -> None:
        """It never reads as empty, and nothing that is asked makes the schema on the way."""
        self.needs(Capability.UNMIGRATED)
        with closing(self.unmigrated(store)) as empty:
            assert ending_otherwise(empty, SchemaOutdated) == []

    def test_i10_an_unmigrated_store_works_when_it_is_migrated(self, store: Store) -> None:
        self.needs(Capability.UNMIGRATED)
        with closing(self.unmigrated(store)) as empty:
            with pytest.raises(SchemaOutdated, match="migrate"):
                empty.index.claim_due(NOON)
            empty.migrate()
            empty.check_schema()
            assert empty.schedules.put(schedule(), now=NOON).next_fire_at == NOON + DAY

    def test_i12_whatever_is_asked_of_an_unreachable_store_it_says_so(self, store: Store) -> None:
        self.needs(Capability.UNREACHABLE)
        with closing(self.unreachable(store)) as away:
            assert ending_otherwise(away, StoreUnavailable) == []
