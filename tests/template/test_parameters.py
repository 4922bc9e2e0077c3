"""The values of parameters: all that is accepted works, and others are refused at once."""

import json
import re
from dataclasses import fields
from typing import Final

import pytest
from duetick.domain.errors import ConfigurationError
from duetick.runtime.settings import Settings
from duetick.stores.dynamodb.shelf import LARGEST_SHARDS

from tests.template.combinations import AUTHORIZER, CLIENT, KEPT_IN, MANAGED, NETWORK, POOL
from tests.template.parsed import Deployment, template

FUNCTIONS: Final = ("TickFunction", "DispatchFunction", "SchedulesFunction", "MigrateFunction")
POSTGRES: Final = {
    "Backend": "postgres",
    "PostgresAddress": "postgresql://duetick@db.example.com/app",
    "PostgresSecretArn": KEPT_IN,
}
OWNER: Final = "postgresql://owner@db.example.com/app"


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"Backend": "postgres"}, "PostgresAddress"),
        ({"Backend": "postgres"}, "PostgresSecretArn"),
        ({"Backend": "aurora"}, "VpcId"),
        ({"PrivateApi": "true"}, "VpcId"),
        ({"VpcId": "vpc-1"}, "SubnetIds"),
        ({"SubnetIds": "subnet-1"}, "VpcId"),
        ({"Egress": "endpoints"}, "VpcId"),
        ({"VpcId": "vpc-1", "Egress": "endpoints"}, "PrivateApi=true"),
        ({"VpcId": "vpc-1", "Egress": "endpoints"}, "RouteTableIds"),
        ({"Users": "lambda"}, "AuthorizerArn"),
        ({"AuthorizerArn": AUTHORIZER}, "Users=lambda"),
        ({"Users": "none", "UserPoolArn": POOL}, "Users=cognito"),
        ({"UserPoolArn": POOL}, "UserPoolClientId"),
        ({"UserPoolClientId": CLIENT}, "UserPoolArn"),
        ({"Users": "none", "AllowedOrigin": "https://app.example.com"}, "Users=cognito"),
        ({"Users": "none", "Agents": "true"}, "Users=cognito"),
        ({"AlarmEmail": "a@example.com", "AlarmTopicArn": "arn:aws:sns:x:1:y"}, "AlarmTopicArn"),
        ({**POSTGRES, "PostgresSecurityGroupId": "sg-1"}, "VpcId"),
        ({**POSTGRES, "PostgresOwnerAddress": OWNER}, "PostgresOwnerSecretArn"),
        ({"PostgresOwnerAddress": OWNER, "PostgresOwnerSecretArn": KEPT_IN}, "Backend postgres"),
        ({**POSTGRES, "PostgresOwnerSecretArn": KEPT_IN}, "PostgresOwnerAddress"),
        ({**POSTGRES, "Backend": "dynamodb"}, "Backend=postgres"),
        ({**NETWORK, "PostgresSecurityGroupId": "sg-1"}, "Backend postgres"),
        ({"LookAheadSeconds": "60", "TickMinutes": "2"}, "TickMinutes"),
        ({"LookAheadSeconds": "120", "TickMinutes": "30"}, "TickMinutes"),
        ({"Transport": "queue", "TickMinutes": "5"}, "TickMinutes"),
        ({"Transport": "queue", "LookAheadSeconds": "60"}, "LookAheadSeconds"),
        ({"Trigger": "managed"}, "TickMinutes=60"),
        ({"Transport": "queue", "Trigger": "managed", "TickMinutes": "60"}, "Trigger=tick"),
        ({**MANAGED, "LookAheadSeconds": "60"}, "TickMinutes is 1"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(
    parameters: dict[str, str], says: str
) -> None:
    assert says in " ".join(Deployment(**parameters).refused_by())


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        POSTGRES,
        {**POSTGRES, **NETWORK, "PostgresSecurityGroupId": "sg-1"},
        {"LookAheadSeconds": "60"},
        {"LookAheadSeconds": "120", "TickMinutes": "2"},
        {"Transport": "queue", "TickMinutes": "2"},
        MANAGED,
    ],
)
def test_what_works_is_not_refused(parameters: dict[str, str]) -> None:
    assert Deployment(**parameters).refused_by() == []


def allows(name: str, value: str) -> bool:
    """Return True if a parameter's pattern takes a value."""
    return bool(re.fullmatch(template()["Parameters"][name]["AllowedPattern"], value))


