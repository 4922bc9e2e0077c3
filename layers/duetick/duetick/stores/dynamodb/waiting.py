"""Occurrences that wait for a tick: ended leases, and due scheduled and retrying ones."""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from duetick.domain.claims import pick_shares
from duetick.domain.group_pauses import HELD_MS
from duetick.domain.occurrence import LATEST, Identity, Occurrence, ScheduleName
from duetick.domain.overlap import may_be_leased, pick_one_of_each
from duetick.domain.policies import LEASE_MARGIN
from duetick.domain.states import WAITING
from duetick.domain.transitions import wake_of
from duetick.ports import Fair
from duetick.stores.dynamodb.books import Books, tell_too_large
from duetick.stores.dynamodb.errors import Conflict, ItemTooLarge
from duetick.stores.dynamodb.items import BookItem, job_statuses
from duetick.stores.dynamodb.journal import Journal, Note, NoteLine, look_at

MOST_LINES: Final = 5_000
SHORTEST_LEASE_MS: Final = LEASE_MARGIN * 1_000
"""No lease is shorter. A note that comes before a lease is due within it."""
AT_HAND: Final = 300
"""The schedules that each claim of a tick reads while limits keep them back; the others are read a
minute later. Also the fewest due jobs that a claim reads, if there are so many.
"""


