"""The home of index rows without a flow: a flow with a resolver, or one action.

Such rows have five columns: `index.upsert` put them without a flow, or they were taken over from a
foreign table. One rule applies to all of them, so only dispatch has to know it.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetick.domain.errors import ConfigurationError, InvalidSchedule
from duetick.domain.schedule import Occurrence, Record, Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetick.core.flows import Flow

SETTING = "DUETICK_ROW_FLOW"
TAKEN_OVER = "Rows of schedule_index that were taken over"


@dataclass(frozen=True, slots=True)
class Home:
    """The flow of rows without a flow. Without an `action`, its resolver names their actions.

    If `flow` is None, such rows have no home, and `why` says what to do.
    """

    flow: "Flow | None"
    action: str = ""
    why: str = ""

    def adopt(self, occurrence: Occurrence) -> Record | None:
        """Return the definition of a row that has none; None if the home gives it none either.

        The application wrote the row and chose the action, so the record names the principal.
        """
        if self.flow is None or not self.action or occurrence.flow or occurrence.redefined_at:
            return None
        made = Schedule(
            user_id=occurrence.user_id,
            key=occurrence.key,
            cron=occurrence.cron,
            flow=self.flow.name,
            action=self.action,
            timezone=occurrence.timezone,
            policies=occurrence.policies,
        )
        return replace(Record.of(made), principal=made.runs_as)

    def describe(self, rows: int) -> str:
        """Return a report about the rows that were taken over."""
        if self.flow is None:
            return f"{TAKEN_OVER}: {rows}. They have no home yet. {self.why}"
        slash = "/" if self.action else ""
        return f"{TAKEN_OVER}: {rows}. They go to {self.flow.name}{slash}{self.action}."


def home_of(flows: "Mapping[str, Flow]", named: str) -> Home:
    """Return the home of that name, `flow` or `flow/action`; else the only flow with a resolver."""
    if named:
        return _find_home(flows, named)
    resolving = sorted(name for name, flow in flows.items() if flow.resolve)
    if len(resolving) == 1:
        return Home(flows[resolving[0]])
    found = f"several have one ({', '.join(resolving)})" if resolving else "no flow has one"
    return Home(
        None,
        why="The index row names no flow, so that it belongs to the flow with a resolver, and "
        f"{found}. Put the row with its flow, or name a flow, or flow/action, as {SETTING}.",
    )


def _find_home(flows: "Mapping[str, Flow]", named: str) -> Home:
    name, slash, action = named.partition("/")
    flow = flows.get(name)
    if flow is None:
        known = ", ".join(sorted(flows)) or "none"
        raise ConfigurationError(f"{SETTING} names the flow {name!r}; known flows: {known}.")
    if slash and action not in flow.actions:
        known = ", ".join(sorted(flow.actions)) or "none"
        raise ConfigurationError(
            f"{SETTING} names the action {action!r}; the actions of {name}: {known}."
        )
    if bool(slash) == bool(flow.resolve):
        other = f"it has one: {name}" if flow.resolve else f"it has none: {name}/<action>"
        raise ConfigurationError(
            f"{SETTING} is {named!r}. A flow with a resolver is named alone, one without it with "
            f"the action of its rows; {other}."
        )
    _check_input(flow, action)
    return Home(flow, action)


def _check_input(flow: "Flow", action: str) -> None:
    """Refuse an action that needs an input: a row has none."""
    taken = flow.actions.get(action)
    if taken is None or taken.compute:
        return
    try:
        taken.read(None)
    except InvalidSchedule as problem:
        raise ConfigurationError(
            f"{SETTING} names {flow.name}/{action}, which needs an input, and rows have none "
            f"({problem}). Declare it with input=, a function of the context."
        ) from problem