@pytest.mark.parametrize(
    ("address", "taken"),
    [
        ("", True),
        ("postgresql://duetick@db.example.com:5432/app?sslrootcert=system", True),
        ("postgresql://db.example.com,other.example.com/app", True),
        ("postgresql://duetick:a-password@db.example.com/app", False),
        ("postgres://duetick:@db.example.com/app", False),
        ("postgresql://duetick@db.example.com/app?password=a-password", False),
        ("postgresql://duetick@db.example.com/app?pool=2&password=a-password", False),
        ("mysql://duetick@db.example.com/app", False),
        ("YOURS", False),
    ],
)
def test_a_database_is_addressed_without_its_password(address: str, taken: bool) -> None:
    assert allows("PostgresAddress", address) == taken


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [
        ("SubnetIds", "subnet-1a,subnet-2b", True),
        ("SubnetIds", "subnet-1a, subnet-2b", False),
        ("RouteTableIds", "rtb-1a", True),
        ("RouteTableIds", "subnet-1a", False),
        ("UserPoolClientId", CLIENT, True),
        ("UserPoolClientId", f"{CLIENT},{CLIENT}", True),
        ("UserPoolClientId", f"{CLIENT}, {CLIENT}", False),
        ("AllowedOrigin", "https://app.example.com", True),
        ("AllowedOrigin", "http://localhost:3000", True),
        ("AllowedOrigin", "https://app.example.com/", False),
        ("AllowedOrigin", "https://App.example.com", False),
        ("AllowedOrigin", "*", False),
        ("AllowedOrigin", "https://app.example.com'", False),
        ("AlarmEmail", "oncall@example.com", True),
        ("AlarmEmail", "a@example.com,b@example.com", False),
        ("AlarmEmail", "oncall", False),
    ],
)
def test_lists_have_commas_between_and_an_origin_no_path(
    name: str, value: str, taken: bool
) -> None:
    assert allows(name, value) == taken


@pytest.mark.parametrize("edge", ["MinValue", "MaxValue"])
def test_the_functions_take_every_number_that_the_template_takes(edge: str) -> None:
    numbers = {
        name: str(one[edge]) for name, one in template()["Parameters"].items() if edge in one
    }
    told = Deployment(**numbers).environment("TickFunction")
    values = {
        name: numbers[value["Ref"]]
        for name, value in told.items()
        if isinstance(value, dict) and value.get("Ref") in numbers
    }
    quotas = ("SCHEDULES", "GAP_SECONDS", "RUNS", "WRITES", "JOBS")
    kept = ("RETENTION_DAYS", "RETENTION_DEAD_DAYS")
    wanted = {f"DUETICK_QUOTA_{name}" for name in quotas} | {f"DUETICK_{name}" for name in kept}
    wanted.add("DUETICK_FAN_OUT")
    assert values.keys() == wanted
    read = Settings.read({"DUETICK_STORE": "sqlite://", **values})
    assert read.fan_out == int(numbers["FanOut"])
    assert read.quota_schedules == int(numbers["SchedulesPerUser"])
    assert read.quota_gap_seconds == int(numbers["SmallestGapSeconds"])
    assert read.quota_runs == int(numbers["RunsPerMinute"])
    assert read.quota_writes == int(numbers["WritesPerMinute"])
    assert read.quota_jobs == int(numbers["JobsPerUser"])
    assert read.retention_days == int(numbers["RetentionDays"])
    assert read.retention_dead_days == int(numbers["RetentionDeadDays"])


def test_a_number_that_no_function_would_start_with_fails_its_deployment() -> None:
    """CloudFormation takes 1.5 for a number. Each change of a number lets `migrate` read it."""
    made = Deployment()
    read = json.dumps(made.environment("MigrateFunction"))
    numbers = {name for name, one in template()["Parameters"].items() if one["Type"] == "Number"}
    told = {one["Ref"] for one in made.resources["Schema"]["Properties"]["Numbers"]}
    assert told == {name for name in numbers if re.search(rf"\b{name}\b", read)} | {
        "RetentionByFlow"
    }


