"""M-05: an index row that names no flow goes to the flow that knows it, or says why it cannot."""

from collections.abc import Callable
from typing import Any

import pytest
from duetick import Context, Flow
from duetick.core.store import Store
from duetick.domain.errors import ConfigurationError, InvalidSchedule
from duetick.domain.schedule import IndexRow, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.testing import FakeClock, Stage

from tests.delivery.scene import NINE

ROW = IndexRow("ann", "digest", "0 9 * * *", "Europe/Berlin", NINE)
"""The READMEs' own: five columns, and no record."""


def told(name: str = "mail", *, background: bool = False) -> tuple[Flow, list[Context]]:
    """Return a flow with one action, and the contexts of its runs."""
    flow, ran = Flow(name), list[Context]()
    flow.action("send", background=background)(lambda _given, ctx: ran.append(ctx))
    return flow, ran


def elsewhere(flow: Flow) -> Flow:
    """Return such a flow with a resolver: its definitions live in a table of the application's."""

    @flow.resolver
    def find(schedule_id: str, _ctx: object) -> Schedule:
        user_id, _, key = schedule_id.partition("/")
        return Schedule(user_id, key, "0 9 * * *", flow.name, "send")

    return flow


def fired(store: Store, *flows: Flow, row: IndexRow = ROW, row_flow: str = "") -> Occurrence:
    """Return the occurrence of a row that is due at nine, at its end."""
    with Stage(*flows, clock=FakeClock(NINE), store=store, row_flow=row_flow) as stage:
        store.index.upsert(row)
        assert stage.tick().claimed == 1
    (ended,) = store.ledger.find(row.user_id, row.key)
    return ended


def test_m05_a_row_without_a_flow_goes_to_the_one_flow_with_a_resolver(each_store: Store) -> None:
    flow, ran = told()
    ended = fired(each_store, elsewhere(flow), told("other")[0])
    assert (ended.state, ended.reason) == (State.SUCCEEDED, Reason.FIRED)
    assert [(ctx.schedule_id, ctx.principal.user_id) for ctx in ran] == [("ann/digest", "ann")]


@pytest.mark.parametrize("background", [False, True])
def test_m05_a_row_without_a_flow_runs_the_action_that_is_set(
    each_store: Store, background: bool
) -> None:
    flow, ran = told(background=background)
    ended = fired(each_store, flow, told("other")[0], row_flow="mail/send")
    assert (ended.state, ended.reason) == (State.SUCCEEDED, Reason.FIRED)
    (ctx,) = ran
    assert (ctx.cron, ctx.timezone, ctx.nominal_at) == (ROW.cron, ROW.timezone, NINE)
    assert ctx.principal.user_id == "ann"


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("resolved", [False, True])
def test_d10_a_row_of_the_applications_own_runs_what_is_not_for_users(
    each_store: Store, resolved: bool, background: bool
) -> None:
    flow, ran = Flow("mail", users=False), list[Context]()
    flow.action("send", background=background)(lambda _given, ctx: ran.append(ctx))
    if resolved:
        elsewhere(flow)
    ended = fired(each_store, flow, row_flow="" if resolved else "mail/send")
    assert (ended.state, ended.reason) == (State.SUCCEEDED, Reason.FIRED)
    assert [ctx.principal.user_id for ctx in ran] == ["ann"]


def test_d10_an_agent_of_such_a_row_is_its_users(store: Store) -> None:
    """The application vouches for the row, and not for the schedules that its action makes for the
    user.
    """
    flow = Flow("mail")
    flow.action("clean_up", users=False)(lambda _given, _ctx: None)

    @flow.action("send")
    def send(_given: object, ctx: Context) -> None:
        ctx.schedules.create("planted", cron="0 9 * * *", action="clean_up")

    with pytest.raises(InvalidSchedule, match="not for users"):
        fired(store, flow, row_flow="mail/send")


def test_m05_of_several_flows_with_a_resolver_the_one_that_is_set_is_asked(store: Store) -> None:
    flow, ran = told()
    other = elsewhere(told("other")[0])
    assert fired(store, other, elsewhere(flow), row_flow="mail").state is State.SUCCEEDED
    assert len(ran) == 1


@pytest.mark.parametrize(
    ("flows", "why"),
    [
        ([told("a")[0]], "no flow has one"),
        ([elsewhere(told("a")[0]), elsewhere(told("b")[0])], "several have one (a, b)"),
    ],
)
def test_m05_a_row_that_belongs_nowhere_ends_at_once_and_says_what_to_do(
    each_store: Store, flows: list[Flow], why: str
) -> None:
    ended = fired(each_store, *flows)
    assert (ended.state, ended.reason) == (State.DEAD, Reason.REJECTED)
    assert why in (ended.error or "")
    assert "DUETICK_ROW_FLOW" in (ended.error or "")


def test_m05_a_row_that_the_resolver_does_not_know_ends_as_deleted(store: Store) -> None:
    flow, _ = told()
    flow.resolver(lambda _id, _ctx: None)
    assert fired(store, flow).reason is Reason.SCHEDULE_DELETED


def test_m05_a_row_of_a_flow_is_not_another_flows(store: Store) -> None:
    flow, ran = told()
    row = IndexRow("ann", "digest", "0 9 * * *", None, NINE, flow="other")
    ended = fired(store, elsewhere(flow), row=row)
    assert (ended.reason, ran) == (Reason.REJECTED, [])


def test_t02_a_flows_hook_sees_the_delivery_of_a_row_that_names_no_flow(store: Store) -> None:
    flow, _ = told()
    seen: list[tuple[str, int]] = []
    flow.on_dispatch(lambda occurrence, status: seen.append((occurrence.key, status)))
    fired(store, elsewhere(flow))
    assert seen == [("digest", 202)]


def takes_text(given: str, _ctx: Context) -> None:
    """Need an input."""
    del given


@pytest.mark.parametrize(
    ("row_flow", "prepare", "says"),
    [
        ("none", told, "known flows: mail"),
        ("mail/none", told, "the actions of mail: send"),
        ("mail", told, "it has none: mail/<action>"),
        ("mail/send", lambda: (elsewhere(told()[0]), []), "it has one: mail"),
        ("mail/text", told, "needs an input"),
    ],
)
def test_m05_a_setting_that_cannot_be_is_refused_at_the_start(
    row_flow: str, prepare: Callable[[], tuple[Flow, list[Any]]], says: str
) -> None:
    flow, _ = prepare()
    flow.action("text")(takes_text)
    with pytest.raises(ConfigurationError, match=says):
        Stage(flow, row_flow=row_flow)


def test_m05_the_action_of_rows_may_make_its_own_input(store: Store) -> None:
    flow, given = Flow("mail"), list[object]()
    flow.action("text", input=lambda ctx: ctx.schedule_id)(lambda text, _ctx: given.append(text))
    assert fired(store, flow, row_flow="mail/text").state is State.SUCCEEDED
    assert given == ["ann/digest"]
