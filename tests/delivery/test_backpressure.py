"""Q-03: leases cover the wait, and a tick hands on no occurrence that dispatch cannot begin in
time.
"""

from collections.abc import Iterator

import pytest
from duetick.core import backpressure
from duetick.core.backpressure import (
    APART_MS,
    BEHIND_MS,
    LATE,
    ROUND_MS,
    TAKEN,
    Handed,
    Notes,
    begin_handing,
    keep_handed,
)
from duetick.core.store import Store
from duetick.core.tick import packing
from duetick.domain import packs
from duetick.domain.policies import Policies
from duetick.domain.schedule import Schedule
from duetick.stores import open_store
from duetick.testing import FakeClock

from tests.delivery.post import Post
from tests.delivery.scene import MINUTE, NINE, Scene
from tests.delivery.test_packs import FIRED, SECOND, ended, put, send_packs

TIMEOUT = 40


def handed(count: int, *, bound: int | None = None, waits: int = NINE) -> Handed:
    """Return the note of an earlier round that left something behind."""
    return Handed(NINE, count, bound, waits, 1)


def test_q03_a_lease_covers_the_wait_the_timeout_and_a_margin(each_scene: Scene) -> None:
    put(each_scene, 2, policies=Policies(timeout=TIMEOUT))
    post = Post(each_scene)
    post.tick(NINE - 2 * MINUTE)
    post.run_all(NINE + (TIMEOUT + 34) * SECOND)
    assert ended(each_scene) == {FIRED: 2}


def test_q03_what_a_lost_tick_had_claimed_comes_back_with_its_leases(each_scene: Scene) -> None:
    """Claimed two minutes ahead and never sent: due, its timeout, and 35 seconds later."""
    put(each_scene, 3)
    claimed = each_scene.store.index.claim_due(NINE - 2 * MINUTE, 100, ahead=2 * MINUTE)
    assert len(claimed) == 3
    post = Post(each_scene)
    for now in (NINE - MINUTE, NINE, NINE + 59 * SECOND):
        assert post.tick(now).claimed == 0
    assert post.tick(NINE + MINUTE).claimed == 3
    post.run_all()
    assert ended(each_scene) == {FIRED: 3}


def test_q03_what_never_began_within_its_hour_is_lost(each_scene: Scene) -> None:
    post = send_packs(each_scene, 2)
    report = post.tick(NINE + 61 * MINUTE)
    assert report.lost == 2
    assert ended(each_scene) == {("dead", "lost"): 2}


def test_q03_an_idle_tick_reads_no_notes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.shelf, "note", None)
    assert Post(Scene(store)).tick().claimed == 0


def test_q03_packs_that_come_late_bound_the_rounds_of_the_next_tick(each_store: Store) -> None:
    """The bound is half of what the last tick handed on, in six rounds."""
    keep_handed(each_store, handed(120_000))
    Notes(each_store).note(NINE + 50 * SECOND, BEHIND_MS)
    assert begin_handing(each_store, NINE + MINUTE).bound == 10_000


def test_q03_packs_that_nobody_takes_bound_it_as_well(store: Store) -> None:
    keep_handed(store, handed(24_000))
    assert begin_handing(store, NINE + MINUTE).bound == 2_000
    Notes(store).note(NINE, 0)
    assert begin_handing(store, NINE + MINUTE).bound is None


def test_q03_what_is_not_due_yet_is_not_behind(store: Store) -> None:
    keep_handed(store, handed(24_000, waits=NINE + 2 * MINUTE))
    assert begin_handing(store, NINE + MINUTE).bound is None


def test_q03_what_nobody_took_is_remembered_by_later_ticks(store: Store) -> None:
    """Each tick hands on later occurrences: the first one that nobody took counts."""
    note = handed(24_000, waits=NINE + 2 * MINUTE)
    for minute in (1, 2):
        keep_handed(store, note)
        note = begin_handing(store, NINE + minute * MINUTE)
        assert note.bound is None
        note = note.hand_on(24_000, NINE + (minute + 2) * MINUTE)
    keep_handed(store, note)
    assert begin_handing(store, NINE + 3 * MINUTE).bound == 2_000


def test_q03_a_bound_is_halved_while_packs_come_late(store: Store) -> None:
    notes, now = Notes(store), NINE + MINUTE
    keep_handed(store, handed(8_000, bound=8_000))
    for expected in (4_000, 2_000, 1_000, 1_000):
        notes.note(now, BEHIND_MS)
        note = begin_handing(store, now)
        assert note.bound == expected
        keep_handed(store, note.hand_on(expected, now))
        now += ROUND_MS


