"""T-12: schedules whose flow is gone are counted, named, and paused if the deployment says so.

The tests of `test_flows_that_go.py` are about the leased occurrences.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from duetick.core.context import Context
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Flow, Flows
from duetick.core.gone import MOST_NAMED, Gone, GoneLook, find_gone, note_of, time_left
from duetick.core.schedules import UserSchedules
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import IndexRow, Occurrence, Record, Schedule
from duetick.transports.inline import InlineTransport

from tests.delivery.scene import MINUTE, NINE, SECRET, Scene

HOUR = 60 * MINUTE
GONE = Flows({"billing": Flow("billing")})
ACTION_GONE = Flows({"mail": Flow("mail")})
EACH_GONE = pytest.mark.parametrize("flows", [GONE, ACTION_GONE], ids=["flow", "action"])


def tick(scene: Scene, flows: Flows, now: int) -> tuple[list[Occurrence], list[Occurrence]]:
    """Tick under a deployment. Return the settled occurrences, and those that died of a flow that
    is gone.
    """
    settled: list[Occurrence] = []
    gone: list[Occurrence] = []
    dispatch = Dispatcher(
        scene.store,
        flows,
        lambda _: True,
        scene.clock,
        on_settled=settled.append,
        on_gone=gone.append,
    )
    scene.clock.now = now
    run_tick(
        scene.store, InlineTransport(lambda call: dispatch(replace(call, headers=SECRET))), now=now
    )
    return settled, gone


def look(scene: Scene, flows: Flows, now: int, *, pauses: bool = True) -> Gone:
    """Look as the hourly work does."""
    scene.clock.now = now
    return find_gone(scene.store, flows, now, pauses=pauses)


def get(scene: Scene, key: str = "digest") -> Record:
    """Ada's."""
    found = scene.store.schedules.get("ada", key)
    assert found
    return found


@EACH_GONE
@pytest.mark.parametrize("delivery", list(Delivery))
def test_t12_a_death_of_what_is_gone_is_seen_once_and_apart_from_others(
    each_scene: Scene, flows: Flows, delivery: Delivery
) -> None:
    each_scene.put(cron="0 9 * * *", policies=Policies(delivery=delivery))
    settled, gone = tick(each_scene, flows, NINE)
    assert settled == []
    (dead,) = gone
    assert (dead.state, dead.reason, dead.schedule_id) == ("dead", "rejected", "ada/digest")


def test_t12_any_other_rejection_is_a_death_as_before(scene: Scene) -> None:
    scene.put(cron="0 9 * * *", principal=None)
    private = Flow("mail", users=False)
    private.action("send")(lambda _given, _ctx: None)
    settled, gone = tick(scene, Flows({"mail": private}), NINE)
    assert ([one.reason for one in settled], gone) == (["rejected"], [])


def test_t12_an_observer_of_all_that_is_settled_sees_those_too(scene: Scene) -> None:
    scene.put(cron="0 9 * * *")
    seen: list[Occurrence] = []
    alone = Dispatcher(scene.store, GONE, lambda _: True, scene.clock, on_settled=seen.append)
    run_tick(
        scene.store, InlineTransport(lambda call: alone(replace(call, headers=SECRET))), now=NINE
    )
    assert [one.reason for one in seen] == ["rejected"]


