"""The schedules of all users, and the rows that cannot be read: in pages, for operators."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from duetick.core.store import Store
from duetick.core.wire import held_json, iso
from duetick.domain.book import Unreadable
from duetick.domain.ending import state_of
from duetick.domain.errors import NotFound
from duetick.domain.group_pauses import Pauses
from duetick.domain.paging import make_cursor, read_count
from duetick.domain.redaction import redact, redact_text
from duetick.domain.schedule import IndexRow, Json, Record
from duetick.ports import Listed

AnyState: TypeAlias = Literal["active", "paused", "done", "unreadable", "all"] | None

MOST_READ: Final = 1_000
"""The most schedules that are read for one page."""


class DirectoryPage(NamedTuple):
    """A page as JSON, and the place at which the next one begins; None if there is none."""

    found: Sequence[dict[str, Json]]
    cursor: str | None


def line_of(store: Store, record: Record, now: int) -> dict[str, Json]:
    """Return a schedule as a page shows it."""
    row = store.index.get(record.user_id, record.key)
    is_unreadable = record.defect is not None
    name = record.user_id, record.key
    listed = Listed(*name, record, row, unreadable=is_unreadable, mark=None, zone=None)
    return _line(listed, now, store.pauses.current(now))


def directory_page(
    store: Store,
    limit: int,
    cursor: str | None,
    state: AnyState,
    now: int,
    *,
    takes: Callable[[Record | IndexRow | None], bool] = lambda _: True,
) -> DirectoryPage:
    """Return a page of the schedules of all users, and of the rows without a record.

    It has those that `takes` accepts; for a row that cannot be read `takes` gets None. Without a
    `state`, the page has the active and paused schedules, and the rows that cannot be read.
    """
    found: list[dict[str, Json]] = []
    pauses = store.pauses.current(now)
    for read, one in enumerate(store.shelf.every_book(cursor or ""), 1):
        shown = _line(one, now, pauses)
        source = one.record or one.row
        fits = state in ("all", shown["state"]) or (state is None and shown["state"] != "done")
        if fits and takes(source):
            found.append(shown)
        if len(found) == limit or read == MOST_READ:
            return DirectoryPage(found, one.place)
    return DirectoryPage(found, None)


def _line(one: Listed, now: int, pauses: Pauses) -> dict[str, Json]:
    """Return a schedule in a line. A row without a record has no action.

    The cron of a row may be any text, so it is shown without secrets.
    """
    record, row = one.record, one.row
    source = record or row
    state = "active" if record is None else state_of(record, now)
    return {
        "user": one.user_id,
        "key": one.key,
        "state": "unreadable" if one.unreadable else state,
        "cron": redact_text(source.cron) if source else None,
        "timezone": redact_text(source.timezone) if source else None,
        "flow": source.flow if source else None,
        "action": record.action if record else None,
        "labels": redact(dict(record.labels)) if record else {},
        "version": record.version if record else 0,
        "nextFireAt": iso(row.next_fire_at) if row else None,
        "heldBy": held_json(pauses.holding(one.user_id, source.flow, now)) if source else None,
    }


def unreadable_page(store: Store, limit: int, cursor: str | None) -> DirectoryPage:
    """Return a page of the rows that cannot be read, the earliest first.

    Many rows may leave the index at one instant, so the cursor counts the listed rows of its
    instant.
    """
    since, passed = read_count(cursor)
    found = store.shelf.unreadable(since, limit + passed)
    shown = [_show_unreadable(one) for one in found[passed:]]
    if len(found) < limit + passed:
        return DirectoryPage(shown, None)
    last = found[-1].at
    return DirectoryPage(shown, make_cursor(last, sum(one.at == last for one in found)))


def _show_unreadable(one: Unreadable) -> dict[str, Json]:
    return {
        "user": one.row.user_id,
        "key": one.row.key,
        "cron": redact_text(one.row.cron),
        "timezone": redact_text(one.row.timezone),
        "flow": one.row.flow,
        "error": redact_text(one.error),
        "since": iso(one.at),
    }


def mend_one(store: Store, user_id: str, key: str, now: int) -> bool:
    """Bring a row in line with its schedule, also one that could not be read. Return False if
    nothing was wrong. Raises PoisonedRow if it still cannot be read, NotFound if there is nothing.
    """
    if store.index.restore(user_id, key, now=now):
        return True
    if store.schedules.get(user_id, key) is None and store.index.get(user_id, key) is None:
        raise NotFound
    return store.mend(user_id, key, now=now)
