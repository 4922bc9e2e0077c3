"""The operations of the API on the pauses of a user, of a flow, or of everything."""

from typing import TYPE_CHECKING, Final

from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import PauseBody, PausesQuery
from duetick.core.answers import Answer
from duetick.core.definitions import refuse_once
from duetick.core.wire import group_pause_json, instant
from duetick.domain.errors import refusals_of
from duetick.domain.group_pauses import check_scope
from duetick.domain.policies import DAY

if TYPE_CHECKING:
    from duetick.domain.schedule import Json

SHOWN_MS: Final = 30 * DAY * 1_000


def list_pauses(call: ApiCall) -> Answer:
    """Return the pauses of users, of flows and of everything, the newest first: those that stand,
    and those that ended since `from`, or in the last thirty days.
    """
    now, query = call.store.now(), call.read_query(PausesQuery)
    since = instant("from", query.since)
    found = call.store.pauses.since(now - SHOWN_MS if since is None else since)
    ordered = sorted(found.every, key=lambda one: (-one.since, one.scope))
    shown: list[Json] = [group_pause_json(one, now) for one in ordered]
    return Answer(200, {"pauses": shown})


def pause_group(call: ApiCall) -> Answer:
    """Pause `user:<id>`, `flow:<name>` or `all`, until it is resumed or until a given time. If it
    is paused already, this pause takes the place of that one; the same pause again changes nothing.
    """
    body = call.read_body()
    until: list[int | None] = []
    refuse_once(
        refusals_of(
            [
                lambda: check_scope(call.names["scope"]),
                lambda: check_shape(PauseBody, body),
                lambda: until.append(instant("until", body.get("until"))),
            ]
        )
    )
    now, note = call.store.now(), str(body.get("note") or "")
    made = call.store.pauses.pause(
        call.names["scope"], note=note, until=until[0], by=call.who, now=now
    )
    return Answer(200, group_pause_json(made, now))


def resume_group(call: ApiCall) -> Answer:
    """Let the next fire times fire again, and return the pauses that this ends; none if it is not
    paused. Times up to the last one that a tick has left out already do not fire.
    """
    now = call.store.now()
    ended = call.store.pauses.resume(call.names["scope"], by=call.who, now=now)
    shown: list[Json] = [group_pause_json(one, now) for one in ended]
    return Answer(200, {"pauses": shown})
