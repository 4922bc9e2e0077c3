"""An action's policies apply to a resolver's answer too, which no put has completed."""

import pytest
from duetick import Policies
from duetick.domain.policies import Delivery
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import State

from tests.delivery.scene import Scene


def called(scene: Scene) -> Occurrence:
    """Return the occurrence that an outside caller's call made."""
    (one,) = scene.store.ledger.find("ada", "digest")
    return one


def resolving(scene: Scene, policies: Policies) -> None:
    """Return a flow whose schedules live elsewhere."""
    found = Schedule("ada", "digest", "* * * * *", "mail", "send", policies=policies)
    scene.flow.resolver(lambda _id, _ctx: found)


def test_d11_a_resolvers_answer_has_the_defaults_of_its_action(scene: Scene) -> None:
    resolving(scene, Policies(priority=3))
    status, _ = scene.post()
    assert (status, called(scene).policies.delivery) == (202, Delivery.EFFECTIVELY_ONCE)
    assert called(scene).policies.priority == 3


def test_d11_what_a_resolver_chooses_stands(scene: Scene) -> None:
    resolving(scene, Policies(delivery=Delivery.AT_MOST_ONCE))
    assert scene.post()[0] == 202
    assert called(scene).policies.delivery is Delivery.AT_MOST_ONCE


@pytest.mark.parametrize("delivery", Delivery)
def test_d09_a_stored_schedule_fires_with_the_policies_that_it_has(
    scene: Scene, delivery: Delivery
) -> None:
    scene.put(policies=Policies(delivery=delivery))
    assert scene.deliver(scene.claim())[0] == 202
    assert (called(scene).policies.delivery, called(scene).state) == (delivery, State.SUCCEEDED)
