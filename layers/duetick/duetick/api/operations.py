"""The operations of the API on one user's schedules."""

import secrets
from dataclasses import replace
from typing import Final

from duetick.api.calls import ApiCall, check_shape
from duetick.api.conditions import etag
from duetick.api.models import (
    CountQuery,
    CursorQuery,
    ExplainQuery,
    HistoryQuery,
    ListQuery,
    NewSchedule,
    PauseBody,
    PreviewBody,
    ScheduleBody,
    ScheduleChange,
)
from duetick.core.answers import Answer, error
from duetick.core.definitions import carried_over, merge, read_draft, refuse_once
from duetick.core.refusals import with_problems
from duetick.core.schedules import find_by_external
from duetick.core.wire import instant, moment, principal_json, schedule_json
from duetick.domain.errors import InvalidSchedule, VersionConflict, refusals_of
from duetick.domain.identity import to_path
from duetick.domain.redaction import redact
from duetick.domain.schedule import Json, Record, Schedule, check_timing
from duetick.domain.versions import Expected

TIMED: Final = ("cron", "timezone", "policies")
NOBODY: Final = "nobody"
"""The names of what is not saved."""


def _new_key() -> str:
    return f"s-{secrets.token_hex(8)}"


def view(call: ApiCall, schedule: Record) -> dict[str, Json]:
    """Return a schedule as the caller may see it: operators see no secrets of its user."""
    now = call.schedules.clock()
    shown = schedule_json(schedule, now, call.schedules.store.pauses.current(now))
    if not call.operator:
        return shown
    words = {name: redact(shown[name]) for name in ("labels", "paused")}
    runs_as = redact(principal_json(schedule.principal))
    whose: dict[str, Json] = {"user": schedule.user_id, "principal": runs_as}
    return whose | shown | words | {"input": call.schedules.flows.preview(schedule)}


def show(call: ApiCall, schedule: Record, status: int = 200) -> Answer:
    """Return the answer that shows a schedule, with its ETag and the warning of its put, if any.
    After a dry run it says so, and names no schedule that is there.
    """
    stored = call.schedules.stores
    headers = {"etag": etag(schedule)} if stored else {}
    if schedule.warning:
        headers["warning"] = f'299 duetick "{schedule.warning}"'
    if not stored:
        return Answer(200, {"dryRun": True} | view(call, schedule), headers)
    if status == 201:
        base = f"/api/users/{to_path(schedule.user_id)}" if call.operator else "/api"
        headers["location"] = f"{base}/schedules/{to_path(schedule.key)}"
    return Answer(status, view(call, schedule), headers)


def list_actions(call: ApiCall) -> Answer:
    """Return the actions that a schedule may name. A schedule has its action's policies unless it
    chooses others; it may choose those in `mayChange`.
    """
    from duetick.core.offers import offers  # each request loads what it needs

    return Answer(200, {"actions": offers(call.schedules.flows, to_users=not call.operator)})


def list_flows(call: ApiCall) -> Answer:
    """Return the flows with the actions that a schedule may name, each with the JSON Schema of its
    input: for forms and agents. A user reads of those that users may schedule.
    """
    from duetick.core.offers import catalogue  # each request loads what it needs

    return Answer(200, {"flows": catalogue(call.flows, to_users=not call.operator)})


def preview(call: ApiCall) -> Answer:
    """Return what an expression means, before anything is saved: a sentence, the next fire times
    with changes of the clocks, and warnings. What a put would refuse of the times is a warning.
    """
    from duetick.core.forecast import Circumstances, forecast  # for this route alone

    body = call.read_body()
    misfits = refusals_of([lambda: check_shape(PreviewBody, body)])
    after: list[int | None] = []
    misfits += refusals_of([lambda: after.append(instant("after", body.get("after")))])
    named: dict[str, Json] = {name: body[name] for name in TIMED if name in body}
    draft = read_draft(NOBODY, NOBODY, {**named, "flow": NOBODY, "action": NOBODY}, misfits)
    wanted = draft.schedule(lambda one: refusals_of([lambda: check_timing(one.cron, one.timezone)]))
    known = Circumstances(call.quotas, call.store.now(), call.store.schedules.tick_seconds)
    since = known.now if after[0] is None else after[0]
    found = forecast(wanted, known, PreviewBody.model_validate(body).limit, after=since)
    return Answer(200, dict(found.json()))


def list_schedules(call: ApiCall) -> Answer:
    """Return a page of schedules by key. Without `state`, it has the active and the paused ones;
    `flow`, `label` and `text` narrow it. A page may be short, or empty: go on until `cursor` is
    null.
    """
    from duetick.core.sought import Sought  # for lists alone

    query = call.read_query(ListQuery)
    sought = Sought.read(query.flow, query.label, query.text, operator=call.operator)
    takes = None if sought.anything else sought.takes
    page = call.schedules.list(query.limit, query.cursor, query.state, takes)
    found: list[Json] = [view(call, schedule) for schedule in page.schedules]
    return Answer(200, {"schedules": found, "cursor": page.cursor})


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


def get_schedule(call: ApiCall) -> Answer:
    """Return a schedule."""
    return show(call, call.schedules.get(call.key))


