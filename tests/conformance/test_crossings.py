"""The crossing table: each verb of a book meets each policy in a test that `crossings.csv` names.

A row `*` is the random driver, which compares the stores in worlds where everything may happen. The
driver counts for a crossing only if the worlds really drive the verb on a schedule with that
policy.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import pytest
from duetick.core.store import Store
from duetick.domain import pausing
from duetick.domain.book import Book
from duetick.domain.policies import Policies
from duetick.ports import Terms

from tests.conformance.chances import USER
from tests.conformance.looks import KEYS
from tests.conformance.memory_shelf import MemoryShelf
from tests.conformance.sides import Answers, Ask
from tests.conformance.world import World

TOP: Final = Path(__file__).parents[2]
TABLE: Final = TOP / "tests" / "crossings.csv"

ERASE: Final = "erase"
"""The one verb that loads no book."""

READS: Final = frozenset(
    {"view", "lost", "discarded", "find_recorded", "copy", "foresee", "may_begin", "job"}
)
"""The methods of a book that change nothing."""

POLICIES: Final = frozenset(field.name for field in fields(Policies))
TERMS: Final = frozenset(Terms._fields) | {"look_ahead", "share", "pauses", "limits"}
"""The conditions of a verb that are no policies of a schedule."""

QUESTIONS: Final = {
    "upsert": "put_row",
    "remove": "remove_row",
    "claim waiting": "lease",
    "effects": "settle_running",
    "rebuild": "mend",
    "run": "bring",
    "edit": "put",
}
"""The verbs that the worlds call otherwise."""

LEAST: Final = 3
"""The least times that the worlds have to drive a crossing."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A row of the table."""

    verb: str
    policy: str
    stores: str
    test: str


def crossings() -> list[Crossing]:
    """Return the crossing table."""
    with TABLE.open(encoding="utf-8") as text:
        return [Crossing(**row) for row in csv.DictReader(text)]


def verbs() -> set[str]:
    """Return the verbs: a book's methods that change it, a user's two changes by them, and
    erase.
    """
    of_book = {name for name in vars(Book) if not name.startswith("_")} - READS
    of_book -= {field.name for field in fields(Book)}
    return of_book | {pausing.pause.__name__, pausing.resume.__name__, ERASE}


def driven() -> Counter[tuple[str, str]]:
    """Count the verbs that the worlds ask of a schedule with each policy."""
    counted: Counter[tuple[str, str]] = Counter()
    for seed in range(150):
        world = CountedWorld({"memory": Store(MemoryShelf())}, seed)
        world.goes_on(60)
        counted += world.driven
    return counted


class CountedWorld(World):
    """A world that counts which policies meet each question."""

    def __init__(self, stores: dict[str, Store], seed: int) -> None:
        super().__init__(stores, seed)
        self._store = stores["memory"]
        self.driven: Counter[tuple[str, str]] = Counter()

    def each(self, question: str, ask: Ask, *details: object) -> Answers:
        """Count, and go on."""
        way = str(details[1]).partition(" ")[0] if question == "edit" else ""
        verb = way if way in ("pause", "resume") else QUESTIONS.get(question, question)
        self.driven.update((verb, policy) for policy in set(self._policies()))
        return super().each(question, ask, *details)

    def _policies(self) -> Iterator[str]:
        usual = Policies()
        for record in filter(None, (self._store.schedules.get(USER, key) for key in KEYS)):
            for policy in POLICIES:
                if getattr(record.policies, policy) != getattr(usual, policy):
                    yield policy


def test_every_verb_of_a_book_is_in_the_table() -> None:
    assert {row.verb for row in crossings()} == verbs()


def test_every_policy_and_every_term_is_in_the_table() -> None:
    named = {row.policy for row in crossings()} - {"*"}
    assert named <= POLICIES | TERMS
    assert named >= TERMS, "a term is driven by no world: name its tests"


def test_every_verb_meets_every_policy_on_every_store() -> None:
    everywhere = {row.verb for row in crossings() if (row.policy, row.stores) == ("*", "every")}
    assert everywhere == verbs()


@pytest.mark.parametrize("test", sorted({row.test for row in crossings()}))
def test_each_test_of_the_table_is_there(test: str) -> None:
    path, _, name = test.partition("::")
    assert re.search(rf"^ *def {name}\(", (TOP / path).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.slow
def test_the_worlds_drive_every_crossing() -> None:
    counted = driven()
    missing = {
        (verb, policy) for verb in verbs() for policy in POLICIES if counted[verb, policy] < LEAST
    }
    assert not missing
