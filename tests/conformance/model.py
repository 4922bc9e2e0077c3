"""What a store promises, kept in plain dictionaries: the other side of the stateful test.

It knows no SQL, no rows and no ranges. A plan has times that are not accounted for yet; whatever
happens to it accounts for those up to now. An entry has a state, and moves as the contract says.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from duetick.domain.expression import fires
from duetick.domain.policies import Backoff, Delivery, Policies, Retry
from duetick.domain.schedule import Occurrence
from duetick.domain.states import State

Name = tuple[str, str, int, str]

GRACE = 150_000
LEASE = 60_000
BEGIN_WITHIN = 3_600_000
RETRY_AFTER = 30_000
ATTEMPTS = 2
NOBODY = -1

ONCE = Policies()
RETRIED = Policies(
    delivery=Delivery.AT_LEAST_ONCE,
    retry=Retry(backoff=Backoff.FIXED, attempts=ATTEMPTS, first=30, longest=30),
)


@dataclass(slots=True)
class Plan:
    """A schedule, or a row without one (`timing` 0). Its times up to `since` are accounted for.

    One that is paused until a time fires from then on; what it holds back is accounted for by the
    next change.
    """

    cron: str
    since: int
    anchor: int
    timing: int
    retried: bool = False
    enabled: bool = True
    put_at: int = 0
    until: int = 0

    def names(self, time: int) -> bool:
        """Whether a time to come, as this was put, is one of its own."""
        return (
            time > self.put_at
            and time >= self.until
            and bool(fires(self.cron, None, time - 1, time, anchor=self.anchor))
        )

    def pending(self, now: int) -> list[int]:
        """Its times up to now that are not accounted for."""
        return fires(self.cron, None, self.since, now, anchor=self.anchor)

    def held_back(self, now: int) -> list[int]:
        """Its times up to now that a pause kept from firing."""
        end = min(now, self.until - 1)
        return fires(self.cron, None, self.put_at, max(end, self.put_at), anchor=self.anchor)


@dataclass(slots=True)
class Entry:
    """An occurrence. `fence` is the newest that was handed out, NOBODY where nobody has it."""

    key: str
    timing: int
    due_at: int
    lease_until: int
    fence: int
    retried: bool
    state: State = State.QUEUED
    attempts: int = 0
    settled_as: State | None = None


@dataclass(slots=True)
class Model:
    """All plans and entries, and the times of each key that the ledger has to hold."""

    plans: dict[str, Plan] = field(default_factory=dict)
    entries: dict[Name, Entry] = field(default_factory=dict)
    accounted: dict[str, list[int]] = field(default_factory=dict)

    def account(self, key: str, now: int) -> list[int]:
        """Whatever was pending is accounted for now; what was claimed ahead is so already."""
        plan = self.plans[key]
        pending = self._account(key, plan.pending(now))
        plan.since = max(plan.since, now)
        return pending

    def _account(self, key: str, times: list[int]) -> list[int]:
        known = self.accounted.setdefault(key, [])
        new = [time for time in times if time not in known]
        known += new
        return new

    def ends(self, key: str, now: int) -> None:
        """What was pending, and what a pause held back, when a change ends this plan."""
        self._account(key, self.plans[key].held_back(now))
        self.account(key, now)

    def high_mark(self, key: str) -> int:
        """The newest time that was accounted for."""
        return max(self.accounted.get(key, []), default=0)

    def claim(self, now: int, ahead: int = 0) -> set[tuple[str, int]]:
        """What a claim of everything hands out: each on time, else the newest; all to come."""
        found: set[tuple[str, int]] = set()
        for key, plan in self.plans.items():
            if plan.enabled:
                pending = self.account(key, now + ahead)
                past = [time for time in pending if time <= now]
                young = [time for time in past if now - time <= GRACE] or past[-1:]
                found |= {(key, time) for time in pending if time > now or time in young}
        return found

    def hand_out(self, occurrences: Iterable[Occurrence], now: int) -> None:
        """Somebody holds them now."""
        for one in occurrences:
            plan = self.plans.get(one.key)
            entry = self.entries.get(one.identity)
            if entry is None:
                retried = one.policies == RETRIED
                timing = plan.timing if plan else 0
                entry = Entry(one.key, timing, one.due_at, 0, one.fence, retried)
                self.entries[one.identity] = entry
            entry.state, entry.fence, entry.settled_as = State.QUEUED, one.fence, None
            entry.lease_until = max(now, entry.due_at) + LEASE

    def wait(self, now: int) -> set[Name]:
        """What a claim of all that waits hands out; the rest that was lost is dead."""
        found: set[Name] = set()
        for name, entry in self.entries.items():
            leased = entry.state in (State.QUEUED, State.PROCESSING)
            if leased and entry.lease_until <= now:
                self.lose(entry, now)
            elif not (entry.state is State.RETRYING and entry.due_at <= now):
                continue
            if entry.state is not State.DEAD:
                found.add(name)
        return found

    def lose(self, entry: Entry, now: int) -> None:
        """Its lease ended."""
        if entry.state is State.QUEUED:
            again = now <= entry.due_at + BEGIN_WITHIN
        else:
            again = entry.retried and entry.attempts < ATTEMPTS
        entry.state = State.QUEUED if again else State.DEAD
        if again:
            entry.fence, entry.lease_until = NOBODY, max(now, entry.due_at) + LEASE

    def begin(self, name: Name, fence: int, now: int) -> bool:
        """Whether the attempt begins."""
        entry = self.entries[name]
        held = entry.state is State.QUEUED and entry.fence == fence and entry.lease_until > now
        if not held:
            return False
        if self._outdated(name, entry) or self._overlaps(name, entry, now):
            entry.state = State.CANCELLED
            return False
        plan = self.plans.get(entry.key)
        entry.retried = plan.retried if plan and plan.timing else entry.retried
        entry.state, entry.lease_until = State.PROCESSING, now + LEASE
        entry.attempts += 1
        return True

    def _outdated(self, name: Name, entry: Entry) -> bool:
        plan, nominal_at = self.plans.get(entry.key), name[2]
        if entry.timing == 0:
            return False
        if plan is None or not plan.enabled:
            return True
        return plan.timing != entry.timing and not plan.names(nominal_at)

    def _overlaps(self, name: Name, entry: Entry, now: int) -> bool:
        for other, running in self.entries.items():
            if running.key == entry.key and other != name and running.state is State.PROCESSING:
                if running.lease_until > now:
                    return True
                self.lose(running, now)
        return False

    def settle(self, name: Name, fence: int, outcome: State, now: int) -> bool:
        """Whether the outcome is taken: now, or since it was said before."""
        entry = self.entries[name]
        if entry.fence != fence:
            return False
        if entry.state is not State.PROCESSING:
            return entry.settled_as is outcome and entry.state is not State.QUEUED
        entry.settled_as = outcome
        if outcome is State.SUCCEEDED:
            entry.state = State.SUCCEEDED
        elif entry.retried and entry.attempts < ATTEMPTS:
            entry.state, entry.due_at = State.RETRYING, now + RETRY_AFTER
        else:
            entry.state = State.DEAD
        return True

    def release(self, name: Name, fence: int, now: int) -> bool:
        """Whether it could be given back."""
        entry = self.entries[name]
        if entry.fence != fence or entry.state is not State.QUEUED:
            return False
        self.lose(entry, now)
        if entry.state is State.QUEUED:
            entry.lease_until = now + 1
        return True

    def renew(self, name: Name, fence: int, now: int) -> bool:
        """Whether it is held longer."""
        entry = self.entries[name]
        if entry.fence != fence or entry.state is not State.PROCESSING:
            return False
        entry.lease_until = now + LEASE
        return True
