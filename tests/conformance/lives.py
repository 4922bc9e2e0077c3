"""Random lives of one schedule: whatever happens to it, each nominal time has one outcome.

It is created, changed, paused, resumed, disabled, deleted and made again, while ticks claim it,
ahead of time or long after it. What is owed follows from the definitions alone: every time that a
definition names from when it was put to when the next one was. The ledger has to say each of them
once: an occurrence of its own, or part of one range.
"""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from duetick.domain.errors import InvalidSchedule
from duetick.domain.expression import fires
from duetick.domain.pausing import paused, resumed
from duetick.domain.policies import Misfire, Overlap, Policies
from duetick.domain.schedule import Occurrence, Schedule
from duetick.ports import SUCCEEDED, Begun, Store
from duetick.testing.conformance.samples import MINUTE, NOON, SECOND
from duetick.testing.conformance.suite import drain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CRONS = ("* * * * *", "*/2 * * * *", "*/3 * * * *", "1-59/5 * * * *")
STEPS = (1, SECOND, 30 * SECOND, 70 * SECOND, 130 * SECOND, 400 * SECOND, 3_000 * SECOND)
AHEAD = (0, 0, 2 * MINUTE, 5 * MINUTE)
USER = "ada"


class Life:
    """One schedule, and what is owed of it."""

    def __init__(self, store: Store, key: str, random: Random) -> None:
        self.store, self.key, self.random = store, key, random
        self.now = NOON
        self.since: int | None = None
        self.cron = ""
        self.owed: set[int] = set()
        self.held: list[Occurrence] = []
        self.told: list[str] = []

    def goes_on(self, steps: int) -> None:
        """So many things happen to it, and time passes."""
        happens: Sequence[Callable[[], None]] = (
            *(self.put, self.put_under_the_pause, self.pause, self.pause, self.resume),
            *(self.claim, self.claim, self.claim, self.delete, self.begin, self.waiting),
            *(self.toggle, self.lose_the_row, self.call),
        )
        for _ in range(steps):
            self.now += self.random.choice(STEPS)
            happening = self.random.choice(happens)
            self.told.append(f"{(self.now - NOON) / MINUTE:.4f} {happening.__name__}")
            try:
                happening()
            except InvalidSchedule as error:
                self.told.append(f"refused: {error}")

    @property
    def record(self) -> Schedule | None:
        """As it stands."""
        return self.store.schedules.get(USER, self.key)

    def tell(self, what: object) -> None:
        """For whoever has to find out what went wrong."""
        self.told[-1] += f" {what}"

    def change(self, wanted: Schedule) -> None:
        """Put it; what was owed until now is owed by the definition before."""
        self.store.schedules.put(wanted, now=self.now)
        self.close()
        self.since, self.cron = self.now, wanted.cron

    def close(self) -> None:
        """Everything that the definition named until now is owed."""
        if self.since is not None:
            self.owed.update(fires(self.cron, None, self.since, self.now))

    def put(self) -> None:
        record, cron = self.record, self.random.choice(CRONS)
        self.tell(cron)
        if record is None:
            misfire = self.random.choice(list(Misfire))
            policies = Policies(overlap=Overlap.ALLOW, misfire=misfire)
            record = Schedule(USER, self.key, cron, "flow", "act", policies=policies)
        self.change(replace(record, cron=cron))

    def put_under_the_pause(self) -> None:
        """One write that changes the times and pauses."""
        record, cron = self.record, self.random.choice(CRONS)
        self.tell(cron)
        if record:
            self.change(paused(replace(record, cron=cron), "", self.until(), self.now))

    def until(self) -> int | None:
        end = self.random.choice((None, 90 * SECOND, 3 * MINUTE, 20 * MINUTE))
        self.tell(end)
        return end and self.now + end

    def pause(self) -> None:
        record = self.record
        if record:
            self.change(paused(record, "", self.until(), self.now))

    def resume(self) -> None:
        record = self.record
        if record:
            self.change(resumed(record))

    def toggle(self) -> None:
        record = self.record
        if record:
            self.change(replace(record, enabled=not record.enabled))

    def delete(self) -> None:
        if self.store.schedules.delete(USER, self.key, now=self.now):
            self.close()
            self.since = None

    def claim(self) -> None:
        ahead = self.random.choice(AHEAD)
        self.tell(ahead)
        self.held += drain(self.store, self.now, ahead=ahead)

    def waiting(self) -> None:
        self.held += self.store.ledger.claim_waiting(self.now, 100)

    def begin(self) -> None:
        if self.held:
            answer = self.store.ledger.begin(self.random.choice(self.held), now=self.now)
            if isinstance(answer, Begun) and self.random.random() < 0.7:
                self.store.ledger.settle(answer.occurrence, SUCCEEDED, now=self.now)

    def lose_the_row(self) -> None:
        self.store.index.remove(USER, self.key)
        self.store.rebuild(now=self.now)

    def call(self) -> None:
        """An outside scheduler brings one of its times."""
        record = self.record
        if record and record.enabled and self.since is not None:
            times = fires(self.cron, None, self.since, self.now)
            pause = record.pause
            for at in self.random.sample(times, min(1, len(times))):
                if pause is None or pause.until is None or at >= pause.until:
                    asked = Occurrence(USER, self.key, self.cron, None, at, due_at=at, flow="flow")
                    self.store.ledger.begin(asked, now=self.now)

    def ends(self) -> None:
        """What is left is due, and claimed."""
        self.now += MINUTE
        record = self.record
        if record:
            self.change(resumed(record))
            self.now += MINUTE
            drain(self.store, self.now)
            self.close()

    def accounted(self) -> Counter[int]:
        """How often the ledger says each time."""
        found: Counter[int] = Counter()
        for one in self.store.ledger.find(USER, self.key, limit=100_000):
            if one.origin == "schedule":
                found.update(spelled_out(one))
        return found


def spelled_out(one: Occurrence) -> list[int]:
    """Its nominal time, or all those of its range."""
    if one.range_end is None:
        return [one.nominal_at]
    times = fires(one.cron, None, one.nominal_at - 1, one.range_end)
    assert len(times) == one.count, f"{one} says {one.count} times and has {len(times)}"
    return times


def live(store: Store, seed: int, steps: int = 25) -> None:
    """Live one life, and look at its ledger."""
    life = Life(store, f"k{seed}", Random(seed))
    life.goes_on(steps)
    life.ends()
    found = life.accounted()
    twice = [(at - NOON) / MINUTE for at, times in sorted(found.items()) if times > 1]
    missing = [(at - NOON) / MINUTE for at in sorted(life.owed) if at not in found]
    assert (twice, missing) == ([], []), "\n".join([f"in life {seed}:", *life.told])
