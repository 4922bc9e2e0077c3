"""A machine that drives a store and the model side by side. It takes any store:

class MyMachine(StoreMachine):
    def open_store(self) -> Store:
        return ...          # open, migrated, empty

TestMyStore = MyMachine.TestCase
"""

from collections import Counter
from dataclasses import replace

import pytest
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.errors import PoisonedRow
from duetick.domain.expression import fires, next_fire
from duetick.domain.pausing import pause
from duetick.domain.schedule import IndexRow, NewOccurrence, Occurrence, Schedule
from duetick.domain.states import State
from duetick.testing import FakeClock
from duetick.testing.conformance.samples import DAY, NOON, SECOND
from duetick.testing.conformance.suite import FAILED, drain, run
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from tests.conformance.model import ONCE, RETRIED, Entry, Model, Plan

CRONS = st.sampled_from(["* * * * *", "*/5 * * * *", "rate(7 minutes)"])
RECORDS = st.sampled_from(["once", "retried"])
STEPS = st.sampled_from([1, 20 * SECOND, 61 * SECOND, 200 * SECOND, 4_000 * SECOND])
BARE = "bare"
BROKEN = "broken"
BARE_CRON = "*/2 * * * *"


class StoreMachine(RuleBasedStateMachine):
    """Every rule does the same to both; every invariant compares them."""

    handles = Bundle("handles")

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock(NOON)
        self.model = Model()
        self.retimes = 0
        self.runs = 0
        self.broken = self.poisoned = False
        self.store = self.open_store()

    def open_store(self) -> Store:
        """Return an open, migrated, empty store."""
        raise NotImplementedError

    def teardown(self) -> None:
        """Let go of the store."""
        self.store.close()

    @rule(step=STEPS)
    def time_passes(self, step: int) -> None:
        self.clock.advance(step)

    @rule(key=RECORDS, cron=CRONS, enabled=st.booleans())
    def put(self, key: str, cron: str, enabled: bool) -> None:
        plan = self.model.plans.get(key)
        self.store.schedules.put(a_schedule(key, cron, enabled=enabled), now=self.clock())
        if plan is None or (plan.cron, plan.enabled, plan.until) != (cron, enabled, 0):
            self.retime(key, cron, enabled=enabled)

    @rule(key=RECORDS, cron=CRONS, minutes=st.integers(1, 9))
    def pause(self, key: str, cron: str, minutes: int) -> None:
        """Pause with an end; the same write may change the times."""
        now = self.clock()
        until = now + minutes * 60 * SECOND
        wanted = pause(a_schedule(key, cron, enabled=True), "", until, now)
        self.store.schedules.put(wanted, now=now)
        self.retime(key, cron, enabled=True, until=until)

    def retime(self, key: str, cron: str, *, enabled: bool, until: int = 0) -> None:
        """Change the times: the model has another plan from now on."""
        now, plan = self.clock(), self.model.plans.get(key)
        if plan:
            self.model.ends(key, now)
        self.retimes += 1
        self.model.plans[key] = Plan(
            cron,
            since=max(now, until - 1),
            anchor=plan.anchor if plan else now,
            timing=self.retimes,
            born=plan.born if plan else self.retimes,
            retried=key == "retried",
            enabled=enabled,
            put_at=now,
            until=until,
        )

    @rule(key=RECORDS)
    def delete(self, key: str) -> None:
        plan = self.model.plans.get(key)
        existed = self.store.schedules.delete("ada", key, now=self.clock())
        assert existed == (plan is not None)
        if plan:
            self.model.ends(key, self.clock())
        self.model.plans.pop(key, None)

    @rule(back=st.integers(-5, 5))
    def upsert(self, back: int) -> None:
        """Put a row without a record, at one of its times: ahead, or set back."""
        at = next_fire(BARE_CRON, None, self.clock() - back * 60 * SECOND)
        assert at is not None
        self.store.index.upsert(IndexRow("ada", BARE, BARE_CRON, None, at))
        since = max(at - 1, self.model.high_mark(BARE))
        self.model.plans[BARE] = Plan(BARE_CRON, since, 0, 0)

    @rule()
    def remove(self) -> None:
        self.store.index.remove("ada", BARE)
        self.model.plans.pop(BARE, None)

    @rule(target=handles, limit=st.integers(1, 3), ahead=st.sampled_from([0, 0, 130 * SECOND]))
    def claim(self, limit: int, ahead: int) -> object:
        """I-02, I-04, I-13, T-06: claim everything that is due, or will be in the window, once."""
        claimed = drain(self.store, self.clock(), limit, ahead=ahead)
        assert Counter((o.key, o.nominal_at) for o in claimed) == Counter(
            self.model.claim(self.clock(), ahead)
        )
        self.model.hand_out(claimed, self.clock())
        assert drain(self.store, self.clock(), ahead=ahead) == []
        self.poisoned = self.poisoned or self.broken
        return multiple(*claimed)

    @rule()
    def break_a_row(self) -> None:
        """I-13: put a row that is due and cannot be read."""
        if not self.broken:
            self.store.index.upsert(IndexRow("ada", BROKEN, "never", None, self.clock()))
            self.broken = True

    @rule()
    def give_a_broken_row_up(self) -> None:
        if self.poisoned:
            with pytest.raises(PoisonedRow):
                self.store.index.restore("ada", BROKEN, now=self.clock())
        self.store.index.remove("ada", BROKEN)
        self.broken = self.poisoned = False

    @rule(key=RECORDS)
    def drift_and_mend(self, key: str) -> None:
        """I-16: a rebuild finds a row that waits too long, and accounts for the missed times."""
        row = self.store.index.get("ada", key)
        if row is not None:
            self.store.index.upsert(replace(row, next_fire_at=row.next_fire_at + 10 * DAY))
            assert self.store.rebuild(now=self.clock()) == 1
            self.model.account(key, self.clock())

    @rule(target=handles)
    def claim_waiting(self) -> object:
        found = list(self.store.ledger.claim_waiting(self.clock(), 1_000))
        assert Counter(o.identity for o in found) == Counter(self.model.wait(self.clock()))
        self.model.hand_out(found, self.clock())
        return multiple(*found)

    @rule(held=handles)
    def begin(self, held: Occurrence) -> None:
        expected = self.model.begin(held.identity, held.fence, self.clock())
        answer = self.store.ledger.begin(held, now=self.clock())
        assert isinstance(answer, Begun) == expected

    @rule(target=handles, key=st.sampled_from(["once", "retried", BARE]))
    def run_by_hand(self, key: str) -> object:
        """Bring a caller's occurrence, which depends on no schedule."""
        self.runs += 1
        now, origin = self.clock(), f"run:{self.runs}"
        asked = NewOccurrence("ada", key, "", None, now, origin=origin, due_at=now)
        lease_until = self.clock() + 1
        self.model.entries[asked.identity] = Entry(key, 0, self.clock(), lease_until, 1, False)
        expected = self.model.begin(asked.identity, 1, self.clock())
        answer = run(self.store, asked, self.clock())
        assert isinstance(answer, Begun) == expected
        return multiple(answer.occurrence) if isinstance(answer, Begun) else multiple()

    @rule(held=handles, succeeds=st.booleans())
    def settle(self, held: Occurrence, succeeds: bool) -> None:
        state = State.SUCCEEDED if succeeds else State.FAILED
        outcome = SUCCEEDED if succeeds else FAILED
        expected = self.model.settle(held.identity, held.fence, state, self.clock())
        answer = self.store.ledger.settle(held, outcome, now=self.clock())
        assert (answer is not None) == expected

    @rule(held=consumes(handles))
    def release(self, held: Occurrence) -> None:
        expected = self.model.release(held.identity, held.fence, self.clock())
        assert self.store.ledger.release(held, now=self.clock()) == expected

    @rule(held=handles)
    def renew(self, held: Occurrence) -> None:
        expected = self.model.renew(held.identity, held.fence, self.clock())
        answer = self.store.ledger.renew(held, now=self.clock())
        assert (answer is not None) == expected

    @invariant()
    def attempts_and_states_agree(self) -> None:
        """J-13: the ledger has of each occurrence the attempts and the state that the model has."""
        for name, entry in self.model.entries.items():
            held = self.store.ledger.get(*name)
            assert held is not None
            assert (held.state, held.attempts) == (entry.state, entry.attempts)

    @invariant()
    def each_time_has_one_outcome(self) -> None:
        """A-01: each nominal time is in the ledger once, or still pending."""
        for key in ("once", "retried", BARE):
            held = self.store.ledger.find("ada", key, limit=10_000)
            found = [time for one in held if one.origin == "schedule" for time in spelled_out(one)]
            assert sorted(found) == sorted(self.model.accounted.get(key, []))

    @invariant()
    def records_and_rows_agree(self) -> None:
        """I-16: nothing to mend, and each row says the next time."""
        unreadable = [BROKEN] if self.poisoned else []
        assert [one.key for one in self.store.check(now=self.clock())] == unreadable
        for key, plan in self.model.plans.items():
            row = self.store.index.get("ada", key)
            assert (row is not None) == plan.enabled


def a_schedule(key: str, cron: str, *, enabled: bool) -> Schedule:
    """Draw one of the two that have a record."""
    policies = RETRIED if key == "retried" else ONCE
    return Schedule("ada", key, cron, "flow", "act", enabled=enabled, policies=policies)


def spelled_out(occurrence: Occurrence) -> list[int]:
    """Return the nominal time, or all times of a range."""
    first, last = occurrence.nominal_at, occurrence.range_end
    if last is None:
        return [first]
    times = [first]
    if last > first:
        anchor = first  # a range begins with one of the times, so intervals count from there
        times += fires(occurrence.cron, None, first, last, anchor=anchor)
    assert len(times) == occurrence.count
    return times
