"""The template of a stack as data, and the changes that make it the template of a release."""

from pathlib import PurePosixPath
from typing import Any, Final, TypeAlias, cast

import yaml

StackTemplate: TypeAlias = dict[str, Any]

GIVEN: Final = "GivenFlows"
EXAMPLES: Final = "ExampleFlows"
"""The conditions that flows of one's own are given, and that they are not."""

FLOWS: Final = "FlowsLayer"
"""The layer of the example flows, which no release has."""

ARN: Final = "FlowsLayerArn"
LOCATIONS: Final = ("CodeUri", "ContentUri")


class _Loader(yaml.SafeLoader):
    """Reads !Ref and its like in their long form."""


def _long_form(loader: _Loader, tag: str, node: yaml.Node) -> StackTemplate:
    name = tag if tag in ("Ref", "Condition") else f"Fn::{tag}"
    if isinstance(node, yaml.ScalarNode):
        value: object = loader.construct_scalar(node)
        return {name: str(value).split(".", 1) if tag == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    if isinstance(node, yaml.MappingNode):
        return {name: loader.construct_mapping(node, deep=True)}
    raise TypeError(f"{tag} stands before a node of an unknown kind.")


_Loader.add_multi_constructor("!", _long_form)


def read_template(text: str) -> StackTemplate:
    """Return a template, with its functions as CloudFormation writes them: `Fn::If` and all."""
    read: StackTemplate = _Loader(text).get_single_data()
    return read


def dump(template: StackTemplate) -> str:
    """Return a template as YAML."""
    return yaml.safe_dump(template, sort_keys=False, width=100)


def make_release(template: StackTemplate) -> StackTemplate:
    """Return the template of a release. Its code is in archives beside it, and flows have to be
    given: one that a deployment forgot would leave all schedules without their flow.
    """
    made = cast("StackTemplate", _with_flows(template))
    resources = made["Resources"]
    del resources[FLOWS], made["Parameters"][ARN]["Default"]
    made["Conditions"] = {
        name: one for name, one in made["Conditions"].items() if name not in (GIVEN, EXAMPLES)
    }
    for resource in resources.values():
        properties = resource.get("Properties", {})
        for location in LOCATIONS:
            if location in properties:
                properties[location] = archive_of(properties[location])
                resource.pop("Metadata", None)
    return made


def _with_flows(part: object) -> object:
    """Return a part with each choice between given flows and the examples decided."""
    if isinstance(part, list):
        return [_with_flows(one) for one in part]
    if not isinstance(part, dict):
        return part
    match part.get("Fn::If"):
        case [condition, given, _] if condition == GIVEN:
            return _with_flows(given)
    return {name: _with_flows(one) for name, one in part.items()}


def archive_of(location: str) -> str:
    """Return the name of the archive that holds a folder of the tree."""
    return f"{PurePosixPath(location).name}.zip"
