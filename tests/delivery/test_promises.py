"""T-03, T-04, D-07: at most once, at least once, effectively once, and callers' own keys."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, NoReturn

import pytest
from duetick.core.context import Context
from duetick.domain.errors import ConfigurationError, InvalidSchedule, LeaseLost, StoreUnavailable
from duetick.domain.policies import Backoff, Delivery, Overlap, Policies, Retry
from duetick.domain.schedule import Json, Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Begun, Clock, Transaction
from duetick.stores import open_store
from duetick.stores.dynamodb.transaction import DynamoTransaction

from tests.delivery.scene import MINUTE, NINE, Scene
from tests.lab.dynamodb import DynamoDB, table_name

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NUMBERS = count()
TWICE = Retry(backoff=Backoff.FIXED, attempts=2, first=10)
AT_LEAST_ONCE = Policies(delivery=Delivery.AT_LEAST_ONCE, retry=TWICE)
EFFECTIVELY_ONCE = replace(AT_LEAST_ONCE, delivery=Delivery.EFFECTIVELY_ONCE)


@contextmanager
def payments(scene: Scene) -> Iterator[Callable[[], int]]:
    """A table of the application's own, in the store's database; counts its rows."""
    sql = ["CREATE TABLE payments (id text)", "SELECT count(*) FROM payments"]

    def run(statement: str) -> int:
        claimed = by_hand(scene.clock.now, statement)
        begun = scene.store.ledger.begin(claimed, now=scene.clock.now)
        assert isinstance(begun, Begun)
        with scene.store.ledger.settling(begun.occurrence, scene.clock) as effects:
            rows = effects.run(statement)
        return int(str(rows[0][0])) if rows else 0

    run(sql[0])
    yield lambda: run(sql[1])


def by_hand(now: int, name: str) -> Occurrence:
    """A run of no schedule's, to have a transaction."""
    return Occurrence("test", "sql", "", None, now, origin=f"run:{name}{next(NUMBERS)}", due_at=now)


def fails(_input: Json, _ctx: Context) -> NoReturn:
    """An action that never succeeds."""
    raise RuntimeError("no mail server")


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


def test_d07_a_callers_key_makes_one_run_in_its_window(each_scene: Scene) -> None:
    scene = each_scene
    scene.put()
    first = scene.post(idempotencyKey="order-7")
    assert (first[0], str(first[1]["origin"])[:5]) == (202, "call:")
    scene.clock.advance(59_000)
    assert scene.post(idempotencyKey="order-7") == (
        200,
        {"status": "duplicate", "state": "succeeded"},
    )
    assert scene.post(idempotencyKey="order-8")[0] == 202
    scene.clock.advance(1_000)
    assert scene.post(idempotencyKey="order-7")[0] == 202
    assert len(scene.ran) == 3


def test_d07_a_window_of_zero_turns_the_key_off(scene: Scene) -> None:
    scene.put()
    calls = [scene.post(idempotencyKey="k", idempotencyWindow=0)[0] for _ in range(3)]
    assert calls == [202, 202, 202]


def test_d07_a_failure_releases_the_key(each_scene: Scene) -> None:
    scene = each_scene
    scene.put()
    scene.act = fails
    assert [scene.post(idempotencyKey="k")[0] for _ in range(2)] == [500, 500]
    scene.act = None
    assert scene.post(idempotencyKey="k")[0] == 202


def test_d07_a_key_that_runs_is_in_progress(scene: Scene) -> None:
    scene.put(policies=Policies(overlap=Overlap.ALLOW))
    seen: list[int] = []
    scene.act = lambda *_: seen.append(scene.post(idempotencyKey="k")[0])
    scene.post(idempotencyKey="k")
    assert seen == [409]


@pytest.mark.parametrize("key", ["", "x" * 129, 7, "a\nb", ["k"], {"k": 1}])
def test_d07_a_key_that_cannot_be_one_is_refused(scene: Scene, key: Json) -> None:
    scene.put()
    assert scene.post(idempotencyKey=key)[0] == 400


def test_d06_a_caller_without_a_time_means_the_newest_fire_time(scene: Scene) -> None:
    scene.put(cron="0 * * * *")
    scene.clock.advance(20 * MINUTE)
    scene.post()
    assert [ctx.nominal_at for _, ctx in scene.ran] == [NINE]


