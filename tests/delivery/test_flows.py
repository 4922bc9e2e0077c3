"""D-08 to D-18 where flows decide: resolvers, principals, input, context, time, background."""

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, cast

import pytest
from duetick.core.context import Context
from duetick.core.dispatch import ResolveContext
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import Delivery, Misfire, Policies
from duetick.domain.schedule import IndexRow, Json, Occurrence, Principal, Schedule
from duetick.domain.states import Reason, State
from duetick.runtime.invoking import from_event, to_event

from tests.delivery.scene import MINUTE, NINE, Scene, request, told

if TYPE_CHECKING:
    from duetick.core.flows import Resolver

THEIRS = Schedule("bob", "global", "* * * * *", "mail", "send", input="bob's")


def finds(_id: str, _ctx: ResolveContext) -> Schedule:
    """Resolve a key that is everybody's."""
    return THEIRS


async def finds_later(_id: str, _ctx: ResolveContext) -> Schedule:
    """Resolve the key after a wait."""
    await asyncio.sleep(0)
    return THEIRS


async def raises_later(_id: str, _ctx: ResolveContext) -> NoReturn:
    """Fail, in a coroutine."""
    raise LookupError("no such table")


def test_d11_a_resolver_may_be_async(scene: Scene) -> None:
    scene.flow.resolver(finds_later)
    assert scene.post("anything")[0] == 202
    assert scene.ran[0][0] == "bob's"


def test_d11_an_async_one_may_raise(scene: Scene) -> None:
    scene.flow.resolver(raises_later)
    assert scene.post("anything")[1]["error"] == "resolver_failed"


def test_d11_a_resolver_may_find_nothing(scene: Scene) -> None:
    scene.flow.resolver(lambda _id, _ctx: None)
    assert scene.post("anything")[1]["error"] == "schedule_not_found"


def test_d11_a_resolver_that_returns_something_else_has_failed(scene: Scene) -> None:
    scene.flow.resolver(cast("Resolver", lambda _id, _ctx: {"cron": "* * * * *"}))
    assert scene.post("anything")[1]["error"] == "resolver_failed"


def test_d11_a_resolver_is_told_who_asks_for_what(scene: Scene) -> None:
    seen: list[ResolveContext] = []

    def resolve(_id: str, ctx: ResolveContext) -> None:
        seen.append(ctx)

    scene.flow.resolver(resolve)
    scene.dispatch(replace(request("mail", "k#1", {}), caller=Principal("arn:aws:iam::1:role/x")))
    (context,) = seen
    assert (context.flow, context.schedule_id) == ("mail", "k#1")
    assert context.caller == Principal("arn:aws:iam::1:role/x")
    assert context.store is scene.store
    assert context.request.request_id == "r-1"


def test_d13_a_global_key_is_its_owners_alone(scene: Scene) -> None:
    """Without `owned`, a holder of the secret could run bob's schedule with his own name in the
    URL.
    """
    scene.flow.resolver(lambda schedule_id, ctx: ctx.owned(finds(schedule_id, ctx)))
    assert scene.post("ada/global")[1]["error"] == "schedule_not_found"
    assert scene.post("global")[1]["error"] == "schedule_not_found"
    assert scene.post("bob/global")[0] == 202
    scene.flow.resolver(finds)
    assert scene.post("ada/global")[1].get("state") == "succeeded"


def test_d12_a_flow_with_a_resolver_never_runs_the_stores_record_of_that_name(
    scene: Scene,
) -> None:
    scene.put("global", given="ada's")
    scene.flow.resolver(finds)
    scene.post("ada/global")
    assert [given for given, _ in scene.ran] == ["bob's"]


def test_m05_a_row_without_a_record_is_resolved_when_it_fires(each_scene: Scene) -> None:
    scene = each_scene
    scene.flow.resolver(finds)
    scene.store.index.upsert(IndexRow("bob", "global", "0 9 * * *", None, NINE, "mail"))
    assert scene.deliver(scene.claim())[0] == 202
    scene.flow.resolver(lambda _id, _ctx: None)
    scene.store.index.upsert(IndexRow("bob", "other", "0 9 * * *", None, NINE, "mail"))
    answer = scene.deliver(scene.claim())
    assert answer == (200, {"status": "skipped", "reason": "schedule_deleted"})
    (gone,) = scene.store.ledger.find("bob", "other")
    assert (gone.state, gone.reason) == (State.CANCELLED, Reason.SCHEDULE_DELETED)


