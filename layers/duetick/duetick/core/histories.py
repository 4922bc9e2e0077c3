"""The history of one user's occurrences, in pages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from duetick.core.schedules import LARGEST_PAGE, UserSchedules
from duetick.core.store import Ledger, Store
from duetick.core.verify import rules_of_store
from duetick.core.wire import instant, occurrence_json
from duetick.domain.errors import InvalidCursor, InvalidSchedule, NotFound
from duetick.domain.failures import failures_of, has_failures
from duetick.domain.identity import SCHEDULE_ORIGIN, is_call
from duetick.domain.left_out import list_left_out
from duetick.domain.paging import make_cursor, read_place
from duetick.domain.pausing import is_paused
from duetick.domain.ranges import leave_out, range_of_pause
from duetick.domain.schedule import LATEST, Identity, Json, Occurrence, Record, dump_input
from duetick.domain.states import LEASED, WAITING, State
from duetick.ports import Clock

if TYPE_CHECKING:
    from duetick.domain.jobs import Job

AT_ONCE: Final = 500
LOOKED_AT: Final = 500
"""The most occurrences that a page with a filter reads."""

PAST: Final = "."
JOBS: Final = "~"
"""The starts of an export's cursors into the history and the jobs. No cursor into schedules has one
of them.
"""


class Owned(Protocol):
    """The schedules whose history is asked for: those of one user, or the static ones."""

    @property
    def store(self) -> Store:
        """The store that has them."""

    @property
    def user_id(self) -> str:
        """The user of the schedules; empty for static ones."""

    @property
    def clock(self) -> Clock:
        """The clock that they are read by."""

    def find(self, key: str) -> Record | None:
        """Return a schedule, or None."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The part of a history that a caller wants: a state, a first instant, an end."""

    state: State | None = None
    since: int = 0
    until: int = LATEST

    @classmethod
    def read(cls, state: Json, since: Json, until: Json) -> "Wanted":
        """Read the filters of a caller. Raises InvalidSchedule naming all that is wrong."""
        known = [one.value for one in State if one is not State.FAILED]
        if state is not None and state not in known:
            said = f"expected one of {', '.join(known)}, got {str(state)[:40]!r}."
            raise InvalidSchedule("state", said, "not_one_of")
        start, end = instant("from", since), instant("to", until)
        return cls(State(state) if state else None, start or 0, LATEST if end is None else end)

    def takes(self, line: Occurrence) -> bool:
        """Return True if the line is in that part. A range is, if one of its times may be."""
        inside = line.nominal_at < self.until and _end(line) >= self.since
        return inside and self.state in (None, line.state)


EVERYTHING: Final = Wanted()


def lines(
    ledger: Ledger, occurrences: Sequence[Occurrence], *, operator: bool
) -> list[dict[str, Json]]:
    """Return occurrences as lines of a history, each with its failed attempts."""
    retried = [one for one in occurrences if has_failures(one)]
    events = dict(zip((o.identity for o in retried), ledger.events_of(retried), strict=True))
    return [
        occurrence_json(one, failures_of(one, events.get(one.identity, ())), operator=operator)
        for one in occurrences
    ]


def history_page(
    schedules: Owned,
    key: str,
    limit: int,
    cursor: str | None,
    wanted: Wanted = EVERYTHING,
) -> tuple[Sequence[Occurrence], str | None]:
    """Return the newest occurrences of a schedule, and the cursor of the next page.

    A page may have fewer than `limit`, or none, and a next page: a page reads at most `LOOKED_AT`.
    Raises NotFound if there is neither a schedule nor a history.
    """
    current, before = schedules.find(key), _read_cursor(schedules, key, cursor)
    page, last = _look(schedules, key, limit, before, wanted)
    if not page and before is None and current is None and not _has_history(schedules, key):
        raise NotFound
    paused = [*find_pause_ranges(schedules, current), *find_group_ranges(schedules, key)]
    for line in filter(wanted.takes, paused):
        belongs = before is None or line.nominal_at < before[2]
        if belongs and (last is None or line.nominal_at >= last.nominal_at):
            page = sorted([*page, line], key=lambda one: -one.nominal_at)
    return page, _cursor(last) if last else None


def _look(
    schedules: Owned, key: str, limit: int, before: Identity | None, wanted: Wanted
) -> tuple[list[Occurrence], Occurrence | None]:
    """Return a page, and the last occurrence that it read; None if nothing wanted is left.

    Occurrences under way are found by their state. The others are read one by one.
    """
    under_way = wanted.state if wanted.state in WAITING | LEASED else None
    amount = limit if wanted.state in (None, under_way) else max(limit, LOOKED_AT)
    found = schedules.store.ledger.find(
        schedules.user_id,
        key,
        state=under_way,
        limit=amount + 1,
        before=before or wanted.until,
    )
    page: list[Occurrence] = []
    for place, one in enumerate(found[:amount], 1):
        if wanted.takes(one):
            page.append(one)
        if one.nominal_at < wanted.since and one.origin == SCHEDULE_ORIGIN:
            return page, None  # no range further back ends later than this one began
        if len(page) == limit and place < len(found):
            return page, one
    return page, found[amount - 1] if len(found) > amount else None


def _has_history(schedules: Owned, key: str) -> bool:
    return bool(schedules.store.ledger.find(schedules.user_id, key, limit=1))


def _end(line: Occurrence) -> int:
    return line.nominal_at if line.range_end is None else line.range_end


