"""The run of a failure hook: its input, and the actions that can be one."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from duetick.core.wire import death_json, iso
from duetick.domain.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetick.core.action import Action
    from duetick.domain.schedule import Json, Occurrence, Schedule

FIELD: Final = "policies.on_failure"


@dataclass(frozen=True, slots=True)
class FailureInput:
    """The input of a failure hook: which occurrence is dead, and why.

    Times are texts such as 2026-12-01T09:00:00Z: `time` is the nominal time of the dead occurrence,
    `at` the instant of its death. `action` is the schedule's. `error` is the text that the user may
    read; an action that is not for users reads the operators' text.
    """

    schedule: str
    user: str
    key: str
    flow: str
    action: str
    occurrence: str
    origin: str
    time: str
    reason: str
    attempts: int
    at: str
    error: str | None = None


_SAMPLE: "Final[dict[str, Json]]" = {
    **{one.name: "a-text" for one in fields(FailureInput)},
    "time": "2026-12-01T09:00:00Z",
    "at": "2026-12-01T09:00:01Z",
    "origin": "schedule",
    "reason": "failed",
    "attempts": 1,
}
"""An input to try an action with."""


def input_of_hook(schedule: "Schedule", hook: "Occurrence", *, operator: bool) -> "Json":
    """Return the input of a hook: the death that it tells of, of a schedule as it is now."""
    if hook.death is None:
        raise ValueError(f"{hook.id} tells of no death.")
    return {
        "schedule": hook.schedule_id,
        "user": hook.user_id,
        "key": hook.key,
        "flow": schedule.flow,
        "action": schedule.action,
        "time": iso(hook.nominal_at),
        **death_json(hook.death, operator=operator),
    }


def check_hook(actions: "Mapping[str, Action]", own: str, hook: str) -> None:
    """Raise InvalidSchedule unless an action of the flow can be the failure hook of another one."""
    others = ", ".join(
        sorted(one.name for one in actions.values() if one.users and one.name != own)
    )
    others = others or "none"
    if hook == own:
        said = f"{hook!r} is the schedule's own action; name another one of its flow: {others}."
        raise InvalidSchedule(FIELD, said, "not_one_of")
    if hook not in actions:
        said = f"its flow has no action {hook!r}; its other actions: {others}."
        raise InvalidSchedule(FIELD, said, "unknown_action")
    try:
        actions[hook].read(dict(_SAMPLE))
    except InvalidSchedule as problem:
        said = f"{hook!r} does not take what a failure hook is given ({problem})."
        advice = "Annotate its input with duetick.FailureInput, or let it take any object."
        raise InvalidSchedule(FIELD, said, "wrong_type", advice) from None
