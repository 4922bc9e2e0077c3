"""The pauses of a user, of a flow, or of everything: the rules that hold under every crossing.

A group's pause covers the nominal times from `since` until before its end, of each schedule in its
scope. It is one dated row, a standing order, and that row is their outcome (O-02):

- A claim advances what a pause covers, and records nothing. The other times are decided as if the
  expression did not name the covered ones: no misfire policy sees them, no limit counts them.
- A tick first writes to the row how far it may advance (`reached`). Until then the pause covers
  nothing for it. A pause never ends at or before that instant. So each time that a claim left out
  lies in a pause, whatever clocks say and however long a tick stands still. That is why a resume
  takes effect no earlier than the last claim, which looks ahead.
- What was recorded keeps its own outcome. An occurrence of origin `schedule` that a claim did not
  see covered is cancelled, `paused`, by its begin: if a pause holds then, or covers its time. So is
  a run, or a call that has not begun, while a pause holds.
- What has begun once is held: it keeps waiting for its next attempt, and no tick leases it. It
  follows when no pause holds. It is never lost for waiting. So is what a backfill has brought.
- When a pause ends, what comes due next fires. Its times do not fire afterwards. A row that is due
  for one of them, because no tick came, still meets the pause: it stands until no row is due for a
  time before its end.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from duetick.domain.errors import InvalidSchedule
from duetick.domain.identity import SCHEDULE_ORIGIN, stands_beside
from duetick.domain.occurrence import LATEST, Occurrence
from duetick.domain.standing import OF_USER, StandingOrder, escape
from duetick.domain.states import WAITING

EVERYTHING: Final = "all"
OF_FLOW: Final = "flow:"

MOST_STANDING: Final = 500
"""The most pauses that stand at once: a tick reads all of them, and writes to each."""

HELD_MS: Final = 60_000
"""The time after which a tick looks again at a retry that a pause holds."""

Hole: TypeAlias = tuple[int, int]
"""A span of nominal times that fire nothing: from its first instant until before its second."""


class Scopes(NamedTuple):
    """Everything, or some users and flows."""

    everything: bool
    users: list[str]
    flows: list[str]

    def __bool__(self) -> bool:
        return bool(self.everything or self.users or self.flows)


class GroupPause(NamedTuple):
    """A pause of a scope: `user:<id>`, `flow:<name>` or `all`.

    It holds from `since` until before `until`; without that, until it is resumed. Ticks may have
    advanced rows under it up to `reached`. `by` is who made it, `resumed_by` who ended it early.
    """

    scope: str
    since: int
    until: int | None = None
    note: str = ""
    by: str = ""
    reached: int = 0
    resumed_at: int | None = None
    resumed_by: str | None = None
    order: StandingOrder | None = None

    @property
    def end(self) -> int:
        """The instant at which the pause ends; `LATEST` if nobody said."""
        return LATEST if self.until is None else self.until

    @property
    def hole(self) -> Hole:
        """The times that a claim may leave out: if it was resumed, its end moves no more."""
        if self.resumed_at is not None:
            return self.since, self.end
        return self.since, min(self.end, self.reached + 1)

    def covers(self, at: int) -> bool:
        """Return True if an instant, or a nominal time, lies in the pause."""
        return self.since <= at < self.end

    def says_the_same(self, other: "GroupPause") -> bool:
        """Return True if both pause one scope, until one end, with one note."""
        ours, theirs = ((one.scope, one.until, one.note) for one in (self, other))
        return ours == theirs

    def may_end(self, now: int) -> bool:
        """Return True if a resume ends the pause: it is neither over nor resumed already."""
        return self.resumed_at is None and now < self.end

    def announce(self, reached: int) -> "GroupPause | None":
        """Return the pause under which a tick may advance rows up to an instant.

        Return None if it is so already, or if the end cannot move any more.
        """
        needed = min(reached, self.end - 1)
        if self.resumed_at is not None or needed <= self.reached:
            return None
        return self._replace(reached=needed)

    def resume(self, now: int, by: str) -> "GroupPause":
        """Return the pause as it ends now, or after the last time that a tick may have left out."""
        end = max(now, self.reached + 1, self.since)
        return self._replace(until=min(end, self.end), resumed_at=now, resumed_by=by)

    def dump(self) -> str:
        """Return the body of the pause's order."""
        fields = self._asdict()
        kept = {name: fields[name] for name in self._fields if name not in ("since", "order")}
        return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def load(cls, order: StandingOrder) -> "GroupPause":
        """Return the pause of an order."""
        fields = json.loads(order.body)
        known = {name: fields[name] for name in cls._fields if name in fields}
        return cls(since=order.since, order=order, **known)


