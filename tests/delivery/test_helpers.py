"""Q-05: a backlog is shared among ticks that do not meet, and goes on when the time ends."""

from collections import Counter
from itertools import count

import pytest
from duetick.core.backpressure import BEHIND_MS, Handed, Notes, keep_handed
from duetick.core.store import Store
from duetick.core.tick import helpers
from duetick.core.tick.helpers import LOCK, MOST_IN_CHAIN, Assignment, Helpers
from duetick.domain.schedule import IndexRow
from duetick.ports import Part
from duetick.runtime.helping import MARK, assignment_of

from tests.delivery.post import Post
from tests.delivery.scene import MINUTE, NINE, Scene
from tests.delivery.test_packs import FIRED, SECOND, ended, put

DUE = 60


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty due rows are a backlog, at once."""
    monkeypatch.setattr(helpers, "FROM", 30)
    monkeypatch.setattr(helpers, "AFTER", 0.0)


def due(store: Store, rows: int = DUE) -> None:
    """Put a number of rows, due at nine."""
    for number in range(rows):
        store.index.upsert(IndexRow(f"u{number % 7}", f"k{number:03}", "0 9 * * *", None, NINE))


def claimed(store: Store, part: Part) -> list[str]:
    """Return everything that is due of a part."""
    found: list[str] = []
    while chunk := store.index.claim_due(NINE, 10, part=part):
        found += [one.key for one in chunk]
    return found


def test_q05_claims_of_parts_do_not_meet_and_leave_nothing(each_store: Store) -> None:
    due(each_store)
    parts = [claimed(each_store, Part(number, 3)) for number in range(3)]
    keys = [key for part in parts for key in part]
    assert sorted(keys) == [f"k{n:03}" for n in range(DUE)]
    assert claimed(each_store, Part(0, 1)) == []


def test_q05_the_parts_of_a_store_with_many_writers_are_alike(each_store: Store) -> None:
    due(each_store)
    parts = [len(claimed(each_store, Part(number, 3))) for number in range(3)]
    assert min(parts) >= DUE // 6 or parts == [DUE, 0, 0], "one writer claims for all"


def shared(post: Post, store: Store, most: int = 3) -> list[Assignment]:
    """Return the helpers that a tick with a backlog starts."""
    started: list[Assignment] = []
    post.tick(chunk=5, helpers=Helpers(store, started.append, most))
    return started


def test_q05_a_backlog_starts_helpers_and_fires_once(each_scene: Scene) -> None:
    put(each_scene, DUE)
    post = Post(each_scene)
    started = shared(post, each_scene.store)
    assert [one.part for one in started] == [Part(1, 3), Part(2, 3)]
    for one in started:
        post.tick(chunk=5, helpers=Helpers(each_scene.store, None, 3, one))
    post.run_all()
    assert ended(each_scene) == {FIRED: DUE}
    assert len(each_scene.ran) == DUE


def test_q05_a_few_due_rows_are_no_backlog(scene: Scene) -> None:
    put(scene, 20)
    assert shared(Post(scene), scene.store) == []


def test_q05_a_tick_leaves_a_backlog_to_those_who_are_at_it(scene: Scene) -> None:
    put(scene, DUE)
    post = Post(scene)
    first = shared(post, scene.store)
    scene.store.rebuild(now=NINE)
    put(scene, DUE, "bob")
    (lock,) = [one for one in scene.store.shelf.locks() if one.name == LOCK]
    assert lock.until > NINE + MINUTE
    second = shared(post, scene.store)
    assert (len(first), second) == (2, [])


def test_q05_the_lock_of_a_tick_that_died_ends(scene: Scene) -> None:
    put(scene, DUE)
    post = Post(scene)
    shared(post, scene.store)
    post.run_all()
    put(scene, DUE, "bob", cron="2 9 * * *")
    started: list[Assignment] = []
    own = Helpers(scene.store, started.append, 3)
    post.tick(NINE + 2 * MINUTE, chunk=5, helpers=own)
    assert len(started) == 2


def test_q05_a_bound_keeps_a_tick_from_starting_helpers(scene: Scene) -> None:
    put(scene, DUE)
    keep_handed(scene.store, Handed(NINE - MINUTE, 60, None, NINE - MINUTE, 1))
    Notes(scene.store).note(NINE - 5 * SECOND, BEHIND_MS)
    assert shared(Post(scene), scene.store) == []


@pytest.mark.parametrize("mine", [None, Assignment(Part(0, 3), 4, "tick_1")])
def test_q05_a_tick_whose_time_ends_goes_on_for_its_part(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, mine: Assignment | None
) -> None:
    put(scene, DUE)
    monkeypatch.setattr(helpers, "FROM", 10**9)
    started: list[Assignment] = []
    seconds = count()
    own = Helpers(scene.store, started.append, 3, mine)
    post = Post(scene)
    report = post.tick(chunk=1, budget=15.0, elapsed=lambda: next(seconds) / 10, helpers=own)
    assert 0 < report.claimed < DUE
    (follows,) = started
    assert follows.part == (mine.part if mine else Part(0, 1))
    assert follows.chain == (5 if mine else 2)


def test_q05_a_tick_that_claimed_all_does_not_go_on(scene: Scene) -> None:
    put(scene, 20)
    started: list[Assignment] = []
    Post(scene).tick(helpers=Helpers(scene.store, started.append, 3))
    assert started == []


@pytest.mark.parametrize("chain", [1, MOST_IN_CHAIN - 1, MOST_IN_CHAIN])
def test_q05_a_chain_ends(store: Store, chain: int) -> None:
    started: list[Assignment] = []
    own = Helpers(store, started.append, 3, Assignment(Part(0, 3), chain, "tick_1"))
    assert own.go_on(NINE) == (chain < MOST_IN_CHAIN)
    assert len(started) == (chain < MOST_IN_CHAIN)


def test_q05_a_helper_that_cannot_be_started_is_told_and_its_part_waits(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    def throttled(_one: Assignment) -> None:
        raise OSError("throttled")

    put(scene, DUE)
    post = Post(scene)
    post.tick(chunk=5, helpers=Helpers(scene.store, throttled, 3))
    assert "helpers_failed" in [one.__dict__.get("action") for one in caplog.records]
    post.tick(NINE + 2 * MINUTE)
    post.run_all()
    assert ended(scene) == {FIRED: DUE}


def test_q05_an_event_assigns_a_part_and_no_other_event_does() -> None:
    event = {MARK: {"number": 2, "of": 8, "chain": 3, "owner": "tick_1"}}
    assert assignment_of(event) == Assignment(Part(2, 8), 3, "tick_1")
    assert assignment_of({"source": "aws.scheduler", "time": "now"}) is None


def test_q05_parts_are_even_and_stay() -> None:
    names = Counter(
        number
        for key in range(1_000)
        for number in range(8)
        if Part(number, 8).has("ada", f"k{key}")
    )
    assert names.total() == 1_000
    assert min(names.values()) > 90
