"""The operations of the API on the occurrences of all users, for operators."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import ManyOccurrences, NamedQuery, OccurrencesQuery
from duetick.api.operations import view
from duetick.core.answers import Answer
from duetick.core.histories import lines
from duetick.core.occurrences import (
    AllOccurrences,
    Bulk,
    Declined,
    OperatorVerb,
    Which,
)
from duetick.core.wire import event_json, iso
from duetick.domain.errors import InvalidQuery
from duetick.domain.occurrence import Occurrence, ScheduleName
from duetick.domain.operating import Operator
from duetick.domain.redaction import redact_text
from duetick.domain.schedule import Json

SECONDS: Final = 15.0
"""The time after which a call that changes many stops, and answers with its cursor: API Gateway
waits for 29 s.
"""


def list_occurrences(call: ApiCall) -> Answer:
    """Return a page of occurrences of all users, the newest first: those that run (`running`), wait
    or are dead. With a `user`, the page has occurrences in any state. With a filter, the page may
    have fewer than `limit`: go on until `cursor` is null.
    """
    query = call.read_query(OccurrencesQuery)
    page = _all(call).page(_which(query), query.limit, query.cursor)
    return Answer(200, {"occurrences": _lines(call, page.found), "cursor": page.cursor})


def get_occurrence(call: ApiCall) -> Answer:
    """Return one occurrence, with its failed attempts, its transitions, and its schedule. Without
    `user` and `key`, DynamoDB finds only occurrences that run, wait or are dead.
    """
    found = _find(call)
    record = call.store.schedules.get(found.user_id, found.key)
    schedule: Json = view(call, record) if record else None
    events: list[Json] = [event_json(one, operator=True) for one in call.store.ledger.events(found)]
    return Answer(200, _line(call, found) | {"events": events, "schedule": schedule})


def retry_occurrence(call: ApiCall) -> Answer:
    """Let a dead occurrence begin once more, from now on: the next tick delivers it. One that is
    under way stays as it is.
    """
    return _change(call, "retry")


def cancel_occurrence(call: ApiCall) -> Answer:
    """End an occurrence that runs or waits. An action that runs goes on, but can no longer settle:
    its writes in a transaction are undone.
    """
    return _change(call, "cancel")


def delete_occurrence(call: ApiCall) -> Answer:
    """Delete the texts, labels and transitions of an occurrence that has ended, or never began. Its
    name, its times and the reason of its end stay, so that nothing fires again.
    """
    return _change(call, "delete")


def retry_occurrences(call: ApiCall) -> Answer:
    """Retry the dead occurrences that a filter names: at first as a dry run."""
    return _change_many(call, "retry")


def cancel_occurrences(call: ApiCall) -> Answer:
    """Cancel the occurrences that a filter names and that run or wait: at first as a dry run."""
    return _change_many(call, "cancel")


def delete_occurrences(call: ApiCall) -> Answer:
    """Delete the occurrences that a filter names and that have ended: at first as a dry run."""
    return _change_many(call, "delete")


def _all(call: ApiCall) -> AllOccurrences:
    return AllOccurrences(call.store)


def _operator(call: ApiCall) -> Operator:
    """Return the operator. The reason comes into events, so it has no secrets."""
    return Operator(call.who, redact_text(call.why()) or "")


def _which(given: OccurrencesQuery | ManyOccurrences) -> Which:
    fields = ("state", "reason", "origin", "flow", "label", "user", "key", "since", "until")
    return Which.read({name: getattr(given, name) for name in fields})


def _find(call: ApiCall) -> Occurrence:
    return _all(call).get(call.names["id"], _of(call.read_query(NamedQuery)))


def _of(given: NamedQuery) -> ScheduleName | None:
    if given.user is not None and given.key is not None:
        return given.user, given.key
    if given.user is None and given.key is None:
        return None
    raise InvalidQuery("Give `user` and `key` together, or neither.")


def _change(call: ApiCall, verb: OperatorVerb) -> Answer:
    by, found = _operator(call), _find(call)
    answer = _all(call).change(verb, found, by, call.store.now())
    return Answer(200, {"changed": answer.changed, "occurrence": _line(call, answer.occurrence)})


def _change_many(call: ApiCall, verb: OperatorVerb) -> Answer:
    body = check_shape(ManyOccurrences, call.read_body())
    found = _all(call).change_many(
        verb,
        _which(body),
        _operator(call),
        body.limit,
        body.cursor,
        dry=body.dry_run,
        may_go_on=partial(_is_before, time.monotonic() + SECONDS),
    )
    return Answer(200, _bulk_json(found, dry=body.dry_run))


def _is_before(end: float) -> bool:
    return time.monotonic() < end


def _lines(call: ApiCall, found: Sequence[Occurrence]) -> list[Json]:
    shown = lines(call.store.ledger, found, operator=True)
    return [line | _names(one) for line, one in zip(shown, found, strict=True)]


def _line(call: ApiCall, one: Occurrence) -> dict[str, Json]:
    (line,) = lines(call.store.ledger, [one], operator=True)
    return line | _names(one)


def _names(one: Occurrence) -> dict[str, Json]:
    return {"user": one.user_id, "key": one.key, "flow": one.flow}


def _bulk_json(found: Bulk, *, dry: bool) -> dict[str, Json]:
    return {
        "dryRun": dry,
        "changed": found.changed,
        "declined": found.declined,
        "first": [_name_json(one) for one in found.first],
        "firstDeclined": [_declined_json(one) for one in found.first_declined],
        "cursor": found.cursor,
    }


def _name_json(one: Occurrence) -> dict[str, Json]:
    return _names(one) | {
        "id": one.id,
        "nominalFireTime": iso(one.nominal_at),
        "origin": one.origin,
        "state": one.state,
        "reason": one.reason,
    }


def _declined_json(one: Declined) -> dict[str, Json]:
    return _name_json(one.occurrence) | {"why": one.why}
