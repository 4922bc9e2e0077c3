"""An action that is cut short, wherever it stands: its attempt is settled, nothing is broken."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from duetick.core.context import Context
from duetick.core.timeouts import TimedOut
from duetick.domain.policies import Policies
from duetick.domain.schedule import Json
from duetick.domain.states import State
from duetick.stores import open_store

from tests.delivery.scene import NINE, Scene

TOLD = "The action took longer than 1 s."


def in_a_thread(call: Callable[[], None]) -> None:
    """Call it in a thread, as the local stack does."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(60)


def here(call: Callable[[], None]) -> None:
    """Call it in the main thread, as Lambda does."""
    call()


def deliver(scene: Scene, run: Callable[[Callable[[], None]], None]) -> list[Json]:
    """Fire the one that is due; the message of the answer."""
    claimed, answers = scene.claim(), list[Json]()
    run(lambda: answers.append(scene.deliver(claimed)[1].get("message", "accepted")))
    return answers


@pytest.mark.parametrize("run", [here, in_a_thread])
def test_an_async_action_that_waits_for_ever_is_timed_out(
    scene: Scene, run: Callable[[Callable[[], None]], None]
) -> None:
    cleaned, over = threading.Event(), threading.Event()

    async def until_over() -> None:
        while not over.is_set():
            await asyncio.sleep(0.05)

    async def waits(_input: Json, _ctx: Context) -> None:
        try:
            await asyncio.gather(until_over(), until_over())
        finally:
            cleaned.set()

    scene.flow.action("waits")(waits)
    scene.put(action="waits", cron="0 9 * * *", policies=Policies(timeout=1))
    assert deliver(scene, run) == [TOLD]
    assert scene.history() == [(State.DEAD, "failed")]
    assert cleaned.wait(60)
    over.set()


def test_one_that_is_cut_in_a_statement_leaves_the_store_as_it_was(postgres_url: str) -> None:
    """No other statement may use a connection that is in the middle of an answer."""
    store = open_store(postgres_url, clock=lambda: NINE)
    store.migrate()
    scene = Scene(store)

    def act(_input: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            effects.run("CREATE TABLE payments (id text)")
            effects.run("SELECT pg_sleep(60)")

    scene.act = act
    scene.put(cron="0 9 * * *", policies=Policies(timeout=1))
    begin = time.monotonic()
    assert deliver(scene, here) == [TOLD]
    assert time.monotonic() - begin < 40
    scene.act = None
    scene.put("next", cron="0 9 * * *")
    assert deliver(scene, here) == ["accepted"]
    assert [o.key for o in scene.store.ledger.find("ada") if o.state is State.SUCCEEDED] == ["next"]
    store.close()


def test_what_one_that_was_left_behind_still_does_counts_no_more(sql_scene: Scene) -> None:
    """In a thread it can only be interrupted: it ends later, and its effects are undone."""
    scene, release, ended = sql_scene, threading.Event(), threading.Event()
    raised: list[str] = []

    def act(_input: Json, ctx: Context) -> None:
        with suppress(TimedOut):  # it goes on though it is interrupted
            release.wait(60)
        try:
            with ctx.transaction() as effects:
                effects.run("CREATE TABLE payments (id text)")
        except Exception as problem:
            raised.append(type(problem).__name__)
        ended.set()

    scene.act = act
    scene.put(cron="0 9 * * *", policies=Policies(timeout=1))
    assert deliver(scene, in_a_thread) == [TOLD]
    release.set()
    assert ended.wait(60)
    assert raised == ["ConfigurationError"]
    assert scene.history() == [(State.DEAD, "failed")]
