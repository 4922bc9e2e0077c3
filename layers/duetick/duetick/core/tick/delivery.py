"""The deliveries of a tick. Each answer is counted; an occurrence that never began is released."""

import logging
from typing import Final

from duetick.core.log_lines import about
from duetick.core.tick.places import Places
from duetick.core.tick.report import Tally
from duetick.core.tick.undelivered import Undelivered
from duetick.domain.schedule import Occurrence
from duetick.ports import Clock, Delivered, Transport

DOWN: Final = frozenset({0, 401, 403, 429})
"""Statuses below 500 that point to the endpoint rather than to the occurrence."""

logger = logging.getLogger("duetick.tick")


class Deliveries:
    """The transport of one tick, with counts and releases. All of its threads share it."""

    def __init__(
        self,
        transport: Transport,
        tally: Tally,
        clock: Clock,
        undelivered: Undelivered,
        *,
        places: Places,
    ) -> None:
        self._transport = transport
        self._tally = tally
        self._clock = clock
        self._undelivered = undelivered
        self._places = places

    def deliver(self, occurrence: Occurrence, timeout: float) -> bool:
        """Deliver an occurrence, and count the answer. Return False if the endpoint seems to be
        down.
        """
        lateness_ms = self._clock() - occurrence.due_at
        rejected = self._undelivered.reject(occurrence)
        delivery = rejected or self._call_transport(occurrence, timeout)
        reached = self._tally.answered(occurrence, delivery, lateness_ms)
        if not reached:
            down = delivery.status in DOWN or delivery.status >= 500
            reached = not (self._undelivered.give_back(occurrence) and down)
        self._places.answer(occurrence, delivery)
        self._undelivered.observe(occurrence, delivery)
        return reached

    def _call_transport(self, occurrence: Occurrence, timeout: float) -> Delivered:
        """Call the transport. It may raise anything, even SystemExit: no thread is lost to it."""
        try:
            return self._transport.deliver(occurrence, timeout=timeout)
        except BaseException as error:
            details = {"action": "transport_failed", **about(occurrence)}
            logger.exception("a transport raised", extra=details)
            return Delivered(0, f"{type(error).__name__}: {error}")
