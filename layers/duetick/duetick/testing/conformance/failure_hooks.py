"""J-13, A-03: a failure hook is recorded with the death that it tells of, once, and runs alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from duetick.core.explain import explain
from duetick.core.purge import purge
from duetick.core.recovery import recover
from duetick.core.store import Store
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED, Outcome, reject
from duetick.domain.identity import LONGEST_ORIGIN, is_failure_hook
from duetick.domain.occurrence import Death
from duetick.domain.operating import Operator
from duetick.domain.pausing import pause
from duetick.domain.policies import AfterCompletion, Delivery, Overlap, Policies, Retry
from duetick.domain.recovering import Recovery
from duetick.domain.schedule import NewOccurrence, Occurrence, Record
from duetick.domain.states import Reason, State
from duetick.testing.conformance.restoring import AFTER, BACKUP, refuse, restore
from duetick.testing.conformance.samples import (
    BAD,
    DAILY,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    hostile,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    begun,
    drain,
    must,
    only,
    recorded,
    refused,
    start,
)

TOLD = Policies(on_failure="tell")
BY = Operator("op", "a test")
LOST_AT = SOON + 2 * MINUTE


def put(
    store: Store, policies: Policies = TOLD, *, key: str = "digest", cron: str = DAILY
) -> Record:
    """Put a schedule that names a failure hook."""
    return store.schedules.put(schedule(key, cron=cron, policies=policies), now=NOON - SECOND)


def current(store: Store) -> Record:
    """Return the schedule as it is now."""
    return must(store.schedules.get("ada", "digest"))


def hooks(store: Store, key: str | None = "digest") -> list[Occurrence]:
    """Return the failure hooks, the newest first."""
    found = store.ledger.find("ada", key, limit=1_000)
    return [one for one in found if is_failure_hook(one.origin)]


def running(store: Store, policies: Policies = TOLD) -> Occurrence:
    """Return the occurrence of noon, begun."""
    put(store, policies)
    return start(store, only(drain(store, SOON)), SOON)


def dead(store: Store, policies: Policies = TOLD, outcome: Outcome = FAILED) -> Occurrence:
    """Return the occurrence of noon after it has failed for good."""
    found = must(store.ledger.settle(running(store, policies), outcome, now=SOON))
    assert found.state is State.DEAD
    return found


def waiting(store: Store, now: int = SOON) -> Occurrence:
    """Lease the only occurrence that waits."""
    return only(store.ledger.claim_waiting(now))


def make_request(store: Store, origin: str) -> NewOccurrence:
    """Return an occurrence that somebody requests of the schedule."""
    made = current(store)
    return NewOccurrence(
        *("ada", "digest", DAILY, None, NOON),
        origin=origin,
        due_at=NOON,
        flow="reminders",
        redefined_at=made.redefined_at,
        policies=made.policies,
    )


def fails(store: Store) -> None:
    """Let the occurrence of noon fail for good."""
    dead(store)


def is_rejected(store: Store) -> None:
    """Let the occurrence of noon be rejected."""
    dead(store, outcome=reject("no such action"))


def never_settles(store: Store) -> None:
    """Begin the occurrence of noon, and let its lease end."""
    running(store)
    store.ledger.claim_waiting(LOST_AT)


def never_begins(store: Store) -> None:
    """Claim the occurrence of noon, and let its time to begin pass."""
    put(store, replace(TOLD, longest_lateness=1))
    drain(store, SOON)
    store.ledger.claim_waiting(LOST_AT)


def is_released_too_late(store: Store) -> None:
    """Give the lease of noon back after its time to begin."""
    put(store, replace(TOLD, longest_lateness=1))
    store.ledger.release(only(drain(store, SOON)), now=SOON + SECOND)


def is_overtaken(store: Store) -> None:
    """Let a run take the place of the occurrence of noon, after the end of its lease."""
    running(store)
    start(store, make_request(store, "run:1"), LOST_AT)


def is_poisoned(store: Store) -> None:
    """Let a tick find that the row of noon is unreadable."""
    put(store)
    store.index.upsert(replace(must(store.index.get("ada", "digest")), cron=BAD))
    drain(store, SOON)


class FailureHookConformance(StoreSuite):
    """The write that makes an occurrence dead records its hook, and the hook is an occurrence."""

    @pytest.mark.parametrize(
        ("die", "reason", "attempts"),
        [
            (fails, Reason.FAILED, 1),
            (is_rejected, Reason.REJECTED, 1),
            (never_settles, Reason.LOST, 1),
            (never_begins, Reason.LOST, 0),
            (is_released_too_late, Reason.LOST, 0),
            (is_overtaken, Reason.LOST, 1),
            (is_poisoned, Reason.POISONED, 0),
        ],
    )
    def test_j13_each_way_to_die_has_its_hook(
        self, store: Store, die: Callable[[Store], None], reason: Reason, attempts: int
    ) -> None:
        die(store)
        of_noon = must(store.ledger.get("ada", "digest", NOON, "schedule"))
        one, death = only(hooks(store)), must(only(hooks(store)).death)
        assert (of_noon.state, of_noon.reason) == (State.DEAD, reason)
        assert one.origin == f"failure:schedule:{of_noon.fence}"
        assert (one.nominal_at, one.flow, one.due_at) == (NOON, "reminders", of_noon.updated_at)
        assert one.state in (State.SCHEDULED, State.QUEUED)  # the tick that finds a loss leases it
        assert (death.occurrence, death.origin) == (of_noon.id, "schedule")
        assert (death.reason, death.attempts, death.at) == (reason, attempts, of_noon.updated_at)
        assert (death.error, death.told) == (of_noon.error, of_noon.told)

    def test_j13_a_death_that_is_not_written_has_no_hook(self, store: Store) -> None:
        self.needs(Capability.FAILING_WRITES)
        held = running(store)
        with self.failing_writes(store) as error, pytest.raises(error):
            store.ledger.settle(held, FAILED, now=SOON)
        assert (recorded(store, held).state, hooks(store)) == (State.PROCESSING, [])
        store.ledger.settle(held, FAILED, now=SOON)
        assert only(hooks(store)).death

    def test_j13_a_repeat_tells_nothing_twice(self, store: Store) -> None:
        held = running(store)
        for _ in range(3):
            store.ledger.settle(held, FAILED, now=SOON)
        store.ledger.claim_waiting(LOST_AT)
        assert len(hooks(store)) == 1

    @hostile
    def test_j11_what_a_hook_is_told_comes_back_whole_and_short(
        self, store: Store, name: str
    ) -> None:
        outcome = Outcome(State.FAILED, Reason.FAILED, f"{name} " * 200, told=name)
        held = dead(store, outcome=outcome)
        death = must(only(hooks(store)).death)
        assert death == Death(
            *(held.id, "schedule", Reason.FAILED, 1, SOON, must(outcome.error)[:200], name)
        )

    def test_t04_a_failure_that_is_tried_again_has_none_until_it_is_spent(
        self, store: Store
    ) -> None:
        policies = replace(TOLD, delivery=Delivery.AT_LEAST_ONCE, retry=Retry(attempts=2))
        held = must(store.ledger.settle(running(store, policies), FAILED, now=SOON))
        assert (held.state, hooks(store)) == (State.RETRYING, [])
        again = start(store, waiting(store, held.due_at), held.due_at)
        store.ledger.settle(again, FAILED, now=held.due_at)
        assert must(only(hooks(store)).death).attempts == 2

    @pytest.mark.parametrize("end", [SUCCEEDED, Outcome(State.CANCELLED, Reason.DISABLED)])
    def test_a03_what_ends_otherwise_has_none(self, store: Store, end: Outcome) -> None:
        store.ledger.settle(running(store), end, now=SOON)
        assert hooks(store) == []

    def test_a03_a_time_that_is_missed_is_no_failure(self, store: Store) -> None:
        put(store, TOLD, cron=EACH_MINUTE)
        drain(store, NOON + HOUR)
        assert hooks(store) == []

    def test_a03_without_the_policy_there_is_none(self, store: Store) -> None:
        dead(store, Policies())
        assert hooks(store) == []

    def test_m05_a_row_without_a_record_has_none(self, store: Store) -> None:
        store.index.upsert(row(policies=TOLD))
        held = start(store, only(drain(store, SOON)), SOON)
        store.ledger.settle(held, FAILED, now=SOON)
        store.index.upsert(row("bad", cron=BAD, policies=TOLD))
        drain(store, SOON)
        assert hooks(store, None) == []

    @pytest.mark.parametrize(
        ("origin", "count"),
        [("run:1", 1), (f"run:{'r' * 250}", 1), ("call:1", 1), ("backfill:1", 0)],
    )
    def test_a03_runs_and_calls_have_one_and_backfills_none(
        self, store: Store, origin: str, count: int
    ) -> None:
        put(store)
        held = start(store, make_request(store, origin), SOON)
        store.ledger.settle(held, FAILED, now=SOON)
        assert [must(one.death).origin for one in hooks(store)] == [origin] * count
        assert all(len(one.origin) < LONGEST_ORIGIN for one in hooks(store))

    def test_a03_what_the_ledger_has_is_not_poisoned_again(self, store: Store) -> None:
        held = running(store)
        store.ledger.settle(held, SUCCEEDED, now=SOON)
        spoiled = replace(must(store.index.get("ada", "digest")), cron=BAD, next_fire_at=NOON)
        store.index.upsert(spoiled)
        drain(store, SOON)
        assert (recorded(store, held).state, hooks(store)) == (State.SUCCEEDED, [])


class HookRunConformance(StoreSuite):
    """A hook is delivered at least once, beside its schedule, and dies in silence."""

    def test_t04_a_hook_is_leased_begun_and_settled_once(self, store: Store) -> None:
        dead(store)
        leased = waiting(store)
        assert (leased.origin, leased.fence) == (only(hooks(store)).origin, 1)
        held = start(store, leased, SOON)
        assert held.death == leased.death
        assert must(store.ledger.settle(held, SUCCEEDED, now=SOON)).state is State.SUCCEEDED
        assert list(store.ledger.claim_waiting(SOON + DAY)) == []
        assert refused(store.ledger.begin(leased, now=SOON)).verdict == "duplicate"

    @pytest.mark.parametrize("policies", [TOLD, replace(TOLD, timeout=900, priority=7)])
    def test_t04_it_is_tried_five_times_and_then_dies_in_silence(
        self, store: Store, policies: Policies
    ) -> None:
        dead(store, policies)
        now, attempts = SOON, 0
        while leased := store.ledger.claim_waiting(now):
            held = start(store, only(leased), now)
            assert (held.policies.timeout, held.priority) == (25, policies.priority)
            now, attempts = must(store.ledger.settle(held, FAILED, now=now)).due_at, attempts + 1
        one = only(hooks(store))
        assert (attempts, one.state, one.reason) == (5, State.DEAD, Reason.FAILED)

    def test_t03_a_lost_hook_is_tried_again(self, store: Store) -> None:
        dead(store)
        start(store, waiting(store), SOON)
        again = waiting(store, LOST_AT)
        assert (again.attempts, again.fence) == (1, 2)

    def test_t03_a_hook_may_begin_within_a_day(self, store: Store) -> None:
        dead(store)
        waiting(store)
        assert waiting(store, SOON + DAY).fence == 2
        assert list(store.ledger.claim_waiting(SOON + DAY + HOUR)) == []
        assert only(hooks(store)).reason is Reason.LOST

    @pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.WAIT])
    def test_d08_it_neither_takes_the_place_nor_waits_for_it(
        self, store: Store, overlap: Overlap
    ) -> None:
        policies = replace(TOLD, overlap=overlap)
        put(store, policies, cron=EACH_MINUTE)
        first = start(store, only(drain(store, SOON)), SOON)
        store.ledger.settle(first, FAILED, now=SOON)
        hook = start(store, waiting(store), SOON)
        then = SOON + MINUTE - 1  # the first hook has its lease
        own = start(store, only(drain(store, then)), then)
        store.ledger.settle(own, FAILED, now=then)
        other = start(store, waiting(store, then), then)
        last = start(store, only(drain(store, then + MINUTE)), then + MINUTE)
        beside = [must(store.ledger.get(*one.identity)).state for one in (other, last)]
        assert beside == [State.PROCESSING] * 2
        assert hook.nominal_at == NOON

    def test_l01_it_uses_up_no_run_and_is_no_last_run(self, store: Store) -> None:
        dead(store, replace(TOLD, max_runs=5))
        before = current(store)
        start(store, waiting(store, SOON + HOUR), SOON + HOUR)
        assert (current(store).runs, current(store).last_run_at) == (1, before.last_run_at)

    @pytest.mark.parametrize("after", ["keep", "delete"])
    def test_l01_a_schedule_that_is_done_tells_of_its_last_death(
        self, store: Store, after: AfterCompletion
    ) -> None:
        dead(store, replace(TOLD, max_runs=1, after_completion=after))
        assert current(store).done_at is not None
        assert not store.schedules.purge("ada", "digest", now=SOON)
        held = start(store, waiting(store), SOON)
        store.ledger.settle(held, SUCCEEDED, now=SOON)
        assert store.schedules.purge("ada", "digest", now=SOON + DAY) == (after == "delete")

    @pytest.mark.parametrize("until", [None, NOON + DAY])
    def test_m02_a_pause_of_its_schedule_holds_it_not(
        self, store: Store, until: int | None
    ) -> None:
        dead(store)
        store.schedules.put(pause(current(store), "", until, SOON), now=SOON)
        held = start(store, waiting(store), SOON)
        retried = must(store.ledger.settle(held, FAILED, now=SOON))
        assert start(store, waiting(store, retried.due_at), retried.due_at).attempts == 2

    def test_m02_a_schedule_that_is_disabled_tells(self, store: Store) -> None:
        dead(store)
        store.schedules.put(replace(current(store), enabled=False), now=SOON)
        assert start(store, waiting(store), SOON).attempts == 1

    def test_m07_a_schedule_that_is_deleted_tells_nobody(self, store: Store) -> None:
        dead(store)
        store.schedules.delete("ada", "digest", now=SOON)
        answer = refused(store.ledger.begin(waiting(store), now=SOON))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.SCHEDULE_DELETED)

    def test_m07_nor_does_one_that_is_made_anew_under_its_name(self, store: Store) -> None:
        dead(store)
        store.schedules.delete("ada", "digest", now=SOON)
        store.schedules.put(schedule(policies=TOLD), now=SOON + SECOND)
        answer = refused(store.ledger.begin(waiting(store, SOON + SECOND), now=SOON + SECOND))
        assert answer.reason is Reason.SCHEDULE_DELETED

    def test_t06_a_late_edit_takes_the_hook_away_or_names_another(self, store: Store) -> None:
        dead(store)
        before, leased = current(store), waiting(store)
        other = replace(before, policies=Policies(on_failure="page"))
        store.schedules.put(other, now=SOON)
        held = begun(store.ledger.begin(leased, now=SOON))
        assert must(held.schedule).policies.on_failure == "page"
        again = must(store.ledger.settle(held.occurrence, FAILED, now=SOON))
        store.schedules.put(replace(before, policies=Policies()), now=again.due_at)
        answer = refused(store.ledger.begin(waiting(store, again.due_at), now=again.due_at))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.SUPERSEDED)

    def test_t06_a_hook_counts_from_the_next_begin_on(self, store: Store) -> None:
        held = running(store, Policies())
        store.schedules.put(replace(current(store), policies=TOLD), now=SOON)
        store.ledger.settle(held, FAILED, now=SOON)
        assert hooks(store) == []

    @pytest.mark.parametrize("scope", ["user:ada", "flow:reminders", "all"])
    def test_o02_a_pause_of_a_group_holds_it(self, store: Store, scope: str) -> None:
        dead(store)
        leased = waiting(store)
        store.pauses.pause(scope, until=SOON + HOUR, now=SOON)
        store.ledger.begin(leased, now=SOON)
        assert recorded(store, leased).state is State.RETRYING
        pauses = store.pauses.announce(SOON + MINUTE, SOON + MINUTE)
        assert list(store.ledger.claim_waiting(SOON + 2 * MINUTE, pauses=pauses)) == []
        assert start(store, waiting(store, SOON + DAY), SOON + DAY).attempts == 1

    def test_j06_its_failures_pause_no_schedule(self, store: Store) -> None:
        policies = replace(TOLD, pause_after=2)
        put(store, policies, cron=EACH_MINUTE)
        for minute in range(2):
            now = NOON + minute * MINUTE + SECOND
            own = only(drain(store, now))
            store.ledger.settle(start(store, own, now), FAILED, now=now)
            assert current(store).enabled == (minute == 0)
            hook = start(store, waiting(store, now), now)
            store.ledger.settle(hook, replace(FAILED, final=True), now=now)
            assert current(store).enabled == (minute == 0)
        assert [one.state for one in hooks(store)] == [State.DEAD] * 2


class HookAccountConformance(StoreSuite):
    """Hooks stand in the history beside the schedule's own, and count as none of them."""

    def test_a03_verify_counts_them_nowhere(self, store: Store) -> None:
        put(store, TOLD, cron=EACH_MINUTE)
        for minute in range(3):
            now = NOON + minute * MINUTE + SECOND
            store.ledger.settle(start(store, only(drain(store, now)), now), FAILED, now=now)
            store.ledger.settle(start(store, waiting(store, now), now), SUCCEEDED, now=now)
        now = NOON + 2 * MINUTE + SECOND
        found = verify(store, NOON - SECOND, now, now=now)
        assert (found.found, len(hooks(store))) == ({}, 3)

    def test_a02_explain_shows_the_hook_besides(self, store: Store) -> None:
        of_noon = dead(store)
        found = explain(store, "ada", "digest", NOON, SOON)
        assert (found.verdict, must(found.occurrence).id) == ("failed", of_noon.id)
        assert [one.origin for one in found.besides] == [only(hooks(store)).origin]

    def test_j07_each_death_is_told_once(self, store: Store) -> None:
        first = dead(store)
        store.ledger.settle(start(store, waiting(store), SOON), SUCCEEDED, now=SOON)
        store.ledger.retry(first, BY, now=SOON + MINUTE)
        again = start(store, waiting(store, SOON + MINUTE + 1), SOON + MINUTE + 1)
        store.ledger.settle(again, FAILED, now=SOON + MINUTE + 2)
        newest, oldest = sorted(hooks(store), key=lambda one: -one.created_at)
        assert must(newest.death).occurrence == must(oldest.death).occurrence == first.id
        assert [newest.state, oldest.state] == [State.SCHEDULED, State.SUCCEEDED]
        assert [must(one.death).attempts for one in (oldest, newest)] == [1, 2]

    def test_j07_operators_cancel_retry_and_delete_a_hook(self, store: Store) -> None:
        dead(store)
        hook = waiting(store)
        assert store.ledger.cancel(hook, BY, now=SOON).occurrence.reason is Reason.OPERATOR
        bare = store.ledger.discard(hook, BY, now=SOON).occurrence
        assert (bare.state, bare.death) == (State.DELETED, None)
        assert recorded(store, hook).death is None

    @pytest.mark.parametrize("paused", [False, True])
    def test_j07_a_dead_hook_that_is_retried_begins_once_more(
        self, store: Store, paused: bool
    ) -> None:
        dead(store)
        held = start(store, waiting(store), SOON)
        gone = must(store.ledger.settle(held, replace(FAILED, final=True), now=SOON))
        if paused:
            store.schedules.put(pause(current(store), "", None, SOON), now=SOON)
        store.ledger.retry(gone, BY, now=SOON)
        again = start(store, waiting(store, SOON + 1), SOON + 1)
        assert (again.attempts, again.death) == (2, gone.death)

    def test_j10_hooks_are_none_of_the_newest_twenty_and_stay_as_long_as_the_dead(
        self, store: Store
    ) -> None:
        self.needs(Capability.FORGETS)
        put(store, replace(TOLD, overlap=Overlap.ALLOW), cron=EACH_MINUTE)
        for minute in range(15):
            now = NOON + minute * MINUTE + SECOND
            store.ledger.settle(start(store, only(drain(store, now)), now), FAILED, now=now)
            store.ledger.settle(start(store, waiting(store, now), now), SUCCEEDED, now=now)
        purge(store, NOON + 80 * DAY)
        assert len(hooks(store)) == 15
        purge(store, NOON + 91 * DAY)
        left = store.ledger.find("ada", "digest", limit=100)
        assert [one.state for one in left if one.origin == "schedule"] == [State.DEAD] * 15
        assert hooks(store) == []

    def test_j10_erase_leaves_none(self, store: Store) -> None:
        dead(store)
        store.erase("ada")
        assert list(store.ledger.find("ada")) == []
        assert list(store.ledger.claim_waiting(SOON + DAY)) == []

    def test_j04_a_mass_death_is_told_once_each_in_bounded_steps(self, store: Store) -> None:
        policies = replace(TOLD, overlap=Overlap.ALLOW)
        put(store, policies, key="digest")
        for number in range(30):
            start(store, make_request(store, f"run:{number}"), SOON)
        for number in range(30):
            put(store, policies, key=f"k{number:02}")
        for one in drain(store, SOON):
            start(store, one, SOON)
        steps: list[Sequence[Occurrence]] = []
        while taken := store.ledger.claim_waiting(LOST_AT, 20):
            steps.append(taken)
            for one in taken:
                store.ledger.settle(start(store, one, LOST_AT), SUCCEEDED, now=LOST_AT)
        told = [must(one.death).occurrence for one in hooks(store, None)]
        assert (len(told), len({*told})) == (61, 61)
        assert max(map(len, steps)) <= 20
        assert {one.state for one in hooks(store, None)} == {State.SUCCEEDED}

    @pytest.mark.parametrize(("how", "told"), [("skip", 0), ("latest", 0), ("fire", 1)])
    def test_j10_a_recovery_tells_of_what_it_gives_up_only_if_all_may_fire(
        self, store: Store, how: Recovery, told: int
    ) -> None:
        put(store, replace(TOLD, longest_lateness=60), cron=DAILY)
        witness = restore(store, BACKUP)
        held = start(store, make_request(store, "run:1"), BACKUP)
        refuse(store, witness)
        recover(store, witness, how, now=AFTER, dry_run=False)
        lost = store.ledger.claim_waiting(AFTER + MINUTE)
        assert recorded(store, held).reason is Reason.LOST
        assert len([one for one in lost if is_failure_hook(one.origin)]) == told
