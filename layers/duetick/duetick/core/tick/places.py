"""The places of limits that the occurrences of one tick take, from their lease to their answer."""

from collections.abc import Iterable
from typing import Final

from duetick.core.store import Store
from duetick.core.tick.report import read_answer
from duetick.domain.limits import Limits, digest_of
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivered

ACCEPTED: Final = 202

BEGINS_WITHIN_MS: Final = 10_000
"""An action in the background begins within this time. It has a lease of its own from then on."""


class Places:
    """The limits as one tick reads them, with the occurrences that it has leased and dispatch has
    not answered.

    The limits are those of the one read of all orders. They are read anew when an answer has freed
    a place, because dispatch gives a lease back before it answers.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mine: dict[str, tuple[str, ...]] = {}
        self._queued: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.has_freed = False

    @property
    def waits(self) -> bool:
        """True if an answer will free a place."""
        return bool(self._mine)

    def limits(self, now: int) -> Limits:
        """Return the limits that stand, with the places that this tick is going to take."""
        fresh, self.has_freed = self.has_freed, False
        queued = {name: scopes for name, (_, scopes) in self._queued.copy().items()}
        return self._store.limits.handing_on(now, self._mine | queued, fresh=fresh)

    def take(self, limits: Limits, leased: Iterable[Occurrence]) -> None:
        """Take the places that were picked for occurrences which this tick has leased."""
        if limits:
            picked = {one.identity: limits.picked.get(one.identity) for one in leased}
            self._mine |= {digest_of(name): scopes for name, scopes in picked.items() if scopes}

    def forget(self, occurrence: Occurrence) -> None:
        """Free the places of an occurrence that is not handed on."""
        if self._mine:
            self._mine.pop(digest_of(occurrence.identity), ())

    def answer(self, occurrence: Occurrence, delivery: Delivered, now: int) -> None:
        """Free the places of an occurrence, unless its run is still to begin in the background."""
        if not self._mine:
            return
        name = digest_of(occurrence.identity)
        scopes = self._mine.pop(name, ())
        if delivery.status == ACCEPTED and read_answer(delivery, "outcome") == "queued":
            self._queued[name] = now + BEGINS_WITHIN_MS, scopes
        elif scopes:
            self.has_freed = True

    def free_begun(self, now: int) -> None:
        """Free the places of actions that have begun in the background by now."""
        for name, (until, _) in self._queued.copy().items():
            if until <= now:
                del self._queued[name]
                self.has_freed = True


class NoPlaces(Places):
    """The places of a tick that hands on nothing under a limit: no answer tells it a pack's end."""

    def limits(self, now: int) -> Limits:
        """See `Places`. No limit has a place."""
        return super().limits(now).without_places()

    def take(self, limits: Limits, leased: Iterable[Occurrence]) -> None:
        """See `Places`. After a begin, one is leased without a place: its next begin takes one."""
