"""Something between the client and the API answers in its place: that is an ApiError."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest
from duetick.cli.main import main
from duetick.client import ApiError, Client

PAGE = b"<html><body>Sign in</body></html>"


class Between(BaseHTTPRequestHandler):
    """Answers each call alike."""

    answers: ClassVar[list[tuple[int, dict[str, str], bytes]]] = []

    def do_GET(self) -> None:
        """Give the next answer; the last one to all that follow."""
        status, headers, body = self.answers.pop(0) if self.answers[1:] else self.answers[0]
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    serving = Thread(target=server.serve_forever, args=(0.01,))
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()


HTML = {"content-type": "text/html; charset=utf-8"}
ODD: list[tuple[int, dict[str, str], bytes, str]] = [
    (200, HTML, PAGE, "text/html"),
    (200, {}, b"", "nothing"),
    (200, {"content-type": "application/json"}, b'{"schedules": [', "application/json"),
    (200, {"content-type": "application/json"}, b"[]", "application/json"),
    (200, {"content-type": "application/json"}, b"[" * 100_000, "application/json"),
    (302, {"location": "https://login.example.com/"}, b"", "https://login.example.com/"),
    (502, HTML, PAGE, "text/html"),
    (503, {"content-type": "application/json"}, b'{"message": null, "problems": null}', "json"),
]


@pytest.mark.parametrize(("status", "headers", "body", "says"), ODD)
def test_an_answer_that_is_none_of_the_apis_is_told_as_one(
    url: str, status: int, headers: dict[str, str], body: bytes, says: str
) -> None:
    Between.answers = [(status, headers, body)]
    with pytest.raises(ApiError, match="Is the address right") as told:
        list(Client(url, token="t").list())
    assert told.value.status == status
    assert says in str(told.value)
    assert told.value.problems == ()


def test_the_command_says_it_plainly(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    Between.answers = [(200, HTML, PAGE)]
    assert main(["schedules", "--url", url, "--token", "t", "list"]) == 1
    err = capsys.readouterr().err
    assert "gave an answer that is not the API's: text/html. Is the address right" in err
    assert "unexpected" not in err


def test_an_answer_that_is_cut_is_nobodys(url: str) -> None:
    Between.answers = [(200, {"content-length": "99"}, b'{"schedules"')]
    with pytest.raises(ApiError) as told:
        list(Client(url, token="t").list())
    assert told.value.status == 0


def test_an_export_has_what_is_in_each_of_its_parts(url: str) -> None:
    def part(name: str, cursor: str | None) -> tuple[int, dict[str, str], bytes]:
        kinds = ("schedules", "jobs", "history")
        listed: dict[str, Any] = {one: [f"{one} {name}"] for one in kinds}
        return 200, {}, json.dumps({"user": "you", **listed, "cursor": cursor}).encode()

    Between.answers = [part("1", "more"), part("2", None)]
    whole: object = Client(url, token="t", user="you").export()
    assert whole == {
        "user": "you",
        "schedules": ["schedules 1", "schedules 2"],
        "jobs": ["jobs 1", "jobs 2"],
        "history": ["history 1", "history 2"],
        "cursor": None,
    }