def _read_cursor(schedules: Owned, key: str, cursor: str | None) -> Identity | None:
    before = None if cursor is None else read_place(schedules.user_id, cursor)
    if before and before[1] != key:
        raise InvalidCursor("The cursor is of another schedule's history; begin without one.")
    return before


def find_pause_ranges(schedules: Owned, schedule: Record | None) -> Sequence[Occurrence]:
    """Return the ranges of a pause that ended by itself.

    Nothing is written when a pause ends by itself: the ledger has its ranges only after the next
    change of the schedule.
    """
    now = schedules.clock()
    if schedule is None or schedule.pause is None or is_paused(schedule, now):
        return ()
    parts = [
        part
        for whole in range_of_pause(schedule, now)
        for part in leave_out(whole, _find_recorded_times(schedules, whole))
    ]
    return [replace(part, id=f"occ_pause_{part.nominal_at:x}") for part in parts]


def find_group_ranges(schedules: Owned, key: str) -> Sequence[Occurrence]:
    """Return the ranges of times that pauses of groups left out: the ledger has none of them."""
    now = schedules.clock()
    pauses = schedules.store.pauses.since(0)
    if not pauses.of(schedules.user_id, None):
        return ()
    account = schedules.store.shelf.account(schedules.user_id, key, 0, now)
    ranges = list_left_out(account, now, rules_of_store(schedules.store), pauses)
    return [replace(one, id=f"occ_pause_{one.nominal_at:x}") for one in ranges]


def _find_recorded_times(schedules: Owned, whole: Occurrence) -> Sequence[int]:
    """Return the times before a range's end that have occurrences: they were claimed before it."""
    end = (whole.range_end or whole.nominal_at) + 1
    found = schedules.store.ledger.find(whole.user_id, whole.key, limit=AT_ONCE, before=end)
    return [one.nominal_at for one in found if one.origin == SCHEDULE_ORIGIN]


class ExportPart(NamedTuple):
    """A part of all data of a user, and the cursor of the next part."""

    schedules: Sequence[Record] = ()
    jobs: "Sequence[Job]" = ()
    history: Sequence[Occurrence] = ()
    bodies: Mapping[Identity, str] = MappingProxyType({})
    cursor: str | None = None


def export_page(schedules: UserSchedules, cursor: str | None) -> ExportPart:
    """Return a part of all data of the user.

    The schedules come first, then the jobs, then the history. Deleted schedules are part of the
    history.
    """
    if cursor is not None and cursor.startswith(PAST):
        return _export_history(schedules, cursor.removeprefix(PAST))
    if cursor is not None and cursor.startswith(JOBS):
        return _export_jobs(schedules, cursor.removeprefix(JOBS) or None)
    page = schedules.list(AT_ONCE, cursor, "all")
    found = page.schedules
    lines = [line for schedule in found for line in find_pause_ranges(schedules, schedule)]
    if page.cursor:
        return ExportPart(found, history=lines, cursor=page.cursor)
    rest = _export_jobs(schedules, None)
    return rest._replace(schedules=found, history=[*lines, *rest.history])


def _export_jobs(schedules: UserSchedules, cursor: str | None) -> ExportPart:
    """Return jobs, as many as have room. After the last of them, the history begins."""
    page = schedules.store.jobs.list(schedules.user_id, limit=AT_ONCE, cursor=cursor)
    fitting, size = 0, 0
    for one in page.jobs:
        size += len(dump_input(one.record.input))
        if fitting and size > LARGEST_PAGE:
            break
        fitting += 1
    if fitting < len(page.jobs):
        last = page.jobs[fitting - 1].record.key
        return ExportPart(jobs=page.jobs[:fitting], cursor=JOBS + make_cursor(last))
    if page.cursor:
        return ExportPart(jobs=page.jobs, cursor=JOBS + page.cursor)
    return _export_history(schedules, "")._replace(jobs=page.jobs)


def export_lines(ledger: Ledger, part: ExportPart, *, operator: bool) -> list[dict[str, Json]]:
    """Return the history of a part without secrets: each line has its key and its caller's body."""
    shown = lines(ledger, part.history, operator=operator)
    return [
        line | {"key": one.key, "body": _show_body(part.bodies.get(one.identity))}
        for line, one in zip(shown, part.history, strict=True)
    ]


def _show_body(kept: str | None) -> Json:
    """Return the kept body of a caller so that an answer can hold it: half of a character becomes a
    mark.
    """
    from duetick.domain.redaction import redact  # for an export alone

    if kept is None:
        return None
    safe = redact(json.loads(kept, parse_constant=str))
    shown: Json = json.loads(json.dumps(safe, ensure_ascii=False).encode(errors="replace"))
    return shown


def _export_history(schedules: UserSchedules, cursor: str) -> ExportPart:
    before = read_place(schedules.user_id, cursor) if cursor else None
    past = schedules.store.ledger.find(schedules.user_id, limit=AT_ONCE + 1, before=before)
    fitting, size, bodies = 0, 0, dict[Identity, str]()
    for one in past[:AT_ONCE]:
        body = schedules.store.ledger.body(one.identity) if is_call(one.origin) else None
        size += len(body or "")
        if fitting and size > LARGEST_PAGE:
            break
        fitting += 1
        if body is not None:
            bodies[one.identity] = body
    after = PAST + _cursor(past[fitting - 1]) if fitting < len(past) else None
    return ExportPart(history=past[:fitting], bodies=bodies, cursor=after)


def _cursor(last: Occurrence) -> str:
    """Return the cursor behind an occurrence. Several may have one nominal time."""
    return make_cursor(last.nominal_at, last.key, last.origin)
