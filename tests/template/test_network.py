"""A route or an endpoint leads to each address that a function has to reach from the VPC."""

from itertools import pairwise
from typing import Final

import pytest

from tests.template.combinations import BUS, KEPT_IN, MANAGED, NETWORK, combinations, spoken
from tests.template.parsed import Deployment, Value, actions

FUNCTIONS: Final = ("TickFunction", "DispatchFunction", "SchedulesFunction", "MigrateFunction")
SERVICES: Final = {
    "dynamodb": "dynamodb",
    "events": "events",
    "execute-api": "execute-api",
    "lambda": "lambda",
    "scheduler": "scheduler",
    "secretsmanager": "secretsmanager",
    "sqs": "sqs",
    "ssm": "ssm",
    "sts": "sts",
}
BY_LAMBDA_ITSELF: Final = {"logs", "ec2"}
"""Logs leave through Lambda's own network, and so are interfaces made."""
BY_SECRETS_MANAGER: Final = {"kms"}
"""It opens a secret with the key, in the name of who reads it."""
BY_SCHEDULER: Final = {"iam"}
"""A role is passed in the call that makes a bell: nobody asks IAM."""
IN_THE_VPC: Final = {"rds-db"}
"""The proxy; a token for it is signed without asking anybody."""

within = pytest.mark.parametrize(
    "parameters", [one for one in combinations() if "VpcId" in one], ids=spoken
)


def needed(deployment: Deployment, function: str) -> set[str]:
    """Return the services that a function calls, told by its rights and its environment."""
    services = {one.partition(":")[0] for one in actions(deployment.statements(function))}
    by_others = BY_LAMBDA_ITSELF | BY_SECRETS_MANAGER | BY_SCHEDULER
    unknown = services - SERVICES.keys() - by_others - IN_THE_VPC
    assert not unknown, f"it is not known how {unknown} are reached"
    found = {SERVICES[one] for one in services & SERVICES.keys()} - {"sqs"}
    if "DUETICK_QUEUE" in deployment.environment(function):
        found.add("sqs")  # failed events leave by Lambda itself
    if "DUETICK_API_URL" in deployment.environment(function):
        found.add("execute-api")
    if answers_cloudformation(deployment, function):
        found.add("s3")
    return found


def split(parameter: str) -> Value:
    """Return the list that a parameter's text stands for."""
    return {"Fn::Split": [",", {"Ref": parameter}]}


def answers_cloudformation(deployment: Deployment, function: str) -> bool:
    """Return True if a function answers a custom resource."""
    tokens = [
        one["Properties"]["ServiceToken"]
        for one in deployment.resources.values()
        if one["Type"].startswith("Custom::")
    ]
    return {"Fn::GetAtt": [function, "Arn"]} in tokens


def endpoints(deployment: Deployment) -> dict[str, Value]:
    """Return the endpoints that are made, by service."""
    return {
        one["Properties"]["ServiceName"]["Fn::Sub"].rpartition(".")[2]: one["Properties"]
        for one in deployment.of_type("AWS::EC2::VPCEndpoint").values()
    }


def reached(deployment: Deployment, parameters: dict[str, str]) -> set[str]:
    """Return the services that the functions' subnets lead to."""
    found = set(endpoints(deployment))
    api_is_private = parameters.get("PrivateApi") == "true"
    if parameters.get("Egress", "nat") == "nat":
        found |= {*SERVICES.values(), "s3"} - ({"execute-api"} if api_is_private else set())
        found |= set(endpoints(deployment))
    elif not api_is_private:
        found -= {"execute-api"}
    return found


@within
@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_reaches_what_it_calls(parameters: dict[str, str], function: str) -> None:
    deployment = Deployment(**parameters)
    assert needed(deployment, function) <= reached(deployment, parameters)


@pytest.mark.parametrize(
    ("function", "service"),
    [
        ("TickFunction", "execute-api"),
        ("TickFunction", "secretsmanager"),
        ("DispatchFunction", "secretsmanager"),
        ("DispatchFunction", "lambda"),
        ("TickFunction", "ssm"),
        ("MigrateFunction", "ssm"),
        ("MigrateFunction", "s3"),
        ("MigrateFunction", "dynamodb"),
        ("TickFunction", "events"),
        ("DispatchFunction", "events"),
        ("MigrateFunction", "events"),
        ("TickFunction", "sqs"),
        ("DispatchFunction", "sqs"),
        ("MigrateFunction", "sqs"),
    ],
)
def test_the_need_is_seen(function: str, service: str) -> None:
    given = {"DispatchSecretArn": KEPT_IN, "EventBus": "default", "Transport": "queue"}
    made = Deployment(**given, **NETWORK)
    assert service in needed(made, function)


