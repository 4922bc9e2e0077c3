"""Flows: named sets of actions, written by users of Duetick."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from duetick.core.action import Action, ActionFunction, Compute
from duetick.core.context import Context
from duetick.core.declarations import (
    Transactional,
    check_called,
    check_promise,
    check_transactional,
    check_withheld,
    naming,
)
from duetick.core.definitions import GivenCron, GivenPolicies, read_cron, read_policies
from duetick.core.failure_hooks import FIELD, check_hook, input_of_hook
from duetick.core.flow_settings import FlowSettings
from duetick.core.inputs import InputType, input_type, settings_type
from duetick.core.promises import Declared
from duetick.core.rows import home_of
from duetick.domain.errors import ConfigurationError, InvalidSchedule, check_all, say_count
from duetick.domain.identity import check_key, check_name
from duetick.domain.pausing import resume
from duetick.domain.policies import Delivery, Policies
from duetick.domain.redaction import WITHHELD
from duetick.domain.schedule import Json, Occurrence, Principal, Record, Schedule, check_timing
from duetick.ports import Observer

Found: TypeAlias = Schedule | None
Resolver: TypeAlias = Callable[..., Found | Awaitable[Found]]
"""A function that is called with the schedule's id and a `ResolveContext`."""

Given = TypeVar("Given", bound=Callable[..., object])
Defined = TypeVar("Defined", bound=Schedule)


