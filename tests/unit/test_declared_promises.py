"""An action and its flow declare the policies of their schedules, and those that may change."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from duetick import Context, Flow, Policies
from duetick.core.agents import AgentSchedules
from duetick.core.definitions import GivenPolicies
from duetick.core.flows import Flows
from duetick.domain.creation import Repeatable
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import Delivery, Overlap, Retry
from duetick.domain.schedule import Json, Record, Schedule
from duetick.testing import Stage, fire

DAILY: dict[str, Any] = {"cron": "@daily"}
ONCE = Delivery.EFFECTIVELY_ONCE
LEAST = Delivery.AT_LEAST_ONCE


def nothing(_given: object, _ctx: Context) -> None:
    """An action that does nothing."""


def shop() -> Flow:
    """Return a flow with each kind of promise."""
    flow = Flow("shop", policies={"overlap": "wait"}, may_change=("overlap",))
    flow.action("plain")(nothing)
    flow.action("pay", transactional=True)(nothing)
    flow.action(
        "mail",
        policies={"delivery": "at_least_once", "retry": {"attempts": 3}, "priority": 5},
        may_change=("retry",),
    )(nothing)
    return flow


def mine(stage: Stage) -> AgentSchedules:
    """Return the schedules of a user."""
    return stage.schedules(flow="shop")


def offered(stage: Stage) -> list[dict[str, Json]]:
    """Return the actions that a user may schedule."""
    return [one for one in mine(stage).actions() if isinstance(one, dict)]


def test_d09_a_schedule_has_the_policies_of_its_action_and_of_its_flow() -> None:
    with Stage(shop()) as stage:
        made = mine(stage).create("m", action="mail", **DAILY).policies
    assert made == Policies(
        delivery=LEAST, retry=Retry(attempts=3), priority=5, overlap=Overlap.WAIT
    )


def test_d09_a_transactional_action_is_effectively_once() -> None:
    with Stage(shop()) as stage:
        assert mine(stage).create("p", action="pay", **DAILY).policies.delivery is ONCE


def test_d09_a_transactional_action_may_say_otherwise() -> None:
    flow = Flow("shop")
    flow.action("pay", transactional=True, policies={"delivery": "at_least_once"})(nothing)
    flow.action("tip", transactional=True, may_change=("delivery",))(nothing)
    often = {"delivery": "at_least_once"}
    with Stage(flow) as stage:
        assert mine(stage).create("p", action="pay", **DAILY).policies.delivery is LEAST
        assert mine(stage).create("t", action="tip", **DAILY).policies.delivery is ONCE
        changed = mine(stage).create("u", action="tip", **DAILY, policies=often)
        assert changed.policies.delivery is LEAST


def test_d09_what_an_action_fixes_is_named_with_what_may_be_changed() -> None:
    once = {"delivery": "at_most_once", "priority": 9}
    with Stage(shop()) as stage, pytest.raises(InvalidSchedule) as refused:
        mine(stage).create("m", action="mail", **DAILY, policies=once)
    free = (
        "retry, overlap, misfire, grace, catchUp, longestLateness, spread, gap, repeat, timeout, "
        "startsAt, endsAt, maxRuns, afterCompletion, pauseAfter, onFailure"
    )
    assert [str(flaw) for flaw in refused.value.flaws] == [
        f"policies.{name}: expected {declared}, which 'mail' declares, got {got}; leave it out. "
        f"Its schedules may change {free}."
        for name, declared, got in (
            ("delivery", '"at_least_once"', '"at_most_once"'),
            ("priority", "5", "9"),
        )
    ]


@pytest.mark.parametrize(
    "policies",
    [
        {"retry": {"first": 20}, "catchUp": 3, "endsAt": "2027-01-01T00:00:00Z"},
        {"retry": {"first": 20}, "catch_up": 3, "ends_at": 1_798_761_600_000},
        Policies(retry=Retry(first=20), catch_up=3, ends_at=1_798_761_600_000),
    ],
)
def test_d09_an_agent_gives_policies_as_json_or_as_python_has_them(
    policies: GivenPolicies,
) -> None:
    with Stage(shop()) as stage:
        made = mine(stage).create("m", action="mail", **DAILY, policies=policies).policies
    assert (made.retry, made.catch_up) == (Retry(attempts=3, first=20), 3)
    assert (made.ends_at, made.delivery) == (1_798_761_600_000, LEAST)


def test_a_repeated_creation_is_told_as_it_was_made_after_a_default_changed() -> None:
    asked = Repeatable("order-7", "what was asked", 10**15)
    later = Flow("shop", policies={"priority": 9})
    later.action("mail")(nothing)
    with Stage(shop()) as stage:
        before = mine(stage).schedules
        after = replace(before, flows=Flows({"shop": later}))
        wanted = Schedule(before.user_id, "m", "@daily", "shop", "mail")
        first = before.create(wanted, asked)
        assert after.create(wanted, asked).policies == first.policies
        assert after.create(replace(wanted, key="n")).policies.priority == 9


def patient() -> Flow:
    """Return a flow whose action waits for two hours and more."""
    flow = Flow("shop")
    waits = {"delivery": "at_least_once", "retry": {"first": 7_200, "longest": 9_000}}
    flow.action("mail", policies=waits, may_change=("retry",))(nothing)
    return flow


@pytest.mark.parametrize("given", [{"retry": {"first": 8_000}}, Policies(retry=Retry(first=8_000))])
def test_j06_a_change_of_a_declared_retry_is_checked_with_what_it_leaves(
    given: GivenPolicies,
) -> None:
    with Stage(patient()) as stage:
        made = mine(stage).create("m", action="mail", **DAILY, policies=given)
        assert made.policies.retry == Retry(first=8_000, longest=9_000)


@pytest.mark.parametrize(
    ("retry", "says"),
    [
        ({"first": 9_001}, "from 9001 to 86400, got 9000"),
        ({"longest": 7_199}, "from 7200 to 86400, got 7199"),
    ],
)
def test_j06_a_change_of_a_declared_retry_that_contradicts_it_is_refused(
    retry: dict[str, int], says: str
) -> None:
    with (
        Stage(patient()) as stage,
        pytest.raises(InvalidSchedule, match=rf"policies.retry.longest: .* {says}"),
    ):
        mine(stage).create("m", action="mail", **DAILY, policies={"retry": retry})


def test_j06_half_a_retry_is_checked_with_the_usual_other_half() -> None:
    late = {"retry": {"first": 7_200}, "grace": -1}
    with Stage(shop()) as stage, pytest.raises(InvalidSchedule) as refused:
        mine(stage).create("m", action="plain", **DAILY, policies=late)
    assert [flaw.path[-1] for flaw in refused.value.flaws] == ["grace", "longest"]


def test_j06_a_declared_retry_is_whole() -> None:
    flow = Flow("shop")
    with pytest.raises(InvalidSchedule, match=r"longest: .* from 7200 to 86400, got 3600"):
        flow.action("mail", policies={"retry": {"first": 7_200}})(nothing)


@pytest.mark.parametrize(
    ("policies", "says"),
    [
        ({"deliverry": "at_least_once"}, r"policies.deliverry: is not known; known are delivery,"),
        ({"delivery": "twice"}, r"policies.delivery: expected one of at_most_once, at_least_once"),
        ({"retry": 5}, r"policies.retry: expected an object, got a number"),
        ({"retry": {"attemps": 5}}, r"policies.retry.attemps: is not known; known are backoff"),
        ({"startsAt": "soon"}, r"policies.startsAt: expected a time like 2026-12-01T09:00:00Z"),
        ("often", r"policies: expected an object, got text"),
        ({"retry": {"first": 900, "longest": 60}}, r"policies.retry.longest: expected a whole"),
        (
            {"max_runs": 1, "maxRuns": 5},
            r"policies.maxRuns: is given twice, as max_runs and maxRuns; leave one of them out",
        ),
    ],
)
def test_d09_policies_that_cannot_be_read_are_told(policies: GivenPolicies, says: str) -> None:
    with Stage(shop()) as stage, pytest.raises(InvalidSchedule, match=says):
        mine(stage).create("m", action="mail", **DAILY, policies=policies)


def test_d09_a_choice_that_contradicts_a_default_is_told_with_the_rest() -> None:
    flow = Flow("shop")
    usual = {"retry": {"first": 1_800}}
    flow.action("mail", policies=usual, may_change=("retry",))(nothing)
    short = {"retry": {"longest": 60}}
    with Stage(flow) as stage, pytest.raises(InvalidSchedule) as refused:
        mine(stage).create("m", action="mail", cron="75 * * * *", policies=short)
    assert [flaw.name for flaw in refused.value.flaws] == ["policies.retry.longest", "cron"]


def deployed_again(stage: Stage, flow: Flow, user: str = "ann") -> AgentSchedules:
    """Return a user's schedules after a deployment with another flow, on the same store."""
    return Stage(flow, store=stage.store, clock=stage.clock).schedules(user, flow="shop")


