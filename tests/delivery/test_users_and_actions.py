"""Actions that are not for users: static schedules and those of operators run them."""

from dataclasses import replace

import pytest
from duetick import Context, Flow
from duetick.core.accepting import Quotas
from duetick.core.flows import Flows
from duetick.core.schedules import UserSchedules
from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Json, Principal, Schedule
from duetick.domain.states import Reason, State
from duetick.testing import Stage, fire

from tests.delivery.scene import NINE, Scene

OURS = Schedule("ada", "k", "0 9 * * *", "house", "clean_up")


def house(*, users: bool = False, flow_users: bool = True) -> Flow:
    """Return a flow of one action that is not for users, one that is, and one of an agent."""
    flow = Flow("house", users=flow_users)

    @flow.action("clean_up", users=users)
    def clean_up(_given: Json, _ctx: Context) -> None:
        """Do work for which only the application may ask."""

    @flow.action("greet")
    def greet(_given: Json, _ctx: Context) -> None:
        """Anybody may."""

    @flow.action("agent")
    def agent(given: Json, ctx: Context) -> None:
        ctx.schedules.create("planted", cron="0 9 * * *", action=str(given))

    flow.schedule("nightly", cron="0 9 * * *", action="clean_up")
    flow.schedule("agents", cron="0 9 * * *", action="agent", input="clean_up")
    return flow


def of_user(stage: Stage, flow: Flow, *, operator: bool = False) -> UserSchedules:
    """Return the schedules of ada, as she or an operator reaches them."""
    flows = Flows({flow.name: flow})
    return UserSchedules(stage.store, flows, "ada", stage.clock, Quotas(), owns_names=operator)


@pytest.mark.parametrize("flow", [house(), house(users=True, flow_users=False)])
def test_a_user_puts_no_schedule_of_an_action_that_is_not_for_users(flow: Flow) -> None:
    with Stage(flow) as stage:
        own = of_user(stage, flow)
        with pytest.raises(InvalidSchedule, match="not for users"):
            own.create(OURS)
        with pytest.raises(InvalidSchedule, match="not for users"):
            own.replace(OURS)
        assert own.find("k") is None


def test_a_user_changes_no_schedule_into_one() -> None:
    flow = house()
    with Stage(flow) as stage:
        own = of_user(stage, flow)
        own.create(replace(OURS, action="greet"))
        for change in (own.change, lambda key, edit: own.replace(edit(own.get(key)))):
            with pytest.raises(InvalidSchedule, match="not for users"):
                change("k", lambda found: replace(found, action="clean_up"))
        assert own.get("k").action == "greet"


def test_an_agent_that_acts_for_a_user_is_a_user() -> None:
    with pytest.raises(InvalidSchedule, match="not for users"):
        fire(house(), action="agent", input="clean_up", user="ada")
    assert "planted" in fire(house(), action="agent", input="greet", user="ada").schedules


def test_a_static_schedule_runs_it_and_so_does_what_its_own_agent_makes() -> None:
    assert fire(house(), "nightly").state == "succeeded"
    assert fire(house(), "agents").schedules["planted"].action == "clean_up"


def test_an_operator_makes_a_schedule_of_it_whose_times_are_not_the_users_to_change() -> None:
    flow = house()
    with Stage(flow) as stage:
        made = of_user(stage, flow, operator=True).create(OURS)
        own = of_user(stage, flow)
        with pytest.raises(InvalidSchedule, match="not for users"):
            own.change("k", lambda found: replace(found, cron="* * * * *"))
        with pytest.raises(InvalidSchedule, match="not for users"):
            own.get_runnable("k")
        assert of_user(stage, flow, operator=True).get_runnable("k").principal == Principal("ada")
        own.pause("k")
        own.resume("k")
        assert stage.fire(made).state == "succeeded"
        own.delete("k")


def test_an_operator_who_changes_the_rest_does_not_vouch_for_what_a_user_made() -> None:
    with Stage(house(users=True)) as stage:
        of_user(stage, house(users=True)).create(OURS)
        flow = house()
        operator = of_user(stage, flow, operator=True)
        with pytest.raises(InvalidSchedule, match="not for users"):
            operator.change("k", lambda found: replace(found, labels={"seen": "yes"}))
        operator.change("k", lambda found: replace(found, input="mine"))
        assert not operator.get("k").is_users


def test_what_a_user_made_before_may_be_paused_and_deleted_and_not_resumed() -> None:
    with Stage(house(users=True)) as stage:
        of_user(stage, house(users=True)).create(OURS)
        own = of_user(stage, house())
        own.pause("k")
        with pytest.raises(InvalidSchedule, match="not for users"):
            own.resume("k")
        own.delete("k")


def forbid(scene: Scene) -> None:
    """Keep users from the scene's action."""
    scene.flow.actions["send"] = replace(scene.flow.actions["send"], users=False)


@pytest.mark.parametrize("others", ["in the foreground", "in the background"])
def test_d09_what_a_user_made_before_is_rejected_at_dispatch(scene: Scene, others: str) -> None:
    """Also where dispatch looks before the begin whether the action runs in the background."""
    slow = scene.flow.action("slow", background=others == "in the background")
    slow(lambda _given, _ctx: None)
    scene.put()
    forbid(scene)
    status, body = scene.deliver(scene.claim())
    assert (status, body["error"]) == (400, "invalid_schedule")
    assert "not for users" in str(body["message"])
    assert scene.history() == [(State.DEAD, Reason.REJECTED)]
    assert scene.post()[0] == 400
    assert not scene.ran


def test_d10_what_the_application_made_runs(scene: Scene) -> None:
    forbid(scene)
    scene.put(principal=Principal("ada"))
    assert scene.deliver(scene.claim())[0] == 202
    scene.flow.schedule("nightly", cron="* * * * *", action="send")
    assert scene.post("nightly", nominalFireTime=NINE)[0] == 202
    assert len(scene.ran) == 2


def test_d10_a_resolver_of_the_flow_says_whose_it_is(scene: Scene) -> None:
    forbid(scene)
    theirs = Schedule("bob", "global", "* * * * *", "mail", "send")
    scene.flow.resolver(lambda _id, _ctx: theirs)
    assert scene.post("any")[0] == 202
    scene.flow.resolver(lambda _id, _ctx: replace(theirs, principal=Principal("mail")))
    assert scene.post("any", nominalFireTime=NINE - 60_000)[0] == 202
    assert [ctx.principal.user_id for _, ctx in scene.ran] == ["bob", "mail"]
