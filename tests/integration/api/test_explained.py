"""A-02: why a schedule fired, or did not, over the API: for users, operators and agents."""

import pytest
from duetick import ActionFailed, Context, Flow
from duetick.client import ApiError, Client, Fields
from flows.reminders import reminders

from tests.integration.api.asking import DAY, HELLO, MINUTE, refused
from tests.integration.local_product import NINE, Product

AT_NINE = "2026-12-01T09:00:00Z"
CARD: Fields = {"cron": "0 9 * * *", "flow": "reminders", "action": "pay"}


def declined(_given: object, _ctx: Context) -> None:
    """Raise an error that nobody chose, and tell the user another one."""
    raise ActionFailed("Your card was declined.") from TimeoutError("stripe:4242")


def test_a02_a_time_to_come_and_a_time_that_was(running: Product, client: Client) -> None:
    client.put("hello", HELLO | {"timezone": "Europe/London"})
    before = client.explain("hello", at=AT_NINE)
    assert (before["verdict"], before["local"]) == ("will_fire", "2026-12-01T09:00:00+00:00")
    assert before["occurrence"] is None
    running.clock.now = NINE
    running.tick()
    after = client.explain("hello", at=str(NINE))
    assert (after["verdict"], after["at"]) == ("fired", AT_NINE)
    assert after["occurrence"] == next(client.history("hello"))
    assert after["upcoming"] == client.upcoming("hello")["upcoming"]


def test_a02_without_a_time_it_explains_now(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    running.clock.now = NINE + MINUTE
    found = client.explain("hello")
    assert (found["at"], found["verdict"]) == ("2026-12-01T09:01:00Z", "not_a_fire_time")
    assert (found["before"], found["after"]) == (AT_NINE, "2026-12-02T09:00:00Z")


def test_a02_a_deleted_schedule_is_explained(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    client.delete("hello")
    running.clock.now = NINE + DAY
    found = client.explain("hello", at=AT_NINE)
    assert found["verdict"] == "no_schedule"
    assert found["definition"] is not None
    assert found["definition"]["standing"] == "deleted"


def test_a02_the_last_instant_is_explained_in_a_zone_that_has_the_next_year(client: Client) -> None:
    client.put("hello", {**HELLO, "timezone": "Pacific/Apia"})
    found = client.explain("hello", at="9999-12-31T23:59:59Z")
    assert (found["at"], found["local"]) == ("9999-12-31T23:59:59Z", None)


def test_d12_another_users_schedule_is_none(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    assert refused(running.client("bob").explain, "hello") == (404, "schedule_not_found")
    assert refused(client.explain, "other") == (404, "schedule_not_found")


@pytest.mark.parametrize("at", ["soon", "2026-12-01", "20261201", "1" * 30, ""])
def test_a02_a_time_that_cannot_be_read_is_told(client: Client, at: str) -> None:
    client.put("hello", HELLO)
    assert refused(client.explain, "hello", at=at) == (400, "invalid_schedule")


@pytest.mark.parametrize("digits", [21, 5_000])
def test_a_time_of_too_many_digits_is_refused_as_any_other(client: Client, digits: int) -> None:
    client.put("hello", HELLO)
    with pytest.raises(ApiError, match=r"^at: expected a time like .*, got '9{21}"):
        client.explain("hello", at="9" * digits)


def test_j07_users_read_what_was_told_and_operators_what_was_raised(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Flow("reminders")
    shop.action("pay", policies={"delivery": "at_least_once"})(declined)
    monkeypatch.setitem(reminders.actions, "pay", shop.actions["pay"])
    client, operator = running.client(), running.operator("you")
    client.put("card", CARD)
    running.clock.now = NINE
    running.tick()
    told, raised = (one.explain("card", at=AT_NINE) for one in (client, operator))
    assert told["verdict"] == raised["verdict"] == "will_retry"
    assert "Your card was declined." in str(told["said"])
    assert "stripe" not in str(told)
    assert "stripe:4242" in str(raised["said"])
    assert "stripe:4242" in str(raised["events"])


def test_a02_a_pause_is_explained_on_the_way(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    client.pause("hello", note="rain", until="2026-12-03T00:00:00Z")
    found = client.explain("hello", at=AT_NINE)
    assert found["verdict"] == "paused"
    assert "The pause (rain) began at" in found["said"][1]
    assert found["upcoming"][0]["utc"] == "2026-12-03T09:00:00Z"


@pytest.mark.slow
def test_a02_a_time_is_explained_on_each_store(anywhere: Product) -> None:
    client = anywhere.client()
    client.put("hello", HELLO)
    anywhere.clock.now = NINE
    anywhere.tick()
    assert client.explain("hello", at=AT_NINE)["verdict"] == "fired"
    assert client.explain("hello", at="2026-12-02T09:00:00Z")["verdict"] == "will_fire"
    assert refused(client.explain, "other") == (404, "schedule_not_found")
