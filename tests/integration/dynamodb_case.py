"""Parts for tests of the DynamoDB store: a table of their own, and a look inside."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetick.core.store import Store
from duetick.domain.policies import Policies
from duetick.domain.schedule import Json, Occurrence, Schedule
from duetick.domain.states import State
from duetick.ports import Clock
from duetick.stores.dynamodb.shelf import open_dynamodb

from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.dynamodb_service import watched

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

NOON = 1_800_014_400_000
MINUTE = 60_000
HOUR = 60 * MINUTE


class DynamoStore(Store):
    """A store on a table."""

    def __init__(self, url: str, clock: Clock) -> None:
        super().__init__(open_dynamodb(url, checks_clock=False), clock)


class Crash(Exception):
    """The process ends here."""


@dataclass
class Case:
    """One table, and stores on it whose clock is the test's."""

    endpoint: DynamoDB
    table: str = field(default_factory=table_name)
    now: int = NOON
    opened: list[Store] = field(default_factory=list)

    def open(self, options: str = "") -> DynamoStore:
        """Return a store as another process would have it."""
        store = DynamoStore(self.url + options, lambda: self.now)
        self.opened.append(store)
        return store

    @property
    def url(self) -> str:
        return self.endpoint.table_url(self.table)

    def migrated(self, options: str = "") -> DynamoStore:
        store = self.open(options)
        store.migrate()
        return store

    def items(self) -> "list[dict[str, AttributeValueTypeDef]]":
        """Everything in the table: a test may scan."""
        pages = self.endpoint.client().get_paginator("scan").paginate(TableName=self.table)
        return [item for page in pages for item in page["Items"]]

    def drop(self, prefix: str) -> None:
        """Delete every item whose partition begins with a prefix, as its expiry would."""
        for item in self.items():
            if item["p"]["S"].startswith(prefix):
                key = {"p": item["p"], "s": item["s"]}
                self.endpoint.client().delete_item(TableName=self.table, Key=key)

    def due(self) -> list[str]:
        """Return the statuses in the index `due`."""
        found = self.endpoint.client().scan(TableName=self.table, IndexName="due")
        return [item["st"]["S"] for item in found["Items"]]

    def close(self) -> None:
        for store in self.opened:
            store.close()


def schedule(
    key: str = "digest",
    cron: str = "0 * * * *",
    *,
    user_id: str = "ada",
    policies: Policies | None = None,
    given: Json = None,
    external_id: str | None = None,
) -> Schedule:
    """Return an hourly schedule, unless the test says otherwise."""
    return Schedule(
        user_id,
        key,
        cron,
        "reminders",
        "send_digest",
        input=given,
        policies=policies or Policies(),
        external_id=external_id,
    )


@contextmanager
def requests(store: DynamoStore, seen: Callable[[str, dict[str, object]], None]) -> Iterator[None]:
    """Call `seen` with the name and the parameters of each request before it is sent."""
    with watched(store.shelf, seen):
        yield


def outcomes(store: Store, user_id: str = "ada") -> dict[tuple[str, int], list[Occurrence]]:
    """Return the outcome of each schedule and nominal time in the ledger."""
    found: dict[tuple[str, int], list[Occurrence]] = {}
    for held in store.ledger.find(user_id, limit=10_000):
        found.setdefault((held.key, held.nominal_at), []).append(held)
    return found


ENDED = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED})