def order_name(scope: str, since: int) -> str:
    """Return the name of the order of a scope's pause that begins at an instant."""
    return f"{escape(scope)}#{since:x}"


def user_of(scope: str) -> str | None:
    """Return the user of a scope, or None if it is none of a user."""
    return scope.removeprefix(OF_USER) if scope.startswith(OF_USER) else None


def check_scope(text: str) -> str:
    """Return the scope. Raises InvalidSchedule unless it is one."""
    named = text.partition(":")[2]
    if text == EVERYTHING or (text.startswith((OF_USER, OF_FLOW)) and named):
        return text
    wanted = f"expected user:<id>, flow:<name> or all, got {text[:60]!r}."
    raise InvalidSchedule("scope", wanted, "not_one_of")


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses that stand, as they were read."""

    every: tuple[GroupPause, ...] = ()
    _of_scope: dict[str, list[GroupPause]] = field(default_factory=dict, init=False, compare=False)

    def __post_init__(self) -> None:
        for one in self.every:
            self._of_scope.setdefault(one.scope, []).append(one)

    @classmethod
    def of_orders(cls, orders: Iterable[StandingOrder]) -> "Pauses":
        """Return the pauses among some orders."""
        return cls(tuple(GroupPause.load(one) for one in orders if one.kind == "pause"))

    def __bool__(self) -> bool:
        return bool(self.every)

    def of(self, user_id: str, flow: str | None) -> list[GroupPause]:
        """Return the pauses of the schedules of a user in a flow; in any flow if it is unknown.

        Schedules without a user, and rows without a flow, are in no such scope.
        """
        if not self.every:
            return []
        if flow is None:
            users = (EVERYTHING, f"{OF_USER}{user_id}")
            return [o for o in self.every if o.scope in users or o.scope.startswith(OF_FLOW)]
        found = [*self._of_scope.get(EVERYTHING, ())]
        found += self._of_scope.get(f"{OF_USER}{user_id}", ())
        return found + self._of_scope.get(f"{OF_FLOW}{flow}", [])

    def holding(self, user_id: str, flow: str, now: int) -> GroupPause | None:
        """Return the pause of these schedules that holds now, the last to end; None if none is."""
        found = [one for one in self.of(user_id, flow) if one.covers(now)]
        return max(found, key=lambda one: one.end, default=None)

    def holds_retry(self, occurrence: Occurrence, now: int) -> bool:
        """Return True if a pause keeps ticks from leasing the occurrence.

        The occurrence has begun once, or a backfill has brought it.
        """
        if not self.every or occurrence.state not in WAITING:
            return False
        if not occurrence.attempts and not stands_beside(occurrence.origin):
            return False
        return self.holding(occurrence.user_id, occurrence.flow, now) is not None

    def scopes_held(self, now: int) -> Scopes:
        """Return the scopes of the pauses that hold now."""
        held = [one.scope for one in self.every if one.covers(now)]
        return Scopes(
            EVERYTHING in held,
            [one.removeprefix(OF_USER) for one in held if one.startswith(OF_USER)],
            [one.removeprefix(OF_FLOW) for one in held if one.startswith(OF_FLOW)],
        )

    def holes(self, user_id: str, flow: str) -> tuple[Hole, ...]:
        """Return the spans that a claim leaves out of the times of a schedule, in order."""
        return merge(one.hole for one in self.of(user_id, flow))

    def spans(self, user_id: str, flow: str | None) -> tuple[Hole, ...]:
        """Return the spans that these pauses cover, in order."""
        return merge((one.since, one.end) for one in self.of(user_id, flow))

    def leaves_out(self, user_id: str, flow: str, at: int) -> bool:
        """Return True if a claim leaves out a nominal time."""
        return any(first <= at < end for first, end in self.holes(user_id, flow))


NO_PAUSES: Final = Pauses()


def merge(spans: Iterable[Hole]) -> tuple[Hole, ...]:
    """Return the same instants as spans that neither touch nor overlap, in order."""
    merged: list[Hole] = []
    for first, end in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif first < end:
            merged.append((first, end))
    return tuple(merged)


def pause_of_begin(occurrence: Occurrence, pauses: Pauses, now: int) -> GroupPause | None:
    """Return the pause that keeps an occurrence from beginning now, or None.

    A scheduled one that never began does not begin after the pause of its time either.
    """
    of_schedule = occurrence.user_id, occurrence.flow
    held = pauses.holding(*of_schedule, now)
    if held or occurrence.attempts or occurrence.origin != SCHEDULE_ORIGIN:
        return held
    return pauses.holding(*of_schedule, occurrence.nominal_at)


def held_until(pause: GroupPause, now: int) -> int:
    """Return the time at which an occurrence that a pause holds is looked at again."""
    return min(pause.end, now + HELD_MS)
