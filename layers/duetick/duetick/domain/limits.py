"""The limits of a user, a flow or an action: the rules that hold under every crossing.

A limit says how many occurrences of its scope run at once (`parallel`), and how many begin in each
minute, hour or day of the clock, in UTC (`rate`). It is a standing order, and its body has the
leases that the limit has given: one item (O-03).

- A begin takes a lease of each limit that covers its occurrence, by the name of the occurrence.
  The same begin again takes nothing more. The lease ends with that of the attempt, and whoever
  takes one drops those that are over. The end of the attempt gives it back.
- If a limit has no place, the occurrence is held back: it waits, and nothing is counted. No
  attempt, no run, no place of its schedule is used up.
- A claim under a limit leases nothing: what fires waits (`scheduled`) until a tick finds a place.
- Waiting for a limit is no lateness. What was held back is due when it is leased again.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from duetick.domain.errors import InvalidSchedule, check_all
from duetick.domain.identity import check_name
from duetick.domain.occurrence import Identity, Occurrence
from duetick.domain.policies import DAY, MINUTE_MS
from duetick.domain.standing import OF_USER, StandingOrder
from duetick.domain.states import WAITING, State

Per: TypeAlias = Literal["minute", "hour", "day"]

KIND: Final = "limit"
OF_FLOW: Final = "flow:"
OF_ACTION: Final = "action:"

MOST_STANDING: Final = 100
"""The most limits that stand at once: a tick reads all of them, with their leases."""

MOST_AT_ONCE: Final = 500
"""The most leases of a limit, also of one without `parallel`: an item of some 20 kilobytes."""

MOST_IN_A_WINDOW: Final = 1_000_000

WINDOWS: Final[Mapping[str, int]] = {
    "minute": MINUTE_MS,
    "hour": 60 * MINUTE_MS,
    "day": DAY * 1_000,
}

ActionOf: TypeAlias = Callable[[Occurrence], str]
"""A function that returns the action of an occurrence's schedule, empty if it is not known."""


def say_rate(number: int, per: str) -> str:
    """Return the most of a window in words, such as "60 an hour"."""
    return f"{number:,} {'an' if per == 'hour' else 'a'} {per}"


class LimitLease(NamedTuple):
    """A place that a limit has given to an attempt, by its fence. It counts in a window's rate."""

    fence: int
    until: int
    window: int


