"""A deleted stack leaves its users' data, and nothing that runs."""

from pathlib import Path

import pytest
from duetick.stores import open_store

from tests.e2e.conftest import deploy
from tests.e2e.users import YEARLY, user
from tests.lab.emulated_aws import REGION, EmulatedAws
from tests.lab.sam import Sam

NAME = "duetick-deleted"

pytestmark = pytest.mark.slow


def test_a_stack_that_is_deleted_leaves_its_table_and_its_users(
    sam: Sam, emulated_aws: EmulatedAws, quiet: Path, parameters: dict[str, str]
) -> None:
    stack = deploy(sam, emulated_aws, quiet, NAME, parameters)
    ann = user(stack, "ann")
    assert ann.put(YEARLY)[0] == 201
    cloudformation = emulated_aws.client("cloudformation")
    cloudformation.delete_stack(StackName=NAME)
    cloudformation.get_waiter("stack_delete_complete").wait(
        StackName=NAME, WaiterConfig={"Delay": 1, "MaxAttempts": 120}
    )
    functions = emulated_aws.client("lambda").list_functions()["Functions"]
    assert not [one for one in functions if one["FunctionName"].startswith(NAME)]
    schedules = emulated_aws.client("scheduler").list_schedules()["Schedules"]
    assert NAME not in str(schedules)
    pool = stack.outputs["UserPoolId"]
    (kept,) = emulated_aws.client("cognito-idp").list_users(UserPoolId=pool)["Users"]
    subject = {one["Name"]: one["Value"] for one in kept["Attributes"]}["sub"]
    table, endpoint = stack.outputs["TableName"], emulated_aws.endpoint
    store = open_store(f"dynamodb://{table}?region={REGION}&endpoint={endpoint}")
    assert [one.key for one in store.schedules.list(subject).schedules] == ["hello"]
    store.close()
