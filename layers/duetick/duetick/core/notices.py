"""Notices: one for each kind of trouble and flow, however many occurrences have it.

A notice of many has their count, their reasons and the first names. It has no input, and no word of
an error.
"""

import shlex
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from duetick.core.wire import iso
from duetick.domain.identity import is_job, job_id
from duetick.domain.schedule import Json, Occurrence
from duetick.ports import Trouble

VERSION: Final = 1
"""The version of a notice's JSON. Fields may be added to it; a change of one is another version."""

MOST_NAMED: Final = 20
MOST_FLOWS: Final = 50
"""The most flows of one kind that have a notice of their own. The others share one without a flow:
a row may name any flow.
"""

TITLES: Final[dict[Trouble, str]] = {
    "dead": "Occurrences died",
    "poisoned": "Rows cannot be read",
    "late": "Deliveries began late",
    "auto_paused": "Schedules were paused after failures",
    "unaccounted": "Fire times do not add up",
    "unindexed": "Schedules have no row",
    "stale": "Rows are not their schedules'",
    "unreadable": "Schedules cannot be read",
    "overdue": "Rows are overdue",
    "old_tzdata": "Zones have new rules",
}
"""The detail-type of the event of each kind."""

_Name: TypeAlias = tuple[Trouble, str]


class Subject(NamedTuple):
    """The subject of a notice: a schedule, and its occurrence if there is one."""

    user_id: str
    key: str
    occurrence: str = ""
    nominal_at: int | None = None
    reason: str = ""


@dataclass(slots=True)
class Notice:
    """One kind of trouble in one flow. `flow` is empty if it is not known."""

    trouble: Trouble
    flow: str
    count: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    first: list[Subject] = field(default_factory=list)

    def add(self, subject: Subject) -> None:
        """Count a subject. The first are named."""
        self.count += 1
        if subject.reason:
            self.reasons[subject.reason] += 1
        if len(self.first) < MOST_NAMED:
            self.first.append(subject)


class Notices:
    """The notices of one invocation. Many threads may add to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[_Name, Notice] = {}
        self._flows = Counter[Trouble]()

    def tell(self, trouble: Trouble, occurrence: Occurrence) -> None:
        """Add an occurrence: `ports.Tell`."""
        self.add(trouble, occurrence.flow, subject_of(occurrence))

    def add(self, trouble: Trouble, flow: str, subject: Subject) -> None:
        """Add a subject to the notice of its kind and flow."""
        with self._lock:
            name = trouble, flow
            if name not in self._found and self._flows[trouble] >= MOST_FLOWS:
                name = trouble, ""
            if name not in self._found:
                self._found[name] = Notice(*name)
                self._flows[trouble] += 1
            self._found[name].add(subject)

    def take(self) -> list[Notice]:
        """Return the notices, and begin anew."""
        with self._lock:
            found, self._found = self._found, {}
            self._flows.clear()
        return [found[name] for name in sorted(found)]


def subject_of(occurrence: Occurrence) -> Subject:
    """Return an occurrence as the subject of a notice."""
    reason = occurrence.reason.value if occurrence.reason else ""
    return Subject(occurrence.user_id, occurrence.key, occurrence.id, occurrence.nominal_at, reason)


def notice_json(notice: Notice, *, at: int, stack: str, by: str) -> dict[str, Json]:
    """Return the detail of a notice's event. `by` is the id of the tick or the invocation."""
    first: list[Json] = [_subject_json(one) for one in notice.first]
    return {
        "version": VERSION,
        "kind": notice.trouble,
        "stack": stack,
        "by": by,
        "at": iso(at),
        "flow": notice.flow,
        "count": notice.count,
        "reasons": dict(notice.reasons),
        "first": first,
        "look": [*look(notice, stack)],
    }


def look(notice: Notice, stack: str) -> list[str]:
    """Return the commands that show more: of them all, then of the first."""
    here = f" --stack {shlex.quote(stack)}" if stack else ""
    commands = []
    if notice.trouble in ("dead", "poisoned"):
        flow = f" --flow {shlex.quote(notice.flow)}" if notice.flow else ""
        times = [one.nominal_at for one in notice.first if one.nominal_at is not None]
        since = f" --from {iso(min(times))}" if times else ""
        commands.append(f"duetick occurrences list{here} --state dead{flow}{since}")
    if notice.first:
        commands.append(_look_at(*notice.first[0][:2], here))
    return commands


def _look_at(user_id: str, key: str, here: str) -> str:
    """Return the command that shows the outcome of one: a static schedule has no user who could
    ask, and a job has no schedule.
    """
    whose, named = f" --user {shlex.quote(user_id)}", shlex.quote(key)
    if not user_id:
        return f"duetick occurrences list{here}{whose} --key {named}"
    if is_job(key):
        return f"duetick jobs history {job_id(key)}{here}{whose}"
    return f"duetick schedules history {named}{here}{whose}"


def _subject_json(one: Subject) -> dict[str, Json]:
    return {
        "user": one.user_id,
        "key": one.key,
        "occurrence": one.occurrence,
        "nominalFireTime": iso(one.nominal_at),
        "reason": one.reason,
    }
