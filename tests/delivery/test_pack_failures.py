"""Q-02: the occurrences that a pack could not begin or settle come again, and no others of it."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pytest
from duetick.core.store import Store
from duetick.domain.errors import StoreUnavailable
from duetick.domain.occurrence import Leased
from duetick.domain.packs import OutgoingMessage
from duetick.ports import Sending
from duetick.transports.local_queue import MOST_RECEIVES

from tests.delivery.post import Post
from tests.delivery.scene import MINUTE, NINE, Scene
from tests.delivery.test_packs import FIRED, SECOND, ended, put, send_packs

AWAY = StoreUnavailable("the database is away")


def fail_for(
    monkeypatch: pytest.MonkeyPatch, store: Store, name: str, keys: Sequence[str], times: int
) -> None:
    """Let a write of many fail for some of them, a number of times. The others are written."""
    found: Callable[..., Sequence[Any]] = getattr(store.ledger, name)
    failures = iter(range(times))

    def some(packed: Sequence[Any], **more: object) -> Sequence[Any]:
        if next(failures, None) is None:
            return found(packed, **more)
        good = [one for one in packed if _key(one) not in keys]
        answers = dict(zip(map(_key, good), found(good, **more), strict=True))
        return [answers.get(_key(one), AWAY) for one in packed]

    monkeypatch.setattr(store.ledger, name, some)


def _key(one: Leased | tuple[Leased, object]) -> str:
    return one[0].key if isinstance(one, tuple) else one.key


def test_q02_what_could_not_begin_comes_again_and_its_neighbours_do_not(
    each_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = send_packs(each_scene, 4)
    fail_for(monkeypatch, each_scene.store, "begin_many", ["k001", "k002"], 1)
    first = post.take_one()
    report = post.run(first)
    assert (report.begun, report.not_begun, report.comes_back_in) == (2, 2, 5)
    assert post.run_after(4_000) == []
    (again,) = post.run_after(1_000)
    assert (again.begun, again.refused, again.comes_back_in) == (2, 2, None)
    assert ended(each_scene) == {FIRED: 4}
    assert len(each_scene.ran) == 4


def test_q02_a_pack_of_which_nothing_could_begin_comes_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = send_packs(scene, 3)
    fail_for(monkeypatch, scene.store, "begin_many", ["k000", "k001", "k002"], 1)
    assert [one.not_begun for one in post.run_all()] == [3]
    assert [one.begun for one in post.run_after(5_000)] == [3]


def test_q02_a_settle_that_is_not_written_is_tried_again_by_itself(
    each_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = send_packs(each_scene, 3)
    fail_for(monkeypatch, each_scene.store, "settle_many", ["k001"], 3)
    (report,) = post.run_all()
    assert (report.succeeded, report.not_settled, report.comes_back_in) == (3, 0, None)
    assert ended(each_scene) == {FIRED: 3}


def test_q02_what_could_not_be_settled_comes_again_and_runs_no_second_time(
    each_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = send_packs(each_scene, 3)
    fail_for(monkeypatch, each_scene.store, "settle_many", ["k001"], 100)
    first = post.take_one()
    report = post.run(first)
    assert (report.succeeded, report.not_settled, report.comes_back_in) == (2, 1, 5)
    monkeypatch.undo()
    (again,) = post.run_all(each_scene.clock.now + 5_000)
    assert (again.begun, again.refused) == (0, 3)
    assert len(each_scene.ran) == 3
    assert ended(each_scene) == {FIRED: 2, ("processing", None): 1}
    post.tick(NINE + 2 * MINUTE)
    assert ended(each_scene) == {FIRED: 2, ("dead", "lost"): 1}


def test_q02_an_invocation_without_time_begins_nothing(scene: Scene) -> None:
    post = send_packs(scene, 3)
    message = post.take_one()
    report = post.run(message, seconds=2.5)
    assert (report.begun, report.not_begun, report.comes_back_in) == (0, 3, 5)
    assert [one.begun for one in post.run_after(5_000)] == [3]


def test_q02_a_lone_occurrence_without_time_comes_again(scene: Scene) -> None:
    post = send_packs(scene, 1)
    message = post.take_one()
    assert post.run(message, seconds=2.5).not_begun == 1
    assert [one.succeeded for one in post.run_after(5_000)] == [1]


def test_q02_actions_that_hang_leave_no_room_for_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another invocation begins an occurrence that has no thread here: its message comes again."""
    post = send_packs(scene, 3)
    monkeypatch.setattr("duetick.core.dispatch.packs.MOST_THREADS", 2)
    message = post.take_one()
    report = post.run(message)
    assert (report.begun, report.not_begun, report.comes_back_in) == (2, 1, 5)


