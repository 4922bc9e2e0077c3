"""One chunk of a claim: the plan of each due row, and its conditional write."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from duetick.domain.claims import Templates, pick_shares
from duetick.domain.occurrence import Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Fair
from duetick.stores.dynamodb.books import Books, pause, tell_too_large
from duetick.stores.dynamodb.errors import Conflict, ItemTooLarge
from duetick.stores.dynamodb.items import BookItem
from duetick.stores.dynamodb.occurrences import slot_of

TRIES: Final = 5


@dataclass(slots=True)
class RowPlan:
    """The item of one row, altered but not yet written. `seen` is the time for which the row was
    due.
    """

    item: BookItem
    seen: int
    made: Sequence[Occurrence]


class ItemsClaim:
    """The claim of one chunk. Rows that are alike share a decision (`Templates`)."""

    def __init__(self, books: Books, templates: Templates) -> None:
        self._books = books
        self._templates = templates
        self.now = templates.now
        self._fair = Fair(pauses=templates.pauses, limits=templates.limits)
        self.contended = False
        self.written = 0

    def within(self, share: int, due: Sequence[BookItem]) -> list[BookItem]:
        """Return the items of each user's share, and the items that only advance."""
        free = [one for one in due if self._only_advances(one)]
        others = [one for one in due if one not in free]
        picked = pick_shares([one.book.user_id for one in others], share)
        return [*free, *(others[n] for n in picked)]

    def _only_advances(self, found: BookItem) -> bool:
        row = found.book.row
        if row is None:
            return False
        return self._fair.leases_nothing(row.user_id, row.flow, row.next_fire_at)

    @property
    def is_plain(self) -> bool:
        """True if each row that is claimed may give a lease."""
        return self._fair.is_plain

    def plan(self, found: BookItem) -> RowPlan | None:
        """Advance the row in its item; None if it is not due, or if there is no room.

        The index may be late, so the item decides.
        """
        book, room = found.book, max(0, found.most - len(found.open))
        seen = book.row.next_fire_at if book.row else 0
        made = book.claim(self._templates, room)
        if not found.is_altered:
            return None
        found.apply()
        return RowPlan(found, seen, made)

    def write(self, plan: RowPlan) -> Sequence[Occurrence]:
        """Write the plan; return its new occurrences, none if another tick wrote the row first."""
        current: RowPlan | None = plan
        for attempt in range(TRIES):
            if current is None:
                return []
            if current.seen != plan.seen:
                break
            try:
                self._books.save(current.item, self._templates.now)
            except Conflict:
                pause(attempt)
            except ItemTooLarge as error:  # the row stays due; no other row waits for it
                tell_too_large(current.item, error)
                return []
            else:
                self.written += 1
                return current.made
            found = self._books.load(*plan.item.name)
            if _has_written(found, current.made):
                return current.made
            current = self.plan(found)
        self.contended = True
        return []


def _has_written(found: BookItem, made: Sequence[Occurrence]) -> bool:
    """Return True if our write succeeded after all: only its answer was lost."""
    entries = [found.open.get(slot_of(one)) for one in made]
    ids = [entry.occurrence.id if entry else None for entry in entries]
    return bool(made) and ids == [one.id for one in made]


def is_leased(one: Occurrence) -> bool:
    """Return True if the claim leased the occurrence, so that the tick delivers it."""
    return one.state is State.QUEUED


def is_poisoned(one: Occurrence) -> bool:
    """Return True if the occurrence is poisoned: its row cannot be read."""
    return one.reason is Reason.POISONED
