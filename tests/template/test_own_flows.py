"""A team's own parts: the layer of its flows, rights of actions, settings, a secret."""

import json
import os

import pytest
from duetick.cli.deployed import NEEDED
from duetick.cli.template import ARN, dump, make_release, read_template
from duetick.runtime.flow_settings import open_flow_settings
from duetick.runtime.settings import Settings

from tests.template.combinations import BACKENDS, FLOWS, GIVEN, NETWORK
from tests.template.parsed import TEMPLATE, Deployment, Value, Values, template
from tests.template.test_parameters import FUNCTIONS, allows
from tests.template.test_rights import resources

ROOM = 4_096
"""The bytes that a function's variables may have, names and values together."""


def layers(deployment: Deployment) -> Value:
    """Return the layers of each function."""
    return deployment.decided(template()["Globals"]["Function"]["Layers"])


def test_each_function_has_the_layer_that_is_given_or_else_the_examples() -> None:
    assert layers(Deployment())[-1] == {"Ref": "FlowsLayer"}
    assert layers(Deployment(**FLOWS))[-1] == {"Ref": "FlowsLayerArn"}
    assert "FlowsLayer" in Deployment().resources
    assert "FlowsLayer" not in Deployment(**FLOWS).resources


@pytest.mark.parametrize("resource", ["Schema", "StaticSchedules"])
def test_flows_that_change_are_checked_and_their_static_schedules_registered(resource: str) -> None:
    for given, layer in (({}, "FlowsLayer"), (FLOWS, "FlowsLayerArn")):
        asked = Deployment(**given).resources[resource]["Properties"]
        assert {"Ref": layer} in [asked.get("Flows"), *asked["Code"]]


def test_settings_that_change_are_checked_before_any_function_has_them() -> None:
    schema = Deployment(**FLOWS).resources["Schema"]
    assert schema["Properties"]["Settings"] == {"Ref": "Settings"}
    for function in ("TickFunction", "DispatchFunction", "SchedulesFunction"):
        assert template()["Resources"][function]["DependsOn"] == "Schema"


def told(deployment: Deployment, name: str) -> dict[str, Value]:
    """Return the functions that have a variable, with its value."""
    found = {function: deployment.environment(function).get(name) for function in FUNCTIONS}
    return {function: value for function, value in found.items() if value is not None}


def test_settings_reach_what_runs_actions_and_what_checks_them_alone() -> None:
    made = Deployment(**FLOWS)
    given = {"Ref": "Settings"}
    wanted = {"DispatchFunction": given, "MigrateFunction": given}
    assert told(made, "DUETICK_FLOW_SETTINGS") == wanted
    secret = {"DispatchFunction": {"Ref": "SettingsSecretArn"}}
    assert told(made, "DUETICK_FLOW_SETTINGS_SECRET_ARN") == secret


def reads(deployment: Deployment, secret: str) -> set[str]:
    """Return the functions that may read the secret of a parameter."""
    return {
        function
        for function in FUNCTIONS
        for one in deployment.statements(function)
        if one["Action"] == "secretsmanager:GetSecretValue" and {"Ref": secret} in resources(one)
    }


def test_dispatch_alone_reads_the_secret_and_uses_its_key() -> None:
    assert reads(Deployment(**FLOWS), "SettingsSecretArn") == {"DispatchFunction"}
    assert reads(Deployment(), "SettingsSecretArn") == set()
    made = Deployment(**FLOWS, SecretKeyArn=GIVEN["SecretKeyArn"])
    using = {
        function
        for function in FUNCTIONS
        if any(one["Action"] == "kms:Decrypt" for one in made.statements(function))
    }
    assert using == {"DispatchFunction"}


