"""Functions that make no action, or an odd one: their registration says so."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, wraps

import pytest
from duetick.actions import Queue
from duetick.core.action import ActionFunction
from duetick.core.context import Context
from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Json

from tests.delivery.scene import Scene


def by_name(*, given: Json, ctx: Context) -> None:
    """Takes two arguments, and none by its place."""
    raise AssertionError((given, ctx))


def half_by_name(given: Json, *, ctx: Context) -> None:
    """Takes one by its place."""
    raise AssertionError((given, ctx))


def by_place(given: Json, ctx: Context) -> None:
    """As it should be."""
    raise AssertionError((given, ctx))


@pytest.mark.parametrize("function", [lambda: None, lambda _input: None, by_name, half_by_name])
def test_an_action_that_cannot_be_called_is_refused_when_it_is_registered(
    scene: Scene, function: Callable[..., None]
) -> None:
    with pytest.raises(InvalidSchedule, match=r"\(input, ctx\)"):
        scene.flow.action("odd")(function)


@pytest.mark.parametrize("target", [Queue, "https://sqs.example/due"])
def test_a_target_that_cannot_be_called_is_refused_when_it_is_registered(
    scene: Scene, target: ActionFunction
) -> None:
    with pytest.raises(InvalidSchedule, match=r"\(input, ctx\)"):
        scene.flow.action("odd", target=target)


def test_a_target_takes_no_function_besides(scene: Scene) -> None:
    register = scene.flow.action("odd", target=Counter())
    with pytest.raises(InvalidSchedule, match="'odd' has its target"):
        register(by_place)
    assert isinstance(scene.flow.actions["odd"].run, Counter)


class Counter:
    """Something that is called like a function."""

    def __call__(self, number: int, _ctx: Context) -> None:
        """Count."""
        assert isinstance(number, int)


@pytest.mark.parametrize("function", [Counter(), partial(Counter.__call__, Counter())])
def test_whatever_can_be_called_may_be_an_action(
    scene: Scene, function: Callable[..., None]
) -> None:
    scene.flow.action("count")(function)
    scene.put(action="count", given=5)
    assert scene.deliver(scene.claim())[0] == 202


def test_the_input_of_what_is_called_like_a_function_is_checked_too(scene: Scene) -> None:
    scene.flow.action("count")(Counter())
    scene.put(action="count", given="many")
    assert scene.deliver(scene.claim())[1]["error"] == "invalid_schedule"


def test_an_action_may_have_defaults_of_its_own(scene: Scene) -> None:
    def more(given: Json, _ctx: Context, times: int = 2) -> None:
        seen.append((given, times))

    seen: list[object] = []
    scene.flow.action("more")(more)
    scene.put(action="more", given="a")
    assert scene.deliver(scene.claim())[0] == 202
    assert seen == [("a", 2)]


def test_a_second_static_schedule_of_one_name_is_refused(scene: Scene) -> None:
    scene.flow.schedule("nightly", cron="@daily", action="clean")
    with pytest.raises(InvalidSchedule, match="nightly"):
        scene.flow.schedule("nightly", cron="@hourly", action="clean")


def test_an_action_that_yields_is_refused_when_it_is_registered(scene: Scene) -> None:
    def yields(_input: Json, _ctx: Context) -> Iterator[int]:
        yield 1

    async def yields_later(_input: Json, _ctx: Context) -> AsyncIterator[int]:
        yield 1

    for function in (yields, yields_later):
        with pytest.raises(InvalidSchedule, match="yields"):
            scene.flow.action(function.__name__)(function)


def test_d09_the_input_of_a_decorated_action_is_checked_too(scene: Scene) -> None:
    def traced(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def call(*args: object) -> None:
            function(*args)

        return call

    def count(_number: int, _ctx: Context) -> None:
        raise AssertionError("it must not run")

    scene.flow.action("count")(traced(count))
    scene.put(action="count", given="many")
    assert scene.deliver(scene.claim())[1]["error"] == "invalid_schedule"