def test_a03_a_time_at_which_it_does_not_fire_is_no_scheduled_occurrence(scene: Scene) -> None:
    scene.put(cron="0 * * * *")
    for offset in (MINUTE, 60 * MINUTE):
        assert scene.post(nominalFireTime=NINE + offset)[1]["origin"] == "call:time"
        assert scene.post(nominalFireTime=NINE + offset)[0] == 200
    for due in (NINE, NINE + 60 * MINUTE):
        assert [o.nominal_at for o in scene.store.index.claim_due(due)] == [due]


@pytest.mark.parametrize("fence", [-1, True, 2**60, "1", 1.5, None])
def test_d07_a_fence_that_no_tick_sends_is_refused(scene: Scene, fence: Json) -> None:
    scene.put()
    assert scene.post(fence=fence, nominalFireTime=NINE)[0] == 400


@pytest.mark.parametrize("time", [10**18, -1, True, "0000", [], {"a": 1}, "9999-99-99T00:00Z"])
def test_d06_a_time_that_cannot_be_is_refused(scene: Scene, time: Json) -> None:
    scene.put()
    assert scene.post(fence=1, nominalFireTime=time)[0] == 400


@dataclass(frozen=True, slots=True)
class Table:
    """The application's."""

    client: "DynamoDBClient"
    name: str

    def write(self, item: str) -> dict[str, object]:
        """Put it, unless it is there."""
        return {
            "Put": {
                "TableName": self.name,
                "Item": {"id": {"S": item}},
                "ConditionExpression": "attribute_not_exists(id)",
            }
        }

    def items(self) -> set[str]:
        """What is in it."""
        return {item["id"]["S"] for item in self.client.scan(TableName=self.name)["Items"]}


@pytest.fixture
def table_scene(dynamodb_local: DynamoDB) -> Iterator[tuple[Scene, Table]]:
    """Dispatch on DynamoDB, and a table of the application's own beside the store's."""
    address = dynamodb_local.table_url(table_name())
    store = open_store(address, clock=lambda: NINE)
    store.migrate()
    client, own = dynamodb_local.client(), table_name()
    client.create_table(
        TableName=own,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    yield Scene(store), Table(client, own)
    store.close()
    client.close()


def test_t04_on_dynamodb_writes_commit_with_the_settling(
    table_scene: tuple[Scene, Table],
) -> None:
    scene, table = table_scene

    def pay(_input: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            for number in range(3):
                effects.write(table.write(f"{ctx.occurrence_id}-{number}"))
            if ctx.attempt == 1:
                raise RuntimeError("before the commit")

    scene.act = pay
    scene.put(cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
    scene.deliver(scene.claim())
    assert (table.items(), scene.history()) == (set(), [(State.RETRYING, None)])
    scene.clock.advance(10_000)
    (again,) = scene.store.ledger.claim_waiting(scene.clock.now)
    assert scene.deliver(again)[0] == 202
    assert len(table.items()) == 3
    assert scene.history() == [(State.SUCCEEDED, Reason.FIRED)]


def test_t04_on_dynamodb_a_write_of_ones_own_that_is_refused_fails_the_attempt(
    table_scene: tuple[Scene, Table],
) -> None:
    scene, table = table_scene

    def pay(_input: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            effects.write(table.write("the same"))

    scene.act = pay
    for key in ("first", "second"):
        scene.put(key, cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
    statuses = {o.key: scene.deliver(o)[0] for o in scene.store.index.claim_due(NINE)}
    assert sorted(statuses.values()) == [202, 500]
    (state,) = (scene.history(key)[0] for key, status in statuses.items() if status == 500)
    assert state == (State.RETRYING, None)


def test_t04_on_dynamodb_an_attempt_that_lost_its_lease_writes_nothing(
    table_scene: tuple[Scene, Table],
) -> None:
    scene, table = table_scene

    def pay(_input: Json, ctx: Context) -> None:
        scene.clock.advance(10 * MINUTE)
        scene.store.ledger.claim_waiting(scene.clock.now)
        with ctx.transaction() as effects:
            effects.write(table.write("late"))

    scene.act = pay
    scene.put(cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
    assert scene.deliver(scene.claim())[0] == 500
    assert table.items() == set()


def test_t04_a_transaction_on_dynamodb_takes_99_writes() -> None:
    effects = DynamoTransaction()
    for number in range(99):
        effects.write({"Put": {"Item": number}})
    with pytest.raises(ConfigurationError, match="99"):
        effects.write({"Put": {}})
    with pytest.raises(ConfigurationError, match="write"):
        effects.run("SELECT 1")
