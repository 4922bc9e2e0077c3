"""The API shows an action's declared policies, gives them to schedules, and refuses to change fixed
ones.
"""

import json

import pytest
from duetick import Context, Flow
from duetick.client import ApiError, Client, Fields
from duetick.core.flows import Flows
from duetick.runtime import wiring

from tests.integration.local_product import Product

MAIL: Fields = {"cron": "0 9 * * *", "flow": "shop", "action": "mail"}
PAY: Fields = MAIL | {"action": "pay"}


def nothing(_given: object, _ctx: Context) -> None:
    """An action that does nothing."""


@pytest.fixture
def shop(running: Product, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return a user of a deployment whose actions declare policies."""
    flow = Flow("shop")
    flow.action("pay", transactional=True)(nothing)
    flow.action("audit", users=False)(nothing)
    declared = {"delivery": "at_least_once", "retry": {"attempts": 3}}
    flow.action("mail", policies=declared, may_change=("retry",))(nothing)
    monkeypatch.setattr(wiring, "flows", lambda: Flows({"shop": flow}))
    return running.client()


def test_d09_each_action_is_listed_with_its_defaults_and_what_may_be_changed(
    running: Product, shop: Client
) -> None:
    by_name = {one["action"]: one for one in shop.actions()}
    assert list(by_name) == ["mail", "pay"]
    assert by_name["mail"]["policies"]["retry"]["attempts"] == 3
    assert by_name["pay"]["policies"]["delivery"] == "effectively_once"
    assert "delivery" not in by_name["mail"]["mayChange"]
    assert "retry" in by_name["mail"]["mayChange"]
    assert [one["action"] for one in running.operator("you").actions()] == ["audit", "mail", "pay"]


def test_d09_a_form_need_not_say_the_delivery(shop: Client) -> None:
    assert shop.put("p", PAY).body["policies"]["delivery"] == "effectively_once"
    made = shop.create(MAIL | {"policies": {"retry": {"first": 30}}}).body["policies"]
    assert made["delivery"] == "at_least_once"
    assert (made["retry"]["attempts"], made["retry"]["first"]) == (3, 30)


@pytest.mark.parametrize("operator", [False, True])
def test_d09_nobody_puts_a_transactional_action_as_something_else(
    running: Product, shop: Client, *, operator: bool
) -> None:
    client = running.operator("you") if operator else shop
    with pytest.raises(ApiError) as refused:
        client.put("p", PAY | {"policies": {"delivery": "at_most_once"}})
    (problem,) = refused.value.problems
    assert (problem["field"], problem["code"]) == ("/policies/delivery", "not_yours")
    assert problem["message"].startswith(
        'expected "effectively_once", which \'pay\' declares, got "at_most_once"; leave it out. '
        "Its schedules may change retry, overlap, "
    )


def test_d09_a_change_keeps_the_policies_that_it_does_not_name(shop: Client) -> None:
    shop.put("m", MAIL | {"policies": {"retry": {"attempts": 7}, "priority": 4}})
    changed = shop.change("m", {"cron": "0 8 * * *", "policies": {"priority": 5}}).body["policies"]
    assert (changed["retry"]["attempts"], changed["priority"]) == (7, 5)


def test_d09_null_takes_a_policy_back_to_the_default_of_its_action(shop: Client) -> None:
    shop.put("m", MAIL | {"policies": {"retry": {"attempts": 7}, "priority": 4}})
    back = shop.change("m", {"policies": {"retry": None, "priority": None}}).body["policies"]
    assert (back["retry"]["attempts"], back["priority"]) == (3, 0)
    shop.change("m", {"policies": {"priority": 4}})
    assert shop.change("m", {"policies": None}).body["policies"]["priority"] == 0


def test_d09_another_action_brings_its_own_defaults_and_keeps_what_was_chosen(
    shop: Client,
) -> None:
    shop.put("m", MAIL | {"policies": {"priority": 4}})
    changed = shop.change("m", {"action": "pay"}).body["policies"]
    assert (changed["delivery"], changed["priority"]) == ("effectively_once", 4)
    assert changed["retry"]["attempts"] == 5


def test_d09_a_put_without_policies_takes_the_defaults_of_now(shop: Client) -> None:
    shop.put("m", MAIL | {"policies": {"retry": {"attempts": 7}}})
    assert shop.put("m", MAIL).body["policies"]["retry"]["attempts"] == 3


def test_d09_a_schedule_that_is_there_keeps_what_its_action_fixes_later(
    running: Product, shop: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, older = wiring.flows(), Flow("shop")
    older.action("pay")(nothing)
    monkeypatch.setattr(wiring, "flows", lambda: Flows({"shop": older}))
    whole: Fields = {"policies": json.loads(json.dumps(shop.put("p", PAY).body["policies"]))}
    monkeypatch.setattr(wiring, "flows", lambda: now)
    shop.pause("p")
    shop.resume("p")
    shop.change("p", {"cron": "0 8 * * *"})
    assert shop.put("p", PAY | whole).body["policies"]["delivery"] == "at_most_once"
    exported = running.operator("you").export()["schedules"]
    assert [one["policies"]["delivery"] for one in exported] == ["at_most_once"]
    assert shop.put("p", PAY).body["policies"]["delivery"] == "effectively_once"