@pytest.mark.parametrize("bus", ["", "default", BUS])
def test_a_bus_has_an_endpoint_where_nothing_else_leads_out(bus: str) -> None:
    parameters = {**NETWORK, "PrivateApi": "true", "Egress": "endpoints", "EventBus": bus}
    deployment = Deployment(**parameters)
    for function in FUNCTIONS:
        assert needed(deployment, function) <= reached(deployment, parameters)
    assert ("events" in endpoints(deployment)) == bool(bus)


@pytest.mark.parametrize("transport", ["api", "queue"])
def test_a_queue_has_an_endpoint_where_nothing_else_leads_out(transport: str) -> None:
    parameters = {**NETWORK, "PrivateApi": "true", "Egress": "endpoints", "Transport": transport}
    deployment = Deployment(**parameters)
    for function in FUNCTIONS:
        assert needed(deployment, function) <= reached(deployment, parameters)
    assert ("sqs" in endpoints(deployment)) == (transport == "queue")


@pytest.mark.parametrize("trigger", [{}, MANAGED])
def test_bells_have_an_endpoint_where_nothing_else_leads_out(trigger: dict[str, str]) -> None:
    parameters = {**NETWORK, "PrivateApi": "true", "Egress": "endpoints", **trigger}
    assert ("scheduler" in endpoints(Deployment(**parameters))) == bool(trigger)


def test_a_missing_endpoint_would_be_seen() -> None:
    parameters = {**NETWORK, "PrivateApi": "true", "Egress": "endpoints"}
    deployment = Deployment(**parameters)
    left = reached(deployment, parameters) - {"s3"}
    assert not needed(deployment, "MigrateFunction") <= left


@within
def test_interfaces_let_the_functions_in_and_gateways_stand_in_their_routes(
    parameters: dict[str, str],
) -> None:
    deployment = Deployment(**parameters)
    for service, endpoint in endpoints(deployment).items():
        if endpoint["VpcEndpointType"] == "Gateway":
            assert endpoint["RouteTableIds"] == split("RouteTableIds"), service
            continue
        assert endpoint["SubnetIds"] == split("SubnetIds")
        (group,) = endpoint["SecurityGroupIds"]
        (rule,) = deployment.resources[group["Ref"]]["Properties"]["SecurityGroupIngress"]
        assert rule["SourceSecurityGroupId"] == {"Ref": "FunctionsSecurityGroup"}
        assert rule["FromPort"] == rule["ToPort"] == 443


@within
def test_what_the_custom_resource_needs_is_there_before_it(parameters: dict[str, str]) -> None:
    deployment = Deployment(**parameters)
    waits_for = str(deployment.resources["Schema"]["Properties"])
    for name, one in deployment.resources.items():
        service = str(one["Properties"].get("ServiceName"))
        if any(word in service for word in (".s3", ".dynamodb", ".secretsmanager")):
            assert f"'Ref': '{name}'" in waits_for
    if parameters["Backend"] == "aurora":
        assert "'Ref': 'DatabaseProxyTargets'" in waits_for


@within
def test_the_database_lets_in_the_proxy_and_the_proxy_the_functions(
    parameters: dict[str, str],
) -> None:
    if parameters["Backend"] != "aurora":
        return
    made = Deployment(**parameters).resources
    path = ["FunctionsSecurityGroup", "DatabaseProxySecurityGroup", "DatabaseSecurityGroup"]
    for source, target in pairwise(path):
        (rule,) = made[target]["Properties"]["SecurityGroupIngress"]
        assert (rule["SourceSecurityGroupId"], rule["ToPort"]) == ({"Ref": source}, 5432)


def test_a_database_that_was_there_lets_the_functions_in_before_it_is_asked() -> None:
    made = Deployment(Backend="postgres", PostgresSecurityGroupId="sg-1", **NETWORK).resources
    rule = made["FunctionsLetIn"]["Properties"]
    assert rule["GroupId"] == {"Ref": "PostgresSecurityGroupId"}
    assert rule["SourceSecurityGroupId"] == {"Ref": "FunctionsSecurityGroup"}
    assert rule["FromPort"] == rule["ToPort"] == {"Ref": "PostgresPort"}
    assert made["Schema"]["Properties"]["LetIn"] == {"Ref": "FunctionsLetIn"}
