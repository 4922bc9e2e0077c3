"""Flows: named sets of actions, written by the people who use Duetick."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from duetick.core.context import Context
from duetick.core.inputs import InputType, input_type
from duetick.domain.errors import InvalidSchedule
from duetick.domain.identity import check_key, check_name
from duetick.domain.policies import Delivery, Policies
from duetick.domain.redaction import WITHHELD, redact, secrets_in, without
from duetick.domain.schedule import Json, Occurrence, Principal, Schedule, check_timing

ActionFunction: TypeAlias = Callable[..., object]
Found: TypeAlias = Schedule | None
Resolver: TypeAlias = Callable[..., Found | Awaitable[Found]]
"""Called with the schedule's id and a `ResolveContext`."""
Compute: TypeAlias = Callable[[Context], Json]
Observer: TypeAlias = Callable[[Occurrence, int], object]

Given = TypeVar("Given", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Action:
    """One function of a flow, and what it takes.

    `compute` makes its input where a schedule has none. `background` runs it in an invocation of
    its own. `transactional` promises that what must not happen twice is in `ctx.transaction()`.
    `withheld` are the names of its input's fields that are nobody else's business.
    """

    name: str
    run: ActionFunction
    takes: InputType
    compute: Compute | None = None
    background: bool = False
    transactional: bool = False
    withheld: frozenset[str] = frozenset()

    def preview(self, given: Json) -> Json:
        """An input as operators may see it."""
        return redact(given, self.withheld)

    def told(self, text: str, given: Json) -> str:
        """A text that may quote an input, without the secrets of it."""
        return without(text, secrets_in(given, self.withheld))

    def read(self, given: Json) -> object:
        """The input as it is declared; a refusal tells no secret of it."""
        try:
            return self.takes.read(given)
        except InvalidSchedule as problem:
            why = self.told(problem.problem, given)
            raise InvalidSchedule(problem.field, why) from None


@dataclass(slots=True)
class Flow:
    """A named set of actions, the schedules it always has, and where its others live."""

    name: str
    actions: dict[str, Action] = field(default_factory=dict)
    static: dict[str, Schedule] = field(default_factory=dict)
    computed: dict[str, Compute] = field(default_factory=dict)
    resolve: Resolver | None = None
    observers: list[Observer] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_name("flow", self.name)

    @property
    def has_background(self) -> bool:
        """Whether any of its actions runs in the background."""
        return any(action.background for action in self.actions.values())

    def action(
        self,
        name: str,
        *,
        input: Compute | None = None,
        background: bool = False,
        transactional: bool = False,
        redact: Collection[str] = (),
        target: ActionFunction | None = None,
    ) -> Callable[[Given], Given]:
        """Register the function under it as an action: `(input, ctx)`, sync or async.

        A `target` of `duetick.actions` needs no function under it: it is the action.
        `input` is a function of the context: it makes the input of schedules that have none.
        `redact` names fields of the input, at any depth, whose values no operator, log or error
        may show, besides those whose names say that they are secrets.
        """
        check_name("action", name)
        if name in self.actions:
            raise InvalidSchedule("action", f"{self.name} has an action {name!r} already.")
        if target is not None:
            _check_called(name, target)
            takes = InputType(object)
            withheld = _withheld(takes, redact)
            self.actions[name] = Action(name, target, takes, input, background, withheld=withheld)

        def register(function: Given) -> Given:
            if name in self.actions:
                raise InvalidSchedule("action", f"{name!r} has its target or its function already.")
            _check_called(name, function)
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise InvalidSchedule(
                    "action", f"{name!r} yields, so that calling it runs nothing. Let it return."
                )
            with _naming(f"{self.name}.{name}"):
                takes = input_type(function)
            withheld = _withheld(takes, redact)
            self.actions[name] = Action(
                name, function, takes, input, background, transactional, withheld
            )
            return function

        return register

    def schedule(
        self,
        key: str,
        *,
        cron: str,
        action: str,
        timezone: str | None = None,
        input: Json | Compute = None,
        principal: Principal | None = None,
        policies: Policies | None = None,
    ) -> None:
        """A static schedule, there in every deployment; its id is `flow/key`."""
        if key in self.static:
            raise InvalidSchedule("key", f"{self.name} has a static schedule {key!r} already.")
        with _naming(f"{self.name}/{key}"):
            check_timing(cron, timezone)
        check_key("", f"{self.name}/{key}")
        if callable(input):
            self.computed[key] = input
        self.static[key] = Schedule(
            user_id="",
            key=f"{self.name}/{key}",
            cron=cron,
            flow=self.name,
            action=action,
            timezone=timezone,
            input=None if callable(input) else input,
            principal=principal,
            policies=policies or Policies(),
        )

    def resolver(self, function: Resolver) -> Resolver:
        """Register where this flow's schedules live, when it is not Duetick's own store."""
        self.resolve = function
        return function

    def on_dispatch(self, function: Observer) -> Observer:
        """Call it with (occurrence, status) after each delivery; 0 says that none was made."""
        self.observers.append(function)
        return function

    def computes(self, schedule: Schedule) -> Compute | None:
        """What makes the input of a schedule that has none."""
        static = self.computed.get(schedule.id) if not schedule.user_id else None
        action = self.actions[schedule.action].compute
        return static or (action if schedule.input is None else None)

    def preview(self, schedule: Schedule) -> Json:
        """Its input as operators may see it: none of it where nobody knows what is secret."""
        action = self.actions.get(schedule.action)
        return action.preview(schedule.input) if action else WITHHELD


def _check_called(name: str, function: ActionFunction) -> None:
    """Calling a class would make an object, and run nothing."""
    try:
        if isinstance(function, type):
            raise TypeError(f"{function.__name__} is a class")
        inspect.signature(function).bind(None, None)
    except TypeError as problem:
        raise InvalidSchedule(
            "action",
            f"{name!r} must take two arguments by their places: (input, ctx), in this order "
            f"({problem}).",
        ) from None


@contextmanager
def _naming(key: str) -> Iterator[None]:
    """Say which of a deployment's actions or static schedules it is that cannot be."""
    try:
        yield
    except ValueError as problem:
        raise InvalidSchedule(key, str(problem)) from None


def _withheld(takes: InputType, names: Collection[str]) -> frozenset[str]:
    """The names, checked: one that the input cannot have would withhold nothing."""
    if isinstance(names, str):
        raise InvalidSchedule("redact", f"expected several names, such as ({names!r},).")
    known = takes.names()
    unknown = set() if known is None else set(names) - known
    if unknown:
        fields = ", ".join(sorted(known or ())) or "none"
        raise InvalidSchedule(
            "redact", f"{', '.join(sorted(unknown))}: no field of the input; its fields: {fields}."
        )
    return frozenset(names)


class Flows:
    """All flows of a deployment, by name."""

    def __init__(self, flows: Mapping[str, Flow]) -> None:
        self._flows = dict(flows)
        for flow in self._flows.values():
            for schedule in flow.static.values():
                with _naming(schedule.key):
                    self.check_input(schedule)

    def __bool__(self) -> bool:
        return bool(self._flows)

    def get(self, name: str) -> Flow | None:
        """The flow of that name."""
        return self._flows.get(name)

    def static(self) -> list[Schedule]:
        """The schedules that every deployment has."""
        return [one for flow in self._flows.values() for one in flow.static.values()]

    def observe(self, occurrence: Occurrence, status: int) -> None:
        """Tell the occurrence's flow how its delivery went.

        Every hook is called, also behind one that raises; what they raise is raised in the end.
        """
        flow, problems = self._flows.get(occurrence.flow), list[Exception]()
        for observer in flow.observers if flow else ():
            try:
                observer(occurrence, status)
            except Exception as problem:
                problems.append(problem)
        if problems:
            raise ExceptionGroup("hooks raised", problems)

    def action_of(self, schedule: Schedule) -> Action:
        """The schedule's action; raise InvalidSchedule, naming what there is, without one."""
        flow = self._flows.get(schedule.flow)
        if flow is None:
            known = ", ".join(sorted(self._flows)) or "none"
            raise InvalidSchedule("flow", f"{schedule.flow!r} is not known; known flows: {known}.")
        action = flow.actions.get(schedule.action)
        if action is None:
            known = ", ".join(sorted(flow.actions)) or "none"
            raise InvalidSchedule(
                "action", f"{flow.name!r} has no action {schedule.action!r}; its actions: {known}."
            )
        if schedule.policies.delivery is Delivery.EFFECTIVELY_ONCE and not action.transactional:
            raise InvalidSchedule(
                "policies.delivery",
                f"{action.name!r} does not commit its effects through ctx.transaction(), so they "
                "can happen twice. Declare it with transactional=True, or use at_least_once.",
            )
        return action

    def preview(self, schedule: Schedule) -> Json:
        """See `Flow.preview`."""
        flow = self._flows.get(schedule.flow)
        return flow.preview(schedule) if flow else WITHHELD

    def check_input(self, schedule: Schedule) -> None:
        """Raise InvalidSchedule unless the action is there and takes the schedule's input."""
        action = self.action_of(schedule)
        if self._flows[schedule.flow].computes(schedule) is None:
            action.read(schedule.input)

    def input_for(self, schedule: Schedule, context: Context) -> Json:
        """What the action is to read: the schedule's input, or what is computed for it."""
        compute = self._flows[schedule.flow].computes(schedule)
        return schedule.input if compute is None else compute(context)
