"""Schedules as EventBridge Scheduler takes them: each a document for `create-schedule`.

aws scheduler create-schedule --cli-input-json "$(sed -n 1p schedules.jsonl)"
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from duetick.cli.transfer.exported import Exported, TellLoss, time_each
from duetick.cli.transfer.items import digest
from duetick.domain.eventbridge import NotAlike, say
from duetick.domain.expression.parts import as_aws

LONGEST_NAME: Final = 64
LONGEST_WINDOW: Final = 1_440
SAID: Final = frozenset(
    {"spread", "startsAt", "endsAt", "afterCompletion", "delivery", "retry", "gap", "repeat"}
)
TARGET: Final = "arn:aws:lambda:REGION:ACCOUNT:function:NAME"
ROLE: Final = "arn:aws:iam::ACCOUNT:role/NAME"


def write(
    schedules: list[Exported], tell: TellLoss, *, target: str, role: str, now: int
) -> Iterator[str]:
    """Yield a document for each schedule, on a line of its own."""
    for one, said in time_each(schedules, tell, _expression, "EventBridge", SAID):
        _tell_of_clocks(one, tell, now)
        yield json.dumps(_document(one, said, target, role, tell), ensure_ascii=False)


def _expression(one: Exported) -> str:
    return as_aws(one.cron)


def _tell_of_clocks(one: Exported, tell: TellLoss, now: int) -> None:
    policies = one.view["policies"]
    zone = one.view["timezone"]
    try:
        say(one.cron, zone, gap=policies["gap"], repeat=policies["repeat"], now=now)
    except NotAlike as problem:
        tell(one, f"when clocks change, it fires otherwise there: {problem}")
    if one.cron.startswith("rate("):
        tell(one, "it counts from its creation there")


def name_of(one: Exported) -> str:
    """Return the name of a schedule there: its key, if that can be one."""
    if re.fullmatch(r"[0-9a-zA-Z_.-]{1,64}", one.name):
        return one.name
    words = re.sub(r"[^0-9a-zA-Z_.-]+", "-", one.name)[: LONGEST_NAME - 9]
    return f"{words}-{digest(one.name)}"


def _document(one: Exported, said: str, target: str, role: str, tell: TellLoss) -> dict[str, Any]:
    policies = one.view["policies"]
    dates = {"StartDate": policies["startsAt"], "EndDate": policies["endsAt"]}
    return {
        "Name": name_of(one),
        "ScheduleExpression": said,
        "ScheduleExpressionTimezone": one.zone,
        "State": "ENABLED" if one.view["enabled"] else "DISABLED",
        **{name: value for name, value in dates.items() if value},
        "FlexibleTimeWindow": _window(one, policies["spread"], tell),
        "ActionAfterCompletion": "DELETE" if policies["afterCompletion"] == "delete" else "NONE",
        "Target": {
            "Arn": target,
            "RoleArn": role,
            "Input": one.input_text,
            "RetryPolicy": {"MaximumRetryAttempts": _attempts(policies) - 1},
        },
    }


def _attempts(policies: dict[str, Any]) -> int:
    return 1 if policies["delivery"] == "at_most_once" else int(policies["retry"]["attempts"])


def _window(one: Exported, spread: int, tell: TellLoss) -> dict[str, Any]:
    if not spread:
        return {"Mode": "OFF"}
    minutes = min(-(-spread // 60), LONGEST_WINDOW)
    if spread % 60:
        tell(one, f"its spread of {spread} s is a window of {minutes} min there")
    return {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": minutes}
