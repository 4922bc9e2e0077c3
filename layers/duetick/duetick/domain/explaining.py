"""The explanation of one time of a schedule: its outcome, or what becomes of it as things stand.

                    ┌ recorded: the ledger's entry
  look(book, at) ───┼ the claim and the begin of a copy of the book ──▶ Sight
                    └ nothing ──▶ judge(sight, account): the definitions, and reckon

Nothing here is a rule of its own: the functions that claim, begin, cancel and account decide.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from duetick.domain.accounts import Account, Fault, Rules, place_in_force, times_of
from duetick.domain.attempts import counts_as_run
from duetick.domain.book import Book, lease_again
from duetick.domain.cancelling import why_cancelled
from duetick.domain.claims import Templates
from duetick.domain.definitions import Definition
from duetick.domain.firing import Times, TimesOutside
from duetick.domain.group_pauses import NO_PAUSES, GroupPause, Hole, Pauses, pause_of_begin
from duetick.domain.identity import is_job
from duetick.domain.occurrence import LATEST, IndexRow, Occurrence
from duetick.domain.overlap import is_rival, may_hold_place
from duetick.domain.policies import Overlap, Policies
from duetick.domain.ranges import range_of_pause, range_unfired
from duetick.domain.schedule import Record
from duetick.domain.states import WAITING, Reason, State
from duetick.domain.transitions import has_ended, lease_over
from duetick.domain.verdicts import Verdict

OF_REASON: Final[dict[Reason, Verdict]] = {
    Reason.FIRED: "fired",
    Reason.FAILED: "failed",
    Reason.LOST: "lost",
    Reason.REJECTED: "rejected",
    Reason.POISONED: "poisoned",
    Reason.OVERLAP: "overlap",
    Reason.MISSED: "missed",
    Reason.PAUSED: "paused",
    Reason.DISABLED: "disabled",
    Reason.SCHEDULE_DELETED: "schedule_deleted",
    Reason.SUPERSEDED: "superseded",
    Reason.QUOTA: "quota",
    Reason.OPERATOR: "operator",
}


class Sight(NamedTuple):
    """The sight of one time in a book, as of an instant.

    `entry` is the ledger's; `expected` the one that the next tick makes. `under_way` is another
    occurrence that has the place, or may have it. `group` is the pause of a group that covers the
    time, or holds it. If the book does not show the outcome of the time, `verdict` is None.
    """

    verdict: Verdict | None
    record: Record | None = None
    row: IndexRow | None = None
    defect: str | None = None
    entry: Occurrence | None = None
    expected: Occurrence | None = None
    under_way: Occurrence | None = None
    group: GroupPause | None = None


class Judgement(NamedTuple):
    """The answer, with the definition in force then, and the fire times beside the time."""

    verdict: Verdict
    definition: Definition | None = None
    before: int | None = None
    after: int | None = None
    group: GroupPause | None = None


def look(book: Book, at: int, now: int, pauses: Pauses = NO_PAUSES) -> Sight:
    """Return the sight of a time in a book. The book does not change."""
    broken = book.unreadable
    shown = Sight(None, book.view(), book.row, broken.error if broken else None)
    entry = book.pages.find(at, book.key) if is_job(book.key) else book.find_recorded(at)
    if entry and _covers(entry, at):
        verdict = _verdict_of(_with_runs(book.copy(), entry, (), now), entry, now, pauses)
        waits = has_ended(entry) or is_job(book.key)  # a pause takes no job's time away
        held = None if waits else pause_of_begin(entry, pauses, max(now, entry.due_at))
        place = _in_place(book, entry, now)
        return shown._replace(verdict=verdict, entry=entry, under_way=place, group=held)
    group = _group_of(book, at, pauses)
    if group:
        return shown._replace(verdict="paused", group=group)
    if broken and at >= broken.row.next_fire_at:
        return shown._replace(verdict="unreadable")
    if any(_covers(whole, at) for whole in _pauses(book, at, now)):
        return shown._replace(verdict="paused")
    return _look_ahead(book, shown, at, now, pauses) if book.row else shown


def _group_of(book: Book, at: int, pauses: Pauses) -> GroupPause | None:
    """Return the pause of a group that covers a time that the row names, or None."""
    row = book.row
    if row is None or at <= row.redefined_at or not _names(Times.of(row), at):
        return None
    return pauses.holding(row.user_id, row.flow, at)


def _look_ahead(book: Book, shown: Sight, at: int, now: int, pauses: Pauses) -> Sight:
    """Return what the next claim makes of a time that is not recorded."""
    try:
        expected, then = _claim(book, at, now, pauses)
    except ValueError:
        return shown._replace(verdict="unreadable")
    if expected is None:
        return shown._replace(verdict="unreadable" if then.unreadable else None)
    verdict = _verdict_of(then, expected, now)
    return shown._replace(
        verdict=verdict, expected=expected, under_way=_in_place(book, expected, now)
    )


def _in_place(book: Book, entry: Occurrence, now: int) -> Occurrence | None:
    """Return an occurrence that may keep the entry from beginning, or None."""
    others = (o for o in book.pages.in_place() if o.identity != entry.identity)
    others = (one for one in others if may_hold_place(one))
    running = next((one for one in others if one.state is State.PROCESSING), None)
    return running or _retry_before(book, entry, max(now, entry.due_at), now)


def _covers(entry: Occurrence, at: int) -> bool:
    """Return True if the time is the entry's own, or one of those that its range stands for."""
    if entry.nominal_at == at:
        return True
    if entry.range_end is None or not entry.nominal_at < at <= entry.range_end:
        return False
    times = Times(entry.cron, entry.timezone, entry.nominal_at, entry.policies)
    return _names(times, at)


