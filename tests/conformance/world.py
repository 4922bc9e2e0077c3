"""A random run in which several stores are asked the same, and must answer the same.

It has two schedules and a row without a record; ticks ahead of time and long after it; callers,
actions, operators, and a clock that goes back at times. Every few steps all data of the stores is
compared.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from duetick.core.purge import purge
from duetick.core.store import Store
from duetick.core.store.jobs import Jobs
from duetick.domain.attempts import Begun, CallerKey
from duetick.domain.backfilling import Backfill, Together, window_of
from duetick.domain.creation import Repeatable
from duetick.domain.errors import InvalidQuery, QuotaReached
from duetick.domain.group_pauses import Pauses
from duetick.domain.limits import Limits
from duetick.domain.operating import Operated, Operator
from duetick.domain.pausing import pause, resume
from duetick.domain.schedule import Identity, IndexRow, NewOccurrence, Occurrence, Schedule
from duetick.domain.standing import StandingOrder
from duetick.domain.states import LEASED, WAITING, State
from duetick.domain.transitions import has_ended
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, SECOND
from duetick.testing.conformance.suite import drain, run

from tests.conformance.chances import CRONS, OUTCOMES, START, USER, ZONES, Chances
from tests.conformance.looks import ALL, BARE, KEYS, by_name, lookups, whole
from tests.conformance.sides import Answers, Ask, Sides, brief

OPERATOR = Operator("the operator")
WHOLE_EVERY = 6
FEW = 15
STEPS = (1, *(n * SECOND for n in (1, 1, 2, 5, 10, 30, 61, 130, 400, 3_000, 25_200)))
SCOPES = (f"user:{USER}", "flow:flow", "all", "user:bob")
LIMITED = (f"user:{USER}", "flow:flow", "action:flow/act", "user:bob")
FOR_LONG = 400 * DAY
Held = Mapping[str, Occurrence]
"""One occurrence as each store leased it: the ids differ."""


class World:
    """A random run, and the occurrences that the stores leased so far."""

    def __init__(self, stores: Mapping[str, Store], seed: int) -> None:
        self.sides = Sides(stores)
        self._first = next(iter(stores.values()))
        self.any = Chances(seed)
        self.now = (
            START + self.any.randrange(HOUR) // SECOND * SECOND + self.any.choice((0, 1, 999))
        )
        self.handles: dict[tuple[Identity, int], Held] = {}
        self.runs = 0
        self.orders: dict[str, StandingOrder] = {}

    def goes_on(self, steps: int) -> None:
        """Take that many random steps, and let time pass between them."""
        happens = self._happens()
        for step in range(steps):
            self.time_passes()
            self.any.choice(happens)()
            if step % WHOLE_EVERY == 0:
                whole(self.sides)
        whole(self.sides)

    def time_passes(self) -> None:
        """Let time pass: mostly less than a lease, often to a full minute or just before it."""
        if self.any.happens(0.2):
            self.now += MINUTE - self.now % MINUTE - self.any.choice((0, 0, 1))
        else:
            self.now += self.any.choice(STEPS)

    def _happens(self) -> Sequence[Callable[[], None]]:
        """Return the steps; frequent ones are listed several times."""
        return (
            *(self.claim,) * 6,
            *(self.begin,) * 5,
            *(self.edit, self.settle) * 4,
            *(self.put,) * 5,
            *(self.waiting,) * 3,
            *(self.run, self.bring, self.look_up) * 2,
            *(
                self.effects,
                self.effects,
                self.pack,
                self.pack,
                self.pack,
                self.renew,
                self.release,
                self.delete,
                self.erase,
            ),
            *(self.upsert, self.remove, self.restore, self.rebuild, self.clock_goes_back),
            *(self.purge,) * 2,
            *(self.backfill,) * 3,
            *(self.follow_zone, self.close_pause, self.pass_over, self.write_off),
            *(self.retry, self.retry, self.cancel, self.discard),
            *(self.pause_group, self.resume_group, self.resume_group),
            *(self.limit, self.lift, self.lift, self.hold_back, self.hold_back),
            *(self.enqueue,) * 3,
        )

    def each(self, question: str, ask: Ask, *details: object) -> Answers:
        """Ask all stores, and keep the occurrences of their answers."""
        told = " ".join(map(brief, (question, *details)))
        self.sides.tell(f"{self.now - START:+,} {told}")
        answers = self.sides.each(question, ask)
        self._keep(answers)
        return answers

    def _keep(self, answers: Answers) -> None:
        found = {name: handed_out(answer) for name, answer in answers.items()}
        for each in zip(*found.values(), strict=True):
            name = each[0].identity, each[0].fence
            self.handles.setdefault(name, dict(zip(found, each, strict=True)))

    def each_with_one(
        self, question: str, ask: Callable[[Store, Occurrence], object], *details: object
    ) -> None:
        """Ask each store of one of its leased occurrences, mostly of the newest."""
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
        """Put a schedule that exists, changed in one way."""
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
            "pause": lambda one: pause(one, "n", None, self.now),
            f"pause until {until - START:+,}": lambda one: pause(one, "n", until, self.now),
            "resume": resume,
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
        if self.any.happens(0.4):
            self.each("erase", lambda store, _: store.erase(USER))

    def claim(self) -> None:
        """Claim until nothing is due: stores order equal times differently. Clocks differ. At times
        the bell of each row rings instead, whether it is due or not.

        DynamoDB claims less of a schedule that has many under way; such a schedule gets no more.
        """
        if any(self._under_way(key) > FEW for key in (*KEYS, BARE)):
            return
        limit, ahead = self.any.choice((1, 2, 100)), self.any.choice((0, 0, 0, 2, 10)) * MINUTE
        early = self.any.choice((0, 0, 0, SECOND, MINUTE, 4 * MINUTE))
        rings = limit == 2 and ahead == 0

        def ask(store: Store, _: str) -> object:
            now = self.now + early
            pauses = store.pauses.announce(now, now + ahead)
            limits = store.limits.handing_on(now, {}, fresh=True)
            if rings:
                return by_name(ring(store, now, pauses, limits))
            found = drain(store, now, limit, ahead=ahead, pauses=pauses, limits=limits)
            return by_name(found)

        question = "ring" if rings else "claim"
        self.each(question, ask, f"limit {limit} ahead {ahead} early {early}")

    def _under_way(self, key: str) -> int:
        return sum(not has_ended(one) for one in self._first.ledger.find(USER, key, limit=200))

    def waiting(self) -> None:
        ahead = self.any.choice((0, 0, MINUTE))

        def ask(store: Store, _: str) -> object:
            lost: list[Occurrence] = []
            found = store.ledger.claim_waiting(
                self.now,
                ALL,
                ahead=ahead,
                pauses=store.pauses.announce(self.now, self.now),
                limits=store.limits.handing_on(self.now, {}, fresh=True),
                on_lost=lost.append,
            )
            return [*by_name(found), *by_name(lost)]

        self.each("claim waiting", ask, f"ahead {ahead}")

    def upsert(self) -> None:
        """Put a row without a record, at a time that its cron need not name."""
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

    def purge(self) -> None:
        """Purge. The stores must agree on deleted schedules, not on forgotten items."""
        self.each("purge", lambda store, _: purge(store, self.now).deleted)

    def follow_zone(self) -> None:
        """Follow the zone, as the audit does when it has new rules. Here the rules are the same."""
        key = self.any.choice(KEYS)
        self.each("follow_zone", lambda store, _: store.follow_zone(USER, key, now=self.now), key)

    def close_pause(self) -> None:
        key = self.any.choice(KEYS)
        self.each("close_pause", lambda store, _: store.close_pause(USER, key, now=self.now), key)

    def pass_over(self) -> None:
        """Pass over due times, as after a restore from a backup."""
        key, until = self.any.choice((*KEYS, BARE)), self.now - self.any.choice((0, 0, MINUTE))
        keeps_newest = self.any.happens(0.5)

        def ask(store: Store, _: str) -> bool:
            return store.pass_over(USER, key, until, now=self.now, keeps_newest=keeps_newest)

        self.each("pass_over", ask, key, until - START, keeps_newest)

    def pause_group(self) -> None:
        """Pause the user, the flow, or everything."""
        scope = self.any.choice(SCOPES)
        until = self.now + self.any.choice((90, 300, 4_000)) * SECOND

        def ask(store: Store, _: str) -> object:
            return store.pauses.pause(scope, until=until, now=self.now)

        self.each("pause_group", ask, scope, until - START)

    def resume_group(self) -> None:
        scope = self.any.choice(SCOPES)
        self.each(
            "resume_group", lambda store, _: [*store.pauses.resume(scope, now=self.now)], scope
        )

    def limit(self) -> None:
        """Limit the user, a flow or an action: to very much, or to a place that somebody has for
        long.

        If equals wanted one free place, each store would give it to another.
        """
        scope, full = self.any.choice(LIMITED), self.any.happens(0.6)
        parallel, rate = self.any.choice(((1, None), (None, 1)) if full else ((400, 9_000),))

        def ask(store: Store, _: str) -> object:
            made = store.limits.set(scope, parallel=parallel, rate=rate, per="day", now=self.now)
            if full and made.order and made.room(self.now) > 0:
                taken = made.take("somebody", 1, self.now + FOR_LONG, self.now)
                assert taken
                assert store.shelf.keep_order(made.order.change(taken.dump()))
                store.standing.forget()
            return made.parallel, made.rate, made.changed_at

        self.each("limit", ask, scope, f"full {full}")

    def lift(self) -> None:
        scope = self.any.choice(LIMITED)
        self.each("lift", lambda store, _: len(store.limits.lift(scope, now=self.now)) > 0, scope)

    def hold_back(self) -> None:
        def ask(store: Store, held: Occurrence) -> object:
            return store.shelf.change(
                held.user_id,
                held.key,
                self.now,
                lambda book: book.hold_back(held, self.now),
                about=held,
            )

        self.each_with_one("hold_back", ask)

    def write_off(self) -> None:
        self.each_with_one(
            "write_off", lambda store, held: store.ledger.write_off(held, now=self.now)
        )

    def retry(self) -> None:
        """Retry one of the dead; a schedule with many under way gets no more."""
        if all(self._under_way(key) <= FEW for key in (*KEYS, BARE)):
            self._operate("retry", {State.DEAD}, lambda store: store.ledger.retry)

    def cancel(self) -> None:
        self._operate("cancel", LEASED | WAITING, lambda store: store.ledger.cancel)

    def discard(self) -> None:
        self._operate("discard", set(State), lambda store: store.ledger.discard)

    def _operate(
        self,
        verb: str,
        states: Collection[State],
        method: Callable[[Store], Callable[..., Operated]],
    ) -> None:
        """Change an occurrence in one of these states, in most cases; at times as a dry run."""
        wanted = None if self.any.happens(0.2) else states
        found = self._first.ledger.find(USER, state=wanted, limit=12)
        if not found:
            return
        name, dry = self.any.choice(found).identity, self.any.happens(0.1)

        def ask(store: Store, _: str) -> object:
            one = store.ledger.get(*name)
            return one and method(store)(one, OPERATOR, now=self.now, dry=dry)

        self.each(verb, ask, *name[1:], f"dry {dry}")

    def clock_goes_back(self) -> None:
        """Set the clock back, because two hosts never agree to the millisecond."""
        self.now -= self.any.choice((1, SECOND, 61 * SECOND))

    def begin(self) -> None:
        self.each_with_one("begin", lambda store, held: store.ledger.begin(held, now=self.now))

    def run(self) -> None:
        """Bring an occurrence and begin it at once."""
        brought, key = self._asked()
        self.each(
            "run",
            lambda store, _: run(store, brought(store), self.now, key),
            *(brought(None), key),
        )

    def enqueue(self) -> None:
        """Make a job, due now, later, or a while ago; at times with a key that made one before."""
        self.runs += 1
        name = f"occ_{self.runs:028x}"
        wanted = self.any.schedule(KEYS[0], self.now)
        due_at = self.now + self.any.choice((0, 0, -HOUR, 90 * SECOND, HOUR))
        key, at_most = self.any.choice((None, None, "j0", "j1")), self.any.choice((None, 3))

        def ask(store: Store, _: str) -> object:
            jobs = Jobs(store.shelf, store.now, lambda: name)
            made = jobs.enqueue(wanted, due_at=due_at, key=key, at_most=at_most, now=self.now)
            return [made.made, *made.job]

        self.each("enqueue", ask, wanted.flow, due_at - self.now, key, at_most)

    def bring(self) -> None:
        """Bring an occurrence that is begun later."""
        brought, key = self._asked()
        self.each(
            "bring",
            lambda store, _: store.ledger.bring(brought(store), now=self.now, key=key),
            *(brought(None), key),
        )

    def backfill(self) -> None:
        """Go on with the backfill of a schedule, at times from the order before; or order one."""
        name = self.any.choice(KEYS)
        order = self.orders.get(name)
        if order is None or self.any.happens(0.15):
            order = self._ordered(name)
        if order is None:
            return

        def ask(store: Store, _: str) -> object:
            step = store.ledger.backfill((USER, name), order, now=self.now)
            return [step.after.dump(), *step.made]

        told = f"{order.name} rev {order.rev}"
        answer = next(iter(self.each("backfill", ask, name, told).values()))
        if isinstance(answer, list) and self.any.happens(0.7):
            self.orders[name] = order.change(answer[0])

    def _ordered(self, key: str) -> StandingOrder | None:
        """Return a backfill of the last minutes or hours of a schedule."""
        found = self._first.schedules.get(USER, key)
        if found is None:
            return None
        together: Together = self.any.choice(("wait", "allow"))
        one = Backfill(
            *(USER, key, found.created_at, found.cron, found.timezone, found.anchor),
            window=window_of(found),
            since=self.now - self.any.choice((20 * MINUTE, 5 * HOUR)),
            until=self.now,
            total=0,
            at_once=1 if together == "wait" else self.any.choice((2, 5)),
            overlap=together,
            only_missing=self.any.happens(0.7),
            newest_first=self.any.happens(0.3),
        )
        self.runs += 1
        order = StandingOrder("backfill", f"b{self.runs}", self.now, one.dump())
        self.orders[key] = order
        return order

    def _asked(self) -> tuple[Callable[[Store | None], NewOccurrence], CallerKey | None]:
        """Return an occurrence to bring, under the policies of its schedule if that exists."""
        self.runs += 1
        asked = self.any.brought(self.any.choice(KEYS), self.now, self.runs)
        timed = self.any.happens(0.7)

        def brought(store: Store | None) -> NewOccurrence:
            record = store and store.schedules.get(USER, asked.key)
            if not record:
                return asked
            redefined_at = record.redefined_at if timed else 0
            return replace(asked, policies=record.policies, redefined_at=redefined_at)

        return brought, self.any.caller_key(0.4)

    def settle(self) -> None:
        outcome = self.any.choice(OUTCOMES)
        self.each_with_one(
            "settle", lambda store, held: store.ledger.settle(held, outcome, now=self.now), outcome
        )

    def effects(self) -> None:
        """Settle an attempt together with the writes of its action: some jobs, or none."""
        wanted = self.any.schedule(KEYS[0], self.now)
        due_at, key = self.now + self.any.choice((0, HOUR)), self.any.choice((None, "j0", "j1"))
        at_most, undone = self.any.choice((None, 1, 2, 3)), self.any.happens(0.1)
        self.runs += (count := self.any.choice((0, 0, 1, 1, 2, 3)))
        names = [f"occ_{self.runs - number:028x}" for number in range(count)]

        def ask(store: Store, held: Occurrence) -> object:
            answers: list[object] = []
            with store.ledger.settling(held, lambda: self.now) as effects:
                for name in names:
                    jobs = Jobs(store.shelf, store.now, partial(str, name))
                    try:
                        made = jobs.enqueue(
                            wanted,
                            due_at=due_at,
                            key=key,
                            at_most=at_most,
                            effects=effects,
                            within=held,
                            now=self.now,
                        )
                    except QuotaReached as refused:
                        answers.append(str(refused))
                    else:
                        answers += [made.made, *made.job]
                if undone:
                    raise InvalidQuery("undone")
            return answers

        self.each_with_one("effects", ask, count, wanted.flow, due_at, key, at_most, undone)

    def pack(self) -> None:
        """Begin several occurrences of different schedules together, or settle them."""
        outcome, begins = self.any.choice((None, *OUTCOMES)), self.any.happens(0.5)
        names = {name[0][1]: name for name in list(self.handles)[-12:]}  # the newest of each
        if not names:
            return
        told = [f"{key} {at - START:+,} {origin}" for (_, key, at, origin), _ in names.values()]

        def ask(store: Store, side: str) -> object:
            held = [self.handles[name][side] for name in names.values()]
            if outcome is None or begins:
                return list(store.ledger.begin_many(held, now=self.now))
            return list(store.ledger.settle_many([(one, outcome) for one in held], now=self.now))

        self.each("pack", ask, *told, outcome if not begins else None)

    def renew(self) -> None:
        self.each_with_one("renew", lambda store, held: store.ledger.renew(held, now=self.now))

    def release(self) -> None:
        self.each_with_one("release", lambda store, held: store.ledger.release(held, now=self.now))

    def look_up(self) -> None:
        self.sides.tell(f"{self.now - START:+,} look up")
        lookups(self.sides, self.now)


def handed_out(answer: object) -> Sequence[Occurrence]:
    """Return the occurrences of an answer. The world uses their fences from now on."""
    match answer:
        case list():
            return [one for each in answer for one in handed_out(each)]
        case Begun() | Operated():
            return [answer.occurrence]
        case Occurrence():
            return [answer]
        case _:
            return []


def ring(store: Store, now: int, pauses: Pauses, limits: Limits) -> list[Occurrence]:
    """Claim each row by itself, as its bell does. Return the leased occurrences."""
    claimed = (
        store.index.claim_one(USER, key, now=now, pauses=pauses, limits=limits)
        for key in (*KEYS, BARE)
    )
    return [one for each in claimed for one in each.made if one.state is State.QUEUED]
