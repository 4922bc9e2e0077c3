"""The hourly audit: counts of the schedules that a tick does not see, or sees wrongly."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from duetick.core.store import Store, compare
from duetick.domain.ending import state_of
from duetick.domain.identity import schedule_id
from duetick.domain.rows import Disagreement, has_old_rules, is_overdue
from duetick.ports import Listed

MOST_NAMED: Final = 20

Finding: TypeAlias = Literal["unindexed", "stale", "unreadable", "overdue", "old_tzdata"]

WHY: Final[Mapping[Finding, str]] = {
    "unindexed": "It is enabled and has no row, so it never fires. A rebuild gives it one.",
    "stale": "Its row is not the one that its record requires. A rebuild mends it.",
    "unreadable": "The cron or the time zone cannot be read, so it does not fire.",
    "overdue": "Its row is due for more than an hour, and no tick has claimed it.",
    "old_tzdata": "Its zone has new rules. Its next time follows them from now on.",
}

_FOUND: Final[Mapping[Disagreement, Finding]] = {
    "unindexed": "unindexed",
    "stale": "stale",
    "stray": "stale",
    "unreadable": "unreadable",
}

logger = logging.getLogger("duetick.audit")


@dataclass(frozen=True, slots=True)
class Audit:
    """The counts of an audit.

    `active` counts the rows that have a next time. The others count the schedules of a finding:
    `WHY` explains each. Rows without a record count only as active, overdue or unreadable.
    """

    active: int = 0
    unindexed: int = 0
    stale: int = 0
    unreadable: int = 0
    overdue: int = 0
    old_tzdata: int = 0


CENSUS: Final = "census"
"""The note of the last count."""

GONE: Final = "gone"
"""The note of the last count of what names a flow that is gone: `duetick.core.gone` keeps it."""


class Census(NamedTuple):
    """The number of schedules in each state, as the last count found them.

    It also has those that fire at a wrong time or never. Rows without a record are active.
    """

    at: int
    active: int = 0
    paused: int = 0
    done: int = 0
    unindexed: int = 0
    stale: int = 0
    overdue: int = 0


def last_count(store: Store) -> Census | None:
    """Return the last hourly count, or None. It alone reads every schedule."""
    note = store.shelf.note(CENSUS)
    return None if note is None else Census(**json.loads(note))


def audit(
    store: Store,
    now: int,
    *looks: Callable[[Listed], object],
    tell: Callable[[Finding, Listed], object] = lambda _finding, _one: None,
) -> Audit:
    """Count the schedules, and log the first `MOST_NAMED` of each finding, for its alarm.

    The audit reads every record and row once, page by page, so it is meant to run once an hour. It
    marks the done schedules that an older release left unmarked, ends the pauses whose end is over,
    of schedules and of groups, and moves rows to the new rules of their zones. Each of `looks` sees
    every book too: no other reader has to walk over all. `tell` hears of each finding.
    """
    counted: Counter[str] = Counter()
    states: Counter[str] = Counter()
    store.pauses.close_over(now)
    for one in store.shelf.every_book():
        counted["active"] += one.row is not None
        for finding in _findings(store, one, now):
            counted[finding] += 1
            tell(finding, one)
            if counted[finding] <= MOST_NAMED:
                _log(finding, one)
        states[state_of(one.record, now) if one.record else "active"] += 1
        for look in looks:
            look(one)
    wrong = {name: counted[name] for name in ("unindexed", "stale", "overdue")}
    store.shelf.keep_note(CENSUS, json.dumps(Census(now, **states, **wrong)._asdict()))
    return Audit(**counted)


def _findings(store: Store, one: Listed, now: int) -> Iterator[Finding]:
    difference = compare(one, now)
    if difference and difference.problem == "done":
        store.mend(one.user_id, one.key, now=now)
    elif difference:
        yield _FOUND[difference.problem]
    if is_overdue(one.row, now):
        yield "overdue"
    if one.record and one.record.pause and not one.record.pause.holds(now):
        store.close_pause(one.user_id, one.key, now=now)
    if has_old_rules(one.record, one.zone):
        store.follow_zone(one.user_id, one.key, now=now)
        if one.row:
            yield "old_tzdata"


def _log(finding: Finding, one: Listed) -> None:
    source = one.record or one.row
    details = {
        "action": finding,
        "user": one.user_id,
        "key": one.key,
        "schedule": schedule_id(one.user_id, one.key),
        "flow": source.flow if source else "",
    }
    logger.error("%s: %s", finding, WHY[finding], extra=details)