def _names(times: Times, at: int) -> bool:
    try:
        return times.names(at)
    except ValueError:
        return False


def _pauses(book: Book, at: int, now: int) -> Iterable[Occurrence]:
    """Return the ranges of a pause that the ledger has not yet, up to a time or to now."""
    record = book.record
    if record is None:
        return ()
    until = max(at, now)
    if record.enabled:
        return range_of_pause(record, until)
    return range_unfired(record, None, book.mark, until, Reason.PAUSED)


def _claim(book: Book, at: int, now: int, pauses: Pauses) -> tuple[Occurrence | None, Book]:
    """Claim a copy of the book, now or at a later time. Return the entry of that time, if the claim
    makes one, and the copy as the begin of that entry finds it.
    """
    ahead, spans = book.copy(), _paused_spans(book, pauses)
    made = [one for one in ahead.claim(Templates(now, 0)) if not _lies_in(one.nominal_at, spans)]
    row = ahead.row
    if at <= now or row is None:
        entry = _entry_of(made, at)
        return entry, _with_runs(ahead, entry, made, now)
    times = Times.of(row)
    if at < row.next_fire_at or not times.names(at):
        return None, ahead
    then = ahead.copy()
    then.row = replace(row, next_fire_at=at)
    entry = _entry_of(then.claim(Templates(at, 0)), at)
    fires = TimesOutside(*_parts_of(times), spans) if spans else times
    recorded = book.pages.times_within(row.next_fire_at, at - 1)
    known = sum(fires.names(one) for one in recorded if not _lies_in(one, spans))
    between = fires.count(row.next_fire_at - 1, at - 1) - known
    return entry, _with_runs(then, entry, made, now, between)


def _paused_spans(book: Book, pauses: Pauses) -> tuple[Hole, ...]:
    """Return the spans in which a pause of a group keeps the schedule from firing."""
    return pauses.spans(book.user_id, book.row.flow) if book.row else ()


def _lies_in(at: int, spans: Sequence[Hole]) -> bool:
    return any(first <= at < end for first, end in spans)


def _parts_of(times: Times) -> tuple[str, str | None, int, Policies]:
    return times.cron, times.timezone, times.anchor, times.policies


def _entry_of(made: Sequence[Occurrence], at: int) -> Occurrence | None:
    return next((one for one in made if _covers(one, at)), None)


def _with_runs(
    book: Book,
    entry: Occurrence | None,
    made: Sequence[Occurrence],
    now: int,
    between: int = 0,
) -> Book:
    """Count the runs that begin before an entry, in a copy of a book with a limit.

    Some are recorded, a claim makes others, and `between` counts the rest.
    """
    record = book.record
    if record and entry and record.policies.max_runs is not None:
        new = [one for one in made if book.pages.find(one.nominal_at, one.origin) is None]
        begin = sum(
            counts_as_run(one)
            and _begins(one, now) < _begins(entry, now)
            and _verdict_of(book, one, now) == "will_fire"
            for one in (*book.pages.find_unfinished(), *new)
        )
        book.record = replace(record, runs=record.runs + between + begin)
    return book


def _begins(one: Occurrence, now: int) -> tuple[int, int]:
    """Return the place of an occurrence in the order in which those of its schedule begin."""
    return max(one.due_at, now), one.nominal_at


def _verdict_of(book: Book, entry: Occurrence, now: int, pauses: Pauses = NO_PAUSES) -> Verdict:
    """Return the outcome of an entry. If it has not ended, begin it in a copy of the book."""
    if has_ended(entry):
        return _by_reason(entry)
    if entry.state is State.PROCESSING and not lease_over(entry, now):
        return "running"
    then = max(now, entry.due_at)
    leased = entry
    if entry.state in WAITING or lease_over(entry, then):
        leased, _ = lease_again(entry, then)
        if has_ended(leased):
            return _by_reason(leased)
    if not leased.attempts and _retry_before(book, leased, then, now):
        return "may_overlap"
    return _of_begin(entry, book.foresee(leased, then, pauses))


def _retry_before(book: Book, entry: Occurrence, then: int, now: int) -> Occurrence | None:
    """Return a retry that a tick leases before the entry begins, and that may have its place."""
    policies = book.record.policies if book.record else entry.policies
    if policies.overlap is Overlap.ALLOW or why_cancelled(entry, book.record):
        return None
    for one in book.pages.in_place():
        leased_at = max(now, one.due_at)
        if one.state is State.RETRYING or (one.attempts and lease_over(one, leased_at)):
            leased, _ = lease_again(one, leased_at)
            if is_rival(leased, entry, then):
                return one
    return None


