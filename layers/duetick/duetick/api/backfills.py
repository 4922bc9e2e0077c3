"""The operations of operators on the backfills of a user. Another user's backfill is not found."""

from typing import TYPE_CHECKING

from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import BackfillBody
from duetick.core.answers import Answer
from duetick.core.backfills import BackfillRequest, Backfills, Ordered, backfill_json, plan_json
from duetick.core.wire import instant
from duetick.domain.errors import BackfillNotFound, InvalidSchedule
from duetick.domain.identity import to_path

if TYPE_CHECKING:
    from duetick.domain.schedule import Json


def start_backfill(call: ApiCall) -> Answer:
    """Make the fire times of a schedule in a span of the past again. Unless `dryRun` is false,
    nothing is made: the answer is the plan. Ticks bring the times, at most `atOnce` each. The
    occurrences stand beside the schedule's own ones, and use up none of its runs.
    """
    body = check_shape(BackfillBody, call.read_body())
    wanted = BackfillRequest(
        user_id=call.schedules.user_id,
        key=call.key,
        since=_instant("from", body.since),
        until=_instant("to", body.until),
        at_once=body.at_once,
        overlap=body.overlap,
        only_missing=body.only_missing,
        newest_first=body.newest_first,
        most=body.most,
        by=call.who,
        note=body.note,
    )
    backfills = Backfills(call.schedules.store)
    plan = backfills.plan(wanted)
    if body.dry_run:
        return Answer(200, {"plan": plan_json(plan), "started": None})
    made = backfills.start(plan)
    place = f"/api/users/{to_path(call.schedules.user_id)}/backfills/{made.name}"
    shown: dict[str, Json] = {"plan": plan_json(plan), "started": backfill_json(made)}
    return Answer(201, shown, {"location": place})


def list_backfills(call: ApiCall) -> Answer:
    """Return the backfills of a user's schedules, the newest first: those that stand, and for 400
    days those that ended.
    """
    found = Backfills(call.schedules.store).find(call.schedules.user_id)
    return Answer(200, {"backfills": [backfill_json(one) for one in found]})


def get_backfill(call: ApiCall) -> Answer:
    """Return a backfill and its progress."""
    return Answer(200, backfill_json(_own(call)))


def stop_backfill(call: ApiCall) -> Answer:
    """Stop a backfill: the occurrences that it has brought go on, and nothing more is brought. It
    can be continued within 30 days.
    """
    found = Backfills(call.schedules.store).stop(_own(call).name, call.who)
    return Answer(200, backfill_json(found))


def continue_backfill(call: ApiCall) -> Answer:
    """Continue a backfill that was stopped, where it was."""
    found = Backfills(call.schedules.store).go_on(_own(call).name, call.who)
    return Answer(200, backfill_json(found))


def _own(call: ApiCall) -> Ordered:
    found = Backfills(call.schedules.store).get(call.key)
    if found.one.user_id != call.schedules.user_id:
        raise BackfillNotFound(f"There is no backfill {call.key[:64]!r}.")
    return found


def _instant(name: str, text: str) -> int:
    found = instant(name, text)
    if found is None:
        raise InvalidSchedule(name, "is missing; a backfill has a beginning and an end.", "missing")
    return found
