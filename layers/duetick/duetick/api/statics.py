"""The operations of the API on static schedules, for operators: these have no user."""

from typing import TYPE_CHECKING

from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import ExplainQuery, HistoryQuery, PauseBody, SpanQuery
from duetick.api.operations import view
from duetick.core.answers import Answer
from duetick.core.definitions import refuse_once
from duetick.core.directory import line_of
from duetick.core.histories import Wanted, history_page, lines
from duetick.core.static import StaticSchedules, pause_static, resume_static
from duetick.core.wire import instant, moment
from duetick.domain.errors import refusals_of

if TYPE_CHECKING:
    from duetick.domain.schedule import Record


def get_static_schedule(call: ApiCall) -> Answer:
    """Return a static schedule."""
    return Answer(200, view(call, _all(call).get(_key(call))))


def static_history(call: ApiCall) -> Answer:
    """Return the outcomes of a static schedule's fire times, the newest first."""
    query = call.read_query(HistoryQuery)
    wanted = Wanted.read(query.state, query.since, query.until)
    found, cursor = history_page(_all(call), _key(call), query.limit, query.cursor, wanted)
    return Answer(
        200, {"history": [*lines(call.store.ledger, found, operator=True)], "cursor": cursor}
    )


def static_timeline(call: ApiCall) -> Answer:
    """Return a span of a static schedule in short, as of any other schedule."""
    from duetick.core.timeline import Window, timeline  # for this route alone

    query = call.read_query(SpanQuery)
    since, until = instant("from", query.since), instant("to", query.until)
    window = Window.read(since, until, call.store.now())
    return Answer(200, timeline(_all(call), _key(call), window))


def explain_static(call: ApiCall) -> Answer:
    """Explain why a static schedule fired at a time, did not, or whether it will."""
    from duetick.core.explain import explain  # for this route alone
    from duetick.core.wording import explanation_json

    at, now = moment("at", call.read_query(ExplainQuery).at), call.store.now()
    found = explain(call.store, "", _key(call), now if at is None else at, now)
    return Answer(200, explanation_json(found, operator=True))


def pause_static_schedule(call: ApiCall) -> Answer:
    """Keep a static schedule from firing, until it is resumed or until a given time. A deployment
    ends the pause only if it declares the schedule otherwise.
    """
    body = call.read_body()
    until: list[int | None] = []
    refuse_once(
        refusals_of(
            [
                lambda: check_shape(PauseBody, body),
                lambda: until.append(instant("until", body.get("until"))),
            ]
        )
    )
    names, note = (call.names["flow"], call.names["id"]), str(body.get("note") or "")
    return _in_short(call, pause_static(call.store, *names, note=note, until=until[0]))


def resume_static_schedule(call: ApiCall) -> Answer:
    """Let a paused static schedule fire again, also one that was paused after failures."""
    return _in_short(call, resume_static(call.store, call.names["flow"], call.names["id"]))


def _in_short(call: ApiCall, record: "Record") -> Answer:
    return Answer(200, line_of(call.store, record, call.store.now()))


def _all(call: ApiCall) -> StaticSchedules:
    return StaticSchedules(call.store, call.store.now)


def _key(call: ApiCall) -> str:
    return f"{call.names['flow']}/{call.names['id']}"
