"""O-02: the rules of a group's pause, and the times that lie outside of it."""

from collections.abc import Sequence

import pytest
from duetick.core.standing import FreshOrders
from duetick.core.store import Store
from duetick.domain.errors import InvalidSchedule
from duetick.domain.firing import Decision, TimesOutside, decide
from duetick.domain.group_pauses import (
    GroupPause,
    Hole,
    Pauses,
    check_scope,
    merge,
    order_name,
    user_of,
)
from duetick.domain.occurrence import LATEST, IndexRow
from duetick.domain.policies import Misfire, Policies
from duetick.domain.standing import StandingOrder, prefix_of_user
from duetick.testing.conformance.samples import HOUR, MINUTE, NOON
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.memory_shelf import MemoryShelf

ALL = GroupPause("all", NOON)
EACH_MINUTE = "* * * * *"
minutes = st.integers(-5, 40).map(lambda n: NOON + n * MINUTE // 2)
holes = st.lists(st.tuples(minutes, minutes), max_size=4).map(merge)


def outside(spans: Sequence[Hole]) -> TimesOutside:
    """Return the times of each minute outside of some spans."""
    return TimesOutside(EACH_MINUTE, None, 0, Policies(), tuple(spans))


def named(spans: Sequence[Hole], after: int, until: int) -> list[int]:
    """Return the same, minute by minute."""
    every = range(after // MINUTE * MINUTE + MINUTE, until + 1, MINUTE)
    return [at for at in every if not any(first <= at < end for first, end in spans)]


@given(holes, minutes, minutes)
def test_times_outside_of_spans_are_the_others(spans: Sequence[Hole], one: int, two: int) -> None:
    after, until = sorted((one, two))
    wanted, times = named(spans, after, until), outside(spans)
    assert times.between(after, until) == wanted
    assert times.count(after, until) == len(wanted)
    assert times.newest(after, until) == (wanted[-1] if wanted else None)
    assert times.after(after) == named(spans, after, NOON + 2 * HOUR)[0]


@given(holes, minutes, st.sampled_from(Misfire), st.sampled_from((0, 60, 600)))
def test_o02_every_time_outside_of_a_pause_fires_or_is_missed_once(
    spans: Sequence[Hole], now: int, misfire: Misfire, grace: int
) -> None:
    row = IndexRow(
        "ada", "k", EACH_MINUTE, None, NOON, policies=Policies(misfire=misfire, grace=grace)
    )
    if now < NOON:
        return
    found = decide(row, now, 0, tuple(spans))
    assert sorted(told(found)) == named(spans, NOON - 1, now)
    assert found.next_at is not None
    assert found.next_at > now


def told(found: Decision) -> list[int]:
    """Return all times of a decision."""
    missed = [range(one.first, one.last + 1, MINUTE) for one in found.missed]
    assert [len(one) for one in missed] == [one.count for one in found.missed]
    return [*found.fires, *(at for one in missed for at in one)]


def test_o02_a_claim_leaves_out_what_was_announced_alone() -> None:
    assert ALL.hole == (NOON, 1)
    announced = ALL.announce(NOON + MINUTE)
    assert announced is not None
    assert announced.hole == (NOON, NOON + MINUTE + 1)
    assert announced.announce(NOON + MINUTE) is None


def test_o02_a_resume_takes_effect_after_what_was_announced() -> None:
    ended = ALL._replace(reached=NOON + MINUTE).resume(NOON + 1, "ops")
    assert (ended.until, ended.resumed_at, ended.resumed_by) == (NOON + MINUTE + 1, NOON + 1, "ops")
    assert ended.hole == (NOON, NOON + MINUTE + 1)
    assert ended.announce(NOON + HOUR) is None


def test_o02_an_end_is_announced_once_and_no_further() -> None:
    until = ALL._replace(until=NOON + MINUTE)
    announced = until.announce(NOON + HOUR)
    assert announced is not None
    assert announced.hole == (NOON, NOON + MINUTE)
    assert announced.announce(NOON + 2 * HOUR) is None
    assert announced.resume(NOON + 1, "ops").until == NOON + MINUTE


def test_o02_a_pause_is_kept_as_it_is() -> None:
    told_all = GroupPause("user:ä#%", NOON, NOON + 1, 'a "note"', "ops", NOON, NOON + 1, "night")
    order = StandingOrder("pause", order_name("user:ä#%", NOON), NOON, told_all.dump())
    assert GroupPause.load(order) == told_all._replace(order=order)
    assert ALL.end == LATEST


def test_o02_the_name_of_an_order_begins_with_its_user_and_with_no_other() -> None:
    names = [order_name(f"user:{user}", NOON) for user in ("a", "a#1", "a%23", "ab")]
    assert [name.startswith(prefix_of_user("a")) for name in names] == [True, False, False, False]
    assert len(set(names)) == 4


def test_o02_the_user_of_a_scope_is_told_of_no_other_scope() -> None:
    scopes = ("user:a#:b", "flow:user:a", "all")
    assert [user_of(scope) for scope in scopes] == ["a#:b", None, None]


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        ("all", {"ada mail", "ada post", "bob mail", " mail", "ada "}),
        ("user:ada", {"ada mail", "ada post", "ada "}),
        ("flow:mail", {"ada mail", "bob mail", " mail"}),
    ],
)
def test_o02_a_scope_has_its_schedules_and_no_others(scope: str, covered: set[str]) -> None:
    pauses = Pauses((GroupPause(scope, NOON),))
    every = [("ada", "mail"), ("ada", "post"), ("bob", "mail"), ("", "mail"), ("ada", "")]
    assert {f"{user} {flow}" for user, flow in every if pauses.of(user, flow)} == covered


@pytest.mark.parametrize("text", ["", "ada", "user:", "flow:", "all:x", "ALL"])
def test_o02_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule, match=r"user:<id>, flow:<name> or all"):
        check_scope(text)


def test_o02_spans_that_touch_are_one() -> None:
    assert merge([(3, 5), (1, 3), (7, 7), (4, 6)]) == ((1, 6),)


class CountedShelf(MemoryShelf):
    """A shelf that counts the reads of its orders."""

    reads = 0

    def standing(self) -> Sequence[StandingOrder]:
        """See `ports.Shelf`."""
        self.reads += 1
        return super().standing()


def test_o02_what_was_read_is_used_for_five_seconds() -> None:
    shelf = CountedShelf()
    orders = FreshOrders(shelf)
    for now in (NOON, NOON + 4_999, NOON + 5_000, NOON + 9_999, NOON - 1):
        orders.at(now)
    assert shelf.reads == 3


def test_o02_a_pause_of_this_process_is_seen_at_once() -> None:
    store = Store(MemoryShelf())
    assert not store.pauses.current(NOON)
    store.pauses.pause("all", now=NOON)
    assert store.pauses.current(NOON).holding("ada", "mail", NOON)
