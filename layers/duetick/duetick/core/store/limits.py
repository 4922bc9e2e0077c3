"""The limits of one database. `domain.limits` has their rules."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from duetick.core.standing import FreshOrders
from duetick.domain.errors import DuetickError, InvalidSchedule, StoreUnavailable
from duetick.domain.limits import (
    KIND,
    MOST_STANDING,
    Limit,
    Limits,
    Per,
    check_limit,
    check_limited,
    digest_of,
)
from duetick.domain.occurrence import Leased
from duetick.domain.schedule import Pause
from duetick.domain.standing import StandingOrder, escape
from duetick.ports import Shelf

TRIES: Final = 64
"""How often a write is tried again after that of another: the slots of a tick may all meet."""

NAMES: Final = 8
LONGEST_NAME: Final = 200

logger = logging.getLogger("duetick.limits")


class ScopeLimits:
    """The limits of users, of flows and of actions."""

    def __init__(self, shelf: Shelf, standing: FreshOrders) -> None:
        self._shelf = shelf
        self._standing = standing

    # For ticks and dispatch.

    def current(self, now: int) -> Limits:
        """Return the limits that stand, at most five seconds old."""
        return Limits.of_orders(self._standing.at(now))

    def handing_on(self, now: int, mine: Mapping[str, tuple[str, ...]], *, fresh: bool) -> Limits:
        """Return the limits for a tick that has the occurrences `mine` in its hands.

        If any limit stood before, a `fresh` read is never older than the call.
        """
        found = Limits.of_orders(self._standing.at(now), mine)
        if not (found and fresh):
            return found
        return Limits.of_orders(self._standing.read(now), mine)

    def take(self, held: Leased, action: str, until: int, now: int) -> Limit | None:
        """Take a lease of each limit that covers an attempt. Return the first that has no place, or
        None: then the attempt has its leases, up to `until`.

        If a limit has no place, or others write all the time, nothing is taken.
        """
        refusing, wrote = list[Limit](), False
        for _ in range(TRIES):
            taken = self._try_take(held, action, until, now)
            refusing = [before for before, after in taken if after is None]
            if refusing:
                break
            kept = [self._keep(after) for _, after in taken if after]
            if all(kept):
                return None
            wrote = wrote or any(kept)
            refusing = [before for before, _ in taken]
        if wrote:  # a repeat of this begin may have taken others, and run
            self.give_back(held, now, unused=True)
        return max(refusing, key=lambda one: one.free_at(now))

    def _try_take(
        self, held: Leased, action: str, until: int, now: int
    ) -> Sequence[tuple[Limit, Limit | None]]:
        """Return the limits under which an attempt has no lease, each before and after a take."""
        name = digest_of(held.identity)
        covering = self._read(now).of(held.user_id, held.flow, action)
        wanted = (one for one in covering if not one.has(name, held.fence))
        return [(one, one.take(name, held.fence, until, now)) for one in wanted]

    def extend(self, held: Leased, until: int, now: int) -> None:
        """Extend the leases of an attempt up to an instant."""
        name = digest_of(held.identity)
        self._alter(held, now, lambda one: one.extend(name, held.fence, until))

    def give_back(self, held: Leased, now: int, *, unused: bool = False) -> None:
        """Give the leases of an attempt back. An `unused` one counts as no begin.

        If that fails, the leases end by themselves.
        """
        name = digest_of(held.identity)
        try:
            self._alter(held, now, lambda one: one.give_back(name, held.fence, unused=unused))
        except DuetickError as problem:
            details = {"action": "limit_kept", "schedule": f"{held.user_id}/{held.key}"}
            logger.warning("a lease of a limit is not given back: %s", problem, extra=details)

    def full(self, user_id: str, flow: str, action: str, now: int) -> Limit | None:
        """Return a limit of these schedules that has no place now, or None."""
        if not self.current(now).concerns(user_id, flow):
            return None
        covering = self._read(now).of(user_id, flow, action)
        full = [one for one in covering if one.room(now) < 1]
        return max(full, key=lambda one: one.free_at(now), default=None)

    def _alter(self, held: Leased, now: int, way: Callable[[Limit], Limit]) -> None:
        """Alter the limits of which an attempt has a lease.

        If no limit stood at the begin, none is read.
        """
        if not Limits.of_orders(self._standing.last(now)).concerns(held.user_id, held.flow or None):
            return
        name = digest_of(held.identity)
        for _ in range(TRIES):
            found = [one for one in self._read(now).every if one.has(name, held.fence)]
            altered = [after for one in found if (after := way(one)) != one]
            kept = [self._keep(one) for one in altered]
            if all(kept):
                return
        raise busy()

    def _read(self, now: int) -> Limits:
        return Limits.of_orders(self._standing.read(now))

    def _keep(self, after: Limit) -> bool:
        order = after.order.change(after.dump()) if after.order else None
        kept = order is not None and self._shelf.keep_order(order)
        if kept and order:
            self._standing.note(order)
        return kept

    # For operators.

    def set(
        self,
        scope: str,
        *,
        parallel: int | None = None,
        rate: int | None = None,
        per: Per = "minute",
        note: str = "",
        by: str = "",
        now: int,
    ) -> Limit:
        """Set the limit of a scope, in place of the one that it has: its leases stay.

        What runs already under no limit has no lease, and is not counted. The same limit again
        changes nothing. Raises InvalidSchedule naming what is wrong.
        """
        check_limit(scope, parallel, rate, per)
        Pause(now, note)  # its note has the same bounds
        wanted = Limit(scope, parallel, rate, per, note, by[:LONGEST_NAME], now)
        for _ in range(TRIES):
            standing = self._read(now).every
            found = [one for one in standing if one.scope == scope]
            if not found:
                if len(standing) >= MOST_STANDING:
                    many = f"{MOST_STANDING} limits stand; lift one first."
                    raise InvalidSchedule("scope", many, "quota_exceeded")
                return self._make(wanted)
            after = _change(found[0], wanted)
            if after == found[0]:
                return after
            if self._keep(after):
                return after._replace(order=after.order and after.order.change(after.dump()))
        raise busy()

    def lift(self, scope: str, *, now: int) -> Sequence[Limit]:
        """End the limits of a scope, and return them; none if it has none."""
        check_limited(scope)
        for _ in range(TRIES):
            found = [one for one in self._read(now).every if one.scope == scope]
            kept = [self._shelf.keep_order(one.order.end(now)) for one in found if one.order]
            if all(kept):
                self._standing.forget()
                return found
        raise busy()

    def standing(self) -> Limits:
        """Return the limits that stand."""
        return Limits.of_orders(self._shelf.standing())

    def _make(self, wanted: Limit) -> Limit:
        for since in range(wanted.changed_at, wanted.changed_at + NAMES):
            order = StandingOrder(KIND, f"{escape(wanted.scope)}#{since:x}", since, wanted.dump())
            if self._shelf.keep_order(order):
                self._standing.forget()
                return wanted._replace(order=order)
        raise busy()


def _change(before: Limit, wanted: Limit) -> Limit:
    """Return a limit with other bounds. Its leases stay, and so does the count of its window."""
    bounds = ("parallel", "rate", "per", "note")
    if all(getattr(before, name) == getattr(wanted, name) for name in bounds):
        return before
    kept = before if before.per == wanted.per else before._replace(window=0, counted=0)
    said = {name: getattr(wanted, name) for name in (*bounds, "by", "changed_at")}
    return kept._replace(**said)


def busy() -> StoreUnavailable:
    """Return the error after the last try."""
    return StoreUnavailable("The limit is being written by others. Try again.")
