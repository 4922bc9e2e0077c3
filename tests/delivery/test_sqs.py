"""The queue on SQS: the parts of a request, and the meaning of each answer for a message."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from duetick.domain.packs import OutgoingMessage
from duetick.network.sigv4 import Credentials, Signer
from duetick.ports import Sending
from duetick.transports.sqs import CONTENT_TYPE, SEND, SqsQueue

from tests.lab.serving import serve_in_thread

NOW = 1_000_000


class Endpoint(ThreadingHTTPServer):
    """SQS as a test has it answer."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.status, self.failed, self.cut, self.broken = 200, set[str](), False, False
        self.asked: list[tuple[dict[str, str], dict[str, Any]]] = []


class Asked(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        """Answer as the test wants it."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(({k.lower(): v for k, v in self.headers.items()}, body))
        if self.server.cut:
            self.connection.close()
            return
        ids = [one["Id"] for one in body.get("Entries", ())]
        said: dict[str, object] = {
            "Successful": [{"Id": one} for one in ids if one not in self.server.failed],
            "Failed": [{"Id": one, "Code": "InternalError"} for one in self.server.failed],
        }
        if self.server.status != 200:
            said = {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "secret words"}
        text = b"<html>" if self.server.broken else json.dumps(said).encode()
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_given: object) -> None:
        """Say nothing."""


@contextmanager
def listening(endpoint: Endpoint) -> Iterator[SqsQueue]:
    """Yield a queue at that endpoint."""
    url = f"http://127.0.0.1:{endpoint.server_port}/123456789012/packs"
    with serve_in_thread(endpoint):
        queue = SqsQueue(url, "eu-west-1", lambda: Credentials("key", "secret", "token"))
        yield queue
        queue.close()


@pytest.fixture
def endpoint() -> Endpoint:
    """One that answers well."""
    return Endpoint()


def messages(count: int, size: int = 10, due_in: int = 0) -> list[OutgoingMessage]:
    """Return a number of messages."""
    return [OutgoingMessage("b" * size, f"g{n}", NOW + due_in, ()) for n in range(count)]


def test_q01_ten_messages_travel_in_one_request_with_group_and_delay(endpoint: Endpoint) -> None:
    with listening(endpoint) as queue:
        assert queue.send(messages(12, due_in=61_999), NOW) == ["sent"] * 12
    (headers, first), (_, second) = endpoint.asked
    assert headers["x-amz-target"] == "AmazonSQS.SendMessageBatch"
    assert (len(first["Entries"]), len(second["Entries"])) == (10, 2)
    assert first["Entries"][3] == {
        "Id": "3",
        "MessageBody": "b" * 10,
        "DelaySeconds": 61,
        "MessageGroupId": "g3",
    }


def test_q01_a_request_is_no_larger_than_sqs_ever_took(endpoint: Endpoint) -> None:
    with listening(endpoint) as queue:
        queue.send(messages(10, size=60_000), NOW)
    assert [len(body["Entries"]) for _, body in endpoint.asked] == [4, 4, 2]


def test_q02_each_message_has_its_own_answer(endpoint: Endpoint) -> None:
    endpoint.failed = {"1"}
    with listening(endpoint) as queue:
        assert queue.send(messages(3), NOW) == ["sent", "refused", "sent"]


@pytest.mark.parametrize(
    ("status", "answer"), [(400, "refused"), (403, "refused"), (503, "in_doubt")]
)
def test_q02_a_request_that_fails_says_so_of_all(
    endpoint: Endpoint, status: int, answer: Sending, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.status = status
    with listening(endpoint) as queue:
        assert queue.send(messages(2), NOW) == [answer, answer]
    (line,) = caplog.records
    assert line.__dict__["why"] == "QueueDoesNotExist"
    assert "secret words" not in str(line.__dict__)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["cut", "broken"])
def test_q02_an_answer_that_never_came_leaves_all_in_doubt(endpoint: Endpoint, way: str) -> None:
    setattr(endpoint, way, True)
    with listening(endpoint) as queue:
        assert queue.send(messages(2), NOW) == ["in_doubt", "in_doubt"]


def test_q02_a_host_that_is_not_there_leaves_all_in_doubt() -> None:
    queue = SqsQueue("http://127.0.0.1:9/1/packs", "eu-west-1", lambda: Credentials("k", "s"))
    assert queue.send(messages(1), NOW) == ["in_doubt"]


def test_q02_a_message_is_put_back_by_its_visibility(endpoint: Endpoint) -> None:
    with listening(endpoint) as queue:
        queue.put_back("receipt", 5)
    ((headers, body),) = endpoint.asked
    assert headers["x-amz-target"] == "AmazonSQS.ChangeMessageVisibility"
    assert (body["ReceiptHandle"], body["VisibilityTimeout"]) == ("receipt", 5)


def test_a_message_that_cannot_be_put_back_is_told_and_raises_nothing(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.status = 400
    with listening(endpoint) as queue:
        queue.put_back("receipt", 5)
    assert [one.__dict__["action"] for one in caplog.records] == ["put_back_failed"]


def test_a_request_is_signed_as_botocore_signs_it() -> None:
    """Its own headers are signed with it, in the order of their names."""
    fixed = {"content-type": CONTENT_TYPE, "x-amz-target": "AmazonSQS.SendMessageBatch"}
    signer = Signer(lambda: Credentials("key", "secret", "token"), "eu-west-1", "sqs")
    now = time.time_ns() // 1_000_000
    ours = signer.headers("sqs.eu-west-1.amazonaws.com", "/", b"{}", now, SEND)
    theirs = AWSRequest(
        "POST",
        "https://sqs.eu-west-1.amazonaws.com/",
        headers={"Host": "sqs.eu-west-1.amazonaws.com", **fixed},
        data=b"{}",
    )
    theirs.context["timestamp"] = ours["x-amz-date"]
    keys = BotoCredentials("key", "secret", "token")
    auth = SigV4Auth(keys, "sqs", "eu-west-1")
    theirs.headers["X-Amz-Date"] = ours["x-amz-date"]
    theirs.headers["X-Amz-Security-Token"] = "token"
    signature = auth.signature(auth.string_to_sign(theirs, auth.canonical_request(theirs)), theirs)
    assert ours["authorization"].endswith(f"Signature={signature}")
