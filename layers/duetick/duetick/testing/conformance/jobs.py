"""K-01, K-02: a job is one occurrence without a schedule, with the promises of any occurrence."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetick.core.overview import overview
from duetick.core.purge import purge
from duetick.core.store import Store
from duetick.core.store.jobs import Enqueued
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED, reject_gone
from duetick.domain.errors import InvalidSchedule, OccurrenceConflict, QuotaReached
from duetick.domain.identity import InvalidId
from duetick.domain.jobs import FURTHEST_MS, KEPT_DEAD_MS, KEY_KEPT_MS, Job
from duetick.domain.operating import Operator
from duetick.domain.policies import Backoff, Delivery, Policies, Retry
from duetick.domain.retention import Days, Retention
from duetick.domain.schedule import Json, Occurrence, Principal, Schedule
from duetick.domain.states import Reason, State
from duetick.testing.conformance.concurrency import race
from duetick.testing.conformance.samples import (
    DAY,
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
    drain,
    must,
    only,
    recorded,
    refused,
    start,
)

if TYPE_CHECKING:
    from duetick.ports import Listed

BY = Operator("op", "a test")
FEW_DAYS = Retention(Days(3, 7))
TWICE = Policies(
    delivery=Delivery.AT_LEAST_ONCE, retry=Retry(Backoff.FIXED, attempts=2, first=10, longest=10)
)


def work(
    *,
    user: str = "ada",
    flow: str = "reminders",
    policies: Policies | None = None,
    given: Json = None,
) -> Schedule:
    """Return the definition of a job."""
    return Schedule(
        user_id=user,
        key="job",
        cron="@daily",
        flow=flow,
        action="send",
        input=given,
        policies=policies or Policies(),
    )


def enqueue(
    store: Store,
    wanted: Schedule | None = None,
    *,
    now: int = NOON,
    due_at: int | None = None,
    key: str | None = None,
    at_most: int | None = None,
) -> Enqueued:
    """Enqueue a job."""
    asked = wanted or work()
    return store.jobs.enqueue(asked, now=now, due_at=due_at, key=key, at_most=at_most)


def job(store: Store, wanted: Schedule | None = None, *, due_at: int | None = None) -> Job:
    """Return a new job."""
    return enqueue(store, wanted, due_at=due_at).job


def current(store: Store, one: Job) -> Job:
    """Return the job as it is now."""
    return must(store.jobs.get(one.record.user_id, one.id))


def lease(store: Store, now: int = SOON, limit: int = 100) -> list[Occurrence]:
    """Lease the occurrences that wait, as a tick does."""
    pauses, limits = store.pauses.announce(now, now), store.limits.current(now)
    return [*store.ledger.claim_waiting(now, limit, pauses=pauses, limits=limits)]


def counted(store: Store, now: int) -> tuple[Json, Json]:
    """Return the numbers that an overview counts as due, and as late."""
    shown: dict[str, Any] = overview(store, now)
    return shown["due"]["count"], shown["late"]["count"]


def with_room_for_one(store: Store, now: int) -> Job | None:
    """Return a new job if no other one is pending, else None."""
    try:
        return enqueue(store, at_most=1, now=now).job
    except QuotaReached:
        return None


def running(store: Store, wanted: Schedule | None = None) -> Occurrence:
    """Return the occurrence of a new job, begun."""
    job(store, wanted)
    return start(store, only(lease(store)), SOON)


class JobConformance(StoreSuite):
    """The life of a job, from its put to its purge."""

    def test_k01_a_job_comes_back_whole(self, store: Store) -> None:
        asked = replace(
            work(policies=replace(TWICE, priority=3, timeout=9), given={"n": [1, None, "ß"]}),
            principal=Principal("ada", "acme", {"role": "owner"}),
            labels={"team": "a"},
        )
        made = job(store, asked, due_at=NOON + HOUR)
        assert current(store, made) == made
        record, one = made
        assert (record.flow, record.action, record.input) == ("reminders", "send", asked.input)
        assert (record.principal, record.labels) == (asked.principal, asked.labels)
        assert one.origin == one.key == f"job:{one.id.removeprefix('occ_')}"
        assert (one.state, one.nominal_at, one.due_at) == (State.SCHEDULED, *[NOON + HOUR] * 2)
        assert (one.priority, one.policies.timeout, one.policies.retry) == (3, 9, TWICE.retry)
        assert one.policies.delivery is Delivery.AT_LEAST_ONCE
        assert made.is_pending

    def test_k01_a_large_input_comes_back_whole(self, store: Store) -> None:
        made = job(store, work(given={"text": "x" * 60_000}))
        assert current(store, made).record.input == made.record.input
        held = start(store, only(lease(store)), SOON)
        assert must(store.ledger.get(*held.identity)).state is State.PROCESSING

    @hostile
    def test_k01_a_job_belongs_to_any_user(self, store: Store, name: str) -> None:
        made = job(store, work(user=name, given=name))
        assert current(store, made) == made
        assert store.jobs.get("bob", made.id) is None
        assert store.jobs.list(name).jobs == (made,)

    def test_k01_a_job_is_handed_out_once_and_not_before_its_time(self, store: Store) -> None:
        made = job(store, due_at=NOON + HOUR)
        assert lease(store, NOON + HOUR - 1) == []
        held = only(lease(store, NOON + HOUR))
        assert (held.identity, held.state, held.fence) == (
            *(made.occurrence.identity, State.QUEUED),
            1,
        )
        assert lease(store, NOON + HOUR) == []
        assert drain(store, NOON + DAY) == []

    def test_k01_a_begin_has_what_is_to_be_run(self, store: Store) -> None:
        made = job(store, work(given={"order": 7}))
        answer = store.ledger.begin(only(lease(store)), now=SOON)
        assert not hasattr(answer, "verdict"), answer
        found = must(getattr(answer, "schedule", None))
        assert (found.action, found.input) == ("send", {"order": 7})
        assert recorded(store, made.occurrence).attempts == 1

    def test_k01_a_job_that_has_succeeded_has_ended(self, store: Store) -> None:
        held = running(store)
        ended = must(store.ledger.settle(held, SUCCEEDED, now=SOON + SECOND))
        found = must(store.jobs.get("ada", held.id))
        assert (ended.state, ended.reason) == (State.SUCCEEDED, Reason.FIRED)
        assert (found.occurrence, found.record.done_at) == (ended, SOON + SECOND)
        assert not found.is_pending
        assert lease(store, NOON + DAY) == []

    def test_t07_a_stale_fence_begins_and_settles_nothing(self, store: Store) -> None:
        job(store)
        first = only(lease(store))
        later = must(first.lease_until)
        second = only(lease(store, later))
        assert refused(store.ledger.begin(first, now=later)).verdict == "stale"
        held = start(store, second, later)
        assert store.ledger.settle(first, SUCCEEDED, now=later) is None
        assert must(store.ledger.settle(held, SUCCEEDED, now=later)).fence == 2

    def test_j06_a_job_is_retried_until_its_attempts_are_spent(self, store: Store) -> None:
        held = running(store, work(policies=TWICE))
        waiting = must(store.ledger.settle(held, FAILED, now=SOON))
        assert (waiting.state, waiting.due_at) == (State.RETRYING, SOON + 10 * SECOND)
        assert waiting.identity == held.identity
        assert must(store.jobs.get("ada", held.id)).is_pending
        again = start(store, only(lease(store, waiting.due_at)), waiting.due_at)
        dead = must(store.ledger.settle(again, FAILED, now=waiting.due_at))
        found = must(store.jobs.get("ada", held.id))
        assert (dead.state, dead.reason, dead.attempts) == (State.DEAD, Reason.FAILED, 2)
        assert (found.record.done_at, found.is_pending) == (waiting.due_at, False)

    def test_t03_a_job_that_never_settles_is_lost(self, store: Store) -> None:
        held = running(store)
        lost: list[Occurrence] = []
        over = must(held.lease_until)
        assert list(store.ledger.claim_waiting(over, on_lost=lost.append)) == []
        assert (only(lost).state, only(lost).reason) == (State.DEAD, Reason.LOST)
        found = must(store.jobs.get("ada", held.id))
        assert (found.record.done_at, found.record.purge_at) == (over, over + KEPT_DEAD_MS)

    def test_t10_a_job_that_waited_for_a_tick_has_its_time_to_begin(self, store: Store) -> None:
        """However long no tick came, a delivery that fails does not make it lost at once."""
        job(store)
        held = only(lease(store, NOON + DAY))
        assert store.ledger.release(held, now=NOON + DAY)
        again = start(store, only(lease(store, NOON + DAY + SECOND)), NOON + DAY + SECOND)
        assert again.identity == held.identity

    def test_t07_a_release_gives_a_job_back(self, store: Store) -> None:
        job(store)
        assert store.ledger.release(only(lease(store)), now=SOON)
        assert only(lease(store, SOON + SECOND)).fence > 1

    def test_j13_one_that_is_never_begun_in_time_is_lost_and_has_ended(self, store: Store) -> None:
        made = job(store)
        held = only(lease(store))
        store.ledger.release(held, now=SOON + 2 * HOUR)
        found = current(store, made)
        assert (found.occurrence.reason, found.is_pending) == (Reason.LOST, False)
        assert found.record.done_at == SOON + 2 * HOUR

    def test_d06_a_job_whose_flow_is_gone_is_rejected(self, store: Store) -> None:
        made = job(store)
        store.ledger.reject(only(lease(store)), reject_gone("no such flow"), now=SOON)
        found = current(store, made)
        assert (found.occurrence.state, found.occurrence.reason) == (State.DEAD, Reason.REJECTED)
        assert not found.is_pending

    def test_j13_its_death_has_a_hook(self, store: Store) -> None:
        held = running(store, work(policies=Policies(on_failure="tell")))
        store.ledger.settle(held, FAILED, now=SOON)
        hook = only(lease(store, SOON + SECOND))
        assert hook.origin == f"failure:{held.origin}:1"
        assert must(hook.death).occurrence == held.id
        answer = store.ledger.begin(hook, now=SOON + SECOND)
        assert must(getattr(answer, "schedule", None)).policies.on_failure == "tell"

    def test_j04_among_those_that_wait_priority_comes_first(self, store: Store) -> None:
        usual = job(store, due_at=NOON - MINUTE)
        urgent = job(store, work(policies=Policies(priority=9)))
        found = lease(store, limit=1)
        assert [one.id for one in found] == [urgent.id]
        assert [one.id for one in lease(store, limit=1)] == [usual.id]

    def test_t14_a_share_leaves_places_for_others(self, store: Store) -> None:
        for _ in range(6):
            job(store)
        job(store, work(user="bob"))
        found = [*store.ledger.claim_waiting(SOON, 4, share=2)]
        assert sum(one.user_id == "ada" for one in found) == 2
        found += store.ledger.claim_waiting(SOON, 4, share=2, leave_out=["ada"])
        assert sum(one.user_id == "bob" for one in found) == 1

    def test_t06_a_job_is_leased_ahead_and_due_at_its_time(self, store: Store) -> None:
        job(store, due_at=NOON + MINUTE)
        held = only(store.ledger.claim_waiting(NOON, ahead=2 * MINUTE))
        assert held.due_at == NOON + MINUTE


class JobTimeConformance(StoreSuite):
    """A job's due time, and the jobs that a key or a quota keeps from being made."""

    def test_k04_a_time_that_has_passed_is_now(self, store: Store) -> None:
        made = job(store, due_at=NOON - DAY)
        assert made.occurrence.nominal_at == NOON
        assert only(lease(store, NOON)).identity == made.occurrence.identity

    def test_k04_one_further_off_than_a_year_is_refused(self, store: Store) -> None:
        job(store, due_at=NOON + FURTHEST_MS)
        with pytest.raises(InvalidSchedule, match="at: is more than 366 days"):
            job(store, due_at=NOON + FURTHEST_MS + 1)
        assert len(store.jobs.list("ada").jobs) == 1

    def test_k02_the_same_key_makes_nothing_more_within_a_day(self, store: Store) -> None:
        first = enqueue(store, key="order-7")
        again = enqueue(store, work(given="another"), key="order-7", now=NOON + DAY - 1)
        assert (first.made, again.made) == (True, False)
        assert again.job == first.job
        assert store.jobs.list("ada").jobs == (first.job,)

    def test_k02_a_repeat_is_answered_with_the_job_as_it_is(self, store: Store) -> None:
        first = enqueue(store, key="order-7")
        held = start(store, only(lease(store)), SOON)
        store.ledger.settle(held, SUCCEEDED, now=SOON)
        again = enqueue(store, key="order-7", now=SOON + SECOND)
        assert (again.job.id, again.job.occurrence.state) == (first.job.id, State.SUCCEEDED)

    def test_k02_a_key_is_one_users_in_one_flow(self, store: Store) -> None:
        enqueue(store, key="order-7")
        assert enqueue(store, work(user="bob"), key="order-7").made
        assert enqueue(store, work(flow="billing"), key="order-7").made
        assert enqueue(store, key="order-8").made

    def test_k02_after_a_day_a_key_makes_another(self, store: Store) -> None:
        first = enqueue(store, key="order-7")
        second = enqueue(store, key="order-7", now=NOON + KEY_KEPT_MS)
        assert second.made
        assert second.job.id != first.job.id

    def test_k02_of_several_at_once_with_one_key_one_makes_a_job(self, store: Store) -> None:
        found = race(
            [lambda: enqueue(self.another(store), key="order-7") for _ in range(4)],
        )
        assert sum(one.made for one in found) == 1
        assert len({one.job.id for one in found}) == 1
        assert len(store.jobs.list("ada").jobs) == 1

    def test_k01_a_user_has_so_many_pending_jobs_and_no_more(self, store: Store) -> None:
        for _ in range(2):
            enqueue(store, at_most=2, due_at=NOON + HOUR)
        with pytest.raises(QuotaReached, match="may have 2 jobs that have not ended"):
            enqueue(store, at_most=2)
        assert enqueue(store, work(user="bob"), at_most=2).made
        assert len(store.jobs.list("ada").jobs) == 2

    def test_k01_the_end_of_a_job_makes_room(self, store: Store) -> None:
        enqueue(store, at_most=1)
        held = start(store, only(lease(store)), SOON)
        with pytest.raises(QuotaReached):
            enqueue(store, at_most=1)
        store.ledger.settle(held, SUCCEEDED, now=SOON)
        assert enqueue(store, at_most=1, now=SOON).made

    def test_k01_a_job_makes_room_for_those_that_its_own_transaction_makes(
        self, store: Store
    ) -> None:
        enqueue(store, at_most=1)
        held = start(store, only(lease(store)), SOON)
        with store.ledger.settling(held, lambda: SOON) as effects:
            store.jobs.enqueue(work(), at_most=1, effects=effects, within=held, now=SOON)
            with pytest.raises(QuotaReached, match="may have 1 jobs"):
                store.jobs.enqueue(work(), at_most=1, effects=effects, within=held, now=SOON)
        assert sorted(one.is_pending for one in store.jobs.list("ada").jobs) == [False, True]
        assert with_room_for_one(store, SOON) is None
        assert enqueue(store, at_most=2, now=SOON).made

    def test_k01_a_job_that_is_undone_makes_no_room(self, store: Store) -> None:
        enqueue(store, at_most=1)
        held = start(store, only(lease(store)), SOON)

        def undo() -> None:
            with store.ledger.settling(held, lambda: SOON) as effects:
                store.jobs.enqueue(work(), at_most=1, effects=effects, within=held, now=SOON)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            undo()
        assert with_room_for_one(store, SOON) is None
        assert enqueue(store, at_most=2, now=SOON).made

    def test_k01_a_job_makes_no_room_for_those_of_another_user(self, store: Store) -> None:
        enqueue(store, work(user="bob"), at_most=1, due_at=NOON + HOUR)
        enqueue(store, at_most=1)
        held = start(store, only(lease(store)), SOON)
        with store.ledger.settling(held, lambda: SOON) as effects:
            asked = work(user="bob")
            with pytest.raises(QuotaReached):
                store.jobs.enqueue(asked, at_most=1, effects=effects, within=held, now=SOON)
            store.jobs.enqueue(asked, at_most=2, effects=effects, within=held, now=SOON)
        assert enqueue(store, at_most=1, now=SOON).made

    def test_k01_every_way_to_end_makes_room(self, store: Store) -> None:
        enqueue(store, at_most=1)
        start(store, only(lease(store)), SOON)
        store.ledger.claim_waiting(SOON + HOUR)  # lost
        made = with_room_for_one(store, SOON + HOUR)
        store.ledger.cancel(must(made).occurrence, BY, now=SOON + HOUR)
        assert with_room_for_one(store, SOON + HOUR)

    def test_k01_jobs_and_schedules_count_in_no_quota_of_each_other(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON - HOUR, at_most=1)
        assert enqueue(store, at_most=1).made
        with pytest.raises(QuotaReached, match="1 schedules"):
            store.schedules.put(schedule("other"), now=NOON, at_most=1)
        store.schedules.delete("ada", "digest", now=NOON)
        store.schedules.put(schedule("other"), now=NOON, at_most=1)
        assert len(store.jobs.list("ada").jobs) == 1

    def test_k01_of_several_at_once_none_slips_past_the_quota(self, store: Store) -> None:
        def attempt() -> bool:
            try:
                return enqueue(self.another(store), at_most=2, due_at=NOON + HOUR).made
            except QuotaReached:
                return False

        assert sum(race([attempt] * 4)) == 2
        assert len(store.jobs.list("ada").jobs) == 2


