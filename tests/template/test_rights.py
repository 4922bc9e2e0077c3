"""Least privilege: each function has the rights that it uses, and no right is granted by a star."""

from typing import Final

import pytest
from duetick.stores.dynamodb.schema import TTL, table_definition

from tests.template.combinations import BUS, MANAGED, NETWORK, combinations, spoken
from tests.template.parsed import Deployment, Value, Values, actions, template

FUNCTIONS: Final = ("TickFunction", "DispatchFunction", "SchedulesFunction", "MigrateFunction")
HOT: Final = FUNCTIONS[:3]
NAMELESS: Final = {
    *("ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"),
    *("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"),
}
"""What Lambda asks for before there is anything that has a name."""
ON_NO_NAME: Final = {"scheduler:ListSchedules"}
"""What AWS grants on no single resource."""

every = pytest.mark.parametrize("parameters", combinations(), ids=spoken)


def policies(deployment: Deployment) -> list[Values]:
    """Return every statement of every identity policy."""
    documents = [
        policy["PolicyDocument"]
        for role in deployment.of_type("AWS::IAM::Role").values()
        for policy in role["Properties"].get("Policies", [])
    ]
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        documents += [
            one["Properties"]["PolicyDocument"] for one in deployment.of_type(kind).values()
        ]
    return [statement for document in documents for statement in document["Statement"]]


def resources(statement: Values) -> list[Value]:
    """Return the resources of a statement."""
    named = statement["Resource"]
    return named if isinstance(named, list) else [named]


@every
def test_no_action_is_a_star_and_none_is_granted_on_everything(parameters: dict[str, str]) -> None:
    for statement in policies(Deployment(**parameters)):
        assert not [action for action in actions([statement]) if "*" in action]
        if "*" in resources(statement):
            assert actions([statement]) <= NAMELESS | ON_NO_NAME


@every
def test_the_hot_path_can_neither_scan_nor_change_a_table(parameters: dict[str, str]) -> None:
    deployment = Deployment(**parameters)
    for function in HOT:
        allowed = actions(deployment.statements(function))
        assert not {one for one in allowed if one.startswith("dynamodb:") and "Table" in one}
        assert "dynamodb:Scan" not in allowed


@every
def test_only_the_chosen_backend_can_be_reached(parameters: dict[str, str]) -> None:
    deployment = Deployment(**parameters)
    services = {
        "dynamodb": {"dynamodb"},
        "aurora": {"rds-db"},
        "postgres": set[str](),
    }[parameters["Backend"]]
    for function in FUNCTIONS:
        named = {one.partition(":")[0] for one in actions(deployment.statements(function))}
        assert named & {"dynamodb", "rds-db"} == services


def connects_as(deployment: Deployment, function: str) -> list[str]:
    """Return the database's users whose tokens a function may sign."""
    return [
        str(one).rpartition("/")[2].partition("'")[0]
        for statement in deployment.statements(function)
        if statement["Action"] == "rds-db:connect"
        for one in resources(statement)
    ]


def test_on_aurora_only_migrate_connects_as_the_owner() -> None:
    deployment = Deployment(Backend="aurora", **NETWORK)
    for function in HOT:
        assert connects_as(deployment, function) == ["duetick_functions"]
        assert "://duetick_functions@" in str(deployment.environment(function)["DUETICK_STORE"])
        assert "secretsmanager:GetSecretValue" not in actions(deployment.statements(function))
        assert "DUETICK_OWNER_STORE" not in deployment.environment(function)
    assert connects_as(deployment, "MigrateFunction") == ["duetick", "duetick_functions"]
    owner = deployment.environment("MigrateFunction")["DUETICK_OWNER_STORE"]
    assert "://duetick@" in str(owner)


def test_the_proxy_knows_each_user_that_functions_connect_as() -> None:
    made = Deployment(Backend="aurora", **NETWORK).resources
    known = [one["SecretArn"] for one in made["DatabaseProxy"]["Properties"]["Auth"]]
    (statement,) = made["DatabaseProxyRole"]["Properties"]["Policies"][0]["PolicyDocument"][
        "Statement"
    ]
    assert known == statement["Resource"]
    assert {"Ref": "DatabaseUserSecret"} in known


