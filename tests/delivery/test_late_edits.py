"""Edits between claim and dispatch: the late edit wins."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from duetick.domain.schedule import Schedule
from duetick.domain.states import Reason, State

from tests.delivery.office import office
from tests.delivery.scene import NINE, Scene

pytestmark = pytest.mark.slow


def deleted(scene: Scene, put: Schedule) -> None:
    scene.store.schedules.delete(put.user_id, put.key)


def paused(scene: Scene, put: Schedule) -> None:
    scene.store.schedules.put(replace(put, enabled=False))


def retimed(scene: Scene, put: Schedule) -> None:
    scene.store.schedules.put(replace(put, cron="0 10 * * *"))


def given_other_input(scene: Scene, put: Schedule) -> None:
    scene.store.schedules.put(replace(put, input="new"))


@pytest.mark.parametrize(
    ("edit", "became"),
    [
        (deleted, (State.CANCELLED, Reason.SCHEDULE_DELETED)),
        (paused, (State.CANCELLED, Reason.DISABLED)),
        (retimed, (State.CANCELLED, Reason.SUPERSEDED)),
        (given_other_input, (State.SUCCEEDED, Reason.FIRED)),
    ],
)
def test_an_edit_between_claim_and_dispatch_wins(
    each_scene: Scene, edit: Callable[[Scene, Schedule], None], became: tuple[State, Reason]
) -> None:
    puts = [each_scene.put(key, cron="0 9 * * *", given="old") for key in ("a", "b", "c")]

    def edit_all() -> None:
        for put in puts:
            edit(each_scene, put)

    with office(each_scene) as made:
        made.first = edit_all
        report = made.tick(NINE)
    assert (report.delivered, report.failed) == (3, 0)
    assert [each_scene.history(key) for key in ("a", "b", "c")] == [[became]] * 3
    runs = 3 if became[0] is State.SUCCEEDED else 0
    assert [given for given, _ in each_scene.ran] == ["new"] * runs
