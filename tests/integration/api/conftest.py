"""The product half an hour before nine, on an empty file."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from duetick.client import Client

from tests.integration.api.town import (
    EXTERNAL,
    IDEMPOTENCY,
    KEY,
    SCHEDULE,
    THEIRS,
    WORK,
    Town,
)
from tests.integration.local_product import NINE, Clock, Product, product
from tests.lab.ready import sqlite_file


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def anywhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Product]:
    """The same on each store in turn; only the one at hand is started."""
    address = sqlite_file(tmp_path / "api.db")
    if request.param == "postgres":
        address = request.getfixturevalue("migrated_postgres_url")
    if request.param == "dynamodb":
        address = request.getfixturevalue("migrated_dynamodb_url")
    with product(address, Clock(NINE - 1_800_000), monkeypatch) as made:
        yield made


@pytest.fixture
def client(running: Product) -> Client:
    """The user's."""
    return running.client()


def known_by_a_function(running: Product) -> None:
    """Users=lambda: the authorizer names a principal, and bob in all of its other fields."""
    users = running.stack.server.routes[0]

    def authorize(header: str) -> dict[str, Any] | None:
        granted = users.authorize(header)
        if granted is None:
            return None
        more = {"claims": f'{{"sub": "{THEIRS}"}}', "sub": THEIRS, "integrationLatency": 5}
        return {"authorizer": {**more, "principalId": granted["authorizer"]["claims"]["sub"]}}

    running.stack.server.routes[0] = replace(users, authorize=authorize)


@pytest.fixture(params=["cognito", "lambda"])
def town(request: pytest.FixtureRequest, running: Product) -> Iterator[Town]:
    """Bob's things, and ann; users are known by their token's claims, or by a function."""
    if request.param == "lambda":
        known_by_a_function(running)
    running.operator(THEIRS).put(KEY, SCHEDULE | {"externalId": EXTERNAL})
    bob = running.client(THEIRS)
    bob.create(SCHEDULE, idempotency_key=IDEMPOTENCY)
    bob.run(KEY, idempotency_key=IDEMPOTENCY)
    running.clock.now = NINE
    running.tick()
    job = bob.enqueue({**WORK, "delay": 3_600, "key": IDEMPOTENCY}).body["id"]
    made = Town(running, bob, bob.get(KEY).etag, job)
    before = made.everything()
    yield made
    assert made.everything() == before, "something of bob's was changed"
