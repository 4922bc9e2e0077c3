"""Random lives of one schedule: after all its changes, each nominal time has one outcome.

It is created, changed, paused, resumed, disabled, deleted and made again, while ticks claim it,
ahead of time or long after it. Its user, its flow and everything are paused too. Each of them may
have a clock of its own, and a change may stall between its clock and its write. The definitions
alone say what is owed: every time that a definition names from its put until the next one's. The
ledger has to have each of them once: as an occurrence of its own, or as part of one range. A time
in a pause of a group may have neither.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from duetick.core.store import Store
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.errors import InvalidSchedule, OccurrenceConflict
from duetick.domain.expression import fires
from duetick.domain.group_pauses import Pauses
from duetick.domain.operating import Operator
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Misfire, Overlap, Policies
from duetick.domain.schedule import NewOccurrence, Occurrence, Record, Schedule
from duetick.domain.states import State
from duetick.testing.conformance.samples import MINUTE, NOON, SECOND
from duetick.testing.conformance.suite import drain, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CRONS = ("* * * * *", "*/2 * * * *", "*/3 * * * *", "1-59/5 * * * *")
STEPS = (1, SECOND, 30 * SECOND, 70 * SECOND, 130 * SECOND, 400 * SECOND, 3_000 * SECOND)
AHEAD = (0, 0, 2 * MINUTE, 5 * MINUTE)
USER = "ada"
SCOPES = ("user:ada", "user:bob", "flow:flow", "flow:other", "all")


class BegunTick(NamedTuple):
    """A tick that has read the pauses, and claims some time later."""

    now: int
    ahead: int
    pauses: Pauses


@dataclass(frozen=True)
class Clocks:
    """The deviations of the clocks of ticks and of changes, and the steps of time."""

    of_ticks: tuple[int, ...] = (0,)
    of_changes: tuple[int, ...] = (0,)
    steps: tuple[int, ...] = STEPS


SAME = Clocks()
APART = Clocks(
    of_ticks=tuple(n * SECOND for n in (-60, -30, 0, 1, 30, 60, 60, 240)),
    of_changes=tuple(n * SECOND for n in (-120, -90, -60, -31, -1, 0, 29, 60)),
    steps=tuple(n * SECOND for n in (0, 0, 1, 5, 20, 50, 70, 130, 400)),
)
"""Clocks that disagree: changes also stall for a minute, and a tick may be minutes ahead."""


class Life:
    """One schedule, and the nominal times that its ledger owes."""

    def __init__(self, store: Store, key: str, random: Random, clocks: Clocks = SAME) -> None:
        self.store, self.key, self.random = store, key, random
        self.clocks = clocks
        self.true = self.now = NOON
        self.defined_at = 0
        self.since: int | None = None
        self.cron = ""
        self.owed: set[int] = set()
        self.held: list[Occurrence] = []
        self.ticks: list[BegunTick] = []
        self.told: list[str] = []

    def goes_on(self, steps: int) -> None:
        """Take that many random steps, and let time pass between them."""
        happens: Sequence[Callable[[], None]] = (
            *(self.put, self.put_under_the_pause, self.pause, self.pause, self.resume),
            *(
                self.claim,
                self.claim,
                self.claim,
                self.claim,
                self.delete,
                self.begin,
                self.waiting,
            ),
            *(self.toggle, self.lose_the_row, self.call, self.pass_over, self.operate),
            *(self.pause_group, self.pause_group, self.resume_group, self.resume_group),
            *(self.begin_tick, self.stall, self.stall, self.close_pauses, self.move),
        )
        ticks: Sequence[Callable[[], None]] = (
            *(self.claim, self.waiting, self.begin, self.lose_the_row, self.pass_over),
            *(self.begin_tick, self.stall, self.close_pauses),
        )
        for step in range(steps):
            self.true += self.random.choice(self.clocks.steps)
            happening = self.random.choice(happens) if step else self.put
            apart = self.clocks.of_ticks if happening in ticks else self.clocks.of_changes
            self.now = self.true + self.random.choice(apart)
            self.told.append(f"{(self.now - NOON) / MINUTE:.4f} {happening.__name__}")
            try:
                happening()
            except InvalidSchedule as error:
                self.told.append(f"refused: {error}")

    @property
    def record(self) -> Record | None:
        """The record as the store has it."""
        return self.store.schedules.get(USER, self.key)

    def tell(self, what: object) -> None:
        """Note a detail for the message of a failure."""
        self.told[-1] += f" {what}"

    def change(self, wanted: Schedule) -> None:
        """Put the schedule. The definition before owes its times until now."""
        before = self.record
        made = self.store.schedules.put(wanted, now=self.now)
        if before is None or before.redefined_at != made.redefined_at:
            self.close()
            assert made.redefined_at == self.defined_at, "it takes effect at another time"
            self.since, self.cron = made.redefined_at, wanted.cron

    def close(self) -> None:
        """Owe the times of the definition until now, or until the instant after its beginning."""
        self.defined_at = max(self.now, self.defined_at + 1)
        if self.since is not None:
            self.owed.update(fires(self.cron, None, self.since, self.defined_at))

    def put(self) -> None:
        wanted: Schedule | None = self.record
        cron = self.random.choice(CRONS)
        self.tell(cron)
        if wanted is None:
            misfire, grace = self.random.choice(list(Misfire)), self.random.choice((0, 0, 150))
            policies = Policies(overlap=Overlap.ALLOW, misfire=misfire, grace=grace)
            wanted = Schedule(USER, self.key, cron, "flow", "act", policies=policies)
        self.change(replace(wanted, cron=cron))

    def put_under_the_pause(self) -> None:
        """Change the times and pause in one write."""
        record, cron = self.record, self.random.choice(CRONS)
        self.tell(cron)
        if record:
            self.change(pause(replace(record, cron=cron), "", self.until(), self.now))

    def until(self) -> int | None:
        end = self.random.choice((None, 90 * SECOND, 3 * MINUTE, 20 * MINUTE))
        self.tell(end)
        return end and self.now + end

    def pause(self) -> None:
        record = self.record
        if record:
            self.change(pause(record, "", self.until(), self.now))

    def resume(self) -> None:
        record = self.record
        if record:
            self.change(resume(record))

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
        pauses = self.store.pauses.announce(self.now, self.now + ahead)
        if ahead == 0 and self.now // SECOND % 2:
            self.ring(pauses)
        else:
            self.held += drain(self.store, self.now, ahead=ahead, pauses=pauses)

    def ring(self, pauses: Pauses) -> None:
        """Claim its row as its bell does."""
        claimed = self.store.index.claim_one(USER, self.key, now=self.now, pauses=pauses)
        self.held += [one for one in claimed.made if one.state is State.QUEUED]

    def begin_tick(self) -> None:
        ahead = self.random.choice(AHEAD)
        pauses = self.store.pauses.announce(self.now, self.now + ahead)
        self.ticks.append(BegunTick(self.now, ahead, pauses))

    def stall(self) -> None:
        """Claim as a tick that read the pauses long ago."""
        if self.ticks:
            now, ahead, pauses = self.ticks.pop(self.random.randrange(len(self.ticks)))
            self.tell((now - NOON) / MINUTE)
            self.held += drain(self.store, now, ahead=ahead, pauses=pauses)

    def pause_group(self) -> None:
        scope = self.random.choice(SCOPES)
        self.tell(scope)
        self.store.pauses.pause(scope, until=self.until(), now=self.now)

    def resume_group(self) -> None:
        scope = self.random.choice(SCOPES)
        self.tell(scope)
        self.store.pauses.resume(scope, now=self.now)

    def close_pauses(self) -> None:
        self.store.pauses.close_over(self.now)

    def move(self) -> None:
        """Move it to another flow."""
        record = self.record
        if record:
            flow = "other" if record.flow == "flow" else "flow"
            self.change(replace(record, flow=flow))
            dated = self.store.shelf.account(USER, self.key, 0, self.now).definitions
            self.defined_at = dated[-1].since

    def covered(self, at: int) -> bool:
        """Return True if a pause of a group covers a time, in either flow."""
        every = self.store.pauses.since(0)
        return any(one.covers(at) for one in every.of(USER, None))

    def waiting(self) -> None:
        self.held += self.store.ledger.claim_waiting(
            self.now, 100, pauses=self.store.pauses.current(self.now)
        )

    def begin(self) -> None:
        if self.held:
            chosen = self.random.choice(self.held)
            answer = self.store.ledger.begin(chosen, now=self.now)
            if isinstance(answer, Begun):
                found = answer.occurrence
                paused = self.store.pauses.current(self.now).of(USER, found.flow)
                assert not any(one.covers(self.now) for one in paused), "it fires in a pause"
                assert not any(one.covers(found.nominal_at) for one in paused), "it fires after one"
            if isinstance(answer, Begun) and self.random.random() < 0.7:
                self.store.ledger.settle(answer.occurrence, SUCCEEDED, now=self.now)

    def operate(self) -> None:
        """Retry, cancel or delete an occurrence, as an operator does."""
        found = self.store.ledger.find(USER, self.key, limit=10)
        if found:
            one, ledger = self.random.choice(found), self.store.ledger
            verb = self.random.choice((ledger.retry, ledger.cancel, ledger.discard))
            self.tell(verb.__name__)
            with suppress(OccurrenceConflict):
                verb(one, Operator("the operator"), now=self.now)

    def lose_the_row(self) -> None:
        self.store.index.remove(USER, self.key)
        self.store.rebuild(now=self.now)

    def pass_over(self) -> None:
        keeps_newest = self.random.random() < 0.5
        self.tell(keeps_newest)
        until = self.now - self.random.choice((0, 0, 3 * MINUTE))
        self.store.pass_over(USER, self.key, until, now=self.now, keeps_newest=keeps_newest)

    def call(self) -> None:
        """Bring one of its nominal times, as an outside scheduler does."""
        record = self.record
        if record and record.enabled and self.since is not None:
            times = fires(self.cron, None, self.since, self.now)
            pause = record.pause
            for at in self.random.sample(times, min(1, len(times))):
                if pause is None or pause.until is None or at >= pause.until:
                    own = ("schedule", at, "flow", record.redefined_at)
                    run(
                        self.store,
                        NewOccurrence(USER, self.key, self.cron, None, at, *own),
                        self.now,
                    )

    def ends(self) -> None:
        """Claim all that is left."""
        self.now = self.true + 6 * MINUTE
        for scope in SCOPES:
            self.store.pauses.resume(scope, now=self.now)
        record = self.record
        if record:
            self.change(replace(resume(record), cron="* * * * *"))
            self.now += MINUTE
            drain(self.store, self.now, pauses=self.store.pauses.announce(self.now, self.now))
            self.close()

    def accounted(self) -> Counter[int]:
        """Return the number of the ledger's entries that account for each time."""
        found: Counter[int] = Counter()
        for one in self.store.ledger.find(USER, self.key, limit=100_000):
            if one.origin == "schedule":
                found.update(spelled_out(one))
        return found


def spelled_out(one: Occurrence) -> list[int]:
    """Return the nominal time, or all times of a range."""
    if one.range_end is None:
        return [one.nominal_at]
    times = fires(one.cron, None, one.nominal_at - 1, one.range_end)
    assert len(times) == one.count, f"{one} says {one.count} times and has {len(times)}"
    return times


def live(store: Store, seed: int, steps: int = 25, clocks: Clocks = SAME) -> None:
    """Live one life, then compare its ledger with the owed times."""
    life = Life(store, f"k{seed}", Random(seed), clocks)
    life.goes_on(steps)
    life.ends()
    found = life.accounted()
    twice = [(at - NOON) / MINUTE for at, times in sorted(found.items()) if times > 1]
    owed = sorted(life.owed - found.keys())
    missing = [(at - NOON) / MINUTE for at in owed if not life.covered(at)]
    assert (twice, missing) == ([], []), "\n".join([f"in life {seed}:", *life.told])
    verified = verify(store, 0, life.now, now=life.now)
    assert not verified.found, "\n".join([f"in life {seed}: {verified}", *life.told])
