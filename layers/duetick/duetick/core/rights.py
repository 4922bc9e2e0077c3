"""Checks of the fields that users, their agents and operators may write."""

from typing import Final

from duetick.core.flows import Flows
from duetick.domain.errors import InvalidSchedule
from duetick.domain.identity import InvalidId
from duetick.domain.pausing import resume
from duetick.domain.redaction import WITHHELD, is_redacted
from duetick.domain.schedule import FLOW_USER, Json, Record, Schedule

BY_EXTERNAL: Final = "by-external"
"""The word before an outside id in a path. No schedule may have it as its key."""


def vouch(flows: Flows, current: Schedule | None, wanted: Schedule) -> Schedule:
    """Return the schedule that an operator requests.

    If the operator sets flow, action, input or failure hook, the schedule may run an action that is
    not for users. A change of other fields does not permit that.
    """
    unchanged = current is not None and _work(current) == _work(wanted)
    return wanted if unchanged and _keeps_hook(current, wanted) else flows.vouch(wanted)


def check_action(flows: Flows, current: Record | None, wanted: Schedule) -> None:
    """Refuse a user's schedule of an action that is not for users. A pause is always allowed."""
    changed = current is None or not resume(current).defines(resume(wanted))
    if changed and not wanted.user_id.startswith(FLOW_USER):
        flows.check_for_users(wanted)


def check_hook(flows: Flows, current: Record | None, wanted: Schedule) -> None:
    """Refuse a failure hook that a user chooses and that is not for users. One that the schedule
    has may stay.
    """
    if not _keeps_hook(current, wanted) and not wanted.user_id.startswith(FLOW_USER):
        flows.check_hook_for_users(wanted)


def check_principal(current: Schedule | None, wanted: Schedule) -> None:
    """Refuse a principal that a user or an agent sets or changes.

    The API's bodies have no such field, but an agent could pass one in Python.
    """
    if wanted.principal != (current and current.principal):
        raise InvalidSchedule(
            "principal",
            "is named by the application: what a user or an agent makes runs as the user; leave "
            "it out.",
            "not_yours",
        )


def check_named_principal(current: Schedule | None, wanted: Schedule) -> None:
    """Refuse a flow's principal that an operator names: only static schedules run as a flow."""
    named = wanted.principal
    if named and named != (current and current.principal) and named.user_id.startswith(FLOW_USER):
        raise InvalidSchedule(
            "principal.user_id",
            f"{FLOW_USER}… is how flows are called; name a user.",
            "not_yours",
        )


def check_external_id(current: Schedule | None, wanted: Schedule) -> None:
    """Refuse an outside id that a user sets or changes: it is unique across all users."""
    if wanted.external_id != (current and current.external_id):
        raise InvalidSchedule(
            "external_id",
            "is given by the application, since it is one name across all users; leave it out.",
            "not_yours",
        )


def check_work(current: Schedule | None, wanted: Schedule) -> None:
    """Refuse a user's change of flow, action or input, if another principal runs them."""
    if current and current.principal and _work(current) != _work(wanted):
        raise InvalidSchedule(
            "action",
            "runs as whom the application named: flow, action and input are its to change. "
            "When it fires, and whether, is yours.",
            "not_yours",
        )


def check_not_withheld(current: Schedule | None, wanted: Schedule) -> None:
    """Refuse an input or labels with the mark that operators see in the place of secrets."""
    for name in ("input", "labels"):
        value: Json = getattr(wanted, name)
        changed = current is None or getattr(current, name) != value
        if changed and is_redacted(value):
            raise InvalidSchedule(
                name,
                f"holds {WITHHELD}, which stands for what operators are not shown. PATCH the other "
                f"fields and leave the {name} out, or give the value itself.",
                "withheld",
            )


def check_reserved_key(wanted: Schedule) -> None:
    """Refuse a key that is a word of the API's paths."""
    if wanted.key == BY_EXTERNAL:
        raise InvalidId(
            "key", f"{BY_EXTERNAL!r} is a word of the API's paths; name another.", "taken"
        )


def _keeps_hook(current: Schedule | None, wanted: Schedule) -> bool:
    """Return True if a schedule keeps its failure hook, and the action whose deaths that tells."""
    return current is not None and _hook(current) == _hook(wanted)


def _hook(schedule: Schedule) -> tuple[str, str, str | None]:
    return schedule.flow, schedule.action, schedule.policies.on_failure


def _work(schedule: Schedule) -> tuple[str, str, Json]:
    return schedule.flow, schedule.action, schedule.input
