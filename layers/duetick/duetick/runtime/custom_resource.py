"""CloudFormation's custom resources. Without an answer, CloudFormation waits for an hour."""

import http.client
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

from duetick.core.retrying import retry
from duetick.domain.redaction import redact_text

ResourceEvent: TypeAlias = Mapping[str, Any]
Work: TypeAlias = Callable[[ResourceEvent], dict[str, object]]
Send: TypeAlias = Callable[[str, bytes], None]

LONGEST_REASON: Final = 2_000
"""Characters of the reason as JSON: CloudFormation refuses answers beyond 4 KB."""

RESERVE: Final = 10.0
"""Seconds of the function's time that remain for the answer."""

TRIES: Final = 4

logger = logging.getLogger("duetick.migrate")


class ResourceContext(Protocol):
    """The part of the runtime's context that is used here."""

    log_stream_name: str

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the runtime ends the invocation."""


class ResourceRefused(OSError):
    """The ResponseURL did not take the answer."""


def is_asked_by_cloudformation(event: object) -> bool:
    """Return True if CloudFormation waits for an answer at a ResponseURL."""
    return isinstance(event, Mapping) and "ResponseURL" in event


class ResourceRequest:
    """A request of CloudFormation. It is answered once: at its end, or before the timeout."""

    def __init__(
        self, event: ResourceEvent, context: ResourceContext, send: Send | None = None
    ) -> None:
        self._event = event
        self._seconds = context.get_remaining_time_in_millis() / 1_000
        self._log_stream = context.log_stream_name
        self._send = send or put
        self._once = threading.Lock()

    def run(self, work: Work) -> None:
        """Do the work and answer. A delete does nothing: the data stays.

        It never raises: Lambda would invoke the function again, for nobody.
        """
        alarm = threading.Timer(max(self._seconds - RESERVE, 0), self._time_out)
        alarm.daemon = True
        alarm.start()
        try:
            done = {} if self._event["RequestType"] == "Delete" else work(self._event)
        except Exception as problem:
            logger.exception("deployment failed", extra={"action": "deploy_failed"})
            why = redact_text(f"{type(problem).__name__}: {problem}") or ""
            self._answer("FAILED", why)
        else:
            self._answer("SUCCESS", "", done)
        finally:
            alarm.cancel()

    def _time_out(self) -> None:
        self._answer("FAILED", "It did not end in the time that the function has.")

    def _answer(self, status: str, reason: str, data: Mapping[str, object] | None = None) -> None:
        if not self._once.acquire(blocking=False):
            return
        event = self._event
        body = {
            "Status": status,
            "Reason": f"{_shorten(reason)} Log stream: {self._log_stream}".strip(),
            "PhysicalResourceId": event.get("PhysicalResourceId") or event["LogicalResourceId"],
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "Data": {name: json.dumps(value)[:500] for name, value in (data or {}).items()},
        }
        self._send(event["ResponseURL"], json.dumps(body).encode())


def _shorten(reason: str) -> str:
    """Shorten the reason by its length in JSON: one character may take six bytes there."""
    while len(json.dumps(reason)) > LONGEST_REASON:
        reason = reason[: len(reason) * 9 // 10]
    return reason


def put(url: str, body: bytes) -> None:
    """Send the answer, and repeat it if the network fails: no answer costs an hour."""
    retry(
        lambda: _put(url, body),
        (OSError, http.client.HTTPException),
        TRIES,
        lambda tried: time.sleep(2**tried * 0.15),
    )


def _put(url: str, body: bytes) -> None:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=5)
    where = f"{parts.path}?{parts.query}" if parts.query else parts.path
    try:
        # The address is signed for an empty content type.
        connection.request("PUT", where, body, {"content-type": ""})
        status = connection.getresponse().status
    finally:
        connection.close()
    if status >= 300:
        raise ResourceRefused(f"The answer was refused with status {status}.")