@pytest.mark.parametrize(
    ("function", "indexes"),
    [
        ("TickFunction", {"due", "attention", "leaving"}),
        ("DispatchFunction", set[str]()),
        ("SchedulesFunction", {"attention", "directory", "due"}),
        ("MigrateFunction", {"attention", "directory", "due", "leaving"}),
    ],
)
def test_each_function_queries_the_indexes_that_it_reads(function: str, indexes: set[str]) -> None:
    found = {
        resource["Fn::Sub"].rpartition("/")[2]
        for statement in Deployment().statements(function)
        for resource in resources(statement)
        if isinstance(resource, dict) and "/index/" in str(resource.get("Fn::Sub"))
    }
    assert found == indexes


def test_the_table_is_the_one_that_migrate_would_make() -> None:
    declared = Deployment().resources["Table"]["Properties"]
    wanted = table_definition("any")
    for name in ("BillingMode", "AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes"):
        assert declared[name] == wanted[name]
    assert declared["TimeToLiveSpecification"] == {"AttributeName": TTL, "Enabled": True}


def test_what_is_kept_outlives_the_stack_and_is_encrypted() -> None:
    made = template()["Resources"]
    assert made["Table"]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert made["UserPool"]["DeletionPolicy"] == "RetainExceptOnCreate"
    assert made["DatabaseCluster"]["DeletionPolicy"] == "Snapshot"
    assert made["Table"]["Properties"]["SSESpecification"] == {"SSEEnabled": True}
    assert made["DatabaseCluster"]["Properties"]["StorageEncrypted"] is True
    for queue in ("TickDeadLetters", "AuditDeadLetters"):
        assert made[queue]["Properties"]["SqsManagedSseEnabled"] is True
    assert made["DatabaseProxy"]["Properties"]["RequireTLS"] is True


@every
def test_no_secret_stands_in_the_environment_or_the_outputs(parameters: dict[str, str]) -> None:
    deployment = Deployment(**parameters)
    for function in FUNCTIONS:
        told = deployment.environment(function)
        assert not {name for name in told if name.endswith(("SECRET", "PASSWORD", "TOKEN"))}
        assert "resolve:secretsmanager" not in str(told)
    assert "Secret" not in str(template()["Outputs"])


