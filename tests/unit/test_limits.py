"""O-03: the rules of a limit, as arithmetic on its one item."""

import json
from dataclasses import replace
from random import Random

import pytest
from duetick.domain.errors import InvalidSchedule
from duetick.domain.limits import (
    MOST_AT_ONCE,
    Limit,
    LimitLease,
    Limits,
    check_limited,
    digest_of,
)
from duetick.domain.occurrence import Occurrence
from duetick.domain.standing import StandingOrder
from duetick.domain.states import State
from duetick.domain.transitions import due_again, hold_back, is_held_back, lease

NOON = 1_803_902_400_000
MINUTE = 60_000
LEASE = MINUTE
DIGEST = "0123456789abcdef"


def occurrence(key: str = "k", user: str = "ada", flow: str = "mail") -> Occurrence:
    """Return an occurrence that waits."""
    return Occurrence(
        user, key, "* * * * *", None, NOON, flow=flow, state=State.SCHEDULED, due_at=NOON
    )


def taken(limit: Limit, *names: str, now: int = NOON) -> Limit:
    """Return the limit after each of them has taken a lease."""
    for name in names:
        after = limit.take(name, 1, now + LEASE, now)
        assert after is not None, name
        limit = after
    return limit


@pytest.mark.parametrize("seed", range(60))
def test_o03_whatever_happens_no_more_have_leases_than_it_allows(seed: int) -> None:
    """Beside a plain list of who runs until when, and of who has begun when."""
    drawn = Random(seed)
    limit = Limit("flow:mail", parallel=drawn.randint(1, 4), rate=drawn.choice((None, 3, 9)))
    running: dict[str, tuple[int, int]] = {}
    begun: list[int] = []
    now = NOON
    for step in range(200):
        now += drawn.choice((0, 1, 5_000, 30_000, 61_000))
        running = {name: one for name, one in running.items() if one[1] > now}
        name, fence = f"{drawn.randrange(8):016x}", step
        counted = [at for at in begun if at // MINUTE == now // MINUTE]
        if drawn.random() < 0.3 and name in running:
            fence = running[name][0]
            assert limit.take(name, fence, now + LEASE, now) is not None
            limit = limit.give_back(name, fence)
            del running[name]
            continue
        others = len(running.keys() - {name})
        room = others < limit.at_once and (limit.rate is None or len(counted) < limit.rate)
        after = limit.take(name, fence, now + LEASE, now)
        assert (after is not None) == room
        if after:
            limit = after
            running[name] = fence, now + LEASE
            begun.append(now)
        assert len(limit.live(now)) == len(running)
        assert Limit.load(StandingOrder("limit", "n", NOON, limit.dump()))._replace(
            order=None
        ) == limit._replace(leases=dict(limit.leases))


def test_o03_there_is_a_place_at_the_instant_that_it_names_and_not_before() -> None:
    limit = taken(Limit("flow:mail", parallel=2, rate=3), "a", "b")
    at = limit.free_at(NOON)
    assert at == NOON + LEASE
    assert limit.take("c", 1, at + LEASE, at - 1) is None
    assert limit.take("c", 1, at + LEASE, at) is not None
    limit = taken(limit.give_back("a", 1), "c").give_back("b", 1).give_back("c", 1)
    assert limit.free_at(NOON) == NOON + MINUTE
    assert limit.take("d", 1, NOON, NOON + MINUTE - 1) is None
    assert limit.take("d", 1, NOON + 2 * MINUTE, NOON + MINUTE) is not None
    assert Limit("flow:mail", parallel=1).free_at(NOON) == NOON


def test_o03_a_lower_bound_lets_what_runs_end_first() -> None:
    limit = taken(Limit("flow:mail", parallel=3), "a", "b", "c")._replace(parallel=1)
    assert limit.room(NOON) == -2
    assert limit.free_at(NOON) == NOON + LEASE
    assert limit.give_back("a", 1).give_back("b", 1).room(NOON) == 0


def test_o03_a_clock_that_goes_back_counts_in_the_window_that_is_known() -> None:
    limit = taken(Limit("flow:mail", rate=2), "a", now=NOON)
    assert taken(limit, "b", now=NOON - 1).counted == 2
    assert limit.take("b", 1, NOON + LEASE, NOON - 5 * MINUTE) is not None
    assert taken(limit, "b").take("c", 1, NOON + LEASE, NOON - 1) is None


def test_o03_an_unused_lease_is_no_begin() -> None:
    limit = taken(Limit("flow:mail", rate=2), "a", "b")
    assert limit.give_back("a", 1, unused=True).counted == 1
    assert limit.give_back("a", 1).counted == 2
    assert limit.give_back("a", 2, unused=True) == limit
    later = limit.in_window(NOON + MINUTE)
    assert later.give_back("a", 1, unused=True).counted == 0


def test_o03_the_item_stays_small_whatever_is_thrown_at_it() -> None:
    limit = Limit("flow:mail", rate=1_000_000)
    for number in range(3 * MOST_AT_ONCE):
        limit = limit.take(f"{number:016x}", 1, NOON + LEASE, NOON) or limit
    assert len(limit.leases) == MOST_AT_ONCE
    assert len(limit.dump()) < 30_000
    later = taken(limit, "new", now=NOON + LEASE)
    assert list(later.leases) == ["new"]


@pytest.mark.parametrize(
    ("scope", "covered"),
    [
        ("user:ada", True),
        ("user:", False),
        ("user:bob", False),
        ("flow:mail", True),
        ("flow:", False),
        ("flow:mai", False),
        ("action:mail/send", True),
        ("action:mail/other", False),
        ("action:other/send", False),
    ],
)
def test_o03_a_scope_covers_its_own_alone(scope: str, *, covered: bool) -> None:
    limits = Limits((Limit(scope, parallel=1),))
    assert bool(limits.of("ada", "mail", "send")) is covered
    assert limits.concerns("ada", "mail") or not covered
    assert not limits.of("", "", "")


def test_o03_nobody_without_a_user_or_a_flow_is_covered_by_those() -> None:
    limits = Limits(tuple(Limit(one, parallel=1) for one in ("user:ada", "flow:mail")))
    assert [one.scope for one in limits.of("ada", "", "send")] == ["user:ada"]
    assert [one.scope for one in limits.of("", "mail", "nightly")] == ["flow:mail"]
    assert not limits.concerns("bob", "other")
    assert limits.concerns("bob", None)


def test_o03_a_pick_takes_the_first_that_have_a_place_in_each_limit() -> None:
    limits = Limits(
        (Limit("user:ada", parallel=2), Limit("action:mail/send", parallel=3)),
        mine={digest_of(("x", "y", 1, "schedule")): ("user:ada",)},
    )
    found = [occurrence(f"k{n}", user) for n, user in enumerate(("ada", "ada", *["bob"] * 3))]
    picked = limits.pick(found, lambda _: "send", NOON)
    assert [one.key for one in picked] == ["k0", "k2", "k3"]
    assert limits.picked[picked[0].identity] == ("user:ada", "action:mail/send")


def test_o03_what_lost_its_attempt_is_picked_whatever_the_room() -> None:
    """A tick has to decide about it, and a dead one takes no place."""
    limits = Limits((taken(Limit("user:ada", parallel=1), DIGEST),))
    lost = replace(occurrence(), state=State.PROCESSING, attempts=1)
    again = replace(occurrence("again"), state=State.QUEUED, attempts=1)
    waits = replace(occurrence("waits"), state=State.QUEUED)
    assert limits.pick([lost, again, waits], lambda _: "", NOON) == [lost, again]
    assert not limits.keeps_back(lost, "", NOON)
    assert limits.keeps_back(waits, "", NOON)


def test_o03_waiting_is_no_lateness() -> None:
    held = hold_back(replace(occurrence(), state=State.QUEUED, fence=1, lease_until=NOON), NOON)
    assert is_held_back(held)
    leased = lease(due_again(held, NOON + MINUTE), NOON + MINUTE)
    assert leased.due_at == NOON + MINUTE
    assert not is_held_back(leased)
    assert due_again(held, NOON - MINUTE).due_at == held.due_at


def test_a_digest_tells_nothing_of_its_user_and_is_told_apart() -> None:
    names = [("ada", "k", 1, "schedule"), ("ada", "k1", 1, "schedule"), ("ad", "ak", 1, "schedule")]
    assert len({digest_of(name) for name in names}) == 3
    assert len(digest_of(("a\ud800", "k", 1, "schedule"))) == len(DIGEST)


def test_a_body_of_a_later_release_is_read() -> None:
    limit = taken(Limit("flow:mail", parallel=1, note="ß"), DIGEST)
    body = json.dumps(json.loads(limit.dump()) | {"burst": 3})
    read = Limit.load(StandingOrder("limit", "n", NOON, body))
    assert read.leases == {DIGEST: LimitLease(1, NOON + LEASE, NOON)}
    assert (read.note, read.parallel) == ("ß", 1)


@pytest.mark.parametrize(
    "text",
    ["", "all", "user", "user:", "flow:", "action:a", "action:/b", "action:a/", "action:a/b/c"],
)
def test_a_scope_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule):
        check_limited(text)
