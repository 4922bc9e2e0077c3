"""The world of a simulation: real ticks, real dispatch, users, operators, callers, in one slot.

A host stands for a sandbox of Lambda: it takes one invocation at a time, keeps its connections from
one to the next, and has a clock of its own. If no host is free, a new one is started.
"""

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple
from unittest import mock
from zlib import crc32

from duetick.core.audit import audit
from duetick.core.backfills import Backfills
from duetick.core.dispatch import Dispatcher, Request
from duetick.core.flows import Flow, Flows
from duetick.core.managed.watched import Followers
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.core.tick.packing import run_pack_tick
from duetick.domain.backfilling import KIND, Backfill, id_of, origin_of
from duetick.domain.errors import DuetickError, InvalidSchedule, VersionConflict
from duetick.domain.identity import is_job
from duetick.domain.occurrence import IndexRow, Occurrence, ScheduleName
from duetick.domain.pausing import is_paused, resume
from duetick.domain.rows import has_old_rules
from duetick.domain.schedule import Record, Schedule
from duetick.domain.standing import StandingOrder
from duetick.domain.transitions import wake_of
from duetick.ports import Delivered, Shelf
from duetick.runtime.managed import Managed
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, SECOND

from tests.conformance.chances import USER
from tests.simulation.acting import Acting, describe
from tests.simulation.boundaries import Boundaries, CrossedShelf
from tests.simulation.grounds import Ground
from tests.simulation.network import Actions, Network, Packs
from tests.simulation.post import Post
from tests.simulation.slots import Process, Slots, Task, VirtualThreads
from tests.simulation.story import Act, Outage, Story, Way
from tests.simulation.tower import NEVER, ROUNDS, Tower, always
from tests.simulation.tzdata import SHIFTS, Tzdata
from tests.simulation.witness import Witness, clock, snapshot

if TYPE_CHECKING:
    from duetick.core.answers import Answer

MOST_OCCURRENCES: Final = 300
MOST_TICKS: Final = 1_000
TICK_SECONDS: Final = 55.0
RARE: Final = "0 0 29 2 *"
QUIET_HOURS: Final = 6
PATIENCE: Final = 40
"""The minutes in which ticks catch up with what is due once all is quiet."""
MAKING: Final = frozenset({"put", "backfill", "pause a group", "limit", "enqueue"})
"""The verbs that make something of a user: there is an end to them before the user is erased."""

LEADS: Final = (40 * MINUTE, 3 * HOUR, DAY)
"""How long before new rules say something else they come. An audit is over by then."""
BAD_GATEWAY: Final = Delivered(502, '{"error": "bad_gateway"}')

Alters = Callable[[Shelf], Shelf]
"""A planted bug: it makes a shelf wrong."""


class Peeked(NamedTuple):
    """A schedule as it stands, and its unfinished occurrences."""

    record: Record | None
    row: IndexRow | None
    unfinished: tuple[Occurrence, ...]


@dataclass(eq=False)
class Host:
    """A place where a function runs, with a store of its own.

    A deployment gives it new code, which knows the static schedule that was `declared`.
    """

    process: Process
    store: Store
    dispatcher: Dispatcher | None = None
    declared: Schedule | None = None
    managed: Managed | None = None


