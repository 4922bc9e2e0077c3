"""V-01: the door of the pages on this machine, and the rights of a page."""

import json
import re
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from duetick.cli.door import (
    CONSOLE,
    PAGES,
    PICKER,
    POLICY,
    PROOF,
    PageDoor,
    Shown,
    Visit,
)
from duetick.cli.main import main

from tests.integration.local_product import NINE, Clock, Product, product

OVERVIEW: Final = f"{CONSOLE}/api/overview"


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    """The product, on an empty file."""
    with product(f"sqlite:///{tmp_path}/door.db", Clock(NINE), monkeypatch) as made:
        yield made


def knock(
    local: Product, method: str, path: str, headers: Mapping[str, str] | None = None, body: str = ""
) -> tuple[HTTPResponse, bytes]:
    """Return the answer to a request, as any program of this machine may send it."""
    connection = HTTPConnection(urlsplit(local.stack.server.url).netloc, timeout=60)
    connection.request(method, path, body or None, dict(headers or {}))
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def hand_in(local: Product, link: str, page: str = CONSOLE) -> tuple[int, dict[str, str]]:
    """Return the answer to a page for the code of its link."""
    code = link.partition("#open=")[2]
    answer, content = knock(local, "POST", f"{page}/open", body=json.dumps({"code": code}))
    return answer.status, json.loads(content)


def token(local: Product) -> dict[str, str]:
    """Return the header that a page sends."""
    status, told = hand_in(local, local.stack.console)
    assert status == 200
    return {PROOF: told["token"]}


def refused(answer: tuple[HTTPResponse, bytes]) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    return answer[0].status, json.loads(answer[1])["error"]


def test_v01_a_call_needs_the_token_of_this_start(local: Product) -> None:
    assert refused(knock(local, "GET", OVERVIEW)) == (401, "no_token")
    for wrong in ("", "x", local.stack.operator, local.stack.token, "ü"):
        given = {PROOF: wrong.encode().decode("latin-1")}
        assert refused(knock(local, "GET", OVERVIEW, given)) == (401, "no_token")
    answer, content = knock(local, "GET", OVERVIEW, token(local))
    assert answer.status == 200
    assert "wrong" in json.loads(content)


def test_v01_a_code_opens_once_and_another_one_opens_for_the_next(local: Product) -> None:
    first, second = local.stack.console, local.stack.console
    assert first != second
    assert hand_in(local, first)[0] == 200
    assert (hand_in(local, first)[0], hand_in(local, first)[1]["error"]) == (403, "old_link")
    assert hand_in(local, second)[0] == 200


NO_CODES: Final = ("", "[]", "null", '{"code": ""}', '{"code": 5}', '{"code": {}}')


@pytest.mark.parametrize("body", [*NO_CODES, pytest.param("[" * 100_000, id="too deep")])
def test_v01_what_is_no_code_opens_nothing(local: Product, body: str) -> None:
    assert local.stack.console
    asked = knock(local, "POST", f"{CONSOLE}/open", body=body)
    assert refused(asked) == (403, "old_link")


def test_v01_no_token_is_in_a_url_and_no_code_reaches_a_server(local: Product) -> None:
    link = local.stack.console
    assert token(local)[PROOF] not in link
    parts = urlsplit(link)
    assert (parts.path, parts.query) == (CONSOLE, "")
    assert re.fullmatch(r"open=[\w-]{32}", parts.fragment)
    code = parts.fragment.removeprefix("open=")
    assert refused(knock(local, "GET", f"{CONSOLE}/open?code={code}")) == (403, "old_link")
    assert hand_in(local, link)[0] == 200, "a GET has not used it up"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1", "[::1]:1", ""])
@pytest.mark.parametrize("path", [CONSOLE, f"{CONSOLE}/open", OVERVIEW, "/", PICKER])
def test_v01_a_rebound_host_gets_nothing(local: Product, host: str, path: str) -> None:
    given = {"Host": host, **token(local)}
    assert refused(knock(local, "GET", path, given)) == (421, "wrong_host")


