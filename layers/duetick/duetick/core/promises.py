"""The policies that an action and its flow declare: the defaults of their schedules."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from duetick.core.definitions import GivenPolicies, read_policies
from duetick.core.wire import camel, policies_json, snake
from duetick.domain.errors import InvalidSchedule, check_all
from duetick.domain.policies import Policies

NAMES: Final = Policies.__match_args__


@dataclass(frozen=True, slots=True)
class Declared:
    """The defaults of an action's schedules, and the names of the policies that none may change."""

    policies: Policies = field(default_factory=Policies)
    fixed: frozenset[str] = frozenset()

    @property
    def may_change(self) -> tuple[str, ...]:
        """The names of the policies that a schedule may choose for itself."""
        return tuple(name for name in NAMES if name not in self.fixed)

    def nearer(self, given: GivenPolicies | None, may_change: Collection[str] = ()) -> "Declared":
        """Return these defaults, overridden by those that are declared nearer to the action.

        A declared policy is fixed, unless `may_change` names it.
        """
        more, free = read_policies(given), _read_names(may_change)
        declared = self.fixed | more.chosen.keys()
        _check_declared(free, declared)
        return Declared(more.over(self.policies), declared - free)

    def without_own_hook(self, action: str, of_flow: "Declared") -> "Declared":
        """Return these defaults without the failure hook that the flow declares, if the action is
        that very hook: the hook of all others has none.
        """
        hook = self.policies.on_failure
        if hook != action or of_flow.policies.on_failure != hook:
            return self
        return replace(self, policies=replace(self.policies, on_failure=None))

    def check(self, action: str, wanted: Policies, current: Policies | None) -> None:
        """Raise InvalidSchedule if a schedule changes a fixed policy. It may keep its own value."""
        changed = self._find_changed(wanted, current)
        check_all(*(partial(self._refuse, action, name, wanted) for name in changed))

    def _find_changed(self, wanted: Policies, current: Policies | None) -> Iterator[str]:
        for name in NAMES:
            value = getattr(wanted, name)
            kept = current is not None and getattr(current, name) == value
            if name in self.fixed and value != getattr(self.policies, name) and not kept:
                yield name

    def _refuse(self, action: str, name: str, wanted: Policies) -> None:
        free = ", ".join(map(camel, self.may_change)) or "nothing"
        raise InvalidSchedule(
            f"policies.{name}",
            f"expected {_show(name, self.policies)}, which {action!r} declares, got "
            f"{_show(name, wanted)}; leave it out. Its schedules may change {free}.",
            "not_yours",
        )


def _read_names(given: Collection[str]) -> frozenset[str]:
    """Return the Python names of policies, from those of Python or of JSON."""
    if isinstance(given, str):
        raise InvalidSchedule("may_change", f"expected several names, such as ({given!r},).")
    named = frozenset(map(snake, given))
    unknown = ", ".join(sorted(named.difference(NAMES)))
    if unknown:
        known = ", ".join(NAMES)
        raise InvalidSchedule("may_change", f"{unknown}: no policy; the policies are {known}.")
    return named


def _check_declared(free: frozenset[str], declared: frozenset[str]) -> None:
    undeclared = ", ".join(sorted(free - declared))
    if undeclared:
        raise InvalidSchedule(
            "may_change",
            f"{undeclared}: not declared, so that every schedule may change it. Declare it in "
            "policies=, or leave it out here.",
        )


def _show(name: str, policies: Policies) -> str:
    return json.dumps(policies_json(policies)[camel(name)])