@pytest.mark.parametrize("function", FUNCTIONS)
def test_g04_each_function_reads_the_number_of_shards_that_the_stack_was_given(
    function: str,
) -> None:
    given = Deployment(Shards="16").environment(function)["DUETICK_STORE"]
    assert str(given["Fn::Sub"]).endswith("&shards=${Shards}")
    parameter = template()["Parameters"]["Shards"]
    assert (parameter["MinValue"], parameter["MaxValue"]) == (1, LARGEST_SHARDS)
    assert parameter["Default"] == 1


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_variable_is_one_that_the_settings_read(function: str) -> None:
    secret = {"DispatchSecretArn": KEPT_IN}
    owned = {"PostgresOwnerAddress": OWNER, "PostgresOwnerSecretArn": KEPT_IN}
    told = Deployment(**POSTGRES, **owned, **secret).environment(function)
    named = {name for name in told if name.startswith("DUETICK_")}
    assert named <= {f"DUETICK_{one.name.upper()}" for one in fields(Settings)}


@pytest.mark.parametrize("resource", ["Schema", "StaticSchedules"])
def test_i10_another_database_is_migrated_where_the_code_stays_what_it_is(resource: str) -> None:
    """CloudFormation asks a custom resource again only where its properties are others."""
    owned = {"PostgresOwnerAddress": OWNER, "PostgresOwnerSecretArn": KEPT_IN}
    aurora = {"Backend": "aurora", **NETWORK}
    every: list[dict[str, str]] = [{}, aurora, POSTGRES]
    asked = [str(Deployment(**one).resources[resource]["Properties"]) for one in every]
    assert len(set(asked)) == len(every)
    asked = [str(Deployment(**one).resources["Schema"]) for one in (POSTGRES, POSTGRES | owned)]
    assert len(set(asked)) == 2
    given = Deployment(**POSTGRES).resources[resource]["Properties"]
    assert given["Store"] == {"Ref": "PostgresAddress"}
    named = Deployment(Deployment="other").resources["StaticSchedules"]["Properties"]
    assert named["Deployment"] == {"Ref": "Deployment"}


def test_i10_another_password_is_tried_by_the_deployment_that_brings_it() -> None:
    owned = {"PostgresOwnerAddress": OWNER, "PostgresOwnerSecretArn": KEPT_IN}
    asked = Deployment(**POSTGRES, **owned).resources["Schema"]["Properties"]
    assert asked["Password"] == {"Ref": "PostgresSecretArn"}
    assert asked["OwnerPassword"] == {"Ref": "PostgresOwnerSecretArn"}


def test_m06_a_stack_is_told_by_its_name_whose_static_schedules_are_its_own() -> None:
    name = "DUETICK_DEPLOYMENT"
    assert Deployment().environment("MigrateFunction")[name] == {"Ref": "AWS::StackName"}
    other = Deployment(Deployment="other").environment("MigrateFunction")
    assert other[name] == {"Ref": "Deployment"}


@pytest.mark.parametrize("chosen", ["die", "pause"])
def test_t12_the_hourly_count_knows_what_becomes_of_schedules_whose_flow_is_gone(
    chosen: str,
) -> None:
    assert chosen in template()["Parameters"]["GoneFlows"]["AllowedValues"]
    name = "DUETICK_GONE_FLOWS"
    assert Deployment().environment("MigrateFunction")[name] == {"Ref": "GoneFlows"}
    assert Settings.read({"DUETICK_STORE": "sqlite://", name: chosen}).gone_flows == chosen


def test_nothing_else_may_become_of_them() -> None:
    assert template()["Parameters"]["GoneFlows"]["Default"] == "die"
    with pytest.raises(ConfigurationError, match="die or pause"):
        Settings.read({"DUETICK_STORE": "sqlite://", "DUETICK_GONE_FLOWS": "delete"})


def test_a02_the_hourly_work_knows_how_many_schedules_it_verifies() -> None:
    name = "DUETICK_VERIFIED_PER_HOUR"
    assert Deployment().environment("MigrateFunction")[name] == {"Ref": "VerifiedPerHour"}
    assert Settings.read({"DUETICK_STORE": "sqlite://", name: "7"}).verified_per_hour == 7


def test_every_parameter_is_described_and_stands_in_a_group() -> None:
    interface = template()["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in interface for name in group["Parameters"]]
    assert sorted(grouped) == sorted(template()["Parameters"])
    assert all(one.get("Description") for one in template()["Parameters"].values())
    assert all(one.get("Description") for one in template()["Outputs"].values())
