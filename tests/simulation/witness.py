"""The witness: it knows what really happened, whatever the store says.

It sees each answer of the port, also one that its caller never got, and each run of an action. A
thing that must never happen is a flaw at once; `judging` looks at what has to hold in the end.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from duetick import FailureInput
from duetick.core.standing import FRESH_MS
from duetick.core.store.jobs import Enqueued
from duetick.domain.attempts import Begun
from duetick.domain.book import Book
from duetick.domain.failure_hooks import action_run
from duetick.domain.identity import is_job, stands_beside
from duetick.domain.limits import WINDOWS, Limits
from duetick.domain.occurrence import Identity, Occurrence, ScheduleName
from duetick.domain.policies import Delivery, Overlap
from duetick.domain.retention import KEPT_AT_LEAST, Retention
from duetick.domain.schedule import Record
from duetick.domain.states import REASONS, Reason, State
from duetick.domain.transitions import has_ended

from tests.simulation.slots import Slots

STILL: Final = 12
"""The boundaries that lie between the clock of a host that orders or begins, and its write."""


class Definition(NamedTuple):
    """The record of a schedule from `since` on, up to the next one; None if it was gone.

    `counts` is False if its limit was used up: no time is owed then, and any may be accounted for.
    """

    since: int
    record: Record | None
    counts: bool = True


class Snapshot(NamedTuple):
    """A book after a change: as it was written, or found."""

    record: Record | None
    defined_at: int
    moved: tuple[Occurrence, ...] = ()
    made: tuple[Occurrence, ...] = ()


def snapshot(book: Book) -> Snapshot:
    """Return the part of a book that the witness remembers."""
    return Snapshot(book.record, book.defined_at, tuple(book.moved.values()), tuple(book.made))


@dataclass
class Witness:
    """The observations so far. `flaws` are those that must not happen."""

    slots: Slots
    skewed: bool = False
    flaws: list[str] = field(default_factory=list)
    seen: set[Identity] = field(default_factory=set)
    entered: dict[Identity, list[int]] = field(default_factory=lambda: defaultdict(list))
    done: Counter[Identity] = field(default_factory=Counter)
    ended: dict[Identity, tuple[State, Reason | None]] = field(default_factory=dict)
    definitions: dict[ScheduleName, list[Definition]] = field(
        default_factory=lambda: defaultdict(list)
    )
    deleted: set[ScheduleName] = field(default_factory=set)
    changed: set[ScheduleName] = field(default_factory=set)
    reached: int = 0
    erased: set[str] = field(default_factory=set)
    retried: Counter[Identity] = field(default_factory=Counter)
    _revived: Counter[Identity] = field(default_factory=Counter)
    begins: list[tuple[Occurrence, int]] = field(default_factory=list)
    kept: dict[str, int] = field(default_factory=dict)
    """Since when the store has each standing order."""
    aged: dict[Identity, Occurrence] = field(default_factory=dict)
    _beside: dict[str, dict[Identity, Occurrence]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _begun: Counter[tuple[str, int | None, int]] = field(default_factory=Counter)
    deaths: dict[Identity, Occurrence] = field(default_factory=dict)
    jobs: dict[Identity, str | None] = field(default_factory=dict)
    """The jobs that were made, each with the key that its caller gave."""
    _promised: dict[Identity, Delivery] = field(default_factory=dict)
    _running: dict[ScheduleName, dict[Identity, Occurrence]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def enters(self, identity: Identity, attempt: int) -> None:
        """Note that an action begins.

        It may have ended by then: if its process stood still for longer than its lease, another
        attempt was made, or it counts as lost.
        """
        if attempt in self.entered[identity]:
            self.flaws.append(f"T-07: attempt {attempt} of {spell(identity)} ran twice")
        self.entered[identity].append(attempt)

    def enqueued(self, made: Enqueued, key: str | None) -> None:
        """Note a job that was made, and the key that its caller gave."""
        if made.made:
            self.jobs[made.job.occurrence.identity] = key

    def leaves(self, identity: Identity) -> None:
        """Note that an action has done its work."""
        self.done[identity] += 1

    def tells(self, schedule_id: str, origin: str, failed: FailureInput) -> None:
        """Look at the input of a failure hook: it says why another occurrence of its schedule is
        dead.
        """
        if failed.schedule != schedule_id or failed.reason not in set(REASONS[State.DEAD]):
            self.flaws.append(f"{origin} of {schedule_id} is told {failed}")

    def retries(self, identity: Identity) -> None:
        """Note that an operator asks to retry a dead one. Each time it may come back once."""
        self.retried[identity] += 1

    def saw_death(self, one: Occurrence) -> None:
        """Note a death of which a failure hook has to tell."""
        if one.state is State.DEAD and _is_told_of(one):
            user, key, at, origin = one.identity
            self.deaths[user, key, at, f"failure:{origin}:{one.fence}"] = one

    def saw(self, one: Occurrence) -> None:
        """Look at an occurrence that the store has now."""
        if one.user_id in self.erased:
            self.flaws.append(f"{one.user_id} is erased, and {spell(one.identity)} is {one.state}")
            return
        self.seen.add(one.identity)
        self.changed.add((one.user_id, one.key))
        running = self._running[one.user_id, one.key]
        if one.state is not State.PROCESSING:
            running.pop(one.identity, None)
        elif one.identity in running:
            running[one.identity] = one
        self.saw_death(one)
        known = self.ended.get(one.identity)
        if known is None:
            if has_ended(one):
                self.ended[one.identity] = one.state, one.reason
        elif known[0] is State.DEAD and not has_ended(one) and self._may_come_back(one):
            del self.ended[one.identity]
            self._revived[one.identity] += 1
        elif (one.state, one.reason) == (State.DELETED, known[1]):
            self.ended[one.identity] = one.state, one.reason
        elif known != (one.state, one.reason):
            was, why = known
            self.flaws.append(
                f"J-05: {spell(one.identity)} was {was} ({why}), and is {one.state} ({one.reason})"
            )

    def _may_come_back(self, one: Occurrence) -> bool:
        return self._revived[one.identity] < self.retried[one.identity]

    def began(self, begun: Begun, now: int) -> None:
        """Look at an attempt that may run: nobody else may have the place of its schedule."""
        one = begun.occurrence
        self.begins.append((one, now))
        if one.identity in self.ended:
            state, reason = self.ended[one.identity]
            self.flaws.append(f"J-13: {spell(one.identity)} began after it was {state} ({reason})")
        self.saw(one)
        allowed = 1 + self.retried[one.identity]
        if one.attempts > allowed and self._promised.get(one.identity) is Delivery.AT_MOST_ONCE:
            self.flaws.append(f"T-03: {spell(one.identity)}, at most once, was begun again")
        self._promised[one.identity] = one.policies.delivery
        name = one.user_id, one.key
        alone = one.policies.overlap is not Overlap.ALLOW and not self.skewed
        for other in self._running[name].values() if alone else ():
            if stands_beside(other.origin):
                continue
            if other.identity != one.identity and (other.lease_until or 0) > now:
                self.flaws.append(
                    f"D-08: {spell(one.identity)} began while {spell(other.identity)} ran"
                )
        self._running[name][one.identity] = one

    def counts(self, begun: Begun, limits: Limits, now: int, *, slack: int) -> None:
        """Count an attempt in the limits that its host must have known: none has more than it
        allows.

        If clocks differ, that cannot be judged.
        """
        one = begun.occurrence
        action = action_run(begun.schedule, one.origin) if begun.schedule else ""
        for limit in () if self.skewed else limits.of(one.user_id, one.flow, action):
            name = limit.order.name if limit.order else ""
            since = self.kept.get(name, now)
            if now <= since + FRESH_MS + slack:
                continue
            beside = self._beside[name]
            beside[one.identity] = one
            running = [each for each in beside.values() if self._runs(each, now)]
            if len(running) > limit.at_once:
                told = " and ".join(spell(each.identity) for each in running)
                self.flaws.append(f"O-03: {told} run at {clock(now)}, limited: {limit.scope}")
            window = (name, limit.rate, now // WINDOWS[limit.per])
            self._begun[window] += 1
            if limit.rate is not None and self._begun[window] > limit.rate:
                self.flaws.append(f"O-03: {self._begun[window]} begin in a {limit.per}: {name}")

    def _runs(self, one: Occurrence, now: int) -> bool:
        """Return True if the attempt that was begun still runs, as far as the store says."""
        current = self._running[one.user_id, one.key].get(one.identity)
        return current is not None and (current.lease_until or 0) > now

    def forgets(self, user_id: str) -> None:
        """Note that nothing of a user is there from now on, and ask for nothing that was."""
        self.erased.add(user_id)
        for by_name in (self.definitions, self._running):
            for name in [one for one in by_name if one[0] == user_id]:
                self.changed.add(name)
                del by_name[name]
        for by_identity in (self.ended, self.aged, self.deaths):
            for identity in [one for one in by_identity if one[0] == user_id]:
                del by_identity[identity]

    @property
    def users(self) -> set[str]:
        """The users with a known occurrence."""
        return {user for user, *_ in self.seen}

    def may_leave(
        self,
        every: Sequence[Occurrence],
        fires: Callable[[str, str], bool],
        retention: Retention,
        now: int,
    ) -> None:
        """Remember the occurrences that a purge may delete now, before it does."""
        by_name = defaultdict[ScheduleName, list[Occurrence]](list)
        for one in every:
            by_name[one.user_id, one.key].append(one)
        for name, mine in by_name.items():
            mine.sort(key=lambda one: (one.nominal_at, one.origin), reverse=True)
            own = [one for one in mine if not one.origin.startswith("failure:")]
            newest = own[:KEPT_AT_LEAST] if fires(*name) else []
            for one in (one for one in mine if one not in newest):
                if has_ended(one) and retention.expires_at(one) <= now:
                    self.aged[one.identity] = one

    def saw_book(
        self, name: ScheduleName, found: Snapshot, now: int, *, alone: bool = False
    ) -> None:
        """Look at a book that was changed, and keep its definition if that is new.

        A book that was loaded `alone` with an occurrence has no definition.
        """
        self.changed.add(name)
        for one in (*found.moved, *found.made):
            self.saw(one)
        if is_job(name[1]):
            return
        known = self.definitions[name]
        same = known[-1].since == found.defined_at if known else found.record is None
        if alone or same:
            return
        counts = found.record is None or not found.record.used_up
        since = found.defined_at
        if not counts and known and known[-1].record and known[-1].counts:
            since = min(now, since)
        if found.record is None:
            self.deleted.add(name)
        known.append(Definition(since, found.record, counts))

    def finds(self, name: ScheduleName, unfinished: Iterable[Occurrence]) -> None:
        """Look at the unfinished occurrences after a death inside a store: no others run."""
        under_way = {one.identity: one for one in unfinished}
        for one in under_way.values():
            self.saw(one)
        running = self._running[name]
        for identity in running.keys() - under_way.keys():
            del running[identity]

    def reaches(self, until: int) -> None:
        """Note the furthest instant to which a claim looked."""
        self.reached = max(self.reached, until)


def _is_told_of(dead: Occurrence) -> bool:
    """Return True if a failure hook has to tell of a death."""
    own = dead.origin == "schedule" or dead.origin.startswith(("run:", "call:", "job:"))
    return own and dead.policies.on_failure is not None and dead.redefined_at > 0


EPOCH_OF_TELLING: Final = "%a %d %b %H:%M:%S"


def spell(identity: Identity) -> str:
    """Return the name of an occurrence as a person reads it."""
    user, key, at, origin = identity
    return f"{user}/{key} of {clock(at)}" + ("" if origin == "schedule" else f" ({origin})")


def clock(at: int) -> str:
    """Return an instant as a person reads it, in UTC."""
    moment = datetime.fromtimestamp(at // 1_000, UTC)
    milliseconds = f".{at % 1_000:03d}" if at % 1_000 else ""
    return moment.strftime(EPOCH_OF_TELLING) + milliseconds
