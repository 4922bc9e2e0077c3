"""A thousand actions at once do not need a thousand connections: the peak, on each backend."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delivery.many import OPEN, Watched, at_once, dynamodb, postgres, sqlite

MANY = 1_000
FEWER = 100
"""For the suite: of these, Amazon's DynamoDB Local takes its time for a thousand."""

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres_url", "dynamodb_local"])
def watched(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Watched, int]]:
    """Yield each backend in turn, and the number of its actions."""
    if request.param == "sqlite":
        if not OPEN.exists():
            pytest.skip("no /proc here, which lists what a process has open")
        yield from ((made, MANY) for made in sqlite(tmp_path / "many.db"))
    elif request.param == "postgres_url":
        yield from ((made, MANY) for made in postgres(request.getfixturevalue("postgres_url")))
    else:
        yield from ((made, FEWER) for made in dynamodb(request.getfixturevalue("dynamodb_local")))


def test_a_thousand_actions_at_once_hold_few_connections(watched: tuple[Watched, int]) -> None:
    """A connection is held while a statement runs, and not while an action does."""
    store, many = watched
    assert 0 < at_once(store, many) <= store.most
