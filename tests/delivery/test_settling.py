"""D-02, D-12, D-18, T-02, T-07: the definition that runs, the settle, and the answer to a
caller.
"""

from dataclasses import dataclass, field, replace

import pytest
from duetick.core.context import Context
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Flows
from duetick.core.tick import run_tick
from duetick.domain.attempts import Begun
from duetick.domain.policies import Policies
from duetick.domain.schedule import IndexRow, Json, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.ports import Delivered

from tests.delivery.scene import MINUTE, NINE, Scene, request, told

THEIRS = Schedule("ada", "digest", "0 9 * * *", "mail", "send", input="the flow's own")


def due(scene: Scene) -> Occurrence:
    """Return ada's occurrence at nine, of a row whose definition is the flow's own."""
    scene.store.index.upsert(IndexRow("ada", "digest", "0 9 * * *", None, NINE, "mail"))
    return scene.claim()


@pytest.mark.parametrize("leased", [True, False])
def test_d12_where_a_flow_resolves_itself_the_stores_record_is_not_asked(
    scene: Scene, leased: bool
) -> None:
    scene.put(cron="0 9 * * *", given="the store's")
    claimed = scene.claim()
    scene.flow.resolver(lambda _id, _ctx: THEIRS)
    answer = scene.deliver(claimed) if leased else scene.post(idempotencyKey="k")
    assert (answer[0], [given for given, _ in scene.ran]) == (202, ["the flow's own"])


def test_d18_what_its_resolver_has_disabled_is_skipped_and_says_so(each_scene: Scene) -> None:
    claimed = due(each_scene)
    each_scene.flow.resolver(lambda _id, _ctx: replace(THEIRS, enabled=False))
    assert each_scene.deliver(claimed) == (200, {"status": "skipped", "reason": "disabled"})
    assert each_scene.history() == [(State.CANCELLED, Reason.DISABLED)]
    assert each_scene.post()[0] == 404
    assert each_scene.ran == []


def test_t07_one_whose_lease_ended_meanwhile_is_not_told_that_it_succeeded(
    each_scene: Scene,
) -> None:
    scene = each_scene
    scene.put(cron="0 9 * * *")

    def outlives(_input: Json, _ctx: Context) -> None:
        scene.clock.advance(10 * MINUTE)
        scene.store.ledger.claim_waiting(scene.clock.now)

    scene.act = outlives
    assert scene.deliver(scene.claim())[1]["error"] == "dispatch_failed"
    assert scene.history() == [(State.DEAD, Reason.LOST)]


def test_every_settled_attempt_is_seen_as_it_was_settled(scene: Scene) -> None:
    seen: list[Occurrence] = []
    dispatch = Dispatcher(
        scene.store,
        Flows({"mail": scene.flow}),
        lambda _: True,
        scene.clock,
        on_settled=seen.append,
    )
    scene.put()

    def fails(_input: Json, _ctx: Context) -> None:
        raise RuntimeError

    for act in (None, fails):
        scene.act = act
        dispatch(request("mail", "ada/digest", {}))
        scene.clock.advance(MINUTE)
    assert [(each.state, each.reason) for each in seen] == [
        (State.SUCCEEDED, Reason.FIRED),
        (State.DEAD, Reason.FAILED),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        replace(THEIRS, cron="61 * * * *"),
        replace(THEIRS, timezone="Mars/Base"),
        replace(THEIRS, action="sned"),
        replace(THEIRS, action="count", input="many"),
        replace(THEIRS, flow="billing"),
    ],
)
def test_d02_what_cannot_run_is_refused_to_a_caller_before_it_is_recorded(
    scene: Scene, wrong: Schedule
) -> None:
    scene.flow.action("count")(counts)
    scene.flow.resolver(lambda _id, _ctx: wrong)
    assert scene.post(nominalFireTime=NINE)[1]["error"] == "invalid_schedule"
    assert (scene.history(), scene.ran) == ([], [])


@pytest.mark.parametrize(
    "wrong", [replace(THEIRS, timezone="Mars/Base"), replace(THEIRS, action="count", input="many")]
)
def test_d09_what_cannot_run_is_rejected_where_a_tick_brings_it(
    each_scene: Scene, wrong: Schedule
) -> None:
    each_scene.flow.action("count")(counts)
    claimed = due(each_scene)
    each_scene.flow.resolver(lambda _id, _ctx: wrong)
    assert each_scene.deliver(claimed)[1]["error"] == "invalid_schedule"
    assert each_scene.history() == [(State.DEAD, Reason.REJECTED)]


def counts(_number: int, _ctx: Context) -> None:
    """An action."""


def test_d03_a_background_run_that_is_under_way_is_not_queued_again(each_scene: Scene) -> None:
    scene = each_scene
    scene.flow.action("slow", background=True)(lambda _given, _ctx: None)
    scene.put(action="slow", cron="0 9 * * *")
    claimed = scene.claim()
    assert isinstance(scene.store.ledger.begin(claimed, now=NINE), Begun)
    assert scene.deliver(claimed)[1]["error"] == "in_progress"
    assert told(scene.dispatch(request("mail", "ada/digest", {})))[0] == 409
    assert scene.queued == []


@dataclass(slots=True)
class Patience:
    """A transport that notes the timeouts of its calls."""

    given: dict[str, float] = field(default_factory=dict)

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """Note it."""
        self.given[occurrence.key] = timeout
        return Delivered(202)

    def close(self) -> None:
        """Nothing is open."""


def test_t02_a_delivery_may_take_its_actions_time_and_no_more(scene: Scene) -> None:
    for key, timeout in (("quick", 2), ("usual", 25), ("long", 900)):
        scene.put(key, cron="0 9 * * *", policies=Policies(timeout=timeout))
    transport = Patience()
    run_tick(scene.store, transport, now=NINE, budget=60.0, elapsed=lambda: 0.0)
    assert transport.given == {"quick": 7.0, "usual": 30.0, "long": 60.0}
