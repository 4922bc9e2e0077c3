"""A flow is tested in three lines: the promises of `fire` and the stage to authors of flows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from duetick import Context, Flow
from duetick.core.agents import AgentSchedules
from duetick.domain.errors import InvalidSchedule, NotFound, QuotaReached, VersionConflict
from duetick.domain.schedule import Principal, Schedule
from duetick.testing import Stage, fire
from flows.alerts import alerts
from flows.assistant import assistant
from flows.digests import digests

DAY = 86_400_000
MORNING = 1_796_461_200_000
"""2026-12-05T09:00:00Z"""


def test_a_digest_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "duetick.flows.digests")
    fired = fire(digests, action="send_digest", input={"topic": "news", "email": "a@example.org"})
    assert (fired.state, fired.reason) == ("succeeded", "fired")
    assert "digest of news to a@example.org" in caplog.text


def test_input_that_does_not_fit_is_refused_as_by_the_api() -> None:
    with pytest.raises(InvalidSchedule, match=r"ann@example.org"):
        fire(digests, action="send_digest", input={"topic": "news", "email": "ann"})


def test_a_static_schedule_fires_as_its_flow(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "duetick.flows.digests")
    assert fire(digests, "nightly").state == "succeeded"
    assert "cleaning up for flow:digests" in caplog.text


def test_what_an_action_raises_is_raised() -> None:
    flow = Flow("broken")

    @flow.action("fail")
    def fail(_: object, __: Context) -> None:
        raise KeyError("no such record")

    with pytest.raises(KeyError, match="no such record"):
        fire(flow, action="fail")


def test_what_an_async_action_raises_is_raised() -> None:
    flow = Flow("broken")

    @flow.action("fail")
    async def fail(_: object, __: Context) -> None:
        raise KeyError("no such record")

    with pytest.raises(KeyError, match="no such record"):
        fire(flow, action="fail")


@pytest.mark.parametrize("raises", [False, True])
def test_a_background_action_runs_too(raises: bool) -> None:
    flow, ran = Flow("reports"), []

    @flow.action("build", background=True)
    def build(_: object, ctx: Context) -> None:
        ran.append(ctx.schedule_id)
        if raises:
            raise KeyError("no such record")

    if raises:
        with pytest.raises(KeyError, match="no such record"):
            fire(flow, action="build")
    else:
        assert fire(flow, action="build").state == "succeeded"
    assert ran == ["ann/fired"]


def test_a_flows_hook_sees_each_delivery() -> None:
    flow, seen = Flow("watched"), []
    flow.action("pass", target=lambda _given, _ctx: None)
    flow.on_dispatch(lambda occurrence, status: seen.append((occurrence.key, status)))
    fire(flow, action="pass")
    assert seen == [("fired", 202)]


@pytest.mark.parametrize(
    ("cron", "action", "says"),
    [
        ("75 * * * *", "clean", "mail/nightly: minute: '75'"),
        ("@daily", "cleen", "mail/nightly: .*cleen"),
    ],
)
def test_a_static_schedule_that_cannot_be_is_named(cron: str, action: str, says: str) -> None:
    flow = Flow("mail")
    flow.action("clean", target=lambda _given, _ctx: None)

    def deploy() -> None:
        flow.schedule("nightly", cron=cron, action=action)
        Stage(flow)

    with pytest.raises(InvalidSchedule, match=says):
        deploy()


def test_an_agent_makes_a_follow_up_for_its_user_once() -> None:
    with Stage(assistant) as stage:
        mine = stage.schedules("bob", flow="assistant")
        for key in ("first", "again"):
            made = mine.create(
                key,
                cron="0 9 * * *",
                action="work",
                input={"case": 41, "instructions": "ask for the invoice"},
            )
            stage.fire(made)
        made_by = {one.key: one for one in mine.list()}
        follow_up = made_by["followup-41"]
        assert (follow_up.user_id, follow_up.input) == ("bob", {"case": 41})
        assert set(made_by) == {"first", "again", "followup-41"}
        assert list(stage.schedules("ann").list()) == []


def test_an_agent_may_not_change_what_runs_as_another_than_its_user() -> None:
    flow = Flow("club")
    flow.action("tell", target=lambda _given, _ctx: None)

    @flow.action("rewrite")
    def rewrite(_: object, ctx: Context) -> None:
        ctx.schedules.replace("news", cron="@daily", action="tell", input="everybody out")

    with Stage(flow) as stage:
        club = Principal("ann", org_id="garden-club")
        made = stage.put(Schedule("ann", "news", "@daily", "club", "tell", principal=club))
        agent = stage.schedules(flow="club").create("agent", cron="0 9 * * *", action="rewrite")
        with pytest.raises(InvalidSchedule, match="the application named"):
            stage.fire(agent)
        assert stage.schedules().get("news") == made


FOLLOW_UP: dict[str, Any] = {"cron": "@daily", "action": "follow_up", "input": {"case": 1}}


@pytest.mark.parametrize("there", [True, False])
def test_an_agent_may_not_say_as_whom_a_schedule_runs(there: bool) -> None:
    with Stage(assistant) as stage:
        mine = stage.schedules(flow="assistant")
        if there:
            mine.create("k", **FOLLOW_UP)
        before = mine.get("k")
        wanted = Schedule("ann", "k", "@hourly", "assistant", "follow_up", input={"case": 1})
        for act in (mine.schedules.create, mine.schedules.replace):
            with pytest.raises(InvalidSchedule, match="principal: is named by the application"):
                act(replace(wanted, principal=Principal("bob")))
        assert mine.get("k") == before


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"principal": Principal("bob")}, "principal: is not a field; besides cron and action: "),
        ({"user_id": "bob"}, "user_id: is not a field"),
        ({"external_id": "x"}, "external_id: is not a field"),
        ({"policies": {"deliverry": "at_least_once"}}, "policies.deliverry: is not known; known"),
        ({"policies": 5}, "policies: expected an object, got a number"),
        ({"labels": ["a"]}, "labels: expected an object, got a list"),
        ({"input": object()}, "input: is not JSON"),
    ],
)
@pytest.mark.parametrize("verb", [AgentSchedules.create, AgentSchedules.replace])
def test_what_a_model_made_up_of_an_agents_arguments_is_refused_with_what_is_right(
    verb: Callable[..., Schedule], more: dict[str, object], says: str
) -> None:
    with Stage(assistant) as stage:
        mine = stage.schedules(flow="assistant")
        with pytest.raises(InvalidSchedule, match=says):
            verb(mine, "k", **FOLLOW_UP | more)
        assert list(mine.list()) == []


def test_an_agent_is_told_all_that_is_wrong_at_once() -> None:
    with Stage(assistant) as stage:
        mine = stage.schedules(flow="assistant")
        wrong: dict[str, Any] = {"user_id": "bob", "labels": {"a": 1}, "timezone": "PST"}
        with pytest.raises(InvalidSchedule) as refused:
            mine.create(" ", cron="75 * * * *", action="nothing", **wrong)
    found = {flaw.name: flaw.code for flaw in refused.value.flaws}
    assert found == {
        "key": "blank",
        "cron": "invalid_cron",
        "timezone": "unknown_timezone",
        "action": "unknown_action",
        "labels.a": "wrong_type",
        "user_id": "unknown_field",
    }
    assert "did you mean 'America/Los_Angeles'?" in str(refused.value)


def test_an_agents_input_is_the_same_when_it_is_said_again() -> None:
    """JSON has lists for tuples, and texts for the keys of objects."""
    flow = Flow("any")
    flow.action("act", target=lambda _given, _ctx: None)
    given: dict[str, Any] = {"cron": "@daily", "action": "act", "input": {1: ("a", "b")}}
    with Stage(flow) as stage:
        mine = stage.schedules(flow="any")
        made = mine.create("k", **given)
        assert made.input == {"1": ["a", "b"]}
        assert mine.create("k", **given) == made


def test_an_agent_pauses_until_an_instant_of_either_form() -> None:
    with Stage(assistant) as stage:
        mine = stage.schedules(flow="assistant")
        mine.create("k", **FOLLOW_UP)
        ends = [mine.pause("k", until=each).pause for each in (MORNING, "2026-12-05T09:00:00Z")]
        assert [end and end.until for end in ends] == [MORNING] * 2
        with pytest.raises(InvalidSchedule, match="until: expected a time like"):
            mine.pause("k", until="tomorrow")


def test_an_agent_ends_its_follow_ups() -> None:
    with Stage(assistant) as stage:
        mine = stage.schedules(flow="assistant")
        made = mine.create("followup-42", cron="0 9 * * *", action="follow_up", input={"case": 42})
        assert stage.fire(made).schedules == {}


def test_an_alert_told_waits_a_day() -> None:
    with Stage(alerts) as stage:
        alert = stage.schedules(flow="alerts").create(
            "alert-turbine",
            cron="0 * * * *",
            action="check",
            input={"record": "turbine", "above": 5},
        )
        told = stage.fire(alert).schedules["alert-turbine"]
        assert told.pause
        assert told.pause.note == "told"
        assert stage.tick(DAY - 1).claimed == 0
        assert stage.tick(60 * 60_000).claimed == 1


@pytest.mark.parametrize(
    ("cron", "says"), [("75 * * * *", "75"), ("rate(10 seconds)", "look-ahead"), ("@never", "@")]
)
def test_an_agents_schedule_is_checked_like_a_users(cron: str, says: str) -> None:
    with Stage(assistant) as stage, pytest.raises(ValueError, match=says):
        stage.schedules(flow="assistant").create(
            "k", cron=cron, action="follow_up", input={"case": 1}
        )


def test_an_agent_is_held_to_the_users_quota() -> None:
    with Stage(assistant) as stage:
        mine = stage.schedules(flow="assistant")
        for number in range(100):
            mine.create(f"k{number}", cron="@daily", action="follow_up", input={"case": number})
        with pytest.raises(QuotaReached, match="100"):
            mine.create("k100", cron="@daily", action="follow_up", input={"case": 1})


@pytest.mark.parametrize("key", ["../bob/k", "", ".", "k/../../bob/k", "a\0b", "x" * 129])
def test_an_agents_key_leads_nowhere_else(key: str) -> None:
    with Stage(assistant) as stage, pytest.raises(ValueError, match=r"key|characters|part"):
        stage.schedules(flow="assistant").create(
            key, cron="@daily", action="follow_up", input={"case": 1}
        )


def test_an_agent_sees_none_of_anothers_under_a_name_like_theirs() -> None:
    with Stage(assistant) as stage:
        stage.schedules("bob", flow="assistant").create(
            "k", cron="@daily", action="follow_up", input={"case": 1}
        )
        mine = stage.schedules("ann", flow="assistant")
        assert [mine.get(key) for key in ("k", "bob/k", "K")] == [None] * 3
        assert not mine.delete("bob/k")
        with pytest.raises(NotFound):
            mine.pause("k")
        assert stage.schedules("bob").get("k")


def test_an_agent_does_not_overwrite_what_it_did_not_make() -> None:
    with Stage(assistant) as stage:
        mine = stage.schedules(flow="assistant")
        mine.create("k", cron="@daily", action="follow_up", input={"case": 1})
        with pytest.raises(VersionConflict):
            mine.create("k", cron="@daily", action="follow_up", input={"case": 2})
        assert mine.replace("k", cron="@daily", action="follow_up", input={"case": 2}).input == {
            "case": 2
        }
        assert mine.delete("k")
        assert not mine.delete("k")
        assert mine.get("k") is None
