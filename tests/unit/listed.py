"""Books without a store: their occurrences stand in a list, and the notes of a change are kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from duetick.domain.book import Book
from duetick.domain.failures import Event
from duetick.domain.occurrence import Identity, Occurrence
from duetick.domain.overlap import is_in_place
from duetick.domain.schedule import Record
from duetick.domain.states import State
from duetick.domain.transitions import has_ended


@dataclass
class ListedPages:
    """`duetick.domain.book.Pages` over a list."""

    kept: list[Occurrence] = field(default_factory=list)

    def find(self, nominal_at: int, origin: str) -> Occurrence | None:
        named = (o for o in self.kept if (o.nominal_at, o.origin) == (nominal_at, origin))
        return next(named, None)

    def at(self, nominal_at: int) -> Sequence[Occurrence]:
        return [one for one in self.kept if one.nominal_at == nominal_at]

    def in_place(self) -> Sequence[Occurrence]:
        return [one for one in self.kept if is_in_place(one)]

    def find_queued_before(self, nominal_at: int) -> Sequence[Occurrence]:
        queued = (one for one in self.kept if one.state is State.QUEUED and not one.attempts)
        return [one for one in queued if one.nominal_at < nominal_at]

    def times_within(self, first: int, last: int) -> Sequence[int]:
        return [one.nominal_at for one in self._own() if first <= one.nominal_at <= last]

    def newest_until(self, nominal_at: int) -> Occurrence | None:
        until = (one for one in self._own() if one.nominal_at <= nominal_at)
        return max(until, key=lambda one: one.nominal_at, default=None)

    def ranges_beyond(self, at: int) -> Sequence[Occurrence]:
        return [one for one in self._own() if (one.range_end or 0) > at]

    def find_unfinished(self) -> Sequence[Occurrence]:
        return [one for one in self.kept if not has_ended(one)]

    def complete(self, found: Record) -> Record:
        return found

    def _own(self) -> Iterator[Occurrence]:
        return (one for one in self.kept if one.origin == "schedule")


class UnaskedPages(ListedPages):
    """Nobody may ask whether another one has the place."""

    def in_place(self) -> Sequence[Occurrence]:
        raise AssertionError("it does not matter here whether another one runs")


def blank(*kept: Occurrence, pages: ListedPages | None = None) -> Book:
    """Return the book of ada/digest with those occurrences alone."""
    pages = pages or ListedPages()
    pages.kept += kept
    ids = (f"occ_{number}" for number in count())
    return Book("ada", "digest", pages, lambda: next(ids))


def reopen(book: Book) -> Book:
    """Return the book as a store would load it after the changes that it notes."""
    assert isinstance(book.pages, ListedPages)
    ledger: dict[Identity, Occurrence] = {one.identity: one for one in book.made}
    ledger |= {one.identity: one for one in book.pages.kept}
    ledger |= {one.identity: one for one in book.ranges}
    pages = type(book.pages)([*(ledger | book.moved).values()])
    return replace(book, pages=pages, made=[], ranges=[], moved={}, events=[], definitions=[])


def notes(book: Book) -> list[str]:
    """Return the traces that a change leaves."""
    return [event.note for _, event in book.events]


def moves(book: Book) -> list[tuple[State, State]]:
    """Return the transitions that leave a trace."""
    return [_states(event) for _, event in book.events]


def _states(event: Event) -> tuple[State, State]:
    return event.before, event.after