@dataclass(slots=True)
class Flow:
    """A named set of actions, its static schedules, and the resolver of its other schedules.

    Without `users`, all its actions run only for the application. `policies` are the defaults of
    its actions' schedules. A schedule may change only the policies in `may_change`. `settings` is
    the dataclass or pydantic model that its actions read from `ctx.settings`: a deployment whose
    settings do not fit is refused.
    """

    name: str
    actions: dict[str, Action] = field(default_factory=dict)
    static: dict[str, Schedule] = field(default_factory=dict)
    computed: dict[str, Compute] = field(default_factory=dict)
    resolve: Resolver | None = None
    observers: list[Observer] = field(default_factory=list)
    users: bool = True
    policies: GivenPolicies | None = None
    may_change: Collection[str] = ()
    settings: type[object] | None = None
    declared: Declared = field(init=False)

    def __post_init__(self) -> None:
        check_name("flow", self.name)
        with naming(self.name):
            self.declared = Declared().nearer(self.policies, self.may_change)
            if self.settings is not None:
                settings_type(self.settings)

    @property
    def has_background(self) -> bool:
        """True if an action of the flow runs in the background."""
        return any(action.background for action in self.actions.values())

    def action(
        self,
        name: str,
        *,
        input: Compute | None = None,
        background: bool = False,
        transactional: Transactional = False,
        redact: Collection[str] = (),
        users: bool = True,
        policies: GivenPolicies | None = None,
        may_change: Collection[str] = (),
        target: ActionFunction | None = None,
    ) -> Callable[[Given], Given]:
        """Register the decorated function as an action: `(input, ctx)`, sync or async.

        - `target` is an action of `duetick.actions`. With it, do not decorate a function.
        - `input` is a function of the context. It makes the input of schedules that have none.
        - `background` runs the action in a separate invocation.
        - `transactional` is "sql" or "dynamodb" if the effects are in `ctx.transaction()` of that
          kind, and True if the action works with either. The delivery of its schedules is then
          effectively once, unless `policies` say otherwise.
        - `redact` names fields of the input, at any depth, that no operator, log or error may show.
          Fields whose names say that they are secret are withheld anyway.
        - Without `users`, only the application may schedule the action: static schedules, an
          operator's, a resolver's answers, rows without a flow. No user, and no agent of a user,
          may put or run such a schedule.
        - `policies` are the defaults of its schedules. A schedule may change none of those that it
          names, but for the names in `may_change`.
        """
        users = users and self.users
        check_name("action", name)
        check_transactional(transactional)
        if name in self.actions:
            raise InvalidSchedule("action", f"{self.name} has an action {name!r} already.")
        declared = self._declare(name, transactional, policies, may_change)
        if target is not None:
            check_called(name, target)
            takes = InputType(object)
            self.actions[name] = Action(
                name,
                target,
                takes,
                input,
                background,
                withheld=check_withheld(takes, redact),
                users=users,
                declared=declared,
            )

        def register(function: Given) -> Given:
            if name in self.actions:
                raise InvalidSchedule("action", f"{name!r} has its target or its function already.")
            check_called(name, function)
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise InvalidSchedule(
                    "action", f"{name!r} yields, so that calling it runs nothing. Let it return."
                )
            with naming(f"{self.name}.{name}"):
                takes = input_type(function)
            withheld = check_withheld(takes, redact)
            self.actions[name] = Action(
                name, function, takes, input, background, transactional, withheld, users, declared
            )
            return function

        return register

    def _declare(
        self,
        action: str,
        transactional: Transactional,
        policies: GivenPolicies | None,
        may_change: Collection[str],
    ) -> Declared:
        """Return the promise of an action: its policies, then its transaction, then its flow's."""
        once = {"delivery": Delivery.EFFECTIVELY_ONCE.value} if transactional else None
        with naming(f"{self.name}.{action}"):
            declared = self.declared.nearer(once).nearer(policies, may_change)
            check_promise(action, transactional, declared.policies.delivery)
        return declared.without_own_hook(action, self.declared)

    def with_defaults(self, schedule: Defined) -> Defined:
        """Return the schedule with its action's defaults where it chooses no policy."""
        action = self.actions.get(schedule.action)
        declared = action.declared if action else self.declared
        return replace(schedule, policies=schedule.policies.over(declared.policies))

    def schedule(
        self,
        key: str,
        *,
        cron: GivenCron,
        action: str,
        timezone: str | None = None,
        input: Json | Compute = None,
        principal: Principal | None = None,
        policies: GivenPolicies | None = None,
    ) -> None:
        """Declare a static schedule, which every deployment has. Its id is `flow/key`."""
        if key in self.static:
            raise InvalidSchedule("key", f"{self.name} has a static schedule {key!r} already.")
        with naming(f"{self.name}/{key}"):
            text = cron if isinstance(cron, str) else read_cron("cron", cron)
            check_timing(text, timezone)
            chosen = read_policies(policies)
        check_key("", f"{self.name}/{key}")
        if callable(input):
            self.computed[key] = input
        self.static[key] = Schedule(
            user_id="",
            key=f"{self.name}/{key}",
            cron=text,
            flow=self.name,
            action=action,
            timezone=timezone,
            input=None if callable(input) else input,
            principal=principal,
            policies=chosen,
        )

    def resolver(self, function: Resolver) -> Resolver:
        """Register the resolver, if the schedules of this flow do not live in Duetick's store."""
        self.resolve = function
        return function

    def on_dispatch(self, function: Observer) -> Observer:
        """Register an observer: it gets (occurrence, status) after each delivery, or status 0."""
        self.observers.append(function)
        return function

    def computes(self, schedule: Schedule) -> Compute | None:
        """Return the function that computes the input of a schedule, or None."""
        declared = self.static.get(schedule.id) if not schedule.user_id else None
        is_its = declared is not None and declared.action == schedule.action
        static = self.computed.get(schedule.id) if is_its else None
        action = self.actions[schedule.action].compute
        return static or (action if schedule.input is None else None)

    def declared_hooks(self) -> list[tuple[str, str]]:
        """Return the names of the actions that declare a failure hook, each with its hook."""
        every = ((one.name, one.declared.policies.on_failure) for one in self.actions.values())
        return [(name, hook) for name, hook in every if hook]

    def declares_hook(self, action: str, hook: str) -> bool:
        """Return True if an action, or its flow for it, declares that failure hook."""
        found = self.actions.get(action)
        return found is not None and found.declared.policies.on_failure == hook

    def check_given(self, schedule: Schedule) -> None:
        """Raise InvalidSchedule unless the action takes the schedule's input, or computes one."""
        if self.computes(schedule) is None:
            self.actions[schedule.action].read(schedule.input)

    def preview(self, schedule: Schedule) -> Json:
        """Return the schedule's input without its secrets, for operators.

        If its action is unknown, its secrets are too, and the whole input is withheld.
        """
        action = self.actions.get(schedule.action)
        return action.preview(schedule.input) if action else WITHHELD


