"""O-02: a standing order is written once, ends once, and is forgotten in the end."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from duetick.core.store import Store
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.standing import StandingOrder
from duetick.testing.conformance.samples import HOUR, NOON
from duetick.testing.conformance.suite import Capability, StoreSuite

ADA = StandingOrder("pause", "user:ada", NOON, '{"note": "ß \\"1\\""}')
MAIL = StandingOrder("pause", "flow:mail#1", NOON + HOUR, "{}")
BACKFILL = StandingOrder("backfill", "user:ada", NOON, "{}")


def keep(store: Store, *orders: StandingOrder) -> Sequence[bool]:
    """Keep orders, one after the other."""
    return [store.shelf.keep_order(one) for one in orders]


class StandingOrderConformance(StoreSuite):
    """Orders of each kind, by name, with a revision that one writer at a time gets past."""

    def test_o02_an_order_stands_until_it_ends(self, store: Store) -> None:
        assert keep(store, ADA, MAIL, BACKFILL) == [True, True, True]
        assert store.shelf.standing() == [BACKFILL, MAIL, ADA]
        ended = ADA.end(NOON + HOUR, '{"by": "somebody"}')
        assert keep(store, ended) == [True]
        assert store.shelf.standing() == [BACKFILL, MAIL]

    def test_o02_orders_of_a_kind_are_those_that_stand_or_ended_since(self, store: Store) -> None:
        ended = ADA.end(NOON + HOUR)
        keep(store, MAIL, ADA, BACKFILL, ended)
        assert store.shelf.orders("pause", NOON + HOUR - 1) == [MAIL, ended]
        assert store.shelf.orders("pause", NOON + HOUR) == [MAIL]
        assert store.shelf.orders("limit", NOON) == []

    def test_o02_a_name_is_given_once(self, store: Store) -> None:
        assert keep(store, ADA, ADA, ADA._replace(body='{"other": 1}')) == [True, False, False]
        keep(store, ADA.end(NOON + HOUR))
        assert keep(store, ADA) == [False]

    def test_o02_an_order_changes_from_the_revision_that_was_read(self, store: Store) -> None:
        changed = ADA.change('{"note": "two"}')
        assert keep(store, changed) == [False]
        assert keep(store, ADA, changed, changed) == [True, True, False]
        assert store.shelf.standing() == [changed]

    def test_o02_an_order_that_has_ended_is_final(self, store: Store) -> None:
        ended = ADA.end(NOON + HOUR)
        keep(store, ADA, ended)
        assert keep(store, ended.end(NOON + 2 * HOUR), ended.change("{}")) == [False, False]
        assert store.shelf.orders("pause", NOON) == [ended]

    def test_o02_an_order_may_be_over_as_it_is_made(self, store: Store) -> None:
        over = ADA._replace(ended_at=NOON + 1)
        assert keep(store, over, over, ADA) == [True, False, False]
        assert store.shelf.standing() == []
        assert store.shelf.orders("pause", NOON) == [over]

    def test_o02_of_two_writers_at_once_one_wins(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        keep(store, ADA)
        writes: Sequence[Callable[[], bool]] = [
            lambda: store.shelf.keep_order(ADA.change('{"n": 1}')),
            lambda: store.shelf.keep_order(ADA.end(NOON + HOUR)),
        ]
        with ThreadPoolExecutor(len(writes)) as pool:
            won = list(pool.map(lambda write: write(), writes))
        assert sorted(won) == [False, True]

    def test_j10_an_order_is_forgotten_long_after_its_end(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        ended = ADA.end(NOON + HOUR)
        keep(store, MAIL, ADA, ended)
        store.shelf.forget(NOON + HOUR + KEPT_GONE_MS - 1, 10)
        assert store.shelf.orders("pause", NOON) == [MAIL, ended]
        store.shelf.forget(NOON + HOUR + KEPT_GONE_MS, 10)
        assert store.shelf.orders("pause", NOON) == [MAIL]
