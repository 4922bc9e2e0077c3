"""The API on each store: one day of a user, from the first schedule to the last trace."""

import pytest
from duetick.client import ApiError, Client, Fields

from tests.integration.local_product import NINE, Product

HELLO: Fields = {
    "cron": "0 9 * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning" * 60},
}
DAY = 86_400_000

pytestmark = pytest.mark.slow


def history(client: Client, key: str = "hello") -> list[tuple[object, object]]:
    """Reason and count of each line."""
    return [(line["reason"], line["count"]) for line in client.history(key, limit=2)]


def test_a_users_day(anywhere: Product) -> None:
    client, machine = anywhere.client(), anywhere.operator("you")
    first = client.create(HELLO, idempotency_key="order-7")
    client.change(str(first.body["key"]), {"labels": {"late": "no"}})
    assert client.create(HELLO, idempotency_key="order-7").body == first.body
    made = machine.put("hello", HELLO | {"externalId": "project-7"})
    anywhere.clock.now = NINE
    assert anywhere.tick()["delivered"] == 2
    assert client.by_external("project-7").body["key"] == "hello"
    client.pause("hello", note="away", until="2026-12-03T12:00:00Z")
    with pytest.raises(ApiError, match="read it again"):
        client.delete("hello", if_match=made.etag)
    anywhere.clock.now = NINE + 2 * DAY
    client.resume("hello")
    assert client.run("hello")["state"] == "succeeded"
    assert history(client) == [("fired", 1), ("paused", 2), ("fired", 1)]

    exported = machine.export()
    assert len(exported["schedules"]) == 2
    assert len(exported["history"]) == 4
    assert machine.erase() == {"schedules": 2}
    assert machine.export() == {
        "user": "you",
        "schedules": [],
        "jobs": [],
        "history": [],
        "cursor": None,
    }
    assert client.put("hello", HELLO).body["version"] == 1
