"""A-02 over random lives: explain agrees with the ledger, and with the next tick and begin.

Each question about a time to come is asked of one snapshot: a copy of the store lives on until that
time, minute by minute, and nobody changes the schedule.
"""

from dataclasses import replace
from random import Random
from typing import Final

import pytest
from duetick.core.explain import explain
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.errors import NotFound
from duetick.domain.occurrence import Lease, Leased, Occurrence
from duetick.domain.policies import Delivery, Overlap
from duetick.domain.schedule import Schedule
from duetick.domain.states import State
from duetick.domain.transitions import has_ended
from duetick.domain.verdicts import Verdict
from duetick.testing.conformance.samples import DAY, MINUTE
from duetick.testing.conformance.suite import FAILED, drain

from tests.conformance.lives import USER, Life, spelled_out
from tests.conformance.memory_shelf import MemoryPages, MemoryShelf

pytestmark = pytest.mark.slow

NOBODYS: Final = Lease(USER, "none", 0, "schedule", "", 1)
LIVES: Final = range(150)
STEPS: Final = 25
SPREADS: Final = (0, 0, 0, 45, 90)
LIMITS: Final = (None, None, 3, 8)
NEVER: Final = {"unaccounted", "unindexed", "unknown", "unreadable"}


class ExplainedLife(Life):
    """A life with any overlap, a spread, a limit of runs, and attempts that fail or are lost."""

    def change(self, wanted: Schedule) -> None:
        policies = replace(
            wanted.policies,
            overlap=self.random.choice(list(Overlap)),
            spread=self.random.choice(SPREADS),
            max_runs=self.random.choice(LIMITS),
            delivery=self.random.choice((Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE)),
        )
        made = self.store.schedules.put(replace(wanted, policies=policies), now=self.now)
        self.since, self.cron = made.redefined_at, made.cron

    def begin(self) -> None:
        """Begin one; it succeeds, fails, or is never settled."""
        held: Leased = self.random.choice(self.held) if self.held else NOBODYS
        answer = self.store.ledger.begin(held, now=self.now)
        outcome = self.random.choice((SUCCEEDED, FAILED, None))
        if isinstance(answer, Begun) and outcome:
            self.store.ledger.settle(answer.occurrence, outcome, now=self.now)

    def close(self) -> None:
        """Owe nothing: verify does the sums here."""

    def verdict(self, at: int) -> Verdict | None:
        """Return the verdict for a time; None if nothing is known of the schedule."""
        try:
            return explain(self.store, USER, self.key, at, self.now).verdict
        except NotFound:
            return None

    def may_wait_for_a_run(self) -> bool:
        """Return True if there is a limit, and an attempt under way decides if a run counts."""
        record, found = self.record, self.store.ledger.find(USER, self.key, limit=1_000)
        under_way = any(one.attempts and not has_ended(one) for one in found)
        return under_way and record is not None and record.policies.max_runs is not None

    def entries(self) -> dict[int, Occurrence]:
        """Return the entry of each time that the ledger has."""
        found = self.store.ledger.find(USER, self.key, limit=100_000)
        own = [one for one in found if one.origin == "schedule"]
        return {at: one for one in own for at in spelled_out(one)}


def snapshot(store: Store) -> Store:
    """Return a copy of a store in memory."""
    shelf = store.shelf
    assert isinstance(shelf, MemoryShelf)
    copy = MemoryShelf(
        ledger=dict(shelf.ledger),
        happened={name: [*events] for name, events in shelf.happened.items()},
        definitions={name: [*dated] for name, dated in shelf.definitions.items()},
        zones=dict(shelf.zones),
        ordered=dict(shelf.ordered),
    )
    for name, book in shelf.books.items():
        copy.books[name] = replace(book, pages=MemoryPages(copy, name))
    return Store(copy)


