"""The account of a schedule: its dated definitions, compared with the entries of the ledger.

Every nominal time of an active schedule has one entry: an occurrence, or a range that covers it. So
has every time that its own pause kept from firing, once that is over. A pause of a group is the
outcome of the times in it that have no entry, and an occurrence of a backfill is that of its time.
`reckon` names each other time without an entry, and each entry that no definition names. It reads
nothing else.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Final, Literal, NamedTuple, TypeAlias

from duetick.domain.definitions import Definition
from duetick.domain.expression import digest_of
from duetick.domain.firing import Times, TimesOutside
from duetick.domain.group_pauses import NO_PAUSES, Hole, Pauses
from duetick.domain.occurrence import IndexRow
from duetick.domain.policies import MINUTE_MS
from duetick.domain.states import Reason, State

Problem: TypeAlias = Literal["missing", "unexpected", "doubled", "miscounted", "undefined"]

WHY: Final[dict[Problem, str]] = {
    "missing": "the expression names these times, and the ledger has no outcome of them",
    "unexpected": "the ledger has an outcome of this time, and no definition lets it fire",
    "doubled": "two entries of the ledger cover this time",
    "miscounted": "the range counts other times than the expression names in it",
    "undefined": "the row has other fire times than the newest definition",
}

AFTERMATH_MS: Final = 20 * MINUTE_MS
"""The time after the begin of a pause, or a delete, in which its schedule may still fire: claimed
ahead, by a clock that is ahead, or while the change stood still between its clock and its write.
"""

AT_ONCE: Final = 1_000
MOST_FAULTS: Final = 20
"""The faults of one schedule that are told apart. Later ones extend the last of their kind."""
OPEN: Final = frozenset({State.SCHEDULED, State.QUEUED, State.PROCESSING, State.RETRYING})

Rules: TypeAlias = Callable[[str], str | None]
"""A function that returns the name of the zone whose rules have a digest; None if none has."""


Backfilled: TypeAlias = Callable[[int, int], Sequence[int]]
"""A function that returns the times in (after, until] that backfills have made, ascending. It is
asked only about spans with times that have no entry.
"""


def none_backfilled(_after: int, _until: int) -> Sequence[int]:
    """Return no time."""
    return ()


class LedgerEntry(NamedTuple):
    """The parts of an occurrence, or of a range, of origin `schedule` that an account needs."""

    nominal_at: int
    range_end: int | None
    counted: int
    state: str
    reason: str | None
    redefined_at: int


class Account(NamedTuple):
    """The parts of a schedule that a store keeps for a span of time.

    `paused_since` is the date of the newest definition if its pause has no range yet. The entries
    are read as they are asked for. `place` is where a walk goes on after this account. If the row
    is unreadable, `unreadable_at` is the time for which it is due: a restore decides about the
    times from then on.
    """

    user_id: str
    key: str
    definitions: Sequence[Definition]
    row: IndexRow | None
    paused_since: int | None
    entries: Iterable[LedgerEntry]
    place: str = ""
    unreadable_at: int | None = None


class Fault(NamedTuple):
    """Times of one schedule that do not add up."""

    problem: Problem
    first: int
    last: int
    counted: int


class Reckoned(NamedTuple):
    """The result for one schedule: the times that were checked, those under way, the faults."""

    times: int
    under_way: int
    faults: Sequence[Fault]


class Stretch(NamedTuple):
    """A span (after, until] under one definition. If it is owed, each of its times has an entry.

    `times` is None if the expression or its zone cannot be read. `holes` are the spans in it that
    pauses of groups cover: their times may have entries, and need none.
    """

    after: int
    until: int
    times: Times | None
    owed: bool
    holes: tuple[Hole, ...] = ()

    def owes(self) -> TimesOutside | Times | None:
        """Return the times that need an entry; None if none does."""
        times = self.times if self.owed else None
        if times is None or not self.holes:
            return times
        parts = times.cron, times.timezone, times.anchor, times.policies
        return TimesOutside(*parts, self.holes)


def reckon(
    account: Account,
    since: int,
    until: int,
    rules: Rules,
    pauses: Pauses = NO_PAUSES,
    *,
    backfilled: Backfilled = none_backfilled,
) -> Reckoned:
    """Compare the entries with the definitions, for the times in (since, until]."""
    found = _Reckoning(account, since, until, rules, pauses)
    found.backfilled = backfilled
    entries = iter(account.entries)
    while block := list(islice(entries, AT_ONCE)):
        found.take(block)
    found.close()
    return Reckoned(found.times, found.under_way, found.faults)


class _Reckoning:
    """The state of one comparison.

    Until `reached`, every owed time is accounted for. `covered` is the last time with an entry.
    """

    def __init__(
        self, account: Account, since: int, until: int, rules: Rules, pauses: Pauses
    ) -> None:
        self.since, self.until = since, until
        self.backfilled: Backfilled = none_backfilled
        at = account.unreadable_at
        self.owed_until = until if at is None else min(until, at)
        self.reached, self.covered = since, since
        self.times = self.under_way = 0
        self.faults: list[Fault] = []
        self.dates = [one.since for one in account.definitions]
        self.dated = [(one.since, find_times(one, rules)) for one in account.definitions]
        self.silent = list(_silences(account, until))
        self.deleted = {one.since for one in account.definitions if one.is_last}
        self.stretches = list(stretches(account, since, until, self.dated, pauses))
        self.ends = [one.until for one in self.stretches]
        if not _agrees(account):
            self._find("undefined", until, until, 1)

    def take(self, block: Sequence[LedgerEntry]) -> None:
        """Take the next entries, ascending."""
        self.under_way += sum(one.state in OPEN for one in block)
        plain: list[LedgerEntry] = []
        for one in block:
            if one.nominal_at > self.until:
                break
            if one.range_end is None and one.reason != Reason.POISONED:
                plain.append(one)
                continue
            self._take_plain(plain)
            plain = []
            self._take_range(one)
        self._take_plain(plain)

    def close(self) -> None:
        """Look for owed times after the last entry."""
        self._owe(self.until)

    def _take_plain(self, block: Sequence[LedgerEntry]) -> None:
        """Take occurrences. The usual case is one comparison of two lists."""
        block = [one for one in block if one.nominal_at > self.since]
        if not block:
            return
        last = block[-1].nominal_at
        named = [one.nominal_at for one in block]
        odd = named[0] <= self.covered or self._is_silent(named[0], last)
        if odd or self._find_owed(self.reached, last, len(named) + 1) != named:
            for one in block:
                self._take_one(one)
        self.times += len(named)
        self.reached, self.covered = max(self.reached, last), max(self.covered, last)

    def _take_one(self, one: LedgerEntry) -> None:
        at = one.nominal_at
        if at <= self.covered:
            self._find("doubled", at, at, 1)
        self._owe(at - 1)
        fired = one.redefined_at > 0 and one.reason in (Reason.FIRED, Reason.FAILED)
        if not self._names(at, one.redefined_at) or (fired and self._is_silent(at, at)):
            self._find("unexpected", at, at, 1)
        self.reached, self.covered = max(self.reached, at), max(self.covered, at)

    def _take_range(self, one: LedgerEntry) -> None:
        """Take a range, or the occurrence of a row that could not be read."""
        first, last = one.nominal_at, one.range_end or one.nominal_at
        if last <= self.since:
            return
        if first <= self.covered and first > self.since:
            self._find("doubled", first, last, one.counted)
        self._owe(first - 1)
        whole = one.range_end is not None and last <= self.until
        if whole and not self._counts(one, first, last):
            self._find("miscounted", first, last, one.counted)
        self.times += one.counted
        self.covered = max(self.covered, last)
        self.reached = max(self.reached, last)

    def _owe(self, until: int) -> None:
        """Find the owed times up to `until` that have no entry, and go on after it."""
        for one in self._within(self.reached, until):
            after, end = max(one.after, self.reached), min(one.until, until, self.owed_until)
            times = one.owes()
            if times and after < end and (count := times.count(after, end)):
                self._owe_times(times, after, end, count)
        self.reached = max(self.reached, until)

    def _owe_times(self, times: Times, after: int, end: int, count: int) -> None:
        """Find the times in (after, end] that have no entry, but for those of backfills."""
        made = {at for at in self.backfilled(after, end) if times.names(at)}
        self.times += len(made)
        first, last = times.after(after), times.newest(after, end)
        while first is not None and first in made:
            first = times.after(first)
        while last is not None and last in made:
            last = times.newest(after, last - 1)
        if count > len(made) and first is not None and last is not None:
            self._find("missing", first, last, count - len(made))

    def _find_owed(self, after: int, until: int, most: int) -> list[int]:
        """Return the first `most` owed times in (after, until]."""
        found: list[int] = []
        for one in self._within(after, until):
            times = one.owes()
            if times:
                start, end = max(one.after, after), min(one.until, until)
                found += times.between(start, end, most - len(found))
        return found

    def _count(self, after: int, until: int) -> int | None:
        """Count the named times in (after, until]; None if an expression there is unreadable."""
        total = 0
        for one in self._within(after, until):
            if one.times is None:
                return None
            total += one.times.count(max(one.after, after), min(one.until, until))
        return total

    def _counts(self, one: LedgerEntry, first: int, last: int) -> bool:
        """Return True if definitions name the bounds of the range, and as many times as it counts.

        The definitions are those in force then, or the one under which the range was made.
        """
        if not all(self._names(at, one.redefined_at) for at in (first, last) if at > self.since):
            return False
        if first > self.since and self._count(first - 1, last) in (None, one.counted):
            return True
        times = self._in_force(min(one.redefined_at + 1, first))
        return times is None or times.count(first - 1, last) == one.counted

    def _names(self, at: int, redefined_at: int) -> bool:
        """Return True if a definition names the time: the one in force then, or the one under which
        the occurrence was claimed ahead of a change.
        """
        if redefined_at == 0 and self.dates[self._place(at)] in self.deleted:
            return True  # a row without a record came after the schedule
        times = [self._in_force(at), self._in_force(min(redefined_at + 1, at))]
        return any(one is None or one.names(at) for one in times)

    def _is_silent(self, first: int, last: int) -> bool:
        """Return True if at one of these times nothing fires: in a pause, or after a delete."""
        return any(after < last and first <= end for after, end in self.silent if after < end)

    def _place(self, at: int) -> int:
        return place_in_force(self.dates, at)

    def _in_force(self, at: int) -> Times | None:
        """Return the times of the definition in force; None if nobody knows them."""
        place = self._place(at)
        return self.dated[place][1] if place >= 0 else None

    def _within(self, after: int, until: int) -> Iterator[Stretch]:
        for place in range(bisect_left(self.ends, after + 1), len(self.stretches)):
            one = self.stretches[place]
            if one.after >= until:
                return
            yield one

    def _find(self, problem: Problem, first: int, last: int, count: int) -> None:
        alike = [place for place, one in enumerate(self.faults) if one.problem == problem]
        if len(self.faults) < MOST_FAULTS or not alike:
            self.faults.append(Fault(problem, first, last, count))
            return
        before = self.faults[alike[-1]]
        longer = before._replace(last=last, counted=before.counted + count)
        self.faults[alike[-1]] = longer


def place_in_force(dates: Sequence[int], at: int) -> int:
    """Return the place of the newest date before `at`; -1 if there is none.

    The times of a definition begin after its date.
    """
    return bisect_left(dates, at) - 1


def zone_of(one: Definition, rules: Rules) -> str | None:
    """Return the zone of a definition, or the name that stands for the rules that it names."""
    if one.zone is not None and one.zone != digest_of(one.timezone):
        return rules(one.zone) or one.timezone
    return one.timezone


def times_of(one: Definition, rules: Rules) -> Times | None:
    """Return the times under the rules that the definition names; None if it cannot be read."""
    times = Times(one.cron, zone_of(one, rules), one.anchor, one.policies)
    try:
        times.after(one.since)
    except ValueError:
        return None
    return times


def find_times(one: Definition, rules: Rules) -> Times | None:
    """Return the times of a definition; None if nobody knows whether it fired at them."""
    return None if one.standing == "unknown" else times_of(one, rules)


def stretches(
    account: Account,
    since: int,
    until: int,
    dated: Sequence[tuple[int, Times | None]],
    pauses: Pauses,
) -> Iterator[Stretch]:
    """Yield the stretches in (since, until], in order."""
    definitions = account.definitions
    fired_since = max((one.since for one in definitions if one.standing != "paused"), default=0)
    for place, (one, (_, times)) in enumerate(zip(definitions, dated, strict=True)):
        following = definitions[place + 1] if place + 1 < len(definitions) else None
        end = min(following.since, until) if following else until
        if one.standing == "paused":  # the end of the pause makes its range
            parts = iter([(one.since, end, one.since < fired_since)])
        else:
            parts = _parts(one, following, account, end)
        holes = pauses.spans(one.user_id, one.flow)
        for after, until_then, owed in parts:
            if max(after, since) < min(until_then, until):
                yield Stretch(max(after, since), min(until_then, until), times, owed, holes)


def _silences(account: Account, until: int) -> Iterator[tuple[int, int]]:
    """Yield the spans (after, until] in which nothing of the schedule fires."""
    for one, following in zip_longest(account.definitions, account.definitions[1:]):
        end = following.since if following else until
        if one.standing in ("paused", "deleted"):
            yield one.since + AFTERMATH_MS, end
        elif one.standing == "active" and one.paused_until is not None:
            yield one.since + AFTERMATH_MS, min(one.paused_until - 1, end)


def _parts(
    one: Definition, following: Definition | None, account: Account, end: int
) -> Iterator[tuple[int, int, bool]]:
    """Yield the parts of a definition's time: their bounds, and whether their times are owed.

    The definition is not that of a pause without an end.
    """
    if one.standing == "active":
        after = one.since
        if one.paused_until is not None:
            resumed = min(max(one.paused_until - 1, after), end)
            yield after, resumed, following is not None and not _waits(account, one)
            after = resumed
        due = min(account.row.next_fire_at - 1, end) if account.row else end
        yield after, max(due, after), True
        yield max(due, after), end, False
    else:
        again = following is not None and following.standing in ("active", "paused")
        yield one.since, end, one.standing == "done" and again and account.paused_since is None


def _waits(account: Account, one: Definition) -> bool:
    """Return True if the definition is under a pause with an end that has no range yet."""
    return account.paused_since is not None and one.since >= account.paused_since


def _agrees(account: Account) -> bool:
    """Return True unless the row has other fire times than the newest definition."""
    row = account.row
    if row is None or row.redefined_at == 0:
        return True
    if not account.definitions:
        return False
    newest = account.definitions[-1]
    same = (row.cron, row.timezone) == (newest.cron, newest.timezone)
    return same and newest.standing in ("active", "unknown")
