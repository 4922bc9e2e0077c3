"""The promises of a store, kept in plain dictionaries: the other side of the stateful test.

It knows no SQL, no rows and no ranges. A plan has times that are not accounted for yet; each change
of it accounts for those up to now. An entry has a state, and moves as the contract says.
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
PLACE_KEPT = 150_000
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

    A plan that is paused until a time fires from then on; the next change accounts for the times
    that the pause holds back. `born` is the plan's first timing.
    """

    cron: str
    since: int
    anchor: int
    timing: int
    born: int = 0
    retried: bool = False
    enabled: bool = True
    put_at: int = 0
    until: int = 0

    def names(self, time: int) -> bool:
        """Return True if the plan, as it was put, names a time."""
        return (
            time > self.put_at
            and time >= self.until
            and bool(fires(self.cron, None, time - 1, time, anchor=self.anchor))
        )

    def pending(self, now: int) -> list[int]:
        """Return the times of the plan up to now that are not accounted for."""
        return fires(self.cron, None, self.since, now, anchor=self.anchor)

    def held_back(self, now: int) -> list[int]:
        """Return the times of the plan up to now that a pause kept from firing."""
        end = min(now, self.until - 1)
        return fires(self.cron, None, self.put_at, max(end, self.put_at), anchor=self.anchor)


@dataclass(slots=True)
class Entry:
    """An occurrence. `fence` is the newest that was handed out; NOBODY if no one has it.

    If the occurrence is retrying, it keeps its place until `lease_until`.
    """

    key: str
    timing: int
    due_at: int
    lease_until: int
    fence: int
    retried: bool
    state: State = State.QUEUED
    attempts: int = 0
    settled_as: State | None = None

    @property
    def in_place(self) -> bool:
        """True if it runs, or is a leased retry: no other occurrence of its key may begin."""
        leased_again = self.state is State.QUEUED and self.attempts > 0
        return leased_again or self.state is State.PROCESSING

    def keeps_out(self, other: "Entry", now: int) -> bool:
        """Return True if it keeps another occurrence of its key from beginning: D-08."""
        if self.state is State.RETRYING:
            next_one = not other.attempts and self.due_at <= now
            return next_one and self.lease_until > now
        early = self.state is State.QUEUED and self.due_at > now
        kept = 0 if self.state is State.PROCESSING or other.attempts else PLACE_KEPT
        return self.in_place and self.lease_until + kept > now and not early

    def wait_for_retry(self, place_until: int = 0, due_at: int | None = None) -> None:
        """Wait for another attempt, as every occurrence does that has begun once."""
        self.state, self.lease_until = State.RETRYING, place_until
        self.due_at = self.due_at if due_at is None else due_at