class Limit(NamedTuple):
    """A limit of a scope: `user:<id>`, `flow:<name>` or `action:<flow>/<action>`.

    `leases` are by the digest of an occurrence's name. `counted` begins have been counted since
    `window`. `by` is who made or changed it last, at `changed_at`.
    """

    scope: str
    parallel: int | None = None
    rate: int | None = None
    per: Per = "minute"
    note: str = ""
    by: str = ""
    changed_at: int = 0
    leases: Mapping[str, LimitLease] = {}
    window: int = 0
    counted: int = 0
    order: StandingOrder | None = None

    @property
    def at_once(self) -> int:
        """The most leases that the limit gives at once."""
        return MOST_AT_ONCE if self.parallel is None else self.parallel

    def live(self, now: int) -> dict[str, LimitLease]:
        """Return the leases that are not over."""
        return {name: one for name, one in self.leases.items() if one.until > now}

    def in_window(self, now: int) -> "Limit":
        """Return the limit with the count of the window of an instant, and of no earlier one."""
        window = now - now % WINDOWS[self.per]
        return self if window <= self.window else self._replace(window=window, counted=0)

    def room(self, now: int, besides: Iterable[str] = ()) -> int:
        """Return how many more may begin now, if those `besides` begin too. It may be negative."""
        live = self.live(now)
        more = len({*besides} - live.keys())
        free = self.at_once - len(live) - more
        if self.rate is None:
            return free
        return min(free, self.rate - self.in_window(now).counted - more)

    def free_at(self, now: int) -> int:
        """Return the instant from which on there is a place, even if nobody gives one back."""
        ends = sorted(one.until for one in self.live(now).values())
        at = ends[len(ends) - self.at_once] if len(ends) >= self.at_once else now
        current = self.in_window(now)
        if self.rate is not None and current.counted >= self.rate:
            at = max(at, current.window + WINDOWS[self.per])
        return at

    def take(self, name: str, fence: int, until: int, now: int) -> "Limit | None":
        """Return the limit with a lease for an attempt; None if it has no place.

        Leases that are over are dropped. An attempt that has its lease takes none, and counts in no
        window again.
        """
        current = self.in_window(now)._replace(leases=self.live(now))
        held = current.leases.get(name)
        if held and held.fence == fence:
            return current.extend(name, fence, until)
        others = {each: one for each, one in current.leases.items() if each != name}
        current = current._replace(leases=others)
        if current.room(now) < 1:
            return None
        lease = LimitLease(fence, until, current.window)
        return current._replace(leases={**others, name: lease}, counted=current.counted + 1)

    def has(self, name: str, fence: int) -> bool:
        """Return True if the attempt has a lease."""
        held = self.leases.get(name)
        return held is not None and held.fence == fence

    def extend(self, name: str, fence: int, until: int) -> "Limit":
        """Return the limit with the lease of an attempt up to an instant, if that is later."""
        if not self.has(name, fence):
            return self
        held = self.leases[name]
        longer = held._replace(until=max(held.until, until))
        return self._replace(leases={**self.leases, name: longer})

    def give_back(self, name: str, fence: int, *, unused: bool = False) -> "Limit":
        """Return the limit without the lease of an attempt. An `unused` one was no begin."""
        if not self.has(name, fence):
            return self
        others = {each: one for each, one in self.leases.items() if each != name}
        counts = unused and self.leases[name].window == self.window
        return self._replace(leases=others, counted=self.counted - counts)

    def dump(self) -> str:
        """Return the body of the limit's order."""
        kept = {name: getattr(self, name) for name in self._fields if name != "order"}
        return json.dumps(kept, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def load(cls, order: StandingOrder) -> "Limit":
        """Return the limit of an order."""
        fields = json.loads(order.body)
        known = {name: fields[name] for name in cls._fields if name in fields}
        leases = {name: LimitLease(*one) for name, one in known.pop("leases", {}).items()}
        return cls(**known, leases=leases, order=order)


class FullScopes(NamedTuple):
    """The users, flows and actions (`flow/action`) whose limits have no place."""

    users: list[str]
    flows: list[str]
    actions: list[str]

    def __bool__(self) -> bool:
        return bool(self.users or self.flows or self.actions)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that stand, as they were read.

    `mine` are occurrences that a tick has leased and that have not been answered, by their digests:
    each has the scopes whose place it is going to take. `picked` are those of the picks so far.
    """

    every: tuple[Limit, ...] = ()
    mine: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    picked: dict[Identity, tuple[str, ...]] = field(default_factory=dict, compare=False)
    scopes: frozenset[str] = field(default=frozenset(), init=False, compare=False)
    _flows: frozenset[str] = field(default=frozenset(), init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", frozenset(one.scope for one in self.every))
        flows = (one.scope.partition(":")[2] for one in self.every if not _is_of_user(one.scope))
        object.__setattr__(self, "_flows", frozenset(one.partition("/")[0] for one in flows))

    @classmethod
    def of_orders(
        cls, orders: Iterable[StandingOrder], mine: Mapping[str, tuple[str, ...]] | None = None
    ) -> "Limits":
        """Return the limits among some orders."""
        return cls(tuple(Limit.load(one) for one in orders if one.kind == KIND), mine or {})

    def __bool__(self) -> bool:
        return bool(self.every)

    def concerns(self, user_id: str, flow: str | None) -> bool:
        """Return True if a limit may cover schedules of a user in a flow; in any if it is unknown.

        It depends on the action, if that of an action is the only one.
        """
        if not self.every:
            return False
        known = flow in self._flows if flow is not None else bool(self._flows)
        return known or f"{OF_USER}{user_id}" in self.scopes

    def asks_action(self, flow: str | None) -> bool:
        """Return True if a limit of an action of the flow stands; of any flow if it is unknown."""
        first = OF_ACTION if flow is None else f"{OF_ACTION}{flow}/"
        return any(one.startswith(first) for one in self.scopes)

    def of(self, user_id: str, flow: str, action: str) -> list[Limit]:
        """Return the limits that cover the occurrences of a user in a flow with an action."""
        named = {f"{OF_FLOW}{flow}", f"{OF_ACTION}{flow}/{action}"} if flow else set[str]()
        named |= {f"{OF_USER}{user_id}"} if user_id else set()
        return [one for one in self.every if one.scope in named]

    def without_places(self) -> "Limits":
        """Return these limits without any place: a claim leases nothing that they may cover."""
        return Limits(tuple(one._replace(parallel=0, rate=None) for one in self.every))

    def room(self, limit: Limit, now: int) -> int:
        """Return how many more of a limit may be handed on, besides those that are mine."""
        mine = (name for name, scopes in self.mine.items() if limit.scope in scopes)
        return limit.room(now, mine)

    def full(self, now: int) -> FullScopes:
        """Return the scopes whose limits have no place."""
        found = sorted({one.scope for one in self.every if self.room(one, now) < 1})
        return FullScopes(
            *(
                [one.removeprefix(kind) for one in found if one.startswith(kind)]
                for kind in (OF_USER, OF_FLOW, OF_ACTION)
            )
        )

    def keeps_back(self, one: Occurrence, action: str, now: int) -> bool:
        """Return True if no tick may lease an occurrence now: one of its limits has no place."""
        if not self.every or not _waits_its_turn(one):
            return False
        covering = self.of(one.user_id, one.flow, action)
        return any(self.room(limit, now) < 1 for limit in covering)

    def pick(
        self, found: Sequence[Occurrence], action_of: ActionOf, now: int
    ) -> Sequence[Occurrence]:
        """Return the occurrences for which the limits have places, in the order in which they come.

        An occurrence that has begun once and lost its lease is among them: a tick decides about it.
        """
        if not self.every:
            return found
        rooms = {one.scope: self.room(one, now) for one in self.every}
        chosen: list[Occurrence] = []
        for one in found:
            covering = self.of(one.user_id, one.flow, action_of(one))
            scopes = tuple(limit.scope for limit in covering)
            if _waits_its_turn(one) and any(rooms[scope] < 1 for scope in scopes):
                continue
            for scope in scopes:
                rooms[scope] -= 1
            if scopes:
                self.picked[one.identity] = scopes
            chosen.append(one)
        return chosen


NO_LIMITS: Final = Limits()


def digest_of(identity: Identity) -> str:
    """Return the name under which a limit knows an occurrence. It tells nothing of its user."""
    name = "\0".join(map(str, identity)).encode(errors="surrogatepass")
    return blake2b(name, digest_size=8).hexdigest()


def _waits_its_turn(one: Occurrence) -> bool:
    """Return True if nothing is lost by passing an occurrence over: it has no attempt to end."""
    return one.state in WAITING or (one.state is State.QUEUED and not one.attempts)


def _is_of_user(scope: str) -> bool:
    return scope.startswith(OF_USER)


def check_limit(scope: str, parallel: int | None, rate: int | None, per: str) -> None:
    """Raise InvalidSchedule naming everything that is wrong with a limit."""
    check_all(
        lambda: check_limited(scope),
        lambda: _check_bound("parallel", parallel, MOST_AT_ONCE),
        lambda: _check_bound("rate", rate, MOST_IN_A_WINDOW),
        lambda: _check_per(per),
        lambda: _check_any(parallel, rate),
    )


def check_limited(text: str) -> str:
    """Return the scope. Raises InvalidSchedule unless it is one that a limit may have."""
    kind, _, named = text.partition(":")
    if f"{kind}:" in (OF_USER, OF_FLOW) and named:
        return text
    flow, slash, action = named.partition("/")
    if f"{kind}:" == OF_ACTION and slash:
        check_name("scope", flow)
        check_name("scope", action)
        return text
    wanted = f"expected user:<id>, flow:<name> or action:<flow>/<action>, got {text[:60]!r}."
    raise InvalidSchedule("scope", wanted, "not_one_of")


def _check_bound(name: str, value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        wrong = f"expected a whole number from 1 to {most:,}, got {value:,}."
        raise InvalidSchedule(name, wrong, "out_of_range")


def _check_per(per: str) -> None:
    if per not in get_args(Per):
        wanted = f"expected one of {', '.join(get_args(Per))}, got {per[:60]!r}."
        raise InvalidSchedule("per", wanted, "not_one_of")


def _check_any(parallel: int | None, rate: int | None) -> None:
    if parallel is None and rate is None:
        raise InvalidSchedule(
            "parallel", "is missing, and so is rate; give one, or both.", "missing"
        )
