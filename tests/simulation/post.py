"""The queue of a simulated world, and the mapping that hands its messages to dispatch."""

from functools import partial
from typing import TYPE_CHECKING, Final

from duetick.domain.packs import OutgoingMessage
from duetick.transports.local_queue import KeptMessage, QueueState

from tests.simulation.slots import Process

if TYPE_CHECKING:
    from tests.simulation.world import Host, World

VISIBILITY: Final = 200_000
"""Milliseconds after which a message comes again whose dispatch has died."""

AT_ONCE: Final = 6
"""The most messages in hand."""


class Post:
    """The queue. It never dies, and neither does the mapping."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._state = QueueState(visibility_ms=VISIBILITY, most_receives=3)
        self._process = Process("mapping")
        self._in_hand = 0

    def put(self, message: OutgoingMessage, now: int, more: int = 0) -> None:
        """Take a message, which is given out some seconds after it is due."""
        delay = message.delay(now) + more
        self._state.put(message.body, message.group, delay, self._now)
        self._look_at(self._now + delay * 1_000)

    @property
    def _now(self) -> int:
        return self._world.slots.now

    def _look_at(self, at: int) -> None:
        """Hand over the messages that are visible at an instant."""
        slots = self._world.slots

        def look() -> None:
            slots.pause(max(0, at - slots.now))
            self._hand_over()

        slots.start(self._process, "mapping", look)

    def _hand_over(self) -> None:
        while self._in_hand < AT_ONCE and (message := self._state.receive(self._now)):
            self._in_hand += 1
            receipt = message.receipt
            self._look_at(self._now + VISIBILITY)
            call = partial(self._call, message, receipt)
            self._world.slots.start(self._process, "mapping", call)

    def _call(self, message: KeptMessage, receipt: str) -> None:
        """Call dispatch, and wait until it has ended, or died."""
        world = self._world
        back: list[int | None] = []

        def work(host: "Host") -> None:
            dispatcher = world.dispatcher_of(host)
            report = world.boundaries.cross(
                "take", lambda: dispatcher.run_message(message.body), of_store=False
            )
            back.append(report.comes_back_in)

        world.slots.join(world.start("dispatch", "dispatch", work))
        self._in_hand -= 1
        if back == [None]:
            self._state.delete(receipt)
        elif back:
            world.tell(f"{message.name} comes back")
            self._state.put_back(receipt, back[0] or 0, self._now)
            self._look_at(self._now + (back[0] or 0) * 1_000)
        self._hand_over()
