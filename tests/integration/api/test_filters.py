"""Lists narrowed by flow, label, state and text: pages stay right, secrets find nothing."""

import pytest
from duetick.cli.main import main
from duetick.client import Client
from duetick.domain.schedule import Json
from duetick.operators import Operators

from tests.integration.api.asking import HELLO, refused
from tests.integration.local_product import Product

DIGEST: Json = {"topic": "news", "email": "a@example.org"}


def keys(found: object) -> list[str]:
    """Return the keys of the schedules of a list."""
    assert hasattr(found, "__iter__")
    return [one["key"] for one in found]


def filled(client: Client) -> None:
    """Forty schedules: each tenth has the label, each fourth is of another flow."""
    for number in range(40):
        body = HELLO | {"labels": {"team": "garden" if number % 10 == 0 else "house"}}
        if number % 4 == 0:
            body |= {"flow": "digests", "action": "send_digest", "input": DIGEST}
        client.put(f"k{number:02}", body)


def test_a_list_is_narrowed_and_its_pages_are_right(anywhere: Product) -> None:
    client = anywhere.client()
    filled(client)
    client.pause("k20")
    for limit in (1, 3, 100):
        assert keys(client.list(limit=limit, label="team=garden")) == ["k00", "k10", "k20", "k30"]
        assert keys(client.list(limit=limit, flow="digests", label="team=garden")) == ["k00", "k20"]
        assert keys(client.list(limit=limit, state="paused", flow="digests")) == ["k20"]
        assert keys(client.list(limit=limit, text="K3")) == [f"k{one}" for one in range(30, 40)]
        assert keys(client.list(limit=limit, text="garden", flow="reminders")) == ["k10", "k30"]
    assert keys(client.list(text="nowhere")) == []
    assert refused(lambda: list(client.list(label="garden"))) == (400, "invalid_schedule")


def test_a_full_page_is_filled_across_what_does_not_fit(running: Product, client: Client) -> None:
    filled(client)
    first = running.call("GET", "/api/schedules?label=team%3Dgarden&limit=2")[1]
    assert keys(first["schedules"]) == ["k00", "k10"]
    rest = running.call(
        "GET", f"/api/schedules?label=team%3Dgarden&limit=2&cursor={first['cursor']}"
    )[1]
    assert keys(rest["schedules"]) == ["k20", "k30"]


def test_operators_narrow_the_schedules_of_all_users(anywhere: Product) -> None:
    for user in ("ann", "bob"):
        filled(anywhere.client(user))
    operators = Operators(anywhere.stack.server.url, token=anywhere.stack.operator)
    for limit in (2, 100):
        found = list(operators.schedules(limit=limit, label="team=garden", flow="digests"))
        assert sorted((one["user"], one["key"]) for one in found) == [
            (user, key) for user in ("ann", "bob") for key in ("k00", "k20")
        ]
        assert {one["user"] for one in operators.schedules(limit=limit, text="BOB")} == {"bob"}
    assert len(keys(operators.of("ann").list(label="team=garden"))) == 4


def test_j11_an_operator_finds_nothing_by_a_secret(running: Product) -> None:
    running.client("ann").put("k", HELLO | {"labels": {"token": "sesame", "team": "x"}})
    operators = Operators(running.stack.server.url, token=running.stack.operator)
    assert keys(operators.schedules(text="sesame")) == []
    assert keys(operators.schedules(label="token=sesame")) == []
    assert keys(operators.of("ann").list(text="sesame")) == []
    assert keys(operators.of("ann").list(label="token=sesame")) == []
    assert keys(running.client("ann").list(text="sesame")) == ["k"]
    assert keys(running.client("ann").list(label="token=sesame")) == ["k"]


@pytest.mark.parametrize("by", ["text", "flow", "label"])
def test_the_command_narrows_lists(
    running: Product, client: Client, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(client)
    value = {"text": "k07", "flow": "nowhere", "label": "team=garden"}[by]
    at = ["--url", running.stack.server.url, "--token", running.stack.token]
    assert main(["schedules", "list", f"--{by}", value, *at]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == {"text": 2, "flow": 1, "label": 5}[by]
