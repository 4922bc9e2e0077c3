"""A town of users over forty days: they make, finish, pause, edit and delete schedules.

Each day has a morning in which they act, a noon at which schedules fire, and an evening in which a
purge runs. The state of each schedule, and the number of its runs, are worked out here anew, by
days. Each evening the store has to say the same: lists, quota, index, runs, check.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import Final, Literal, TypeAlias

from duetick.core.purge import purge_within
from duetick.core.store import Store
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED, Outcome
from duetick.domain.ending import ScheduleState
from duetick.domain.errors import InvalidSchedule, QuotaReached
from duetick.domain.occurrence import Occurrence
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import LAST_INSTANT, Policies
from duetick.domain.schedule import Record, Schedule
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import DAILY, DAY, HOUR, NOON, SECOND
from duetick.testing.conformance.suite import drain, must, start

Kind: TypeAlias = Literal["daily", "once", "limited", "ending"]

KINDS: Final[tuple[Kind, ...]] = ("daily", "once", "once", "limited", "ending")
KEPT_DAYS: Final = 30
NEVER: Final = 10**6
REJECTED: Final = Outcome(State.FAILED, Reason.REJECTED, "no such action")


@dataclass
class Plan:
    """The expected state of a schedule. `last` is the last day on which it may fire, `left` the
    number of its remaining runs.
    """

    kind: Kind
    last: int = NEVER
    left: int = NEVER
    runs: int = 0
    goes: bool = False
    enabled: bool = True
    until: int = -1
    done_on: int | None = None

    def is_paused(self, day: int) -> bool:
        """Return True if the schedule is paused or disabled in the evening."""
        return not self.enabled or day < self.until

    def state(self, day: int) -> ScheduleState:
        """Return the state of the schedule in the evening."""
        if self.done_on is not None:
            return "done"
        return "paused" if self.is_paused(day) else "active"

    def fires(self, day: int) -> bool:
        """Return True if the schedule fires at noon."""
        its_day = day == self.last if self.kind == "once" else day <= self.last
        return its_day and self.left > 0 and self.done_on is None and not self.is_paused(day)

    def is_over(self, day: int) -> bool:
        """Return True if the schedule has no time left after that noon."""
        return day >= self.last or self.left <= 0


@dataclass
class Town:
    """Users on one store."""

    store: Store
    users: int
    random: Random
    plans: dict[tuple[str, str], Plan] = field(default_factory=dict)
    day: int = -1
    made: int = 0

    def lives(self, days: int) -> None:
        """Let that many days pass."""
        for _ in range(days):
            self.day += 1
            for number in range(self.users):
                self._acts(f"u{number}")
            self._noon()
            purge_within(60.0, self.store, 7)
            self._evening()

    @property
    def morning(self) -> int:
        """The instant six hours before noon."""
        return NOON + self.day * DAY - 6 * HOUR

    def now(self) -> int:
        """Return the time of the store's clock: it is evening."""
        return NOON + self.day * DAY + 8 * HOUR

    def _acts(self, user: str) -> None:
        acts: Sequence[Callable[[str], None]] = (
            *(self._make,) * 3,
            *(self._pause, self._pause_until, self._resume, self._edit, self._label, self._delete),
        )
        self.random.choice(acts)(user)

    def _make(self, user: str) -> None:
        """Put a schedule with a quota that has room for exactly one more."""
        plan, key = self._plan(0), f"k{self.made}"
        self.made += 1
        wanted = Schedule(user, key, *self._timing(plan), policies=self._policies(plan))
        self.store.schedules.put(wanted, now=self.morning, at_most=self._counted(user) + 1)
        self.plans[user, key] = plan

    def _plan(self, runs: int) -> Plan:
        kind = self.random.choice(KINDS)
        last = self.day + self.random.randrange(4) if kind in ("once", "ending") else NEVER
        left = self.random.randrange(1, 4) if kind == "limited" else NEVER
        return Plan(kind, last, left, runs, goes=self.random.random() < 0.3)

    def _timing(self, plan: Plan) -> tuple[str, str, str]:
        at = datetime.fromtimestamp((NOON + plan.last % NEVER * DAY) // 1_000, UTC)
        cron = f"at({at:%Y-%m-%dT%H:%M:%S})" if plan.kind == "once" else DAILY
        return cron, "flow", "act"

    def _policies(self, plan: Plan) -> Policies:
        return Policies(
            ends_at=NOON + plan.last * DAY + HOUR if plan.kind == "ending" else None,
            max_runs=plan.runs + plan.left if plan.kind == "limited" else None,
            after_completion="delete" if plan.goes else "keep",
        )

    def _one(self, user: str) -> tuple[Record, Plan] | None:
        mine = [key for owner, key in self.plans if owner == user]
        if not mine:
            return None
        key = self.random.choice(mine)
        return must(self.store.schedules.get(user, key)), self.plans[user, key]

    def _put(self, wanted: Callable[[], Schedule]) -> bool:
        try:
            self.store.schedules.put(wanted(), now=self.morning)
        except InvalidSchedule:
            return False
        return True

    def _pause(self, user: str) -> None:
        found = self._one(user)
        if found and self._put(lambda: pause(found[0], "", None, self.morning)):
            found[1].enabled, found[1].until, found[1].done_on = False, -1, None

    def _pause_until(self, user: str) -> None:
        found, until = self._one(user), self.day + 2
        end = NOON + until * DAY - 6 * HOUR
        if found and self._put(lambda: pause(found[0], "", end, self.morning)):
            found[1].enabled, found[1].until, found[1].done_on = True, until, None

    def _resume(self, user: str) -> None:
        """Let a paused schedule fire again. If it has no time left, it is done."""
        found = self._one(user)
        if found and found[1].is_paused(self.day) and self._put(lambda: resume(found[0])):
            found[1].enabled, found[1].until = True, -1
            over = found[1].is_over(self.day - 1)
            found[1].done_on = self.day if over else None

    def _edit(self, user: str) -> None:
        """Change the times of a schedule. Its runs go on counting."""
        found = self._one(user)
        if not found or found[1].is_paused(self.day):
            return
        record, before = resume(found[0]), found[1]
        plan = self._plan(before.runs)
        cron, *_ = self._timing(plan)
        wanted = replace(record, cron=cron, policies=self._policies(plan))
        if self._put(lambda: wanted):
            self.plans[user, record.key] = plan

    def _label(self, user: str) -> None:
        found = self._one(user)
        if found:
            labelled = replace(found[0], labels={"day": str(self.day)})
            assert self._put(lambda: labelled)

    def _delete(self, user: str) -> None:
        found = self._one(user)
        if found:
            assert self.store.schedules.delete(user, found[0].key, now=self.morning)
            del self.plans[user, found[0].key]

    def _noon(self) -> None:
        at = NOON + self.day * DAY + SECOND
        due = {name for name, plan in self.plans.items() if plan.fires(self.day)}
        claimed = drain(self.store, at)
        assert {(one.user_id, one.key) for one in claimed} == due
        for one in claimed:
            self._runs(one, self.plans[one.user_id, one.key], at)

    def _runs(self, one: Occurrence, plan: Plan, at: int) -> None:
        """Run an occurrence. Some are rejected, and give their run back."""
        rejected = self.random.random() < 0.1
        self.store.ledger.settle(
            start(self.store, one, at), REJECTED if rejected else SUCCEEDED, now=at
        )
        plan.runs += not rejected
        plan.left -= not rejected
        plan.done_on = self.day if plan.is_over(self.day) else None

    def _evening(self) -> None:
        for name, plan in list(self.plans.items()):
            if plan.until == self.day and plan.done_on is None and plan.is_over(self.day):
                plan.done_on = self.day
            if plan.done_on is not None:
                self._leaves(name, self.day - plan.done_on - (0 if plan.goes else KEPT_DAYS))
        for number in range(self.users):
            self._adds_up(f"u{number}")
        states = [plan.state(self.day) for plan in self.plans.values()]
        rows = self.store.index.backlog(LAST_INSTANT, 10**6)
        waiting = sum(
            plan.enabled and plan.done_on is None and not plan.is_over(self.day)
            for plan in self.plans.values()
        )
        assert rows == waiting >= states.count("active")
        assert self.store.check(now=self.now()) == []
        assert verify(self.store, 0, self.now(), now=self.now()).found == {}

    def _leaves(self, name: tuple[str, str], late: int) -> None:
        """Compare a schedule whose time has come: a purge deletes it that evening, or the next."""
        gone = self.store.schedules.get(*name) is None
        assert not gone or late >= 0, f"{name} left too early"
        assert gone or late <= 0, f"{name} is still there"
        if gone:
            del self.plans[name]

    def _adds_up(self, user: str) -> None:
        mine = {key: plan for (owner, key), plan in self.plans.items() if owner == user}
        told = {
            key: state for state in ("active", "paused", "done") for key in self._keys(user, state)
        }
        assert told == {key: plan.state(self.day) for key, plan in mine.items()}
        assert {*self._keys(user, None)} == {key for key in told if told[key] != "done"}
        for key, plan in mine.items():
            assert must(self.store.schedules.get(user, key)).runs == plan.runs
        self._is_full(user)

    def _is_full(self, user: str) -> None:
        """Check that one schedule more than the quota is refused."""
        wanted = Schedule(user, "more", DAILY, "flow", "act")
        try:
            self.store.schedules.put(wanted, now=self.now(), at_most=self._counted(user))
        except QuotaReached:
            return
        raise AssertionError(f"{user} has room on day {self.day}")

    def _counted(self, user: str) -> int:
        mine = (plan for (owner, _), plan in self.plans.items() if owner == user)
        return sum(plan.done_on is None for plan in mine)

    def _keys(self, user: str, state: ScheduleState | None) -> Iterator[str]:
        cursor: str | None = None
        while True:
            page = self.store.schedules.list(
                user, limit=10, cursor=cursor, state=state, now=self.now()
            )
            yield from (one.key for one in page.schedules)
            cursor = page.cursor
            if cursor is None:
                return


def live_together(store: Store, users: int, days: int, seed: int) -> Town:
    """Run a town from its first day on. The store's clock is the town's."""
    town = Town(store, users, Random(seed))
    store.now = town.now
    town.lives(days)
    return town
