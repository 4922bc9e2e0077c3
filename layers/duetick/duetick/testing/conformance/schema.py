"""J-01, J-03 and I-10: migrations, the clock, and the errors of a store without a database."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Final

import pytest

from duetick.core.store import Store
from duetick.domain.alike import Selection
from duetick.domain.attempts import SUCCEEDED, CallerKey, reject
from duetick.domain.backfilling import Backfill
from duetick.domain.errors import DuetickError, SchemaOutdated, StoreUnavailable
from duetick.domain.operating import Operator
from duetick.domain.operations import Operation
from duetick.domain.schedule import Lease
from duetick.domain.standing import StandingOrder
from duetick.domain.workers import NamedLock, Worker
from duetick.testing.conformance.concurrency import race
from duetick.testing.conformance.samples import (
    DAY,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
    row,
    schedule,
)
from duetick.testing.conformance.suite import Capability, StoreSuite, must

HELD: Final = Lease("ada", "digest", NOON, "run:1", "reminders", fence=3)
OPERATION: Final = Operation("op_1", NOON, "ann", "migrate")
BY: Final = Operator("arn:aws:iam::1:user/op")
KEY: Final = CallerKey("reminders", "k", SECOND)


def _commits_effects(store: Store) -> None:
    with store.ledger.settling(HELD, lambda: NOON):
        pass


def _raise_errors(answers: Iterable[object]) -> None:
    """Raise the error that stands for an attempt, as the call of one attempt does."""
    for answer in answers:
        if isinstance(answer, DuetickError):
            raise answer


BACKFILL: Final = Backfill(
    *("ada", "digest", NOON, "* * * * *", None, 0, None), since=NOON - MINUTE, until=NOON, total=1
).dump()

LOCK: Final = NamedLock("purge", "one", NOON, SOON)
WORKER: Final = Worker("one", "tick", NOON, SOON)
CALLS: Final[Mapping[str, Callable[[Store], object]]] = {
    "check_schema": lambda store: store.check_schema(),
    "check": lambda store: store.check(now=NOON),
    "rebuild": lambda store: store.rebuild(now=NOON),
    "mark_done": lambda store: store.mark_done(now=NOON),
    "mend": lambda store: store.mend("ada", "digest", now=NOON),
    "close_pause": lambda store: store.close_pause("ada", "digest", now=NOON),
    "follow_zone": lambda store: store.follow_zone("ada", "digest", now=NOON),
    "pass_over": lambda store: store.pass_over("ada", "digest", NOON, now=NOON),
    "erase": lambda store: store.erase("ada"),
    "allow": lambda store: store.allow("ada", "writes", 1, now=NOON),
    "index.upsert": lambda store: store.index.upsert(row()),
    "index.remove": lambda store: store.index.remove("ada", "digest"),
    "index.get": lambda store: store.index.get("ada", "digest"),
    "index.claim_due": lambda store: store.index.claim_due(NOON),
    "index.claim_one": lambda store: store.index.claim_one("ada", "digest", now=NOON),
    "index.unreadable": lambda store: store.index.unreadable(),
    "index.backlog": lambda store: store.index.backlog(NOON),
    "index.restore": lambda store: store.index.restore("ada", "digest", now=NOON),
    "schedules.put": lambda store: store.schedules.put(schedule(), now=NOON),
    "schedules.try_put": lambda store: store.schedules.try_put(schedule(), now=NOON),
    "schedules.creation": lambda store: store.schedules.creation("ada", "once", now=NOON),
    "schedules.get": lambda store: store.schedules.get("ada", "digest"),
    "schedules.list": lambda store: store.schedules.list("ada"),
    "schedules.delete": lambda store: store.schedules.delete("ada", "digest", now=NOON),
    "schedules.purge": lambda store: store.schedules.purge("ada", "digest", now=NOON),
    "schedules.find_by_external": lambda store: store.schedules.find_by_external("project"),
    "ledger.begin": lambda store: store.ledger.begin(HELD, now=NOON),
    "ledger.begin_many": lambda store: _raise_errors(store.ledger.begin_many([HELD], now=NOON)),
    "ledger.body": lambda store: store.ledger.body(by_hand().identity),
    "ledger.bring": lambda store: store.ledger.bring(by_hand(), now=NOON),
    "ledger.backfill": lambda store: store.ledger.backfill(
        ("ada", "digest"), StandingOrder("backfill", "name", NOON, BACKFILL), now=NOON
    ),
    "ledger.holds": lambda store: store.ledger.holds(KEY, now=NOON),
    "ledger.settle": lambda store: store.ledger.settle(HELD, SUCCEEDED, now=NOON),
    "ledger.settle_many": lambda store: _raise_errors(
        store.ledger.settle_many([(HELD, SUCCEEDED)], now=NOON)
    ),
    "ledger.settling": _commits_effects,
    "ledger.reject": lambda store: store.ledger.reject(HELD, reject("no such action"), now=NOON),
    "ledger.release": lambda store: store.ledger.release(HELD, now=NOON),
    "ledger.write_off": lambda store: store.ledger.write_off(HELD, now=NOON),
    "ledger.renew": lambda store: store.ledger.renew(HELD, now=NOON),
    "ledger.claim_waiting": lambda store: store.ledger.claim_waiting(NOON),
    "ledger.retry": lambda store: store.ledger.retry(HELD, BY, now=NOON),
    "ledger.cancel": lambda store: store.ledger.cancel(HELD, BY, now=NOON),
    "ledger.discard": lambda store: store.ledger.discard(HELD, BY, now=NOON),
    "ledger.find_by_id": lambda store: store.ledger.find_by_id("occ_1"),
    "ledger.find": lambda store: store.ledger.find("ada"),
    "ledger.get": lambda store: store.ledger.get(*HELD.identity),
    "ledger.events": lambda store: store.ledger.events(HELD),
    "ledger.events_of": lambda store: store.ledger.events_of([HELD, HELD]),
    "shelf.leaving": lambda store: store.shelf.leaving(NOON, 1),
    "shelf.accounts": lambda store: list(store.shelf.accounts(NOON, SOON)),
    "shelf.account": lambda store: store.shelf.account("ada", "digest", NOON, SOON),
    "shelf.read_alike": lambda store: store.shelf.read_alike(Selection(), NOON, SOON),
    "shelf.tally": lambda store: store.shelf.tally(NOON, NOON, 10),
    "shelf.rules": lambda store: store.shelf.rules("digest"),
    "shelf.note": lambda store: store.shelf.note("name"),
    "shelf.standing": lambda store: store.shelf.standing(),
    "shelf.orders": lambda store: store.shelf.orders("pause", NOON),
    "shelf.keep_order": lambda store: store.shelf.keep_order(
        StandingOrder("pause", "name", NOON, "{}")
    ),
    "shelf.keep_note": lambda store: store.shelf.keep_note("name", "body"),
    "shelf.add_operation": lambda store: store.shelf.add_operation(OPERATION),
    "shelf.end_operation": lambda store: store.shelf.end_operation(OPERATION),
    "shelf.operations": lambda store: store.shelf.operations((NOON, ""), 1),
    "shelf.acquire": lambda store: store.shelf.acquire(LOCK, NOON),
    "shelf.extend": lambda store: store.shelf.extend("purge", "one", SOON),
    "shelf.unlock": lambda store: store.shelf.unlock("purge", "one"),
    "shelf.report": lambda store: store.shelf.report(WORKER),
    "locks": lambda store: store.locks(),
    "workers": lambda store: store.workers(NOON),
}
"""All calls of a store but `migrate` and `close`, and those that hourly work asks of a shelf."""


def ending_otherwise(store: Store, error: type[DuetickError]) -> list[str]:
    """Return the calls that end in an answer, or in another error of ours, not in that error."""
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
        """No call reads the store as empty, and none creates the schema."""
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
