"""A shelf of a managed store: each change makes the bell pending that it moves.

The change's own write does that, so no crash parts the two. The bell is put after the commit, and
that may fail: a tick and the hourly count find the pending bell. The shelf also tells its followers
of the occurrences that now wait for a tick.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, TypeVar, cast

from duetick.core.ids import new_id
from duetick.domain.attempts import Settled
from duetick.domain.bells import PendingToken, digest_of_bell
from duetick.domain.book import Book
from duetick.domain.errors import DuetickError
from duetick.domain.failures import Event
from duetick.domain.occurrence import Leased, Occurrence, ScheduleName
from duetick.domain.standing import StandingOrder
from duetick.domain.states import WAITING, State
from duetick.ports import NO_TERMS, Alter, Clock, Dialect, Effects, Shelf, Terms

T = TypeVar("T")

AT_ONCE: Final = 100
"""The records that are read at a time."""


def ignore(_of: object) -> None:
    """Do nothing: nobody follows the changes."""


class Followers:
    """The functions that follow changes, after their commit.

    `bell_moved` sees the name of each schedule whose bell the change made pending. `waits` sees the
    instant at which an occurrence is due that waits for a tick. Neither may raise.

    `erases` sees the names of the schedules of a user before they are erased: their bells name the
    user. It raises BellsUnavailable if one of them stays.
    """

    def __init__(self) -> None:
        self.bell_moved: Callable[[ScheduleName], object] = ignore
        self.waits: Callable[[int], object] = ignore
        self.erases: Callable[[Sequence[ScheduleName]], object] = ignore


def watch(shelf: Shelf, followers: Followers, clock: Clock) -> Shelf:
    """Return the shelf with its changes watched."""
    return cast("Shelf", WatchedShelf(shelf, followers, clock))


class Watching:
    """The bells that a transaction moves, and the due times of the occurrences that then wait."""

    def __init__(self) -> None:
        self._bells: set[ScheduleName] = set()
        self._due: list[int] = []

    def alter(self, alter: Alter[T], now: int) -> Alter[T]:
        """Return the change of a book that also makes its bell pending.

        If a store repeats the change, the followers hear of both tries: that costs a call, and
        changes nothing.
        """

        @wraps(alter)
        def alter_and_watch(book: Book) -> T:
            before = digest_of_bell(book.row)
            answer = alter(book)
            if before != digest_of_bell(book.row):
                book.bell = PendingToken(new_id(), now)
                self._bells.add((book.user_id, book.key))
            self._due += [*_due(book.made), *_due(book.moved.values())]
            self._due += _find_given_back(book.moved.values())
            return answer

        return alter_and_watch

    def tell(self, followers: Followers) -> None:
        """Tell the followers what the transaction moved, after its commit."""
        for name in self._bells:
            followers.bell_moved(name)
        tell_waits(followers, self._due)


class WatchedShelf:
    """A shelf whose changes are watched. Everything else is the shelf's own."""

    def __init__(self, shelf: Shelf, followers: Followers, clock: Clock) -> None:
        self._shelf = shelf
        self._followers = followers
        self._clock = clock

    def __getattr__(self, name: str) -> object:
        return getattr(self._shelf, name)

    def change(
        self,
        user_id: str,
        key: str,
        now: int,
        alter: Alter[T],
        *,
        about: Leased | None = None,
        alone: bool = False,
        terms: Terms = NO_TERMS,
    ) -> T:
        """See `ports.Shelf`."""
        seen = Watching()
        answer = self._shelf.change(
            user_id, key, now, seen.alter(alter, now), about=about, alone=alone, terms=terms
        )
        seen.tell(self._followers)
        return answer

    def erase(self, user_id: str) -> int:
        """See `ports.Shelf`. The bells are pending, so that they come back if the data stays."""
        names = [(user_id, key) for key in self._keys_of(user_id)]
        self._shelf.make_bells_pending(names, self._clock())
        self._followers.erases(names)
        return self._shelf.erase(user_id)

    def _keys_of(self, user_id: str) -> Iterator[str]:
        after: str | None = ""
        while after is not None:
            found, after = self._shelf.records(user_id, after, AT_ONCE)
            yield from (one.key for one in found)

    def keep_order(self, order: StandingOrder) -> bool:
        """See `ports.Shelf`. A tick brings what a backfill, a pause or a limit lets begin now."""
        kept = self._shelf.keep_order(order)
        if kept:
            self._followers.waits(order.since)
        return kept

    @contextmanager
    def effects(self, held: Leased, clock: Clock, alter: Alter[object]) -> Iterator[Effects]:
        """See `ports.Shelf`."""
        seen = Watching()
        with self._shelf.effects(held, clock, seen.alter(alter, clock())) as opened:
            yield WatchedEffects(opened, seen)
        seen.tell(self._followers)

    def settle(
        self, settled: Sequence[Settled], now: int
    ) -> Sequence[Occurrence | DuetickError | None]:
        """See `ports.Shelf`."""
        answers = self._shelf.settle(settled, now)
        ended = [one for one in answers if isinstance(one, Occurrence)]
        tell_waits(self._followers, _due(ended))
        return answers

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        """See `ports.Shelf`."""
        written = self._shelf.write_lease(before, after, event)
        found = [written] if written else []
        tell_waits(self._followers, [*_due(found), *_find_given_back(found)])
        return written


class WatchedEffects:
    """`ports.Effects` whose changes of other books are watched."""

    def __init__(self, effects: Effects, seen: Watching) -> None:
        self._effects = effects
        self._seen = seen

    @property
    def dialect(self) -> Dialect | None:
        """See `ports.Transaction`."""
        return self._effects.dialect

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        """See `ports.Transaction`."""
        return self._effects.run(sql, **params)

    def write(self, item: Mapping[str, Any], /) -> None:
        """See `ports.Transaction`."""
        self._effects.write(item)

    def change(
        self, user_id: str, key: str, now: int, alter: Alter[T], terms: Terms | None = None
    ) -> T:
        """See `ports.Effects`."""
        return self._effects.change(user_id, key, now, self._seen.alter(alter, now), terms)


def tell_waits(followers: Followers, due: Sequence[int]) -> None:
    """Tell the earliest instant at which an occurrence is due that waits."""
    if due:
        followers.waits(min(due))


def _due(occurrences: Iterable[Occurrence]) -> Sequence[int]:
    return [one.due_at for one in occurrences if one.state in WAITING]


def _find_given_back(changed: Iterable[Occurrence]) -> Sequence[int]:
    """Return the ends of the leases that were given back: the next tick takes their occurrences."""
    queued = (one for one in changed if one.state is State.QUEUED)
    return [one.lease_until for one in queued if one.lease_until is not None]
