"""The deletion of what has ended, one batch in one transaction.

Every read is a range of an index: ended occurrences by their end, the newest of a schedule by its
name. An occurrence that stays is looked at once by its age. It is looked at again when its time has
come, or when a newer one of its schedule is looked at.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from duetick.domain.occurrence import LATEST, Identity, ScheduleName
from duetick.domain.retention import HELD, KEPT_AT_LEAST, Newest, Retention, Retired
from duetick.stores.sql.session import Params, Row, Session


class _Ended(NamedTuple):
    """A row of `retiring_columns`: `domain.retention.Ended`, with its schedule."""

    user_id: str
    key: str
    nominal_at: int
    origin: str
    flow: str
    state: str
    range_end: int | None
    updated_at: int

    @property
    def name(self) -> ScheduleName:
        return self.user_id, self.key

    @property
    def identity(self) -> Identity:
        return self.user_id, self.key, self.nominal_at, self.origin


def retire(session: Session, retention: Retention, now: int, limit: int) -> Retired:
    """See `ports.Shelf`."""
    params = {"now": now, "ended_before": now - retention.shortest_ms}
    found = _read(session.rows("retire_ended", {**params, "limit": limit}))
    if len(found) < limit:
        found += _read(session.rows("retire_kept", {**params, "limit": limit - len(found)}))
    if not found:
        return Retired()
    newest = _newest(session, {one.name for one in found})
    judged = [(one, retention.judge(one, newest[one.name], now)) for one in found]
    held = [one for one, until in _judge_held(session, retention, newest, now) if until is None]
    left = list(dict.fromkeys(one.identity for one in [*_leaving(judged), *held]))
    if left:
        identities = json.dumps(left)
        session.rows("retire_events", {"identities": identities})
        session.rows("retire_occurrences", {"identities": identities})
        _retire_jobs(session, left)
    later = [(*one.identity, until) for one, until in judged if until is not None]
    if later:
        session.rows("retire_later", {"later": json.dumps(later)})
    return Retired(left, len(found))


def _retire_jobs(session: Session, left: Iterable[Identity]) -> None:
    """Delete the records of the jobs whose occurrences left."""
    names = [(user_id, key) for user_id, key, _, origin in left if key == origin]
    if names:
        session.rows("retire_jobs", {"names": json.dumps(names)})


def _leaving(judged: Iterable[tuple[_Ended, int | None]]) -> list[_Ended]:
    return [one for one, until in judged if until is None]


def _read(rows: Sequence[Row]) -> list[_Ended]:
    return [_Ended(*row) for row in rows]


def _newest(session: Session, names: Iterable[ScheduleName]) -> dict[ScheduleName, Newest]:
    """Return the newest occurrences of each schedule."""
    params: Params = {"names": json.dumps(sorted(names)), "beyond": KEPT_AT_LEAST - 1}
    rows = session.rows("retire_newest", params)
    return {
        (user_id, key): Newest(bool(fires), None if at is None else (at, origin))
        for user_id, key, fires, at, origin in rows
    }


def _judge_held(
    session: Session, retention: Retention, newest: Mapping[ScheduleName, Newest], now: int
) -> list[tuple[_Ended, int | None]]:
    """Judge the held occurrences of these schedules that are no longer among their newest."""
    names = [
        (*name, one.last[0] if one.fires and one.last else LATEST)
        for name, one in newest.items()
        if one.last or not one.fires
    ]
    if not names:
        return []
    rows = session.rows("retire_held", {"names": json.dumps(names), "held": HELD})
    return [(one, retention.judge(one, newest[one.name], now)) for one in _read(rows)]
