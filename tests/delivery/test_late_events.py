"""T-03, T-07: a background action's event that Lambda delivers when its lease is over, or again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from duetick.core.context import Context
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import Json, Occurrence
from duetick.domain.states import Reason, State
from duetick.runtime.invoking import from_event, to_event

from tests.delivery.scene import MINUTE, Scene, told

HOUR = 60 * MINUTE

Row = tuple[int, Mapping[str, Json]]


@dataclass(slots=True)
class Queue:
    """Lambda's queue with one background action, due at nine, and the begins of the action."""

    scene: Scene
    begins: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scene.flow.action("slow", background=True, transactional=True)(self._begins)

    def _begins(self, _given: Json, ctx: Context) -> None:
        self.begins.append(ctx.attempt)

    def put(self, delivery: Delivery = Delivery.AT_MOST_ONCE) -> None:
        """Let a tick at nine enqueue it."""
        self.scene.put(action="slow", cron="0 9 * * *", policies=Policies(delivery=delivery))
        self.enqueue([self.scene.claim()])

    def enqueue(self, claimed: Sequence[Occurrence]) -> None:
        """Enqueue the occurrences that a tick has claimed."""
        for occurrence in claimed:
            assert self.scene.deliver(occurrence)[1]["outcome"] == "queued"

    def later(self, milliseconds: int) -> None:
        """Time goes by, and a tick comes."""
        self.scene.clock.advance(milliseconds)
        self.enqueue(self.scene.store.ledger.claim_waiting(self.scene.clock.now))

    def arrives(self, number: int) -> Row:
        """Let an event arrive, as often as Lambda likes."""
        event = from_event(to_event(self.scene.queued[number]), 900.0)
        assert event
        return told(self.scene.dispatch.run_queued(event))

    def begun_and_gone(self, number: int) -> None:
        """Begin an event in a process that dies in the middle."""
        (held,) = self.scene.store.ledger.find("ada", "digest")
        assert held.fence == number + 1
        self.scene.store.ledger.begin(held, now=self.scene.clock.now)

    def held(self) -> tuple[str, str | None, int]:
        """Return the state, the reason and the attempts in the ledger."""
        (one,) = self.scene.store.ledger.find("ada", "digest")
        return one.state, one.reason, one.attempts


@pytest.fixture
def queue(each_scene: Scene) -> Queue:
    """On each store."""
    return Queue(each_scene)


def code(answer: Row) -> tuple[int, Json]:
    """Return the status, and its code or the state that is told."""
    status, body = answer
    return status, body.get("error") or body.get("state")


IN_PROGRESS = (409, "in_progress")
SUCCEEDED = (200, "succeeded")


def test_t07_when_its_lease_is_over_it_begins_nothing_and_the_next_ticks_does(
    queue: Queue,
) -> None:
    queue.put()
    queue.scene.clock.advance(2 * MINUTE)
    assert code(queue.arrives(0)) == IN_PROGRESS
    assert queue.held() == (State.QUEUED, None, 0)
    queue.later(0)
    assert [code(queue.arrives(number)) for number in (0, 1)] == [IN_PROGRESS, (202, None)]
    assert [code(queue.arrives(number)) for number in (0, 1)] == [SUCCEEDED, SUCCEEDED]
    assert (queue.begins, queue.held()) == ([1], (State.SUCCEEDED, Reason.FIRED, 1))


def test_t07_while_anothers_runs_it_begins_nothing(queue: Queue) -> None:
    queue.put()
    queue.later(2 * MINUTE)
    queue.begun_and_gone(1)
    assert [code(queue.arrives(number)) for number in (0, 1)] == [IN_PROGRESS] * 2
    assert (queue.begins, queue.held()) == ([], (State.PROCESSING, None, 1))


def test_t03_when_it_was_lost_it_begins_nothing(queue: Queue) -> None:
    queue.put()
    queue.later(2 * HOUR)
    assert code(queue.arrives(0)) == (200, "dead")
    assert (queue.begins, queue.held()) == ([], (State.DEAD, Reason.LOST, 0))


def test_t03_lambdas_own_repetition_of_one_that_died_begins_nothing(queue: Queue) -> None:
    queue.put()
    queue.begun_and_gone(0)
    assert code(queue.arrives(0)) == IN_PROGRESS
    queue.scene.clock.advance(2 * MINUTE)
    assert code(queue.arrives(0)) == IN_PROGRESS
    queue.later(0)
    assert code(queue.arrives(0)) == (200, "dead")
    assert (queue.begins, queue.held()) == ([], (State.DEAD, Reason.LOST, 1))


@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.EFFECTIVELY_ONCE])
def test_t04_under_at_least_once_the_next_attempt_is_the_ticks_to_bring(
    queue: Queue, delivery: Delivery
) -> None:
    queue.put(delivery)
    queue.begun_and_gone(0)
    queue.later(2 * MINUTE)
    assert [code(queue.arrives(number)) for number in (0, 1)] == [IN_PROGRESS, (202, None)]
    assert [code(queue.arrives(number)) for number in (0, 1)] == [SUCCEEDED, SUCCEEDED]
    assert (queue.begins, queue.held()) == ([2], (State.SUCCEEDED, Reason.FIRED, 2))


def test_t06_when_its_schedule_was_deleted_meanwhile_it_begins_nothing(queue: Queue) -> None:
    queue.put()
    queue.scene.store.schedules.delete("ada", "digest", now=queue.scene.clock.now)
    answers = [queue.arrives(0) for _ in range(2)]
    assert answers == [(200, {"status": "skipped", "reason": "schedule_deleted"})] * 2
    assert (queue.begins, queue.held()[:2]) == ([], (State.CANCELLED, Reason.SCHEDULE_DELETED))
