"""G-08: machines and operators reach a schedule by its outside id, and need to know no user."""

import json

import pytest
from duetick.cli.main import main
from duetick.client import ApiError
from duetick.operators import Operators

from tests.integration.api.asking import HELLO, refused
from tests.integration.local_product import Product

OUTSIDE = "crm/project 7"
PATH = "/api/schedules/by-external/crm~2Fproject~207"


@pytest.fixture
def machine(running: Product) -> Operators:
    """Return an operator of a product in which bob has the outside id."""
    running.operator("bob").put("hello", HELLO | {"externalId": OUTSIDE})
    return Operators(running.stack.server.url, token=running.stack.operator)


def test_g08_a_machine_finds_the_owner_of_an_outside_id(machine: Operators) -> None:
    found = machine.by_external(OUTSIDE)
    assert (found.body["user"], found.body["key"]) == ("bob", "hello")
    owner = machine.of(found.body["user"])
    assert owner.change("hello", {"labels": {}}, if_match=found.etag).status == 200
    with pytest.raises(ApiError, match="404 schedule_not_found"):
        machine.by_external("nobody's")


@pytest.mark.usefixtures("machine")
def test_g08_a_user_finds_its_own_alone(running: Product) -> None:
    mine = running.client("bob").by_external(OUTSIDE).body
    assert (mine["key"], "user" in mine) == ("hello", False)
    assert refused(running.client("ann").by_external, OUTSIDE) == (404, "schedule_not_found")


def test_g08_a_machine_dispatches_by_an_outside_id(running: Product, machine: Operators) -> None:
    ran = machine.dispatch(OUTSIDE, {"changed": ["title"]}, idempotency_key="delivery-1")
    assert ran["scheduleId"] == "bob/hello"
    again = machine.dispatch(OUTSIDE, idempotency_key="delivery-1")
    assert again == {"status": "duplicate", "state": "succeeded"}
    (line,) = running.operator("bob").history("hello")
    assert (line["origin"], line["state"]) == (ran["origin"], "succeeded")
    secret = Operators(running.stack.server.url, token=running.stack.secret)
    assert secret.dispatch(OUTSIDE)["scheduleId"] == "bob/hello"


def test_g08_an_export_shows_the_body_without_its_secrets(
    running: Product, machine: Operators
) -> None:
    machine.dispatch(OUTSIDE, {"changed": ["title"], "token": "sesame"})
    running.operator("bob").run("hello")
    shown = running.operator("bob").export()["history"]
    bodies = {str(line["origin"]).partition(":")[0]: line["body"] for line in shown}
    assert bodies == {"call": {"changed": ["title"], "token": "[withheld]"}, "run": None}
    assert "sesame" not in str(running.operator("bob").history("hello"))


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (b"\xff\xfe", "??"),
        (b'{"a": "\\ud800"}', {"a": "?"}),
        (b"[NaN, Infinity]", "[NaN, Infinity]"),
        (b"[" * 900 + b"]" * 900, None),
        (b"9" * 4_200, int("9" * 4_200)),
        (b"1e999", None),
    ],
    ids=["no text", "half a character", "no JSON", "deep", "a long number", "infinite"],
)
def test_g08_an_export_shows_whatever_was_sent(
    running: Product, machine: Operators, sent: bytes, shown: object
) -> None:
    machine.by_external(OUTSIDE)
    status, _ = running.call("POST", f"{PATH}/dispatch", sent, running.stack.operator)
    assert status == 202
    (line,) = running.operator("bob").export()["history"]
    assert shown is None or line["body"] == shown


@pytest.mark.parametrize("user", ["bob", "ann"])
def test_g08_no_user_dispatches_by_an_outside_id(
    running: Product, machine: Operators, user: str
) -> None:
    token = running.stack.token_of(user)
    status, answer = running.call("POST", f"{PATH}/dispatch", {}, token)
    assert (status, answer["error"]) == (401, "unauthorized")
    assert list(machine.of("bob").history("hello")) == []


@pytest.mark.usefixtures("machine")
def test_g08_each_outside_id_has_one_path(running: Product) -> None:
    for path in (PATH.replace("~2F", "~2f"), PATH.replace("crm", "~63rm")):
        assert running.call("GET", path, token=running.stack.operator)[0] == 400
        assert running.call("POST", f"{path}/dispatch", {}, running.stack.operator)[0] == 400


@pytest.mark.usefixtures("machine")
def test_g08_the_command_finds_and_dispatches(
    running: Product,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    at = ["--url", running.stack.server.url, "--json"]
    main(["schedules", "by-external", OUTSIDE, "--all-users", *at])
    assert json.loads(capsys.readouterr().out)["user"] == "bob"
    main(["schedules", "by-external", OUTSIDE, "--token", running.stack.token_of("bob"), *at])
    assert json.loads(capsys.readouterr().out)["key"] == "hello"
    main(["schedules", "dispatch", OUTSIDE, "--body", '{"a": 1}', *at])
    assert json.loads(capsys.readouterr().out)["scheduleId"] == "bob/hello"
    for wrong in (["--body", "[1]"], ["--body", "{"], ["--user", "bob"]):
        assert main(["schedules", "dispatch", OUTSIDE, *wrong, *at]) in (1, 2)
        assert capsys.readouterr().err