def test_q02_a_pack_that_is_early_by_another_hosts_clock_comes_again(scene: Scene) -> None:
    post = send_packs(scene, 2, NINE - MINUTE)
    message = post.take_one(NINE)
    scene.clock.now = NINE - 20 * SECOND
    report = post.run(message)
    assert (report.begun, report.comes_back_in) == (0, 20)


def test_q02_a_poison_message_ends_among_the_dead_and_its_occurrences_by_their_leases(
    each_scene: Scene,
) -> None:
    post = send_packs(each_scene, 2)
    message = post.take_one()
    message.body = message.body[:-1]
    for _ in range(MOST_RECEIVES):
        post.receive_all(each_scene.clock.now)
        each_scene.clock.now += 61 * SECOND
    assert post.take() is None
    assert len(post.state.dead) == 1
    post.tick(each_scene.clock.now)
    post.receive_all(each_scene.clock.now)
    assert ended(each_scene) == {FIRED: 2}


def test_q02_a_redriven_message_begins_nothing(each_scene: Scene) -> None:
    post = send_packs(each_scene, 2)
    message = post.take_one()
    whole, message.body = message.body, "{"
    for _ in range(MOST_RECEIVES):
        each_scene.clock.now += 61 * SECOND
        post.receive_all(each_scene.clock.now)
    post.take()
    post.tick(each_scene.clock.now)
    post.receive_all(each_scene.clock.now)
    (dead,) = post.state.dead
    dead.body = whole
    assert post.state.redrive(each_scene.clock.now) == 1
    (report,) = post.run_all()
    assert (report.begun, report.over, report.comes_back_in) == (0, 2, None)
    assert len(each_scene.ran) == 2


