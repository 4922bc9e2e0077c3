"""A queue on a scene, in the scene's own time: ticks that pack, and dispatches that take."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from duetick.core.dispatch.packs import PackReport
from duetick.core.threads import REAL, Start
from duetick.core.tick import TickReport
from duetick.core.tick.packing import run_pack_tick
from duetick.domain.packs import OutgoingMessage, read_message
from duetick.ports import Delivered, Sending, Trouble
from duetick.runtime import receiving
from duetick.testing import FakeClock
from duetick.transports.local_queue import KeptMessage, QueueState, event_of

from tests.delivery.scene import NINE, Scene

MOMENT = 0.02
"""Seconds that a wait lasts: then its time has passed by the scene's clock."""


class Passing:
    """`WaitPoint` whose time passes by the test's own clock."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._point = threading.Condition()

    def __enter__(self) -> bool:
        return self._point.__enter__()

    def __exit__(self, *raised: object) -> None:
        self._point.release()

    def wait(self) -> object:
        """See `WaitPoint`."""
        return self._point.wait()

    def wait_for(self, predicate: Callable[[], bool], timeout: float) -> object:
        """See `WaitPoint`."""
        if not self._point.wait_for(predicate, MOMENT):
            self._clock.now += max(1, round(timeout * 1_000))
        return predicate()

    def notify(self, n: int = 1) -> None:
        """See `WaitPoint`."""
        self._point.notify(n)

    def notify_all(self) -> None:
        """See `WaitPoint`."""
        self._point.notify_all()


@dataclass(frozen=True)
class PassingThreads:
    """Real threads, whose waits pass by the test's own clock."""

    clock: FakeClock

    def open_threads(self, most: int) -> AbstractContextManager[Start]:
        """See `Threads`."""
        return REAL.open_threads(most)

    def conditions(self) -> tuple[Passing, Passing]:
        """See `Threads`."""
        return Passing(self.clock), Passing(self.clock)


@dataclass
class Post:
    """The way of packs of a scene. `refuses` decides the result of a message that is sent."""

    scene: Scene
    state: QueueState = field(default_factory=lambda: QueueState(visibility_ms=60_000))
    sent: list[OutgoingMessage] = field(default_factory=list)
    refuses: Callable[[OutgoingMessage], Sending] = lambda _message: "sent"
    statuses: list[tuple[str, int]] = field(default_factory=list)
    told: list[tuple[Trouble, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scene.threads = PassingThreads(self.scene.clock)

    def send(self, messages: Sequence[OutgoingMessage], now: int) -> Sequence[Sending]:
        """Take messages as a queue does."""
        answers = [self.refuses(one) for one in messages]
        for one, answer in zip(messages, answers, strict=True):
            if answer != "refused":
                self.sent.append(one)
                self.state.put(one.body, one.group, one.delay(now), self.scene.clock.now)
        return answers

    def deliver(self, occurrence: object, *, timeout: float) -> Delivered:
        """No ordinary delivery is expected."""
        raise AssertionError(occurrence)

    def close(self) -> None:
        """Nothing is open."""

    def tick(self, now: int = NINE, **more: object) -> TickReport:
        """Claim ahead, and send packs."""
        self.scene.clock.now = now
        clock = self.scene.clock
        passing = {"elapsed": lambda: (clock.now - now) / 1_000, "sleep": self.sleep}
        given: dict[str, object] = {"now": now, **passing, **more}
        return run_pack_tick(self.scene.store, self, self, **given)  # type: ignore[arg-type]

    def sleep(self, seconds: float) -> None:
        """Let time pass for a tick."""
        self.scene.clock.advance(round(seconds * 1_000))

    def take(self, now: int | None = None) -> KeptMessage | None:
        """Take a message that is visible by then."""
        if now is not None:
            self.scene.clock.now = now
        return self.state.receive(self.scene.clock.now)

    def take_one(self, now: int | None = None) -> KeptMessage:
        """Take the message that is visible by then. There has to be one."""
        message = self.take(now)
        assert message
        return message

    def run(self, message: KeptMessage, seconds: float | None = None) -> PackReport:
        """Dispatch a message, and delete it unless it has to come again."""
        report = self._run(message.body, seconds)
        if report.comes_back_in is None:
            self.state.delete(message.receipt)
        else:
            self.state.put_back(message.receipt, report.comes_back_in, self.scene.clock.now)
        return report

    def run_all(self, now: int | None = None) -> list[PackReport]:
        """Dispatch all messages that are visible by then."""
        reports = []
        while message := self.take(now):
            reports.append(self.run(message))
        return reports

    def run_after(self, milliseconds: int) -> list[PackReport]:
        """Dispatch the messages that are visible so much later: on a slow machine the last run took
        some time.
        """
        return self.run_all(self.scene.clock.now + milliseconds)

    def event(self, count: int) -> dict[str, Any]:
        """Return the event of a number of messages, as Lambda hands them over."""
        taken = [self.take() for _ in range(count)]
        return event_of([one for one in taken if one])

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of the dispatch function. Delete the messages that it does not name."""
        answer: dict[str, Any] = receiving.answer_messages(event, self, lambda: 60.0, self._run)
        failed = [one["itemIdentifier"] for one in answer["batchItemFailures"]]
        for message in event["Records"]:
            if message["messageId"] not in failed:
                self.state.delete(message["receiptHandle"])
        return answer

    def receive_one(self) -> dict[str, Any]:
        """Let the dispatch function answer one message."""
        return self.answer(self.event(1))

    def receive_all(self, now: int) -> None:
        """Let the dispatch function answer all messages that are visible by then."""
        self.scene.clock.now = now
        while (event := self.event(1))["Records"]:
            self.answer(event)

    def put_back(self, receipt: str, seconds: int) -> None:
        """See `PackQueue`."""
        self.state.put_back(receipt, seconds, self.scene.clock.now)

    def _run(self, body: str, seconds: float | None) -> PackReport:
        return self.scene.dispatch.run_message(
            body,
            seconds,
            tell=lambda trouble, one: self.told.append((trouble, one.key)),
            on_dispatch=lambda one, status: self.statuses.append((one.key, status)),
        )

    def packs(self) -> list[list[list[str]]]:
        """Return the names in each message that was sent, by pack: `user/key`."""
        return [
            [[one.schedule_id for one in pack] for pack in read_message(sent.body).packs]
            for sent in self.sent
        ]
