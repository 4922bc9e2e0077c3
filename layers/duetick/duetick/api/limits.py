"""The operations of the API on the limits of a user, of a flow, or of an action."""

from typing import TYPE_CHECKING, Any

from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import LimitBody
from duetick.core.answers import Answer
from duetick.core.definitions import refuse_once
from duetick.core.wire import limit_json
from duetick.domain.errors import refusals_of
from duetick.domain.limits import Per, check_limited

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetick.domain.schedule import Json


def list_limits(call: ApiCall) -> Answer:
    """Return the limits that stand, by scope. Each has the number that runs under it, and the
    number that began in its window. If a limit has no place, it has the time from which there is
    one.
    """
    now = call.store.now()
    found = sorted(call.store.limits.standing().every, key=lambda one: one.scope)
    shown: list[Json] = [limit_json(one, now) for one in found]
    return Answer(200, {"limits": shown})


def set_limit(call: ApiCall) -> Answer:
    """Limit `user:<id>`, `flow:<name>` or `action:<flow>/<action>`. At most `parallel` occurrences
    run at once; at most `rate` begin in each minute, hour or day of the clock. The limit takes the
    place of the one that the scope has; the same limit again changes nothing. An occurrence that
    runs already counts only if it began under a limit of that scope.
    """
    body: Mapping[str, Any] = call.read_body()
    scope = call.names["scope"]
    refuse_once(
        refusals_of([lambda: check_limited(scope), lambda: check_shape(LimitBody, dict(body))])
    )
    now = call.store.now()
    per: Per = body.get("per", "minute")
    made = call.store.limits.set(
        scope,
        parallel=body.get("parallel"),
        rate=body.get("rate"),
        per=per,
        note=body.get("note") or "",
        by=call.who,
        now=now,
    )
    return Answer(200, limit_json(made, now))


def lift_limit(call: ApiCall) -> Answer:
    """Lift the limit of a scope, and return it; nothing if there is none. Occurrences that wait for
    it begin with the next tick.
    """
    now = call.store.now()
    ended = call.store.limits.lift(call.names["scope"], now=now)
    shown: list[Json] = [limit_json(one, now) for one in ended]
    return Answer(200, {"limits": shown})
