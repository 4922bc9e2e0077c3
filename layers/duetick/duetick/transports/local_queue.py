"""A queue in this process, for the local stack and tests: it behaves as a standard queue of SQS.

It keeps a message back until its delay is over, and hides it while a receiver has it. If the
receiver does not delete the message, the queue gives it out again; after too many times, the
message is dead. The group with the fewest messages in hand is served first, as in a fair queue.
"""

import heapq
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, TypeAlias

from duetick.domain.packs import LONGEST_DELAY, OutgoingMessage
from duetick.ports import Clock, Sending

VISIBILITY_MS: Final = 900_000
MOST_RECEIVES: Final = 5
GLANCE: Final = 0.5
"""Seconds after which a worker that waits looks again."""

logger = logging.getLogger("duetick.queue")


@dataclass(slots=True)
class KeptMessage:
    """A message in the queue. `step` counts its changes: entries of earlier steps are void."""

    number: int
    body: str
    group: str
    sent_at: int
    visible_at: int = 0
    receives: int = 0
    step: int = 0
    in_hand: bool = False

    @property
    def name(self) -> str:
        """The id of the message."""
        return f"message-{self.number}"

    @property
    def receipt(self) -> str:
        """The receipt of the receiver that has it in hand."""
        return f"{self.name}#{self.receives}"


class QueueState:
    """The messages of a queue. Each call names the instant; threads do not share it without a lock.

    A message that is not deleted within `visibility_ms` is given out again, `most_receives` times
    in all. Then it is among the `dead`.
    """

    def __init__(
        self, *, visibility_ms: int = VISIBILITY_MS, most_receives: int = MOST_RECEIVES
    ) -> None:
        self._visibility_ms = visibility_ms
        self._most_receives = most_receives
        self._numbers = count(1)
        self._hidden: list[tuple[int, int, int, KeptMessage]] = []
        self._given: dict[str, KeptMessage] = {}
        self._ready: dict[str, deque[KeptMessage]] = {}
        self._order: list[tuple[int, int, int, str]] = []
        self._in_hand: Counter[str] = Counter()
        self._waiting = 0
        self.dead: list[KeptMessage] = []

    def __len__(self) -> int:
        """Count the messages that are neither deleted nor dead."""
        return self._waiting

    def put(self, body: str, group: str, delay: int, now: int) -> str:
        """Take a message, to be given out after a delay in seconds. Return its id."""
        message = KeptMessage(next(self._numbers), body, group, now)
        self._waiting += 1
        self._hide(message, now + min(delay, LONGEST_DELAY) * 1_000)
        return message.name

    def receive(self, now: int) -> KeptMessage | None:
        """Give a message out, and hide it from others; None if none is visible."""
        self._show(now)
        while self._order:
            in_hand, _, _, group = heapq.heappop(self._order)
            ready = self._ready.get(group)
            if ready and in_hand == self._in_hand[group]:
                return self._give(ready.popleft(), now)
        return None

    def delete(self, receipt: str) -> None:
        """Delete the message that was given out with that receipt, unless another one has it."""
        message = self._given.pop(receipt, None)
        if message:
            self._take_back(message)
            message.step += 1
            self._waiting -= 1

    def put_back(self, receipt: str, seconds: int, now: int) -> None:
        """Give a message out again after a delay in seconds, unless another receiver has it."""
        message = self._given.pop(receipt, None)
        if message:
            self._take_back(message)
            self._hide(message, now + seconds * 1_000)

    def redrive(self, now: int) -> int:
        """Give out again what is dead. Return how many."""
        found, self.dead = self.dead, []
        for message in found:
            message.receives = 0
            self._waiting += 1
            self._hide(message, now)
        return len(found)

    def next_at(self) -> int | None:
        """Return the time at which the next message is visible; 0 if one is; None if there is
        none.
        """
        if any(self._ready.values()):
            return 0
        while self._hidden and self._hidden[0][2] != self._hidden[0][3].step:
            heapq.heappop(self._hidden)
        return self._hidden[0][0] if self._hidden else None

    def _give(self, message: KeptMessage, now: int) -> KeptMessage:
        message.receives += 1
        message.in_hand = True
        self._given[message.receipt] = message
        self._in_hand[message.group] += 1
        self._hide(message, now + self._visibility_ms)
        self._line_up(message.group)
        return message

    def _take_back(self, message: KeptMessage) -> None:
        message.in_hand = False
        self._in_hand[message.group] -= 1
        self._line_up(message.group)

    def _hide(self, message: KeptMessage, until: int) -> None:
        message.step += 1
        heapq.heappush(self._hidden, (until, message.number, message.step, message))

    def _show(self, now: int) -> None:
        """Make the messages ready whose hiding is over, or dead if they were given out often
        enough.
        """
        while self._hidden and self._hidden[0][0] <= now:
            visible_at, _, step, message = heapq.heappop(self._hidden)
            if step != message.step:
                continue
            if message.in_hand:
                self._given.pop(message.receipt, None)
                self._take_back(message)
            if message.receives >= self._most_receives:
                self._waiting -= 1
                self.dead.append(message)
                continue
            message.step += 1
            message.visible_at = visible_at
            self._ready.setdefault(message.group, deque()).append(message)
            self._line_up(message.group)

    def _line_up(self, group: str) -> None:
        """Put a group into the order in which groups are served. An older entry of the group is
        void.

        The groups with the fewest messages in hand come first, then those with the longest wait.
        """
        ready = self._ready.get(group)
        if ready:
            first = ready[0]
            entry = (self._in_hand[group], first.visible_at, first.number, group)
            heapq.heappush(self._order, entry)
        else:
            self._ready.pop(group, None)


