"""The reads of a forecast: rows, grouped by the database, some names at a time."""

import json
from collections.abc import Sequence
from typing import Final

from duetick.domain.alike import Alike, AlikePage, Selection, Waits
from duetick.domain.occurrence import ScheduleName
from duetick.domain.paging import make_cursor, read_name
from duetick.domain.policies import MINUTE_MS
from duetick.stores.sql.session import Params, Row, Session, Value, number

AT_ONCE: Final = 100_000
"""The rows of one part: a read of them takes a fraction of a second."""

MOST_WAITING: Final = 1_000_000
MOST_WAITING_BESIDE: Final = 100_000
"""The most occurrences that wait and are looked at, the earliest first: for everything, and for one
user, whose own no index finds.
"""


def read_part(
    session: Session, selection: Selection, now: int, until: int, place: str
) -> AlikePage:
    """Return the part of a selection that begins at a place. The first part has the waiting
    occurrences, too.
    """
    params = _params(selection, now, until)
    waiting: Sequence[Row] = ()
    unreadable = 0
    most = MOST_WAITING if selection.user_id is None else MOST_WAITING_BESIDE
    if not place:
        waiting = session.rows("waiting_alike", {**params, "limit": most})
        unreadable = number(session.rows("unreadable_count", params))
    rows, following = _rows(session, selection, params, read_name(place))
    selected = (_read_waits(row) for row in waiting if row[1])
    return AlikePage(
        rows,
        [one for one in selected if selection.action in (None, one.action)],
        unreadable,
        following,
        partly=sum(row[0] for row in waiting) >= most,
    )


def _params(selection: Selection, now: int, until: int) -> dict[str, Value]:
    return {
        "user": selection.user_id,
        "flow": selection.flow,
        "action": selection.action,
        "apart": json.dumps(sorted(selection.apart)),
        "by_action": json.dumps(sorted(selection.by_action)),
        "now": now,
        "soon": now - now % MINUTE_MS + MINUTE_MS,
        "until": until,
    }


def _rows(
    session: Session, selection: Selection, params: Params, after: ScheduleName
) -> tuple[Sequence[Alike], str | None]:
    """Return the groups of the next rows, and the place behind them if there may be more."""
    of_user = "" if selection.user_id is None else "_of_user"
    named = {**params, "after_user": after[0], "after_key": after[1]}
    full = session.rows(f"alike_end{of_user}", {**named, "limit": AT_ONCE - 1})
    ends = full or session.rows(f"alike_last{of_user}", named)
    if not ends:
        return (), None
    user_id, key = ends[0]
    groups = session.rows(f"alike_rows{of_user}", {**named, "last_user": user_id, "last_key": key})
    return [*map(_read_alike, groups)], make_cursor(user_id, key) if full else None


def _read_alike(row: Row) -> Alike:
    *columns, _, names = row
    found = Alike(*columns)
    return found._replace(names=_read_names(names)) if names else found


def _read_names(names: str) -> tuple[ScheduleName, ...]:
    return tuple((user_id, key) for user_id, key in json.loads(names))


def _read_waits(row: Row) -> Waits:
    count, _, due_at, flow, user_id, action, kept, job = row
    return Waits(count, due_at, flow, user_id, action, bool(kept), bool(job))