@dataclass
class World:
    """One story on a ground. `lines` tell of it."""

    story: Story
    ground: Ground
    alters: Alters | None = None
    inside: bool = False
    general: bool = False
    lines: list[str] = field(default_factory=list)
    telling: bool = False
    names: list[ScheduleName] = field(default_factory=list)
    tzdata: Tzdata = field(default_factory=Tzdata)

    def __post_init__(self) -> None:
        self.slots = Slots(self.story.start)
        self.witness = Witness(self.slots, skewed=self.story.skews != (0,))
        self.boundaries = Boundaries(self.slots, self.story, self.witness, self.tell)
        self.observer = self.ground.open()
        self.store = Store(self.observer, lambda: self.slots.now, look_ahead=True)
        self._free: dict[str, list[Host]] = {"tick": [], "dispatch": [], "api": []}
        self.tower = Tower(self)
        self._numbers = count(1)
        self._delivered = self._ticked = 0
        self.quiet_since = NEVER
        self.static: Schedule | None = None
        self._wakes: dict[ScheduleName, int] = {}
        self._audit: Task | None = None
        self._owes_audit = False
        self._leaving: set[str] = set()
        self._making: list[Task] = []
        self.names = self.names or self._all_names()
        self.post = Post(self)

    def _all_names(self) -> list[ScheduleName]:
        found = {
            (act.schedule.user_id if act.schedule else USER, act.key) for act in self.story.acts
        }
        return sorted(found | {(USER, act.key) for act in self.story.acts})

    # Telling.

    def tell(self, line: str) -> None:
        """Note an event, if anybody wants to read it."""
        if self.telling and not self.slots.is_closing:
            self.lines.append(f"{clock(self.slots.now)}  {line}")

    # Living.

    def lives(self) -> None:
        """Let the story happen, then let all become quiet."""
        with _same_ids(self.story.seed):
            try:
                self._happens()
                self._becomes_quiet()
            finally:
                self.slots.close()

    def _happens(self) -> None:
        acts = list(self.story.acts)
        while self.slots.now < self.story.end and self._goes_on():
            next_tick = self._next_tick()
            look = min(self._next_look(next_tick), self.tower.next_ring())
            at = min(acts[0].at if acts else self.story.end, look)
            self._wait_until(min(at, self.story.end))
            self.tower.look()
            self.tower.ring(silent=bool(self._silences(self.slots.now)))
            if acts and acts[0].at <= at:
                self._act(acts.pop(0))
            if next_tick <= at:
                self._audits()
                self._ticks()

    def _goes_on(self) -> bool:
        return len(self.witness.seen) < MOST_OCCURRENCES and self._ticked < MOST_TICKS

    def _next_look(self, next_tick: int) -> int:
        """Return the time of the next look: just before a full minute, as long as anything runs."""
        now = self.slots.now
        last = now // MINUTE * MINUTE + MINUTE - 1
        if not self.slots.alive:
            return next_tick
        return last if now < last else min(next_tick, now + MINUTE)

    def _act(self, act: Act) -> None:
        if act.verb == "move":
            self._moves()
            return
        if act.verb == "new tzdata":
            self._renew_tzdata(act)
            return
        if act.verb in MAKING and (act.schedule is None or act.schedule.user_id in self._leaving):
            return
        if act.verb == "erase":
            self._erases(act)
            return
        task = self.start("api", act.verb, lambda host: self._do(host, act))
        if act.verb in MAKING:
            self._making.append(task)

    def _wait_until(self, at: int) -> None:
        self.slots.pause(max(0, at - self.slots.now))

    def _next_tick(self) -> int:
        """Return the next full minute in which a tick comes, and something can happen."""
        after = (self.slots.now // MINUTE + 1) * MINUTE
        return self.tower.next_tick(self._next_use(after), after)

    def _next_use(self, after: int) -> int:
        """Return the next full minute in which a tick has something to do."""
        if self.slots.alive or self._owes_audit or self._is_backfilling():
            return after
        first = min(map(self._wake, self.names), default=NEVER)
        if first == NEVER:
            return NEVER
        first -= self.story.look_ahead + max(self.story.skews)
        silent = [one.until for one in self._silences(after)]
        return max(after, -(-max([first, *silent]) // MINUTE) * MINUTE)

    def _is_backfilling(self) -> bool:
        """Return True if a tick has something to do for a backfill."""
        return any(self._may_go_on(order) for order in self._backfills())

    def _backfills(self) -> list[StandingOrder]:
        """Return the backfills that stand, if any was ever ordered."""
        if not any(act.verb == "backfill" for act in self.story.acts):
            return []
        return [one for one in self.observer.standing() if one.kind == KIND]

    def _may_go_on(self, order: StandingOrder) -> bool:
        one, origin = Backfill.load(order), origin_of(order)
        found = self.peek(one.user_id, one.key)
        under_way = sum(each.origin == origin for each in found.unfinished)
        if one.phase != "running":
            return not one.brings_more and not under_way
        if found.record is None:
            return not under_way
        return not is_paused(found.record, self.slots.now) and under_way < one.at_once

    def _silences(self, at: int) -> list[Outage]:
        """Return the outages of ticks at an instant."""
        if self.boundaries.quiet:
            return []
        every = (one for one in self.story.outages if one.of == "ticks")
        return [one for one in every if one.since <= at < one.until]

    def _wake(self, name: ScheduleName) -> int:
        """Return the time at which something of a schedule is due. A time that lies ahead is
        remembered.
        """
        known = self._wakes.get(name, 0)
        if name in self.witness.changed or known <= self.slots.now:
            found = self.peek(*name)
            row = [found.row.next_fire_at] if found.row else []
            known = self._wakes[name] = min([*row, *map(wake_of, found.unfinished)], default=NEVER)
            self.witness.changed.discard(name)
        return known

    def peek(self, user: str, key: str) -> Peeked:
        """Look at a schedule from outside of the simulation."""
        return self.observer.change(
            user,
            key,
            self.slots.now,
            lambda book: Peeked(book.view(), book.row, tuple(book.pages.find_unfinished())),
        )

    def _ticks(self) -> None:
        """Do what EventBridge does: one tick each minute, at times two, late or not at all."""
        now = self.slots.now
        self.tower.forget_wakes()
        self.tower.look()
        if self._silences(now):
            return
        self._ticked += 1
        if self.tower.rings and now % HOUR == 0:
            self.start("api", "count", self.tower.count)
        drawn = 0 if self.boundaries.quiet else crc32(f"{self.story.seed} tick {now}".encode())
        late = (drawn // 8 % 50_000) if drawn % 11 == 1 else 0
        for _ in range(2 if drawn % 13 == 2 else 1):
            self.start("tick", "tick", lambda host: self._tick(host, late))

    def _tick(self, host: Host, late: int) -> None:
        self.slots.pause(late)
        quiet = self.boundaries.quiet
        ways = (Packs(self), Network(self)) if self.story.by_queue else (Network(self),)
        run = partial(run_pack_tick if self.story.by_queue else run_tick, host.store, *ways)
        run(
            now=host.store.now(),
            budget=TICK_SECONDS,
            look_ahead=0 if quiet else self.story.look_ahead,
            chunk=self.story.chunk,
            slots=self.story.slots,
            elapsed=lambda: self.slots.now / 1_000,
            sleep=self._sleep,
            threads=VirtualThreads(self.slots),
            on_dispatch=self._sees_late(host),
            late=host.managed.late_ms() if host.managed else 0,
        )
        if host.managed:
            host.managed.go_on(always)

    def _sees_late(self, host: Host) -> Callable[[Occurrence, int], object] | None:
        managed = host.managed
        return (lambda one, _status: managed.saw_late(one)) if managed else None

    def _sleep(self, seconds: float) -> None:
        self.slots.pause(max(1, round(seconds * 1_000)))

    # Hosts.

    def start(self, function: str, name: str, work: Callable[[Host], object]) -> Task:
        """Invoke a function on a free host, or on a new one."""
        free = [one for one in self._free[function] if one.process.alive]
        host = free.pop() if free else self._host(function)
        self._free[function] = free

        def run() -> None:
            try:
                work(host)
            except DuetickError as error:
                self.tell(f"{task.name} fails: {error}")
            if (host.managed is not None) == self.tower.rings:
                self._free[function].append(host)

        own = host.process.name if name == function else f"{host.process.name} ({name})"
        task = self.slots.start(host.process, own, run)
        return task

    def _host(self, function: str) -> Host:
        number = next(self._numbers)
        shelf = self.ground.open()
        if self.inside:
            self.ground.cross(shelf, self.boundaries)
        skew = self.story.skews[crc32(f"{number}".encode()) % len(self.story.skews)]
        crossed: Shelf = CrossedShelf(shelf, self.boundaries, self.tell, general=self.general)
        altered = self.alters(crossed) if self.alters else crossed
        process = Process(f"{function} {number}", on_death=lambda: self._died(shelf))
        host = Host(process, self.store)
        followers = Followers() if self.tower.rings else None
        host.store = Store(
            altered,
            lambda: self.slots.now + (0 if self.boundaries.quiet else skew),
            look_ahead=self.story.look_ahead > 0,
            followers=followers,
        )
        if followers:
            host.managed = self.tower.bind(followers, host.store)
        return host

    def _died(self, shelf: Shelf) -> None:
        """End the connections of a process. Look at its writes, of which nobody was told."""
        self.ground.kill(shelf)
        self.tower.look()
        for name in self.names if self.inside else ():
            self.look(*name)
            self.witness.finds(name, self.peek(*name).unfinished)

    # Dispatch.

    def dispatch(self, request: Request) -> Delivered | None:
        """Call dispatch as a gateway does, and wait 29 s for its answer at most."""
        answers: list[Answer] = []

        def work(host: Host) -> None:
            dispatcher = self.dispatcher_of(host)
            answer = self.boundaries.cross("dispatch", lambda: dispatcher(request), of_store=False)
            answers.append(answer)

        task = self.start("dispatch", "dispatch", work)
        if not self.slots.join(task, 29_000):
            return Delivered(504, '{"error": "gateway_timeout"}')
        if not answers:
            return BAD_GATEWAY
        return Delivered(answers[0].status, json.dumps(answers[0].body))

    def later(self, request: Request, milliseconds: int) -> None:
        """Call dispatch once more, some time later: a repeat of the network."""

        def work(_host: Host) -> None:
            self.slots.pause(milliseconds)
            self.tell(f"a late repeat of {request.path_id} arrives")
            self.dispatch(request)

        self.start("api", "late repeat", work)

    def call_dispatch(self, payload: str, milliseconds: int) -> None:
        """Call dispatch some time later, as EventBridge does. Nobody waits for its answer."""

        def work(_host: Host) -> None:
            self.slots.pause(milliseconds)
            self.start("dispatch", "ring", answer)

        def answer(host: Host) -> None:
            self.tower.answer(host, self.dispatcher_of(host), payload)

        self.start("api", "bell", work)

    def _enqueue(self, request: Request) -> None:
        """Start an invocation, seldom two, as an asynchronous call of Lambda does."""

        def work(host: Host) -> None:
            self.dispatcher_of(host).run_queued(request)

        def start() -> None:
            drawn = crc32(f"{self.story.seed} queue {self.slots.now}".encode())
            for _ in range(2 if drawn % 9 == 1 and not self.boundaries.quiet else 1):
                self.start("dispatch", "background", work)

        self.boundaries.cross("enqueue", start, of_store=False)

    def dispatcher_of(self, host: Host) -> Dispatcher:
        if host.dispatcher is None or host.declared is not self.static:
            host.dispatcher, host.declared = self._dispatcher(host), self.static
        return host.dispatcher

    def _dispatcher(self, host: Host) -> Dispatcher:
        flow = Flow("flow")
        actions = Actions(self, host.store)
        flow.action("mail")(actions.mail)
        flow.action("book", transactional=True)(actions.book)
        flow.action("later", background=True)(actions.mail)
        flow.action("tell")(actions.tell)
        if self.static:
            flow.static["static"] = self.static
        return Dispatcher(
            host.store,
            Flows({"flow": flow}),
            lambda _request: True,
            host.store.now,
            enqueue=self._enqueue,
            sleep=self._sleep,
            within=self._within,
            threads=VirtualThreads(self.slots),
        )

    def _within(self, seconds: float, call: Callable[[], None]) -> None:
        task = self.slots.current
        task.deadline = self.slots.now + round(seconds * 1_000)
        call()
        task.deadline = None

    def trouble(self) -> Way | None:
        """Return the trouble that the network makes for the next delivery, or None."""
        self._delivered += 1
        if self.boundaries.quiet:
            return None
        return next((one.way for one in self.story.troubles if one.nth == self._delivered), None)

    # Acts.

    def _do(self, host: Host, act: Act) -> None:
        self.tell(f"{self.slots.current.name}: {describe(act)}")
        try:
            Acting(self, host, act).does()
        except (InvalidSchedule, ValueError) as refused:
            self.tell(f"it is refused: {refused}")
        except VersionConflict:
            self.tell("somebody else was quicker")

    # An erasure.

    def _erases(self, act: Act) -> None:
        """Erase a user, who asks for nothing more. If that fails, it is done again."""
        user = act.schedule.user_id if act.schedule else USER
        self._leaving.add(user)
        for task in self._making:
            self.slots.join(task)
        while user not in self.witness.erased:
            self.slots.join(self.start("api", "erase", lambda host: self._do(host, act)))
            self._wait_until(self.slots.now + SECOND)

    # Another trigger.

    def _moves(self) -> None:
        """Deploy with the other trigger. A deployment that fails is taken back."""
        before = self.tower.rings
        if not self._deploys(rings=not before):
            while not self._deploys(rings=before):
                self._wait_until(self.slots.now + SECOND)

    def _deploys(self, *, rings: bool) -> bool:
        """Deploy: from now on new code begins, and the last step moves the store."""
        self.tower.rings, done = rings, list[bool]()
        for function in self._free:
            self._free[function] = []

        def work(host: Host) -> None:
            self.tower.deploy(host)
            done.append(True)

        self.tell(f"a deployment: {'bells ring' if rings else 'a tick comes each minute'}")
        self.slots.join(self.start("api", "deployment", work))
        return bool(done)

    # Another tzdata.

    def _renew_tzdata(self, act: Act) -> None:
        """Deploy another tzdata once all that runs has ended. Its rules differ from later on."""
        self._settle_down()
        now, lead = self.slots.now, LEADS[act.number % (1 if self.story.span <= 3 * HOUR else 3)]
        self.tzdata.renew(now, now + lead, SHIFTS[act.number // 3 % 3])
        self.tell(f"the clocks of all zones will change anew on {clock(now + lead)}")
        self._wakes.clear()
        self._owes_audit = True

    def _audits(self) -> None:
        """Audit as the hourly function does, between two minutes, until one comes to its end."""
        if not self._owes_audit or (self._audit and self._audit in self.slots.alive):
            return

        def work(host: Host) -> None:
            self.slots.pause(MINUTE // 2)
            audit(host.store, host.store.now())
            self._owes_audit = False

        self._audit = self.start("api", "audit", work)

    def _dates_all_rules(self) -> None:
        """Let an audit date the new rules of rows that were due when the last audit came by.

        If a row is due by the furthest clock, the audit may leave it to the next one.
        """
        if self.tzdata.renewed_at is None:
            return
        self._owes_audit = True
        self._audits()
        self._settle_down()
        latest = self.slots.now + max(self.story.skews)
        for one in self.observer.every_book():
            is_due = one.row is not None and one.row.next_fire_at <= latest
            if has_old_rules(one.record, one.zone) and not one.unreadable and not is_due:
                self.witness.flaws.append(f"A-02: {one.key} has old rules, and the audit is over")

    # The end.

    def _becomes_quiet(self) -> None:
        """End all faults and pauses, let all that runs end, then tick until nothing waits."""
        self.boundaries.quiet = True
        self.quiet_since = self.slots.now + max(self.story.skews)
        self.tell("all is quiet from here on")
        self._settle_down()
        self._judges_bells()
        self._catches_up()
        self._dates_all_rules()
        for one in self.store.pauses.since(0).every:
            self.store.pauses.resume(one.scope, now=self.slots.now)
        for limit in self.store.limits.standing().every:
            self.store.limits.lift(limit.scope, now=self.slots.now)
        for user, key in self.names:
            self._retire(user, key)
        for order in self._backfills():
            Backfills(self.store).go_on(id_of(order))
        self.store.rebuild(now=self.slots.now)
        end = self.slots.now + QUIET_HOURS * HOUR
        while self.slots.now < end and self._waits():
            self._wait_until(self._next_tick())
            self._ticks()
            self._settle_down()

    def _judges_bells(self) -> None:
        """Let hourly counts and ticks bring all bells in step, then move to ticks."""
        if not self.tower.rings:
            return
        self.tower.look()
        for _ in range(ROUNDS):
            self._wait_until(self.slots.now + MINUTE)
            self.start("api", "count", self.tower.count)
            self._settle_down()
        self.witness.flaws += self.tower.out_of_step()
        self._deploys(rings=False)

    def _settle_down(self) -> None:
        for task in list(self.slots.alive):
            self.slots.join(task)

    def _waits(self) -> bool:
        unfinished = (one for name in self.names for one in self.peek(*name).unfinished)
        return bool(self._backfills()) or any(
            one.created_at <= self.quiet_since for one in unfinished
        )

    def _catches_up(self) -> None:
        """Tick until no row is overdue, as long as a backlog may take."""
        overdue = list[str]()
        for _ in range(PATIENCE):
            self._wait_until((self.slots.now // MINUTE + 1) * MINUTE)
            self._ticks()
            self._settle_down()
            overdue = [key for user, key in self.names if self._is_overdue(user, key)]
            if not overdue:
                return
        self.witness.flaws.append(f"I-15: {overdue} are due, and no tick claims them")

    def _is_overdue(self, user: str, key: str) -> bool:
        row = self.peek(user, key).row
        return row is not None and row.next_fire_at < self.slots.now - 2 * MINUTE

    def _retire(self, user: str, key: str) -> None:
        """Let a schedule fire no more: its times are accounted for, its retries go on."""
        found = self.store.schedules.get(user, key)
        if found is None or is_job(key):
            return
        try:
            self._put(replace(resume(found), cron=RARE))
        except ValueError as refused:
            self.tell(f"{key} stays as it is: {refused}")
            if found.pause or not found.enabled:
                self._put(resume(found))

    def _put(self, wanted: Schedule) -> None:
        made = self.store.schedules.put(wanted, now=self.slots.now)
        self.look(made.user_id, made.key)

    def look(self, user: str, key: str) -> None:
        """Let the witness see a book as it stands."""
        found = self.observer.change(user, key, self.slots.now, snapshot)
        self.witness.saw_book((user, key), found, self.slots.now)


@contextmanager
def _same_ids(seed: int) -> Iterator[None]:
    """Give random names in the order of the seed, so that a run repeats itself to the letter."""
    drawn = Random(seed)

    def token_hex(size: int = 32) -> str:
        return drawn.randbytes(size).hex()

    with mock.patch.object(secrets, "token_hex", token_hex):
        yield
