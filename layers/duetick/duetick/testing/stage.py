"""A stage for flows: the real tick and dispatch, any store, and a clock that you advance."""

import inspect
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from duetick.core.action import Action
from duetick.core.agents import AgentSchedules
from duetick.core.definitions import GivenPolicies, read_policies
from duetick.core.dispatch import Dispatcher, Request
from duetick.core.flow_settings import FlowSettings
from duetick.core.flows import Flow, Flows
from duetick.core.schedules import UserSchedules
from duetick.core.store import Store
from duetick.core.tick import TickReport, run_tick
from duetick.domain.schedule import Json, Occurrence, Record, Schedule
from duetick.stores import open_store
from duetick.testing.clock import FakeClock
from duetick.transports.inline import InlineTransport

MORNING: Final = 1_796_112_000_000
"""2026-12-01T08:00:00Z, a Tuesday."""

USER: Final = "ann"


@dataclass(frozen=True, slots=True)
class Fired:
    """The result of one firing. `schedules` are its user's, as the action left them."""

    occurrence: Occurrence
    schedules: Mapping[str, Record]

    @property
    def state(self) -> str:
        """`succeeded`, `dead`, `retrying`, …"""
        return self.occurrence.state.value

    @property
    def reason(self) -> str | None:
        """The reason of its end."""
        return self.occurrence.reason

    @property
    def error(self) -> str | None:
        """The error that operators read."""
        return self.occurrence.error

    @property
    def told(self) -> str | None:
        """The message that the action chose for its user."""
        return self.occurrence.told


class Stage:
    """Flows with a store, in memory unless you name one. Use it in a `with` block, or `close` it.

    If an action raises, `fire` and `tick` raise the same error after its attempt is settled.
    `failed` keeps all such errors.
    """

    def __init__(
        self,
        *flows: Flow,
        clock: FakeClock | None = None,
        store: str | Store = "sqlite://",
        row_flow: str = "",
        settings: Mapping[str, Json] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        """Open and migrate the store: an address, or a store of your own. That one stays open.

        `row_flow` is the DUETICK_ROW_FLOW of a deployment. `settings` and `secrets` are what the
        flows read of `ctx.settings`.
        """
        self.clock = clock or FakeClock(MORNING)
        self.failed: list[Exception] = []
        watched = {flow.name: self._watch_flow(flow) for flow in flows}
        self._flows = Flows(watched, row_flow, _make_settings(settings, secrets))
        self._flows.check_settings()
        self._owns_store = isinstance(store, str)
        self.store = open_store(store, clock=self.clock) if isinstance(store, str) else store
        self._dispatch = Dispatcher(
            self.store, self._flows, lambda _request: True, self.clock, enqueue=self._run_queued
        )
        self.store.migrate()
        self._transport = InlineTransport(self._dispatch)

    def schedules(self, user: str = USER, *, flow: str = "") -> AgentSchedules:
        """Return a user's schedules, with the checks of the API."""
        return AgentSchedules(UserSchedules(self.store, self._flows, user, self.clock), flow)

    def put(self, schedule: Schedule) -> Record:
        """Put a schedule with the API's checks, or a flow's static one as a deployment does."""
        if not schedule.user_id:
            return self.store.schedules.put(self._flows.with_defaults(schedule), now=self.clock())
        own = self.schedules(schedule.user_id).schedules
        return replace(own, owns_names=True).replace(schedule)[0]

    def tick(self, milliseconds: int = 0) -> TickReport:
        """Let so much time pass, and fire all that is due then."""
        now, before = self.clock.advance(milliseconds), len(self.failed)
        report = run_tick(self.store, self._transport, now=now, on_dispatch=self._flows.observe)
        for problem in self.failed[before:]:
            raise problem
        return report

    def fire(self, schedule: Schedule) -> Fired:
        """Put the schedule, go to its next fire time, and fire all that is due by then."""
        made = self.put(schedule)
        due = made.next_fire_at or self.clock()
        self.tick(max(0, due - self.clock()))
        return self.find_fired(made, due)

    def find_fired(self, schedule: Schedule, nominal_at: int) -> Fired:
        """Return the result of one fire. Raise LookupError if the schedule did not fire then."""
        found = self.store.ledger.get(schedule.user_id, schedule.key, nominal_at, "schedule")
        if found is None:
            raise LookupError(f"{schedule.id} did not fire at {nominal_at}.")
        user = schedule.runs_as.user_id
        return Fired(found, {one.key: one for one in self.schedules(user).list("all")})

    def close(self) -> None:
        """Close the store, unless it is yours."""
        if self._owns_store:
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

    def _watch_flow(self, flow: Flow) -> Flow:
        actions = {name: self._watch_action(action) for name, action in flow.actions.items()}
        return replace(flow, actions=actions)

    def _watch_action(self, action: Action) -> Action:
        def run(given: object, context: object) -> object:
            with self._keep_failures():
                result = action.run(given, context)
            return self._await(result) if inspect.iscoroutine(result) else result

        return replace(action, run=run)

    async def _await(self, result: Coroutine[object, None, object]) -> object:
        with self._keep_failures():
            return await result

    @contextmanager
    def _keep_failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as problem:
            self.failed.append(problem)
            raise

    def _run_queued(self, request: Request) -> None:
        """Run a background action in this process: here, none is too long to wait for."""
        self._dispatch.run_queued(request)


def _make_settings(
    settings: Mapping[str, Json] | None, secrets: Mapping[str, str] | None
) -> FlowSettings:
    def secret(*, fresh: bool = False) -> Mapping[str, str]:
        del fresh
        return secrets or {}

    return FlowSettings(settings, secret)


def fire(
    flow: Flow,
    schedule: Schedule | str | None = None,
    *,
    action: str = "",
    input: Json = None,
    user: str = USER,
    cron: str = "0 9 * * *",
    timezone: str | None = None,
    policies: GivenPolicies | None = None,
    store: str | Store = "sqlite://",
    settings: Mapping[str, Json] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> Fired:
    """Fire a schedule of the flow once, as dispatch would. Return the result.

    `schedule` is a schedule, or the name of a static one of the flow. Without it, the other
    arguments describe one. If the action raises, `fire` raises the same error. `store`, `settings`
    and `secrets` are as in `Stage`.
    """
    if isinstance(schedule, str):
        schedule = flow.static[schedule]
    made = schedule or Schedule(
        user,
        "fired",
        cron,
        flow.name,
        action,
        timezone=timezone,
        input=input,
        policies=read_policies(policies),
    )
    with Stage(flow, store=store, settings=settings, secrets=secrets) as stage:
        return stage.fire(made)
