"""O-03 and J-13: a failure hook is an occurrence to the limits too, of the action that it runs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.core.verify import verify
from duetick.domain.identity import is_failure_hook
from duetick.domain.limits import Per
from duetick.domain.policies import Policies
from duetick.domain.schedule import Lease, Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.failure_hooks import TOLD, current, dead, hooks, put, running
from duetick.testing.conformance.limiting import LEASE, live, settle, so_many, tick
from duetick.testing.conformance.samples import (
    ALLOW,
    AT_LEAST_ONCE,
    DAY,
    HOUR,
    NOON,
    SECOND,
    SOON,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    StoreSuite,
    drain,
    must,
    only,
    recorded,
    refused,
    start,
)

OWN = "action:reminders/tell"
OF_SCHEDULE = "action:reminders/send"
COVERING = ("user:ada", "flow:reminders", OWN)

covering = pytest.mark.parametrize("scope", COVERING)


def limit(
    store: Store, scope: str, *, parallel: int | None = 1, rate: int | None = None, per: Per = "day"
) -> None:
    """Set a limit: one at once, unless it says otherwise."""
    store.limits.set(scope, parallel=parallel, rate=rate, per=per, now=NOON)


def occupy(store: Store, action: str = "tell") -> Occurrence:
    """Return an occurrence of another schedule that has begun with an action."""
    other = replace(schedule("other"), action=action)
    store.schedules.put(other, now=NOON - SECOND)
    return start(store, only(drain(store, SOON)), SOON)


def of_hooks(found: Sequence[Occurrence]) -> list[Occurrence]:
    """Return the failure hooks among some occurrences."""
    return [one for one in found if is_failure_hook(one.origin)]


class LimitedHookConformance(StoreSuite):
    """A hook waits for a place as any occurrence, and is told once, however late."""

    @covering
    def test_o03_a_hook_waits_for_a_place_of_the_action_that_it_runs(
        self, store: Store, scope: str
    ) -> None:
        dead(store)
        limit(store, scope)
        holder = occupy(store)
        assert tick(store) == []
        assert only(hooks(store)).state is State.SCHEDULED
        settle(store, holder)
        hook = only(tick(store))
        start(store, hook, SOON)
        assert (hook.identity, live(store)) == (only(hooks(store)).identity, 1)

    @covering
    def test_o03_a_hook_that_a_tick_handed_on_is_held_back_at_its_begin(
        self, store: Store, scope: str
    ) -> None:
        dead(store)
        hook = only(store.ledger.claim_waiting(SOON))
        limit(store, scope)
        holder = occupy(store)
        assert refused(store.ledger.begin(hook, now=SOON)).limit == scope
        assert recorded(store, hook).attempts == 0
        settle(store, holder)
        assert start(store, only(tick(store)), SOON).death == hook.death

    def test_o03_days_after_it_was_held_back_a_hook_is_not_lost(self, store: Store) -> None:
        dead(store)
        hook = only(store.ledger.claim_waiting(SOON))
        store.schedules.put(replace(current(store), enabled=False), now=SOON)
        limit(store, OWN)
        occupy(store)
        assert refused(store.ledger.begin(hook, now=SOON)).limit == OWN
        later = SOON + 3 * DAY
        again = only(of_hooks(store.ledger.claim_waiting(later)))
        assert store.ledger.release(again, now=later + SECOND)
        assert recorded(store, hook).state is State.QUEUED

    def test_o03_a_hook_takes_no_place_of_the_action_that_failed(self, store: Store) -> None:
        dead(store)
        limit(store, OF_SCHEDULE)
        occupy(store, "send")
        hook = only(tick(store))
        start(store, hook, SOON)
        assert (hook.origin, live(store)) == (only(hooks(store)).origin, 1)

    def test_o03_an_attempt_under_way_takes_no_place_of_the_hooks(self, store: Store) -> None:
        limit(store, OWN)
        put(store)
        start(store, only(tick(store)), SOON)
        assert live(store) == 0

    @covering
    def test_o03_the_place_of_the_dead_one_is_the_hooks_to_take(
        self, store: Store, scope: str
    ) -> None:
        limit(store, scope)
        put(store)
        held = start(store, only(tick(store)), SOON)
        store.ledger.settle(held, FAILED, now=SOON)
        assert live(store) == 0
        start(store, only(tick(store)), SOON)
        assert live(store) == 1

    @covering
    def test_o03_a_rate_holds_a_hook_for_days_and_does_not_lose_it(
        self, store: Store, scope: str
    ) -> None:
        """A hook has a day to begin. The wait for a limit does not count in it."""
        dead(store)
        store.schedules.put(replace(current(store), enabled=False), now=SOON)
        limit(store, scope, parallel=None, rate=1)
        for day in range(3):
            now = SOON + day * DAY
            other = Lease("ada", f"k{day}", NOON, "schedule", "reminders", 1)
            assert store.limits.take(other, "tell", now + SECOND, now) is None
            assert of_hooks(tick(store, now + HOUR)) == []
        later = SOON + 3 * DAY
        hook = only(of_hooks(tick(store, later)))
        assert store.ledger.release(hook, now=later + SECOND)
        again = only(of_hooks(tick(store, later + 2 * SECOND)))
        assert start(store, again, later + 2 * SECOND).attempts == 1

    @covering
    def test_o03_a_hook_that_fails_gives_its_place_back_until_it_retries(
        self, store: Store, scope: str
    ) -> None:
        dead(store)
        limit(store, scope)
        hook = start(store, only(tick(store)), SOON)
        failed = must(store.ledger.settle(hook, FAILED, now=SOON))
        assert (failed.state, live(store)) == (State.RETRYING, 0)
        occupy(store)
        assert of_hooks(tick(store, failed.due_at)) == []
        assert recorded(store, hook).attempts == 1

    def test_o03_the_end_of_a_lost_lease_frees_the_place_for_its_hook(self, store: Store) -> None:
        running_ = running(store)
        limit(store, "user:ada")
        assert store.limits.take(running_, "send", SOON + LEASE, SOON) is None
        late = SOON + LEASE
        found = [*tick(store, late), *tick(store, late)]
        assert recorded(store, running_).reason is Reason.LOST
        hook = only(of_hooks(found))
        assert start(store, hook, late).attempts == 1

    def test_o03_a_mass_that_dies_is_told_two_at_a_time_and_each_once(self, store: Store) -> None:
        for number in range(6):
            put(store, replace(TOLD, overlap=ALLOW.overlap), key=f"k{number}")
        for one in so_many(drain(store, SOON), 6):
            store.ledger.settle(start(store, one, SOON), FAILED, now=SOON)
        limit(store, OWN, parallel=2)
        told = list[str]()
        for _ in range(3):
            for one in so_many(tick(store), 2):
                begun = start(store, one, SOON)
                told.append(must(begun.death).occurrence)
                settle(store, begun)
        assert (tick(store), len({*told})) == ([], 6)
        assert verify(store, NOON - SECOND, SOON, now=SOON).found == {}

    @covering
    def test_o03_a_hook_that_is_taken_away_while_it_waits_gives_its_place_back(
        self, store: Store, scope: str
    ) -> None:
        dead(store)
        hook = only(store.ledger.claim_waiting(SOON))
        store.schedules.put(replace(current(store), policies=Policies()), now=SOON)
        limit(store, scope)
        store.ledger.begin(hook, now=SOON)
        assert recorded(store, hook).reason is Reason.SUPERSEDED
        assert live(store) == 0

    def test_o03_a_limit_that_is_lifted_lets_the_hook_run(self, store: Store) -> None:
        dead(store)
        limit(store, OWN)
        occupy(store)
        assert tick(store) == []
        store.limits.lift(OWN, now=SOON)
        assert start(store, only(tick(store)), SOON).death

    def test_o03_another_hook_that_the_schedule_names_by_now_takes_its_own_place(
        self, store: Store
    ) -> None:
        dead(store)
        limit(store, OWN)
        occupy(store)
        shouted = replace(TOLD, on_failure="shout")
        store.schedules.put(replace(current(store), policies=shouted), now=SOON)
        assert start(store, only(tick(store)), SOON).death
        assert live(store) == 1

    def test_o03_a_retry_that_waits_is_not_dead_and_tells_nothing(self, store: Store) -> None:
        held = running(store, replace(AT_LEAST_ONCE, on_failure="tell"))
        limit(store, OF_SCHEDULE)
        failed = must(store.ledger.settle(held, FAILED, now=SOON))
        occupy(store, "send")
        assert tick(store, failed.due_at) == []
        assert (recorded(store, held).state, hooks(store)) == (State.RETRYING, [])