@pytest.mark.parametrize("network", [{}, NETWORK], ids=["no-vpc", "vpc"])
def test_the_rights_of_actions_are_those_of_dispatch_and_of_no_other(
    network: dict[str, str],
) -> None:
    made = Deployment(**FLOWS, **network)
    roles = {name: one["Properties"] for name, one in made.of_type("AWS::IAM::Role").items()}
    named = {
        name: one["ManagedPolicyArns"]
        for name, one in roles.items()
        if "ActionPolicyArns" in str(one.get("ManagedPolicyArns"))
    }
    joined: Value = {"Ref": "ActionPolicyArns"}
    if network:
        joined = {"Fn::Sub": "${NetworkPolicy},${ActionPolicyArns}"}
    assert named == {"DispatchRole": {"Fn::Split": [",", joined]}}
    without = Deployment(**network).resources["DispatchRole"]["Properties"]
    assert without.get("ManagedPolicyArns") == ([{"Ref": "NetworkPolicy"}] if network else None)


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("FlowsLayerArn", "arn:aws:lambda:eu-central-1:123456789012:layer:flows:7", True),
        ("FlowsLayerArn", "arn:aws:lambda:eu-central-1:123456789012:layer:flows", False),
        (
            "ActionPolicyArns",
            "arn:aws:iam::123456789012:policy/a,arn:aws:iam::aws:policy/b/C",
            True,
        ),
        ("ActionPolicyArns", "arn:aws:iam::1:policy/a, arn:aws:iam::1:policy/b", False),
        ("ActionPolicyArns", ",".join(["arn:aws:iam::1:policy/a"] * 9), False),
        ("ActionPolicyArns", "arn:aws:iam::1:role/a", False),
        ("Settings", '{"sender": "me"}', True),
        ("Settings", '\n{\n  "a": 1\n}\n', True),
        ("Settings", "[1]", False),
        ("Settings", "sender=me", False),
    ],
)
def test_what_is_given_is_checked_when_it_is_deployed(name: str, value: str, taken: bool) -> None:
    assert allows(name, value) == taken
    assert allows(name, "")


@pytest.mark.parametrize("backend", BACKENDS, ids=[one["Backend"] for one in BACKENDS])
def test_the_longest_settings_have_room_beside_the_other_variables(backend: dict[str, str]) -> None:
    """Each other value is taken as long as a long name is."""
    network = NETWORK if backend["Backend"] == "aurora" else {}
    made = Deployment(
        **{**FLOWS, **network, **backend, "DispatchSecretArn": FLOWS["SettingsSecretArn"]}
    )
    longest = template()["Parameters"]["Settings"]["MaxLength"]
    for function in FUNCTIONS:
        variables = made.environment(function)
        values = {
            name: longest if name == "DUETICK_FLOW_SETTINGS" else min(len(str(value)), 120)
            for name, value in variables.items()
        }
        assert sum(len(name) for name in variables) + sum(values.values()) < ROOM


def test_what_the_template_passes_is_what_the_flows_read() -> None:
    read = Settings.read({"DUETICK_STORE": "sqlite://", "DUETICK_FLOW_SETTINGS": FLOWS["Settings"]})
    assert open_flow_settings(read)["sender"] == json.loads(FLOWS["Settings"])["sender"]
    assert open_flow_settings(Settings.read({"DUETICK_STORE": "sqlite://"})).get("sender") is None


@pytest.fixture
def release() -> Values:
    """The template of a release."""
    return read_template(dump(make_release(read_template(TEMPLATE.read_text()))))


def test_a_release_has_no_flows_and_is_not_deployed_without_any(release: Values) -> None:
    assert "Default" not in release["Parameters"][ARN]
    assert "FlowsLayer" not in release["Resources"]
    assert "GivenFlows" not in str(release)
    assert "ExampleFlows" not in str(release)
    assert release["Globals"]["Function"]["Layers"][-1] == {"Ref": ARN}


def test_the_code_of_a_release_is_in_archives_that_sam_builds_no_more(release: Values) -> None:
    code = {
        one["Properties"].get("CodeUri") or one["Properties"].get("ContentUri")
        for one in release["Resources"].values()
        if one["Type"] in ("AWS::Serverless::Function", "AWS::Serverless::LayerVersion")
    }
    functions = {path.name for path in os.scandir(TEMPLATE.with_name("functions")) if path.is_dir()}
    assert code == {f"{name}.zip" for name in (functions | {"deps", "duetick"})}
    assert "BuildMethod" not in str(release)


def test_a_release_differs_in_nothing_else(release: Values) -> None:
    given = read_template(TEMPLATE.read_text())
    assert release.keys() == given.keys()
    for part in ("Outputs", "Mappings", "Rules", "Metadata"):
        assert release[part] == given[part]
    own = {"GivenFlows", "ExampleFlows"}
    assert release["Conditions"].keys() == given["Conditions"].keys() - own
    assert release["Resources"].keys() == given["Resources"].keys() - {"FlowsLayer"}
    for name in ("Table", "Api", "DispatchRole", "Dashboard", "TickRole"):
        assert release["Resources"][name] == given["Resources"][name]


def test_what_other_stacks_need_is_exported_under_the_name_of_the_stack() -> None:
    exported = {
        name: one["Export"]["Name"]
        for name, one in template()["Outputs"].items()
        if "Export" in one
    }
    assert exported == {
        name: {"Fn::Sub": f"${{AWS::StackName}}-{name}"}
        for name in ("ApiUrl", "ApiId", "UsersApiUrl")
    }
    assert template()["Outputs"].keys() >= NEEDED
