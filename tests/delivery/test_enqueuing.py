"""K-03: a job that an action enqueues; within its transaction, if and only if that commits."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from duetick.core.accepting import Quotas
from duetick.core.context import Context
from duetick.core.store import Store
from duetick.domain.errors import ConfigurationError, InvalidSchedule
from duetick.domain.jobs import Job
from duetick.domain.policies import Backoff, Delivery, Policies, Retry
from duetick.domain.schedule import Json, Principal
from duetick.domain.states import State
from duetick.stores.dynamodb import transaction

from tests.delivery.scene import EFFECTIVELY_ONCE, MINUTE, NINE, Scene

TWICE = Policies(
    delivery=Delivery.EFFECTIVELY_ONCE,
    retry=Retry(Backoff.FIXED, attempts=2, first=10, longest=10),
)

Act = Callable[[Json, Context], object]


def jobs(store: Store, user: str = "ada") -> list[Job]:
    """Return all jobs of a user."""
    return [*store.jobs.list(user).jobs]


def act(scene: Scene, action: Act, policies: Policies = EFFECTIVELY_ONCE) -> int:
    """Let a schedule run the action. Return the status of its delivery."""
    scene.act = action
    scene.put(cron="0 9 * * *", policies=policies)
    return scene.deliver(scene.claim())[0]


def test_k03_an_action_enqueues_a_job_and_it_runs(each_scene: Scene) -> None:
    def first(_input: Json, ctx: Context) -> None:
        ctx.enqueue("send", {"n": 1}, delay=60, labels={"team": "a"}, policies={"priority": 3})

    assert act(each_scene, first) == 202
    (made,) = jobs(each_scene.store)
    assert (made.record.flow, made.record.action, made.record.input) == ("mail", "send", {"n": 1})
    assert (made.occurrence.due_at, made.occurrence.priority) == (NINE + MINUTE, 3)
    each_scene.act = None
    each_scene.clock.advance(MINUTE)
    (held,) = each_scene.store.ledger.claim_waiting(each_scene.clock.now)
    assert each_scene.deliver(held)[0] == 202
    given, ctx = each_scene.ran[-1]
    assert (given, ctx.origin, ctx.labels) == ({"n": 1}, made.record.key, {"team": "a"})
    assert ctx.principal == Principal("ada")
    (ended,) = jobs(each_scene.store)
    assert ended.occurrence.state is State.SUCCEEDED


def test_k03_within_a_transaction_it_is_there_if_that_commits(each_scene: Scene) -> None:
    def commits(_input: Json, ctx: Context) -> None:
        with ctx.transaction():
            made = ctx.enqueue("send", {"n": 1})
            again = ctx.enqueue("send", {"n": 2}, key="order-7")
            assert made.id != again.id

    assert act(each_scene, commits) == 202
    assert [one.record.input for one in jobs(each_scene.store)] != []
    assert {str(one.record.input) for one in jobs(each_scene.store)} == {"{'n': 1}", "{'n': 2}"}


def test_k03_within_a_transaction_it_is_not_there_if_that_is_undone(each_scene: Scene) -> None:
    def undoes(_input: Json, ctx: Context) -> None:
        with ctx.transaction():
            ctx.enqueue("send", key="order-7")
            ctx.enqueue("send", delay=60)
            raise ValueError("no")

    assert act(each_scene, undoes) == 500
    assert jobs(each_scene.store) == []
    made = each_scene.store.jobs.enqueue(
        each_scene.put("other"), now=NINE, key="order-7", at_most=1
    )
    assert made.made, "its key was kept, or its place in the quota"


def test_k03_an_attempt_that_lost_its_lease_enqueues_nothing(each_scene: Scene) -> None:
    def overtaken(_input: Json, ctx: Context) -> None:
        each_scene.clock.advance(10 * MINUTE)
        each_scene.store.ledger.claim_waiting(each_scene.clock.now)
        with ctx.transaction():
            ctx.enqueue("send")

    assert act(each_scene, overtaken) == 500
    assert jobs(each_scene.store) == []


def test_k03_an_attempt_that_runs_again_enqueues_once(each_scene: Scene) -> None:
    ran: list[int] = []

    def fails_once(_input: Json, ctx: Context) -> None:
        ran.append(ctx.attempt)
        with ctx.transaction():
            ctx.enqueue("send", delay=3_600)
            if ctx.attempt == 1:
                raise ValueError("no")

    act(each_scene, fails_once, TWICE)
    each_scene.clock.advance(20_000)
    (held,) = each_scene.store.ledger.claim_waiting(each_scene.clock.now)
    assert each_scene.deliver(held)[0] == 202
    assert ran == [1, 2]
    assert len(jobs(each_scene.store)) == 1


def test_k02_a_key_makes_one_within_a_transaction_too(each_scene: Scene) -> None:
    seen: list[str] = []

    def repeats(_input: Json, ctx: Context) -> None:
        seen.append(ctx.enqueue("send", {"n": 0}, key="before").id)
        with ctx.transaction():
            seen.append(ctx.enqueue("send", {"n": 1}, key="before").id)
            seen.extend(ctx.enqueue("send", {"n": n}, key="order-7").id for n in (2, 3))

    assert act(each_scene, repeats) == 202
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    assert {str(one.record.input) for one in jobs(each_scene.store)} == {"{'n': 0}", "{'n': 2}"}


def test_k03_outside_a_transaction_it_is_there_at_once(each_scene: Scene) -> None:
    def fails(_input: Json, ctx: Context) -> None:
        ctx.enqueue("send", {"n": 1})
        raise ValueError("no")

    assert act(each_scene, fails) == 500
    assert len(jobs(each_scene.store)) == 1


def test_k01_many_of_one_user_count_in_one_transaction(each_scene: Scene) -> None:
    def many(_input: Json, ctx: Context) -> None:
        with ctx.transaction():
            for number in range(8):
                ctx.enqueue("send", number)

    assert act(each_scene, many) == 202
    found = jobs(each_scene.store)
    assert sorted(int(str(one.record.input)) for one in found) == list(range(8))
    with pytest.raises(Exception, match="may have 8 jobs"):
        each_scene.store.jobs.enqueue(each_scene.put("other"), now=NINE, at_most=8)
    each_scene.act = None
    for call in each_scene.queued:
        assert each_scene.dispatch.run_queued(call).status == 202
    assert each_scene.store.jobs.enqueue(each_scene.put("third"), now=NINE, at_most=1).made


def test_k01_a_job_that_ends_makes_room_for_the_next_one_of_its_transaction(
    each_scene: Scene,
) -> None:
    """A chain of jobs goes on at the quota, as one of one job does."""

    def goes_on(given: Json, ctx: Context) -> None:
        with ctx.transaction():
            ctx.enqueue("send", int(str(given)) + 1, policies={"delivery": "effectively_once"})

    each_scene.quotas = Quotas(jobs=1)
    each_scene.act = goes_on
    wanted = replace(each_scene.put("other", policies=EFFECTIVELY_ONCE), input=1)
    each_scene.store.jobs.enqueue(wanted, now=NINE, at_most=1)
    for _ in range(3):
        (held,) = each_scene.store.ledger.claim_waiting(each_scene.clock.now)
        assert each_scene.deliver(held)[0] == 202
        each_scene.clock.advance(10 * MINUTE)
    found = jobs(each_scene.store)
    assert [one.record.input for one in found] == [1, 2, 3, 4]
    assert [one.is_pending for one in found] == [False, False, False, True]


def test_k03_a_job_that_has_no_room_in_a_transaction_is_not_half_made(
    each_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "MOST_WRITES", 3)
    refused: list[ConfigurationError] = []

    def goes_on(_input: Json, ctx: Context) -> None:
        with ctx.transaction():
            ctx.enqueue("send", 1)
            try:
                ctx.enqueue("send", 2, key="order-7")
            except ConfigurationError as full:
                refused.append(full)

    assert act(each_scene, goes_on) == 202
    made = jobs(each_scene.store)
    assert len(made) == 2 - len(refused)
    assert each_scene.store.jobs.enqueue(
        each_scene.put("other"), now=NINE, at_most=len(made) + 1
    ).made


@pytest.mark.parametrize(
    "more",
    [
        {"delay": -1},
        {"at": "soon"},
        {"policies": {"overlap": "skip"}},
        {"flow": "none"},
        {"labels": {"a": 1}},
        {"when": 5},
    ],
)
def test_k01_what_is_wrong_is_named_and_nothing_is_made(
    scene: Scene, more: dict[str, Json]
) -> None:
    told: list[str] = []

    def wrong(_input: Json, ctx: Context) -> None:
        enqueue: Callable[..., Job] = ctx.enqueue
        with pytest.raises(InvalidSchedule) as problem:
            enqueue("send", **more)
        told.append(str(problem.value))

    assert act(scene, wrong) == 202
    assert next(iter(more)) in told[0]
    assert jobs(scene.store) == []


def test_k01_the_principal_of_a_job_is_that_of_the_action(scene: Scene) -> None:
    principal = Principal("ada", "acme", {"role": "owner"})
    scene.act = lambda _input, ctx: ctx.enqueue("send")
    scene.put(cron="0 9 * * *", principal=principal)
    assert scene.deliver(scene.claim())[0] == 202
    (made,) = jobs(scene.store)
    assert made.record.runs_as == principal


def test_k04_a_job_that_is_due_is_handed_on_once_it_is_committed(each_scene: Scene) -> None:
    seen: list[int] = []

    def commits(_input: Json, ctx: Context) -> None:
        with ctx.transaction():
            ctx.enqueue("send", {"n": 1})
            ctx.enqueue("send", {"n": 2}, delay=60)
            seen.append(len(each_scene.queued))
        seen.append(len(each_scene.queued))
        ctx.enqueue("send", {"n": 3})
        seen.append(len(each_scene.queued))

    assert act(each_scene, commits) == 202
    assert seen == [0, 1, 2]
    each_scene.act = None
    assert each_scene.store.ledger.claim_waiting(NINE) == []
    for call in each_scene.queued:
        assert each_scene.dispatch.run_queued(call).status == 202
    assert [given for given, _ in each_scene.ran[1:]] == [{"n": 1}, {"n": 3}]
    states = [one.occurrence.state for one in jobs(each_scene.store)]
    assert sorted(states) == [State.SCHEDULED, State.SUCCEEDED, State.SUCCEEDED]


def test_k04_one_that_cannot_be_handed_on_waits_for_the_tick(each_scene: Scene) -> None:
    each_scene.throttled = True
    assert act(each_scene, lambda _input, ctx: ctx.enqueue("send", {"n": 1})) == 202
    each_scene.act = None
    each_scene.clock.advance(1_000)
    (held,) = each_scene.store.ledger.claim_waiting(each_scene.clock.now)
    assert each_scene.deliver(held)[0] == 202
    assert each_scene.ran[-1][0] == {"n": 1}


def test_k04_one_whose_run_never_comes_is_delivered_when_its_lease_ends(each_scene: Scene) -> None:
    def commits(_input: Json, ctx: Context) -> None:
        with ctx.transaction():
            ctx.enqueue("send", {"n": 1})

    assert act(each_scene, commits) == 202
    (lost,) = each_scene.queued
    each_scene.act = None
    each_scene.clock.advance(2 * MINUTE)
    (held,) = each_scene.store.ledger.claim_waiting(each_scene.clock.now)
    assert each_scene.deliver(held)[0] == 202
    each_scene.dispatch.run_queued(lost)
    assert [given for given, _ in each_scene.ran[1:]] == [{"n": 1}], "it ran twice"


def test_k04_what_is_undone_is_not_handed_on(each_scene: Scene) -> None:
    def undoes(_input: Json, ctx: Context) -> None:
        with ctx.transaction():
            ctx.enqueue("send")
            raise ValueError("no")

    assert act(each_scene, undoes) == 500
    assert each_scene.queued == []
