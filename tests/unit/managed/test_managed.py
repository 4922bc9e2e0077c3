"""S-01: moves of a store, the answer to a ring, wakes, and the hourly count of bells."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from duetick.core.managed import counting, moving
from duetick.core.managed.keeping import Each
from duetick.core.managed.moving import move
from duetick.core.managed.ringing import EARLY_MS, Ringer
from duetick.core.managed.trigger import NOTE, Trigger, keep_trigger, read_trigger
from duetick.core.managed.watched import Followers
from duetick.core.overview import overview
from duetick.core.store import Store
from duetick.core.wrong import wrong_in
from duetick.domain.bells import Bell, Ring, bell_name, bell_of, digest_of_bell
from duetick.domain.errors import BellsUnavailable, ConfigurationError, StoreRestored
from duetick.domain.occurrence import Occurrence, ScheduleName
from duetick.domain.schedule import Schedule
from duetick.ports import tell_nobody
from duetick.runtime.managed import LATE_MS, Managed
from duetick.stores import open_store
from duetick.testing.conformance.managing import Belfry
from duetick.testing.conformance.samples import (
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    schedule,
)

HOURLY = "0 * * * *"
STACK = Trigger("stack", group="bells", role="role", dispatch="dispatch", tick="tick")
TICKS = Trigger("stack")
ADA: ScheduleName = ("ada", "digest")


class Tower(Belfry):
    """A belfry with the wakes that were asked for, and the names of its bells' schedules."""

    def __init__(self) -> None:
        super().__init__()
        self.wakes: list[int] = []

    def schedule_of(self, name: str) -> ScheduleName | None:
        """See `Bells`."""
        ring = Ring.read(json.loads(self.bells[name].payload))
        return (ring.user_id, ring.key) if ring else None

    def wake(self, at: int) -> None:
        """See `Bells`."""
        self._answer()
        self.wakes.append(at)


@contextmanager
def in_turn() -> Iterator[Each]:
    """Yield the way to do one after another."""
    yield map


def always() -> bool:
    """Return True."""
    return True


@dataclass
class Stack:
    """A managed store at an instant, and its bells. The code of before knows it as `plain`."""

    store: Store
    plain: Store
    tower: Tower
    managed: Managed
    now: int = NOON

    def pending(self) -> list[ScheduleName]:
        """Return the names of the bells that are pending."""
        return [one.name for one in self.store.shelf.pending_bells(100)]

    def move(self, wanted: Trigger = STACK, go_on: Callable[[], bool] = always) -> None:
        """Move as a deployment does, and bring the bells in step."""
        self.managed.move(wanted, go_on)
        self.managed.go_on(go_on)

    def settled(self) -> bool:
        """Return True if ticks leave the rows to the bells."""
        found = read_trigger(self.store)
        return found is not None and found.settled

    def put(self, key: str = "digest", cron: str = EACH_MINUTE, user: str = "ada") -> Schedule:
        """Put a schedule."""
        return self.store.schedules.put(schedule(key, user=user, cron=cron), now=self.now)

    def count(self) -> counting.CountedBells:
        """Count the bells as the hourly function does."""
        look = self.managed.look(self.now)
        assert look is not None
        for one in self.store.shelf.every_book():
            look.at(one)
        return self.managed.end_look(look, always)


@pytest.fixture
def stack() -> Iterator[Stack]:
    """A stack that has not moved yet."""
    followers, tower = Followers(), Tower()
    plain = open_store("sqlite://", clock=lambda: made.now)
    plain.migrate()
    store = Store(plain.shelf, lambda: made.now, followers=followers)
    managed = Managed(store, lambda: 0, bells=lambda _trigger: tower, several=in_turn)
    followers.bell_moved, followers.waits = managed.keep, managed.wake
    followers.erases = managed.delete
    made = Stack(store, plain, tower, managed)
    yield made
    store.close()


# Moves.


def test_s01_a_move_makes_the_bells_of_all_rows(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "AT_ONCE", 2)
    for key in "abcde":
        stack.put(key)
    assert stack.tower.bells == {}, "no group is known before the move"
    stack.move()
    assert set(stack.tower.bells) == {bell_name("ada", key) for key in "abcde"}
    assert stack.settled()