def _by_reason(ended: Occurrence) -> Verdict:
    return "unknown" if ended.reason is None else OF_REASON[ended.reason]


def _of_begin(before: Occurrence, after: Occurrence) -> Verdict:
    """Return what a begin makes of an entry. Another one that runs may have ended by then."""
    if has_ended(after):
        return "may_overlap" if after.reason is Reason.OVERLAP else _by_reason(after)
    if before.attempts:
        return "will_retry"
    if is_job(before.origin):
        return "will_fire"  # it waits for a pause or a limit, and for no other occurrence
    return "will_fire" if after.state is State.PROCESSING else "may_overlap"


def judge(
    sight: Sight,
    account: Account,
    missing: Sequence[Fault],
    at: int,
    rules: Rules,
    *,
    pauses: Pauses = NO_PAUSES,
    backfilled: bool = False,
) -> Judgement:
    """Return the answer for a time: what was seen, or else what the definitions say.

    `missing` is what `reckon` finds wrong at that time, if it is past. `backfilled` says that a
    backfill has made it.
    """
    definitions = account.definitions
    place = place_in_force([one.since for one in definitions], at)
    definition = definitions[place] if place >= 0 else None
    times = times_of(definition, rules) if definition else None
    verdict = sight.verdict
    group = sight.group
    if verdict is None and definition:
        verdict = _by_definition(sight, definition, times, missing, at)
        group = _group_then(definition, pauses, at) if verdict in _LEFT_OUT else None
        verdict = "paused" if group else verdict
    verdict = "backfilled" if backfilled and verdict == "unindexed" else verdict
    found = Judgement(verdict or _without_definition(account, at), definition, group=group)
    if found.verdict not in BESIDE:
        return found
    spans = _spans(definitions, rules)
    return found._replace(before=_before(spans, at), after=_after(spans, at))


def _group_then(definition: Definition, pauses: Pauses, at: int) -> GroupPause | None:
    """Return the pause of a group that covers a time under a definition, or None."""
    of_schedule = pauses.of(definition.user_id, definition.flow)
    return next((one for one in of_schedule if one.covers(at)), None)


_LEFT_OUT: Final = frozenset[Verdict]({"unindexed", "quota", "unaccounted"})
"""The verdicts of a fire time without an entry."""

BESIDE: Final = frozenset[Verdict](
    {
        "not_a_fire_time",
        "skipped_by_clock",
        "repeated_by_clock",
        "outside_window",
        "no_schedule",
    }
)
"""The verdicts of a time that is no fire time: they come with the fire times beside it."""


def _by_definition(
    sight: Sight, definition: Definition, times: Times | None, missing: Sequence[Fault], at: int
) -> Verdict:
    if definition.is_last:
        return "no_schedule"
    if times is None:
        return "unreadable"
    if not times.names(at):
        return _why_not_named(times, at)
    if any(one.problem == "missing" for one in missing):
        return "unaccounted"
    used_up = definition.standing == "done" or (sight.record and sight.record.used_up)
    return "quota" if used_up else "unindexed"


def _without_definition(account: Account, at: int) -> Verdict:
    """Return the answer for a time before the first definition that is kept, or without one."""
    if account.definitions:
        return "unknown" if account.definitions[0].before else "no_schedule"
    row = account.row
    if row is None:
        return "no_schedule"
    times = Times.of(row)
    return "unknown" if _names(times, at) else _why_not_named(times, at)


def _why_not_named(times: Times, at: int) -> Verdict:
    """Return why the expression does not name a time, by the policies under which it would."""
    policies = times.policies
    if _names(replace(times, policies=replace(policies, starts_at=None, ends_at=None)), at):
        return "outside_window"
    if _names(replace(times, policies=replace(policies, gap="run")), at):
        return "skipped_by_clock"
    if _names(replace(times, policies=replace(policies, repeat="both")), at):
        return "repeated_by_clock"
    return "not_a_fire_time"


class InForce(NamedTuple):
    """The times of one definition, in (since, until]."""

    times: Times
    since: int
    until: int


def _spans(definitions: Sequence[Definition], rules: Rules) -> list[InForce]:
    """Return the spans of the definitions that name times, in order."""
    spans: list[InForce] = []
    for place, one in enumerate(definitions, 1):
        end = definitions[place].since if place < len(definitions) else LATEST
        times = times_of(one, rules)
        if times and not one.is_last:
            spans.append(InForce(times, one.since, end))
    return spans


def _before(spans: Sequence[InForce], at: int) -> int | None:
    """Return the last fire time before `at`, or None."""
    found = (one.times.newest(one.since, min(one.until, at - 1)) for one in reversed(spans))
    return next((time for time in found if time is not None), None)


def _after(spans: Sequence[InForce], at: int) -> int | None:
    """Return the first fire time after `at`, or None."""
    later = (one for one in spans if at < one.until)
    found = ((one.times.after(max(at, one.since)), one.until) for one in later)
    return next((time for time, until in found if time is not None and time <= until), None)
