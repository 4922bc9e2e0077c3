"""The operations of the API that look back, ahead, or at all of one user, by a query or a body."""

from typing import Final

from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import (
    CountQuery,
    CursorQuery,
    ExplainQuery,
    HistoryQuery,
    PreviewBody,
    SpanQuery,
)
from duetick.api.operations import view
from duetick.core.answers import Answer
from duetick.core.definitions import read_draft
from duetick.core.wire import instant, moment
from duetick.domain.errors import refusals_of
from duetick.domain.schedule import Json, check_timing

TIMED: Final = ("cron", "timezone", "policies")
NOBODY: Final = "nobody"
"""The names of what is not saved."""


def preview(call: ApiCall) -> Answer:
    """Return the meaning of an expression before anything is saved: a sentence, the next fire times
    with changes of the clocks, and warnings. Times that a put would refuse are warnings.
    """
    from duetick.core.meaning import Circumstances, meaning_of  # for this route alone

    body = call.read_body()
    misfits = refusals_of([lambda: check_shape(PreviewBody, body)])
    after: list[int | None] = []
    misfits += refusals_of([lambda: after.append(instant("after", body.get("after")))])
    named: dict[str, Json] = {name: body[name] for name in TIMED if name in body}
    draft = read_draft(NOBODY, NOBODY, {**named, "flow": NOBODY, "action": NOBODY}, misfits)
    wanted = draft.schedule(lambda one: refusals_of([lambda: check_timing(one.cron, one.timezone)]))
    known = Circumstances(call.quotas, call.store.now(), call.store.schedules.tick_seconds)
    since = known.now if after[0] is None else after[0]
    found = meaning_of(wanted, known, PreviewBody.model_validate(body).limit, after=since)
    return Answer(200, dict(found.json()))


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
    """Explain why a schedule fired at a time or did not, or if it will fire: a verdict, sentences,
    and the facts that they follow from. The explanation outlives the schedule.
    """
    from duetick.core.wording import explanation_json  # each request loads what it needs

    at = moment("at", call.read_query(ExplainQuery).at)
    found = call.schedules.explain(call.key, at)
    return Answer(200, explanation_json(found, operator=call.operator))


def show_timeline(call: ApiCall) -> Answer:
    """Return a span of a schedule in short: each outcome, the definitions that were in force, the
    pauses of groups, the changes of the clocks, the fire times ahead, and times that do not add up.
    By default the span is the day behind us and the day ahead.
    """
    from duetick.core.timeline import Window, timeline  # for this route alone

    query = call.read_query(SpanQuery)
    since, until = instant("from", query.since), instant("to", query.until)
    window = Window.read(since, until, call.schedules.clock())
    return Answer(200, timeline(call.schedules, call.key, window))


def export_user(call: ApiCall) -> Answer:
    """Return all data of a user, part by part: schedules, then jobs, then the history. Values with
    secret names are withheld.
    """
    from duetick.core.histories import export_lines, export_page  # each loads what it needs
    from duetick.core.jobs import lines_of_jobs

    cursor = call.read_query(CursorQuery).cursor
    part = export_page(call.schedules, cursor)
    history = export_lines(call.schedules.store.ledger, part, operator=call.operator)
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