def test_s01_a_move_whose_time_ends_goes_on_where_it_was(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "AT_ONCE", 2)
    for key in "abcde":
        stack.plain.schedules.put(schedule(key, cron=EACH_MINUTE), now=NOON)
    answers = iter([True] * 6 + [False] * 2)
    stack.move(go_on=lambda: next(answers, False))
    assert not stack.settled()
    assert stack.managed.late_ms() == 0, "a tick leaves nothing to bells yet"
    stack.managed.go_on(always)
    stack.managed.go_on(always)
    assert set(stack.tower.bells) == {bell_name("ada", key) for key in "abcde"}
    assert stack.settled()
    assert stack.managed.late_ms() == LATE_MS


def test_s01_until_the_last_bell_is_made_a_tick_comes_each_minute(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.plain.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
    stack.managed.move(STACK, always)
    with monkeypatch.context() as full:
        full.setattr(stack.tower, "put", refuses)
        assert stack.managed.go_on(always) == 1
    assert stack.tower.wakes == [NOON + MINUTE]
    assert stack.managed.go_on(always) == 0
    assert stack.settled()


def refuses(_bell: Bell) -> None:
    """Refuse a bell."""
    raise BellsUnavailable("full")


def test_s01_a_move_is_refused_if_a_schedule_cannot_ring_and_names_the_first_five(
    stack: Stack,
) -> None:
    for number in range(7):
        stack.plain.schedules.put(schedule(f"k{number}", cron="0 9 1 * mon"), now=NOON)
    stack.plain.schedules.put(schedule("fine"), now=NOON)
    with pytest.raises(ConfigurationError, match="times of 7 schedules") as refused:
        stack.move()
    assert "Trigger=tick" in str(refused.value)
    assert [f"ada/k{number}" in str(refused.value) for number in range(7)] == [True] * 5 + [
        False
    ] * 2
    assert read_trigger(stack.store) is None


def test_s01_the_bells_of_two_deployments_do_not_ring_for_one_store(stack: Stack) -> None:
    stack.move()
    with pytest.raises(ConfigurationError, match="'stack' ring"):
        move(stack.store, replace(STACK, deployment="other"), always)
    with pytest.raises(ConfigurationError, match="Deployment=stack"):
        move(stack.store, Trigger("other"), always)


def test_s01_after_a_move_to_ticks_they_claim_at_once_and_no_bell_is_written(
    stack: Stack,
) -> None:
    stack.put()
    stack.move()
    stack.move(TICKS)
    assert stack.managed.late_ms() == 0
    stack.tower.bells.clear()
    stack.put(cron=HOURLY)
    assert stack.tower.bells == {}


def test_s01_code_of_before_reads_the_note_of_a_move_and_its_note_is_read(stack: Stack) -> None:
    moved = replace(STACK, moved_until="place", settled=False)
    older = {
        "deployment": "stack",
        "group": "bells",
        "role": "role",
        "dispatch": "dispatch",
        "tick": "tick",
        "marked_until": "place",
        "settled": False,
    }
    stack.store.shelf.keep_note(NOTE, json.dumps(older))
    assert read_trigger(stack.store) == moved
    keep_trigger(stack.store, moved)
    assert json.loads(stack.store.shelf.note(NOTE) or "") == older


def test_s01_a_store_that_never_had_bells_keeps_no_note(stack: Stack) -> None:
    move(stack.store, TICKS, always)
    assert read_trigger(stack.store) is None


def test_s01_an_update_of_the_stack_marks_nothing_anew(stack: Stack) -> None:
    stack.put()
    stack.move()
    stack.managed.move(STACK, always)
    assert stack.pending() == []
    assert stack.settled()


# Rings.


@dataclass
class Answered:
    """The deeds of a ringer."""

    delivered: list[Occurrence]
    healed: list[ScheduleName]
    wakes: list[int]
    slept: list[float]


def ring_at(
    stack: Stack, now: int, *, key: str = "digest", digest: str | None = None, left: float = 20
) -> Answered:
    """Answer a ring by a clock that moves only while the ringer sleeps."""
    done, stack.now = Answered([], [], [], []), now

    def sleep(seconds: float) -> None:
        done.slept.append(seconds)

    def deliver(one: Occurrence, _seconds: float) -> int:
        done.delivered.append(one)
        return 200

    ringer = Ringer(
        stack.store,
        deliver,
        heal=done.healed.append,
        wake=done.wakes.append,
        tell=tell_nobody,
        sleep=sleep,
    )
    row = stack.store.index.get("ada", key)
    known = digest or digest_of_bell(row) or "none"
    ringer.answer(Ring("ada", key, known, ""), lambda: left)
    return done


def test_s01_a_ring_delivers_what_is_due(stack: Stack) -> None:
    stack.put()
    done = ring_at(stack, NOON + MINUTE)
    assert [one.nominal_at for one in done.delivered] == [NOON + MINUTE]
    assert (done.healed, done.slept) == ([], [])


def test_s01_a_ring_that_comes_twice_delivers_once_and_looks_after_the_first(
    stack: Stack,
) -> None:
    stack.put()
    [first] = ring_at(stack, NOON + MINUTE).delivered
    second = ring_at(stack, NOON + MINUTE + SECOND)
    assert second.delivered == []
    assert second.wakes == [first.lease_until], "if the first one died, a tick takes it over"


def test_s01_a_ring_that_is_a_little_early_waits_for_its_row(stack: Stack) -> None:
    stack.put()
    done = ring_at(stack, NOON + MINUTE - EARLY_MS)
    assert done.slept == [EARLY_MS / 1_000]
    assert [one.nominal_at for one in done.delivered] == [NOON + MINUTE]


def test_s01_a_ring_long_before_its_row_is_due_changes_nothing(stack: Stack) -> None:
    stack.put(cron=HOURLY)
    done = ring_at(stack, NOON + MINUTE)
    assert (done.delivered, done.slept, done.healed) == ([], [], [])


def test_s01_a_ring_of_an_old_bell_delivers_and_mends_the_bell(stack: Stack) -> None:
    stack.put()
    done = ring_at(stack, NOON + MINUTE, digest="of before")
    assert len(done.delivered) == 1
    assert done.healed == [ADA]


def test_s01_a_ring_without_a_row_mends_the_bell(stack: Stack) -> None:
    done = ring_at(stack, NOON)
    assert (done.delivered, done.healed) == ([], [ADA])


def test_s01_a_ring_without_time_gives_the_occurrence_back_to_a_tick_that_it_asks_for(
    stack: Stack,
) -> None:
    stack.put()
    stack.move()
    stack.tower.wakes.clear()
    done = ring_at(stack, NOON + MINUTE, left=1)
    assert done.delivered == []
    assert stack.tower.wakes == [NOON + 2 * MINUTE]
    [one] = stack.store.ledger.claim_waiting(NOON + 2 * MINUTE)
    assert (one.nominal_at, one.attempts) == (NOON + MINUTE, 0)


def test_s01_a_ring_on_a_restored_database_claims_nothing(stack: Stack) -> None:
    class Newer:
        """A witness that has seen more than the store."""

        def read(self) -> int:
            return NOON + DAY

        def write(self, at: int) -> None:
            raise NotImplementedError

    stack.put()
    stack.store.shelf.keep_note("witness", str(NOON))
    stack.now = NOON + DAY
    ringer = Ringer(
        stack.store, never_called, witness=Newer(), heal=print, wake=print, tell=tell_nobody
    )
    with pytest.raises(StoreRestored):
        ringer.answer(Ring("ada", "digest", "", ""), lambda: 20)
    assert stack.store.ledger.find(*ADA) == []


def never_called(_one: Occurrence, _seconds: float) -> int:
    """Fail: nothing may be delivered."""
    raise AssertionError("it was delivered")


@pytest.mark.parametrize(("status", "lines"), [(202, 0), (500, 1)])
def test_s01_a_ring_has_a_line_if_the_sample_of_successes_says_so(
    stack: Stack, caplog: pytest.LogCaptureFixture, status: int, lines: int
) -> None:
    stack.put()
    stack.now = NOON + MINUTE
    ringer = Ringer(
        *(stack.store, lambda _one, _seconds: status),
        heal=print,
        wake=print,
        tell=tell_nobody,
        has_line=lambda status: status >= 400,
    )
    with caplog.at_level(logging.INFO, "duetick.managed"):
        assert ringer.answer(Ring("ada", "digest", "", ""), lambda: 20) == 1
    assert [line.message for line in caplog.records].count("ring") == lines


# Wakes.


@pytest.mark.parametrize(
    ("now", "due", "wakes"),
    [
        (NOON, NOON + 90 * SECOND, [NOON + 2 * MINUTE]),
        (NOON, NOON + 2 * MINUTE, [NOON + 2 * MINUTE]),
        (NOON, NOON - MINUTE, [NOON + MINUTE]),
        (NOON + 55 * SECOND, NOON + 56 * SECOND, [NOON + 2 * MINUTE]),
        (NOON + 30 * MINUTE, NOON + HOUR, []),
        (NOON + 30 * MINUTE, NOON + 5 * HOUR, []),
    ],
)
def test_s01_a_wake_is_for_the_next_minute_that_eventbridge_can_make(
    stack: Stack, now: int, due: int, wakes: list[int]
) -> None:
    stack.move()
    stack.tower.wakes.clear()
    stack.now = now
    stack.managed.wake(due)
    assert stack.tower.wakes == wakes


def test_s01_a_wake_that_fails_is_logged_and_stops_nothing(
    stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    stack.move()
    stack.tower.away = True
    with caplog.at_level(logging.ERROR):
        stack.managed.wake(NOON)
    assert stack.tower.wakes == []


def test_s01_the_hourly_tick_asks_for_the_next_lease_of_its_hour(stack: Stack) -> None:
    stack.put()
    stack.move()
    stack.tower.wakes.clear()
    [one] = stack.store.index.claim_due(NOON + MINUTE)
    stack.managed.go_on(always)
    assert one.lease_until is not None
    assert stack.tower.wakes[-1] == -(-one.lease_until // MINUTE) * MINUTE


def test_s01_what_a_tick_finds_late_marks_its_bell(stack: Stack) -> None:
    stack.put(cron=HOURLY)
    stack.move()
    stack.now = NOON + HOUR + LATE_MS
    [late] = stack.store.index.claim_due(stack.now, late=LATE_MS)
    stack.managed.saw_late(replace(late, nominal_at=NOON + HOUR + 1))
    assert stack.pending() == []
    stack.managed.saw_late(late)
    assert stack.pending() == [ADA]


# The hourly count.


def test_s01_the_count_makes_what_is_missing_and_deletes_what_has_no_row(stack: Stack) -> None:
    for key in "abc":
        stack.put(key)
    stack.move()
    row = stack.store.index.get("ada", "a")
    assert row is not None
    stray = bell_of(replace(row, key="stray"), NOON)
    assert stray is not None
    stack.tower.bells[stray.name] = stray
    del stack.tower.bells[bell_name("ada", "b")]
    assert stack.count() == (1, 1)
    assert set(stack.tower.bells) == {bell_name("ada", key) for key in "abc"}
    assert stack.count() == (0, 0)


def test_s01_of_very_many_each_hour_counts_a_part(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        stack.put(f"k{number}")
    stack.move()
    monkeypatch.setattr(counting, "AT_ONCE", 10)
    stack.store.shelf.keep_note("census", json.dumps({"at": NOON, "active": 40}))
    stack.tower.bells.clear()
    found = 0
    for hour in range(16):
        stack.now = NOON + hour * HOUR
        missing = stack.count().missing
        assert missing < 40
        found += missing
    assert found == 40
    assert len(stack.tower.bells) == 40


# Erasure, and what operators see.


def test_s01_an_erasure_takes_the_bells_along_or_does_not_happen(stack: Stack) -> None:
    stack.put()
    stack.put(user="ada2")
    stack.move()
    stack.tower.away = True
    with pytest.raises(BellsUnavailable):
        stack.store.erase("ada")
    assert stack.store.schedules.get(*ADA) is not None
    assert stack.pending() == [ADA]
    stack.tower.away = False
    assert stack.store.erase("ada") == 1
    assert [*stack.tower.bells] == [bell_name("ada2", "digest")]
    assert stack.pending() == []


def test_s01_the_overview_says_what_is_pending_and_since_when(stack: Stack) -> None:
    assert overview(stack.store, NOON)["bells"] is None
    stack.move()
    stack.tower.away = True
    stack.put()
    shown = overview(stack.store, NOON + HOUR)
    assert shown["bells"] == {
        "pending": {"count": 1, "more": False},
        "since": "2027-03-01T12:00:00Z",
        "areLate": False,
    }
    assert [*wrong_in(shown)][-1].kind != "bells"
    [*_, late] = wrong_in(overview(stack.store, NOON + 2 * HOUR))
    assert late.kind == "bells"
    assert "up to an hour late" in late.said
