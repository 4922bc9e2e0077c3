"""A failure hook over the API: the refusals at its field, and its entries in the history."""

import pytest
from duetick import ActionFailed, Context, FailureInput, Flow
from duetick.api.views import OccurrenceView
from duetick.client import ApiError, Client, Fields
from duetick.domain.schedule import Json
from duetick.runtime import wiring

from tests.integration.local_product import NINE, Product

MINUTE = 60_000
SEND: Fields = {"cron": "0 9 * * *", "flow": "shop", "action": "send"}
TOLD: Fields = SEND | {"policies": {"onFailure": "tell"}}


def shop(monkeypatch: pytest.MonkeyPatch) -> list[FailureInput]:
    """Deploy an action that fails. Return the inputs of its hooks."""
    flow, told = Flow("shop"), list[FailureInput]()

    @flow.action("send")
    def send(_given: Json, _ctx: Context) -> None:
        raise ActionFailed("Your bank did not answer.") from RuntimeError("db.internal is away")

    @flow.action("tell")
    def tell(failed: FailureInput, _ctx: Context) -> None:
        told.append(failed)

    @flow.action("tell_us", users=False)
    def tell_us(failed: FailureInput, _ctx: Context) -> None:
        told.append(failed)

    monkeypatch.setitem(wiring.flows()._flows, "shop", flow)
    return told


def fire(product: Product) -> None:
    """Let it be nine, and the minute after it."""
    product.clock.now = NINE
    product.tick()
    product.clock.now = NINE + MINUTE
    product.tick()


def history(client: Client, key: str = "mail") -> list[OccurrenceView]:
    """Return the history of a schedule, hook first."""
    return sorted(client.history(key), key=lambda one: str(one["origin"]))


@pytest.mark.parametrize(
    ("hook", "code"),
    [
        ("gone", "unknown_action"),
        ("send", "not_one_of"),
        ("tell_us", "not_yours"),
        (7, "wrong_type"),
    ],
)
def test_d09_a_hook_that_cannot_be_is_refused_at_its_field(
    running: Product, monkeypatch: pytest.MonkeyPatch, hook: Json, code: str
) -> None:
    shop(monkeypatch)
    with pytest.raises(ApiError) as refused:
        running.client().put("mail", SEND | {"policies": {"onFailure": hook}})
    (problem,) = refused.value.problems
    assert (refused.value.status, problem["field"]) == (400, "/policies/onFailure")
    assert problem["code"] == code


def test_a03_the_history_leads_from_a_death_to_its_hook_and_back(
    anywhere: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = shop(monkeypatch)
    client = anywhere.client()
    client.put("mail", TOLD)
    fire(anywhere)
    hook, dead = history(client)
    assert (dead["reason"], dead["death"]) == ("failed", None)
    assert dead["failureHook"] == hook["origin"] == "failure:schedule:1"
    assert hook["failureHook"] is None
    assert hook["death"] == {
        "occurrence": dead["id"],
        "origin": "schedule",
        "reason": "failed",
        "attempts": 1,
        "at": dead["updatedAt"],
        "error": "Your bank did not answer.",
    }
    (told,) = heard
    assert (told.error, told.occurrence) == ("Your bank did not answer.", dead["id"])
    whose = anywhere.operator("you")
    (of_operator, _) = history(whose)
    assert "db.internal" in str(of_operator["death"])


def test_d09_a_hook_is_shown_changed_and_taken_back(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = shop(monkeypatch)
    client = running.client()
    assert client.put("mail", TOLD).body["policies"]["onFailure"] == "tell"
    changed = client.change("mail", {"policies": {"onFailure": None}})
    assert changed.body["policies"]["onFailure"] is None
    fire(running)
    assert ([one["failureHook"] for one in history(client)], heard) == ([None], [])


def test_j07_operators_find_a_hook_among_what_is_dead(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = shop(monkeypatch)
    running.client().put("mail", TOLD)
    fire(running)
    assert len(heard) == 1
    export = running.operator("you").export()
    assert "failure:schedule:1" in str(export)
