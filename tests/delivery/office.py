"""A dispatch API on a scene, over real HTTP, as functions/dispatch has it."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from duetick.cli.gateway import LocalRoute, LocalServer
from duetick.core.answers import Answer
from duetick.core.context import Context
from duetick.core.tick import TickReport, run_tick
from duetick.domain.schedule import Json
from duetick.domain.states import State
from duetick.runtime import gateway
from duetick.transports.http import CallSigner, HttpTransport

from tests.delivery.scene import Scene
from tests.delivery.tick_process import authorize
from tests.lab.serving import serve_in_thread


class Office:
    """A dispatch API on a scene, over HTTP, and the occurrences of which its action ran."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.busy = 0
        self.lock = threading.Lock()
        self.cut = False
        self.first: Callable[[], None] | None = None
        self.unheard: list[Answer] = []
        scene.act = self.act
        self.dispatch = scene.dispatch
        self.server = LocalServer(0, [LocalRoute("/api/flows/", self.handle, lambda _header: {})])

    def act(self, _input: Json, _ctx: Context) -> None:
        """Take a moment."""
        time.sleep(0.005)

    def handle(self, event: dict[str, Any], _context: object) -> Mapping[str, Any]:
        """Handle a request as functions/dispatch does."""
        with self.lock:
            self.busy += 1
            first, self.first = self.first, None
            if first:
                first()
        try:
            call = gateway.dispatch_request(event)
            answer = call if isinstance(call, Answer) else self.dispatch(call)
            if self.cut:
                self.unheard.append(answer)
                raise ConnectionResetError("the answer never arrives")
            return gateway.respond(answer)
        finally:
            with self.lock:
                self.busy -= 1

    def tick(self, now: int, by: CallSigner = authorize) -> TickReport:
        """Run a tick from here. `first` happens when it calls for the first time."""
        self.scene.clock.now = now
        transport = HttpTransport(self.server.url, by)
        with closing(transport):
            return run_tick(self.scene.store, transport, now=now, slots=8)

    @property
    def runs(self) -> Counter[str]:
        """Count the runs of each key's action."""
        return Counter(ctx.schedule_id for _, ctx in list(self.scene.ran))

    def states(self) -> Counter[State]:
        """Return the states of ada's occurrences in the ledger."""
        return Counter(o.state for o in self.scene.store.ledger.find("ada", limit=1_000))


@contextmanager
def office(scene: Scene) -> Iterator[Office]:
    """Yield an open office."""
    made = Office(scene)
    with serve_in_thread(made.server):
        yield made
