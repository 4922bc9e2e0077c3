"""The operation of the API that forecasts: the occurrences that are due in each minute."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import ForecastBody
from duetick.core.answers import Answer
from duetick.core.definitions import merge, read_draft, refuse_once
from duetick.core.forecast import Added, Forecast, Question, cost_of
from duetick.core.forecast_cursor import ReadSoFar
from duetick.core.wire import definition_json, instant
from duetick.domain.errors import Flaw, InvalidSchedule, Refusal, refusals_of
from duetick.domain.identity import check_key
from duetick.domain.schedule import Json, Schedule, check_timing

SECONDS: Final = 10.0
"""The time after which a call reads no further part: API Gateway waits for 29 s."""

NOBODY: Final = "nobody"
"""The names of what is not saved."""

NAMED: Final = ("cron", "timezone", "policies", "flow", "action")
SCHEDULE: Final = "schedule"


def forecast(call: ApiCall) -> Answer:
    """Count the occurrences that are due in each minute ahead: of the token's user, or for
    operators of all users. With a `schedule`, the answer also has the occurrences that it would
    add. `bounds` names the windows in which more is due than the stack delivers, than operators
    allow, or than `most`. A call reads for some ten seconds. If more is left to read, the answer
    has the sums so far and a `cursor`: send the same body with the cursor, until it is null. On
    DynamoDB, a forecast of many users first tells its cost, and reads nothing without `yes`.
    """
    body = call.read_body()
    asked = _question(call, body)
    named: Json = {name: value for name, value in body.items() if name not in ("cursor", "yes")}
    question: Json = [asked.user_id, asked.operator, named]
    cursor = body.get("cursor")
    begun = ReadSoFar.begin(call.store.now(), question)
    progress = begun if cursor is None else ReadSoFar.read(str(cursor), question)
    cost = cost_of(call.store, asked)
    if cost is not None and not asked.agreed:
        unread = Forecast(call.store, asked, progress).answer()
        return Answer(200, {**unread, "cost": cost, "cursor": None})
    found = Forecast.begin(call.store, asked, progress)
    found.read(_within(SECONDS))
    following = found.progress.cursor(found.outlook)
    return Answer(200, {**found.answer(), "cost": cost, "cursor": following})


def _within(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def _question(call: ApiCall, body: dict[str, Json]) -> Question:
    """Read the question. Raise InvalidSchedule naming everything that is wrong with it."""
    read: dict[str, Any] = {}
    found = refusals_of(
        [
            lambda: read.update(shape=check_shape(ForecastBody, body)),
            lambda: read.update(since=instant("from", body.get("from"))),
            lambda: read.update(until=instant("to", body.get("to"))),
            lambda: read.update(added=_read_added(call, body.get("schedule"))),
            lambda: _check_action(body),
        ]
    )
    refuse_once(found)
    shape: ForecastBody = read["shape"]
    return Question(
        since=read["since"],
        until=read["until"],
        user_id=call.own.user_id if call.own else None,
        flow=shape.flow,
        action=shape.action,
        added=read["added"],
        allowed=None if shape.most is None else (shape.most, shape.per),
        lasts=shape.lasts,
        agreed=shape.yes,
        operator=call.operator,
    )


def _check_action(body: dict[str, Json]) -> None:
    if body.get("action") is not None and body.get("flow") is None:
        raise InvalidSchedule("action", "is one of a flow: name the `flow`, too.", "missing")


def _read_added(call: ApiCall, given: Json) -> Added | None:
    """Read a schedule that is not saved. Fields that it leaves out come from the schedule of its
    key.
    """
    if not isinstance(given, dict):
        return None
    key, user_id = _key(call, given), call.own.user_id if call.own else None
    fields = {name: value for name, value in given.items() if name not in ("key", "copies")}
    current = call.own.find(key) if call.own and key else None
    if key and not current and "cron" not in fields:
        said = "names no schedule of this user: correct it, or give a new one its cron."
        raise InvalidSchedule((SCHEDULE, "key"), said, "missing")
    if current:
        kept = definition_json(current)
        fields = merge({name: kept[name] for name in NAMED}, fields)
    draft = read_draft(
        user_id or NOBODY, key or NOBODY, {"flow": NOBODY, "action": NOBODY} | fields
    )
    try:
        wanted = draft.with_defaults(call.flows.with_defaults).schedule(_check_timing)
        refuse_once(_check_timing(wanted))
    except Refusal as wrong:
        raise _of_schedule(wrong) from None
    copies = given.get("copies")
    return Added(wanted, user_id if key else None, copies if isinstance(copies, int) else 1)


def _key(call: ApiCall, given: dict[str, Json]) -> str | None:
    key = given.get("key")
    if not isinstance(key, str):
        return None
    if call.own is None:
        said = "names one of a user: ask below /api/users/{user}, or leave its key out."
        raise InvalidSchedule(SCHEDULE, said)
    if given.get("copies") not in (None, 1):
        raise InvalidSchedule((SCHEDULE, "copies"), "are of one without a key: leave it out.")
    try:
        check_key(call.own.user_id, key)
    except Refusal as wrong:
        raise _of_schedule(wrong) from None
    return key


def _of_schedule(wrong: Refusal) -> InvalidSchedule:
    """Return a refusal of the schedule that is not saved as one of the body."""
    return InvalidSchedule.of(
        Flaw((SCHEDULE, *one.path), one.code, one.problem) for one in wrong.flaws
    )


def _check_timing(wanted: Schedule) -> Sequence[Refusal]:
    return refusals_of([lambda: check_timing(wanted.cron, wanted.timezone)])
