"""`ports.bells.Bells` in a schedule group of EventBridge Scheduler."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from duetick.aws import AwsClient, client_of
from duetick.core.managed.trigger import Trigger
from duetick.domain.bells import RING_FIELD, Bell
from duetick.domain.errors import BellsUnavailable
from duetick.domain.occurrence import ScheduleName
from duetick.domain.policies import MINUTE_MS

THERE: Final = "ConflictException"
ABSENT: Final = "ResourceNotFoundException"

PATIENCE: Final = 2.0
CALL_TRIES: Final = 4
"""Seconds for each try of a call, and how many there are: they end within the minute of a bell."""

KEPT_TRYING: Final = 300
"""Seconds for which EventBridge repeats a ring that dispatch does not take. Then a tick claims."""

TURNS: Final = 2
"""If another process deletes or creates a bell meanwhile, it is put so often."""


class ScheduleGroup:
    """The bells of the group that a trigger names."""

    def __init__(self, trigger: Trigger, client: AwsClient | None = None) -> None:
        self._trigger = trigger
        self._client = client or client_of("scheduler", patience=PATIENCE, tries=CALL_TRIES)
        self._woken: set[int] = set()

    def put(self, bell: Bell) -> None:
        """See `Bells`."""
        asked: dict[str, Any] = {
            "Name": bell.name,
            "GroupName": self._trigger.group,
            "ScheduleExpression": bell.expression,
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "State": "ENABLED",
            "Target": self._target(self._trigger.dispatch, bell.payload),
        }
        asked |= {"ScheduleExpressionTimezone": bell.timezone} if bell.timezone else {}
        asked |= {"StartDate": _date(bell.starts_at)} if bell.starts_at else {}
        asked |= {"EndDate": _date(bell.ends_at)} if bell.ends_at else {}
        for _ in range(TURNS):
            if _ask(self._client.create_schedule, asked, unless=THERE) is not None:
                return
            if _ask(self._client.update_schedule, asked, unless=ABSENT) is not None:
                return
        raise BellsUnavailable(f"The bell {bell.name} is being written by others. Try again.")

    def _target(self, function: str, payload: str) -> dict[str, Any]:
        return {
            "Arn": function,
            "RoleArn": self._trigger.role,
            "Input": payload,
            "RetryPolicy": {"MaximumEventAgeInSeconds": KEPT_TRYING},
        }

    def delete(self, name: str) -> None:
        """See `Bells`."""
        asked = {"Name": name, "GroupName": self._trigger.group}
        _ask(self._client.delete_schedule, asked, unless=ABSENT)

    def names(self, prefix: str) -> Iterator[str]:
        """See `Bells`."""
        asked = {"GroupName": self._trigger.group, "NamePrefix": prefix}
        while True:
            page = _ask(self._client.list_schedules, asked, unless=ABSENT) or {"Schedules": []}
            yield from (one["Name"] for one in page["Schedules"])
            if not page.get("NextToken"):
                return
            asked["NextToken"] = page["NextToken"]

    def schedule_of(self, name: str) -> ScheduleName | None:
        """See `Bells`."""
        asked = {"Name": name, "GroupName": self._trigger.group}
        found = _ask(self._client.get_schedule, asked, unless=ABSENT)
        try:
            ring = json.loads(found["Target"]["Input"])[RING_FIELD] if found else None
            return (str(ring["user"]), str(ring["key"])) if ring else None
        except (KeyError, ValueError, TypeError):
            return None

    def wake(self, at: int) -> None:
        """See `Bells`. All requests share one schedule, which is deleted after its minute."""
        if at in self._woken:
            return
        asked = {
            "Name": f"wake-{at // MINUTE_MS}",
            "GroupName": self._trigger.group,
            "ScheduleExpression": f"at({_date(at):%Y-%m-%dT%H:%M:%S})",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": self._target(self._trigger.tick, '{"source": "duetick.wake"}'),
        }
        _ask(self._client.create_schedule, asked, unless=THERE)
        self._woken = {one for one in self._woken if one > at - 60 * MINUTE_MS} | {at}


def _ask(
    call: Callable[..., dict[str, Any]], asked: Mapping[str, object], *, unless: str
) -> dict[str, Any] | None:
    """Return the answer to a call, or None if it is refused with that code."""
    try:
        return call(**asked)
    except ClientError as refused:
        if refused.response["Error"]["Code"] == unless:
            return None
        raise _unavailable(refused) from refused
    except BotoCoreError as problem:
        raise _unavailable(problem) from problem


def _unavailable(problem: Exception) -> BellsUnavailable:
    return BellsUnavailable(f"EventBridge Scheduler did not take it: {problem}")


def _date(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000, UTC)
