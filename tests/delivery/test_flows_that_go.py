"""D-03, D-09: a flow, or an action, that a deployment left out while it had occurrences leased."""

from dataclasses import replace

import pytest
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Flow, Flows
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from duetick.transports.inline import InlineTransport

from tests.delivery.scene import MINUTE, NINE, SECRET, Scene, request, told


def without_it(scene: Scene, *flows: Flow) -> Dispatcher:
    """Dispatch as it is deployed after the flow went."""
    left = {flow.name: flow for flow in (Flow("billing"), *flows)}
    return Dispatcher(scene.store, Flows(left), lambda _: True, scene.clock)


def tick(scene: Scene, dispatch: Dispatcher, now: int) -> list[int]:
    """Run a tick. Return the statuses of its deliveries."""
    statuses: list[int] = []
    transport = InlineTransport(lambda call: dispatch(replace(call, headers=SECRET)))
    scene.clock.now = now
    run_tick(
        scene.store,
        transport,
        now=now,
        on_dispatch=lambda _occurrence, status: statuses.append(status),
    )
    return statuses


def outcome(store: Store, user: str = "ada", key: str = "digest") -> Occurrence:
    """Return the outcome of the only occurrence."""
    (found,) = store.ledger.find(user, key)
    return found


@pytest.mark.parametrize("delivery", list(Delivery))
def test_d09_what_a_removed_flow_had_leased_ends_rejected_and_comes_no_more(
    each_scene: Scene, delivery: Delivery
) -> None:
    scene = each_scene
    scene.put(cron="0 9 * * *", policies=Policies(delivery=delivery))
    gone = without_it(scene)
    assert tick(scene, gone, NINE) == [404]
    ended = outcome(scene.store)
    assert (ended.state, ended.reason, ended.attempts) == (State.DEAD, Reason.REJECTED, 1)
    assert ended.error == "not_deployed: There is no flow 'mail'."
    assert ended.told == "There is no flow 'mail'."
    assert [tick(scene, gone, NINE + minute * MINUTE) for minute in (1, 2, 90)] == [[], [], []]


def test_d09_so_ends_an_index_row_of_no_flow(each_scene: Scene) -> None:
    each_scene.store.index.upsert(IndexRow("bob", "x", "0 9 * * *", None, NINE))
    assert tick(each_scene, without_it(each_scene), NINE) == [404]
    assert outcome(each_scene.store, "bob", "x").reason is Reason.REJECTED


def test_d09_so_ends_a_static_schedule_that_no_migrate_removed_yet(each_scene: Scene) -> None:
    each_scene.store.index.upsert(IndexRow("", "mail/nightly", "0 9 * * *", None, NINE, "mail"))
    assert tick(each_scene, without_it(each_scene), NINE) == [404]
    assert outcome(each_scene.store, "", "mail/nightly").reason is Reason.REJECTED


def test_d12_a_flow_that_is_not_there_ends_nothing_of_another(each_scene: Scene) -> None:
    """A caller who may dispatch cannot end ada's occurrence with her fence and no flow, or a wrong
    one.
    """
    each_scene.put(cron="0 9 * * *")
    claimed = each_scene.claim()
    for flow in ("", "nowhere", "%6Dail", "\ud800"):
        answer = told(without_it(each_scene)(request(flow, "ada/digest", _body(claimed))))
        assert (answer[0], answer[1]["error"]) == (404, "flow_not_found")
    assert outcome(each_scene.store).state is State.QUEUED


def _body(claimed: Occurrence) -> str:
    return f'{{"fence": {claimed.fence}, "nominalFireTime": {claimed.nominal_at}}}'


def test_d02_a_flow_that_is_not_there_is_told_before_the_body_is_looked_at(scene: Scene) -> None:
    for body in ("x" * 10**6, '{"fence": "x"}', '{"userId": "bob"}'):
        answer = told(without_it(scene)(request("mail", "ada/digest", body)))
        assert (answer[0], answer[1]["error"]) == (404, "flow_not_found")


def test_an_action_that_was_removed_ends_rejected_too(each_scene: Scene) -> None:
    each_scene.put(cron="0 9 * * *")
    assert tick(each_scene, without_it(each_scene, Flow("mail")), NINE) == [400]
    assert outcome(each_scene.store).reason is Reason.REJECTED


def test_a_deployment_without_any_flow_is_a_mistake_and_ends_nothing(scene: Scene) -> None:
    """Its occurrences wait for one that has them, for as long as anything that never began."""
    scene.put(cron="0 9 * * *")
    empty = Dispatcher(scene.store, Flows({}), lambda _: True, scene.clock)
    assert tick(scene, empty, NINE) == [503]
    assert tick(scene, scene.dispatch, NINE + 5 * MINUTE) == [202]


def test_d04_a_rejected_one_is_final_when_the_flow_is_back(scene: Scene) -> None:
    scene.put(cron="0 9 * * *")
    tick(scene, without_it(scene), NINE)
    status, body = scene.post(nominalFireTime=NINE)
    assert (status, body["state"], body["reason"]) == (409, "dead", "rejected")
    assert body["final"] is True
