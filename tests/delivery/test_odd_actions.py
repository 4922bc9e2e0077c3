"""Odd actions and resolvers: each attempt is settled, with a reason."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, cast

import pytest
from duetick.core.context import Context
from duetick.core.tick import run_tick
from duetick.domain.policies import Policies
from duetick.domain.schedule import IndexRow, Json, Principal, Schedule
from duetick.domain.states import Reason, State

from tests.delivery.scene import MINUTE, NINE, Scene, request, told

if TYPE_CHECKING:
    from duetick.core.flows import Resolver


class Speechless(Exception):
    """An error that cannot be turned into text."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


ENDS: list[BaseException] = [
    SystemExit(0),
    SystemExit("done"),
    GeneratorExit(),
    asyncio.CancelledError(),
    BaseException("bare"),
    Speechless(),
    RuntimeError("nul \0 and \ud800"),
]


def raiser(problem: BaseException) -> Callable[..., NoReturn]:
    """Something that ends so."""

    def raises(*_: object) -> NoReturn:
        raise problem

    return raises


def in_a_thread(call: Callable[[], None]) -> None:
    """Call it in a thread, as the local stack does."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join(60)


@pytest.mark.parametrize("run", [lambda call: call(), in_a_thread])
@pytest.mark.parametrize("problem", ENDS, ids=repr)
def test_d04_whatever_an_action_raises_is_a_failure_that_is_settled(
    scene: Scene, problem: BaseException, run: Callable[[Callable[[], None]], None]
) -> None:
    scene.put(cron="0 9 * * *")
    scene.act = raiser(problem)
    claimed, answers = scene.claim(), list[object]()
    run(lambda: answers.append(scene.deliver(claimed)[1]["error"]))
    assert answers == ["action_failed"]
    (dead,) = scene.store.ledger.find("ada", "digest")
    assert (dead.state, dead.reason) == (State.DEAD, Reason.FAILED)
    assert (dead.error or "").startswith(type(problem).__name__)


@pytest.mark.parametrize("problem", [SystemExit(1), asyncio.CancelledError()], ids=repr)
def test_d04_so_is_what_an_async_one_raises(scene: Scene, problem: BaseException) -> None:
    async def later(_input: Json, _ctx: Context) -> None:
        raise problem

    scene.flow.action("later")(later)
    scene.put(cron="0 9 * * *", action="later")
    assert scene.deliver(scene.claim())[1]["error"] == "action_failed"
    assert scene.history() == [(State.DEAD, Reason.FAILED)]


def test_a_ctrl_c_in_an_action_is_settled_and_goes_on(scene: Scene) -> None:
    scene.put(cron="0 9 * * *")
    scene.act = raiser(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        scene.deliver(scene.claim())
    assert scene.history() == [(State.DEAD, Reason.FAILED)]


@pytest.mark.parametrize("problem", ENDS, ids=repr)
@pytest.mark.parametrize("background", [False, True])
def test_d11_whatever_a_resolver_raises_is_a_failure_that_is_settled(
    scene: Scene, problem: BaseException, background: bool
) -> None:
    scene.flow.action("slow", background=background)(lambda _input, _ctx: None)
    scene.flow.resolver(raiser(problem))
    scene.store.index.upsert(IndexRow("bob", "x", "0 9 * * *", None, NINE, "mail"))
    assert scene.deliver(scene.claim())[1]["error"] == "resolver_failed"
    (dead,) = scene.store.ledger.find("bob", "x")
    assert (dead.state, dead.reason) == (State.DEAD, Reason.FAILED)


@pytest.mark.parametrize("run", [lambda call: call(), in_a_thread])
def test_d11_a_resolver_that_hangs_is_timed_out_and_told(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[[Callable[[], None]], None],
) -> None:
    monkeypatch.setattr("duetick.core.dispatch.resolving.PATIENCE", 0.2)
    release, answers = threading.Event(), list[object]()

    def hangs(_id: str, _ctx: object) -> None:
        release.wait(60)

    scene.flow.resolver(hangs)
    run(lambda: answers.append(scene.post("anything")))
    release.set()
    message = "The flow's resolver took longer than 0.2 s."
    assert answers == [(500, {"error": "resolver_failed", "message": message})]


def test_the_time_of_an_action_is_what_begin_and_resolver_left_of_the_invocation(
    scene: Scene,
) -> None:
    """Lambda ends the invocation at its time, however it was spent."""
    scene.put(cron="0 9 * * *", policies=Policies(timeout=20))
    scene.act = lambda *_: threading.Event().wait(60)
    call = request("mail", "ada/digest", {"nominalFireTime": "2026-12-01T09:00:00Z"})
    late = replace(call, seconds=30.0, came_at=call.came_at - 27.5)
    answer = told(scene.dispatch(late))[1]
    assert (answer["error"], "longer than 0." in str(answer["message"])) == ("action_failed", True)


def test_what_an_action_changes_in_its_input_or_principal_is_gone_with_it(scene: Scene) -> None:
    """A static schedule is one object for as long as its process lives."""
    seen: list[str] = []

    def greedy(given: dict[str, object], ctx: Context) -> None:
        seen.append(f"{given} {ctx.principal.attributes}")
        given["more"] = 1
        cast("dict[str, str]", ctx.principal.attributes)["role"] = "admin"

    scene.flow.action("greedy")(greedy)
    scene.flow.schedule(
        "nightly", cron="* * * * *", action="greedy", input={"n": 0}, principal=Principal("system")
    )
    for _ in range(2):
        scene.post("nightly")
        scene.clock.advance(MINUTE)
    assert seen == ["{'n': 0} {}"] * 2


def test_t02_a_hook_that_raises_keeps_no_other_from_seeing(scene: Scene) -> None:
    seen: list[int] = []
    scene.flow.on_dispatch(raiser(RuntimeError("hook")))
    scene.flow.on_dispatch(lambda _occurrence, status: seen.append(status))
    scene.put(cron="0 9 * * *")
    hook = scene.flows.observe
    assert run_tick(scene.store, scene.inline, now=NINE, on_dispatch=hook).delivered == 1
    assert seen == [202]


def test_d11_what_is_false_but_not_none_is_no_schedule(scene: Scene) -> None:
    for nothing in (False, 0, list[int]()):
        scene.flow.resolver(cast("Resolver", lambda _id, _ctx, found=nothing: found))
        assert scene.post("anything")[1]["error"] == "resolver_failed"


def test_d09_a_resolver_whose_schedule_has_another_input_is_refused(scene: Scene) -> None:
    scene.flow.action("count")(counts)
    found = Schedule("bob", "x", "* * * * *", "mail", "count", input="many")
    scene.flow.resolver(lambda _id, _ctx: found)
    assert scene.post("bob/x")[1]["error"] == "invalid_schedule"


def counts(_number: int, _ctx: Context) -> None:
    """An action."""
