"""The operations of the API on one user's schedules that read no body: they need no pydantic."""

from dataclasses import replace

from duetick.api.calls import USUAL_PAGE, ApiCall
from duetick.api.conditions import etag
from duetick.core.answers import Answer
from duetick.core.schedules import find_by_external
from duetick.core.store import Page
from duetick.core.wire import principal_json, schedule_json
from duetick.domain.identity import to_path
from duetick.domain.redaction import redact
from duetick.domain.schedule import Json, Record
from duetick.domain.versions import Expected


def view(call: ApiCall, schedule: Record) -> dict[str, Json]:
    """Return a schedule as the caller may see it: operators see no secrets of its user."""
    now = call.store.now()
    shown = schedule_json(schedule, now, call.store.pauses.current(now))
    if not call.operator:
        return shown
    words = {name: redact(shown[name]) for name in ("labels", "paused")}
    runs_as = redact(principal_json(schedule.principal))
    whose: dict[str, Json] = {"user": schedule.user_id, "principal": runs_as}
    return whose | shown | words | {"input": call.flows.preview(schedule)}


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
    chooses others. It may choose only the policies in `mayChange`.
    """
    from duetick.core.offers import offers  # each request loads what it needs

    return Answer(200, {"actions": offers(call.schedules.flows, to_users=not call.operator)})


def list_flows(call: ApiCall) -> Answer:
    """Return the flows with the actions that a schedule may name, each with the JSON Schema of its
    input: for forms and agents. A user reads only of actions that users may schedule.
    """
    from duetick.core.offers import catalogue  # each request loads what it needs

    return Answer(200, {"flows": catalogue(call.flows, to_users=not call.operator)})


def list_schedules(call: ApiCall) -> Answer:
    """Return a page of schedules by key. Without `state`, it has the active and the paused ones;
    `flow`, `label` and `text` narrow it. A page may be short, or empty: go on until `cursor` is
    null.
    """
    page = call.schedules.list(USUAL_PAGE) if not call.query else _sought(call)
    found: list[Json] = [view(call, schedule) for schedule in page.schedules]
    return Answer(200, {"schedules": found, "cursor": page.cursor})


def _sought(call: ApiCall) -> Page:
    """Return the page that the query asks for."""
    from duetick.api.models import ListQuery  # the first page needs no pydantic
    from duetick.core.sought import Sought

    query = call.read_query(ListQuery)
    sought = Sought.read(query.flow, query.label, query.text, operator=call.operator)
    takes = None if sought.anything else sought.takes
    return call.schedules.list(query.limit, query.cursor, query.state, takes)


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


def delete_schedule(call: ApiCall) -> Answer:
    """Delete a schedule; its history stays."""
    call.schedules.delete(call.key, if_version=wanted_version(call))
    return Answer(204, {})


def resume_schedule(call: ApiCall) -> Answer:
    """Let a paused schedule fire again."""
    return show(call, call.schedules.resume(call.key, if_version=wanted_version(call)))


def run_schedule(call: ApiCall) -> Answer:
    """Fire a schedule now, in addition to its own times. A repeat within a day, with the same
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


def erase_user(call: ApiCall) -> Answer:
    """Delete all data of a user, the history too. This cannot be undone. On DynamoDB, notes that
    name a schedule that was under way expire when its lease ends.
    """
    return Answer(200, {"schedules": call.schedules.store.erase(call.schedules.user_id)})


def wanted_version(call: ApiCall) -> Expected | None:
    """Return the version that the caller's condition requires."""
    condition = call.condition()
    if not condition.exists and not condition.absent:
        return None
    return condition.version(call.schedules.find(call.key))