def get_by_external(call: ApiCall) -> Answer:
    """Return the schedule that has an outside id: a user's own, or whosever it is to machines and
    operators, who read its `user` too.
    """
    if call.own is not None:
        return show(call, call.schedules.by_external(call.key))
    found = find_by_external(call.store, call.key)
    return show(replace(call, own=call.own_of(found.user_id)), found)


def put_schedule(call: ApiCall) -> Answer:
    """Create or replace a schedule. A pause of it goes on, unless the body has `enabled`."""
    call = call.dry()
    wanted = call.definition(ScheduleBody, call.key, header=call.condition)
    version = _version(call)
    put, created = call.schedules.replace(
        wanted, if_version=version, resume=call.read_body().get("enabled") is True
    )
    return show(call, put, 201 if created else 200)


def change_schedule(call: ApiCall) -> Answer:
    """Change some fields of a schedule."""
    call = call.dry()
    patch = call.read_body()

    def change(current: Record) -> Schedule:
        known = carried_over(current, patch, call.schedules.flows.usual(current))
        body = merge(known | {"enabled": True}, patch)
        wanted = call.definition(ScheduleChange, current.key, body, header=call.condition)
        if "principal" not in patch:
            wanted = replace(wanted, principal=current.principal)
        return call.schedules.with_pause(current, wanted, resume=patch.get("enabled") is True)

    # a header that cannot be read is reported with the flaws of the body
    version = None if refusals_of([call.condition]) else _version(call)
    return show(call, call.schedules.change(call.key, change, if_version=version))


def delete_schedule(call: ApiCall) -> Answer:
    """Delete a schedule; its history stays."""
    call.schedules.delete(call.key, if_version=_version(call))
    return Answer(204, {})


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
    note, version = str(body.get("note") or ""), _version(call)
    return show(call, call.schedules.pause(call.key, note=note, until=until[0], if_version=version))


def resume_schedule(call: ApiCall) -> Answer:
    """Let a paused schedule fire again."""
    return show(call, call.schedules.resume(call.key, if_version=_version(call)))


def run_schedule(call: ApiCall) -> Answer:
    """Fire a schedule now, besides its own times. A repeat within a day, with the same
    Idempotency-Key, fires nothing and returns the state of the first run. A user's runs are
    limited; operators' runs are not.
    """
    from duetick.core.runs import run_by_hand  # each request loads what it needs

    quota = call.schedules.quotas.runs_a_minute
    return run_by_hand(
        call.schedules.store,
        call.transport(),
        call.schedules.get_runnable(call.key),
        call.schedules.clock(),
        call.idempotent_key(),
        at_most=None if call.operator else quota,
    )


def upcoming(call: ApiCall) -> Answer:
    """Return the next fire times: in UTC, in local time, and any change of the clocks there."""
    found = call.schedules.upcoming(call.key, call.read_query(CountQuery).limit)
    return Answer(200, {"upcoming": [preview.json() for preview in found]})


def history(call: ApiCall) -> Answer:
    """Return the outcomes of a schedule's fire times, the newest first. They outlive it. If a
    filter is given, a page may have fewer lines than `limit`, and a next page.
    """
    from duetick.core.histories import (  # each request loads what it needs
        Wanted,
        history_page,
        lines,
    )

    query = call.read_query(HistoryQuery)
    wanted = Wanted.read(query.state, query.since, query.until)
    found, cursor = history_page(call.schedules, call.key, query.limit, query.cursor, wanted)
    shown = lines(call.schedules.store.ledger, found, operator=call.operator)
    return Answer(200, {"history": [*shown], "cursor": cursor})


def explain(call: ApiCall) -> Answer:
    """Explain why a schedule fired at a time, did not, or whether it will: a verdict, sentences,
    and what they follow from. It outlives the schedule.
    """
    from duetick.core.wording import explanation_json  # each request loads what it needs

    at = moment("at", call.read_query(ExplainQuery).at)
    found = call.schedules.explain(call.key, at)
    return Answer(200, explanation_json(found, operator=call.operator))


def export_user(call: ApiCall) -> Answer:
    """Return all data of a user, part by part: schedules, then jobs, then the history. Values with
    secret names are withheld.
    """
    from duetick.core.histories import export_page, exported_lines  # each loads what it needs
    from duetick.core.jobs import lines_of_jobs

    cursor = call.read_query(CursorQuery).cursor
    part = export_page(call.schedules, cursor)
    history = exported_lines(call.schedules.store.ledger, part, operator=call.operator)
    return Answer(
        200,
        {
            "user": call.schedules.user_id,
            "schedules": [view(call, schedule) for schedule in part.schedules],
            "jobs": [*lines_of_jobs(call.schedules, part.jobs, operator=call.operator)],
            "history": [*history],
            "cursor": part.cursor,
        },
    )


def erase_user(call: ApiCall) -> Answer:
    """Delete all data of a user, the history too. This cannot be undone. On DynamoDB, notes that
    name a schedule that was under way expire when its lease ends.
    """
    return Answer(200, {"schedules": call.schedules.store.erase(call.schedules.user_id)})


def _version(call: ApiCall) -> Expected | None:
    """Return the version that the caller's condition requires."""
    condition = call.condition()
    if not condition.exists and not condition.absent:
        return None
    return condition.version(call.schedules.find(call.key))