def lives_on(store: Store, key: str, since: int, until: int) -> Occurrence | None:
    """Let each tick come in its minute, and each occurrence succeed. Return the last occurrence."""
    first = since - since % MINUTE + MINUTE
    held = [*store.ledger.find(USER, key, state=State.QUEUED, limit=1_000)]
    for now in (since, *range(first, until + 3 * MINUTE, MINUTE)):
        pauses = store.pauses.announce(now, now)
        held += store.ledger.claim_waiting(now, 100, pauses=pauses)
        held += drain(store, now, pauses=pauses)
        due = sorted((one for one in held if one.due_at < now + MINUTE), key=_due)
        held = [one for one in held if one not in due]
        for one in due:
            begun = store.ledger.begin(one, now=max(now, one.due_at))
            if isinstance(begun, Begun):
                store.ledger.settle(begun.occurrence, SUCCEEDED, now=max(now, one.due_at))
    return store.ledger.get(USER, key, until, "schedule")


def _due(one: Occurrence) -> tuple[int, int]:
    return one.due_at, one.nominal_at


def lived(seed: int) -> ExplainedLife:
    life = ExplainedLife(Store(MemoryShelf()), f"k{seed}", Random(seed))
    life.goes_on(STEPS)
    return life


@pytest.mark.parametrize("seed", LIVES)
def test_a02_what_explain_says_of_a_past_time_is_what_the_ledger_has(seed: int) -> None:
    life = lived(seed)
    entries, first = life.entries(), life.now - life.now % MINUTE
    for at in range(first - 60 * MINUTE, first + 1, MINUTE):
        found, said = entries.get(at), life.verdict(at)
        where = f"{at}: {said}, {found}\n" + "\n".join(life.told)
        assert said not in NEVER, where
        if found is None:
            assert said not in {"fired", "failed", "lost", "running"}, where
        elif has_ended(found):
            assert said == found.reason, where
        else:
            assert said in {
                "running",
                "will_fire",
                "will_retry",
                "may_overlap",
                "lost",
                "quota",
            } | {
                "disabled",
                "schedule_deleted",
                "superseded",
            }, where


@pytest.mark.parametrize("seed", LIVES)
def test_a02_explain_says_will_fire_if_and_only_if_a_tick_and_a_begin_fire_it(seed: int) -> None:
    life = lived(seed)
    first = life.now - life.now % MINUTE + MINUTE
    for at in range(first, first + 25 * MINUTE, MINUTE):
        said = life.verdict(at)
        found = lives_on(snapshot(life.store), life.key, life.now, at)
        fired = found is not None and found.state is State.SUCCEEDED
        where = f"{at}: {said}, {found}\n" + "\n".join(life.told)
        assert said not in NEVER, where
        if said != "may_overlap" and not life.may_wait_for_a_run():
            assert (said in ("will_fire", "fired")) == fired, where


@pytest.mark.parametrize("seed", LIVES)
def test_a02_what_explain_foresees_of_a_claimed_time_is_what_its_begin_answers(seed: int) -> None:
    life = lived(seed)
    for at, found in life.entries().items():
        if has_ended(found) or found.state is State.PROCESSING:
            continue
        said, copy = life.verdict(at), snapshot(life.store)
        then = max(life.now, min(found.due_at, life.now + DAY))
        pauses = copy.pauses.current(then)
        leased = [*copy.ledger.claim_waiting(then, 1_000, pauses=pauses), found]
        if then > life.now and any(one.attempts for one in leased if one != found):
            continue  # it may have been retried by then
        own = next(one for one in leased if one.identity == found.identity)
        answer = copy.ledger.begin(own, now=then)
        where = f"{at}: {said}, {found}, {answer}\n" + "\n".join(life.told)
        if isinstance(answer, Begun):
            assert said in ("will_fire", "will_retry", "quota", "may_overlap"), where
        elif answer.verdict == "cancelled":
            assert said in (answer.reason, "may_overlap"), where
