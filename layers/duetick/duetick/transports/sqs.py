"""A queue of SQS, by its JSON protocol: a tick needs no botocore for it."""

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from duetick.domain.packs import OutgoingMessage
from duetick.network.exchange import Connections, post
from duetick.network.sigv4 import CredentialsSource, SignedFields, Signer
from duetick.ports import Sending
from duetick.transports.http import PORTS, split_url

SERVICE: Final = "sqs"
CONTENT_TYPE: Final = "application/x-amz-json-1.0"
SEND: Final[SignedFields] = (
    ("content-type", CONTENT_TYPE),
    ("x-amz-target", "AmazonSQS.SendMessageBatch"),
)
HIDE: Final[SignedFields] = (
    ("content-type", CONTENT_TYPE),
    ("x-amz-target", "AmazonSQS.ChangeMessageVisibility"),
)
AT_ONCE: Final = 10
"""The most messages of one request."""

LARGEST: Final = 250_000
"""The most characters of all messages of one request: SQS took 256 KB before it took 1 MiB."""

SECONDS: Final = 5.0
"""The longest that a request takes."""

OK: Final = 200
NOT_OURS: Final = 500
"""From this status on, nobody knows whether the request was carried out."""

logger = logging.getLogger("duetick.queue")


class SqsQueue:
    """`ports.PackTransport` and `ports.PackQueue` on SQS."""

    def __init__(self, url: str, region: str, credentials: CredentialsSource) -> None:
        """Prepare calls of the queue of that URL. Its host answers them."""
        place = split_url(url)
        self._url = url
        self._netloc = place.netloc
        self._connections = Connections(
            place.hostname or "", place.port or PORTS[place.scheme], secure=place.scheme == "https"
        )
        self._signer = Signer(credentials, region, SERVICE)

    def send(self, messages: Sequence[OutgoingMessage], now: int) -> Sequence[Sending]:
        """See `PackTransport`. Delays count from the request that has the message."""
        began = time.monotonic()
        answers: list[Sending] = []
        for batch in _batches(messages):
            at = now + int((time.monotonic() - began) * 1_000)
            answers += self._send_batch(batch, at)
        return answers

    def put_back(self, receipt: str, seconds: int) -> None:
        """See `PackQueue`. If it fails, the message comes again when its visibility is over."""
        body = {"ReceiptHandle": receipt, "VisibilityTimeout": seconds}
        status, said = self._call(HIDE, body)
        if status != OK:
            details = {"action": "put_back_failed", "why": _code(said)}
            logger.warning("a message is not put back: %s", status, extra=details)

    def close(self) -> None:
        """See `PackTransport`."""
        self._connections.close()

    def _send_batch(self, batch: Sequence[OutgoingMessage], now: int) -> Sequence[Sending]:
        entries = [
            {
                "Id": str(place),
                "MessageBody": one.body,
                "DelaySeconds": one.delay(now),
                "MessageGroupId": one.group,
            }
            for place, one in enumerate(batch)
        ]
        status, said = self._call(SEND, {"Entries": entries})
        if status != OK:
            self._log(status, _code(said), len(batch))
            answer: Sending = "in_doubt" if not status or status >= NOT_OURS else "refused"
            return [answer for _ in batch]
        return self._read(said, len(batch))

    def _read(self, said: Mapping[str, Any], count: int) -> Sequence[Sending]:
        """Return the answer of each message. One that is in neither list may be there."""
        found: dict[str, Sending] = {
            str(one.get("Id")): "sent" for one in _list(said, "Successful")
        }
        failed = _list(said, "Failed")
        found |= {str(one.get("Id")): "refused" for one in failed}
        if failed:
            self._log(OK, str(failed[0].get("Code")), len(failed))
        return [found.get(str(place), "in_doubt") for place in range(count)]

    def _call(
        self, fields: SignedFields, body: Mapping[str, object]
    ) -> tuple[int, Mapping[str, Any]]:
        """Call the queue. Return the status, or 0 without an answer, and the body."""
        payload = json.dumps({"QueueUrl": self._url, **body}).encode()
        at = time.time_ns() // 1_000_000
        headers = self._signer.headers(self._netloc, "/", payload, at, fields)
        request = post("/", {"host": self._netloc, **headers}, payload)
        end = time.monotonic() + SECONDS
        try:
            answer = self._connections.exchange(request, end)
        except Exception as problem:
            return 0, {"__type": type(problem).__name__}
        with suppress(ValueError):
            said = json.loads(answer.body)
            return answer.status, said if isinstance(said, dict) else {}
        return answer.status, {}

    def _log(self, status: int, why: str, count: int) -> None:
        details = {"action": "send_failed", "why": why, "messages": count}
        logger.warning("packs were not sent: %s", status, extra=details)


def _batches(messages: Sequence[OutgoingMessage]) -> Iterator[Sequence[OutgoingMessage]]:
    """Yield as many messages at a time as one request takes."""
    batch: list[OutgoingMessage] = []
    size = 0
    for one in messages:
        if batch and (len(batch) == AT_ONCE or size + len(one.body) > LARGEST):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one.body)
    if batch:
        yield batch


def _list(said: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    found = said.get(name)
    return found if isinstance(found, list) else []


def _code(said: Mapping[str, Any]) -> str:
    """Return the code of an error, and none of its words: they may repeat the body."""
    return str(said.get("__type", "")).rpartition("#")[2]