def test_q03_packs_that_come_in_time_lift_the_bound_step_by_step(store: Store) -> None:
    keep_handed(store, handed(1_000, bound=1_000))
    Notes(store).note(NINE + 10 * SECOND, 0)
    assert begin_handing(store, NINE + MINUTE).bound == 1_500
    keep_handed(store, handed(1_499, bound=1_500)._replace(left=0))
    assert begin_handing(store, NINE + MINUTE).bound is None


def test_q03_a_process_notes_at_most_every_twenty_seconds(store: Store) -> None:
    notes = Notes(store)
    for second in range(0, 60, 5):
        notes.note(NINE + second * SECOND, 0)
    assert store.shelf.note(TAKEN) == f"[{NINE + 2 * APART_MS}, 0]"
    assert store.shelf.note(LATE) is None


def test_q03_a_round_hands_on_no_more_than_its_bound(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes anything: each round hands on the least, and the rest stays due."""
    monkeypatch.setattr(backpressure, "LEAST", 10)
    monkeypatch.setattr(packing, "LEAST", 10)
    put(scene, 100)
    keep_handed(scene.store, handed(40, waits=NINE - MINUTE))
    report = Post(scene).tick(chunk=10)
    assert (report.handed_on, report.backlog) == (50, 50)
    assert scene.clock.now == NINE + 4 * ROUND_MS


class Overload:
    """Schedules that fire each minute, and one dispatch that has the time for a part of them."""

    def __init__(self, scene: Scene, schedules: int, seconds: int) -> None:
        self.scene, self.post, self.seconds = scene, Post(scene), seconds
        self._free_at = NINE
        for number in range(schedules):
            one = Schedule(f"u{number}", "k", "* * * * *", "mail", "send")
            scene.store.schedules.put(one, now=NINE - 1)
        self.waiting: list[int] = []
        self.ran: list[int] = []
        self.claimed: list[int] = []

    def minute(self, now: int) -> None:
        """Run a tick, and dispatch until the next one."""
        ran = len(self.scene.ran)
        self._dispatch(now)
        report = self.post.tick(now, sleep=lambda seconds: self._pass(round(seconds * SECOND)))
        self._pass(now + MINUTE - self.scene.clock.now)
        self.claimed.append(report.claimed)
        self.ran.append(len(self.scene.ran) - ran)
        self.waiting.append(len(self.post.state))

    def _pass(self, milliseconds: int) -> None:
        self._dispatch(self.scene.clock.now + milliseconds)

    def _dispatch(self, until: int) -> None:
        """Take visible messages, one after another, up to an instant."""
        while (at := self.post.state.next_at()) is not None:
            at = max(at, self._free_at)
            if at >= until:
                break
            message = self.post.take(at)
            if message:
                begun = self.post.run(message).begun
                self._free_at = at + (self.seconds * SECOND if begun else 0)
        self.scene.clock.now = until


@pytest.fixture
def overload(monkeypatch: pytest.MonkeyPatch) -> Iterator[Overload]:
    """Twenty packs a minute are wanted, and there is time for six of them."""
    for module, name, value in (
        (backpressure, "LEAST", 10),
        (packing, "LEAST", 10),
        (packs, "MOST_LEASES", 5),
    ):
        monkeypatch.setattr(module, name, value)
    clock = FakeClock(NINE)
    store = open_store("sqlite://", clock=clock)
    store.migrate()
    yield Overload(Scene(store, clock=clock), schedules=100, seconds=10)
    store.close()


@pytest.mark.slow
def test_q03_sustained_overload_is_lateness_and_no_livelock(overload: Overload) -> None:
    for minute in range(30):
        overload.minute(NINE + minute * MINUTE)
    later = slice(10, None)
    assert sum(overload.ran[later]) >= 0.8 * 30 * 20, "dispatch does what it has the time for"
    assert max(overload.waiting[later]) <= max(overload.waiting[:10]), "the queue does not grow"
    assert sum(overload.claimed[later]) <= 6 * sum(overload.ran[later]), "nor do the claims"


@pytest.mark.slow
def test_q03_once_it_is_quick_again_all_fires_in_time(overload: Overload) -> None:
    for minute in range(10):
        overload.minute(NINE + minute * MINUTE)
    overload.seconds = 0
    for minute in range(10, 20):
        overload.minute(NINE + minute * MINUTE)
    assert overload.ran[-3:] == [100, 100, 100]
