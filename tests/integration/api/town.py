"""A product with two users, and the calls of one for the other's things."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from duetick.api.views import ExportView
from duetick.client import Client, Fields

from tests.integration.local_product import Product

OURS, THEIRS, NEVER = "ann", "bob", "nobody"
KEY, EXTERNAL, IDEMPOTENCY = "theirs", "their-project", "their-order"
SCHEDULE: Fields = {
    "cron": "* * * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "canary"},
}
WORK: Fields = {name: value for name, value in SCHEDULE.items() if name != "cron"}
VOLATILE = ("date", "server", "location")


@dataclass(frozen=True, slots=True)
class Attempt:
    """The headers and body of a call on a route."""

    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Town:
    """A product in which bob has schedules with a past, and ann has none."""

    product: Product
    theirs: Client
    etag: str
    job: str

    def names(self, path: str) -> tuple[str, str]:
        """Return the name of a thing of bob's on a route, and one that nothing ever had."""
        if "/jobs/{key}" in path:
            return self.job, f"occ_{'0' * 28}"
        return (EXTERNAL if "external" in path else KEY), "never-was"

    def send(
        self, method: str, path: str, attempt: Attempt, token: str, **names: str
    ) -> tuple[int, dict[str, str], str]:
        """Send a call. Return its status, headers and body, with the names in it made anonymous."""
        connection = HTTPConnection(urlsplit(self.product.stack.server.url).netloc, timeout=60)
        filled = {"etag": self.etag, **names}
        headers = {name: _fill(value, filled) for name, value in attempt.headers.items()}
        body = None if attempt.body is None else _fill(json.dumps(attempt.body), filled)
        headers["Authorization"] = f"Bearer {token}"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        shown = {n.lower(): v for n, v in answer.getheaders() if n.lower() not in VOLATILE}
        for name in names.values():
            text = text.replace(name, "*")
        shown["content-length"] = str(len(text))
        return answer.status, shown, text

    def everything(self) -> ExportView:
        """Return all data of bob."""
        return self.product.operator(THEIRS).export()

    def forget_ours(self) -> None:
        """Erase everything of ann's own that an attempt has made."""
        self.product.operator(OURS).erase()


def _fill(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text
