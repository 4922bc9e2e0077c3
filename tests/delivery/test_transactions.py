"""T-04: the transaction of an action's own: it is the attempt's, and ends with it."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from duetick.core.context import Context
from duetick.domain.errors import ConfigurationError
from duetick.domain.schedule import Json
from duetick.ports import Transaction

from tests.delivery.scene import Scene


def leaves_it_open(kept: list[AbstractContextManager[Transaction]]) -> Callable[..., None]:
    """Enter the transaction and return; `kept` keeps it from being dropped."""

    def act(_input: Json, ctx: Context) -> None:
        kept.append(ctx.transaction())
        kept[-1].__enter__().run("CREATE TABLE payments (id text)")

    return act


@pytest.mark.parametrize("drop", [False, True])
def test_t04_a_transaction_that_is_left_open_is_undone_and_fails_the_attempt(
    sql_scene: Scene, drop: bool
) -> None:
    kept: list[AbstractContextManager[Transaction]] = []
    scene, leave = sql_scene, leaves_it_open(kept)
    scene.put(cron="0 9 * * *")

    def act(given: Json, ctx: Context) -> None:
        leave(given, ctx)
        if drop:
            kept.clear()

    scene.act = act
    assert scene.deliver(scene.claim())[1]["error"] == "action_failed"
    (dead,) = scene.store.ledger.find("ada", "digest")
    assert "left ctx.transaction() open" in (dead.error or "")
    scene.act = leaves_it_open([])
    scene.put("other", cron="0 9 * * *")
    assert scene.deliver(scene.claim())[0] == 500, "the table was made, or the store is blocked"


def test_t04_a_transaction_within_the_attempts_own_is_refused(sql_scene: Scene) -> None:
    scene = sql_scene

    def act(_input: Json, ctx: Context) -> None:
        with ctx.transaction(), ctx.transaction():
            pass

    scene.act = act
    scene.put(cron="0 9 * * *")
    assert scene.deliver(scene.claim())[0] == 500
    (dead,) = scene.store.ledger.find("ada", "digest")
    assert "open already" in (dead.error or "")


def test_t04_a_second_try_of_the_transaction_is_allowed(sql_scene: Scene) -> None:
    scene = sql_scene

    def act(_input: Json, ctx: Context) -> None:
        try:
            with ctx.transaction():
                raise RuntimeError("once more")
        except RuntimeError:
            with ctx.transaction():
                pass

    scene.act = act
    scene.put(cron="0 9 * * *")
    assert scene.deliver(scene.claim())[0] == 202


@pytest.mark.parametrize(
    "ending",
    [
        "COMMIT",
        "rollback;",
        "-- done\nEnd",
        "/* */ ABORT",
        "/* not /* yet */ */ COMMIT",
        "Begin",
        "START TRANSACTION",
    ],
)
def test_t04_an_action_cannot_end_its_transaction_itself(sql_scene: Scene, ending: str) -> None:
    """Its effects would be there without its success, or its success without its effects."""
    scene = sql_scene

    def act(_input: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            effects.run("CREATE TABLE payments (id text)")
            effects.run(ending)

    scene.act = act
    for key in ("first", "second"):  # the second finds no table of the first
        scene.put(key, cron="0 9 * * *")
        assert scene.deliver(scene.claim())[0] == 500
        (dead,) = scene.store.ledger.find("ada", key)
        assert "Raise to undo" in (dead.error or "")


@pytest.mark.parametrize("setting", ["SET ROLE tenant", "set search_path to app"])
def test_t04_an_action_leaves_no_setting_behind(sql_scene: Scene, setting: str) -> None:
    """The next transaction on that connection would be another role's, or look elsewhere."""
    scene = sql_scene

    def act(_input: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            effects.run(setting)

    scene.act = act
    scene.put(cron="0 9 * * *")
    assert scene.deliver(scene.claim())[0] == 500
    (dead,) = scene.store.ledger.find("ada", "digest")
    assert "Write SET LOCAL" in (dead.error or "")


def test_t04_an_action_may_go_back_to_a_savepoint(sql_scene: Scene) -> None:
    scene = sql_scene

    def act(_input: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            effects.run("SAVEPOINT here")
            effects.run("CREATE TABLE payments (id text)")
            effects.run("ROLLBACK TO here")
            effects.run("CREATE TABLE payments (id text)")

    scene.act = act
    scene.put(cron="0 9 * * *")
    assert scene.deliver(scene.claim())[0] == 202


def test_t04_a_context_is_of_no_use_when_its_attempt_is_over(each_scene: Scene) -> None:
    """Its transaction would commit beside the settle, or on DynamoDB drop its writes."""
    scene, kept = each_scene, list[Context]()
    scene.act = lambda _input, ctx: kept.append(ctx)
    scene.put(cron="0 9 * * *")
    scene.deliver(scene.claim())
    with pytest.raises(ConfigurationError, match="settled"):
        kept[0].transaction()
