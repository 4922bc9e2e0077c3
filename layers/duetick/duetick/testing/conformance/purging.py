"""L-01: a purge deletes schedules that are done, and the marks and definitions of deleted ones."""

from dataclasses import replace

from duetick.core.purge import purge
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.creation import Repeatable
from duetick.domain.ending import KEPT_DONE_MS, KEPT_GONE_MS
from duetick.domain.pausing import pause
from duetick.domain.policies import Delivery
from duetick.domain.states import Reason, State
from duetick.testing.conformance.done import (
    AT_NOON,
    DELETE,
    LATER,
    change,
    drain_last,
    finish,
    make_done,
    mark,
    put,
    read_record,
)
from duetick.testing.conformance.samples import (
    DAILY,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    drain,
    must,
    only,
    start,
)


class PurgeConformance(StoreSuite):
    """The purge of schedules that are done, and of marks, definitions, creations and keys."""

    def test_l01_what_is_done_leaves_after_thirty_days_and_its_history_stays(
        self, store: Store
    ) -> None:
        finish(store, only(drain_last(store)), SOON + SECOND)
        purge(store, SOON + KEPT_DONE_MS - 1)
        assert read_record(store).done_at == SOON
        assert purge(store, SOON + KEPT_DONE_MS).deleted == 1
        assert store.schedules.get("ada", "digest") is None
        assert only(store.ledger.find("ada", "digest")).state is State.SUCCEEDED

    def test_l01_after_completion_delete_deletes_it_when_its_last_has_ended(
        self, store: Store
    ) -> None:
        held = start(store, only(drain_last(store, DELETE)), SOON)
        assert purge(store, SOON).deleted == 0
        assert read_record(store).done_at == SOON
        store.ledger.settle(held, SUCCEEDED, now=SOON + SECOND)
        assert purge(store, SOON + MINUTE).deleted == 1
        assert store.schedules.get("ada", "digest") is None
        assert only(store.ledger.find("ada", "digest")).state is State.SUCCEEDED

    def test_l01_after_completion_delete_waits_for_no_lease_of_what_has_ended(
        self, store: Store
    ) -> None:
        """A purge that came while it ran put the next look off until the end of its lease."""
        held = start(store, only(drain_last(store, DELETE)), SOON)
        assert not store.schedules.purge("ada", "digest", now=SOON)
        store.ledger.settle(held, SUCCEEDED, now=SOON + SECOND)
        assert store.schedules.purge("ada", "digest", now=SOON + SECOND)
        assert store.schedules.get("ada", "digest") is None

    def test_l01_what_is_kept_for_thirty_days_is_not_deleted_before(self, store: Store) -> None:
        finish(store, only(drain_last(store)))
        assert not store.schedules.purge("ada", "digest", now=SOON + KEPT_DONE_MS - 1)
        assert store.schedules.purge("ada", "digest", now=SOON + KEPT_DONE_MS)

    def test_l01_after_completion_delete_waits_for_the_last_retry(self, store: Store) -> None:
        policies = replace(DELETE, delivery=Delivery.AT_LEAST_ONCE)
        held = start(store, only(drain_last(store, policies)), SOON)
        waiting = must(store.ledger.settle(held, FAILED, now=SOON))
        assert waiting.state is State.RETRYING
        assert purge(store, SOON + MINUTE).deleted == 0
        again = only(store.ledger.claim_waiting(NOON + HOUR))
        finish(store, again, NOON + HOUR)
        assert purge(store, NOON + HOUR + 2 * MINUTE).deleted == 1

    def test_l01_what_never_began_keeps_it_until_it_is_lost(self, store: Store) -> None:
        only(drain_last(store, DELETE))
        assert purge(store, SOON).deleted == 0
        store.ledger.claim_waiting(NOON + DAY)
        assert purge(store, NOON + DAY + MINUTE).deleted == 1
        assert only(store.ledger.find("ada", "digest")).reason is Reason.LOST

    def test_l01_a_schedule_that_fires_on_is_not_deleted(self, store: Store) -> None:
        put(store, DAILY, DELETE)
        finish(store, only(drain(store, SOON)))
        assert purge(store, LATER).deleted == 0
        assert read_record(store).next_fire_at == NOON + DAY

    def test_l01_a_policy_of_later_counts(self, store: Store) -> None:
        finish(store, only(drain_last(store)))
        change(store, lambda one: replace(one, policies=DELETE), SOON)
        assert purge(store, SOON).deleted == 1

    def test_l01_a_schedule_that_is_active_again_stays(self, store: Store) -> None:
        finish(store, only(drain_last(store)))
        change(store, lambda one: replace(one, cron=DAILY), SOON)
        assert purge(store, LATER).deleted == 0

    def test_l01_a_static_schedule_stays_for_its_flow_declares_it(self, store: Store) -> None:
        store.schedules.put(schedule(user="", cron=AT_NOON, policies=DELETE), now=NOON - 1)
        only(drain(store, SOON))
        assert purge(store, LATER).deleted == 0
        assert must(store.schedules.get("", "digest")).done_at == SOON

    def test_l01_a_purge_looks_at_so_many_and_the_next_at_others(self, store: Store) -> None:
        for number in range(5):
            made = schedule(f"k{number}", cron=AT_NOON, policies=DELETE)
            store.schedules.put(made, now=NOON - 1)
        for one in drain(store, SOON):
            finish(store, one)
        passes = [purge(store, SOON + MINUTE, 2) for _ in range(4)]
        assert [one.deleted for one in passes] == [2, 2, 1, 0]
        assert [one.more for one in passes] == [True, True, False, False]

    def test_l01_a_namesake_of_one_that_left_fires_nothing_twice(self, store: Store) -> None:
        finish(store, only(drain_last(store, DELETE)))
        purge(store, SOON + MINUTE)
        put(store, EACH_MINUTE, now=SOON + MINUTE)
        claimed = drain(store, NOON + 3 * MINUTE)
        assert [one.nominal_at for one in claimed] == [NOON + 2 * MINUTE, NOON + 3 * MINUTE]

    def test_l01_a_mark_without_a_record_goes_400_days_after_its_time(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        finish(store, only(drain_last(store, DELETE)))
        purge(store, SOON + MINUTE)
        assert mark(store) == NOON
        purge(store, NOON + KEPT_GONE_MS - 1)
        assert mark(store) == NOON
        assert purge(store, NOON + KEPT_GONE_MS).forgotten
        assert mark(store) is None

    def test_l01_a_mark_beside_a_record_or_a_row_stays(self, store: Store) -> None:
        make_done(store)
        store.index.upsert(row("bare", at=NOON))
        drain(store, SOON)
        change(store, lambda one: pause(one, "", None, SOON), SOON)
        purge(store, NOON + 2 * KEPT_GONE_MS)
        assert (mark(store), mark(store, "bare")) == (NOON, NOON)

    def test_l01_a_creation_leaves_at_its_end(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        asked = Repeatable("order-7", "what", NOON + DAY)
        store.schedules.put(schedule(), now=NOON, if_version=0, repeatable=asked)
        assert purge(store, NOON + DAY - 1).forgotten == 0
        assert purge(store, NOON + DAY).forgotten == 1
        assert purge(store, NOON + DAY).forgotten == 0
