"""A method that a route does not take is refused, and Allow names those that it takes."""

import json
import re
from http.client import HTTPConnection
from importlib.resources import files
from urllib.parse import urlsplit

import pytest

from tests.integration.local_product import Product

PATHS = json.loads(files("duetick.api").joinpath("openapi.json").read_text())["paths"]
METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def may_be(path: str, target: str) -> bool:
    """Return True if the path of a call has that form: a name may be the word of another path."""
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), target) is not None


@pytest.mark.parametrize("path", PATHS)
def test_every_published_path_tells_its_methods_to_who_may_call_it(
    running: Product, path: str
) -> None:
    target = path.format(user="ann", key="never-was", id="occ_1", scope="all", flow="reminders")
    every = (one for one in PATHS if may_be(one, target))
    taken = sorted({method.upper() for one in every for method in PATHS[one]})
    users = path.startswith(
        ("/api/schedules", "/api/actions", "/api/flows", "/api/jobs", "/api/upcoming")
    )
    token = running.stack.token if users else running.stack.operator
    connection = HTTPConnection(urlsplit(running.stack.server.url).netloc, timeout=60)
    for method in sorted(set(METHODS) - set(taken)):
        connection.request(method, target, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        assert (answer.status, told["error"]) == (405, "method_not_allowed")
        assert answer.headers["Allow"] == ", ".join(taken)
        assert answer.headers["Allow"] in told["message"]
    connection.close()