UNREADABLE = {
    "nothing": "",
    "no object": "[]",
    "no packs": '{"v": 1, "at": 1, "tick": ""}',
    "a newer format": '{"v": 2, "packs": []}',
    "a fence that is none": '{"v":1,"at":1,"tick":"","packs":[[["a","k","schedule","o","f","*",'
    "null,1,0,1,1,0,null]]]}",
    "half an entry": '{"v":1,"at":1,"tick":"","packs":[[["a","k"]]]}',
    "a number for a name": '{"v":1,"at":1,"tick":"","packs":[[[1,"k","schedule","o","f","*",'
    "null,1,1,1,1,0,null]]]}",
    "policies that are none": '{"v":1,"at":1,"tick":"","packs":[[["a","k","schedule","o","f","*",'
    'null,1,1,1,1,0,"{"]]]}',
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_q02_what_cannot_be_read_is_told_and_comes_again(
    scene: Scene, caplog: pytest.LogCaptureFixture, body: str
) -> None:
    post = Post(scene)
    post.state.put(body, "group", 0, NINE)
    scene.clock.now = NINE
    answer = post.receive_one()
    assert answer == {"batchItemFailures": [{"itemIdentifier": "message-1"}]}
    assert [one.__dict__["action"] for one in caplog.records] == ["pack_unreadable"]


def test_q02_a_message_of_an_older_code_is_read(scene: Scene) -> None:
    """Fields that a later code adds follow those of this one."""
    post = send_packs(scene, 2)
    message = post.take_one()
    longer = message.body.replace(",null],[", ',null,"more"],[').replace('"v":1', '"v":1,"x":1')
    assert longer != message.body
    assert scene.dispatch.run_message(longer).begun == 2


SENDINGS: dict[str, Callable[[int], Sending]] = {
    "refused once": lambda tried: "refused" if tried == 1 else "sent",
    "in doubt once": lambda tried: "in_doubt" if tried == 1 else "sent",
}


@pytest.mark.parametrize("way", SENDINGS)
def test_q02_a_message_that_was_not_sent_is_sent_once_more(each_scene: Scene, way: str) -> None:
    put(each_scene, 3)
    post, tried = Post(each_scene), [0]

    def refuses(_message: OutgoingMessage) -> Sending:
        tried[0] += 1
        return SENDINGS[way](tried[0])

    post.refuses = refuses
    report = post.tick()
    assert (report.handed_on, report.left) == (3, 0)
    post.run_all()
    assert ended(each_scene) == {FIRED: 3}
    assert len(each_scene.ran) == 3


@pytest.mark.parametrize("way", ["refused", "in_doubt"])
def test_q02_what_the_queue_does_not_take_is_given_back(each_scene: Scene, way: Sending) -> None:
    """If it came to the queue all the same, it begins nothing: its fence is stale."""
    put(each_scene, 3)
    post = Post(each_scene, refuses=lambda _message: way)
    report = post.tick()
    assert (report.handed_on, report.left, report.claimed) == (0, 3, 3)
    reports = post.run_all()
    assert [(one.begun, one.refused) for one in reports] == [(0, 3)] * (2 * (way == "in_doubt"))
    post.refuses = lambda _message: "sent"
    post.tick(NINE + MINUTE)
    post.run_all()
    assert ended(each_scene) == {FIRED: 3}


def test_q02_half_of_a_send_that_failed_is_given_back_alone(scene: Scene) -> None:
    for number in range(200):
        put(scene, 1, f"user{number}")
    half: list[OutgoingMessage] = []

    def refuses(message: OutgoingMessage) -> Sending:
        half.append(message)
        return "refused" if message is half[0] else "sent"

    post = Post(scene, refuses=refuses)
    report = post.tick()
    assert (report.handed_on, report.left) == (100, 100)
    assert sum(one.begun for one in post.run_all()) == 100


def test_q02_a_queue_that_is_down_is_not_fed(scene: Scene) -> None:
    """After three rounds that all failed, nothing more is claimed: it stays due."""
    for number in range(40):
        put(scene, 1, f"user{number}")
    post = Post(scene, refuses=lambda _message: "refused")
    report = post.tick(chunk=5)
    assert report.claimed <= 25
    assert report.backlog >= 15


def test_q02_a_queue_that_raises_is_one_that_did_not_answer(scene: Scene) -> None:
    put(scene, 2)

    def raises(_message: OutgoingMessage) -> Sending:
        raise OSError("no route")

    post = Post(scene, refuses=raises)
    assert post.tick().left == 2


def test_q02_only_the_message_that_failed_is_named(scene: Scene) -> None:
    post = send_packs(scene, 2)
    post.state.put("{", "group", 0, NINE)
    event = post.event(2)
    answer = post.answer(event)
    failures = [one["itemIdentifier"] for one in answer["batchItemFailures"]]
    assert failures == ["message-2"]
    assert ended(scene) == {FIRED: 2}


def test_q02_an_error_that_nobody_expects_brings_the_message_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_given: object, **_more: object) -> None:
        raise RuntimeError("a defect")

    post = send_packs(scene, 2)
    monkeypatch.setattr(scene.store.ledger, "begin_many", breaks)
    answer = post.receive_one()
    assert len(answer["batchItemFailures"]) == 1
    monkeypatch.undo()
    assert [one.begun for one in post.run_after(5_000)] == [2]


def test_q02_a_begin_that_the_store_lost_ends_with_its_lease(
    each_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write was made, its answer was lost, and the process died: the occurrence does not run
    again.
    """
    post = send_packs(each_scene, 2)
    message = post.take_one()
    begin = each_scene.store.ledger.begin_many

    def dies(packed: Sequence[Leased], *, now: int, **_more: object) -> NoReturn:
        begin(packed, now=now)
        raise SystemExit

    monkeypatch.setattr(each_scene.store.ledger, "begin_many", dies)
    with pytest.raises(SystemExit):
        post.run(message)
    monkeypatch.undo()
    (again,) = post.run_all(NINE + 60_000)
    assert (again.begun, len(each_scene.ran)) == (0, 0)
    post.tick(NINE + 2 * MINUTE)
    assert ended(each_scene) == {("dead", "lost"): 2}
