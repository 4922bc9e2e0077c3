"""Nothing of an erased user stays, and nothing of another's goes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import pytest

from duetick.core.backfills import BackfillRequest, Backfills
from duetick.core.store import Store
from duetick.domain.attempts import CallerKey
from duetick.domain.standing import OrderKind, StandingOrder
from duetick.testing.conformance.retries import fail_first
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    BAD,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
    hostile,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    Capability,
    StoreSuite,
    begun,
    drain,
    only,
    run,
)


def orders(store: Store) -> list[StandingOrder]:
    """Return the orders of every kind, also those that have ended."""
    return [one for kind in get_args(OrderKind) for one in store.shelf.orders(kind, 0)]


def is_about(user: str, order: StandingOrder) -> bool:
    """Return True if the body of an order names the user."""
    body: dict[str, object] = json.loads(order.body)
    return f"user:{user}" == body.get("scope") or user == body.get("user_id")


def give_orders(store: Store, user: str) -> None:
    """Pause a user, and backfill a schedule of the user, twice each: one has ended, one stands."""
    store.now = lambda: NOON + HOUR
    store.schedules.put(schedule(user=user, cron=EACH_MINUTE), now=NOON)
    backfills = Backfills(store)
    for span in range(2):
        since = NOON - span * HOUR
        store.pauses.pause(f"user:{user}", now=since, note=str(span))
        wanted = BackfillRequest(user, "digest", since - 10 * MINUTE, since)
        backfills.start(backfills.plan(wanted))
        if not span:
            for one in orders(store):
                if is_about(user, one):
                    assert store.shelf.keep_order(one.end(NOON + HOUR))


def similar_users(user: str) -> Iterator[str]:
    """Yield users that begin as a user does, or that its escaped name may be taken for."""
    yield from (f"{user}x", f"{user}#", f"{user}%23", user.replace("#", "%23") + "%")


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
        assert (*store.index.unreadable(), *store.check(now=SOON)) == ()
        assert drain(store, SOON) == []

    def test_what_had_fired_is_not_known_any_more(self, store: Store) -> None:
        for _ in range(2):
            store.index.upsert(row())
            assert only(drain(store, SOON)).nominal_at == NOON
            store.index.remove("ada", "digest")
            store.erase("ada")

    def test_what_was_defined_is_not_known_any_more(self, store: Store) -> None:
        """An old definition's date would move the date of a new one made at the same time."""
        timings = []
        for _ in range(2):
            timings.append(store.schedules.put(schedule(), now=NOON).redefined_at)
            store.erase("ada")
        assert timings[0] == timings[1]

    def test_traces_go_too(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        retrying = fail_first(store, AT_LEAST_ONCE)
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
            begun(run(store, asked, NOON, taken))
            assert (store.ledger.holds(key, now=NOON) is None) == (taken is None)
            store.erase("ada")

    @pytest.mark.parametrize("user", ["a#b", "%", "日本"])
    def test_o02_the_orders_about_the_user_go_too(self, store: Store, user: str) -> None:
        for one in (user, *similar_users(user)):
            give_orders(store, one)
        mine = [one for one in orders(store) if is_about(user, one)]
        others = [one for one in orders(store) if one not in mine]
        found = [(one.kind, one.ended_at is None) for one in mine]
        assert sorted(set(found)) == [
            (kind, stands) for kind in ("backfill", "pause") for stands in (False, True)
        ]
        store.erase(user)
        assert orders(store) == others
        standing = [one for one in others if one.ended_at is None]
        assert sorted(store.shelf.standing()) == sorted(standing)

    def test_o02_an_order_that_is_erased_is_not_written_again(self, store: Store) -> None:
        give_orders(store, "ada")
        standing = list(store.shelf.standing())
        store.erase("ada")
        for one in standing:
            assert not store.shelf.keep_order(one.change(one.body))
            assert not store.shelf.keep_order(one.end(NOON + HOUR))
        assert orders(store) == []

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
