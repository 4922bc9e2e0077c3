"""Flows: named sets of actions, written by the people who use Duetick."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from duetick.core.inputs import InputType, input_type
from duetick.domain.errors import InvalidSchedule
from duetick.domain.identity import check_key, check_name
from duetick.domain.policies import Policies
from duetick.domain.schedule import Json, Principal, Schedule, check_timing

ActionFunction: TypeAlias = Callable[..., object]
Resolver: TypeAlias = Callable[[str], Schedule | None | Awaitable[Schedule | None]]


@dataclass(frozen=True, slots=True)
class Action:
    """One function of a flow, and what it takes."""

    name: str
    run: ActionFunction
    takes: InputType


@dataclass(slots=True)
class Flow:
    """A named set of actions, the schedules it always has, and where its others live."""

    name: str
    actions: dict[str, Action] = field(default_factory=dict)
    static: dict[str, Schedule] = field(default_factory=dict)
    resolve: Resolver | None = None

    def __post_init__(self) -> None:
        check_name("flow", self.name)

    def action(self, name: str) -> Callable[[ActionFunction], ActionFunction]:
        """Register the function under it as an action: `(input, ctx)`, sync or async."""
        check_name("action", name)
        if name in self.actions:
            raise InvalidSchedule("action", f"{self.name} has an action {name!r} already.")

        def register(function: ActionFunction) -> ActionFunction:
            if len(inspect.signature(function).parameters) != 2:
                raise InvalidSchedule(
                    "action", f"{name!r} must take two arguments: (input, ctx), in this order."
                )
            self.actions[name] = Action(name, function, input_type(function))
            return function

        return register

    def schedule(
        self,
        key: str,
        *,
        cron: str,
        action: str,
        timezone: str | None = None,
        input: Json = None,  # noqa: A002
        principal: Principal | None = None,
        policies: Policies | None = None,
    ) -> None:
        """A static schedule, there in every deployment; its id is `flow/key`."""
        check_timing(cron, timezone)
        check_key("", f"{self.name}/{key}")
        self.static[key] = Schedule(
            user_id="",
            key=f"{self.name}/{key}",
            cron=cron,
            flow=self.name,
            action=action,
            timezone=timezone,
            input=input,
            principal=principal,
            policies=policies or Policies(),
        )

    def resolver(self, function: Resolver) -> Resolver:
        """Register where this flow's schedules live, when it is not Duetick's own store."""
        self.resolve = function
        return function


class Flows:
    """All flows of a deployment, by name."""

    def __init__(self, flows: Mapping[str, Flow]) -> None:
        self._flows = dict(flows)

    def __bool__(self) -> bool:
        return bool(self._flows)

    def get(self, name: str) -> Flow | None:
        """The flow of that name."""
        return self._flows.get(name)

    def static(self) -> list[Schedule]:
        """The schedules that every deployment has; raise where one could not run."""
        found = [one for flow in self._flows.values() for one in flow.static.values()]
        for schedule in found:
            self.check_input(schedule)
        return found

    def check_action(self, flow: str, action: str) -> None:
        """Raise InvalidSchedule, naming what there is, unless the flow has the action."""
        found = self.get(flow)
        if found is None:
            known = ", ".join(sorted(self._flows)) or "none"
            raise InvalidSchedule("flow", f"{flow!r} is not known; known flows: {known}.")
        if action not in found.actions:
            known = ", ".join(sorted(found.actions)) or "none"
            raise InvalidSchedule(
                "action", f"{flow!r} has no action {action!r}; its actions: {known}."
            )

    def check_input(self, schedule: Schedule) -> None:
        """Raise InvalidSchedule unless the action is there and takes the schedule's input."""
        self.check_action(schedule.flow, schedule.action)
        flow = self._flows[schedule.flow]
        flow.actions[schedule.action].takes.read(schedule.input)
