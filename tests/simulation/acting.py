"""The acts of users, operators and callers, each at a host of the API."""

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from duetick.core.audit import audit
from duetick.core.backfills import BackfillRequest, Backfills
from duetick.core.dispatch import Request
from duetick.core.purge import purge_within
from duetick.core.runs import run_by_hand
from duetick.core.static import register
from duetick.core.store.jobs import Jobs
from duetick.core.verify import verify_hour
from duetick.domain.errors import OccurrenceConflict, OccurrenceNotFound, VersionConflict
from duetick.domain.firing import Times
from duetick.domain.identity import job_key, to_path
from duetick.domain.occurrence import LATEST, Occurrence
from duetick.domain.operating import Operated, Operator
from duetick.domain.pausing import keep_pause, pause, resume
from duetick.domain.policies import Delivery
from duetick.domain.retention import Days, Retention
from duetick.domain.rows import row_of
from duetick.domain.schedule import Json, Record, Schedule
from duetick.domain.states import LEASED, TERMINAL, WAITING, State
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE

from tests.conformance.chances import USER
from tests.simulation.network import Network
from tests.simulation.story import Act, Verb

LOOKS: Final = 60
"""How often an operator looks for something that runs: time passes at each look."""

OPERATOR: Final = Operator("the operator", "the partner is back")

if TYPE_CHECKING:
    from tests.simulation.world import Host, World

SHORT: Final = Retention(Days(3, 7))


def describe(act: Act) -> str:
    """Return an act in words that a person reads."""
    wanted = act.schedule
    if act.verb not in ("put", "retime", "other policies") or wanted is None:
        return f"{act.verb} {act.key}"
    zone = f" in {wanted.timezone}" if wanted.timezone else ""
    chosen = wanted.policies.dump() or "the defaults"
    return f"{act.verb} {act.key}: {wanted.cron}{zone}, action {wanted.action}, {chosen}"


