"""A creation that is repeated with its Idempotency-Key: made once, and told as it was made."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from duetick.api.views import ScheduleView
from duetick.client import Client, Fields, Reply
from duetick.domain.schedule import Json

from tests.integration.api.asking import DAY, HELLO, MINUTE, refused
from tests.integration.local_product import Product

ONCE = "order-7"
Act = Callable[[Client, str], object]


def told(reply: Reply[ScheduleView]) -> tuple[int, ScheduleView, str, str]:
    """Return the parts of an answer that a caller sees."""
    return reply.status, reply.body, reply.etag, reply.headers["location"]


def nothing(_client: Client, _key: str) -> None:
    """Change nothing."""


def patched(client: Client, key: str) -> None:
    """Change the cron of a schedule."""
    client.change(key, {"cron": "0 8 * * *"})


@pytest.mark.parametrize("act", [nothing, patched, Client.pause, Client.delete, Client.run])
@pytest.mark.parametrize("more", [{}, {"enabled": False}, {"timezone": "Europe/Berlin"}])
def test_a_repeated_creation_is_answered_like_the_first_whatever_came_between(
    running: Product, client: Client, act: Act, more: Fields
) -> None:
    body = HELLO | more
    first = client.create(body, idempotency_key=ONCE)
    if act is not Client.run or first.body["enabled"]:
        act(client, str(first.body["key"]))
    before = list(client.list())
    running.clock.now += MINUTE
    assert told(client.create(body, idempotency_key=ONCE)) == told(first)
    assert list(client.list()) == before


def test_a_repeat_may_name_its_key_and_order_its_fields_otherwise(client: Client) -> None:
    first = client.create(HELLO, key="hello", idempotency_key=ONCE)
    client.delete("hello")
    body: Fields = dict(reversed(HELLO.items()))
    assert told(client.create(body, key="hello", idempotency_key=ONCE)) == told(first)
    assert list(client.list()) == []


def test_a_repeat_is_answered_though_it_could_not_be_made_any_more(
    running: Product, client: Client
) -> None:
    body = HELLO | {"cron": "at(2026-12-01T09:00:00)"}
    first = client.create(body, idempotency_key=ONCE)
    running.clock.now += 60 * MINUTE
    assert told(client.create(body, idempotency_key=ONCE)) == told(first)
    assert refused(client.create, body)[0] == 400


@pytest.mark.parametrize(
    "other", [HELLO | {"cron": "0 8 * * *"}, HELLO | {"labels": {"a": "b"}}, HELLO | {"key": "b"}]
)
@pytest.mark.parametrize("act", [nothing, Client.delete])
def test_an_idempotency_key_with_another_body_is_refused(
    client: Client, other: Fields, act: Act
) -> None:
    made = client.create(HELLO, idempotency_key=ONCE)
    act(client, str(made.body["key"]))
    before = list(client.list())
    reused = (409, "idempotency_key_reused")
    assert refused(client.create, other, idempotency_key=ONCE) == reused
    assert list(client.list()) == before


def test_what_was_refused_may_be_asked_for_again(client: Client) -> None:
    assert refused(client.create, HELLO | {"cron": "75 * * * *"}, idempotency_key=ONCE)[0] == 400
    assert client.create(HELLO, idempotency_key=ONCE).status == 201


def test_a_day_later_an_idempotency_key_is_as_good_as_new(running: Product, client: Client) -> None:
    first = client.create(HELLO, idempotency_key=ONCE)
    running.clock.now += DAY
    assert refused(client.create, HELLO, idempotency_key=ONCE) == (409, "schedule_exists")
    client.delete(str(first.body["key"]))
    again = client.create(HELLO | {"cron": "0 8 * * *"}, idempotency_key=ONCE)
    assert again.body["cron"] == "0 8 * * *"


def test_an_idempotency_key_is_of_one_user(running: Product, client: Client) -> None:
    mine = client.create(HELLO, idempotency_key=ONCE)
    client.delete(str(mine.body["key"]))
    other = running.client("bob").create(HELLO | {"cron": "0 8 * * *"}, idempotency_key=ONCE)
    assert other.body["cron"] == "0 8 * * *"


def test_creations_at_once_with_one_idempotency_key_are_one(running: Product) -> None:
    def create(_: int) -> tuple[int, Json, str]:
        made = running.client().create(HELLO, idempotency_key=ONCE)
        return made.status, made.body["key"], made.etag

    with ThreadPoolExecutor(6) as pool:
        answers = set(pool.map(create, range(6)))
    assert len(answers) == 1
    assert len(list(running.client().list())) == 1


def test_an_erased_users_idempotency_key_is_new(running: Product, client: Client) -> None:
    client.create(HELLO, idempotency_key=ONCE)
    running.operator("you").erase()
    made = client.create(HELLO | {"cron": "0 8 * * *"}, idempotency_key=ONCE)
    assert made.body["cron"] == "0 8 * * *"
