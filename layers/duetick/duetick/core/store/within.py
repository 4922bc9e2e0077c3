"""The begin of an occurrence that limits cover: it takes their leases first, or is held back."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from duetick.core.store.limits import ScopeLimits
from duetick.domain.attempts import Begun, Refused
from duetick.domain.book import Book
from duetick.domain.failure_hooks import action_run
from duetick.domain.group_pauses import Pauses
from duetick.domain.occurrence import Leased, Occurrence
from duetick.domain.states import State
from duetick.ports import Shelf

FindAction: TypeAlias = Callable[[], str | None]
"""A function that finds the action of an occurrence whose schedule has no record."""

TRIES: Final = 4

BeginAnswer: TypeAlias = tuple[Begun | Refused, Sequence[Occurrence]]
"""The answer to a begin, and the occurrences that it made dead."""


class ForeseenBegin(NamedTuple):
    """An attempt that would begin now, with the action that it runs; None without a record."""

    attempt: Occurrence
    action: str | None


class BeginWithin:
    """A begin within the limits of one database."""

    def __init__(self, shelf: Shelf, limits: ScopeLimits) -> None:
        self._shelf = shelf
        self._limits = limits

    def __call__(
        self, held: Leased, now: int, pauses: Pauses, find_action: FindAction | None = None
    ) -> BeginAnswer:
        """Begin an attempt once each limit that covers it has given a lease.

        The lease ends with that of the attempt. If a limit has no place, the occurrence waits, and
        nothing is counted.
        """
        for _ in range(TRIES):
            found = self.foresee(held, now, pauses)
            if found is None:
                break
            action = (find_action() if find_action else None) if found.action is None else None
            until = found.attempt.lease_until or now
            full = self._limits.take(held, found.action or action or "", until, now)
            if full:
                return self.hold_back(held, now, full.scope, full.free_at(now)), ()
            answer = self.begin(held, now, pauses, found)
            if answer is None:
                self._limits.give_back(held, now, unused=True)
            elif isinstance(answer[0], Refused):
                self._return(held, answer[0], now)
            elif (begun_until := answer[0].occurrence.lease_until or now) > until:
                self._limits.extend(held, begun_until, now)
            if answer:
                return answer
        answer = self.begin(held, now, pauses, None)
        return answer or (self.hold_back(held, now, "", now), ())

    def _return(self, held: Leased, refused: Refused, now: int) -> None:
        """Give back the leases that a begin took before it was refused.

        If a repeat of the begin runs, the leases stay: both share them, and the attempt has begun.
        """
        if refused.state is not State.PROCESSING:
            never_ran = refused.verdict == "cancelled" or refused.reason is not None
            self._limits.give_back(held, now, unused=never_ran)

    def foresee(self, held: Leased, now: int, pauses: Pauses) -> ForeseenBegin | None:
        """Return the attempt that a begin would start; None if something else prevents it."""

        def look(book: Book) -> ForeseenBegin | None:
            attempt = book.may_begin(held, now, pauses)
            return ForeseenBegin(attempt, _action_of(book, held)) if attempt else None

        return self._shelf.change(held.user_id, held.key, now, look, about=held)

    def begin(
        self, held: Leased, now: int, pauses: Pauses, found: ForeseenBegin | None
    ) -> BeginAnswer | None:
        """Begin the attempt that was foreseen; return None if it runs another action by now.

        If none was foreseen, return the refusal; None if nothing prevents the begin any more.
        """

        def alter(book: Book) -> BeginAnswer | None:
            expected = book.may_begin(held, now, pauses) is None
            if found:
                expected = found.action == _action_of(book, held)
            return (book.begin(held, now, pauses), book.lost) if expected else None

        return self._shelf.change(held.user_id, held.key, now, alter, about=held)

    def hold_back(self, held: Leased, now: int, scope: str, free_at: int) -> Refused:
        """Put off an occurrence that a limit keeps from its begin. Return the begin's refusal."""
        refused = self._shelf.change(
            held.user_id, held.key, now, lambda book: book.hold_back(held, now), about=held
        )
        return refused or Refused("in_progress", State.QUEUED, due_at=free_at, limit=scope)


def _action_of(book: Book, held: Leased) -> str | None:
    return action_run(book.record, held.origin) if book.record else None