class Flows:
    """All flows of a deployment, by name, and their settings. `rows` names the home of index rows
    without a flow.
    """

    def __init__(
        self, flows: Mapping[str, Flow], rows: str = "", settings: FlowSettings | None = None
    ) -> None:
        self._flows = dict(flows)
        self.settings = FlowSettings() if settings is None else settings
        self.home = home_of(self._flows, rows)
        for flow in self._flows.values():
            for name, hook in flow.declared_hooks():
                with naming(f"{flow.name}.{name}"):
                    check_hook(flow.actions, name, hook)
            for schedule in map(flow.with_defaults, flow.static.values()):
                with naming(schedule.key):
                    self.check_input(schedule)
                    self.check_hook(schedule)
                    self.check_fixed(schedule)

    def __bool__(self) -> bool:
        return bool(self._flows)

    def get(self, name: str) -> Flow | None:
        """Return the flow of that name; for an empty name, the home of rows without a flow."""
        return self._flows.get(name) if name else self.home.flow

    def describe(self) -> str:
        """Return the number of flows and of actions, in words."""
        return f"{say_count(len(self._flows), 'flow')}, {say_count(len(self.actions()), 'action')}"

    def missing(self, name: str, action: str | None = None) -> str | None:
        """Return the flow, or the `flow/action`, that is not here; None if it is.

        A flow's resolver names the actions of its schedules, so that any may be.
        """
        flow = self.get(name)
        if flow is None:
            return name
        known = action is None or flow.resolve is not None or action in flow.actions
        return None if known else f"{name}/{action}"

    def actions(self) -> list[tuple[str, Action]]:
        """Return every action with the name of its flow."""
        return [(flow.name, one) for flow in self._flows.values() for one in flow.actions.values()]

    def list_offered(self, *, to_users: bool) -> list[tuple[str, Action]]:
        """Return the actions that a schedule may name, in order, each with the name of its flow."""
        found = (one for one in self.actions() if one[1].users or not to_users)
        return sorted(found, key=lambda one: (one[0], one[1].name))

    def check_settings(self) -> None:
        """Raise ConfigurationError for the first flow whose settings do not fit."""
        for flow in self._flows.values():
            try:
                if flow.settings is not None:
                    self.settings.read(flow.settings)
            except ConfigurationError as problem:
                raise ConfigurationError(f"{flow.name}: {problem}") from None

    def static(self) -> list[Schedule]:
        """Return the schedules that every deployment has."""
        flows = self._flows.values()
        return [flow.with_defaults(one) for flow in flows for one in flow.static.values()]

    def with_defaults(self, schedule: Defined) -> Defined:
        """See `Flow.with_defaults`."""
        flow = self._flows.get(schedule.flow)
        return flow.with_defaults(schedule) if flow else schedule

    def usual(self, schedule: Schedule) -> Policies:
        """Return the defaults of the schedule's action."""
        return self.with_defaults(replace(Record.of(schedule), policies=Policies())).policies

    def check_fixed(self, wanted: Schedule, current: Schedule | None = None) -> None:
        """Raise InvalidSchedule if the schedule changes a policy that its action fixes.

        The schedule may keep a policy that it has, as long as its action stays the same.
        """
        flow = self._flows.get(wanted.flow)
        action = flow.actions.get(wanted.action) if flow else None
        same = current and (current.flow, current.action) == (wanted.flow, wanted.action)
        kept = resume(current).policies if current and same else None
        if action:
            action.declared.check(action.name, resume(wanted).policies, kept)

    def observe(self, occurrence: Occurrence, status: int) -> None:
        """Call the observers of the occurrence's flow after its delivery.

        Every one is called, even after one that raises. Their errors are raised at the end.
        """
        flow, problems = self.get(occurrence.flow), list[Exception]()
        for observer in flow.observers if flow else ():
            try:
                observer(occurrence, status)
            except Exception as problem:
                problems.append(problem)
        if problems:
            raise ExceptionGroup("observers raised", problems)

    def action_of(self, schedule: Schedule) -> Action:
        """Return the schedule's action. Raises InvalidSchedule if it may not have that action."""
        action = self._find_action(schedule)
        self._check_allowed(schedule, action)
        return action

    def _find_action(self, schedule: Schedule) -> Action:
        flow = self._flows.get(schedule.flow)
        if flow is None:
            known = ", ".join(sorted(self._flows)) or "none"
            raise InvalidSchedule(
                "flow",
                f"{schedule.flow!r} is not known; known flows: {known}.",
                "unknown_flow",
            )
        action = flow.actions.get(schedule.action)
        if action is None:
            known = ", ".join(sorted(a.name for a in flow.actions.values() if a.users)) or "none"
            raise InvalidSchedule(
                "action",
                f"{flow.name!r} has no action {schedule.action!r}; its actions: {known}.",
                "unknown_action",
            )
        return action

    def _check_allowed(self, schedule: Schedule, action: Action) -> None:
        if schedule.is_users:
            self.check_for_users(schedule)
        check_promise(action.name, action.transactional, schedule.policies.delivery)

    def check_for_users(self, schedule: Schedule) -> None:
        """Raise InvalidSchedule if no user may put or run the schedule."""
        if not self._is_for_users(schedule):
            raise InvalidSchedule(
                "action",
                f"{schedule.action!r} is not for users: a schedule of it is static, or an operator "
                "makes it.",
                "not_yours",
            )

    def check_hook(self, schedule: Schedule) -> None:
        """Raise InvalidSchedule unless the hook is another action of the flow, with a hook's input.

        Another check refuses an unknown flow.
        """
        flow, hook = self._flows.get(schedule.flow), schedule.policies.on_failure
        if flow and hook:
            check_hook(flow.actions, schedule.action, hook)

    def check_hook_for_users(self, schedule: Schedule) -> None:
        """Raise InvalidSchedule if no user may choose the schedule's failure hook."""
        if not self._hook_is_for_users(schedule):
            raise InvalidSchedule(
                FIELD,
                f"{schedule.policies.on_failure!r} is not for users: the action declares it as its "
                "failure hook, or an operator names it.",
                "not_yours",
            )

    def hook_of(self, schedule: Defined, hook: Occurrence, name: str) -> Defined:
        """Return the definition that a failure hook runs: the action `name`, told of the death.

        If the schedule's action declares it, the application is the one that chose it.
        """
        flow = self._flows.get(schedule.flow)
        action = flow.actions.get(name) if flow else None
        told = input_of_hook(schedule, hook, operator=action is not None and not action.users)
        runs = replace(schedule, action=name, input=told, policies=hook.policies)
        declared = flow is not None and flow.declares_hook(schedule.action, name)
        return replace(runs, principal=runs.runs_as) if declared else runs

    def vouch(self, schedule: Schedule) -> Schedule:
        """Return the schedule. If only the application may run its action, or its failure hook,
        name a principal.
        """
        fits = self._is_for_users(schedule) and self._hook_is_for_users(schedule)
        if not schedule.is_users or fits:
            return schedule
        return replace(schedule, principal=schedule.runs_as)

    def _is_for_users(self, schedule: Schedule) -> bool:
        """Return True if users may schedule the action. Another check refuses an unknown action."""
        flow = self._flows.get(schedule.flow)
        action = flow.actions.get(schedule.action) if flow else None
        return action is None or action.users

    def _hook_is_for_users(self, schedule: Schedule) -> bool:
        """Return True if users may choose the failure hook, or its action declares it. Another
        check refuses an unknown one.
        """
        flow, hook = self._flows.get(schedule.flow), schedule.policies.on_failure
        action = flow.actions.get(hook) if flow and hook else None
        if flow is None or hook is None or action is None:
            return True
        return action.users or flow.declares_hook(schedule.action, hook)

    def preview(self, schedule: Schedule) -> Json:
        """See `Flow.preview`."""
        flow = self._flows.get(schedule.flow)
        return flow.preview(schedule) if flow else WITHHELD

    def check_input(self, schedule: Schedule) -> None:
        """Raise InvalidSchedule unless the action exists and takes the schedule's input."""
        action = self._find_action(schedule)
        check_all(
            lambda: self._check_allowed(schedule, action),
            lambda: self._flows[schedule.flow].check_given(schedule),
        )

    def input_for(self, schedule: Schedule, context: Context) -> Json:
        """Return the input for the action: the schedule's, or a computed one."""
        compute = self._flows[schedule.flow].computes(schedule)
        return schedule.input if compute is None else compute(context)