def test_d02_static_schedules_come_before_the_resolvers(scene: Scene) -> None:
    scene.flow.resolver(finds)
    scene.flow.schedule("nightly", cron="* * * * *", action="send", input="static")
    scene.post("nightly")
    (ran,) = scene.ran
    assert (ran[0], ran[1].principal.user_id) == ("static", "flow:mail")


@pytest.mark.parametrize(
    ("principal", "runs_as"),
    [(None, Principal("ada")), (Principal("system", "org", {"role": "x"}), None)],
)
def test_d10_it_runs_as_its_principal_else_as_its_owner(
    each_scene: Scene, principal: Principal | None, runs_as: Principal | None
) -> None:
    each_scene.put(principal=principal)
    each_scene.deliver(each_scene.claim())
    assert each_scene.ran[0][1].principal == (runs_as or principal)


def test_d15_the_action_is_told_everything(scene: Scene) -> None:
    cron = "days(x: tue 10:00; threads: tue 10:00, wed 11:00; blog: mon 10:00)"
    scene.put(cron=cron, timezone="Europe/Berlin")
    scene.clock.now = NINE + 1_500
    scene.deliver(scene.claim())
    (_, ctx) = scene.ran[0]
    assert (ctx.flow, ctx.schedule_id, ctx.origin) == ("mail", "ada/digest", "schedule")
    assert (ctx.cron, ctx.timezone) == (cron, "Europe/Berlin")
    assert ctx.targets == ("x", "threads")
    assert (ctx.nominal_at, ctx.dispatched_at, ctx.lateness_ms) == (NINE, NINE + 1_500, 1_500)
    assert (ctx.attempt, ctx.catching_up) == (1, False)
    assert ctx.occurrence_id.startswith("occ_")


def test_d15_a_misfire_made_good_is_catching_up(scene: Scene) -> None:
    scene.put(cron="0 * * * *", policies=Policies(misfire=Misfire.LATEST))
    scene.clock.advance(30 * MINUTE)
    scene.deliver(scene.claim())
    assert scene.ran[0][1].catching_up


def test_d14_input_is_computed_where_there_is_none(scene: Scene) -> None:
    def described(ctx: Context) -> Json:
        return f"{ctx.flow} {ctx.schedule_id} {ctx.nominal_at} {ctx.principal.user_id}"

    @scene.flow.action("report", input=described)
    def report(text: str, ctx: Context) -> None:
        scene.ran.append((text, ctx))

    scene.put("computed", action="report")
    scene.put("fixed", action="report", given="as written")
    scene.flow.schedule("nightly", cron="* * * * *", action="report", input=described)
    for schedule_id in ("ada/computed", "ada/fixed", "nightly"):
        assert scene.post(schedule_id)[0] == 202
    assert [given for given, _ in scene.ran] == [
        f"mail ada/computed {NINE} ada",
        "as written",
        f"mail nightly {NINE} flow:mail",
    ]


def test_d14_a_computed_input_has_to_fit_too(scene: Scene) -> None:
    scene.flow.action("report", input=lambda _ctx: 7)(takes_text)
    scene.put(action="report")
    assert scene.deliver(scene.claim())[1]["error"] == "invalid_schedule"
    assert scene.history() == [(State.DEAD, Reason.REJECTED)]


def takes_text(_text: str, _ctx: Context) -> None:
    """An action."""


def test_an_action_may_be_async(scene: Scene) -> None:
    async def later(_input: Json, _ctx: Context) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("seen")

    scene.flow.action("later")(later)
    scene.put(action="later")
    assert scene.deliver(scene.claim())[1]["error"] == "action_failed"


@pytest.mark.parametrize("thread", ["main", "another"])
def test_an_action_that_never_returns_is_timed_out_and_told(scene: Scene, thread: str) -> None:
    scene.put(cron="0 9 * * *", policies=Policies(timeout=1))
    release = threading.Event()
    scene.act = lambda *_: release.wait(60)
    answers: list[tuple[int, dict[str, Json]]] = []
    if thread == "main":
        answers.append(scene.deliver(scene.claim()))
    else:
        claimed = scene.claim()
        beside = threading.Thread(target=lambda: answers.append(scene.deliver(claimed)))
        beside.start()
        beside.join(60)
    release.set()
    assert answers[0][1] == {
        "error": "action_failed",
        "message": "The action took longer than 1 s.",
    }
    (dead,) = scene.store.ledger.find("ada", "digest")
    assert (dead.state, dead.error) == (State.DEAD, "The action took longer than 1 s.")


