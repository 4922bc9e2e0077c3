"""The operations of the API on one user's schedules that read a body."""

import secrets
from dataclasses import replace

from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import NewSchedule, PauseBody, ScheduleBody, ScheduleChange
from duetick.api.operations import show, wanted_version
from duetick.core.answers import Answer, error
from duetick.core.definitions import carry_over, merge, refuse_once
from duetick.core.refusals import with_problems
from duetick.core.wire import instant
from duetick.domain.errors import InvalidSchedule, VersionConflict, refusals_of
from duetick.domain.schedule import Record, Schedule


def _new_key() -> str:
    return f"s-{secrets.token_hex(8)}"


def create_schedule(call: ApiCall) -> Answer:
    """Create a schedule. It is refused if its key is taken. A repeat within a day, with the same
    body and Idempotency-Key, creates nothing and gets the first answer, even if the schedule was
    changed or deleted since. With another body, the repeat is refused.
    """
    call = call.dry()
    key = call.read_body().get("key")
    named = key if key and isinstance(key, str) else _new_key()
    wanted = call.definition(NewSchedule, named, header=call.idempotent_key, new=True)
    repeatable = call.repeatable()
    if repeatable and not key:
        wanted = replace(wanted, key=repeatable.name)
    try:
        return show(call, call.schedules.create(wanted, repeatable), 201)
    except VersionConflict:
        problem = f"{wanted.key!r} is taken; choose another, or PUT to replace it."
        taken = InvalidSchedule("key", problem, "taken")
        return with_problems(error("schedule_exists", f"The key {problem}"), taken)


def put_schedule(call: ApiCall) -> Answer:
    """Create or replace a schedule. Its pause goes on, unless the body has `enabled`."""
    call = call.dry()
    wanted = call.definition(ScheduleBody, call.key, header=call.condition)
    version = wanted_version(call)
    put, created = call.schedules.replace(
        wanted, if_version=version, resume=call.read_body().get("enabled") is True
    )
    return show(call, put, 201 if created else 200)


def change_schedule(call: ApiCall) -> Answer:
    """Change some fields of a schedule."""
    call = call.dry()
    patch = call.read_body()

    def change(current: Record) -> Schedule:
        known = carry_over(current, patch, call.schedules.flows.usual(current))
        body = merge(known | {"enabled": True}, patch)
        wanted = call.definition(ScheduleChange, current.key, body, header=call.condition)
        if "principal" not in patch:
            wanted = replace(wanted, principal=current.principal)
        return call.schedules.with_pause(current, wanted, resume=patch.get("enabled") is True)

    # a header that cannot be read is reported with the flaws of the body
    version = None if refusals_of([call.condition]) else wanted_version(call)
    return show(call, call.schedules.change(call.key, change, if_version=version))


def pause_schedule(call: ApiCall) -> Answer:
    """Keep a schedule from firing, until it is resumed or until a given time."""
    body = call.read_body()
    until: list[int | None] = []
    refuse_once(
        refusals_of(
            [
                call.condition,
                lambda: check_shape(PauseBody, body),
                lambda: until.append(instant("until", body.get("until"))),
            ]
        )
    )
    note, version = str(body.get("note") or ""), wanted_version(call)
    return show(call, call.schedules.pause(call.key, note=note, until=until[0], if_version=version))
