"""The API on each store: one day of a user, from the first schedule to the last trace."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from duetick.client import ApiError, Client, Fields

from tests.integration.api.conftest import NINE
from tests.integration.local_product import Clock, Product, product
from tests.lab.dynamodb import DynamoDB, table_name

HELLO: Fields = {
    "cron": "0 9 * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning" * 60},
}
DAY = 86_400_000

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def running(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Product]:
    """The local stack on each store in turn; only the one at hand is started."""
    address = f"sqlite:///{tmp_path}/api.db"
    if request.param == "postgres":
        address = request.getfixturevalue("postgres_url")
    if request.param == "dynamodb":
        server: DynamoDB = request.getfixturevalue("dynamodb_local")
        address = server.table_url(table_name())
    with product(address, Clock(NINE - 1_800_000), monkeypatch) as made:
        yield made


def history(client: Client, key: str = "hello") -> list[tuple[object, object]]:
    """Reason and count of each line."""
    return [(line["reason"], line["count"]) for line in client.history(key, limit=2)]


def test_a_users_day(running: Product) -> None:
    client, machine = running.client(), running.operator("you")
    first = client.create(HELLO, idempotency_key="order-7")
    assert client.create(HELLO, idempotency_key="order-7").body == first.body
    made = machine.put("hello", HELLO | {"externalId": "project-7"})
    running.clock.now = NINE
    assert running.tick()["delivered"] == 2
    assert client.by_external("project-7").body["key"] == "hello"
    client.pause("hello", note="away", until="2026-12-03T12:00:00Z")
    with pytest.raises(ApiError, match="read it again"):
        client.delete("hello", if_match=made.etag)
    running.clock.now = NINE + 2 * DAY
    client.resume("hello")
    assert client.run("hello")["state"] == "succeeded"
    assert history(client) == [("fired", 1), ("paused", 2), ("fired", 1)]

    exported = machine.export()
    assert isinstance(exported["schedules"], list)
    assert isinstance(exported["history"], list)
    assert len(exported["schedules"]) == 2
    assert len(exported["history"]) == 4
    assert machine.erase() == {"schedules": 2}
    assert machine.export() == {"user": "you", "schedules": [], "history": []}
    assert client.put("hello", HELLO).body["version"] == 1
