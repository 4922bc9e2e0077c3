"""A world at random: whatever may happen to a store happens to several, and all agree.

Two schedules and a row without a record; ticks ahead of time and long after it; callers, actions,
operators, and a clock that goes back at times. Every few steps all that they hold is compared.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from duetick.domain.creation import Repeatable
from duetick.domain.pausing import paused, resumed
from duetick.domain.schedule import Identity, IndexRow, Occurrence, Schedule
from duetick.ports import Begun, CallerKey, Store
from duetick.testing.conformance.samples import HOUR, MINUTE, SECOND
from duetick.testing.conformance.suite import drain

from tests.conformance.chances import CRONS, OUTCOMES, START, USER, ZONES, Chances
from tests.conformance.looks import ALL, BARE, KEYS, by_name, lookups, whole
from tests.conformance.sides import Answers, Ask, Sides, brief

WHOLE_EVERY = 6
STEPS = (1, *(n * SECOND for n in (1, 1, 2, 5, 10, 30, 61, 130, 400, 3_000, 25_200)))
Held = Mapping[str, Occurrence]
"""One occurrence as each store handed it out: its id differs."""


class World:
    """What happens, and what was handed out so far."""

    def __init__(self, stores: Mapping[str, Store], seed: int) -> None:
        self.sides = Sides(stores)
        self.any = Chances(seed)
        self.now = (
            START + self.any.randrange(HOUR) // SECOND * SECOND + self.any.choice((0, 1, 999))
        )
        self.handles: dict[tuple[Identity, int], Held] = {}
        self.runs = 0

    def goes_on(self, steps: int) -> None:
        """So many things happen, and time passes."""
        happens = self._happens()
        for step in range(steps):
            self.time_passes()
            self.any.choice(happens)()
            if step % WHOLE_EVERY == 0:
                whole(self.sides)
        whole(self.sides)

    def time_passes(self) -> None:
        """Mostly less than a lease takes; often up to the very minute, or a millisecond short."""
        if self.any.happens(0.2):
            self.now += MINUTE - self.now % MINUTE - self.any.choice((0, 0, 1))
        else:
            self.now += self.any.choice(STEPS)

    def _happens(self) -> Sequence[Callable[[], None]]:
        """What happens often stands here often."""
        return (
            *(self.claim,) * 6,
            *(self.begin,) * 5,
            *(self.edit, self.settle) * 4,
            *(self.put,) * 5,
            *(self.waiting,) * 3,
            *(self.run, self.bring, self.look_up) * 2,
            *(self.effects, self.renew, self.release, self.delete, self.erase),
            *(self.upsert, self.remove, self.restore, self.rebuild, self.clock_goes_back),
        )

    def each(self, question: str, ask: Ask, *details: object) -> None:
        """Ask all; what they hand out is used later."""
        told = " ".join(map(brief, (question, *details)))
        self.sides.tell(f"{self.now - START:+,} {told}")
        self._keep(self.sides.each(question, ask))

    def _keep(self, answers: Answers) -> None:
        found = {name: handed_out(answer) for name, answer in answers.items()}
        for each in zip(*found.values(), strict=True):
            name = each[0].identity, each[0].fence
            self.handles.setdefault(name, dict(zip(found, each, strict=True)))

    def each_with_one(
        self, question: str, ask: Callable[[Store, Occurrence], object], *details: object
    ) -> None:
        """Ask of one that was handed out, mostly of the newest, if any was; each of its own."""
        if self.handles:
            newest = list(self.handles)[-self.any.choice((1, 2, 3, 12)) :]
            (_, key, at, origin), fence = name = self.any.choice(newest)
            held = self.handles[name]
            told = f"{key} {at - START:+,} {origin} fence {fence}"
            self.each(question, lambda store, side: ask(store, held[side]), told, *details)

    def put(self) -> None:
        wanted = self.any.schedule(self.any.choice(KEYS), self.now)
        asked = Repeatable(f"n{self.any.randrange(2)}", "d", self.now + HOUR)
        repeatable = asked if self.any.happens(0.3) else None
        if_version = 0 if repeatable else self.any.choice((*(None,) * 6, 0, 1, 2))
        at_most = self.any.choice((None, None, None, 1, 2))

        def ask(store: Store, _: str) -> Schedule:
            return store.schedules.put(
                wanted, now=self.now, if_version=if_version, at_most=at_most, repeatable=repeatable
            )

        self.each("put", ask, wanted, if_version, at_most, repeatable)

    def edit(self) -> None:
        """What is there, changed in one way."""
        key, ways = self.any.choice(KEYS), self._ways()
        way = self.any.choice(list(ways))

        def ask(store: Store, _: str) -> Schedule | None:
            current = store.schedules.get(USER, key)
            return current and store.schedules.put(ways[way](current), now=self.now)

        self.each("edit", ask, key, way)

    def _ways(self) -> Mapping[str, Callable[[Schedule], Schedule]]:
        until = self.now + self.any.choice((90, 300, 4_000, 30_000)) * SECOND
        cron, zone = self.any.choice(CRONS), self.any.choice(ZONES)
        policies = self.any.policies()
        return {
            "pause": lambda one: paused(one, "n", None, self.now),
            f"pause until {until - START:+,}": lambda one: paused(one, "n", until, self.now),
            "resume": resumed,
            "toggle": lambda one: replace(one, enabled=not one.enabled),
            str(policies): lambda one: replace(one, policies=policies),
            cron: lambda one: replace(one, cron=cron),
            str(zone): lambda one: replace(one, timezone=zone),
            "input": lambda one: replace(one, input=[self.now]),
            "nothing": lambda one: one,
        }

    def delete(self) -> None:
        key = self.any.choice(KEYS)
        self.each("delete", lambda store, _: store.schedules.delete(USER, key, now=self.now), key)

    def erase(self) -> None:
        if self.any.happens(0.1):
            self.each("erase", lambda store, _: store.erase(USER))

    def claim(self) -> None:
        """Until nothing is due: in which order is each store's own affair."""
        limit, ahead = self.any.choice((1, 2, 100)), self.any.choice((0, 0, 0, 2, 10)) * MINUTE

        def ask(store: Store, _: str) -> object:
            return by_name(drain(store, self.now, limit, ahead=ahead))

        self.each("claim", ask, f"limit {limit} ahead {ahead}")

    def waiting(self) -> None:
        ahead = self.any.choice((0, 0, MINUTE))

        def ask(store: Store, _: str) -> object:
            lost: list[Occurrence] = []
            found = store.ledger.claim_waiting(self.now, ALL, ahead=ahead, on_lost=lost.append)
            return [*by_name(found), *by_name(lost)]

        self.each("claim waiting", ask, f"ahead {ahead}")

    def upsert(self) -> None:
        """A row that no record asks for, at a time that need not be one of its own."""
        key = self.any.choice((*KEYS, BARE, BARE))
        cron = "nonsense" if self.any.happens(0.3) else self.any.choice(CRONS)
        at = self.now + self.any.randrange(-30, 30) * MINUTE + self.any.choice((0, 0, 0, 1_234))
        if self.any.happens(0.6):
            at -= at % MINUTE
        policies = replace(self.any.policies(), max_runs=None)
        row = IndexRow(USER, key, cron, None, at, policies=policies, flow="flow")
        self.each("upsert", lambda store, _: store.index.upsert(row), row)

    def remove(self) -> None:
        key = self.any.choice((*KEYS, BARE))
        self.each("remove", lambda store, _: store.index.remove(USER, key), key)

    def restore(self) -> None:
        key = self.any.choice((*KEYS, BARE))
        self.each("restore", lambda store, _: store.index.restore(USER, key, now=self.now), key)

    def rebuild(self) -> None:
        self.each("check", lambda store, _: store.check(now=self.now))
        self.each("rebuild", lambda store, _: store.rebuild(now=self.now))
        self.each("check", lambda store, _: store.check(now=self.now))

    def clock_goes_back(self) -> None:
        """Two hosts never agree to the millisecond."""
        self.now -= self.any.choice((1, SECOND, 61 * SECOND))

    def begin(self) -> None:
        key = self.any.caller_key(0.2)
        self.each_with_one(
            "begin", lambda store, held: store.ledger.begin(held, now=self.now, key=key), key
        )

    def run(self) -> None:
        """A caller brings one and begins it at once."""
        brought, key = self._asked()
        self.each(
            "run",
            lambda store, _: store.ledger.begin(brought(store), now=self.now, key=key),
            *(brought(None), key),
        )

    def bring(self) -> None:
        """A caller brings one, which is begun later."""
        brought, key = self._asked()
        self.each(
            "bring",
            lambda store, _: store.ledger.bring(brought(store), now=self.now, key=key),
            *(brought(None), key),
        )

    def _asked(self) -> tuple[Callable[[Store | None], Occurrence], CallerKey | None]:
        """An occurrence under the policies of its schedule, where that exists."""
        self.runs += 1
        asked = self.any.brought(self.any.choice(KEYS), self.now, self.runs)
        timed = self.any.happens(0.7)

        def brought(store: Store | None) -> Occurrence:
            record = store and store.schedules.get(USER, asked.key)
            if not record:
                return asked
            return replace(asked, policies=record.policies, timing=record.timing if timed else 0)

        return brought, self.any.caller_key(0.4)

    def settle(self) -> None:
        outcome = self.any.choice(OUTCOMES)
        self.each_with_one(
            "settle", lambda store, held: store.ledger.settle(held, outcome, now=self.now), outcome
        )

    def effects(self) -> None:
        """An attempt is settled in one with what its action writes, which is nothing here."""

        def ask(store: Store, held: Occurrence) -> None:
            with store.ledger.settling(held, lambda: self.now):
                pass

        self.each_with_one("effects", ask)

    def renew(self) -> None:
        self.each_with_one("renew", lambda store, held: store.ledger.renew(held, now=self.now))

    def release(self) -> None:
        self.each_with_one("release", lambda store, held: store.ledger.release(held, now=self.now))

    def look_up(self) -> None:
        self.sides.tell(f"{self.now - START:+,} look up")
        lookups(self.sides, self.now)


def handed_out(answer: object) -> Sequence[Occurrence]:
    """The occurrences of an answer, whose fences are used from now on."""
    match answer:
        case list():
            return [one for each in answer for one in handed_out(each)]
        case Begun():
            return [answer.occurrence]
        case Occurrence():
            return [answer]
        case _:
            return []