@every
def test_each_function_has_a_log_of_its_own_that_ends(parameters: dict[str, str]) -> None:
    deployment = Deployment(**parameters)
    made = deployment.of_type("AWS::Serverless::Function")
    assert set(made) == set(FUNCTIONS)
    for function in made.values():
        log = deployment.resources[function["Properties"]["LoggingConfig"]["LogGroup"]["Ref"]]
        assert log["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@every
def test_whoever_reads_a_secret_may_use_its_key_and_through_secrets_manager_alone(
    parameters: dict[str, str],
) -> None:
    key = {"SecretKeyArn": "arn:aws:kms:eu-central-1:123456789012:key/example"}
    deployment = Deployment(**parameters, **key)
    for function in FUNCTIONS:
        statements = deployment.statements(function)
        using = [one for one in statements if one["Action"] == "kms:Decrypt"]
        given = [one for one in statements if one["Resource"] != {"Ref": "DatabaseUserSecret"}]
        reads = "secretsmanager:GetSecretValue" in actions(given)
        assert len(using) == reads
        for one in using:
            assert one["Resource"] == {"Ref": "SecretKeyArn"}
            assert "kms:ViaService" in one["Condition"]["StringEquals"]
    assert "kms:Decrypt" not in actions(policies(Deployment(**parameters)))


def test_the_code_of_a_function_makes_no_network_interface() -> None:
    allow, deny = Deployment(**NETWORK).resources["NetworkPolicy"]["Properties"]["PolicyDocument"][
        "Statement"
    ]
    assert (allow["Effect"], deny["Effect"]) == ("Allow", "Deny")
    assert actions([allow]) == actions([deny]) == NAMELESS
    assert list(deny["Condition"]["ArnLike"]) == ["lambda:SourceFunctionArn"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_allowed_twice(function: str) -> None:
    statements = [str(one) for one in Deployment().statements(function)]
    assert len(set(statements)) == len(statements)


@every
def test_migrate_alone_writes_the_witness_and_who_ticks_or_recovers_reads_it(
    parameters: dict[str, str],
) -> None:
    deployment = Deployment(**parameters)
    reads, writes = {"ssm:GetParameter"}, {"ssm:GetParameter", "ssm:PutParameter"}
    allowed = {"TickFunction": reads, "SchedulesFunction": reads, "MigrateFunction": writes}
    allowed |= {"DispatchFunction": reads} if "Trigger" in parameters else {}
    for function in FUNCTIONS:
        about = [one for one in deployment.statements(function) if "ssm:" in str(one["Action"])]
        assert actions(about) == allowed.get(function, set())
        assert all(":parameter${Witness}" in str(one["Resource"]) for one in about)
        told = deployment.environment(function).get("DUETICK_WITNESS")
        assert told == ({"Fn::Sub": "ssm:${Witness}"} if function in allowed else None)


def test_bells_of_its_own_group_alone_can_be_changed_and_none_without_the_trigger() -> None:
    group = "schedule/${BellGroup}/*"
    managed, usual = Deployment(**MANAGED), Deployment()
    for function in FUNCTIONS:
        assert not {one for one in actions(usual.statements(function)) if "scheduler" in one}
        for one in managed.statements(function):
            if "scheduler:" in str(one["Action"]) and one["Action"] != "scheduler:ListSchedules":
                assert str(one["Resource"]).endswith(f"{group}'}}"), one
            if one["Action"] == "iam:PassRole":
                assert one["Resource"] == {"Fn::GetAtt": ["BellRole", "Arn"]}
                assert one["Condition"] == {
                    "StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}
                }
    assert "scheduler:DeleteSchedule" in actions(managed.statements("SchedulesFunction"))


def test_a_bell_may_call_dispatch_and_tick_alone_and_nobody_else_may_be_it() -> None:
    role = Deployment(**MANAGED).resources["BellRole"]["Properties"]
    [trusted] = role["AssumeRolePolicyDocument"]["Statement"]
    assert trusted["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trusted["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }
    [policy] = role["Policies"]
    [allowed] = policy["PolicyDocument"]["Statement"]
    assert allowed["Action"] == "lambda:InvokeFunction"
    assert allowed["Resource"] == [
        {"Fn::GetAtt": [name, "Arn"]} for name in ("DispatchFunction", "TickFunction")
    ]


def test_no_deployment_writes_the_witness_anew() -> None:
    """CloudFormation leaves a value alone that has not changed in the template."""
    witness = template()["Resources"]["Witness"]["Properties"]
    assert (witness["Type"], witness["Value"]) == ("String", "0")
    assert str(witness["Name"]).find("/duetick/${Id}/witness") > 0


@every
def test_no_log_is_made_that_never_ends(parameters: dict[str, str]) -> None:
    for one in Deployment(**parameters).of_type("AWS::RDS::DBCluster").values():
        assert "EnableCloudwatchLogsExports" not in one["Properties"]


@pytest.mark.parametrize(
    ("bus", "arn"),
    [
        ("default", "arn:aws:events:eu-central-1:123456789012:event-bus/default"),
        ("of/ops.1", "arn:aws:events:eu-central-1:123456789012:event-bus/of/ops.1"),
        (BUS, BUS),
        (BUS.replace("1234", "9999"), BUS.replace("1234", "9999")),
    ],
)
def test_events_are_put_on_the_chosen_bus_alone(bus: str, arn: str) -> None:
    deployment = Deployment(EventBus=bus)
    for function in ("TickFunction", "DispatchFunction", "MigrateFunction"):
        (statement,) = puts_events(deployment, function)
        text, given = statement["Resource"]["Fn::Sub"]
        place, parts = given["Bus"]["Fn::Select"]
        separator, joined = parts["Fn::Split"]
        whole = filled(joined["Fn::Sub"], bus)
        assert text.replace("${Bus}", whole.split(separator)[int(place)]) == arn
        assert deployment.environment(function)["DUETICK_EVENT_BUS"] == {"Ref": "EventBus"}
    assert puts_events(deployment, "SchedulesFunction") == []


def test_without_a_bus_nobody_may_put_events() -> None:
    for function in FUNCTIONS:
        assert puts_events(Deployment(), function) == []


def puts_events(deployment: Deployment, function: str) -> list[Values]:
    """Return the statements that let a function put events."""
    found = deployment.statements(function)
    return [one for one in found if "events:PutEvents" in actions([one])]


def filled(text: str, bus: str) -> str:
    """Return a text of Fn::Sub, as it is in one region of one account."""
    known = {
        "${AWS::Partition}": "aws",
        "${AWS::Region}": "eu-central-1",
        "${AWS::AccountId}": "123456789012",
        "${EventBus}": bus,
    }
    for name, value in known.items():
        text = text.replace(name, value)
    return text