def test_an_action_ends_before_its_invocation_does(scene: Scene) -> None:
    scene.put(cron="0 9 * * *")
    scene.act = lambda *_: threading.Event().wait(60)
    body = '{"nominalFireTime": "2026-12-01T09:00:00Z"}'
    call = replace(request("mail", "ada/digest", body), seconds=2.2)
    assert told(scene.dispatch(call))[1]["error"] == "action_failed"


def test_a_background_action_is_queued_and_runs_in_its_own_invocation(each_scene: Scene) -> None:
    scene = each_scene
    scene.flow.action("slow", background=True)(lambda given, ctx: scene.ran.append((given, ctx)))
    scene.put(action="slow", cron="0 9 * * *", given="x")
    claimed = scene.claim()
    answer = scene.deliver(claimed)
    assert (answer[0], answer[1]["outcome"], scene.ran) == (202, "queued", [])
    (queued,) = scene.queued
    again = from_event(to_event(queued), 900.0)
    assert again is not None
    assert told(scene.dispatch.run_queued(again))[0] == 202
    assert told(scene.dispatch.run_queued(again)) == (
        200,
        {"status": "duplicate", "state": "succeeded"},
    )
    assert scene.deliver(claimed)[0] == 200
    assert (len(scene.ran), scene.history()) == (1, [(State.SUCCEEDED, Reason.FIRED)])


def test_j12_a_run_in_the_background_reports_its_begin_and_its_end(scene: Scene) -> None:
    def act(_given: object, _ctx: object) -> None:
        (now,) = scene.store.workers(0)
        assert (now.kind, now.ended_at) == ("background", None)
        assert now.silent_at == now.started_at + 900_000

    scene.flow.action("slow", background=True)(act)
    scene.put(action="slow", cron="0 9 * * *")
    scene.post(nominalFireTime="2026-12-01T09:00:00Z")
    queued = from_event(to_event(scene.queued[0]), 900.0)
    assert queued is not None
    scene.dispatch.run_queued(replace(queued, seconds=None))
    (told,) = scene.store.workers(0)
    assert (told.kind, told.ended_at, scene.history()[0][0]) == (
        "background",
        scene.clock.now,
        State.SUCCEEDED,
    )


def test_a_queued_call_keeps_its_nominal_time_and_no_secret(scene: Scene) -> None:
    scene.flow.action("slow", background=True)(lambda given, ctx: scene.ran.append((given, ctx)))
    scene.put(action="slow", cron="0 * * * *")
    scene.clock.advance(30 * MINUTE)
    scene.post()
    scene.clock.advance(MINUTE - 1)
    event = to_event(scene.queued[0])
    assert "authorization" not in str(event)
    queued = from_event(event, 900.0)
    assert queued is not None
    scene.dispatch.run_queued(queued)
    assert scene.ran[0][1].nominal_at == NINE


def test_t07_a_background_action_renews_its_lease(scene: Scene) -> None:
    renewed = threading.Event()
    real = scene.store.ledger.renew

    def renew(occurrence: Occurrence, *, now: int) -> Occurrence | None:
        renewed.set()
        return real(occurrence, now=now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scene.store.ledger, "renew", renew)
        patch.setattr("duetick.domain.policies.LEASE_MARGIN", -0.9)
        scene.flow.action("slow", background=True)(lambda _g, _c: renewed.wait(60))
        scene.put(action="slow", cron="0 9 * * *", policies=Policies(timeout=1))
        call = request("mail", "ada/digest", '{"nominalFireTime": "2026-12-01T09:00:00Z"}')
        scene.dispatch.run_queued(call)
    assert renewed.is_set()


def test_no_event_of_a_gateway_is_a_background_one() -> None:
    assert from_event({"body": '{"duetickBackground": {}}', "headers": {}}, 1.0) is None


def test_effectively_once_needs_a_transactional_action_when_it_is_put(scene: Scene) -> None:
    once = Policies(delivery=Delivery.EFFECTIVELY_ONCE)
    scene.flow.action("plain")(takes_text)
    put = scene.put(action="plain", policies=once)
    with pytest.raises(InvalidSchedule, match="transactional"):
        scene.flows.check_input(put)
