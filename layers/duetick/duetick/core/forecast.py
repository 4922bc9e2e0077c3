"""A forecast: the occurrences due in each minute ahead, those that another schedule would add, and
the windows with too many.

  begin ──▶ Forecast ──▶ read: part after part of the store ──▶ cursor, or the answer
               ▲                                                  │
               └──────────────── the sums so far ◀────────────────┘

A call reads as long as it may. Its cursor has the sums so far, so that the next call goes on, and
the last answer is the whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from duetick.core.audit import last_count
from duetick.core.bounds import Addition, Bound, bounds_json, judge, limits_within
from duetick.core.forecast_cursor import ReadSoFar
from duetick.core.store import Store
from duetick.core.wire import iso
from duetick.domain.alike import Alike, Selection, make_alike
from duetick.domain.errors import InvalidQuery, InvalidSchedule
from duetick.domain.forecasting import DAY_MS, Outlook
from duetick.domain.group_pauses import NO_PAUSES, Pauses
from duetick.domain.limits import NO_LIMITS, Limits, Per
from duetick.domain.minutes import MinuteSpan, Sums
from duetick.domain.pace import count_delivered
from duetick.domain.pausing import keep_pause
from duetick.domain.policies import LAST_INSTANT, MINUTE_MS
from duetick.domain.rows import fresh_row
from duetick.domain.schedule import Json, Record, Schedule
from duetick.domain.workers import REPORTS_KEPT_MS

LONGEST_MS: Final = 8 * DAY_MS
"""The longest span, and how far behind it may begin: a week, with the hour of a clock change."""

MOST_REPORTS: Final = 30_000
"""The most reports of ticks that are read: two a minute for eight days, and more."""


@dataclass(frozen=True, slots=True)
class Added:
    """A schedule that is not saved. A forecast counts so many `copies` of it, each of another user.

    With a `user_id`, the schedule is that user's, and takes the place of the one that has its key.
    """

    wanted: Schedule
    user_id: str | None = None
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a forecast: a selection, a span, what would be added, and what is allowed.

    Operators are told of the stack and of limits. `allowed` is the number for each window, `lasts`
    the seconds of a run. With `agreed`, the store may be read at any cost.
    """

    since: int | None = None
    until: int | None = None
    user_id: str | None = None
    flow: str | None = None
    action: str | None = None
    added: Added | None = None
    allowed: tuple[int, Per] | None = None
    lasts: float | None = None
    agreed: bool = False
    operator: bool = False

    @property
    def is_all(self) -> bool:
        """True if an operator asks of everything."""
        return self.operator and self.user_id is None and self.flow is None

    def span(self, now: int) -> MinuteSpan:
        """Return the span in whole minutes. Raises InvalidSchedule naming all its faults."""
        since = now if self.since is None else self.since
        since -= since % MINUTE_MS
        until = since + DAY_MS if self.until is None else self.until
        span = MinuteSpan(since, until + -until % MINUTE_MS)
        if span.until <= span.since:
            raise InvalidSchedule("to", "is not after `from`; put it later.", "out_of_range")
        if span.until - span.since > LONGEST_MS:
            days = LONGEST_MS // DAY_MS
            wrong = f"is more than {days} days after `from`; ask for the rest in another call."
            raise InvalidSchedule("to", wrong, "out_of_range")
        if span.last > LAST_INSTANT:
            raise InvalidSchedule(
                "to", "lies behind the year 9999; put it earlier.", "out_of_range"
            )
        self._check_past(span, now)
        return span

    def _check_past(self, span: MinuteSpan, now: int) -> None:
        if span.since >= now - now % MINUTE_MS:
            return
        if not self.is_all:
            raise InvalidQuery(
                "A forecast of some schedules begins now at the earliest: the reports of ticks, "
                "which tell what was delivered, know no user and no flow. Their history does."
            )
        if span.since < now - REPORTS_KEPT_MS:
            said = "is more than 8 days ago, and reports of ticks are kept no longer."
            raise InvalidSchedule("from", said, "out_of_range")


