"""Flows on a stage: the real tick and dispatch, a store in memory, and a clock in your hands."""

import inspect
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from duetick.core.agents import AgentSchedules
from duetick.core.calls import Request
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Action, Flow, Flows
from duetick.core.schedules import UserSchedules
from duetick.core.tally import TickReport
from duetick.core.tick import run_tick
from duetick.domain.schedule import Json, Occurrence, Schedule
from duetick.stores import open_store
from duetick.testing.clock import FakeClock
from duetick.transports.inline import InlineTransport

MORNING: Final = 1_796_112_000_000
"""2026-12-01T08:00:00Z, a Tuesday."""

USER: Final = "ann"


@dataclass(frozen=True, slots=True)
class Fired:
    """What became of one firing; `schedules` are its user's, as the action left them."""

    occurrence: Occurrence
    schedules: Mapping[str, Schedule]

    @property
    def state(self) -> str:
        """`succeeded`, `dead`, `retrying`, …"""
        return self.occurrence.state.value

    @property
    def reason(self) -> str | None:
        """Why it ended so."""
        return self.occurrence.reason

    @property
    def error(self) -> str | None:
        """What the history says of a failure."""
        return self.occurrence.error


class Stage:
    """Flows with a store in memory. Use it in a `with` block, or call `close`.

    What an action raises comes out of `fire` and `tick`, once it is settled; `failed` keeps it.
    """

    def __init__(self, *flows: Flow, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock(MORNING)
        self.failed: list[Exception] = []
        self._flows = Flows({flow.name: self._watched(flow) for flow in flows})
        self.store = open_store("sqlite://", clock=self.clock)
        self.store.migrate()
        self._dispatch = Dispatcher(
            self.store, self._flows, lambda _request: True, self.clock, enqueue=self._run_queued
        )
        self._transport = InlineTransport(self._dispatch)

    def schedules(self, user: str = USER, *, flow: str = "") -> AgentSchedules:
        """A user's schedules, with the API's checks."""
        return AgentSchedules(UserSchedules(self.store, self._flows, user, self.clock), flow)

    def put(self, schedule: Schedule) -> Schedule:
        """Put a schedule, with the API's checks; a flow's static one as a deployment would."""
        if not schedule.user_id:
            return self.store.schedules.put(schedule, now=self.clock())
        own = self.schedules(schedule.user_id).own
        return replace(own, owns_names=True).replace(schedule)[0]

    def tick(self, milliseconds: int = 0) -> TickReport:
        """Let so much time pass, and fire what is due then."""
        now, before = self.clock.advance(milliseconds), len(self.failed)
        report = run_tick(self.store, self._transport, now=now, on_dispatch=self._flows.observe)
        for problem in self.failed[before:]:
            raise problem
        return report

    def fire(self, schedule: Schedule) -> Fired:
        """Put the schedule, go to its next fire time, and fire what is due by then."""
        made = self.put(schedule)
        due = made.next_fire_at or self.clock()
        self.tick(max(0, due - self.clock()))
        return self.fired(made, due)

    def fired(self, schedule: Schedule, nominal_at: int) -> Fired:
        """What became of it."""
        found = self.store.ledger.get(schedule.user_id, schedule.key, nominal_at, "schedule")
        if found is None:
            raise LookupError(f"{schedule.id} did not fire at {nominal_at}.")
        user = schedule.runs_as.user_id
        return Fired(found, {one.key: one for one in self.schedules(user).list()})

    def close(self) -> None:
        """Let go of the memory."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _watched(self, flow: Flow) -> Flow:
        actions = {name: self._watching(action) for name, action in flow.actions.items()}
        return replace(flow, actions=actions)

    def _watching(self, action: Action) -> Action:
        def run(given: object, context: object) -> object:
            with self._keeping():
                result = action.run(given, context)
            return self._awaited(result) if inspect.iscoroutine(result) else result

        return replace(action, run=run)

    async def _awaited(self, result: Coroutine[object, None, object]) -> object:
        with self._keeping():
            return await result

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        try:
            yield
        except Exception as problem:
            self.failed.append(problem)
            raise

    def _run_queued(self, request: Request) -> None:
        """A background action, in this process: here nothing is too long to wait for."""
        self._dispatch.run_queued(request)


def fire(
    flow: Flow,
    schedule: Schedule | str | None = None,
    *,
    action: str = "",
    input: Json = None,
    user: str = USER,
    cron: str = "0 9 * * *",
    timezone: str | None = None,
) -> Fired:
    """Fire a schedule of the flow once, as dispatch would, and say what became of it.

    `schedule` is one, or the name of a static one of the flow; without it one is made of the rest.
    What the action raises is raised here.
    """
    if isinstance(schedule, str):
        schedule = flow.static[schedule]
    made = schedule or Schedule(
        user, "fired", cron, flow.name, action, timezone=timezone, input=input
    )
    with Stage(flow) as stage:
        return stage.fire(made)