def older() -> Flow:
    """Return the flow before its actions declared anything."""
    flow = Flow("shop")
    for name in ("plain", "pay", "mail"):
        flow.action(name)(nothing)
    return flow


def test_d09_a_schedule_that_is_there_keeps_its_policies_through_every_change_of_the_rest() -> None:
    with Stage(older()) as stage:
        before = mine(stage).create("p", action="pay", **DAILY).policies
        again = deployed_again(stage, shop())
        again.pause("p", until=stage.clock.now + 1_000)
        again.pause("p")
        again.resume("p")
        assert kept(again).policies == before
        changed = again.schedules.change("p", lambda found: replace(found, cron="@hourly"))
    assert (changed.cron, changed.policies) == ("@hourly", before)


def kept(schedules: AgentSchedules) -> Record:
    """Return the schedule `p`."""
    found = schedules.get("p")
    assert found
    return found


def test_d09_a_schedule_takes_new_defaults_as_it_is_put_again() -> None:
    with Stage(older()) as stage:
        mine(stage).create("p", action="pay", **DAILY)
        again = deployed_again(stage, shop())
        assert again.replace("p", action="pay", **DAILY).policies.delivery is ONCE


def test_d09_a_schedule_may_be_put_again_with_the_policies_that_it_has() -> None:
    with Stage(older()) as stage:
        before = mine(stage).create("p", action="pay", **DAILY).policies
        again = deployed_again(stage, shop())
        assert again.replace("p", action="pay", **DAILY, policies=before).policies == before
        with pytest.raises(InvalidSchedule, match="which 'pay' declares"):
            again.replace("p", action="pay", **DAILY, policies={"delivery": "at_least_once"})
        with pytest.raises(InvalidSchedule, match="which 'mail' declares"):
            again.replace("p", action="mail", **DAILY, policies=before)


