"""The operations of the API that put many schedules: of one user, or of any."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Final

from duetick.api.batches import answer_each
from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import AnySchedulePut, SchedulePut, SchedulesBody
from duetick.api.operations import view
from duetick.core.answers import Answer
from duetick.domain.schedule import Json

NO_KEY: Final = "none"
"""The key of an item in which it is missing, while its other flaws are looked for."""


def put_schedules(call: ApiCall) -> Answer:
    """Create or replace up to 500 schedules in one call. Each has an answer of its own, in order,
    as a PUT has: its status, and the schedule or the error. A wrong one stops no other. Each counts
    as a write of the user. A repeat changes nothing more.
    """
    call, places = call.dry(), count()

    def put(body: Mapping[str, Json]) -> Answer:
        if next(places) and call.schedules.stores:  # the call has counted the first
            call.schedules.count_write()
        return _put(call, body, SchedulePut)

    return _answer_all(call, call.schedules.user_id, put)


def put_all_schedules(call: ApiCall) -> Answer:
    """Create or replace up to 500 schedules of any users, each with its `user`, as a batch of one
    user does.
    """
    stores = not call.is_dry_run

    def put(body: Mapping[str, Json]) -> Answer:
        user_id = body.get("user")
        if not isinstance(user_id, str) or not user_id:
            check_shape(AnySchedulePut, body)
        own = replace(call.own_of(str(user_id)), stores=stores)
        return _put(replace(call, own=own), body, AnySchedulePut)

    return _answer_all(call, "", put)


def _answer_all(call: ApiCall, user_id: str, put: Callable[[Mapping[str, Json]], Answer]) -> Answer:
    listed = check_shape(SchedulesBody, call.read_body()).schedules
    answers = answer_each(listed, put, user_id, operator=call.operator)
    return Answer(200, {"schedules": [_view(one) for one in answers]})


def _put(call: ApiCall, body: Mapping[str, Json], shape: type[SchedulePut]) -> Answer:
    """Put one schedule. The answer has the warning that it is too tight beside it."""
    key, version = body.get("key"), body.get("ifVersion")
    named = key if isinstance(key, str) and key else NO_KEY
    wanted = call.definition(shape, named, given=body)
    put, created = call.schedules.replace(
        wanted,
        if_version=version if isinstance(version, int) else None,
        resume=body.get("enabled") is True,
    )
    dry: dict[str, Json] = {} if call.schedules.stores else {"dryRun": True}
    headers = {"warning": put.warning} if put.warning else {}
    return Answer(201 if created and not dry else 200, dry | view(call, put), headers)


def _view(answer: Answer) -> Json:
    made, seconds = answer.status in (200, 201), answer.headers.get("retry-after")
    return {
        "status": answer.status,
        "schedule": answer.body if made else None,
        "warning": answer.headers.get("warning"),
        "error": None if made else answer.body,
        "retryAfter": int(seconds) if seconds else None,
    }
