"""CloudFormation's custom resources: whatever happens, it is answered, or it waits for an hour."""

import http.client
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

Event: TypeAlias = Mapping[str, Any]
Work: TypeAlias = Callable[[Event], dict[str, object]]
Send: TypeAlias = Callable[[str, bytes], None]

LONGEST_REASON: Final = 2_000
"""As it is sent: CloudFormation refuses answers beyond 4 KB."""

RESERVE: Final = 10.0
"""Seconds of the function's time that are kept for answering."""

TRIES: Final = 4

logger = logging.getLogger("duetick.migrate")


class Context(Protocol):
    """As much of the runtime's context as is used."""

    log_stream_name: str

    def get_remaining_time_in_millis(self) -> int:
        """Until the runtime ends the invocation."""


class Refused(OSError):
    """The place where the answer goes did not take it."""


def is_asked_by_cloudformation(event: object) -> bool:
    """Whether somebody waits at a ResponseURL."""
    return isinstance(event, Mapping) and "ResponseURL" in event


class Answering:
    """One request of CloudFormation's, answered once: by its end, or shortly before its time is."""

    def __init__(self, event: Event, context: Context, send: Send | None = None) -> None:
        self._event = event
        self._seconds = context.get_remaining_time_in_millis() / 1_000
        self._log_stream = context.log_stream_name
        self._send = send or put
        self._once = threading.Lock()

    def run(self, work: Work) -> None:
        """Do what is asked, and answer. A delete does nothing: the data stays.

        It does not raise: Lambda would invoke it again, and nobody waits any more.
        """
        alarm = threading.Timer(max(self._seconds - RESERVE, 0), self._too_late)
        alarm.daemon = True
        alarm.start()
        try:
            done = {} if self._event["RequestType"] == "Delete" else work(self._event)
        except Exception as problem:
            logger.exception("deployment failed", extra={"action": "deploy_failed"})
            self._answer("FAILED", f"{type(problem).__name__}: {problem}")
        else:
            self._answer("SUCCESS", "", done)
        finally:
            alarm.cancel()

    def _too_late(self) -> None:
        self._answer("FAILED", "It did not end in the time that the function has.")

    def _answer(self, status: str, reason: str, data: Mapping[str, object] | None = None) -> None:
        if not self._once.acquire(blocking=False):
            return
        event = self._event
        body = {
            "Status": status,
            "Reason": f"{_shortened(reason)} Log stream: {self._log_stream}".strip(),
            "PhysicalResourceId": event.get("PhysicalResourceId") or event["LogicalResourceId"],
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "Data": {name: json.dumps(value)[:500] for name, value in (data or {}).items()},
        }
        self._send(event["ResponseURL"], json.dumps(body).encode())


def _shortened(reason: str) -> str:
    """JSON may make six bytes of one character."""
    while len(json.dumps(reason)) > LONGEST_REASON:
        reason = reason[: len(reason) * 9 // 10]
    return reason


def put(url: str, body: bytes) -> None:
    """Send the answer; a bad moment of the network must not cost an hour."""
    for attempt in range(TRIES):
        try:
            _put(url, body)
            break
        except (OSError, http.client.HTTPException):
            if attempt == TRIES - 1:
                raise
        time.sleep(2**attempt * 0.3)


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
        raise Refused(f"The answer was refused with status {status}.")
