"""The operations of the API that are about no user alone, for operators."""

from duetick.api.calls import ApiCall
from duetick.api.models import (
    AllQuery,
    OperationsQuery,
    PageQuery,
    WorkersQuery,
)
from duetick.core.answers import Answer
from duetick.core.directory import directory_page, mend_one, unreadable_page
from duetick.core.operations import operation_json, operations_page
from duetick.core.overview import overview
from duetick.core.reports import locks_json, workers_json
from duetick.core.wire import iso


def show_overview(call: ApiCall) -> Answer:
    """Return the number of rows and occurrences that are due, late, under way, dead since a day,
    unreadable; the last ticks, the pauses that hold, the backfills that stand; and the last hourly
    count and verification. Each count ends at 1,000: `more` says that there may be more.
    """
    return Answer(200, overview(call.store, call.store.now()))


def list_workers(call: ApiCall) -> Answer:
    """Return the newest reports of ticks and of runs in the background, at most `limit`. A report
    is kept for eight days.
    """
    found = workers_json(call.store, call.read_query(WorkersQuery).limit)
    return Answer(200, {"workers": [*found]})


def list_locks(call: ApiCall) -> Answer:
    """Return the named locks with their owners. Each kind of work has one lock."""
    return Answer(200, {"locks": [*locks_json(call.store)]})


def list_all_schedules(call: ApiCall) -> Answer:
    """Return a page of the schedules of all users, without their inputs. A page may be short, or
    empty: go on until `cursor` is null. A schedule that is new may be missing.
    """
    from duetick.core.sought import Sought  # for lists alone

    query = call.read_query(AllQuery)
    now = call.store.now()
    sought = Sought.read(query.flow, query.label, query.text, operator=True)
    found = directory_page(
        call.store, query.limit, query.cursor, query.state, now, takes=sought.takes
    )
    return Answer(200, {"schedules": [*found.found], "cursor": found.cursor})


def list_unreadable(call: ApiCall) -> Answer:
    """Return a page of the rows whose cron or time zone cannot be read, the earliest first."""
    query = call.read_query(PageQuery)
    found = unreadable_page(call.store, query.limit, query.cursor)
    return Answer(200, {"unreadable": [*found.found], "cursor": found.cursor})


def mend_schedule(call: ApiCall) -> Answer:
    """Bring the row of a schedule in line with it. A row that could not be read is read again; its
    due times until now are missed.
    """
    store, user_id = call.store, call.schedules.user_id
    mended = mend_one(store, user_id, call.key, store.now())
    row = store.index.get(user_id, call.key)
    return Answer(200, {"mended": mended, "nextFireAt": iso(row.next_fire_at) if row else None})


def list_operations(call: ApiCall) -> Answer:
    """Return a page of the operations of operators, the newest first: who, when, what, why, and the
    outcome. A page may be short or empty: go on until `cursor` is null. An operation of a moment
    ago may be missing.
    """
    query = call.read_query(OperationsQuery)
    found = operations_page(
        call.store, query.limit, query.cursor, user_id=query.user, who=query.who
    )
    shown = [operation_json(one) for one in found.operations]
    return Answer(200, {"operations": [*shown], "cursor": found.cursor})
