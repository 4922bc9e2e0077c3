"""Stories at random: no promise is broken, on any store, wherever a process dies."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import getmembers, isfunction
from itertools import chain, count, islice

import pytest
from duetick.domain.expression import digest_of, next_fire
from duetick.domain.expression.zones import ZONES
from duetick.domain.policies import Policies
from duetick.ports import Shelf
from duetick.testing.conformance.samples import HOUR, MINUTE

from tests.conformance.chances import START
from tests.lab.dynamodb import DynamoDB
from tests.simulation.everything import MAIL, everything, everything_rung
from tests.simulation.grounds import DynamoGround, Ground, PostgresGround, SqliteGround
from tests.simulation.planted import FOUND_BY, ONLY_WITH, PLANTED
from tests.simulation.story import (
    OF_BELLS,
    OF_VERBS,
    PORT,
    WAY_OF_PACKS,
    WAY_TO_DISPATCH,
    Act,
    Fault,
    Kind,
    Story,
    story_of,
)
from tests.simulation.telling import SHRINK_SECONDS, Teller, explain

OUTSIDE = {
    "take_in",
    "change",
    "write_lease",
    "now",
    "migrate",
    "check_schema",
    "close",
    "dialect",
    "account",
    "add_operation",
    "end_operation",
    "operations",
    "tally",
    "body",
    "rules",
    "extend",
    "locks",
    "workers",
    "free_bell",
    "read_alike",
    "walk_units",
}
"""What no simulated process calls by that name, or seldom: changes have names of their own."""


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    ground = SqliteGround(tmp_path_factory.mktemp("simulated"))
    yield ground
    ground.close()


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Ground]:
    ground = PostgresGround(postgres_url)
    yield ground
    ground.close()


@pytest.fixture
def dynamodb(dynamodb_local: DynamoDB) -> Iterator[Ground]:
    ground = DynamoGround(dynamodb_local.endpoint)
    yield ground
    ground.close()


CALLS = (*PORT, *chain.from_iterable(OF_VERBS.values()))
BOUNDARIES = (*CALLS, *WAY_TO_DISPATCH)


def tell(ground: Ground, seeds: range, *, inside: bool = False) -> None:
    """Tell each story. One that fails is shrunk, so that a person can read it."""
    teller = Teller(ground, inside=inside)
    for seed in seeds:
        story = story_of(seed, inside=inside)
        if teller.tell(story).flaws:
            pytest.fail(explain(teller.shrink(story)))


@pytest.mark.slow
def test_no_story_breaks_a_promise(sqlite: Ground) -> None:
    tell(sqlite, range(10))


@pytest.mark.slow
@pytest.mark.parametrize("first", [10, 20, 30])
def test_no_further_story_breaks_a_promise(sqlite: Ground, first: int) -> None:
    tell(sqlite, range(first, first + 10))


def packed(seed: int, *, inside: bool = False) -> Story:
    """Return the story of a seed. Its ticks hand packs to a queue."""
    return replace(story_of(seed, inside=inside), by_queue=True, look_ahead=120_000)


def tell_packed(ground: Ground, seeds: range, *, inside: bool = False) -> None:
    """Tell each story, by the queue."""
    teller = Teller(ground, inside=inside)
    for seed in seeds:
        story = packed(seed, inside=inside)
        if teller.tell(story).flaws:
            pytest.fail(explain(teller.shrink(story)))


@pytest.mark.slow
def test_q01_no_story_through_the_queue_breaks_a_promise(sqlite: Ground) -> None:
    tell_packed(sqlite, range(300, 308))


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True])
def test_q01_no_further_story_through_the_queue_breaks_a_promise(
    sqlite: Ground, *, inside: bool
) -> None:
    tell_packed(sqlite, range(310, 322), inside=inside)


@pytest.mark.slow
def test_q01_no_story_through_the_queue_breaks_a_promise_on_postgres(postgres: Ground) -> None:
    tell_packed(postgres, range(330, 335), inside=True)


@pytest.mark.slow
def test_q01_no_story_through_the_queue_breaks_a_promise_on_dynamodb(dynamodb: Ground) -> None:
    tell_packed(dynamodb, range(340, 342))


@pytest.mark.slow
@pytest.mark.parametrize("boundary", ["send", "take", "begin", "settle", "keep_note", "note"])
@pytest.mark.parametrize("kind", ["dies before", "dies after"])
def test_q02_no_crash_on_the_way_of_a_pack_breaks_a_promise(
    sqlite: Ground, boundary: str, kind: Kind
) -> None:
    teller = Teller(sqlite)
    story = replace(everything(), by_queue=True, look_ahead=120_000)
    faults = tuple(Fault(boundary, nth, kind) for nth in (1, 2, 5))
    ended = teller.tell(replace(story, faults=faults))
    assert ended.flaws == [], explain(teller.tell(ended.story, aloud=True))
    assert ended.happened[boundary, kind]


@pytest.mark.slow
@pytest.mark.parametrize("first", [1_000, 1_010])
def test_no_death_inside_a_store_breaks_a_promise(sqlite: Ground, first: int) -> None:
    tell(sqlite, range(first, first + 10), inside=True)


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True])
def test_no_story_breaks_a_promise_on_postgres(postgres: Ground, *, inside: bool) -> None:
    first = 1_104 if inside else 100
    tell(postgres, range(first, first + (7 if inside else 8)), inside=inside)


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True])
def test_no_story_breaks_a_promise_on_dynamodb(dynamodb: Ground, *, inside: bool) -> None:
    first = 1_204 if inside else 203
    tell(dynamodb, range(first, first + (3 if inside else 2)), inside=inside)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 8, 80])
def test_a_story_has_the_same_history_on_each_store(
    sqlite: Ground, postgres: Ground, dynamodb: Ground, seed: int
) -> None:
    """They cross the same boundaries if none has a fast way, and a chunk takes all that is due.

    In each of these, schedules follow new rules of their zones. No bell rings in them: a store may
    ask for a tick sooner than another one.
    """
    told = story_of(seed)
    acts = tuple(act for act in told.acts if act.verb != "move")
    story = replace(told, acts=acts, chunk=1_000)
    ended = [Teller(one, general=True).tell(story) for one in (sqlite, postgres, dynamodb)]
    assert ended[0].history
    assert all(one.crossed["Store.follow_zone"] for one in ended)
    assert ended[1].history == ended[0].history
    assert ended[2].history == ended[0].history


@pytest.mark.slow
def test_a_seed_repeats_itself_to_the_letter(sqlite: Ground) -> None:
    first, second = (Teller(sqlite).tell(story_of(8), aloud=True) for _ in range(2))
    assert len(first.lines) > 10
    assert second.lines == first.lines


@pytest.mark.slow
def test_new_rules_of_zones_end_with_their_story(sqlite: Ground) -> None:
    before = digest_of("Europe/Berlin"), next_fire("30 2 * * *", "Europe/Berlin", START), {*ZONES}
    assert Teller(sqlite).tell(everything()).crossed["Store.follow_zone"]
    after = digest_of("Europe/Berlin"), next_fire("30 2 * * *", "Europe/Berlin", START), {*ZONES}
    assert after == before


def test_every_call_of_the_port_is_a_boundary() -> None:
    methods = {name for name, _ in getmembers(Shelf, isfunction) if not name.startswith("_")}
    assert methods - OUTSIDE == {
        name for name in (*CALLS, *OF_BELLS) if name.islower() and "." not in name
    }


def test_one_story_crosses_every_boundary(sqlite: Ground) -> None:
    ended = Teller(sqlite).tell(everything())
    assert ended.flaws == []
    assert set(ended.crossed) == {*BOUNDARIES}


@pytest.mark.slow
def test_one_story_through_the_queue_crosses_the_way_of_packs(sqlite: Ground) -> None:
    ended = Teller(sqlite).tell(replace(everything(), by_queue=True, look_ahead=120_000))
    assert ended.flaws == []
    assert {*WAY_OF_PACKS} <= set(ended.crossed)


def test_s01_one_story_crosses_every_boundary_of_bells(sqlite: Ground) -> None:
    ended = Teller(sqlite).tell(everything_rung())
    assert ended.flaws == []
    assert {*OF_BELLS} - set(ended.crossed) == set()


def test_s01_a_bell_that_rang_for_the_last_time_is_gone_before_its_ring_is_answered(
    sqlite: Ground,
) -> None:
    policies = Policies(ends_at=START + 2 * HOUR + 30 * MINUTE)
    ends = replace(MAIL, cron="0 * * * *", policies=policies)
    acts = Act(START, "move", ""), Act(START, "put", ends.key, ends)
    ended = Teller(sqlite).tell(Story(6, START, 4 * HOUR, acts))
    assert ended.crossed["Ringer.answer"]
    assert ended.flaws == []


def happens_at_each(
    sqlite: Ground, story: Story, boundaries: Sequence[str], kind: Kind
) -> list[str]:
    """Let the fault happen at each of the boundaries. Return those at which it did not.

    A story has six faults. If one keeps another's boundary from being crossed, that one has a story
    of its own.
    """
    teller = Teller(sqlite)
    crossed = teller.tell(story).crossed

    def tell_of(named: Sequence[str]) -> set[str]:
        """Tell the story with faults at some boundaries. Return those at which they happened."""
        faults = tuple(Fault(one, min(2, crossed[one]), kind) for one in named)
        ended = teller.tell(replace(story, faults=faults))
        assert ended.flaws == [], explain(teller.tell(ended.story, aloud=True))
        return {boundary for boundary, _ in ended.happened}

    stories = -(-len(boundaries) // 6)
    together = [tell_of(boundaries[first::stories]) for first in range(stories)]
    alone = sorted({*boundaries}.difference(*together))
    return [one for one in alone if tell_of([one]) != {one}]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dies before", "dies after", "is refused", "is not answered"])
def test_t05_no_crash_and_no_lost_answer_at_any_boundary_breaks_a_promise(
    sqlite: Ground, kind: Kind
) -> None:
    assert happens_at_each(sqlite, everything(), BOUNDARIES, kind) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dies before", "dies after", "is refused", "is not answered"])
def test_s01_no_crash_and_no_lost_answer_at_any_boundary_of_bells_breaks_a_promise(
    sqlite: Ground, kind: Kind
) -> None:
    assert happens_at_each(sqlite, everything_rung(), OF_BELLS, kind) == []


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found_within_two_hundred_stories(sqlite: Ground, bug: str) -> None:
    inside = "transaction" in bug
    teller = Teller(sqlite, PLANTED[bug], inside=inside)
    seeds = chain([FOUND_BY.get(bug, 0)], count())
    stories = (story_of(seed, inside=inside) for seed in seeds)
    verb = ONLY_WITH.get(bug)
    fitting = (one for one in stories if verb is None or verb in {act.verb for act in one.acts})
    assert any(teller.tell(one).flaws for one in islice(fitting, 200))


def test_a_story_that_fails_on_a_slow_store_is_told_after_a_minute(sqlite: Ground) -> None:
    """Each story takes as long as all of them may."""
    bug = "delete in finally"
    teller = Teller(sqlite, PLANTED[bug], elapsed=count(0.0, SHRINK_SECONDS).__next__)
    story = story_of(FOUND_BY[bug])
    ended = teller.shrink(story)
    assert ended.story == story
    assert ended.flaws
    assert ended.lines


@pytest.mark.slow
def test_a_story_that_fails_shrinks_to_one_that_a_person_can_read(sqlite: Ground) -> None:
    teller = Teller(sqlite, PLANTED["delete in finally"])
    story = next(
        one for one in map(story_of, range(200)) if one.size > 8 and teller.tell(one).flaws
    )
    shrunk = teller.shrink(story)
    assert shrunk.story.size <= 2
    assert len(shrunk.lines) <= 40
    assert "succeeded, and its work was never done" in explain(shrunk)
    assert "begins attempt 1 of ada/k" in explain(shrunk)
