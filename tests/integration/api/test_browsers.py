"""Calls out of a web page: asked about without a token, and readable for the page that may."""

from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from duetick.api.openapi import document
from duetick.runtime.gateway import SENT, SHOWN

from tests.integration.local_product import NINE, Clock, Product, product

PAGE = "https://app.example.com"


@pytest.fixture(params=[PAGE, ""], ids=["allowed", "none"])
def origin(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def there(origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    monkeypatch.setenv("DUETICK_ALLOWED_ORIGIN", origin)
    with product(f"sqlite:///{tmp_path}/browsers.db", Clock(NINE), monkeypatch) as made:
        made.store.migrate()
        yield made


def call(there: Product, method: str, token: str = "") -> HTTPResponse:
    connection = HTTPConnection(urlsplit(there.stack.server.url).netloc, timeout=60)
    headers = {"Origin": PAGE, "Authorization": f"Bearer {token}"}
    connection.request(method, "/api/schedules", headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_what_a_page_may_do_is_told_without_a_token(there: Product, origin: str) -> None:
    answer = call(there, "OPTIONS")
    assert answer.status == (204 if origin else 403)
    assert answer.headers["Access-Control-Allow-Origin"] == (origin or None)
    if origin:
        assert "PATCH" in answer.headers["Access-Control-Allow-Methods"]
        assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]


@pytest.mark.parametrize("known", [True, False])
def test_answers_and_refusals_are_readable_for_that_page_alone(
    there: Product, origin: str, known: bool
) -> None:
    answer = call(there, "GET", there.stack.token if known else "no.such.token")
    assert answer.status == (200 if known else 401)
    assert answer.headers.get_all("Access-Control-Allow-Origin") == ([origin] if origin else None)


def test_every_header_that_the_api_reads_or_gives_is_named() -> None:
    told = document()
    given = {
        one["name"].lower()
        for path in told["paths"].values()
        for operation in path.values()
        for one in operation.get("parameters", ())
        if one["in"] == "header" and operation["tags"] == ["users"]
    }
    of_routes = [
        response
        for path in told["paths"].values()
        for operation in path.values()
        for response in operation["responses"].values()
    ]
    every = [*of_routes, *told["components"]["responses"].values()]
    answered = {name.lower() for response in every for name in response.get("headers", ())}
    assert {"etag", "retry-after"} <= answered
    assert given <= set(SENT.lower().split(", "))
    assert answered <= set(SHOWN.lower().split(", "))