Handle: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Any]]
"""A function that answers an event of SQS as the dispatch function does."""


class LocalQueue:
    """`ports.PackTransport` and `ports.PackQueue` in this process. Workers call a handler as Lambda
    does.
    """

    def __init__(
        self, state: QueueState | None = None, clock: Clock = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._state = QueueState() if state is None else state
        self._clock = clock
        self._changed = threading.Condition()
        self._is_closed = False
        self._workers: list[threading.Thread] = []

    def send(self, messages: Sequence[OutgoingMessage], now: int) -> Sequence[Sending]:
        """See `PackTransport`."""
        with self._changed:
            for one in messages:
                self._state.put(one.body, one.group, one.delay(now), self._clock())
            self._changed.notify_all()
        return ["sent" for _ in messages]

    def put_back(self, receipt: str, seconds: int) -> None:
        """See `PackQueue`."""
        with self._changed:
            self._state.put_back(receipt, seconds, self._clock())
            self._changed.notify_all()

    def redrive(self) -> int:
        """Give out again what is dead. Return how many."""
        with self._changed:
            count = self._state.redrive(self._clock())
            self._changed.notify_all()
        return count

    @property
    def dead(self) -> Sequence[KeptMessage]:
        """The messages that were given out too often."""
        return self._state.dead

    def start(self, handle: Handle, workers: int) -> None:
        """Start a number of workers that call a handler, each with one message at a time."""
        for _ in range(workers):
            worker = threading.Thread(target=self._work, args=(handle,), daemon=True, name="pack")
            self._workers.append(worker)
            worker.start()

    def close(self) -> None:
        """Stop the workers, once each is done with its message."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join()

    def _work(self, handle: Handle) -> None:
        while (event := self._take()) is not None:
            if not self._has_failed(handle, event):
                with self._changed:
                    self._state.delete(event["Records"][0]["receiptHandle"])

    def _has_failed(self, handle: Handle, event: dict[str, Any]) -> bool:
        """Call the handler. Return True if the message stays, because the handler failed or
        raised.
        """
        try:
            return bool(handle(event).get("batchItemFailures"))
        except Exception:
            logger.exception("a pack failed", extra={"action": "pack_failed"})
            return True

    def _take(self) -> dict[str, Any] | None:
        """Wait for a message. None means that the queue is closed."""
        with self._changed:
            while not self._is_closed:
                message = self._state.receive(self._clock())
                if message:
                    return event_of([message])
                self._changed.wait(self._wait_seconds())
        return None

    def _wait_seconds(self) -> float:
        at = self._state.next_at()
        if at is None:
            return GLANCE
        return min(GLANCE, max(0.001, (at - self._clock()) / 1_000))


def event_of(messages: Sequence[KeptMessage]) -> dict[str, Any]:
    """Return the event with which Lambda hands messages of SQS to a function."""
    return {
        "Records": [
            {
                "messageId": one.name,
                "receiptHandle": one.receipt,
                "body": one.body,
                "attributes": {
                    "ApproximateReceiveCount": str(one.receives),
                    "SentTimestamp": str(one.sent_at),
                    "MessageGroupId": one.group,
                },
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:local:000000000000:packs",
                "awsRegion": "local",
            }
            for one in messages
        ]
    }
