"""The third document: posting days on a sparse index, a day that fell silent, a webhook routed.

Its reader has DynamoDB, products with a time for each day or none, and deployments that arrive for
a project whose owner nobody has named. Each test is a section of that document, done on the running
product, on Amazon's own DynamoDB.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from duetick import Context, Flow
from duetick.cli.main import main
from duetick.client import ApiError, Client, Fields
from duetick.core.flows import Flows
from duetick.domain.schedule import Json
from duetick.operators import Operators
from duetick.runtime import wiring
from duetick.stores.dynamodb.schema import DUE

from tests.integration.local_product import NINE, Clock, Product, product
from tests.lab.dynamodb import REGION

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

pytestmark = pytest.mark.slow

HOUR = 3_600_000
DAY = 24 * HOUR
POSTS: dict[str, Json] = {
    "x": {"tue": "09:00", "thu": {"time": "09:00"}, "wed": None},
    "threads": {"monday": "09:00", "tuesday": "09:00"},
}
PRODUCT: Fields = {"cron": POSTS, "flow": "posts", "action": "draft", "input": {"product": "p1"}}
PROJECT = "prj_7xK"


class Posts:
    """The document's one action: it drafts a post for each target that is due."""

    def __init__(self) -> None:
        self.drafted: list[tuple[str, tuple[str, ...], Json]] = []
        posts = Flow("posts")
        posts.action("draft")(self.draft)
        self.flows = Flows({"posts": posts})

    def draft(self, _given: object, ctx: Context) -> None:
        self.drafted.append((ctx.principal.user_id, ctx.targets, ctx.body))


@pytest.fixture
def posts(monkeypatch: pytest.MonkeyPatch) -> Posts:
    made = Posts()
    monkeypatch.setattr(wiring, "flows", cache(lambda: made.flows))
    return made


@pytest.fixture
def running(
    posts: Posts, migrated_dynamodb_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Product]:
    """The product, an hour before nine on a Tuesday."""
    del posts
    with product(migrated_dynamodb_url, Clock(NINE - HOUR), monkeypatch) as made:
        yield made


@pytest.fixture
def ann(running: Product) -> Client:
    return running.client("ann")


@dataclass(frozen=True, slots=True)
class Look:
    """The table, as its owner sees it with the AWS CLI."""

    client: "DynamoDBClient"
    table: str

    def indexed(self) -> list[dict[str, "AttributeValueTypeDef"]]:
        """Return the keys of the items that the sparse index has."""
        found = self.client.query(
            TableName=self.table,
            IndexName=DUE,
            KeyConditionExpression="st = :active",
            ExpressionAttributeValues={":active": {"S": "active"}},
        )
        return [{"p": item["p"], "s": item["s"]} for item in found["Items"]]


@pytest.fixture
def look(running: Product, migrated_dynamodb_url: str) -> Look:
    del running
    parts = urlsplit(migrated_dynamodb_url)
    (endpoint,) = parse_qs(parts.query)["endpoint"]
    client = boto3.client("dynamodb", endpoint_url=endpoint, region_name=REGION)
    return Look(client, str(parts.hostname))


def test_g05_a_day_is_on_if_it_has_a_time_and_each_target_has_its_days(
    running: Product, posts: Posts, ann: Client
) -> None:
    """The schedule of a product; two targets at one minute are one draft for both."""
    made = ann.put("p1", PRODUCT).body
    assert made["nextFireAt"] == "2026-12-01T09:00:00Z"
    for day in range(7):
        running.clock.now = NINE + day * DAY
        running.tick()
    assert [targets for _, targets, _ in posts.drafted] == [("x", "threads"), ("x",), ("threads",)]
    assert ann.get("p1").body["nextFireAt"] == "2026-12-08T09:00:00Z"


def test_g01_what_is_paused_or_not_configured_is_not_in_the_index(look: Look, ann: Client) -> None:
    """The sparse GSI approach: the attribute is absent, and a tick's query never meets the item."""
    for number in range(1, 4):
        ann.put(f"p{number}", PRODUCT)
    assert len(look.indexed()) == 3
    ann.pause("p2")
    ann.change("p3", {"enabled": False})
    assert len(look.indexed()) == 1
    ann.resume("p2")
    assert len(look.indexed()) == 2
    ann.delete("p1")
    assert len(look.indexed()) == 1


@pytest.mark.parametrize(
    ("days", "field"),
    [
        ({"mon": {"enabled": True}}, "/cron"),
        ({"mon": None, "tue": None}, "/cron"),
        ({"mon": True}, "/cron"),
        ({"mon": "9am"}, "/cron/mon"),
    ],
)
def test_g05_a_map_that_would_never_fire_is_refused_and_not_silent(
    look: Look, ann: Client, days: Json, field: str
) -> None:
    """The bug that took a day: `enabled` is no field, and an empty answer is no next run."""
    with pytest.raises(ApiError) as refused:
        ann.put("p1", {**PRODUCT, "cron": days})
    assert refused.value.status == 400
    assert [one["field"] for one in refused.value.problems] == [field]
    assert look.indexed() == []


def test_i12_a_schedule_that_fell_silent_is_found_and_mended(
    running: Product,
    look: Look,
    posts: Posts,
    ann: Client,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The bug that took a day: an empty result each minute, and no error. Here it is counted."""
    ann.put("p1", PRODUCT)
    (key,) = look.indexed()
    look.client.update_item(TableName=look.table, Key=key, UpdateExpression="REMOVE st")
    running.clock.now = NINE
    assert running.tick()["claimed"] == 0
    assert main(["check", "--store", running.stack.store]) == 1
    assert capsys.readouterr().out.splitlines()[1].split()[1:] == ["ann", "p1"]
    assert main(["rebuild", "--yes", "--store", running.stack.store]) == 0
    running.tick()
    assert len(posts.drafted) == 1


def test_g08_a_webhook_finds_the_product_that_owns_its_project(
    running: Product, posts: Posts, ann: Client
) -> None:
    """The webhook routing problem: one query from the project to its product, and its body."""
    for number in range(1, 4):
        ann.put(f"p{number}", PRODUCT)
    running.operator("ann").change("p2", {"externalId": PROJECT})
    machine = Operators(running.stack.server.url, token=running.stack.secret)
    deployed: Fields = {"type": "deployment.succeeded", "project": PROJECT}
    assert machine.dispatch(PROJECT, deployed, idempotency_key="evt_1")["scheduleId"] == "ann/p2"
    machine.dispatch(PROJECT, deployed, idempotency_key="evt_1")
    assert posts.drafted == [("ann", (), dict(deployed))]
    with pytest.raises(ApiError, match="404 schedule_not_found"):
        machine.dispatch("prj_unknown", deployed)
    with pytest.raises(ApiError) as taken:
        running.operator("ann").change("p3", {"externalId": PROJECT})
    assert taken.value.status == 400
