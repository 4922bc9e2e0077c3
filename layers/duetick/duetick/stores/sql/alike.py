"""Rows that fire alike, and what waits alike: grouped by the database, some names at a time."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from duetick.domain.alike import Alike, AlikePage, Selection, Waits
from duetick.domain.occurrence import ScheduleName
from duetick.domain.paging import make_cursor, read_name
from duetick.domain.policies import MINUTE_MS, Policies
from duetick.stores.sql.session import Params, Row, Session, Value, number

AT_ONCE: Final = 50_000
"""The rows of one part: a read of them takes a fraction of a second."""

MOST_WAITING: Final = 1_000_000
"""The most occurrences that wait and are counted."""


def read_part(
    session: Session, selection: Selection, now: int, until: int, place: str
) -> AlikePage:
    """Return the part of a selection that begins at a place. The first one has what waits, too."""
    params = _params(selection, now, until)
    waiting: Sequence[Row] = ()
    unreadable = 0
    if not place:
        waiting = session.rows("waiting_alike", {**params, "limit": MOST_WAITING})
        unreadable = number(session.rows("unreadable_count", params))
    rows, following = _rows(session, selection, params, read_name(place))
    return AlikePage(
        rows,
        [one for row in waiting if row[1] and _has_action(selection, one := _read_waits(row))],
        unreadable,
        following,
        partly=sum(row[0] for row in waiting) >= MOST_WAITING,
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
    """Return the groups of the next rows, and the place behind them if there are more."""
    of_user = "" if selection.user_id is None else "_of_user"
    begin = {"after_user": after[0], "after_key": after[1]}
    found = session.rows(f"alike_end{of_user}", {**params, **begin, "limit": AT_ONCE})
    if not found:
        return (), None
    ((user_id, key, count),) = found
    end = {"last_user": user_id, "last_key": key}
    groups = session.rows(f"alike_rows{of_user}", {**params, **begin, **end})
    following = make_cursor(user_id, key) if count == AT_ONCE else None
    return [*map(_read_alike, groups)], following


def _read_alike(row: Row) -> Alike:
    count, cron, timezone, next_at, flow, policies, anchor, mark, *others = row
    user_id, action, spent, lone_user, lone_key, _, names = others
    return Alike(
        *(count, cron, timezone, next_at, flow, Policies.load(policies), anchor, mark),
        *(user_id, action, [*_names(lone_user, lone_key, names)], spent),
    )


def _names(
    lone_user: str | None, lone_key: str | None, names: str | None
) -> Iterator[ScheduleName]:
    if lone_user is not None and lone_key is not None:
        yield lone_user, lone_key
    elif names is not None:
        yield from ((user_id, key) for user_id, key in json.loads(names))


def _read_waits(row: Row) -> Waits:
    count, _, due_at, flow, user_id, action, kept, job = row
    return Waits(count, due_at, flow, user_id, action, bool(kept), bool(job))


def _has_action(selection: Selection, one: Waits) -> bool:
    return selection.action in (None, one.action)