def test_t12_active_schedules_of_what_is_gone_are_counted_by_flow_before_any_dies(
    each_scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    for key in ("a", "b", "c"):
        each_scene.put(key)
    each_scene.put("off", enabled=False)
    each_scene.store.index.upsert(IndexRow("bob", "x", "0 9 * * *", None, NINE, "faxes"))
    with caplog.at_level(logging.ERROR, "duetick.gone"):
        found = look(each_scene, GONE, NINE - 1, pauses=False)
    assert found == Gone(4, [("mail", 3), ("faxes", 1)])
    (line,) = [one for one in caplog.records if one.__dict__.get("action") == "gone"]
    assert line.__dict__["schedules"] == 4
    assert line.__dict__["first"][0] == {"flow": "mail", "schedules": 3}
    named = look(each_scene, ACTION_GONE, NINE - 1, pauses=False)
    assert named.first == [("mail/send", 3), ("faxes", 1)]


def test_t12_where_every_flow_is_there_nothing_is_said(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.put()
    with caplog.at_level(logging.INFO, "duetick.gone"):
        assert look(scene, scene.flows, NINE) == Gone()
    assert not caplog.records


def test_t12_a_line_names_the_first_and_never_all(scene: Scene) -> None:
    for number in range(MOST_NAMED + 5):
        schedule = Schedule("ada", f"k{number}", "0 9 * * *", f"flow{number}", "send")
        scene.store.schedules.put(schedule, now=NINE)
    found = look(scene, GONE, NINE, pauses=False)
    assert (found.schedules, len(found.first)) == (MOST_NAMED + 5, MOST_NAMED)


def test_t12_a_resolvers_flow_knows_its_actions_itself() -> None:
    asks = Flow("mail")
    asks.resolver(lambda _schedule_id, _ctx: None)
    assert Flows({"mail": asks}).missing("mail", "anything") is None


@EACH_GONE
def test_t12_the_setting_pauses_after_an_hour_of_deaths_and_says_why(
    each_scene: Scene, flows: Flows
) -> None:
    each_scene.put(cron="*/10 * * * *")
    for ten in range(7):
        tick(each_scene, flows, NINE + ten * 10 * MINUTE)
    assert look(each_scene, flows, NINE + HOUR - 1).paused == 0
    assert get(each_scene).enabled
    found = look(each_scene, flows, NINE + HOUR)
    assert (found.paused, found.schedules) == (1, 0)
    paused = get(each_scene)
    assert (paused.enabled, paused.pause and paused.pause.note) == (False, note_of(paused))
    assert "mail/send" in note_of(paused)
    assert tick(each_scene, flows, NINE + 2 * HOUR) == ([], [])
    assert look(each_scene, flows, NINE + 2 * HOUR) == Gone()


def test_t12_without_the_setting_its_times_go_on_dying(each_scene: Scene) -> None:
    each_scene.put(cron="0 * * * *")
    tick(each_scene, GONE, NINE)
    assert look(each_scene, GONE, NINE + 2 * HOUR, pauses=False).schedules == 1
    assert get(each_scene).enabled


def test_t12_a_wrong_deployment_of_ten_minutes_costs_those_and_no_more(each_scene: Scene) -> None:
    """That holds under each setting, although the count runs in the middle of the ten minutes."""
    each_scene.put()
    runs = range(NINE, NINE + 20 * MINUTE, MINUTE)
    for now in runs:
        wrong = NINE + 5 * MINUTE <= now < NINE + 15 * MINUTE
        tick(each_scene, GONE if wrong else each_scene.flows, now)
        assert look(each_scene, GONE if wrong else each_scene.flows, now).paused == 0
    became = {one.nominal_at: one.state for one in each_scene.store.ledger.find("ada", limit=99)}
    dead = [now for now in runs if became[now] == "dead"]
    assert dead == list(range(NINE + 5 * MINUTE, NINE + 15 * MINUTE, MINUTE))
    assert {became[now] for now in runs if now not in dead} == {"succeeded"}


def test_t12_a_run_of_a_limit_is_not_used_up_by_a_wrong_deployment(each_scene: Scene) -> None:
    each_scene.put(policies=Policies(max_runs=2))
    for minute in range(3):
        tick(each_scene, GONE, NINE + minute * MINUTE)
    for minute in range(3, 6):
        tick(each_scene, each_scene.flows, NINE + minute * MINUTE)
    assert [state for state, _ in each_scene.history()].count("succeeded") == 2


def test_t12_what_has_run_since_is_not_paused_for_an_older_death(each_scene: Scene) -> None:
    each_scene.put(cron="0 * * * *")
    tick(each_scene, GONE, NINE)
    tick(each_scene, each_scene.flows, NINE + HOUR)
    assert look(each_scene, GONE, NINE + HOUR + MINUTE).paused == 0


def test_t12_only_deaths_of_what_is_gone_use_up_the_hour(each_scene: Scene) -> None:
    """An input that does not fit is rejected too, until somebody mends it."""
    each_scene.put(cron="*/10 * * * *", given={"to": 1})
    picky = Flow("mail")

    @picky.action("send")
    def send(_given: str, _ctx: Context) -> None: ...

    for ten in range(7):
        tick(each_scene, Flows({"mail": picky}), NINE + ten * 10 * MINUTE)
    assert set(each_scene.history()) == {("dead", "rejected")}
    since = NINE + 70 * MINUTE
    for ten in range(7):
        tick(each_scene, GONE, since + ten * 10 * MINUTE)
        assert look(each_scene, GONE, since + ten * 10 * MINUTE).paused == (ten == 6)


def test_t12_it_goes_on_by_itself_when_the_flow_is_back_as_it_was(each_scene: Scene) -> None:
    before = each_scene.put(cron="0 * * * *")
    tick(each_scene, GONE, NINE)
    tick(each_scene, GONE, NINE + HOUR)
    look(each_scene, GONE, NINE + HOUR)
    back = look(each_scene, each_scene.flows, NINE + 5 * HOUR - MINUTE, pauses=False)
    assert (back.resumed, back.schedules) == (1, 0)
    after = get(each_scene)
    assert (after.enabled, after.pause, after.times) == (True, None, before.times)
    settled, gone = tick(each_scene, each_scene.flows, NINE + 5 * HOUR)
    assert ([one.state for one in settled], gone) == (["succeeded"], [])
    became = [(one.reason, one.count) for one in each_scene.store.ledger.find("ada")]
    assert became == [("fired", 1), ("paused", 3), ("rejected", 1), ("rejected", 1)]


def test_t12_a_user_resumes_it_and_an_own_pause_is_left_alone(each_scene: Scene) -> None:
    each_scene.put(cron="0 * * * *")
    each_scene.put("mine", cron="0 * * * *")
    ada = UserSchedules(each_scene.store, each_scene.flows, "ada", each_scene.clock)
    ada.pause("mine", note="on holiday")
    tick(each_scene, GONE, NINE)
    look(each_scene, GONE, NINE + HOUR)
    assert ada.resume("digest").enabled
    assert look(each_scene, each_scene.flows, NINE + HOUR).resumed == 0
    assert not get(each_scene, "mine").enabled


def test_l01_one_whose_last_time_passed_in_the_pause_is_done(each_scene: Scene) -> None:
    each_scene.put(cron="0 9,10 1 12 *", policies=Policies(ends_at=NINE + 2 * HOUR))
    tick(each_scene, GONE, NINE)
    assert look(each_scene, GONE, NINE + HOUR).paused == 1
    look(each_scene, each_scene.flows, NINE + 3 * HOUR)
    assert get(each_scene).done_at is not None


def test_t12_where_no_flow_is_deployed_nothing_is_paused_and_all_are_counted(
    each_scene: Scene,
) -> None:
    each_scene.put(cron="0 * * * *")
    tick(each_scene, GONE, NINE)
    found = look(each_scene, Flows({}), NINE + 2 * HOUR)
    assert (found.paused, found.schedules) == (0, 1)


def test_m06_a_static_schedule_is_its_deployments_and_not_paused(each_scene: Scene) -> None:
    static = Schedule("", "mail/nightly", "0 * * * *", "mail", "send")
    each_scene.store.schedules.put(static, now=NINE - MINUTE)
    tick(each_scene, GONE, NINE)
    found = look(each_scene, GONE, NINE + 2 * HOUR)
    assert (found.paused, found.first) == (0, [("mail", 1)])


def test_t12_an_edit_meanwhile_wins(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.put(cron="0 * * * *")
    tick(scene, GONE, NINE)
    find = scene.store.ledger.find

    def edits(*names: str, limit: int) -> Sequence[Occurrence]:
        scene.store.schedules.put(replace(get(scene), input="other"), now=NINE + HOUR)
        return find(*names, limit=limit)

    monkeypatch.setattr(scene.store.ledger, "find", edits)
    assert look(scene, GONE, NINE + HOUR).paused == 0
    assert (get(scene).enabled, get(scene).input) == (True, "other")


def test_t12_what_goes_meanwhile_is_left(scene: Scene) -> None:
    scene.put(cron="0 * * * *")
    tick(scene, GONE, NINE)
    one_look = GoneLook(scene.store, GONE, NINE + HOUR, pauses=True)
    for one in scene.store.shelf.every_book():
        one_look.at(one)
    scene.store.schedules.delete("ada", "digest", now=NINE + HOUR)
    assert one_look.end(lambda: True).paused == 0


@pytest.mark.parametrize("died", ["k0", "k4", "k9"])
def test_t12_if_no_hour_has_time_for_all_each_has_its_turn(each_scene: Scene, died: str) -> None:
    """Each hour looks at three of ten. Only one of them died, wherever it stands."""
    for number in range(10):
        key = f"k{number}"
        each_scene.put(key, cron="0 9 * * *" if key == died else "0 8 * * *")
    tick(each_scene, GONE, NINE)
    for hour in range(1, 12):
        one_look = GoneLook(each_scene.store, GONE, NINE + hour * HOUR, pauses=True)
        for one in each_scene.store.shelf.every_book():
            one_look.at(one)
        assert one_look.end(partial(next, iter([True] * 3), False)).unfinished
    states = {one.key: one.enabled for one in each_scene.store.schedules.list("ada").schedules}
    assert [key for key, enabled in states.items() if not enabled] == [died]


def test_t12_a_look_ends_in_its_time_and_says_so(store: Store) -> None:
    scene = Scene(store)
    scene.put()
    may_go_on = time_left(0, lambda: 0.0)
    found = find_gone(store, GONE, NINE, pauses=True, may_go_on=may_go_on)
    assert found == Gone(unfinished=True)
