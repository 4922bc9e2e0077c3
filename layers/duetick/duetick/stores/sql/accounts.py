"""The accounts of schedules on SQL, as verify reads them: a page of names, then their entries."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from duetick.domain.accounts import Account, LedgerEntry
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.occurrence import ScheduleName
from duetick.domain.paging import make_cursor, read_name
from duetick.domain.policies import DAY
from duetick.domain.schedule import Pause
from duetick.stores.sql.rows import INDEX_COLUMNS, read_definition, read_index
from duetick.stores.sql.session import Params, Row

NAMES_AT_ONCE: Final = 500
ENTRIES_AT_ONCE: Final = 10_000

RunQuery = Callable[[str, Params], Sequence[Row]]
"""A query by its name, in a transaction of its own."""

_INDEX_AT: Final = 5
_DEFINITION_AT: Final = _INDEX_AT + INDEX_COLUMNS


def accounts(run: RunQuery, since: int, until: int, place: str) -> Iterator[Account]:
    """Yield the accounts after a place, in the order of their names."""
    after = read_name(place)
    while rows := run("definitions_page", _page(after, since)):
        names = [(user, key) for user, key in dict.fromkeys(map(itemgetter(0, 1), rows))]
        every = _entries(run, names, since, until)
        grouped = _Groups(every)
        for name, of_name in groupby(rows, itemgetter(0, 1)):
            yield _account(list(of_name), grouped.of(name))
        after = names[-1]


def account(run: RunQuery, name: ScheduleName, since: int, until: int) -> Account:
    """Return the account of one schedule."""
    user_id, key = name
    alive = _alive(since)
    rows = run("definitions_of", {"user_id": user_id, "key": key, "alive": alive})
    every = _entries(run, [name], since, until)
    return _account(rows, (entry for _, entry in every))


def _alive(since: int) -> int:
    """Return the end, by when they are kept, of the definitions that applied a day before `since`.

    An occurrence that was claimed ahead of a change names the definition before it.
    """
    return since - DAY * 1_000 + KEPT_GONE_MS


def _page(after: ScheduleName, since: int) -> Params:
    return {
        "after_user": after[0],
        "after_key": after[1],
        "limit": NAMES_AT_ONCE,
        "alive": _alive(since),
    }


def _account(rows: Sequence[Row], entries: Iterator[LedgerEntry]) -> Account:
    user_id, key, redefined_at, dumped, unreadable_at, *_ = rows[0]
    pause = Pause.load(dumped)
    index = rows[0][_INDEX_AT:_DEFINITION_AT]
    dated = [row[_DEFINITION_AT:] for row in rows]
    return Account(
        user_id,
        key,
        [read_definition(one) for one in dated if one[0] is not None],
        read_index(index) if index[0] is not None else None,
        redefined_at if pause and pause.until is not None else None,
        entries,
        make_cursor(user_id, key),
        unreadable_at,
    )


class _Groups:
    """The entries of one schedule after another. Entries that are not read are passed over."""

    def __init__(self, every: Iterator[tuple[ScheduleName, LedgerEntry]]) -> None:
        self._every = every
        self._next = next(every, None)

    def of(self, name: ScheduleName) -> Iterator[LedgerEntry]:
        """Yield the entries of a schedule. The names are asked for in ascending order."""
        while self._next and self._next[0] <= name:
            found, entry = self._next
            self._next = next(self._every, None)
            if found == name:
                yield entry


def _entries(
    run: RunQuery, names: Sequence[ScheduleName], since: int, until: int
) -> Iterator[tuple[ScheduleName, LedgerEntry]]:
    (first_user, first_key), (last_user, last_key) = names[0], names[-1]
    bounds: Params = {
        "first_user": first_user,
        "first_key": first_key,
        "last_user": last_user,
        "last_key": last_key,
        "since": since,
        "until": until,
        "limit": ENTRIES_AT_ONCE,
    }
    after: tuple[str, str, int] = ("", "", 0)
    while True:
        place: Params = dict(zip(("after_user", "after_key", "after_at"), after, strict=True))
        rows = run("entries_page", {**bounds, **place})
        for row in rows:
            yield (row[0], row[1]), LedgerEntry(*row[2:])
        if len(rows) < ENTRIES_AT_ONCE:
            return
        after = (rows[-1][0], rows[-1][1], rows[-1][2])