class Acting:
    """One act of a user, an operator or a caller, at a host of the API."""

    def __init__(self, world: "World", host: "Host", act: Act) -> None:
        self._world = world
        self._host = host
        self._store = host.store
        self._act = act
        self._user = act.schedule.user_id if act.schedule else USER

    def does(self) -> None:
        """Do it."""
        verbs: dict[Verb, Callable[[], object]] = {
            "put": self._put,
            "retime": lambda: self._change(self._retimed),
            "other policies": lambda: self._change(self._with_policies),
            "other input": lambda: self._change(self._with_input),
            "pause": lambda: self._change(self._paused),
            "resume": lambda: self._change(resume),
            "toggle": lambda: self._change(lambda one: replace(one, enabled=not one.enabled)),
            "delete": self._delete,
            "run": self._run,
            "call": self._call,
            "lose the row": self._lose_the_row,
            "set the row back": self._set_back,
            "purge": self._purge,
            "audit": self._work_for_an_hour,
            "look": self._look,
            "break the row": self._break,
            "restore the row": self._restore,
            "backfill": self._backfill,
            "deploy": self._deploy,
            "retry": self._retry,
            "cancel": self._cancel,
            "discard": self._discard,
            "pause a group": self._pause_group,
            "limit": self._limit,
            "lift a limit": lambda: self._store.limits.lift(self._limited, now=self._now),
            "erase": lambda: self._store.erase(self._user),
            "enqueue": self._enqueue,
            "cancel a job": self._cancel_a_job,
            "resume a group": lambda: self._store.pauses.resume(self._scope, now=self._now),
        }
        verbs[self._act.verb]()

    def _purge(self) -> None:
        """Purge as the hourly function does, but of a retention that a story outlives."""
        name = self._world.slots.current.name
        purge_within(60.0, self._store, 7, retention=SHORT, owner=name, elapsed=self._seconds)

    def _seconds(self) -> float:
        return self._now / 1_000

    def _work_for_an_hour(self) -> None:
        """Audit, count bells and verify, as the hourly function does."""
        audit(self._store, self._now)
        self._world.tower.count(self._host)
        verify_hour(self._store, self._now, most=50, may_go_on=lambda: True)

    @property
    def _now(self) -> int:
        return self._store.now()

    def _put(self) -> None:
        """Create it, or replace it: then it keeps its pause."""
        wanted = self._act.schedule
        found = self._store.schedules.get(self._user, self._act.key)
        if wanted is None:
            return
        if found is None:
            self._store.schedules.put(wanted, now=self._now, if_version=0)
            return
        fresh = replace(resume(found), cron=wanted.cron, timezone=wanted.timezone)
        whole = replace(fresh, input=wanted.input, policies=wanted.policies, action=wanted.action)
        kept = keep_pause(found, whole, self._now)
        self._store.schedules.put(kept, now=self._now, if_version=found.version)

    def _change(self, way: Callable[[Record], Schedule]) -> None:
        """Read, change and write, as the API does. If another has written in between, do it once
        more.
        """
        for _ in range(8):
            found = self._store.schedules.get(self._user, self._act.key)
            if found is None:
                return
            try:
                self._store.schedules.put(way(found), now=self._now, if_version=found.version)
            except VersionConflict:
                continue
            return

    def _retimed(self, one: Record) -> Schedule:
        wanted = self._act.schedule or one
        return replace(one, cron=wanted.cron, timezone=wanted.timezone)

    def _with_policies(self, one: Record) -> Schedule:
        wanted = self._act.schedule or one
        once = wanted.policies.delivery is Delivery.EFFECTIVELY_ONCE
        kept = replace(
            wanted.policies, starts_at=one.policies.starts_at, ends_at=one.policies.ends_at
        )
        return replace(one, policies=kept, action="book" if once else "mail")

    def _with_input(self, one: Record) -> Schedule:
        return replace(one, input=[self._act.number])

    def _paused(self, one: Record) -> Schedule:
        now, lasts = self._now, (None, 90_000, 20 * MINUTE, 8 * HOUR)[self._act.number % 4]
        return pause(one, "", lasts and now + lasts, now)

    @property
    def _scope(self) -> str:
        return (f"user:{USER}", "flow:flow", "all", "flow:other")[self._act.number % 4]

    def _pause_group(self) -> None:
        now, lasts = self._now, (None, 90_000, 20 * MINUTE, 8 * HOUR)[self._act.number // 4 % 4]
        self._store.pauses.pause(self._scope, until=lasts and now + lasts, now=now)

    @property
    def _limited(self) -> str:
        return ("flow:flow", f"user:{USER}", "action:flow/mail", "user:bob")[self._act.number % 4]

    def _limit(self) -> None:
        number = self._act.number // 4
        bounds: tuple[int | None, int | None] = ((2, None), (1, None), (None, 3), (2, 40))[
            number % 4
        ]
        parallel, rate = bounds
        self._store.limits.set(self._limited, parallel=parallel, rate=rate, now=self._now)

    def _delete(self) -> None:
        self._store.schedules.delete(self._user, self._act.key, now=self._now)

    def _lose_the_row(self) -> None:
        self._store.index.remove(self._user, self._act.key)
        self._store.rebuild(now=self._now)

    def _break(self) -> None:
        row = self._store.index.get(self._user, self._act.key)
        if row:
            self._store.index.upsert(replace(row, cron="nonsense"))

    def _restore(self) -> None:
        self._store.index.restore(self._user, self._act.key, now=self._now)

    def _retry(self) -> None:
        """Retry one that is dead, found as an operator finds it."""
        one = self._one_in({State.DEAD})
        if one:
            self._world.witness.retries(one.identity)
            named = self._store.ledger.find_by_id(one.id) or one
            self._operate(lambda: self._store.ledger.retry(named, OPERATOR, now=self._now))

    def _cancel(self) -> None:
        """Cancel an occurrence that runs, if one does before long; else one that waits."""
        looks = (self._one_in({State.PROCESSING}) for _ in range(LOOKS))
        one = next(filter(None, looks), None) or self._one_in(LEASED | WAITING)
        if one:
            self._operate(lambda: self._store.ledger.cancel(one, OPERATOR, now=self._now))

    def _discard(self) -> None:
        one = self._one_in(TERMINAL | {State.QUEUED})
        if one:
            self._operate(lambda: self._store.ledger.discard(one, OPERATOR, now=self._now))

    def _one_in(self, states: Collection[State]) -> Occurrence | None:
        found = self._store.ledger.find(self._user, self._act.key, state=states, limit=5)
        return found[self._act.number % len(found)] if found else None

    def _operate(self, change: Callable[[], Operated]) -> None:
        with suppress(OccurrenceConflict, OccurrenceNotFound):
            self._world.tell(f"it is {change().occurrence.state}")

    def _look(self) -> None:
        """Make the reads that people make, and write something that nobody reads."""
        store = self._store
        store.schedules.list(self._user, limit=2, now=self._now)
        store.jobs.list(self._user, limit=2)
        store.schedules.find_by_external("nobody")
        store.schedules.creation(self._user, "nothing", now=self._now)
        store.ledger.events_of(store.ledger.find(self._user, self._act.key, limit=5))
        store.index.unreadable()
        store.index.backlog(self._now)
        store.ledger.get(self._user, self._act.key, self._now, "schedule")

    def _enqueue(self) -> None:
        """Make a job, due now, later or a while ago; at times with a key that made one before."""
        wanted, number = self._act.schedule, self._act.number
        if wanted is None:
            return
        name = f"occ_{self._act.at:014x}{number:014x}"
        jobs = Jobs(self._store.shelf, self._store.now, lambda: name)
        due_at = self._now + (0, -HOUR, 90_000, 20 * MINUTE)[number // 4 % 4]
        key = (None, "j0", "j0", "j1")[number % 4]
        if (self._user, job_key(name)) not in self._world.names:
            self._world.names.append((self._user, job_key(name)))
        made = jobs.enqueue(wanted, due_at=due_at, key=key, at_most=50)
        self._world.witness.enqueued(made, key)

    def _cancel_a_job(self) -> None:
        found = self._store.jobs.list(self._user, ended=False).jobs
        if found:
            one = found[self._act.number % len(found)].occurrence
            self._operate(lambda: self._store.ledger.cancel(one, OPERATOR, now=self._now))

    def _run(self) -> None:
        found = self._store.schedules.get(self._user, self._act.key)
        if found:
            name = f"r{self._act.number % 2}" if self._act.number % 3 else None
            run_by_hand(self._store, Network(self._world), found, self._now, name, at_most=30)

    def _call(self) -> None:
        """Call dispatch as an outside scheduler does: for now, or for a time, with a key or not."""
        number, body = self._act.number, dict[str, Json]()
        found = self._world.peek(self._user, self._act.key).record
        if found and number % 2:
            times = Times.of(row_of(found, 0))
            newest = times.newest(self._now - 3 * HOUR, self._now)
            if newest:
                body["nominalFireTime"] = newest
        if number % 5 == 0:
            body["idempotencyKey"] = f"c{number % 2}"
        path = to_path(f"{self._user}/{self._act.key}")
        answer = self._world.dispatch(Request("flow", path, {}, json.dumps(body), "call"))
        self._world.tell(f"the caller is answered {answer.status if answer else None}")

    def _deploy(self) -> None:
        """Deploy anew: the static schedule is declared in this way, or no longer."""
        declares = self._act.number % 4 > 0 and self._act.schedule is not None
        self._world.static = self._act.schedule if declares else None
        register(self._store, [self._world.static] if self._world.static else [], "simulated")

    def _backfill(self) -> None:
        """Order a backfill of some of the last times; or stop, or continue, the one that stands."""
        backfills, number = Backfills(self._store), self._act.number
        for one in backfills.find(self._user, self._act.key, ended_after=LATEST):
            (backfills.go_on if one.one.phase == "stopped" else backfills.stop)(one.name)
            return
        found = self._store.schedules.get(self._user, self._act.key)
        if found is None:
            return
        times, since = Times.of(row_of(resume(found), 0)), self._now
        for _ in range(1 + number % 9):
            since = times.newest(since - 40 * DAY, since - 1) or since
        side_by_side = number % 4 < 3
        wanted = BackfillRequest(
            self._user,
            self._act.key,
            since,
            self._now,
            at_once=1 + number % 3 if side_by_side else 1,
            overlap="allow" if side_by_side else "wait",
            only_missing=number % 5 > 0,
            newest_first=number % 7 > 4,
        )
        backfills.start(backfills.plan(wanted))

    def _set_back(self) -> None:
        """Set the row back by some times, but to none before its definition."""
        row = self._store.index.get(self._user, self._act.key)
        if row is None:
            return
        at: int | None = row.next_fire_at
        for _ in range(1 + self._act.number % 4):
            at = Times.of(row).newest(at - 40 * DAY, at - 1) if at else None
        if at and at > row.redefined_at:
            self._store.index.upsert(replace(row, next_fire_at=at))
