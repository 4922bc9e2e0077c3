"""Claimers that are killed at every instant of a claim; nothing may be lost or made twice.

A claimer is a process that stops at two gates: before its claim, and after it, when the claim is
committed but nobody has been told. It is killed at the first gate, between the two after some
while, or at the second. The store tells where a kill between the gates landed: either the whole
claim was committed, and its answer was lost, or the claimer died inside.

It needs a function that opens a store, in this process and in the killed ones:

    massacre = Massacre(my_module.open_my_store, wanted=50)
    massacre.run(most=1_000)
    massacre.finish()
    assert massacre.recorded() == massacre.expected()

Where a server may go on for a moment without its client, `_look` has to wait for it.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing.connection import Connection
from time import perf_counter

from duetick.core.store import Store
from duetick.domain.policies import Policies
from duetick.domain.schedule import IndexRow
from duetick.testing.conformance.samples import DAY, EACH_MINUTE, MINUTE, NOON
from duetick.testing.conformance.suite import must

from tests.integration.claimers import Opens, forked

ROWS = 20
GOLDEN = 0.618034
"""Its multiples, without their whole part, visit every instant evenly."""

PATIENT = Policies(longest_lateness=7 * 86_400)


class Landed(StrEnum):
    """The place at which a kill landed."""

    BEFORE = "before"
    INSIDE = "inside"
    UNANSWERED = "unanswered"


def claim_between_gates(opens: Opens, now: int, pipe: Connection) -> None:
    """Claim in the process that is killed."""
    store = opens()
    store.check_schema()
    pipe.send("ready")
    pipe.recv()
    store.index.claim_due(now, ROWS)
    pipe.send("claimed")
    pipe.recv()


@dataclass
class Massacre:
    """Kills claimers of one store until each kind of kill has landed often enough."""

    opens: Opens
    wanted: int
    landed: Counter[Landed] = field(default_factory=Counter)
    minutes: int = 0
    claimer_opens: Opens | None = None
    """The address with a name for claimers, so that the server can tell them from others."""

    def __post_init__(self) -> None:
        self._store = self.opens()
        self._context = forked()
        self._duration = 0.0

    @property
    def now(self) -> int:
        """The minute that is due: it goes on when a claim has been committed."""
        return NOON + self.minutes * MINUTE

    def run(self, most: int) -> None:
        """Kill until it is enough, or `most` have been killed."""
        for number in range(ROWS):
            row = IndexRow("ada", f"k{number:02}", EACH_MINUTE, None, NOON, policies=PATIENT)
            self._store.index.upsert(row)
        for number in range(most):
            lacking = [kind for kind in Landed if self.landed[kind] < self.wanted]
            if not lacking:
                return
            self._kill(lacking[number % len(lacking)], number * GOLDEN % 1)

    def _kill(self, aim: Landed, part: float) -> None:
        mine, theirs = self._context.Pipe()
        args = (self.claimer_opens or self.opens, self.now, theirs)
        process = self._context.Process(target=claim_between_gates, args=args)
        process.start()
        theirs.close()
        mine.recv()
        if aim is not Landed.BEFORE:
            self._let_claim(mine, aim, part)
        process.kill()
        process.join(timeout=60)
        mine.close()
        self.landed[self._look(aim)] += 1

    def _let_claim(self, pipe: Connection, aim: Landed, part: float) -> None:
        """Let it claim up to the second gate, or for a part of the time that it takes to get
        there.
        """
        began = perf_counter()
        pipe.send("go")
        # The time is measured anew whenever one gets there: one that a busy machine held up would
        # have all others killed too late.
        if aim is not Landed.INSIDE or not self._duration or pipe.poll(part * self._duration):
            pipe.recv()
            self._duration = perf_counter() - began

    def _look(self, aim: Landed) -> Landed:
        """Return the place of a kill, by the store's data: after a commit, nothing is due."""
        if aim is Landed.BEFORE:
            return aim
        advanced = [self._next(number) > self.now for number in range(ROWS)]
        if not all(advanced):
            return Landed.INSIDE
        self.minutes += 1
        return Landed.UNANSWERED

    def _next(self, number: int) -> int:
        return must(self._store.index.get("ada", f"k{number:02}")).next_fire_at

    def finish(self) -> None:
        """Claim the rows that the last one left."""
        while self._store.index.claim_due(self.now, ROWS):
            pass
        self.minutes += 1

    def expected(self) -> Counter[tuple[str, int]]:
        """Return every nominal time of every row, once."""
        times = [NOON + minute * MINUTE for minute in range(self.minutes)]
        return Counter((f"k{number:02}", time) for number in range(ROWS) for time in times)

    def recorded(self) -> Counter[tuple[str, int]]:
        """Return the occurrences of the ledger."""
        found: Counter[tuple[str, int]] = Counter()
        for number in range(ROWS):
            held = self._store.ledger.find("ada", f"k{number:02}", limit=100_000)
            found.update((one.key, one.nominal_at) for one in held)
        return found

    def recovered(self) -> Counter[tuple[str, int]]:
        """Return the occurrences that a claim hands out again after the leases of the dead."""
        found: Counter[tuple[str, int]] = Counter()
        later = self.now + DAY
        while chunk := self._store.ledger.claim_waiting(later, 500):
            found.update((one.key, one.nominal_at) for one in chunk)
        return found

    def store(self) -> Store:
        """Return the store, to look further."""
        return self._store