def test_v01_this_machine_is_known_by_both_of_its_names(local: Product) -> None:
    port = local.stack.server.server_port
    for name in ("127.0.0.1", "localhost"):
        asked = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}", **token(local)}
        assert knock(local, "GET", OVERVIEW, asked)[0].status == 200


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost"])
@pytest.mark.parametrize("port", ["", ":80"])
def test_v01_on_the_port_of_http_a_host_may_name_it_or_not(name: str, port: str) -> None:
    door = PageDoor(80, lambda _: Shown(200, b"", {}))
    assert door.link().startswith(f"http://127.0.0.1:80{CONSOLE}#open=")
    sent = {"host": f"{name}{port}", "origin": f"http://{name.lower()}"}
    assert b"old_link" in door.answer(Visit("POST", f"{CONSOLE}/open", "", sent, b"")).body
    for wrong in ("evil.example", "evil.example:80", "127.0.0.1:8080", f"{name}:80:80"):
        answer = door.answer(Visit("GET", CONSOLE, "", {"host": wrong}, b""))
        assert answer.status == 421, wrong
    foreign = {**sent, "origin": "http://evil.example"}
    assert b"wrong_origin" in door.answer(Visit("POST", OVERVIEW, "", foreign, b"")).body


@pytest.mark.parametrize(
    "given",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
@pytest.mark.parametrize("path", [f"{CONSOLE}/open", OVERVIEW, f"{CONSOLE}/links"])
def test_v01_a_foreign_origin_calls_nothing(
    local: Product, given: dict[str, str], path: str
) -> None:
    assert refused(knock(local, "POST", path, {**given, **token(local)})) == (403, "wrong_origin")


def test_v01_every_answer_has_the_policy(local: Product) -> None:
    asked = [*((path, {}) for path in PAGES), (OVERVIEW, token(local)), (OVERVIEW, {}), ("/", {})]
    for path, given in asked:
        answer, _ = knock(local, "GET", path, given)
        assert {name: answer.headers[name] for name in POLICY} == POLICY, path
    policy = POLICY["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_v01_pages_need_no_token_and_hold_no_data(local: Product) -> None:
    local.client().put(
        "canary", {"cron": "@daily", "flow": "reminders", "action": "remind", "input": {"text": ""}}
    )
    for path in PAGES:
        answer, content = knock(local, "GET", path, {"Accept-Encoding": "identity"})
        assert answer.status == 200
        assert b"canary" not in content
        assert local.stack.operator.encode() not in content
        assert refused(knock(local, "POST", path)) == (405, "method_not_allowed")


def test_v01_no_script_and_no_style_stands_inside_a_page(local: Product) -> None:
    for path in (CONSOLE, PICKER):
        page = knock(local, "GET", path)[1].decode()
        assert re.findall(r"<script(?![^>]* src=)", page) == []
        assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page) == []
        assert re.findall(r'(?:src|href)="(?!/(?:console|picker)/)', page) == []


def test_v01_a_link_is_made_for_operators_alone(local: Product) -> None:
    links = f"{CONSOLE}/links"
    for wrong in ("", "Bearer x", f"Bearer {local.stack.token}"):
        assert knock(local, "POST", links, {"Authorization": wrong})[0].status == 404
    answer, content = knock(
        local, "POST", links, {"Authorization": f"Bearer {local.stack.operator}"}
    )
    assert answer.status == 200
    assert hand_in(local, json.loads(content)["link"])[0] == 200


def test_v01_the_command_prints_a_link_to_the_local_stack(
    local: Product, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETICK_OPERATOR", local.stack.operator)
    assert main(["console", "--url", local.stack.server.url]) == 0
    assert hand_in(local, capsys.readouterr().out.strip())[0] == 200


def test_v01_the_link_of_the_example_gives_a_users_token_and_no_operators(local: Product) -> None:
    status, told = hand_in(local, local.stack.example, PICKER)
    assert (status, told["user"]) == (200, "you")
    given = {"Authorization": f"Bearer {told['token']}"}
    assert knock(local, "GET", "/api/schedules", given)[0].status == 200
    assert refused(knock(local, "GET", OVERVIEW, {PROOF: told["token"]})) == (401, "no_token")


def test_a_page_comes_packed_and_is_not_sent_twice(local: Product) -> None:
    asked = {"Accept-Encoding": "gzip"}
    answer, packed = knock(local, "GET", f"{CONSOLE}/console.js", asked)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(packed) < 40_000
    again, nothing = knock(
        local, "GET", f"{CONSOLE}/console.js", {"If-None-Match": answer.headers["ETag"]}
    )
    assert (again.status, nothing) == (304, b"")


def test_a_start_of_the_address_leads_to_the_console(local: Product) -> None:
    answer, _ = knock(local, "GET", "/")
    assert (answer.status, answer.headers["Location"]) == (303, CONSOLE)
    assert refused(knock(local, "GET", f"{CONSOLE}/nowhere")) == (404, "not_found")


def test_of_very_many_links_the_oldest_are_forgotten(local: Product) -> None:
    first = local.stack.console
    links = [local.stack.console for _ in range(100)]
    assert hand_in(local, first)[0] == 403
    assert hand_in(local, links[0])[0] == 200
    assert PageDoor.takes(CONSOLE)