@dataclass(slots=True)
class Model:
    """All plans and entries, and the times of each key that the ledger has to hold."""

    plans: dict[str, Plan] = field(default_factory=dict)
    entries: dict[Name, Entry] = field(default_factory=dict)
    accounted: dict[str, list[int]] = field(default_factory=dict)

    def account(self, key: str, now: int) -> list[int]:
        """Account for all pending times. Times that were claimed ahead are known already."""
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
        """Account for pending times, and for the times of a pause, as a change ends the plan.

        A retry that waits for the end of its pause is due.
        """
        plan = self.plans[key]
        self._account(key, plan.held_back(now))
        self.account(key, now)
        for entry in self._of(key):
            if plan.until and entry.state is State.RETRYING and entry.due_at == plan.until:
                entry.due_at = now

    def _of(self, key: str) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.key == key]

    def high_mark(self, key: str) -> int:
        """Return the newest time that was accounted for."""
        return max(self.accounted.get(key, []), default=0)

    def claim(self, now: int, ahead: int = 0) -> set[tuple[str, int]]:
        """Return the names that a claim of everything leases.

        The past times within the grace fire; if there are none, the newest fires. All times ahead
        fire.
        """
        found: set[tuple[str, int]] = set()
        for key, plan in self.plans.items():
            if plan.enabled:
                pending = self.account(key, now + ahead)
                past = [time for time in pending if time <= now]
                young = [time for time in past if now - time <= GRACE] or past[-1:]
                found |= {(key, time) for time in pending if time > now or time in young}
        return found

    def hand_out(self, occurrences: Iterable[Occurrence], now: int) -> None:
        """Note the leases of occurrences that the store leased."""
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
        """Return the names that a lease of everything takes. The other lost ones are dead.

        Of a key's retries one is leased, and none while another one has its place.
        """
        leased = {name: entry for name, entry in self.entries.items() if _is_leased(entry)}
        over = {name: entry for name, entry in leased.items() if entry.lease_until <= now}
        busy = {entry.key for entry in leased.values() if entry.in_place}
        found: set[Name] = set()
        for name, entry in over.items():
            self.lose(entry, now)
            if entry.state is not State.DEAD:
                found.add(name)
        due = [(name, entry) for name, entry in self.entries.items() if _is_due(entry, now)]
        for name, entry in sorted(due, key=lambda one: one[1].due_at):
            if entry.key not in busy:
                busy.add(entry.key)
                found.add(name)
            elif name not in found:
                self._reserve(entry, found, now)
        return found

    def _reserve(self, entry: Entry, found: set[Name], now: int) -> None:
        """Keep the place of a retry that is behind another occurrence."""
        keys = {name[1] for name in found if self.entries[name].attempts}
        taken = entry.key in keys or any(other.in_place for other in self._of(entry.key))
        if taken and entry.lease_until < now + PLACE_KEPT // 2:
            entry.lease_until = now + PLACE_KEPT

    def lose(self, entry: Entry, now: int) -> None:
        """End the lease of an occurrence."""
        if entry.state is State.QUEUED:
            again = entry.attempts > 0 or now <= entry.due_at + BEGIN_WITHIN
        else:
            again = entry.retried and entry.attempts < ATTEMPTS
        entry.state = State.QUEUED if again else State.DEAD
        if again:
            entry.fence, entry.lease_until = NOBODY, max(now, entry.due_at) + LEASE

    def begin(self, name: Name, fence: int, now: int) -> bool:
        """Return True if the attempt begins."""
        entry = self.entries[name]
        held = entry.state is State.QUEUED and entry.fence == fence and entry.lease_until > now
        if not held:
            return False
        plan = self.plans.get(entry.key)
        if self._outdated(name, entry):
            entry.state = State.CANCELLED
        elif entry.attempts and plan and plan.until > now:
            entry.wait_for_retry(due_at=plan.until)
        elif self._kept_out(entry, now):
            if entry.attempts:
                entry.wait_for_retry(now + PLACE_KEPT)
            else:
                entry.state = State.CANCELLED
        else:
            entry.retried = plan.retried if plan and plan.timing else entry.retried
            entry.state, entry.lease_until = State.PROCESSING, now + LEASE
            entry.attempts += 1
        return entry.state is State.PROCESSING

    def _outdated(self, name: Name, entry: Entry) -> bool:
        plan, nominal_at = self.plans.get(entry.key), name[2]
        if entry.timing == 0:
            return False
        if plan is None or not plan.enabled:
            return True
        if entry.attempts:
            return entry.timing < plan.born
        return plan.timing != entry.timing and not plan.names(nominal_at)

    def _kept_out(self, entry: Entry, now: int) -> bool:
        """Return True if another occurrence has the place. If none has, the occurrences that lost
        it wait.
        """
        others = [one for one in self._of(entry.key) if one is not entry]
        if any(one.keeps_out(entry, now) for one in others):
            return True
        for one in others:
            if one.in_place:
                self.lose(one, now)
                if one.state is State.QUEUED:
                    one.wait_for_retry(now + PLACE_KEPT)
            elif _is_due(one, now) and not entry.attempts:
                one.lease_until = now + LEASE + PLACE_KEPT
        return False

    def settle(self, name: Name, fence: int, outcome: State, now: int) -> bool:
        """Return True if the outcome is taken, now or before."""
        entry = self.entries[name]
        if entry.fence != fence:
            return False
        if entry.state is State.RETRYING:
            return outcome is State.FAILED
        if entry.state is not State.PROCESSING:
            return entry.settled_as is outcome and entry.state is not State.QUEUED
        entry.settled_as = outcome
        if outcome is State.SUCCEEDED:
            entry.state = State.SUCCEEDED
        elif entry.retried and entry.attempts < ATTEMPTS:
            entry.wait_for_retry(due_at=now + RETRY_AFTER)
        else:
            entry.state = State.DEAD
        return True

    def release(self, name: Name, fence: int, now: int) -> bool:
        """Return True if the lease is given back."""
        entry = self.entries[name]
        if entry.fence != fence or entry.state is not State.QUEUED:
            return False
        self.lose(entry, now)
        if entry.state is State.QUEUED:
            entry.lease_until = now + 1
        return True

    def renew(self, name: Name, fence: int, now: int) -> bool:
        """Return True if the lease is renewed."""
        entry = self.entries[name]
        if entry.fence != fence or entry.state is not State.PROCESSING:
            return False
        entry.lease_until = now + LEASE
        return True


def _is_leased(entry: Entry) -> bool:
    return entry.state in (State.QUEUED, State.PROCESSING)


def _is_due(entry: Entry, now: int) -> bool:
    return entry.state is State.RETRYING and entry.due_at <= now
