"""The pauses of groups in one database. `domain.group_pauses` has their rules."""

from collections.abc import Sequence
from typing import Final

from duetick.core.standing import FreshOrders
from duetick.domain.errors import InvalidSchedule, StoreUnavailable
from duetick.domain.group_pauses import (
    MOST_STANDING,
    GroupPause,
    Pauses,
    check_scope,
    order_name,
)
from duetick.domain.policies import MINUTE_MS
from duetick.domain.schedule import Pause
from duetick.domain.standing import StandingOrder
from duetick.ports import Shelf

TRIES: Final = 8
LONGEST_NAME: Final = 200
CLOSED_AFTER_MS: Final = 60 * MINUTE_MS
"""The time for which a pause that is over stands at least: callers may ask for its times."""


class GroupPauses:
    """The pauses of a user, of a flow, or of everything."""

    def __init__(self, shelf: Shelf, standing: FreshOrders) -> None:
        self._shelf = shelf
        self._standing = standing

    # For ticks and dispatch.

    def current(self, now: int) -> Pauses:
        """Return the pauses that stand, at most five seconds old."""
        return Pauses.of_orders(self._standing.at(now))

    def announce(self, now: int, until: int) -> Pauses:
        """Return the pauses under which a tick may advance rows up to an instant.

        Each pause is written with that instant before anything is claimed. If the write fails, the
        pause covers for this tick the times of earlier announcements.
        """
        found = self.current(now)
        late = [one for one in found.every if one.announce(until)]
        if not late:
            return found
        for one in late:
            told = one.announce(until)
            if told and one.order:
                self._shelf.keep_order(one.order.change(told.dump()))
        return Pauses.of_orders(self._standing.read(now))

    def covering(self, user_id: str, flow: str, at: int, now: int) -> GroupPause | None:
        """Return the pause of these schedules that covers a nominal time or holds now, or None.

        A pause that has not stood for a while is looked up.
        """
        known = self.current(now)
        found = known.holding(user_id, flow, now) or known.holding(user_id, flow, at)
        if found or at >= now - CLOSED_AFTER_MS:
            return found
        return self.since(at).holding(user_id, flow, at)

    # For operators.

    def pause(
        self, scope: str, *, note: str = "", until: int | None = None, by: str = "", now: int
    ) -> GroupPause:
        """Pause a scope. If it is paused, this pause takes the place of that one.

        The same pause again changes nothing. Raises InvalidSchedule naming what is wrong.
        """
        wanted = GroupPause(check_scope(scope), now, until, note, by[:LONGEST_NAME])
        Pause(now, note, until)  # its note has the same bounds
        if until is not None and until <= now:
            raise InvalidSchedule(
                "until", "lies in the past; name a time to come, or none.", "past"
            )
        made = self._make(wanted)
        self._standing.forget()
        for one in self._standing_of(scope, now):
            if one.order and made.order and one.order.name != made.order.name:
                self._end(one, now, by)
        return made

    def resume(self, scope: str, *, by: str = "", now: int) -> Sequence[GroupPause]:
        """End the pauses of a scope, and return them as they end; none if it is not paused.

        A pause ends after the last time that a tick may have left out.
        """
        check_scope(scope)
        return [self._end(one, now, by) for one in self._standing_of(scope, now)]

    def since(self, instant: int) -> Pauses:
        """Return the pauses that stand, and the pauses that ended after an instant."""
        return Pauses.of_orders(self._shelf.orders("pause", instant))

    def close_over(self, now: int) -> int:
        """End the orders of pauses that are over and of no use. Return their number.

        While a row is due for a time before a pause's end, a claim may have to leave that time out.
        """
        closed = 0
        for one in self.current(now).every:
            useless = one.end <= now - CLOSED_AFTER_MS and not self._shelf.backlog(one.end, 1)
            if useless and one.order:
                closed += self._shelf.keep_order(one.order.end(one.end))
        self._standing.forget()
        return closed

    def _standing_of(self, scope: str, now: int) -> Sequence[GroupPause]:
        found = Pauses.of_orders(self._shelf.standing()).every
        return [one for one in found if one.scope == scope and one.may_end(now)]

    def _make(self, wanted: GroupPause) -> GroupPause:
        """Write a new pause; return the one that stands if it is the same."""
        every = Pauses.of_orders(self._shelf.standing()).every
        standing = [one for one in every if one.may_end(wanted.since)]
        for one in standing:
            if one.says_the_same(wanted):
                return one
        if len(standing) >= MOST_STANDING:
            many = f"{MOST_STANDING} pauses stand; resume one, or pause everything."
            raise InvalidSchedule("scope", many, "quota_exceeded")
        for since in range(wanted.since, wanted.since + TRIES):
            name = order_name(wanted.scope, since)
            order = StandingOrder("pause", name, since, wanted.dump())
            if self._shelf.keep_order(order):
                return wanted._replace(since=since, order=order)
        raise busy(wanted.scope)

    def _end(self, pause: GroupPause, now: int, by: str) -> GroupPause:
        """End a pause. If a tick has advanced rows under it, the pause ends after their times."""
        for _ in range(TRIES):
            ended = pause.resume(now, by[:LONGEST_NAME])
            if pause.order is None or self._shelf.keep_order(pause.order.change(ended.dump())):
                self._standing.forget()
                return ended
            current = Pauses.of_orders(self._shelf.standing()).every
            found = [one for one in current if one.order and one.order.name == pause.order.name]
            if not found or found[0].resumed_at is not None:
                return found[0] if found else pause
            pause = found[0]
        raise busy(pause.scope)


def busy(scope: str) -> StoreUnavailable:
    """Return the error after the last try."""
    return StoreUnavailable(f"The pause of {scope} is being written by others. Try again.")