class JobKeepingConformance(StoreSuite):
    """Jobs under operators, pauses, limits, purges and erasures."""

    @pytest.mark.parametrize("scope", ["user:ada", "flow:reminders", "all"])
    def test_o02_a_pause_holds_a_job_and_it_follows(self, store: Store, scope: str) -> None:
        job(store)
        store.pauses.pause(scope, now=NOON)
        assert lease(store) == []
        assert lease(store, SOON + 2 * HOUR) == []
        store.pauses.resume(scope, now=SOON + 2 * HOUR)
        later = SOON + 3 * HOUR
        held = only(lease(store, later))
        assert store.ledger.release(held, now=later)  # waiting was no lateness
        again = start(store, only(lease(store, later + SECOND)), later + SECOND)
        assert again.identity == held.identity

    def test_o02_a_pause_of_others_holds_nothing(self, store: Store) -> None:
        made = job(store)
        store.pauses.pause("user:bob", now=NOON)
        assert only(lease(store)).id == made.id

    def test_o02_what_a_pause_holds_keeps_nobody_waiting(self, store: Store) -> None:
        for _ in range(5):
            job(store)
        store.pauses.pause("user:ada", now=NOON)
        job(store, work(user="bob"), due_at=NOON + SECOND)
        found = [one for _ in range(4) for one in lease(store, limit=2)]
        assert [one.user_id for one in found] == ["bob"]

    def test_o02_a_leased_job_is_put_off_by_its_begin(self, store: Store) -> None:
        job(store)
        held = only(lease(store))
        store.pauses.pause("user:ada", now=SOON)
        answer = refused(store.ledger.begin(held, now=SOON))
        assert (answer.verdict, answer.reason) == ("in_progress", Reason.PAUSED)
        store.pauses.resume("user:ada", now=SOON + MINUTE)
        assert recorded(store, held).attempts == 0
        assert only(lease(store, SOON + HOUR)).id == held.id

    @pytest.mark.parametrize("scope", ["user:ada", "flow:reminders", "action:reminders/send"])
    def test_o03_a_limit_holds_jobs_back(self, store: Store, scope: str) -> None:
        job(store)
        job(store)
        store.limits.set(scope, parallel=1, now=NOON)
        held = start(store, only(lease(store)), SOON)
        assert lease(store, SOON + SECOND) == []
        store.ledger.settle(held, SUCCEEDED, now=SOON + 2 * SECOND)
        later = SOON + 6 * SECOND
        assert start(store, only(lease(store, later)), later).id != held.id

    def test_j07_an_overview_counts_the_jobs_that_are_due(self, store: Store) -> None:
        for due_at in (NOON, NOON + MINUTE, NOON + DAY):
            job(store, due_at=due_at)
        shown = [counted(store, NOON + after * SECOND) for after in (0, 60, 150, 210)]
        assert shown == [(1, 0), (2, 0), (2, 1), (2, 2)]
        start(store, only(lease(store, NOON)), NOON)
        assert counted(store, NOON + MINUTE) == (1, 0), "one of them runs"

    @pytest.mark.parametrize("scope", ["user:ada", "flow:reminders", "all"])
    def test_j07_what_a_pause_holds_is_not_counted_as_due(self, store: Store, scope: str) -> None:
        job(store)
        store.pauses.pause(scope, now=NOON)
        assert counted(store, NOON + HOUR) == (0, 0)
        store.pauses.resume(scope, now=NOON + HOUR)
        assert counted(store, NOON + HOUR) == (1, 1)

    @pytest.mark.parametrize("scope", ["user:ada", "action:reminders/send"])
    def test_j07_what_a_limit_holds_is_not_counted_as_due(self, store: Store, scope: str) -> None:
        job(store)
        store.limits.set(scope, parallel=1, now=NOON)
        held = start(store, only(lease(store)), SOON)
        job(store)
        assert counted(store, SOON + SECOND) == (0, 0)
        store.ledger.settle(held, SUCCEEDED, now=SOON + 2 * SECOND)
        assert counted(store, SOON + 3 * SECOND) == (1, 0)

    def test_o03_one_that_is_leased_is_held_back_by_its_begin(self, store: Store) -> None:
        job(store)
        job(store)
        first, second = lease(store)
        store.limits.set("user:ada", parallel=1, now=SOON)
        start(store, first, SOON)
        assert refused(store.ledger.begin(second, now=SOON)).verdict == "in_progress"
        assert must(store.jobs.get("ada", second.id)).is_pending

    def test_o01_a_cancel_ends_a_job_that_waits(self, store: Store) -> None:
        made = job(store, due_at=NOON + HOUR)
        answer = store.ledger.cancel(made.occurrence, BY, now=NOON)
        assert (answer.changed, answer.occurrence.reason) == (True, Reason.OPERATOR)
        assert not current(store, made).is_pending
        assert lease(store, NOON + DAY) == []
        assert not store.ledger.cancel(made.occurrence, BY, now=NOON).changed

    def test_o01_a_cancel_of_one_that_has_ended_is_refused(self, store: Store) -> None:
        held = running(store)
        store.ledger.settle(held, SUCCEEDED, now=SOON)
        with pytest.raises(OccurrenceConflict, match="It is succeeded"):
            store.ledger.cancel(held, BY, now=SOON)

    def test_j07_a_dead_job_is_retried_and_is_pending_again(self, store: Store) -> None:
        held = running(store)
        store.ledger.settle(held, FAILED, now=SOON)
        assert store.ledger.retry(held, BY, now=SOON + MINUTE).changed
        assert must(store.jobs.get("ada", held.id)).is_pending
        again = start(store, only(lease(store, SOON + MINUTE + 1)), SOON + MINUTE + 1)
        store.ledger.settle(again, SUCCEEDED, now=SOON + MINUTE + 1)
        found = must(store.jobs.get("ada", held.id))
        assert (found.occurrence.state, found.record.done_at) == (
            State.SUCCEEDED,
            SOON + MINUTE + 1,
        )

    def test_k01_a_list_has_pages_and_those_that_are_pending(self, store: Store) -> None:
        made = [job(store, due_at=NOON + n * HOUR) for n in range(5)]
        store.ledger.cancel(made[1].occurrence, BY, now=NOON)
        first = store.jobs.list("ada", limit=3)
        second = store.jobs.list("ada", limit=3, cursor=first.cursor)
        ids = sorted(one.id for one in made)
        assert [one.id for one in (*first.jobs, *second.jobs)] == ids
        assert second.cursor is None
        pending = store.jobs.list("ada", ended=False).jobs
        assert [one.id for one in pending] == [one for one in ids if one != made[1].id]
        assert [one.id for one in store.jobs.list("ada", ended=True).jobs] == [made[1].id]
        assert store.jobs.list("bob").jobs == ()

    def test_k01_no_list_of_schedules_has_a_job(self, store: Store) -> None:
        for key in ("a", "job", "job9", "jobs", "z"):
            store.schedules.put(schedule(key), now=NOON - HOUR)
        made = job(store)
        store.ledger.cancel(made.occurrence, BY, now=NOON)
        job(store, due_at=NOON + HOUR)
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = store.schedules.list("ada", limit=2, cursor=cursor, state="all")
            found += [one.key for one in page.schedules]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == ["a", "job", "job9", "jobs", "z"]
        assert store.schedules.list("ada", state="done").schedules == ()
        books: list[Listed] = list(store.shelf.every_book())
        assert sorted(one.key for one in books) == found

    def test_k01_no_schedule_and_no_row_has_the_key_of_a_job(self, store: Store) -> None:
        key = job(store).record.key
        with pytest.raises(InvalidId, match="begins with 'job:'"):
            schedule(key)
        with pytest.raises(InvalidId, match="begins with 'job:'"):
            store.index.upsert(row(key))

    def test_a03_jobs_are_not_verified_and_rebuild_finds_nothing(self, store: Store) -> None:
        held = running(store)
        job(store, due_at=NOON + HOUR)
        store.ledger.settle(held, SUCCEEDED, now=SOON)
        assert store.check(now=NOON + DAY) == []
        assert store.rebuild(now=NOON + DAY) == 0
        assert list(verify(store, NOON - DAY, NOON + DAY, now=NOON + DAY).faults) == []

    def test_l01_a_purge_takes_a_job_when_its_time_is_over(self, store: Store) -> None:
        held = running(store)
        store.ledger.settle(held, SUCCEEDED, now=SOON)
        waiting = job(store, due_at=NOON + 300 * DAY)
        purge(store, SOON + 29 * DAY)
        assert store.jobs.get("ada", held.id)
        purge(store, SOON + 30 * DAY)
        assert store.jobs.get("ada", held.id) is None
        assert store.jobs.list("ada").jobs == (waiting,)
        assert refused(store.ledger.begin(held, now=SOON + 30 * DAY)).verdict != "in_progress"

    def test_l01_a_dead_job_is_kept_for_longer(self, store: Store) -> None:
        held = running(store)
        store.ledger.settle(held, FAILED, now=SOON)
        purge(store, SOON + 89 * DAY)
        assert store.jobs.get("ada", held.id)
        purge(store, SOON + 90 * DAY)
        assert store.jobs.get("ada", held.id) is None

    def test_j10_the_record_of_a_job_leaves_with_its_occurrence(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        fired, died = [
            must(store.ledger.settle(running(store), outcome, now=SOON)).key
            for outcome in (SUCCEEDED, FAILED)
        ]
        left: list[list[bool]] = []
        for after in (3 * DAY - 1, 3 * DAY, 7 * DAY - 1, 7 * DAY):
            purge(store, SOON + after, retention=FEW_DAYS)
            left.append([store.shelf.record("ada", key) is None for key in (fired, died)])
        assert left == [[False, False], [True, False], [True, False], [True, True]]
        assert list(store.ledger.find("ada")) == []

    def test_j10_a_job_is_shown_for_as_long_as_its_occurrence_is_kept(self, store: Store) -> None:
        held = running(store)
        store.ledger.settle(held, SUCCEEDED, now=SOON)
        for after in (30 * DAY, 60 * DAY, 200 * DAY - 1):
            purge(store, SOON + after, retention=Retention(Days(200, 200)))
            assert store.jobs.get("ada", held.id)
        purge(store, SOON + 200 * DAY, retention=Retention(Days(200, 200)))
        assert store.jobs.get("ada", held.id) is None

    def test_j10_a_cancelled_job_is_kept_from_its_end_on_whenever_it_was_due(
        self, store: Store
    ) -> None:
        far = job(store, due_at=NOON + 300 * DAY)
        store.ledger.cancel(far.occurrence, BY, now=SOON)
        purge(store, SOON + 30 * DAY - 1)
        assert store.jobs.get("ada", far.id)
        purge(store, SOON + 30 * DAY)
        assert store.shelf.record("ada", far.record.key) is None

    def test_j10_the_record_of_a_job_stays_while_its_failure_hook_waits(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        held = running(store, work(policies=Policies(on_failure="tell")))
        store.pauses.pause("user:ada", now=NOON)
        store.ledger.settle(held, FAILED, now=SOON)
        later = SOON + 8 * DAY
        purge(store, later, retention=FEW_DAYS)
        store.pauses.resume("user:ada", now=later)
        hook = only(lease(store, later))
        answer = store.ledger.begin(hook, now=later)
        assert must(getattr(answer, "schedule", None)).policies.on_failure == "tell"

    def test_k01_an_erasure_takes_jobs_and_their_keys(self, store: Store) -> None:
        made = enqueue(store, key="order-7", due_at=NOON + HOUR, at_most=1).job
        held = enqueue(store, key="order-8").job
        start(store, only(lease(store)), SOON)
        assert store.erase("ada") == 0
        assert store.jobs.list("ada").jobs == ()
        assert store.ledger.find("ada") == []
        assert lease(store, NOON + DAY) == []
        assert [store.jobs.get("ada", one.id) for one in (made, held)] == [None, None]
        assert enqueue(store, key="order-7", at_most=1).made

    def test_j02_its_history_is_found_by_user_and_by_key(self, store: Store) -> None:
        held = running(store)
        ended = must(store.ledger.settle(held, SUCCEEDED, now=SOON))
        assert list(store.ledger.find("ada", held.key)) == [ended]
        assert list(store.ledger.find("ada")) == [ended]
        assert list(store.ledger.find("ada", state=State.SUCCEEDED)) == [ended]