class Waiting:
    """The way from due notes of the journal to the occurrences that a tick leases."""

    def __init__(self, books: Books, journal: Journal) -> None:
        self._books = books
        self._journal = journal

    def lease(self, now: int, limit: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
        """See `ports.Shelf`."""
        ahead -= fair.late
        until = now + ahead
        notes = list(self._notes(until))
        lines = (line for note in notes for line in _due(note, until))
        names = {(line.user_id, line.key) for line in lines}
        names |= {*self._due_jobs(until, limit, fair)}
        items = self._books.load_many(names)
        self._cover_jobs(items.values(), now, ahead, fair)
        taken = self._lease(items, now, limit, ahead, fair)
        self._cover(notes, items, now, fair)
        return taken

    def next_due(self) -> int | None:
        """See `ports.Shelf`. A note may be for a lease that ended since: then it is too early."""
        wakes = [line.wake for note in islice(self._journal.all(), 1) for line in note.lines]
        statuses = [one for n in self._books.layout.jobs() for one in job_statuses(n)]
        jobs = (islice(self._books.due_in(one, LATEST, 1), 1) for one in statuses)
        return min([*wakes, *(at for found in jobs for at, _ in found)], default=None)

    def _due_jobs(self, until: int, limit: int, fair: Fair) -> Iterator[ScheduleName]:
        """Yield the names of jobs that stand in the index and are due, the oldest first.

        They are `AT_HAND` at least, because the index knows no priority and no share.
        """
        limit = max(limit, AT_HAND)
        layout = self._books.layout.jobs()
        partitions = [status for shards in layout for status in job_statuses(shards)]
        pages = [self._books.due_in(status, until, limit) for status in partitions]
        found = (name for _, name in heapq.merge(*pages))
        return islice((name for name in found if name[0] not in fair.leave_out), limit)

    def _cover_jobs(self, items: Iterable[BookItem], now: int, ahead: int, fair: Fair) -> None:
        """Write the notes of the jobs that leave the index next: a note precedes its lease.

        A job that is held is at hand at once.
        """
        waiting = ((item, item.waiting_job) for item in items)
        due = [(item, one) for item, one in waiting if one and one.due_at <= now + ahead]
        self._journal.write(
            NoteLine(*item.name, now if _is_held(one, item, now, fair) else now + SHORTEST_LEASE_MS)
            for item, one in due
        )

    def _hold_jobs(
        self, items: dict[ScheduleName, BookItem], now: int, ahead: int, fair: Fair
    ) -> None:
        """Take the due jobs that a pause or a limit holds out of the index: others stand behind
        them. From then on the journal has them.
        """
        for name, item in items.items():
            one = item.waiting_job
            if one and one.due_at <= now + ahead and _is_held(one, item, now, fair):
                item.held = True
                self._save(items, name, now)

    def _notes(self, until: int) -> Iterator[Note]:
        """Yield the earliest notes, up to `MOST_LINES` due lines."""
        lines = 0
        for note in self._journal.due(until):
            due = len(_due(note, until))
            lines += due
            if due:
                yield note
            if lines >= MOST_LINES:
                return

    def _lease(
        self,
        items: dict[ScheduleName, BookItem],
        now: int,
        limit: int,
        ahead: int,
        fair: Fair,
    ) -> Sequence[Occurrence]:
        """Lease the first occurrences in order, with one write for each schedule."""
        found = {
            name: _ready(item, now, ahead, fair)
            for name, item in items.items()
            if name[0] not in fair.leave_out
        }
        leasable = [one for name, ready in found.items() for one in _leasable(items[name], ready)]
        chosen = sorted(leasable, key=_order)
        if fair.share is not None and len(chosen) > limit:
            shares = pick_shares([one.user_id for one in chosen], fair.share)
            chosen = [chosen[place] for place in shares]
        chosen = chosen[:limit]
        chosen = [
            *fair.limits.pick(chosen, lambda one: items[one.user_id, one.key].action_of(one), now)
        ]
        taken: dict[Identity, Occurrence] = {}
        for name, ready in found.items():
            mine = [one for one in chosen if (one.user_id, one.key) == name]
            behind = [one for one in ready if one not in leasable]
            if mine or behind:
                taken |= self._write(items, name, mine, behind, now)
        if not fair.is_plain:
            self._hold_jobs(items, now, ahead, fair)
        return [taken[one.identity] for one in chosen if one.identity in taken]

    def _write(
        self,
        items: dict[ScheduleName, BookItem],
        name: ScheduleName,
        mine: Sequence[Occurrence],
        behind: Sequence[Occurrence],
        now: int,
    ) -> Mapping[Identity, Occurrence]:
        """Lease occurrences of one schedule. If the write fails, the next pass tries again."""
        item = items[name]
        item.book.lease(mine, behind, now)
        if not item.is_altered:
            return {}
        item.apply()
        return item.book.moved if self._save(items, name, now) else {}

    def _save(self, items: dict[ScheduleName, BookItem], name: ScheduleName, now: int) -> bool:
        """Write a book. If another one wrote it first, read it again and return False."""
        try:
            self._books.save(items[name], now)
        except (Conflict, ItemTooLarge) as error:
            tell_too_large(items[name], error)
            items[name] = self._books.load(*name)
            return False
        return True

    def _cover(
        self,
        notes: Sequence[Note],
        items: Mapping[ScheduleName, BookItem],
        now: int,
        fair: Fair,
    ) -> None:
        """Write new notes for books that must be read later, then drop the notes that are done.

        A note stays while the claim that it announced may yet be written, or while a book of it has
        a due occurrence. A retry that a pause holds is not due. An occurrence that a limit keeps
        back is not due either, except the first ones: a place may be free before this tick ends.
        """
        at_hand = _first_kept_back(items.values(), now, fair)
        wakes = {
            name: _wake(item, now, fair, at_hand=name in at_hand) for name, item in items.items()
        }
        done = [
            note
            for note in notes
            if not any(_is_open(x, items, wakes, at_hand, now) for x in note.lines)
        ]
        names = {(line.user_id, line.key) for note in done for line in note.lines}
        later = ((name, wakes[name]) for name in names if name in items)
        self._journal.write(
            NoteLine(*name, look_at(wake, now)) for name, wake in later if wake is not None
        )
        for note in done:
            self._journal.drop(note)


def _order(one: Occurrence) -> tuple[int, int, int, int]:
    """Sort ended leases first, then by priority, due time and age."""
    if one.state in WAITING:
        return 1, -one.priority, one.due_at, one.created_at
    return 0, wake_of(one), 0, 0


def _due(note: Note, until: int) -> Sequence[NoteLine]:
    return [line for line in note.lines if line.wake <= until]


def _ready(item: BookItem, now: int, ahead: int, fair: Fair) -> Sequence[Occurrence]:
    """Return the occurrences whose lease has ended, or that wait and are due by now + ahead.

    Those that a pause holds or a limit keeps back are left out.
    """
    return [
        one
        for one in item.under_way
        if wake_of(one) <= now + (ahead if one.state in WAITING else -fair.late)
        and not _is_held(one, item, now, fair)
    ]


def _is_held(one: Occurrence, item: BookItem, now: int, fair: Fair) -> bool:
    """Return True if a pause holds an occurrence, or a limit keeps it back."""
    held = fair.pauses.holds_retry(one, now)
    return held or fair.limits.keeps_back(one, item.action_of(one), now)


def _wake(item: BookItem, now: int, fair: Fair, *, at_hand: bool) -> int | None:
    """Return the time at which a tick must read the item again."""
    if fair.is_plain:
        return item.wake()

    def waits(one: Occurrence) -> bool:
        kept_back = not at_hand and fair.limits.keeps_back(one, item.action_of(one), now)
        return kept_back or fair.pauses.holds_retry(one, now)

    wakes = (max(wake_of(one), now + HELD_MS) if waits(one) else wake_of(one) for one in item.noted)
    return min(wakes, default=None)


def _first_kept_back(items: Iterable[BookItem], now: int, fair: Fair) -> Collection[ScheduleName]:
    """Return the first schedules with a due occurrence that a limit keeps back."""
    if not fair.limits:
        return ()
    kept_back = [
        one
        for item in items
        for one in item.noted
        if wake_of(one) <= now and fair.limits.keeps_back(one, item.action_of(one), now)
    ]
    first = sorted(kept_back, key=_order)[:AT_HAND]
    return {(one.user_id, one.key) for one in first}


def _leasable(item: BookItem, ready: Sequence[Occurrence]) -> Sequence[Occurrence]:
    """Return the occurrences that a tick may lease now. The others wait behind one of these."""
    under_way = item.under_way
    leasable = [one for one in ready if may_be_leased(one, under_way)]
    return pick_one_of_each(sorted(leasable, key=_order))


def _is_open(
    line: NoteLine,
    items: Mapping[ScheduleName, BookItem],
    wakes: Mapping[ScheduleName, int | None],
    at_hand: Collection[ScheduleName],
    now: int,
) -> bool:
    """Return True if the line's note must stay. A schedule at hand gets a new note of its own."""
    if line.wake > now:
        return True
    item = items.get((line.user_id, line.key))
    if item is None:
        return False
    row = item.book.row
    announced = line.seen is not None and row is not None and row.next_fire_at == line.seen
    name = line.user_id, line.key
    wake = wakes[name]
    return announced or (wake is not None and wake <= now and name not in at_hand)
