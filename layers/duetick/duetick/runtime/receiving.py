"""The messages of a queue, as Lambda hands them to the dispatch function."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from duetick.core.dispatch.packs import COMES_BACK_IN, PackReport
from duetick.domain.packs import UnreadableMessage
from duetick.ports import PackQueue
from duetick.runtime.telemetry import record_pack

RunMessage: TypeAlias = Callable[[str, float], PackReport]
"""A function that dispatches the body of a message, within so many seconds."""

FOR_EVENTS: Final = 1.0
"""Seconds of the invocation that a message leaves."""

logger = logging.getLogger("duetick.dispatch")


def answer_messages(
    event: Mapping[str, Any], queue: PackQueue, left: Callable[[], float], run: RunMessage
) -> dict[str, object]:
    """Dispatch each message. Return the answer that lets only the unfinished messages come again.

    A message that cannot be read comes again as well, until the queue puts it among the dead.
    """
    failures: list[dict[str, str]] = []
    for message in event["Records"]:
        seconds = _run_one(message, left() - FOR_EVENTS, run)
        if seconds is not None:
            queue.put_back(message["receiptHandle"], seconds)
            failures.append({"itemIdentifier": message["messageId"]})
    return {"batchItemFailures": failures}


def _run_one(message: Mapping[str, Any], seconds: float, run: RunMessage) -> int | None:
    """Dispatch a message. Return the seconds after which the message has to come again, or None."""
    named = {
        "pack": message["messageId"],
        "receives": message.get("attributes", {}).get("ApproximateReceiveCount"),
    }
    try:
        report = run(message["body"], seconds)
    except UnreadableMessage as problem:
        details = {"action": "pack_unreadable", **named}
        logger.error("a message cannot be read: %s", problem, extra=details)
        return COMES_BACK_IN
    except Exception:
        logger.exception("a message failed", extra={"action": "pack_failed", **named})
        return COMES_BACK_IN
    record_pack(report, named)
    return report.comes_back_in
