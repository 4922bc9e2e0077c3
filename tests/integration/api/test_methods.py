"""A method that a route does not take is refused, and Allow says which it does."""

import json
from http.client import HTTPConnection
from importlib.resources import files
from urllib.parse import urlsplit

import pytest

from tests.integration.local_product import Product

PATHS = json.loads(files("duetick.api").joinpath("openapi.json").read_text())["paths"]
METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


@pytest.mark.parametrize("path", PATHS)
def test_every_published_path_tells_its_methods_to_who_may_call_it(
    running: Product, path: str
) -> None:
    taken = sorted(method.upper() for method in PATHS[path])
    users = path.startswith(("/api/schedules", "/api/actions"))
    token = running.stack.token if users else running.stack.operator
    connection = HTTPConnection(urlsplit(running.stack.server.url).netloc, timeout=60)
    for method in sorted(set(METHODS) - set(taken)):
        target = path.format(user="ann", key="never-was", id="occ_1", scope="all")
        connection.request(method, target, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        assert (answer.status, told["error"]) == (405, "method_not_allowed")
        assert answer.headers["Allow"] == ", ".join(taken)
        assert answer.headers["Allow"] in told["message"]
    connection.close()
