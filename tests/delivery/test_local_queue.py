"""The local queue behaves as SQS does: delays, visibility, redelivery, dead letters, fairness."""

import threading
from typing import Any

import pytest
from duetick.domain.packs import OutgoingMessage
from duetick.transports.local_queue import MOST_RECEIVES, LocalQueue, QueueState

from tests.lab.waiting import wait

NOW = 1_000_000
SECOND = 1_000


def put(state: QueueState, *groups: str, delay: int = 0) -> list[str]:
    """Put a message of each group, in this order."""
    return [state.put(f"body of {n}", group, delay, NOW) for n, group in enumerate(groups)]


def taken(state: QueueState, now: int = NOW) -> list[str]:
    """Take all visible messages. Return their groups in the order of the queue."""
    found = []
    while message := state.receive(now):
        found.append(message.group)
    return found


def test_a_message_is_kept_back_until_its_delay_is_over() -> None:
    state = QueueState()
    put(state, "a", delay=7)
    assert state.receive(NOW + 6_999) is None
    assert state.next_at() == NOW + 7_000
    assert taken(state, NOW + 7_000) == ["a"]


def test_a_message_that_is_in_hand_is_hidden_until_its_visibility_ends() -> None:
    state = QueueState(visibility_ms=30_000)
    put(state, "a")
    first = state.receive(NOW)
    assert first
    before = first.receipt
    assert state.receive(NOW + 29_999) is None
    second = state.receive(NOW + 30_000)
    assert second
    assert (second.name, second.receives, second.receipt != before) == (first.name, 2, True)


def test_a_message_that_is_deleted_is_gone() -> None:
    state = QueueState(visibility_ms=30_000)
    put(state, "a")
    message = state.receive(NOW)
    assert message
    state.delete(message.receipt)
    assert (len(state), state.receive(NOW + 30_000), state.next_at()) == (0, None, None)


def test_an_old_receipt_deletes_nothing() -> None:
    """Another one has the message by now."""
    state = QueueState(visibility_ms=30_000)
    put(state, "a")
    first = state.receive(NOW)
    assert first
    old = first.receipt
    state.receive(NOW + 30_000)
    state.delete(old)
    state.put_back(old, 0, NOW + 30_000)
    assert len(state) == 1
    assert state.receive(NOW + 30_001) is None


def test_a_message_that_is_put_back_comes_again_after_so_many_seconds() -> None:
    state = QueueState()
    put(state, "a")
    message = state.receive(NOW)
    assert message
    state.put_back(message.receipt, 5, NOW)
    assert state.receive(NOW + 4_999) is None
    assert taken(state, NOW + 5_000) == ["a"]


def test_a_message_that_came_too_often_is_dead_until_it_is_redriven() -> None:
    state = QueueState()
    put(state, "a")
    for _ in range(MOST_RECEIVES):
        message = state.receive(NOW)
        assert message
        state.put_back(message.receipt, 0, NOW)
    assert state.receive(NOW) is None
    assert ([one.group for one in state.dead], len(state)) == (["a"], 0)
    assert state.redrive(NOW) == 1
    assert taken(state) == ["a"]


def test_t14_a_group_with_many_in_hand_lets_others_go_first() -> None:
    state = QueueState()
    put(state, *["many"] * 50, "ann", "bob")
    assert taken(state)[:3] == ["many", "ann", "bob"]


def test_t14_a_group_is_served_again_once_it_has_few_in_hand() -> None:
    state = QueueState()
    put(state, "many", "many", "many")
    first = state.receive(NOW)
    assert first
    put(state, "ann")
    state.delete(first.receipt)
    assert taken(state)[0] == "many"


def test_messages_of_one_group_come_in_the_order_in_which_they_were_sent() -> None:
    state = QueueState()
    names = put(state, *["a"] * 5)
    found = [one.name for _ in range(5) if (one := state.receive(NOW))]
    assert found == names


def outgoing(body: str, due_at: int = NOW) -> OutgoingMessage:
    """Return a message of a tick."""
    return OutgoingMessage(body, "group", due_at, ())


def test_q04_the_message_that_was_visible_first_goes_first_however_late_it_was_sent() -> None:
    state = QueueState()
    put(state, "a", delay=7)
    put(state, "b", delay=3)
    put(state, "c")
    assert taken(state, NOW + 8_000) == ["c", "b", "a"]


def test_workers_hand_messages_to_the_handler_as_lambda_does() -> None:
    """One that fails comes again, and one that raises does."""
    seen: list[dict[str, Any]] = []
    state = QueueState(visibility_ms=50)
    queue = LocalQueue(state)

    def handle(event: dict[str, Any]) -> dict[str, Any]:
        seen.append(event)
        (message,) = event["Records"]
        first = message["attributes"]["ApproximateReceiveCount"] == "1"
        if message["body"] == "raises" and first:
            raise RuntimeError("out of memory")
        failed = [{"itemIdentifier": message["messageId"]}] if first else []
        return {"batchItemFailures": failed if message["body"] == "fails" else []}

    queue.start(handle, 2)
    queue.send([outgoing("good"), outgoing("fails"), outgoing("raises")], NOW)
    wait(lambda: not len(state))
    queue.close()
    bodies = [event["Records"][0]["body"] for event in seen]
    assert {"good", "fails", "raises"} == set(bodies)
    assert min(bodies.count("fails"), bodies.count("raises")) >= 2
    assert seen[0]["Records"][0]["eventSource"] == "aws:sqs"


def test_a_queue_that_closes_ends_what_is_in_hand() -> None:
    entered, may_end = threading.Event(), threading.Event()
    ended: list[bool] = []
    queue = LocalQueue()

    def handle(_event: dict[str, Any]) -> dict[str, Any]:
        entered.set()
        may_end.wait(60)
        ended.append(True)
        return {}

    queue.start(handle, 1)
    queue.send([outgoing("slow")], NOW)
    entered.wait(60)
    threading.Timer(0.05, may_end.set).start()
    queue.close()
    assert ended == [True]


@pytest.mark.parametrize(("due_in", "delay"), [(0, 0), (999, 0), (1_000, 1), (61_500, 61)])
def test_q04_a_delay_is_rounded_down(due_in: int, delay: int) -> None:
    assert outgoing("b", NOW + due_in).delay(NOW) == delay


def test_q04_a_delay_is_never_longer_than_a_queue_takes() -> None:
    assert outgoing("b", NOW + 3_600_000).delay(NOW) == 900
    assert outgoing("b", NOW - 5_000).delay(NOW) == 0