def test_d09_an_action_that_is_tried_again_makes_the_same_schedule_once() -> None:
    with Stage(shop()) as stage:
        first = mine(stage).create("m", action="mail", **DAILY)
        assert mine(stage).create("m", action="mail", **DAILY) == first


def test_m06_a_static_schedule_has_the_defaults_of_its_action() -> None:
    flow = Flow("shop", users=False)
    flow.schedule("nightly", cron="@daily", action="pay", policies={"priority": 3})
    flow.action("pay", transactional=True)(nothing)
    (static,) = Flows({"shop": flow}).static()
    assert (static.policies.delivery, static.policies.priority) == (ONCE, 3)
    fired = fire(flow, "nightly").occurrence
    assert fired.policies.delivery is ONCE


def test_m06_a_static_schedule_that_changes_what_its_action_fixes_is_named() -> None:
    flow = shop()
    flow.schedule("nightly", cron="@daily", action="mail", policies={"priority": 6})
    with pytest.raises(InvalidSchedule, match=r"shop/nightly: policies.priority: expected 5"):
        Flows({"shop": flow})


def test_fire_takes_policies() -> None:
    made = fire(shop(), action="mail", policies={"retry": {"attempts": 2}}).schedules["fired"]
    assert (made.policies.retry.attempts, made.policies.priority) == (2, 5)
    with pytest.raises(InvalidSchedule, match="which 'mail' declares"):
        fire(shop(), action="mail", policies=Policies(priority=6))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"policies": {"prio": 5}}, r"shop.x: policies.prio: is not known; known are delivery"),
        ({"policies": {"priority": 500}}, r"shop.x: policies.priority: expected a whole number"),
        ({"policies": {"priority": 5}, "may_change": "priority"}, r"such as \('priority',\)"),
        ({"policies": {"priority": 5}, "may_change": ["prio"]}, r"prio: no policy; the policies"),
        ({"may_change": ["priority"]}, r"priority: not declared, so that every schedule may"),
        ({"policies": {"delivery": "effectively_once"}}, r"shop.x: .*'x' cannot keep this promise"),
    ],
)
def test_d09_a_declaration_that_cannot_hold_is_refused_as_its_module_is_imported(
    given: Mapping[str, Any], says: str
) -> None:
    with pytest.raises(InvalidSchedule, match=says):
        Flow("shop").action("x", **given)(nothing)


def test_d09_a_flow_cannot_promise_what_its_action_cannot_keep() -> None:
    flow = Flow("shop", policies={"delivery": "effectively_once"})
    flow.action("pay", transactional=True)(nothing)
    with pytest.raises(InvalidSchedule, match="'mail' cannot keep this promise"):
        flow.action("mail")(nothing)


def test_v02_the_schema_of_an_agents_tool_names_only_what_it_may_change() -> None:
    with Stage(shop()) as stage:
        schema: Any = mine(stage).schema("mail")
        known = {one["action"]: one for one in offered(stage)}
    policies = schema["properties"]["policies"]["properties"]
    assert {"delivery", "priority"}.isdisjoint(policies)
    assert policies["overlap"] == {
        "type": "string",
        "enum": ["skip", "allow", "wait"],
        "default": "wait",
    }
    assert policies["retry"]["default"]["attempts"] == 3
    assert list(policies) == known["mail"]["mayChange"]
    assert schema["properties"]["policies"]["additionalProperties"] is False


def test_v02_a_tool_for_an_action_that_is_not_for_users_is_refused() -> None:
    flow = shop()
    flow.action("audit", users=False)(nothing)
    with Stage(flow) as stage:
        assert [one["action"] for one in offered(stage)] == ["mail", "pay", "plain"]
        with pytest.raises(InvalidSchedule, match=r"shop\.audit is none that users may schedule"):
            mine(stage).schema("audit")


@pytest.mark.parametrize("action", [[], {}, None, 7, "pa"])
def test_v02_a_tool_for_no_action_at_all_is_refused(action: str) -> None:
    """An agent's model may make up any name."""
    with Stage(shop()) as stage, pytest.raises(InvalidSchedule, match=r"these are: shop\.mail, "):
        mine(stage).schema(action)
