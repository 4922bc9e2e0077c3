"""Each operation of the API: what it does with one user's schedules."""

from dataclasses import replace

from duetick.api.calls import Call
from duetick.api.conditions import etag
from duetick.api.models import (
    CountQuery,
    CursorQuery,
    NewSchedule,
    PageQuery,
    PauseBody,
    ScheduleBody,
    ScheduleChange,
)
from duetick.core.accepting import warning
from duetick.core.answers import Answer, error
from duetick.core.histories import export_page, history_page
from duetick.core.runs import run_by_hand
from duetick.core.schedules import merged, new_key
from duetick.core.wire import (
    definition_json,
    instant,
    occurrence_json,
    read_schedule,
    schedule_json,
)
from duetick.domain.errors import VersionConflict
from duetick.domain.identity import to_path
from duetick.domain.pausing import as_paused_as
from duetick.domain.schedule import Json, Schedule
from duetick.domain.versions import Expected


def view(call: Call, schedule: Schedule) -> dict[str, Json]:
    """A schedule as the caller may see it: operators see no secrets of an input."""
    shown = schedule_json(schedule, call.schedules.clock())
    return shown | {"input": call.schedules.flows.preview(schedule)} if call.operator else shown


def shown(call: Call, schedule: Schedule, status: int = 200) -> Answer:
    """The answer that shows a schedule, with its ETag."""
    headers = {"etag": etag(schedule)}
    if status == 201:
        base = f"/api/users/{to_path(schedule.user_id)}" if call.operator else "/api"
        headers["location"] = f"{base}/schedules/{to_path(schedule.key)}"
    return Answer(status, view(call, schedule), headers)


def accepted(call: Call, schedule: Schedule, status: int = 200) -> Answer:
    """The answer to a schedule that was put, with what it should be warned of."""
    answer = shown(call, schedule, status)
    found = warning(schedule, call.schedules.quotas, call.schedules.clock())
    told = {"warning": f'299 duetick "{found}"'} if found else {}
    return replace(answer, headers={**answer.headers, **told})


def list_schedules(call: Call) -> Answer:
    """A page of schedules, ordered by key."""
    query = call.asked(PageQuery)
    page = call.schedules.list(query.limit, query.cursor)
    found: list[Json] = [view(call, schedule) for schedule in page.schedules]
    return Answer(200, {"schedules": found, "cursor": page.cursor})


def create_schedule(call: Call) -> Answer:
    """Create a schedule; refused where its key is taken. Repeating it within a day, with the same
    body and Idempotency-Key, makes nothing more and is answered like the first call, also where
    the schedule was changed or deleted since; with another body it is refused.
    """
    body, repeatable = call.body(NewSchedule), call.repeatable()
    made_up = repeatable.name if repeatable else new_key()
    wanted = read_schedule(call.schedules.user_id, str(body.pop("key", None) or made_up), body)
    try:
        return accepted(call, call.schedules.create(wanted, repeatable), 201)
    except VersionConflict:
        return error(
            "schedule_exists",
            f"The key {wanted.key!r} is taken; choose another, or PUT to replace it.",
        )


def get_schedule(call: Call) -> Answer:
    """A schedule."""
    return shown(call, call.schedules.get(call.key))


def get_by_external(call: Call) -> Answer:
    """The schedule that has an outside id."""
    return shown(call, call.schedules.by_external(call.key))


def put_schedule(call: Call) -> Answer:
    """Create or replace a schedule. A pause outlives it, unless `enabled` is given."""
    body = call.body(ScheduleBody)
    wanted = read_schedule(call.schedules.user_id, call.key, body)
    version = _version(call)
    put, created = call.schedules.replace(
        wanted, if_version=version, resume=body.get("enabled") is True
    )
    return accepted(call, put, 201 if created else 200)


def change_schedule(call: Call) -> Answer:
    """Change some fields of a schedule."""
    patch = call.body(ScheduleChange)
    now = call.schedules.clock()

    def change(current: Schedule) -> Schedule:
        body = merged(definition_json(current) | {"enabled": True}, patch)
        wanted = replace(
            read_schedule(current.user_id, current.key, body), principal=current.principal
        )
        return wanted if "enabled" in patch else as_paused_as(current, wanted, now)

    return accepted(call, call.schedules.change(call.key, change, if_version=_version(call)))


def delete_schedule(call: Call) -> Answer:
    """Delete a schedule; its history stays."""
    call.schedules.delete(call.key, if_version=_version(call))
    return Answer(204, {})


def pause_schedule(call: Call) -> Answer:
    """Keep a schedule from firing, until it is resumed or until a given time."""
    body = call.body(PauseBody)
    paused = call.schedules.pause(
        call.key,
        note=str(body.get("note") or ""),
        until=instant("until", body.get("until")),
        if_version=_version(call),
    )
    return shown(call, paused)


def resume_schedule(call: Call) -> Answer:
    """Let a paused schedule fire again."""
    return shown(call, call.schedules.resume(call.key, if_version=_version(call)))


def run_schedule(call: Call) -> Answer:
    """Fire a schedule now, besides its own times. Repeating it with the same Idempotency-Key
    within a day fires nothing more, and tells what became of the first run. How often a user asks
    is limited; what operators run is not counted.
    """
    quota = call.schedules.quotas.runs_a_minute
    return run_by_hand(
        call.schedules.store,
        call.transport(),
        call.schedules.get(call.key),
        call.schedules.clock(),
        call.idempotent_key(),
        at_most=None if call.operator else quota,
    )


def upcoming(call: Call) -> Answer:
    """The next fire times: UTC, local, and what the clocks do about them."""
    found = call.schedules.upcoming(call.key, call.asked(CountQuery).limit)
    return Answer(200, {"upcoming": [preview.json() for preview in found]})


def history(call: Call) -> Answer:
    """What became of a schedule's fire times, the newest first. It outlives the schedule."""
    query = call.asked(PageQuery)
    found, cursor = history_page(call.schedules, call.key, query.limit, query.cursor)
    lines: list[Json] = [occurrence_json(occurrence) for occurrence in found]
    return Answer(200, {"history": lines, "cursor": cursor})


def export_user(call: Call) -> Answer:
    """Everything that is kept of a user, part after part: schedules, then the history. Values
    whose names say that they are secret are left out.
    """
    cursor = call.asked(CursorQuery).cursor
    schedules, occurrences, after = export_page(call.schedules, cursor)
    lines: list[Json] = [occurrence_json(each) | {"key": each.key} for each in occurrences]
    return Answer(
        200,
        {
            "user": call.schedules.user_id,
            "schedules": [view(call, schedule) for schedule in schedules],
            "history": lines,
            "cursor": after,
        },
    )


def erase_user(call: Call) -> Answer:
    """Delete everything that is kept of a user, history too. There is no way back. On
    DynamoDB, notes that name a schedule that was under way go by themselves when its lease ends.
    """
    return Answer(200, {"schedules": call.schedules.store.erase(call.schedules.user_id)})


def _version(call: Call) -> Expected | None:
    """What the caller's conditions insist on."""
    condition = call.condition
    if not condition.exists and not condition.absent:
        return None
    return condition.version(call.schedules.find(call.key))
