"""EventBridge Scheduler in a simulation: bells that ring late, twice or not at all.

It keeps the bells that processes put, and calls dispatch at their times by its own rule for clock
changes. Each of its calls crosses a boundary, as the calls of a store do.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar
from zlib import crc32

from duetick.core.dispatch import Dispatcher, request_of
from duetick.core.managed.keeping import Each
from duetick.core.managed.moving import move
from duetick.core.managed.ringing import Ringer
from duetick.core.managed.trigger import Trigger
from duetick.core.managed.watched import Followers
from duetick.core.store import Store
from duetick.domain.bells import Bell, Ring, bell_name, bell_of
from duetick.domain.errors import BellsUnavailable, StoreUnavailable
from duetick.domain.eventbridge import as_they_read
from duetick.domain.expression import next_fire
from duetick.domain.occurrence import IndexRow, Occurrence, ScheduleName
from duetick.ports import tell_nobody
from duetick.runtime.managed import Managed
from duetick.testing.conformance.samples import HOUR, MINUTE

if TYPE_CHECKING:
    from tests.simulation.world import Host, World

T = TypeVar("T")

NEVER: Final = 10**15
TICKS: Final = Trigger("simulated")
BELLS: Final = replace(TICKS, group="bells", role="bell", dispatch="dispatch", tick="tick")
CALL_SECONDS: Final = 29
"""Seconds that a ring has, as a call of dispatch by a tick has."""

SLOW_MS: Final = 9_000
"""The time that a call of EventBridge takes at times, with its tries. Its process has the bell for
longer.
"""

HOLDING: Final = frozenset({"take_bell", "row", "bells.put", "bells.delete", "end_bell"})
"""The boundaries where a process has a bell, and may stand still for longer than it has it."""

ROUNDS: Final = 4
"""The hourly counts, a minute apart, after which each bell is in step once all is quiet."""


def always() -> bool:
    """Return True: there is time for everything."""
    return True


@contextmanager
def in_turn() -> Iterator[Each]:
    """Yield the way to do one after another: a slot has one thread."""
    yield map


class Tower:
    """`ports.bells.Bells` of a world, while bells ring in it."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.rings = False
        self._bells: dict[str, Bell] = {}
        self._next: dict[str, int] = {}
        self._wakes: set[int] = set()

    # `ports.bells.Bells`.

    def put(self, bell: Bell) -> None:
        """See `Bells`."""

        def put() -> None:
            now = self._world.slots.now
            self._bells[bell.name] = bell
            self._next[bell.name] = _next_time(bell, now)
            self._tell(f"{bell.expression} is put for {_schedule_of(bell)}")

        self._cross("bells.put", put)

    def delete(self, name: str) -> None:
        """See `Bells`."""
        self._cross("bells.delete", lambda: self._lose(name))

    def names(self, prefix: str) -> Iterator[str]:
        """See `Bells`."""

        def names() -> list[str]:
            return sorted(name for name in self._bells if name.startswith(prefix))

        return iter(self._cross("bells.names", names))

    def schedule_of(self, name: str) -> ScheduleName | None:
        """See `Bells`."""
        bell = self._bells.get(name)
        return _schedule_of(bell) if bell else None

    def wake(self, at: int) -> None:
        """See `Bells`. Few are lost."""
        if self._draw(f"wake {at}") % 15:
            self._wakes.add(at)

    def _cross(self, name: str, call: Callable[[], T]) -> T:
        if self._draw(f"{name} {self._world.slots.now}") % 5 == 1:
            self._tell(f"`{name}` takes {SLOW_MS // 1_000} s")
            self._world.slots.pause(SLOW_MS)
        try:
            return self._world.boundaries.cross(name, call, of_store=False)
        except StoreUnavailable as away:
            raise BellsUnavailable("EventBridge did not answer") from away

    def _lose(self, name: str) -> None:
        self._bells.pop(name, None)
        self._next.pop(name, None)

    def _draw(self, of: str) -> int:
        quiet = self._world.boundaries.quiet
        return 3 if quiet else crc32(f"{self._world.story.seed} {of}".encode())

    def _tell(self, line: str) -> None:
        self._world.tell(f"EventBridge: {line}")

    # The times of rings and ticks.

    def next_ring(self) -> int:
        """Return the time at which a bell rings next."""
        return min(self._next.values(), default=NEVER)

    def next_tick(self, first: int, after: int) -> int:
        """Return the time of the next tick, if something can happen from a first minute on."""
        if not self.rings:
            return first
        hour = first if first == NEVER else -(-first // HOUR) * HOUR
        return min(hour, *(max(one, after) for one in self._wakes), NEVER)

    def forget_wakes(self) -> None:
        """Drop the wakes that are over: their tick comes now, or never."""
        self._wakes = {one for one in self._wakes if one > self._world.slots.now}

    def ring(self, *, silent: bool) -> None:
        """Ring the bells whose time has come, unless EventBridge is silent."""
        now = self._world.slots.now
        for name, at in sorted(self._next.items()):
            if at <= now:
                bell = self._bells[name]
                self._go_on(bell, at)
                if not silent:
                    self._ring(bell, at)

    def _go_on(self, bell: Bell, at: int) -> None:
        following = _next_time(bell, at)
        if following == NEVER:
            self._lose(bell.name)
        else:
            self._next[bell.name] = following

    def _ring(self, bell: Bell, at: int) -> None:
        user, key = _schedule_of(bell)
        drawn = self._draw(f"ring {user} {key} {at}")
        if drawn % 9 == 1:
            self._tell(f"the bell of {key} does not ring")
            return
        late = drawn // 64 % 55_000
        delays = [late, late + (0, 30_000, 400_000)[drawn // 9 % 3]][: 2 if drawn % 7 == 2 else 1]
        for delay in delays:
            self._world.call_dispatch(bell.payload, delay)

    # These run in a host.

    def bind(self, followers: Followers, store: Store) -> Managed:
        """Let followers keep the bells of a host's store."""
        made = Managed(
            store,
            elapsed=lambda: self._world.slots.now / 1_000,
            bells=lambda _trigger: self,
            several=in_turn,
        )
        followers.bell_moved, followers.waits = made.keep, made.wake
        followers.erases = made.delete
        return made

    def answer(self, host: "Host", dispatcher: Dispatcher, payload: str) -> None:
        """Answer a ring, as dispatch does."""
        world, end = self._world, self._world.slots.now + CALL_SECONDS * 1_000

        def left() -> float:
            return (end - world.slots.now) / 1_000

        def elapsed() -> float:
            return world.slots.now / 1_000

        def deliver(one: Occurrence, seconds: float) -> int:
            request = replace(request_of(one), seconds=seconds, came_at=elapsed(), elapsed=elapsed)
            return dispatcher.run_rung(request).status

        managed = host.managed
        ringer = Ringer(
            host.store,
            deliver,
            heal=managed.mend if managed else ignore,
            wake=managed.wake if managed else ignore,
            tell=tell_nobody,
            sleep=lambda seconds: world.slots.pause(max(1, round(seconds * 1_000))),
        )
        ring = Ring.read(json.loads(payload))
        if ring:
            world.boundaries.cross(
                "Ringer.answer", lambda: ringer.answer(ring, left), of_store=False
            )

    def count(self, host: "Host") -> None:
        """Count the bells, as the hourly function does."""
        look = host.managed.look(host.store.now()) if host.managed else None
        if look is None or host.managed is None:
            return
        for one in host.store.shelf.every_book():
            look.at(one)
        found = host.managed.end_look(look, always)
        self._tell(f"missing are {found.missing} bells, and {found.stray} have no row")
        host.managed.go_on(always)

    def deploy(self, host: "Host") -> None:
        """Move the store, as the last step of a deployment does. Bells go with their group."""
        if host.managed:
            host.managed.move(BELLS, always)
            host.managed.go_on(always)
            return
        move(host.store, TICKS, always)
        self._bells.clear()
        self._next.clear()
        self._wakes.clear()

    # The judgement.

    def look(self) -> None:
        """Check that each bell is as its row requires, or pending. That holds at any instant if all
        processes know of bells, and none stands still for longer than it has a bell.
        """
        world, moves = self._world, [act.at for act in self._world.story.acts if act.verb == "move"]
        if not self.rings or moves != [world.story.start] or world.boundaries.stalled & HOLDING:
            return
        pending = {one.name for one in world.observer.pending_bells(10_000)}
        for name in [*self._wrong()]:
            if name not in pending and not world.witness.flaws:
                flaw = f"S-01: the bell of {name} is not that of its row, and not pending"
                world.witness.flaws.append(flaw)

    def out_of_step(self) -> Iterable[str]:
        """Yield the bells that are wrong after the hourly counts.

        If EventBridge cannot say a schedule, its bell stays pending until the schedule is changed.
        """
        for name in self._wrong():
            yield f"S-01: the bell of {name} is not that of its row, for good"
        for one in self._world.observer.pending_bells(10):
            row = self._world.observer.row(*one.name)
            if row is None or self._wanted(row):
                yield f"S-01: the bell of {one.name} is pending for ever"

    def _wrong(self) -> Iterable[ScheduleName]:
        """Yield the schedules whose bell is not that of their row.

        The first time of a rate moves with its row, and the bell keeps its own. A bell that rings
        no more may stay, or be gone.
        """
        now = self._world.slots.now
        rows = [one.row for one in self._world.observer.every_book() if one.row]
        for row in rows:
            wanted, hangs = self._wanted(row), self._bells.get(bell_name(row.user_id, row.key))
            rang = hangs is None and wanted is not None and _next_time(wanted, now) == NEVER
            if wanted and not rang and (hangs is None or hangs.payload != wanted.payload):
                yield row.user_id, row.key
        known = {bell_name(row.user_id, row.key) for row in rows}
        for name, bell in self._bells.items():
            if name not in known and self._next[name] != NEVER:
                yield _schedule_of(bell)

    def _wanted(self, row: IndexRow) -> Bell | None:
        try:
            return bell_of(row, self._world.slots.now)
        except ValueError:
            return None


def ignore(_of: object) -> None:
    """Do nothing: the host knows no bells."""


def _schedule_of(bell: Bell) -> ScheduleName:
    ring = Ring.read(json.loads(bell.payload))
    assert ring is not None
    return ring.user_id, ring.key


def _next_time(bell: Bell, after: int) -> int:
    """Return the time at which EventBridge rings a bell next after an instant."""
    if bell.expression.startswith("rate("):
        found: int | None = _next_of_rate(bell, after)
    else:
        since = max(after, (bell.starts_at or 0) - 1)
        said = as_they_read(bell.expression)
        found = next_fire(said, bell.timezone, since, gap="skip", repeat="first")
    over = found is None or (bell.ends_at is not None and found > bell.ends_at)
    return NEVER if found is None or over else found


def _next_of_rate(bell: Bell, after: int) -> int:
    number, unit = bell.expression.removeprefix("rate(").removesuffix(")").split()
    sizes = {"minute": MINUTE, "hour": HOUR, "day": 24 * HOUR}
    each, first = int(number) * sizes[unit.removesuffix("s")], bell.starts_at or 0
    return first if after < first else after + each - (after - first) % each
