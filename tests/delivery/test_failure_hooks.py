"""T-04: when an occurrence is dead, the action that its schedule names hears of it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
from duetick import ActionFailed, Context, FailureInput, Flow
from duetick.core.definitions import GivenPolicies
from duetick.core.flows import Flows
from duetick.core.schedules import UserSchedules
from duetick.core.static import register
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import Policies
from duetick.domain.rows import new_occurrence
from duetick.domain.schedule import IndexRow, Json, Occurrence, Principal, Schedule
from duetick.domain.states import Reason, State
from duetick.testing import Stage

MINUTE = 60_000
HOUR = 60 * MINUTE
TOLD = Policies(on_failure="tell")
HOURLY = Schedule("ann", "digest", "0 * * * *", "mail", "send", policies=TOLD)
RAISED = "no answer from db.internal, password=hunter2"


def fails(_given: Json, _ctx: Context) -> None:
    """An action that always raises."""
    raise RuntimeError(RAISED)


def nothing(_given: Json, _ctx: Context) -> None:
    """An action that does nothing."""


@dataclass
class Office:
    """A flow whose action fails, and whose hooks keep their inputs."""

    act: Callable[[Json, Context], None] = fails
    declared: GivenPolicies | None = None
    told: list[tuple[FailureInput, Context]] = field(default_factory=list)
    sent: list[tuple[object, Context]] = field(default_factory=list)

    @property
    def flow(self) -> Flow:
        """The flow, anew."""
        flow = Flow("mail")
        flow.action("send", policies=self.declared)(self.act)

        @flow.action("tell")
        def tell(failed: FailureInput, ctx: Context) -> None:
            self.told.append((failed, ctx))

        @flow.action("tell_us", users=False)
        def tell_us(failed: FailureInput, ctx: Context) -> None:
            self.told.append((failed, ctx))

        @flow.action("tell_long", background=True)
        def tell_long(failed: FailureInput, ctx: Context) -> None:
            self.told.append((failed, ctx))

        flow.action("post", target=lambda given, ctx: self.sent.append((given, ctx)))
        flow.action("fails_too")(fails)
        return flow

    def failed(self, schedule: Schedule = HOURLY, ticks: int = 1) -> list[Occurrence]:
        """Fire the schedule once, tick some more, and return its history, the oldest first."""
        with Stage(self.flow) as stage:
            with suppress(RuntimeError, ActionFailed):
                stage.fire(schedule)
            for _ in range(ticks):
                with suppress(RuntimeError):
                    stage.tick(HOUR // 2 if ticks > 1 else 0)
            found = stage.store.ledger.find(schedule.user_id, schedule.key)
            return sorted(found, key=lambda one: (one.created_at, one.origin != "schedule"))

    def one(self) -> tuple[FailureInput, Context]:
        """Return the input and the context of the only hook."""
        (only,) = self.told
        return only


def named(hook: str, schedule: Schedule = HOURLY) -> Schedule:
    """Return the schedule with another hook."""
    return replace(schedule, policies=replace(schedule.policies, on_failure=hook))


def test_t04_a_hook_is_told_which_occurrence_is_dead_and_why() -> None:
    office = Office()
    dead, hook = office.failed()
    failed, ctx = office.one()
    assert failed == FailureInput(
        schedule="ann/digest",
        user="ann",
        key="digest",
        flow="mail",
        action="send",
        occurrence=dead.id,
        origin="schedule",
        time="2026-12-01T09:00:00Z",
        reason="failed",
        attempts=1,
        at="2026-12-01T09:00:00Z",
        error="The action failed.",
    )
    assert (dead.state, hook.state) == (State.DEAD, State.SUCCEEDED)
    assert (ctx.origin, ctx.occurrence_id) == (hook.origin, hook.id)
    assert (ctx.principal, ctx.nominal_at) == (Principal("ann"), dead.nominal_at)


def test_j11_a_user_reads_what_the_action_chose_to_say() -> None:
    def says(_given: Json, _ctx: Context) -> None:
        raise ActionFailed("Your bank did not answer.") from RuntimeError(RAISED)

    office = Office(act=says)
    office.failed()
    assert office.one()[0].error == "Your bank did not answer."


def test_j11_an_action_of_the_application_reads_what_was_raised_without_secrets() -> None:
    office = Office(declared={"on_failure": "tell_us"})
    office.failed(replace(HOURLY, policies=Policies()))
    error = office.one()[0].error or ""
    assert "no answer from db.internal" in error
    assert "hunter2" not in error
    assert office.one()[1].principal == Principal("ann")


def test_j11_no_secret_of_the_input_reaches_a_hook() -> None:
    def leaks(given: Json, _ctx: Context) -> None:
        raise ActionFailed(f"could not log in with {given}")

    office = Office(act=leaks)
    office.failed(replace(HOURLY, input={"token": "s3same-canary"}))
    assert "s3same-canary" not in (office.one()[0].error or "")


def test_t04_a_target_is_a_hook_as_any_action_is() -> None:
    office = Office()
    dead, _ = office.failed(named("post"))
    (given, ctx), *_ = office.sent
    assert isinstance(given, dict)
    assert (given["occurrence"], given["reason"]) == (dead.id, "failed")
    assert ctx.schedule_id == "ann/digest"


def test_t04_a_hook_may_run_in_the_background() -> None:
    office = Office()
    _, hook = office.failed(named("tell_long"))
    assert (office.one()[0].reason, hook.state) == ("failed", State.SUCCEEDED)


def test_t04_a_hook_that_fails_is_tried_five_times_and_nobody_is_told() -> None:
    history = Office().failed(named("fails_too"), ticks=12)
    first = [one for one in history if one.nominal_at == history[0].nominal_at]
    assert [(one.state, one.attempts) for one in first] == [(State.DEAD, 1), (State.DEAD, 5)]


def test_t04_what_is_rejected_is_told_too() -> None:
    office = Office()
    flow = office.flow
    with Stage(flow) as stage:
        made = stage.put(HOURLY)
        broken = replace(made, action="gone", policies=TOLD)
        stage.store.schedules.put(broken, now=stage.clock())
        stage.tick(HOUR)
        stage.tick()
    assert (office.one()[0].reason, office.one()[0].action) == ("rejected", "gone")
    assert "has no action 'gone'" in (office.one()[0].error or "")


def test_i13_a_cron_that_cannot_be_read_is_told() -> None:
    office = Office()
    with Stage(office.flow) as stage:
        unreadable = replace(stage.put(HOURLY), cron="nonsense")
        row = stage.store.index.get("ann", "digest")
        assert row is not None
        stage.store.index.upsert(replace(row, cron=unreadable.cron))
        stage.tick(HOUR)
        stage.tick()
    assert office.one()[0].reason == "poisoned"
    assert "nonsense" in (office.one()[0].error or "")


def test_m06_a_static_schedule_tells_as_its_flow_and_not_with_its_own_input() -> None:
    office = Office()
    flow = office.flow
    flow.schedule(
        "nightly", cron="0 * * * *", action="send", input=lambda ctx: ctx.cron, policies=TOLD
    )
    with Stage(flow) as stage:
        register(stage.store, Flows({"mail": flow}).static(), "here")
        with suppress(RuntimeError):
            stage.tick(HOUR)
        stage.tick()
    failed, ctx = office.one()
    assert (failed.schedule, failed.user, failed.key) == ("nightly", "", "mail/nightly")
    assert ctx.principal == Principal("flow:mail")


def test_d06_a_run_by_hand_that_fails_is_told_by_the_next_tick() -> None:
    office = Office()
    with Stage(office.flow) as stage:
        made = stage.put(HOURLY)
        now = stage.clock()
        asked = new_occurrence(made, now, "run:1", now)
        stage.store.ledger.bring(asked, now=now)
        with suppress(RuntimeError):
            stage.tick(3 * MINUTE)
        stage.tick()
    assert office.one()[0].origin == "run:1"


def test_d09_a_hook_that_left_the_deployment_is_rejected_and_tells_nobody() -> None:
    office = Office()
    with Stage(office.flow) as stage:
        stage.store.schedules.put(named("gone"), now=stage.clock())
        with suppress(RuntimeError):
            stage.tick(HOUR)
        stage.tick(HOUR // 2)
        of_nine = [o for o in stage.store.ledger.find("ann", "digest") if o.origin != "schedule"]
    assert [(one.reason, one.attempts) for one in of_nine] == [(Reason.REJECTED, 1)]


def test_m05_a_row_without_a_record_has_no_hook() -> None:
    office = Office()
    flow = office.flow
    flow.resolver(lambda _id, _ctx: HOURLY)
    with Stage(flow) as stage:
        at = stage.clock()
        stage.store.index.upsert(IndexRow("ann", "digest", "0 * * * *", None, at, policies=TOLD))
        with suppress(RuntimeError):
            stage.tick()
        stage.tick(MINUTE)
        assert [one.origin for one in stage.store.ledger.find("ann")] == ["schedule"]
    assert office.told == []


def test_l01_a_schedule_that_is_deleted_at_its_end_tells_first() -> None:
    office = Office()
    once = replace(TOLD, max_runs=1, after_completion="delete")
    with Stage(office.flow) as stage:
        with suppress(RuntimeError):
            stage.fire(replace(HOURLY, policies=once))
        stage.tick()
        assert stage.store.schedules.get("ann", "digest") is None
    assert office.one()[0].reason == "failed"


# Who may name which hook.


def users(stage: Stage, flow: Flow, *, operator: bool = False) -> UserSchedules:
    """Return the schedules of ann, as she or an operator reaches them."""
    return UserSchedules(
        stage.store, Flows({"mail": flow}), "ann", stage.clock, owns_names=operator
    )


@pytest.mark.parametrize(
    ("hook", "code", "said"),
    [
        ("gone", "unknown_action", "its flow has no action 'gone'; its other actions: "),
        ("send", "not_one_of", "is the schedule's own action; name another one of its flow"),
        ("tell_us", "not_yours", "is not for users"),
        ("no name!", "invalid_name", "expected a letter"),
        ("counts", "wrong_type", "does not take what a failure hook is given"),
    ],
)
def test_d09_a_hook_that_cannot_be_is_refused(hook: str, code: str, said: str) -> None:
    flow = Office().flow

    @flow.action("counts")
    def counts(_given: int, _ctx: Context) -> None:
        """Takes a number."""

    with Stage(flow) as stage, pytest.raises(InvalidSchedule, match=said) as refusal:
        users(stage, flow).create(named(hook))
    (flaw,) = refusal.value.flaws
    assert (flaw.code, flaw.path) == (code, ("policies", "on_failure"))


def test_d09_the_names_of_the_applications_actions_are_not_told_to_users() -> None:
    flow = Office().flow
    with Stage(flow) as stage, pytest.raises(InvalidSchedule) as refusal:
        users(stage, flow).create(named("gone"))
    assert "tell_us" not in str(refusal.value)


def test_d09_a_declared_hook_may_be_the_applications() -> None:
    office = Office(declared={"on_failure": "tell_us"})
    flow = office.flow
    with Stage(flow) as stage:
        made = users(stage, flow).create(replace(HOURLY, policies=Policies(on_failure="tell_us")))
        assert made.policies.on_failure == "tell_us"
        with pytest.raises(InvalidSchedule, match="which 'send' declares") as refusal:
            users(stage, flow).create(replace(named("tell"), key="other"))
    assert refusal.value.flaws[0].code == "not_yours"


def test_d09_what_an_operator_names_stays_when_its_user_changes_the_rest() -> None:
    office = Office()
    flow = office.flow
    with Stage(flow) as stage:
        users(stage, flow, operator=True).create(named("tell_us"))
        own = users(stage, flow)
        own.change("digest", lambda found: replace(found, cron="30 * * * *"))
        with suppress(RuntimeError):
            stage.tick(HOUR)
        stage.tick()
        with pytest.raises(InvalidSchedule, match="is not for users"):
            own.change("digest", lambda found: replace(found, action="fails_too"))
    assert office.one()[0].reason == "failed"


def test_d09_an_operator_who_adds_a_hook_vouches_for_it() -> None:
    office = Office()
    flow = office.flow
    with Stage(flow) as stage:
        users(stage, flow).create(replace(HOURLY, policies=Policies()))
        operator = users(stage, flow, operator=True)
        operator.change("digest", lambda found: replace(found, policies=named("tell_us").policies))
        with suppress(RuntimeError):
            stage.tick(HOUR)
        stage.tick()
    assert office.one()[0].reason == "failed"


def test_d09_a_hook_that_is_no_longer_for_users_is_rejected() -> None:
    office = Office()
    flow = office.flow
    with Stage(flow) as stage:
        stage.store.schedules.put(named("tell_us"), now=stage.clock())
        with suppress(RuntimeError):
            stage.tick(HOUR)
        stage.tick()
        (hook,) = [one for one in stage.store.ledger.find("ann") if one.origin != "schedule"]
    assert (hook.reason, office.told) == (Reason.REJECTED, [])


def test_d09_a_flows_hook_is_that_of_all_its_other_actions() -> None:
    flow = Flow("shop", policies={"on_failure": "tell"})
    flow.action("tell")(nothing)
    flow.action("pay")(nothing)
    declared = {name: one.declared.policies.on_failure for name, one in flow.actions.items()}
    assert declared == {"tell": None, "pay": "tell"}
    Flows({"shop": flow})


@pytest.mark.parametrize(
    ("hook", "said"), [("pay", "the schedule's own action"), ("gone", "has no action 'gone'")]
)
def test_d09_a_deployment_that_declares_a_wrong_hook_is_refused(hook: str, said: str) -> None:
    flow = Flow("shop")
    flow.action("pay", policies={"on_failure": hook})(nothing)
    with pytest.raises(InvalidSchedule, match=rf"shop\.pay.*{said}"):
        Flows({"shop": flow})


def test_d09_a_static_schedule_with_a_wrong_hook_is_refused() -> None:
    flow = Flow("shop")
    flow.action("pay")(nothing)
    flow.schedule("nightly", cron="@daily", action="pay", policies={"on_failure": "gone"})
    with pytest.raises(InvalidSchedule, match=r"shop/nightly.*has no action 'gone'"):
        Flows({"shop": flow})


def test_d09_an_agents_tool_names_the_actions_that_may_be_its_hook() -> None:
    with Stage(Office().flow) as stage:
        schema = stage.schedules(flow="mail").schema("send")
    properties = schema["properties"]
    assert isinstance(properties, dict)
    policies = properties["policies"]
    assert isinstance(policies, dict)
    known = policies["properties"]
    assert isinstance(known, dict)
    assert known["onFailure"] == {
        "type": ["string", "null"],
        "enum": ["fails_too", "post", "tell", "tell_long", None],
        "default": None,
    }
