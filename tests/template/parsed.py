"""template.yaml as data: its functions stay as CloudFormation writes them, `Fn::If` and all."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from duetick.cli.template import read_template

if TYPE_CHECKING:
    from collections.abc import Callable

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
Values: TypeAlias = dict[str, Any]
Value: TypeAlias = Any


@cache
def template() -> Values:
    """Return the whole template."""
    return read_template(TEMPLATE.read_text())


class Deployment:
    """The template with parameters, reduced by its conditions."""

    def __init__(self, **parameters: str) -> None:
        declared = template()["Parameters"]
        assert parameters.keys() <= declared.keys()
        self._given = {
            name: str(parameters.get(name, one.get("Default", "")))
            for name, one in declared.items()
        }

    def holds(self, condition: str) -> bool:
        """Return True if a condition holds."""
        return bool(self._logic(template()["Conditions"][condition]))

    def _logic(self, value: Value) -> Value:
        if not isinstance(value, dict):
            return value
        ((name, given),) = value.items()
        if name in ("Condition", "Ref"):
            return self.holds(given) if name == "Condition" else self._given[given]
        parts = [self._logic(one) for one in given]
        decide: dict[str, Callable[[], bool]] = {
            "Fn::Equals": lambda: str(parts[0]) == str(parts[1]),
            "Fn::Not": lambda: not parts[0],
            "Fn::And": lambda: all(parts),
            "Fn::Or": lambda: any(parts),
        }
        return decide[name]()

    def refused_by(self) -> list[str]:
        """Return the refusals of these parameters by the template's rules."""
        return [
            one["AssertDescription"]
            for rule in template()["Rules"].values()
            if self._logic(rule["RuleCondition"])
            for one in rule["Assertions"]
            if not self._logic(one["Assert"])
        ]

    @property
    def resources(self) -> Values:
        """Return the resources that are made, each with its `Fn::If`s decided."""
        return {
            name: self.decided(one)
            for name, one in template()["Resources"].items()
            if "Condition" not in one or self.holds(one["Condition"])
        }

    def of_type(self, kind: str) -> Values:
        """Return the resources of a type."""
        return {name: one for name, one in self.resources.items() if one["Type"] == kind}

    def environment(self, function: str) -> Values:
        """Return the variables of a function, with those of all functions."""
        every = self.decided(template()["Globals"]["Function"]["Environment"]["Variables"])
        own = self.resources[function]["Properties"].get("Environment", {}).get("Variables", {})
        return {**every, **own}

    def statements(self, function: str) -> list[Values]:
        """Return the statements of a function's role."""
        role = self.resources[function]["Properties"]["Role"]["Fn::GetAtt"][0]
        inline = self.resources[role]["Properties"]["Policies"]
        attached = [
            one["Properties"]
            for one in self.of_type("AWS::IAM::Policy").values()
            if {"Ref": role} in one["Properties"]["Roles"]
        ]
        return [
            statement
            for policy in [*inline, *attached]
            for statement in policy["PolicyDocument"]["Statement"]
        ]

    def decided(self, value: Value) -> Value:
        """Return the value with each `Fn::If` replaced by its branch, and without
        `AWS::NoValue`.
        """
        if isinstance(value, list):
            return [one for one in map(self.decided, value) if one is not _NOTHING]
        if not isinstance(value, dict):
            return value
        if "Fn::If" in value:
            condition, then, otherwise = value["Fn::If"]
            return self.decided(then if self.holds(condition) else otherwise)
        if value == {"Ref": "AWS::NoValue"}:
            return _NOTHING
        decided = {name: self.decided(one) for name, one in value.items()}
        return {name: one for name, one in decided.items() if one is not _NOTHING}


_NOTHING = object()


def actions(statements: list[Values]) -> set[str]:
    """Return all actions that some statements allow."""
    return {
        action
        for one in statements
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
    }
