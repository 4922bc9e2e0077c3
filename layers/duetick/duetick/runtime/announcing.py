"""Events: each notice goes to a bus of EventBridge, or to the local stack's terminal.

A failure here is a line of the log, and makes nothing else fail.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from duetick.aws import client_of
from duetick.core.correlation import tick_id
from duetick.core.notices import TITLES, Notice, Notices, Subject, look, notice_json
from duetick.core.store import Store
from duetick.ports import Trouble
from duetick.runtime.settings import Settings
from duetick.runtime.telemetry import SERVICE

SOURCE: Final = "duetick"
BATCH: Final = 10
"""The most entries of one call of PutEvents."""

PATIENCE: Final = 1.5
NEEDED: Final = 4.0
"""Seconds that one call may take: two to connect, then `PATIENCE`, then some to log."""

logger = logging.getLogger("duetick.events")


def announce(
    notices: Sequence[Notice],
    settings: Settings,
    now: int,
    seconds: float,
    elapsed: Callable[[], float] = time.monotonic,
) -> None:
    """Tell of the notices. Nothing is sent after `seconds`: the log has the notices that were not
    sent.
    """
    if not settings.event_bus:
        for one in notices:
            _print(one)
        return
    end = elapsed() + seconds
    try:
        pending = [_Entry.of(one, settings.event_bus, now) for one in notices]
        for at in range(0, len(pending), BATCH):
            batch = pending[at : at + BATCH]
            failed = _put(batch, end, elapsed)
            for left in _put(failed, end, elapsed) if failed else ():
                _log_failed(left)
    except Exception:
        logger.exception("events were not put", extra={"action": "event_failed"})


def announce_alone(
    trouble: Trouble, flow: str, subject: Subject, settings: Settings, store: Store
) -> None:
    """Tell of one subject at once, if it is the first of its kind and flow in the minute.

    The history and the log have the others of the minute, as they have all.
    """
    try:
        now, name = store.now(), f"{trouble}/{flow}"
        if settings.event_bus and not store.allow(name, "events", 1, now=now):
            return
    except Exception:
        logger.exception("an event was not put", extra={"action": "event_failed"})
        return
    notices = Notices()
    notices.add(trouble, flow, subject)
    announce(notices.take(), settings, now, 2 * NEEDED)


@dataclass(slots=True)
class _Entry:
    """A notice as PutEvents takes it, and why it was not put."""

    notice: Notice
    entry: dict[str, Any]
    why: str = ""

    @classmethod
    def of(cls, notice: Notice, bus: str, now: int) -> "_Entry":
        detail = notice_json(notice, at=now, stack=SERVICE, by=tick_id())
        return cls(
            notice,
            {
                "Source": SOURCE,
                "DetailType": TITLES[notice.trouble],
                "Detail": json.dumps(detail),
                "EventBusName": bus,
            },
        )


def _put(batch: list[_Entry], end: float, elapsed: Callable[[], float]) -> list[_Entry]:
    """Put a batch once. Return the entries that failed, each with the reason."""
    if end - elapsed() < NEEDED:
        return _all_failed(batch, "no time was left")
    try:
        client = client_of("events", patience=PATIENCE)
        answer = client.put_events(Entries=[one.entry for one in batch])
    except Exception as problem:
        return _all_failed(batch, _code_of(problem))
    failed = []
    for one, told in zip(batch, answer["Entries"], strict=True):
        if told.get("ErrorCode"):
            one.why = str(told["ErrorCode"])
            failed.append(one)
    return failed


def _all_failed(batch: list[_Entry], why: str) -> list[_Entry]:
    for one in batch:
        one.why = one.why or why
    return batch


def _code_of(problem: Exception) -> str:
    """Return the code of AWS's refusal, or the kind of the error: its words may tell a secret."""
    response = getattr(problem, "response", None) or {}
    return str(response.get("Error", {}).get("Code") or type(problem).__name__)


def _log_failed(one: _Entry) -> None:
    details = {"action": "event_failed", "why": one.why, **_fields(one.notice)}
    logger.error("an event was not put: %s", TITLES[one.notice.trouble], extra=details)


def _print(notice: Notice) -> None:
    """Write an event of the local stack to its terminal."""
    told = TITLES[notice.trouble]
    commands = "; ".join(look(notice, ""))
    details = {"action": "event", **_fields(notice)}
    logger.warning("event: %s (%d). See: %s", told, notice.count, commands, extra=details)


def _fields(notice: Notice) -> dict[str, object]:
    return {
        "kind": notice.trouble,
        "flow": notice.flow,
        "count": notice.count,
        "reasons": dict(notice.reasons),
        "first": [f"{one.user_id}/{one.key}" for one in notice.first],
    }
