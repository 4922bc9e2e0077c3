"""Each answer is small enough for a function, however much a user has; and cursors are the user's
own.
"""

from base64 import urlsafe_b64encode
from itertools import product

import pytest
from duetick.client import Client, Fields

from tests.integration.api.asking import HELLO, MINUTE, refused
from tests.integration.local_product import Product

LARGEST_ANSWER = 6_291_556
"""What Lambda takes from a function, as JSON in JSON."""


@pytest.fixture
def largest(client: Client) -> list[str]:
    """The keys of 24 schedules with inputs that double when they are escaped."""
    body: Fields = HELLO | {"input": {"text": '"' * 32_000}}
    return [str(client.put(f"k{number:02}", body).body["key"]) for number in range(24)]


@pytest.mark.slow
@pytest.mark.parametrize("machine", [False, True])
def test_a_list_of_the_largest_inputs_comes_in_pages_that_fit(
    running: Product, client: Client, largest: list[str], machine: bool
) -> None:
    one = running.operator("you") if machine else client
    path = "/api/users/you/schedules" if machine else "/api/schedules"
    page = one.call("GET", f"{path}?limit=100").body
    assert page["cursor"]
    assert len(str(page)) * 4 < LARGEST_ANSWER
    assert [schedule["key"] for schedule in one.list()] == largest


@pytest.mark.slow
def test_a_user_is_exported_in_parts_that_fit(
    running: Product, client: Client, largest: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetick.core.histories.AT_ONCE", 10)
    for key in ("a", "b", "c d"):
        client.put(key, HELLO | {"cron": "* * * * *"})
    for _ in range(9):
        running.clock.now += MINUTE
        running.tick()
    client.delete("b")
    machine = running.operator("you")
    path = "/api/users/you/export"
    assert machine.call("GET", path).body["cursor"]
    whole = machine.export()
    assert whole.keys() == {"user", "schedules", "jobs", "history", "cursor"}
    assert [one["key"] for one in whole["schedules"]] == ["a", "c d", *largest]
    lines = whole["history"]
    assert len({line["id"] for line in lines}) == len(lines) == 27
    assert {line["key"] for line in lines} == {"a", "b", "c d"}


def packed(text: str) -> str:
    """Return a cursor as it travels."""
    return urlsafe_b64encode(text.encode()).decode()


ODD = [
    "!",
    packed("5 " + "x" * 5_000),
    packed("5 a\x00"),
    packed("x" * 2_000),
    packed('["\\ud800"]'),
    packed('[""]'),
    *("." + packed(text) for text in ("", "5", "[]", "{}", "[5]", '["5", "k", "o"]')),
    *("." + packed(text) for text in ('[5, "../k", "o"]', '[5, "k", ""]', '[true, "k", "o"]')),
    *("." + packed(text) for text in ('[5, "k", "\\ud800"]', '[5, "\\ud800", "o"]', "[NaN, 1, 2]")),
    "." + packed('[5, "k", "' + "o" * 2_000 + '"]'),
    "." + packed("[" * 5_000),
]


LISTS = ("/schedules", "/jobs", "/schedules/hello/history", "/export")
BEHIND_JOBS = ("/export", ".")
"""An export goes on with this one where its jobs end."""


@pytest.mark.parametrize(
    ("path", "cursor"), [one for one in product(LISTS, ODD) if one != BEHIND_JOBS]
)
def test_a_cursor_that_no_page_carried_is_refused(running: Product, path: str, cursor: str) -> None:
    machine = running.operator("you")
    machine.put("hello", HELLO)
    asked = f"/api/users/you{path}?cursor={cursor}"
    assert refused(machine.call, "GET", asked) == (400, "invalid_cursor")
