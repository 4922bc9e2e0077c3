"""The book of one schedule: all data of one (user, key), and every change of it.

A store loads the book, a method changes it, and the store writes it back. Nothing else decides the
effect of a put, a begin or a pause. Nothing here does I/O: `Pages` finds the occurrences that are
not in the book.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from duetick.domain.attempts import (
    HELD_BACK,
    RELEASED,
    Begun,
    Outcome,
    Refused,
    check_running,
    counts_as_run,
    gives_run_back,
    pause_of,
    policies_now,
    refuse,
    refuse_again,
    refuse_begun,
    settle,
    start,
    trace_loss,
    trace_wait,
)
from duetick.domain.cancelling import why_cancelled
from duetick.domain.claims import Templates, due_row, name_for
from duetick.domain.definitions import Definition, Standing, define, standing_of
from duetick.domain.ending import keep_end, may_leave, set_end
from duetick.domain.errors import OccurrenceConflict, OccurrenceNotFound, PoisonedRow
from duetick.domain.failure_hooks import hooks_of
from duetick.domain.failures import Event
from duetick.domain.firing import Times
from duetick.domain.group_pauses import NO_PAUSES, Pauses, held_until, pause_of_begin
from duetick.domain.identity import (
    SCHEDULE_ORIGIN,
    check_no_job,
    is_failure_hook,
    is_job,
    stands_beside,
)
from duetick.domain.occurrence import (
    Identity,
    IndexRow,
    Leased,
    NewOccurrence,
    Occurrence,
    poison,
)
from duetick.domain.overlap import (
    displaces,
    follow,
    is_rival,
    make_way,
    may_be_leased,
    needs_reserving,
    reserve,
    wait_behind,
)
from duetick.domain.pausing import ends_pause, only_pauses, refuse_never_firing, resume
from duetick.domain.policies import DAY, MINUTE_MS, Overlap
from duetick.domain.ranges import (
    divide,
    leave_out,
    range_of_due,
    range_of_row,
    range_unclaimed,
    range_unfired,
    range_within,
    ranges_before,
)
from duetick.domain.recovering import UNKNOWN, pass_over
from duetick.domain.rows import accounted_until, disagreement, fresh_row, row_of
from duetick.domain.schedule import DEFINED, Record, Schedule, check_timing
from duetick.domain.standing import StandingOrder
from duetick.domain.states import WAITING, Reason, State
from duetick.domain.transitions import (
    cancel,
    due_again,
    hold_back,
    is_held_back,
    lease,
    lose,
    put_off,
    record,
    release,
    renew,
    wake_of,
    write_off,
)

if TYPE_CHECKING:
    from duetick.domain.backfilling import BackfillStep
    from duetick.domain.bells import PendingToken
    from duetick.domain.jobs import Job
    from duetick.domain.operating import Operated, Operator
    from duetick.domain.retention import Retention

FURTHEST_BEHIND: Final = 15 * MINUTE_MS
"""The furthest that a change may lie before the end of a range: no Lambda stalls for longer."""

LEAST_GAP_MS: Final = 1_000
"""No two times of an expression are nearer to each other."""

LEAST_KEPT_MS: Final = DAY * 1_000
"""The shortest time for which a retention keeps anything."""


class Pages(Protocol):
    """The occurrences of one schedule. The book asks for them only if the answer matters."""

    def find(self, nominal_at: int, origin: str) -> Occurrence | None:
        """Return the occurrence of that name, or None."""

    def at(self, nominal_at: int) -> Sequence[Occurrence]:
        """Return the occurrences of that time, of every origin, and a range that begins there."""

    def in_place(self) -> Sequence[Occurrence]:
        """Return the occurrences that run, that are leased again, or that wait for a retry."""

    def find_queued_before(self, nominal_at: int) -> Sequence[Occurrence]:
        """Return the occurrences before a nominal time that are leased and never began."""

    def times_within(self, first: int, last: int) -> Sequence[int]:
        """Return the times in [first, last] with an occurrence or a range of origin `schedule`."""

    def newest_until(self, nominal_at: int) -> Occurrence | None:
        """Return the newest occurrence or range of origin `schedule` up to a nominal time."""

    def ranges_beyond(self, at: int) -> Sequence[Occurrence]:
        """Return the ranges of origin `schedule` that end after an instant."""

    def find_unfinished(self) -> Sequence[Occurrence]:
        """Return the occurrences that have not ended."""

    def complete(self, found: Record) -> Record:
        """Return the record with its input, which a store may keep elsewhere."""


class Unreadable(NamedTuple):
    """A row that left the index at an instant, because its cron or zone cannot be read."""

    row: IndexRow
    error: str
    at: int

    def occurrence(self) -> Occurrence:
        """Return the poisoned occurrence of the row, without an id."""
        return poison(self.row, ValueError(self.error), self.at)


@dataclass(slots=True)
class Book:
    """All data of one (user, key), and the writes that a change needs.

    `row` is the index row; if it cannot be read, `unreadable` has it instead. `mark` is the newest
    nominal time that was claimed, poisoned or put into a range. `defined_at` is the newest date of
    a definition. Both outlive row and record.

    `made` are new occurrences: the store writes each unless one of its name exists. `ranges` are
    new, or replace the range of their name. `moved` are occurrences after a transition.
    `discarded` are those among them whose earlier events the store drops.

    `room` is the number of occurrences that may be under way besides; None if there is no limit.
    `bell` has the token of the row's bell, if the change makes the bell pending.
    """

    user_id: str
    key: str
    pages: Pages
    new_id: Callable[[], str]
    record: Record | None = None
    row: IndexRow | None = None
    unreadable: Unreadable | None = None
    mark: int | None = None
    defined_at: int = 0
    room: int | None = None
    made: list[Occurrence] = field(default_factory=list)
    ranges: list[Occurrence] = field(default_factory=list)
    moved: dict[Identity, Occurrence] = field(default_factory=dict)
    events: list[tuple[Identity, Event]] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    bell: "PendingToken | None" = None

    def view(self) -> Record | None:
        """Return the record as callers see it, with the time and the defect of its row."""
        if self.record is None:
            return None
        return replace(
            self.pages.complete(self.record),
            next_fire_at=self.row.next_fire_at if self.row else None,
            defect=self.unreadable.error if self.unreadable else None,
        )

    @property
    def lost(self) -> list[Occurrence]:
        """The occurrences that this change found lost."""
        return [one for one in self.moved.values() if one.reason is Reason.LOST]

    @property
    def discarded(self) -> list[Identity]:
        """The names of the occurrences that this change deleted."""
        return [name for name, one in self.moved.items() if one.state is State.DELETED]

    # The record.

    def put(self, wanted: Schedule, now: int) -> bool:
        """Create or replace the record. Return False if nothing differs.

        Raises ValueError with a helpful message if the schedule is invalid.
        """
        wanted.policies.retry.check_waits()
        if self.record is None:
            check_timing(wanted.cron, wanted.timezone)
            self._create(wanted, now)
            return True
        if not self.record.is_paused_by(wanted):
            check_timing(wanted.cron, wanted.timezone)
        current = self.pages.complete(self.record)
        after = current.redefine(wanted)
        if current.defines(after):
            return False
        after = replace(after, version=current.version + 1, updated_at=now)
        if current.times == after.times and current.enabled == after.enabled:
            self.record = keep_end(after)
            if current.flow != after.flow:
                self._date_flow(after, now)
            self.row = self.row and row_of(after, self.row.next_fire_at)
        else:
            self._retime(current, after, now)
        self._update_retries(current, after, now)
        return True

    def delete(self, now: int) -> bool:
        """Delete record and row. Return False if there is no record."""
        current = self.record
        if current is None:
            return False
        if is_job(self.key):
            self.record = None
            return True
        end = self._effective_time(now)
        unfired = range_unfired(current, self.row, self.mark, end, Reason.SCHEDULE_DELETED)
        self._account(unfired)
        self.record = self.row = self.unreadable = None
        self._define(current, end, "deleted")
        self._update_retries(current, None, now)
        return True

    def purge(self, now: int, retention: "Retention | None" = None) -> bool:
        """Delete a schedule that is done, or a job, if its time has come. Return False if it stays.

        The time of one that is deleted when its last occurrence ends has come with that end.
        It stays while one of its occurrences has not ended. After the end of a pause, a schedule
        that fires no more is done. The `retention` says until when a job is kept.
        """
        if retention and self.record and is_job(self.key):
            self.record = self._keep_job(self.record, retention)
        current = self.record
        if current is None or not may_leave(current, now):
            return False
        if current.done_at is None:
            if not self.mend(now):
                self.record = replace(current, purge_at=None)
            return False
        wakes = [wake_of(one) for one in self.pages.find_unfinished()]
        if wakes:
            self.record = replace(current, purge_at=max(now + MINUTE_MS, min(wakes)))
            return False
        return self.delete(now)

    def _keep_job(self, record: Record, retention: "Retention") -> Record:
        """Return the record of a job, kept for as long as its occurrence."""
        from duetick.domain.jobs import keep_job

        found = self.pages.find(record.anchor, self.key)
        return keep_job(record, found, retention) if found else record

    def _create(self, wanted: Schedule, now: int) -> None:
        beyond = self.pages.ranges_beyond(now)
        at = self._effective_time(now, beyond)  # after every deleted schedule of this name
        fresh = Record.of(wanted) if not isinstance(wanted, Record) else _definition_only(wanted)
        made = replace(
            fresh,
            version=1,
            redefined_at=at,
            anchor=now,
            created_at=at,
            updated_at=at,
        )
        row = _row_if_enabled(made)
        self._account(range_of_due(self.row, self.mark, at, Reason.SUPERSEDED))
        self._redefine(made, row, beyond)

    def _date_flow(self, after: Record, now: int) -> None:
        """Define the schedule in its new flow, from the first time that no claim took.

        The claim of a time reads the pauses of the flow that the row has then. Before a due time
        there is room for the dates of several changes.
        """
        claimed = max(now, self.mark or 0)
        if self.row and self.row.next_fire_at <= claimed:
            claimed = self.row.next_fire_at - LEAST_GAP_MS
        self._define(after, max(claimed, self.defined_at + 1), standing_of(after))

    def _retime(self, current: Record, after: Record, now: int) -> None:
        beyond = self.pages.ranges_beyond(now)
        at = self._effective_time(now, beyond)
        timed = replace(after, redefined_at=at, defect=None)
        # A pause or its end applies to retries too, even if the schedule fires no more.
        is_done = current.done_at is not None and only_pauses(current, after)
        may_be_done = is_done or (after.pause is not None and after.used_up)
        may_be_done = may_be_done or ends_pause(current, after)
        row = fresh_row(timed, at) if may_be_done and after.enabled else _row_if_enabled(timed)
        reason = Reason.SUPERSEDED if after.enabled else Reason.DISABLED
        self._account(range_unfired(current, self.row, self.mark, at, reason))
        if current.enabled and current.used_up:
            # The last run may still be given back.
            since = max(current.redefined_at, self.mark or 0)
            self._account(range_within(current, since, at, Reason.QUOTA))
        self._redefine(timed, row, beyond)

    def _redefine(self, after: Record, row: IndexRow | None, beyond: Iterable[Occurrence]) -> None:
        """Set a record whose fire times are new from `redefined_at` on.

        If the mark lies beyond that instant, it would hide new times, so it moves back. A claim
        skips every time that the ledger has by name, so the times of a range beyond the instant
        become ranges of one.
        """
        at = after.redefined_at
        self.record, self.unreadable = after, None
        self._set_row(row, at)
        self.ranges += [part for one in beyond for part in self._divide(one, at)]
        self.mark = None if self.mark is None else min(self.mark, at)
        self._define(after, at, standing_of(after))

    def _divide(self, whole: Occurrence, at: int) -> list[Occurrence]:
        """Return the parts of a range that differ from it: the first keeps its name."""
        parts = [part for part in divide(whole, at) if part != whole]
        same = whole.identity
        return [p if p.identity == same else replace(p, id=self.new_id()) for p in parts]

    def _effective_time(self, now: int, beyond: Iterable[Occurrence] = ()) -> int:
        """Return the instant at which a change takes effect.

        It is later than every change before, whatever their clocks said. The old times count up to
        it, the new times after it. If the change lies more than `FURTHEST_BEHIND` before the end of
        a range, the instant moves up to that distance.
        """
        furthest = max((one.range_end or 0 for one in beyond), default=0)
        return max(now, self.defined_at + 1, furthest - FURTHEST_BEHIND, 1)

    def _define(self, record: Record, since: int, standing: Standing) -> None:
        self.definitions.append(define(record, since, standing, before=self.defined_at))
        self.defined_at = since

    def _update_retries(self, before: Record, after: Record | None, now: int) -> None:
        """Apply a change of the schedule, or its delete, to the retries that wait."""
        for one in self.pages.in_place():
            if one.state is State.RETRYING:
                updated = follow(one, before, after, now)
                if updated != one:
                    self._move(one, updated)

    def _account(self, ranges: Iterable[Occurrence]) -> None:
        """Record times that do not fire, and move the mark so that no claim makes them again."""
        for whole in ranges:
            end = whole.nominal_at if whole.range_end is None else whole.range_end
            known = self.pages.times_within(whole.nominal_at, end)
            self.made += [replace(p, id=self.new_id()) for p in leave_out(whole, known)]
            self.mark = max(end, self.mark or end)

    # The row.

    def put_row(self, row: IndexRow, now: int) -> None:
        """Put a row. Its texts may be unreadable.

        If the row takes the place of an unreadable one, the schedule fires again from now on, and a
        new definition says so. The times before the row's are missed.
        """
        row.policies.retry.check_waits()
        check_no_job(row.key)
        broken, self.unreadable = self.unreadable, None
        if self.record and broken:
            since = max(self.record.redefined_at, self.mark or 0)
            until = min(now, row.next_fire_at - 1)
            self._account(range_within(self.record, since, until, Reason.MISSED))
        self._set_row(row, row.next_fire_at)
        if self.record and broken:
            self._define(self.record, self._effective_time(now), standing_of(self.record))

    def _set_row(self, row: IndexRow | None, at: int) -> None:
        """Set the row, and mark the record: without a row, the schedule is done since `at`."""
        self.row = row
        if self.record:
            self.record = set_end(self.record, fires_again=row is not None, at=at)

    def remove_row(self) -> None:
        """Remove the row. The mark stays."""
        self.row = self.unreadable = None

    def claim(self, templates: Templates, room: int | None = None) -> list[Occurrence]:
        """Advance the row if it is due, for a store that keeps rows in its books.

        Return the occurrences that the row makes: none of a time that the ledger has. If there is
        no `room` for all of them, the row stays due for the others.
        """
        row, seen = self.row, self.mark
        if row is None or row.next_fire_at > templates.now + templates.ahead or room == 0:
            return []
        due = due_row(row, seen)
        template = templates.of(due)
        if template.error is not None:
            broken = Unreadable(row, template.error, templates.now)
            return self._set_aside(broken, name_for(due, template.made[0], self.new_id()))
        if room is not None:
            template = template.within(room)
        for made in template.made:
            whole = name_for(due, made, "")
            known = self.pages.times_within(whole.nominal_at, whole.range_end or whole.nominal_at)
            self.made += [replace(one, id=self.new_id()) for one in leave_out(whole, known)]
        # Only now: the pages look for no occurrence beyond the mark.
        self.mark = max(template.mark, seen or template.mark)
        following = template.next_at
        after = None if following is None else replace(row, next_fire_at=following)
        self._set_row(after, max(templates.now, template.mark))
        return self.made

    def _set_aside(self, broken: Unreadable, poisoned: Occurrence) -> list[Occurrence]:
        """Take an unreadable row out of the index, and return its poisoned occurrence. It is
        recorded, with its failure hook, unless the ledger has that time.
        """
        self.row, self.unreadable = None, broken
        self.mark = max(poisoned.nominal_at, self.mark or poisoned.nominal_at)
        if self.pages.find(poisoned.nominal_at, poisoned.origin) is None:
            self.made += [poisoned, *hooks_of([poisoned], self.new_id)]
        return [poisoned]

    def restore(self, now: int, pauses: Pauses = NO_PAUSES) -> bool:
        """Put an unreadable row back as its record says. Return False if no row is unreadable.

        The times since are a misfire, as after downtime: the row is due for the first of them, and
        the next tick decides. What lies before the end of a pause of a group is missed: that pause
        may stand no more when the tick comes. Raises PoisonedRow if the row still cannot be read.
        """
        broken = self.unreadable
        if broken is None:
            return False
        at = broken.row.next_fire_at
        row = row_of(self.record, at) if self.record else broken.row
        try:
            if self.record is not None and self.record.used_up:
                missed, due = range_of_row(row, at, now, Reason.MISSED, now), None
            else:
                since = max(at, self.mark or at)
                spans = pauses.spans(row.user_id, row.flow)
                ended = [one for one in spans if one[1] <= now]
                missed = ranges_before(row, since, ended, now)
                due = Times.of(row).after(max([since, *(end - 1 for _, end in ended)]))
        except ValueError as error:
            name = f"{row.user_id}/{row.key}"
            raise PoisonedRow(f"{name} still cannot be read: {error}") from error
        self._account(missed)
        self.unreadable = None
        self._set_row(None if due is None else replace(row, next_fire_at=due), now)
        if self.record:
            self._define(self.record, self._effective_time(now), standing_of(self.record))
        return True

    def close_pause(self, now: int) -> bool:
        """End a pause whose end is over, so that its times become a range. Return False if there is
        none.
        """
        current = self.record
        if current is None or current.pause is None or current.pause.holds(now):
            return False
        if not current.enabled:
            return False
        try:
            return self.put(resume(current), now)
        except ValueError:  # its cron or zone can no longer be read: the audit says so
            return False

    def follow_zone(self, now: int) -> bool:
        """Move the row to its next time under the zone's present rules. Return True if it moved.

        A due row stays as it is, and no past time moves: the tick that claims it goes on by the new
        rules, which are dated now. So are those of a paused schedule.
        """
        record, row = self.record, self.row
        if record is None or self.unreadable:
            return False
        if row is None or row.next_fire_at <= now:
            self._define(record, self._effective_time(now), standing_of(record))
            return False
        try:
            fresh = fresh_row(record, accounted_until(row, self.mark, now))
        except ValueError:  # its cron can no longer be read: the audit says so
            return False
        self._set_row(fresh, now)
        self._define(record, self._effective_time(now), standing_of(record))
        return fresh != row

    def pass_over(self, until: int, now: int, *, keeps_newest: bool = False) -> bool:
        """Record the due times up to `until` as missed: a restore lost what became of them.

        With `keeps_newest`, the row stays due for the newest of them. Return False if nothing
        changes: the row has no such times, or it cannot be read, so that a claim poisons it.
        """
        row = self.row
        if row is None or row.next_fire_at > until:
            return False
        try:
            passed = pass_over(row, self.mark, until, now, keeps_newest=keeps_newest)
        except ValueError:
            return False
        if not passed.unknown:
            return False
        self._account(passed.unknown)
        self._set_row(passed.row, max(now, until))
        return True

    def mend(self, now: int) -> bool:
        """Bring the row in line with the record. Return True if they disagreed and now agree.

        A row that is due stays due, so that a tick decides about its times. The times of any other
        are accounted for. If the row cannot be read, it is removed.
        """
        problem = disagreement(self.record, self.row, self.mark, now)
        if problem is None or self.unreadable:
            return False
        row, self.row = self.row, None
        if problem == "unreadable":
            return False
        if self.record is None or not self.record.enabled or problem == "done":
            self._set_row(None, now)
            return True
        since = max(self.record.redefined_at, self.mark or 0)
        try:
            if row is not None and row.next_fire_at <= now:
                self._set_row(fresh_row(self.record, max(since, row.next_fire_at - 1)), now)
                return True
            missed = range_within(self.record, since, now, Reason.MISSED)
            fresh = fresh_row(self.record, max(now, since))
        except ValueError:
            return False
        self._account(missed)
        self._set_row(fresh, now)
        return True

    # The occurrences.

    def enqueue(self, job: "Job", now: int, *, leased: bool = False) -> "Job":
        """Record a job in its own book, which is empty. Return it. With `leased`, the caller hands
        it on.
        """
        occurrence = lease(job.occurrence, now) if leased else job.occurrence
        self.record = job.record
        self.made.append(occurrence)
        return job._replace(occurrence=occurrence)

    def job(self) -> "Job | None":
        """Return the job of the book, or None if it has none, or its occurrence is purged."""
        from duetick.domain.jobs import Job

        record = self.record
        if record is None or not is_job(self.key):
            return None
        found = self.pages.find(record.anchor, self.key)
        return Job(self.pages.complete(record), found) if found else None

    def bring(self, wanted: NewOccurrence, name: str, now: int) -> Occurrence | Refused:
        """Record the occurrence that a caller requests, under a lease. `name` becomes its id.

        If the occurrence is recorded under this id already, return it.
        """
        recorded = self.find_recorded(wanted.nominal_at, wanted.origin)
        if recorded:
            return recorded if recorded.id == name else refuse_again(recorded, wanted)
        if self._is_over(wanted.nominal_at, wanted.origin, now):
            return Refused("duplicate", State.DELETED)
        made = record(wanted, name, now)
        self.made.append(made)
        return made

    def backfill(
        self, order: StandingOrder, now: int, pauses: Pauses = NO_PAUSES
    ) -> "BackfillStep":
        """Bring the next occurrences of a backfill, each under a lease.

        The step is found in the ledger again: a repeat of it, from the order before, brings nothing
        twice. Its module is loaded when it is needed: most ticks have no backfill.
        """
        from duetick.domain.backfilling import Seen, step

        flow = self.record.flow if self.record else ""
        held = pauses.holding(self.user_id, flow, now) is not None
        seen = Seen(self.record, self.row, unreadable=self.unreadable is not None, held=held)
        taken = step(order, self.pages, seen, now, self.new_id)
        self.made += taken.made
        return taken

    def _is_over(self, nominal_at: int, origin: str, now: int) -> bool:
        """Return True if a purge may have deleted the outcome of a time.

        The mark says that the time had an outcome, and the time is older than the least retention.
        """
        seen = origin == SCHEDULE_ORIGIN and self.mark is not None and nominal_at <= self.mark
        return seen and nominal_at <= now - LEAST_KEPT_MS

    def find_recorded(self, nominal_at: int, origin: str = SCHEDULE_ORIGIN) -> Occurrence | None:
        """Return the recorded occurrence of that name, or the range that covers its time."""
        found = self.pages.find(nominal_at, origin)
        if found or origin != SCHEDULE_ORIGIN:
            return found
        newest = self.pages.newest_until(nominal_at)
        end = (newest.range_end or newest.nominal_at) if newest else 0
        return newest if newest and nominal_at <= end else None

    def copy(self) -> "Book":
        """Return the book without its writes. What changes the copy is never written."""
        return replace(self, made=[], ranges=[], moved={}, events=[], definitions=[])

    def foresee(self, occurrence: Occurrence, now: int, pauses: Pauses = NO_PAUSES) -> Occurrence:
        """Return the occurrence as a begin would leave it. Nothing changes."""
        return self.copy()._begin(occurrence, now, pauses)

    def begin(self, leased: Leased, now: int, pauses: Pauses = NO_PAUSES) -> Begun | Refused:
        """Begin an attempt if its fence, its schedule, the pauses of groups, the place and the
        limit of runs allow it.
        """
        found = self.pages.find(leased.nominal_at, leased.origin)
        if found is None:
            return Refused("unknown")
        refused = refuse(found, leased, now)
        if refused:
            return refused
        after = self._begin(found, now, pauses)
        self._move(found, after, trace_wait(after))
        return refuse_begun(after) or Begun(after, self.view())

    def hold_back(self, leased: Leased, now: int) -> Refused | None:
        """Put off an occurrence that a limit keeps from its begin. Nothing is counted.

        Return the refusal that the begin would get without the limit, or None.
        """
        found = self.pages.find(leased.nominal_at, leased.origin)
        refused = refuse(found, leased, now) if found else Refused("unknown")
        if found is None or refused:
            return refused
        after = hold_back(found, now)
        self._move(found, after, HELD_BACK if after.state is State.RETRYING else None)
        return None

    def may_begin(self, leased: Leased, now: int, pauses: Pauses = NO_PAUSES) -> Occurrence | None:
        """Return the attempt that a begin would start, or None. Nothing changes."""
        found = self.pages.find(leased.nominal_at, leased.origin)
        if found is None or refuse(found, leased, now):
            return None
        after = self.foresee(found, now, pauses)
        return after if after.state is State.PROCESSING else None

    def _begin(self, occurrence: Occurrence, now: int, pauses: Pauses) -> Occurrence:
        reason = why_cancelled(occurrence, self.record)
        if reason:
            return cancel(occurrence, reason, now)
        paused = self._pause(occurrence, now, pauses)
        if paused:
            return paused
        policies = policies_now(occurrence, self.record)
        if policies.overlap is not Overlap.ALLOW and self._place_is_taken(occurrence, now):
            return self._wait_behind(occurrence, policies.overlap, now)
        if counts_as_run(occurrence) and not self._count_run(now):
            return cancel(occurrence, Reason.QUOTA, now)
        if self.record and not is_failure_hook(occurrence.origin):
            self.record = replace(self.record, last_run_at=now)
        return start(occurrence, self.record, now)

    def _pause(self, occurrence: Occurrence, now: int, pauses: Pauses) -> Occurrence | None:
        """Return the occurrence as a pause leaves it, or None if none keeps it from beginning."""
        pause = pause_of(occurrence, self.record, now)
        if pause:
            return put_off(occurrence, pause.end, now)
        of_group = pause_of_begin(occurrence, pauses, now)
        if of_group is None:
            return None
        if occurrence.attempts or stands_beside(occurrence.origin):
            return put_off(occurrence, held_until(of_group, now), now)
        return cancel(occurrence, Reason.PAUSED, now)

    def _place_is_taken(self, occurrence: Occurrence, now: int) -> bool:
        """Return True if another occurrence has the place.

        If none has it, the occurrences that lost it make way.
        """
        others = self.pages.in_place()
        if any(is_rival(one, occurrence, now) for one in others):
            return True
        for one in others:
            after = make_way(one, occurrence, now)
            if after:
                note = None if one.state is State.RETRYING else trace_loss(one, after)
                self._move(one, after, note)
        return False

    def _wait_behind(self, occurrence: Occurrence, overlap: Overlap, now: int) -> Occurrence:
        after = wait_behind(occurrence, overlap, now)
        if after.state is State.QUEUED:
            for other in self.pages.find_queued_before(occurrence.nominal_at):
                if displaces(occurrence, other):
                    self._move(other, cancel(other, Reason.OVERLAP, now))
        return after

    def _count_run(self, now: int) -> bool:
        """Count a run. Return False if the limit allows no more.

        With the last run that the limit allows, the schedule is done: no rebuild gives it a row
        that was lost. The times of an unreadable row are a restore's. A disabled schedule stays so:
        its times are a resume's.
        """
        current = self.record
        if current is None:
            return True
        if current.used_up:
            return False
        self.record = replace(current, runs=current.runs + 1)
        if self.record.used_up:
            at = self._effective_time(now)
            if not self.unreadable:
                self._account(range_unclaimed(current, self.row, self.mark, at, Reason.QUOTA))
            self._set_row(None, now)
            if current.enabled:
                self._define(current, at, "done")
        return True

    def settle(self, leased: Leased, outcome: Outcome, now: int) -> Occurrence | None:
        """Write the end of an attempt. Return None if the fence is stale.

        If the attempt has ended with the same outcome before, nothing changes.
        """
        found = self.pages.find(leased.nominal_at, leased.origin)
        if found is None or found.fence != leased.fence:
            return None
        if found.state is not State.PROCESSING:
            return found if outcome.is_said_of(found) else None
        return self._settle(found, outcome, now)

    def settle_running(self, leased: Leased, outcome: Outcome, now: int) -> Occurrence:
        """Write the end of a running attempt, together with its effects.

        Raises LeaseLost if the attempt does not run: its effects would be made twice.
        """
        found = self.pages.find(leased.nominal_at, leased.origin)
        return self._settle(check_running(found, leased), outcome, now)

    def _settle(self, occurrence: Occurrence, outcome: Outcome, now: int) -> Occurrence:
        if gives_run_back(occurrence, outcome):
            self._give_run_back(occurrence, now)
        settled = settle(occurrence, outcome, now)
        if settled.event:
            self.events.append((occurrence.identity, settled.event))
        return self._move(occurrence, settled.after)

    def _give_run_back(self, occurrence: Occurrence, now: int) -> None:
        """Give a run back.

        If it was the last run that the limit allowed, the schedule is indexed again. The times in
        between did not fire, for reason `quota`.
        """
        current = self.record
        if current is None or current.runs == 0 or occurrence.redefined_at < current.created_at:
            return
        self.record = after = replace(current, runs=current.runs - 1)
        if not (current.used_up and current.enabled):
            return
        seen = max(current.redefined_at, self.mark or 0)
        try:
            row = fresh_row(after, max(now, seen))
        except ValueError:
            return
        self._account(range_within(after, seen, now, Reason.QUOTA))
        if row and self.row is None:
            self._set_row(row, now)
            self._define(after, self._effective_time(now), "active")

    def release(self, leased: Leased, now: int) -> bool:
        """Give a lease back if its attempt never began.

        Return False if the attempt began, or the fence is stale.
        """
        found = self.pages.find(leased.nominal_at, leased.origin)
        if found is None or found.fence != leased.fence or found.state is not State.QUEUED:
            return False
        self._move(found, release(found, now), RELEASED)
        return True

    def write_off(self, leased: Leased, now: int) -> Occurrence | None:
        """End a leased occurrence that has not begun under this lease: a restore lost its outcome.

        Return None if the attempt began, or the fence is stale.
        """
        found = self.pages.find(leased.nominal_at, leased.origin)
        if found is None or found.fence != leased.fence or found.state is not State.QUEUED:
            return None
        return self._move(found, write_off(found, now), UNKNOWN)

    def renew(self, leased: Leased, now: int) -> Occurrence | None:
        """Extend the lease of a begun attempt.

        Return None if the fence is stale, or the attempt has ended.
        """
        found = self.pages.find(leased.nominal_at, leased.origin)
        if found is None or found.fence != leased.fence or found.state is not State.PROCESSING:
            return None
        return self._move(found, renew(found, now))

    def retry(
        self, named: Leased, by: "Operator", now: int, pauses: Pauses = NO_PAUSES
    ) -> "Operated":
        """Let a dead occurrence begin once more, for an operator. If it is under way, nothing
        changes.

        Raises OccurrenceConflict if it would not begin.
        """
        from duetick.domain import operating

        found = self._find_leased(named)
        if operating.is_under_way(found):
            return operating.Operated(found, changed=False)
        operating.check_retry(found)
        if self.room is not None and self.room < 1:
            raise OccurrenceConflict(operating.NO_ROOM)
        after = operating.retry(found, self.record, self.pages.in_place(), now, pauses)
        if operating.counts_again(found, self.record) and not self._count_run(now):
            raise OccurrenceConflict(operating.USED_UP)
        return self._operate(after, operating.trace_retry(found, after, by))

    def cancel(self, named: Leased, by: "Operator", now: int) -> "Operated":
        """End an occurrence that runs or waits, for an operator. If it is cancelled, nothing
        changes.

        Raises OccurrenceConflict if it has ended otherwise.
        """
        from duetick.domain import operating

        found = self._find_leased(named)
        if found.state is State.CANCELLED:
            return operating.Operated(found, changed=False)
        after = operating.call_off(found, now)
        note = by.note("cancelled")
        return self._operate(after, [Event(now, found.state, after.state, note)])

    def discard(self, named: Leased, by: "Operator", now: int) -> "Operated":
        """Delete what an occurrence holds, for an operator. Its name stays, and the reason of its
        end. If it is deleted, nothing changes.

        Raises OccurrenceConflict if it may still begin or settle.
        """
        from duetick.domain import operating

        found = self._find_leased(named)
        if found.state is State.DELETED:
            return operating.Operated(found, changed=False)
        after = operating.strip(found, now)
        return self._operate(after, [Event(now, found.state, after.state, by.note("deleted"))])

    def _find_leased(self, named: Leased) -> Occurrence:
        found = self.pages.find(named.nominal_at, named.origin)
        if found is None:
            raise OccurrenceNotFound
        return found

    def _operate(self, after: Occurrence, events: Sequence[Event]) -> "Operated":
        from duetick.domain.operating import Operated

        self.moved[after.identity] = after
        self._mark_job(after)
        self.events += [(after.identity, one) for one in events]
        return Operated(after, changed=True)

    def lease(self, ready: Sequence[Occurrence], behind: Sequence[Occurrence], now: int) -> None:
        """Lease the `ready` occurrences, which waited or whose lease ended.

        The retries that wait `behind` others keep their place.
        """
        for one in ready:
            self._move(one, *lease_again(one, now))
        others = [self.moved.get(one.identity, one) for one in (*self.pages.in_place(), *ready)]
        for one in behind:
            if needs_reserving(one, now) and not may_be_leased(one, others):
                self._move(one, reserve(one, now))

    def _mark_job(self, after: Occurrence) -> None:
        """Mark the record of a job as its occurrence ends, or is under way again."""
        if self.record and after.origin == self.key and is_job(self.key):
            from duetick.domain.jobs import mark_job

            self.record = mark_job(self.record, after)

    def _move(self, before: Occurrence, after: Occurrence, note: str | None = None) -> Occurrence:
        self.moved[after.identity] = after
        self._mark_job(after)
        if note is not None:
            event = Event(after.updated_at, before.state, after.state, note)
            self.events.append((after.identity, event))
        if before.state is not State.DEAD:
            self.made += hooks_of([after], self.new_id)
        return after


def lease_again(occurrence: Occurrence, now: int) -> tuple[Occurrence, str | None]:
    """Lease an occurrence that waited, or whose lease ended. Return it with its trace.

    If a limit held the occurrence back, it is due now, and its time to begin counts anew. The same
    holds for a job that never began: no wait is lateness.
    """
    never_began = occurrence.state in WAITING and not occurrence.attempts
    if is_held_back(occurrence) or (never_began and is_job(occurrence.origin)):
        occurrence = due_again(occurrence, now)
    if occurrence.state in WAITING:
        return lease(occurrence, now), None
    after = lose(occurrence, now)
    return after, trace_loss(occurrence, after)


def _definition_only(wanted: Record) -> Record:
    """Return the definition in a record of another store, or of a deleted schedule."""
    wanted.check()
    return Record(**{name: getattr(wanted, name) for name in DEFINED})


def _row_if_enabled(record: Record) -> IndexRow | None:
    if not record.enabled:
        return None
    at = record.redefined_at
    row = fresh_row(record, at)
    if row is None:
        endless = replace(record, policies=replace(record.policies, ends_at=None))
        raise refuse_never_firing(record, at, would_else=fresh_row(endless, at) is not None)
    return row


def check_future(schedule: Schedule, now: int) -> None:
    """Raise InvalidSchedule unless the schedule fires again, or is paused."""
    _row_if_enabled(replace(Record.of(schedule), redefined_at=now))
