"""T-03, T-04, T-07: at most once, at least once, effectively once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from duetick.core.context import Context
from duetick.domain.attempts import Begun
from duetick.domain.errors import InvalidSchedule, LeaseLost, StoreUnavailable
from duetick.domain.schedule import IndexRow, Json, NewOccurrence, Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Clock, Transaction
from duetick.testing.conformance.suite import run as bring_and_begin

from tests.delivery.scene import AT_LEAST_ONCE, EFFECTIVELY_ONCE, MINUTE, NINE, Scene, fails

NUMBERS = count()


@contextmanager
def payments(scene: Scene) -> Iterator[Callable[[], int]]:
    """Make a table of the application's own, in the store's database. Yield a count of its rows."""
    sql = ["CREATE TABLE payments (id text)", "SELECT count(*) FROM payments"]

    def run(statement: str) -> int:
        begun = bring_and_begin(scene.store, by_hand(scene.clock.now, statement), scene.clock.now)
        assert isinstance(begun, Begun)
        with scene.store.ledger.settling(begun.occurrence, scene.clock) as effects:
            rows = effects.run(statement)
        return int(str(rows[0][0])) if rows else 0

    run(sql[0])
    yield lambda: run(sql[1])


def by_hand(now: int, name: str) -> NewOccurrence:
    """Return a run of no schedule's, to have a transaction."""
    return NewOccurrence("test", "sql", "", None, now, f"run:{name}{next(NUMBERS)}", due_at=now)


def test_t03_at_most_once_a_failure_is_the_end(each_scene: Scene) -> None:
    scene = each_scene
    scene.put(cron="0 9 * * *")
    scene.act = fails
    claimed = scene.claim()
    assert scene.deliver(claimed)[0] == 500
    assert scene.history() == [(State.DEAD, Reason.FAILED)]
    assert list(scene.store.ledger.claim_waiting(NINE + 60 * MINUTE)) == []
    assert scene.deliver(claimed) == (200, {"status": "duplicate", "state": "dead"})
    assert len(scene.ran) == 1


def test_t04_at_least_once_comes_again_as_the_same_until_it_is_spent(each_scene: Scene) -> None:
    scene = each_scene
    scene.put(cron="0 9 * * *", policies=AT_LEAST_ONCE)
    scene.act = fails
    claimed = scene.claim()
    scene.deliver(claimed)
    assert scene.history() == [(State.RETRYING, None)]
    assert list(scene.store.ledger.claim_waiting(NINE + 9_999)) == []
    scene.clock.advance(10_000)
    (again,) = scene.store.ledger.claim_waiting(scene.clock.now)
    assert (again.identity, again.id) == (claimed.identity, claimed.id)
    scene.deliver(again)
    assert scene.history() == [(State.DEAD, Reason.FAILED)]
    assert [ctx.attempt for _, ctx in scene.ran] == [1, 2]


def test_t07_of_many_dispatches_with_one_fence_one_begins(each_scene: Scene) -> None:
    scene = each_scene
    scene.put(cron="0 9 * * *")
    claimed = scene.claim()
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: scene.deliver(claimed)[0], range(8)))
    assert statuses.count(202) == 1
    assert set(statuses) <= {202, 200, 409}
    assert len(scene.ran) == 1


def test_t04_effectively_once_is_refused_where_it_cannot_hold(scene: Scene) -> None:
    scene.flow.action("plain")(lambda _input, _ctx: None)
    scene.flow.schedule("nightly", cron="0 3 * * *", action="plain", policies=EFFECTIVELY_ONCE)
    with pytest.raises(InvalidSchedule, match="transactional=True"):
        _ = scene.dispatch


def test_t04_what_the_store_promises_holds_though_the_flow_names_another_action(
    each_scene: Scene,
) -> None:
    """A deployment's code runs before its schedules are stored, and after they were refused."""
    scene, ran = each_scene, list[str]()
    scene.flow.action("once", transactional=True)(lambda _input, _ctx: ran.append("once"))
    scene.flow.action("plain")(lambda _input, _ctx: ran.append("plain"))
    row = IndexRow("", "mail/nightly", "0 9 * * *", None, NINE, "mail", policies=EFFECTIVELY_ONCE)
    scene.store.index.upsert(row)
    scene.flow.schedule("nightly", cron="0 9 * * *", action="plain")
    status, answer = scene.deliver(scene.claim())
    assert (status, ran) == (400, [])
    assert "cannot keep the promise that is stored" in str(answer["message"])
    (dead,) = scene.store.ledger.find("", "mail/nightly")
    assert (dead.state, dead.reason) == (State.DEAD, Reason.REJECTED)


def test_t04_on_sql_effects_commit_with_the_settling(sql_scene: Scene) -> None:
    scene = sql_scene
    with payments(scene) as paid:

        def pay(_input: Json, ctx: Context) -> None:
            with ctx.transaction() as effects:
                effects.run("INSERT INTO payments VALUES (:id)", id=ctx.occurrence_id)
                if ctx.attempt == 1:
                    raise RuntimeError("after the effect, before the commit")

        scene.act = pay
        scene.put(cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
        scene.deliver(scene.claim())
        assert (paid(), scene.history()) == (0, [(State.RETRYING, None)])
        scene.clock.advance(10_000)
        (again,) = scene.store.ledger.claim_waiting(scene.clock.now)
        assert scene.deliver(again)[0] == 202
        assert (paid(), scene.history()) == (1, [(State.SUCCEEDED, Reason.FIRED)])


def test_t04_effects_of_an_attempt_that_lost_its_lease_are_undone(sql_scene: Scene) -> None:
    scene = sql_scene
    with payments(scene) as paid:

        def pay(_input: Json, ctx: Context) -> None:
            scene.clock.advance(10 * MINUTE)
            scene.store.ledger.claim_waiting(scene.clock.now)
            with ctx.transaction() as effects:
                effects.run("INSERT INTO payments VALUES (:id)", id=ctx.occurrence_id)

        scene.act = pay
        scene.put(cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
        assert scene.deliver(scene.claim())[0] == 500
        assert paid() == 0


def test_t04_an_action_that_tries_again_where_an_answer_was_lost_pays_once(
    sql_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, settling = sql_scene, sql_scene.store.ledger.settling

    @contextmanager
    def unanswered(held: Occurrence, clock: Clock) -> Iterator[Transaction]:
        with settling(held, clock) as effects:
            yield effects
        raise StoreUnavailable("the answer was lost")

    def pay(_input: Json, ctx: Context) -> None:
        for _ in range(2):
            with suppress(StoreUnavailable, LeaseLost), ctx.transaction() as effects:
                effects.run("INSERT INTO payments VALUES (:id)", id=ctx.occurrence_id)

    with payments(scene) as paid:
        monkeypatch.setattr(scene.store.ledger, "settling", unanswered)
        scene.act = pay
        scene.put(cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
        assert scene.deliver(scene.claim())[0] == 202
        monkeypatch.undo()
        assert (paid(), scene.history()) == (1, [(State.SUCCEEDED, Reason.FIRED)])


def test_t04_an_error_after_the_commit_changes_nothing(sql_scene: Scene) -> None:
    scene = sql_scene

    def act(_input: Json, ctx: Context) -> None:
        with ctx.transaction():
            pass
        raise RuntimeError("too late")

    scene.act = act
    scene.put(cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
    assert scene.deliver(scene.claim())[0] == 202
    assert scene.history() == [(State.SUCCEEDED, Reason.FIRED)]