@dataclass(slots=True)
class Forecast:
    """A forecast as it is read, under the pauses and the limits that stand."""

    store: Store
    asked: Question
    progress: ReadSoFar
    pauses: Pauses = NO_PAUSES
    limits: Limits = NO_LIMITS
    span: MinuteSpan = field(init=False)
    outlook: Outlook = field(init=False)
    has_read: bool = False

    def __post_init__(self) -> None:
        now = self.progress.now
        self.span = self.asked.span(now)
        self.outlook = Outlook(self.span, now, self.pauses, self.limits)
        self.progress.restore(self.outlook)

    @classmethod
    def begin(cls, store: Store, asked: Question, progress: ReadSoFar) -> "Forecast":
        """Return a forecast that can be read."""
        standing = store.shelf.standing()
        limits = limits_within(Limits.of_orders(standing), asked)
        return cls(store, asked, progress, Pauses.of_orders(standing), limits)

    @property
    def selection(self) -> Selection:
        """The rows that the question is about, with the names that pauses and limits ask for."""
        asked = self.asked
        scopes = {one.scope for one in self.pauses.every}
        scopes |= {one.scope for one in self.limits.every}
        users = {one.removeprefix("user:") for one in scopes if one.startswith("user:")}
        actions = {one.removeprefix("action:") for one in scopes if one.startswith("action:")}
        flows = {one.partition("/")[0] for one in actions} | (
            {asked.flow} if asked.action else set()
        )
        named = asked.user_id, asked.flow, asked.action
        return Selection(*named, frozenset(users), frozenset(filter(None, flows)))

    def read(self, may_go_on: Callable[[], bool]) -> None:
        """Read parts of the store until nothing is left, or no more time."""
        selection, progress = self.selection, self.progress
        self.has_read = True
        while not progress.is_over:
            page = self.store.shelf.read_alike(
                selection, progress.now, self.span.until, progress.place or ""
            )
            self.outlook.add(page.rows)
            self.outlook.add_waiting(page.waiting)
            self.outlook.totals["unreadable"] += page.unreadable
            progress.advance(page)
            if not may_go_on():
                break

    def answer(self) -> dict[str, Json]:
        """Return the forecast as the API shows it: of all that was read so far."""
        totals, due = self.outlook.finish(), self.outlook.sums[0].due
        added = self._add_unsaved()
        fullest = max(range(len(due)), key=due.__getitem__)
        more = added.sums.due if added else []
        sums = {"due": sum(due), "fires": totals.fires, "waiting": totals.waiting}
        sums |= {"jobs": totals.jobs, "added": sum(more)}
        top: dict[str, Json] = {"at": self._time(fullest), "due": due[fullest]}
        return {
            "at": iso(self.progress.now),
            "from": iso(self.span.since),
            "to": iso(self.span.until),
            "due": [*due],
            "delivered": self._count_delivered(),
            "added": [*more] if added else None,
            "sums": {**sums},
            "schedules": totals.schedules,
            "unreadable": totals.unreadable,
            "paused": totals.paused,
            "partly": self.progress.partly,
            "fullest": top if due[fullest] else None,
            "bounds": bounds_json(self._bounds(added)) if self.progress.is_over else [],
        }

    def _time(self, minute: int) -> str | None:
        return iso(self.span.since + minute * MINUTE_MS)

    def _count_delivered(self) -> list[Json] | None:
        """Return the number that ticks delivered in each minute of the past, if the question asks
        for it.
        """
        is_past = self.span.since < self.progress.now - self.progress.now % MINUTE_MS
        if not (is_past and self.has_read):
            return None
        reports = self.store.shelf.workers(self.span.since, MOST_REPORTS)
        return [*count_delivered(reports, self.span.since, self.span.minutes)]

    def _bounds(self, added: Addition | None) -> Sequence[Bound]:
        return judge(self.store, self.asked, self.outlook, added)

    def _add_unsaved(self) -> Addition | None:
        """Return the sums of the schedule that is not saved, less those of the schedule that it
        replaces.
        """
        added = self.asked.added
        if added is None:
            return None
        sums, policies = self._sums_of(added), added.wanted.policies
        if not policies.spread:
            return Addition(sums, sums)
        without = replace(added.wanted, policies=replace(policies, spread=0))
        return Addition(sums, self._sums_of(replace(added, wanted=without)))

    def _sums_of(self, added: Added) -> Sums:
        outlook = Outlook(self.span, self.progress.now, self.pauses)
        outlook.add(self._changes(added))
        outlook.finish()
        return outlook.sums[0]

    def _changes(self, added: Added) -> Sequence[Alike]:
        """Return the rows that come, and those that go: these count below zero."""
        now, user_id, key = self.progress.now, added.user_id, added.wanted.key
        current = None if user_id is None else self.store.schedules.get(user_id, key)
        row = None if user_id is None else self.store.index.get(user_id, key)
        goes = (
            [make_alike(row, None, spent=current.runs)._replace(number=-1)]
            if row and current
            else []
        )
        record = _record(added.wanted, current, now)
        new = fresh_row(record, now) if record.enabled else None
        if new is None:
            return goes
        comes = make_alike(new, None, spent=current.runs if current else 0)
        if user_id is None:
            comes = comes._replace(number=added.copies, names=())
        return [*goes, comes]


def _record(wanted: Schedule, current: Record | None, now: int) -> Record:
    """Return the record that a put would make. A change keeps anchor, runs and pause."""
    if current is None:
        return replace(Record.of(wanted), anchor=now, redefined_at=now)
    kept = keep_pause(current, wanted, now)
    return replace(Record.of(kept), anchor=current.anchor, runs=current.runs, redefined_at=now)


def cost_of(store: Store, asked: Question) -> dict[str, Json] | None:
    """Return the cost of reading a forecast, as of the last hourly count.

    None if nobody pays for reads, or if the forecast is of one user: every list reads a user's few
    schedules.
    """
    if asked.user_id is not None or store.shelf.walk_units(0) is None:
        return None
    counted = last_count(store)
    cost: dict[str, Json] = {"agreed": asked.agreed}
    if counted is None:
        return cost | {"readUnits": None, "schedules": None, "countedAt": None}
    number = counted.active + counted.paused + counted.done
    units = store.shelf.walk_units(number)
    return cost | {"readUnits": units, "schedules": number, "countedAt": iso(counted.at)}
