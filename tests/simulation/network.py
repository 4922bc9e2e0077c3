"""The way to dispatch, with its troubles; and the actions that dispatch runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from duetick import FailureInput
from duetick.core.context import Context
from duetick.core.dispatch import Request, request_of
from duetick.core.store import Store
from duetick.core.timeouts import TimedOut
from duetick.domain.identity import split_id
from duetick.domain.occurrence import Identity
from duetick.domain.packs import OutgoingMessage
from duetick.domain.schedule import Json
from duetick.ports import Deliverable, Delivered, Sending

from tests.simulation.story import Way
from tests.simulation.witness import spell

if TYPE_CHECKING:
    from tests.simulation.world import World


class ActionFails(Exception):
    """The error of a simulated action."""


class Network:
    """`ports.Transport` and `ports.RunTransport`: the way to dispatch, with its troubles."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def deliver(self, occurrence: Deliverable, *, timeout: float) -> Delivered:
        """See `ports.Transport`."""
        world = self._world
        request, way = request_of(occurrence), world.trouble()

        def call() -> Delivered:
            return self._deliver(request, way)

        found = world.boundaries.cross("deliver", call, of_store=False)
        world.tell(
            f"{world.slots.current.name} delivered {spell(occurrence.identity)}: {found.status}"
        )
        return found

    def _deliver(self, request: Request, way: Way | None) -> Delivered:
        world = self._world
        if way:
            world.tell(f"the delivery of {request.path_id} is {way}")
        if way == "unreachable":
            return Delivered(0, "no connection")
        if way == "busy":
            return Delivered(429, '{"error": "throttled"}')
        if way == "again later":
            world.later(request, (30_000, 90_000, 400_000)[len(request.body) % 3])
        if way == "twice":
            world.later(request, 0)
        answer = world.dispatch(request)
        if way == "unanswered" or answer is None:
            return Delivered(0, "the answer was lost")
        return answer

    def close(self) -> None:
        """See `ports.Transport`."""


class Packs:
    """`ports.PackTransport`: the way of messages to the queue of the world."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def send(self, messages: Sequence[OutgoingMessage], now: int) -> Sequence[Sending]:
        """See `ports.PackTransport`."""
        return [self._send(one, now) for one in messages]

    def _send(self, message: OutgoingMessage, now: int) -> Sending:
        world = self._world
        way = world.trouble()
        names = ", ".join(spell(one.identity) for one in message.occurrences)
        world.tell(f"{world.slots.current.name} sends {names}" + (f", {way}" if way else ""))

        def put() -> Sending:
            if way in ("unreachable", "busy"):
                return "refused"
            world.post.put(message, now)
            if way == "twice":
                world.post.put(message, now)
            if way == "again later":
                world.post.put(message, now, more=(30, 90, 400)[len(message.body) % 3])
            return "in_doubt" if way == "unanswered" else "sent"

        return world.boundaries.cross("send", put, of_store=False)

    def close(self) -> None:
        """See `ports.PackTransport`."""


class Actions:
    """The actions of the simulated flow. The occurrence and the attempt decide what an action
    does.
    """

    def __init__(self, world: "World", store: Store) -> None:
        self._world = world
        self._store = store

    def mail(self, _given: Json, ctx: Context) -> None:
        """Do something that no database undoes."""
        identity = self._enter(ctx)
        drawn = self._drawn(identity, ctx.attempt)
        self._work(identity, drawn)
        if drawn % 10 < 2:
            raise ActionFails("before its work was done")
        self._done(identity)
        if drawn % 10 == 2:
            raise ActionFails("after its work was done")

    def tell(self, failed: FailureInput, ctx: Context) -> None:
        """Tell somebody of a death, as any action does its work."""
        self._world.witness.tells(ctx.schedule_id, ctx.origin, failed)
        self.mail(None, ctx)

    def book(self, _given: Json, ctx: Context) -> None:
        """Write to the database, in the transaction that settles the attempt."""
        identity, world = self._enter(ctx), self._world
        drawn = self._drawn(identity, ctx.attempt)
        self._work(identity, drawn)
        if drawn % 10 < 2:
            raise ActionFails("before its transaction")
        with ctx.transaction() as transaction:
            world.ground.write(transaction, spell(identity), ctx.attempt)
            if drawn % 10 == 2:
                raise ActionFails("in its transaction")
        self._done(identity)
        if drawn % 10 == 3:
            raise ActionFails("after its transaction")

    def _enter(self, ctx: Context) -> Identity:
        user, key = split_id(ctx.flow, ctx.schedule_id)
        identity = user, key, ctx.nominal_at, ctx.origin
        boundaries = self._world.boundaries
        boundaries.cross(
            "act", lambda: self._world.witness.enters(identity, ctx.attempt), of_store=False
        )
        return identity

    def _done(self, identity: Identity) -> None:
        self._world.boundaries.cross(
            "act", lambda: self._world.witness.leaves(identity), of_store=False
        )

    def _drawn(self, identity: Identity, attempt: int) -> int:
        """Return a number that is the same on each store: an id in the origin is not."""
        *name, origin = identity
        drawn = f"{self._world.story.seed} {name} {origin.partition(':')[0]} {attempt}"
        return crc32(drawn.encode())

    def _work(self, identity: Identity, drawn: int) -> None:
        """Take some time: mostly moments, seldom longer than the lease."""
        lasts = (10, 10, 200, 2_000, 2_000, 9_000, 20_000, 100_000)[drawn // 16 % 8]
        if lasts > 9_000 and not self._world.boundaries.quiet and drawn % 3 == 0:
            self._renew(identity)
        task, slots = self._world.slots.current, self._world.slots
        deadline = task.deadline or slots.now
        if slots.now + lasts > deadline:
            slots.pause(max(0, deadline - slots.now))
            raise TimedOut
        slots.pause(lasts)

    def _renew(self, identity: Identity) -> None:
        ledger = self._store.ledger
        found = ledger.get(*identity)
        if found:
            ledger.renew(found, now=self._store.now())
