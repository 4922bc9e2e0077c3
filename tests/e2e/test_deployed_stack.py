"""The stack on each backend: who comes in, updates, a rollback."""

import shutil

import pytest

from tests.cloud import check
from tests.e2e.conftest import TEMPLATE, Deployed, configure
from tests.e2e.users import YEARLY, user
from tests.lab.process import LabError

pytestmark = pytest.mark.slow


def test_nobody_comes_in_without_a_token_or_a_signature(stack: Deployed) -> None:
    dispatch = "/api/flows/reminders/schedules/ann~2Fhello/dispatch"
    assert stack.call("POST", dispatch, {}, signed=False)[0] == 403
    assert stack.call("GET", "/api/users/ann/schedules", signed=False)[0] == 403
    for token in (None, "no.such.token"):
        assert stack.as_user(token, "GET", "/api/schedules").status in (401, 403)


def test_one_users_token_sees_nothing_of_anothers(stack: Deployed) -> None:
    bea, cem = user(stack, "bea"), user(stack, "cem")
    assert bea.put(YEARLY)[0] == 201
    assert stack.as_user(cem.token, "GET", bea.path).status == 404


def test_an_update_of_the_stack_keeps_everything(stack: Deployed) -> None:
    dan = user(stack, "dan")
    dan.put(YEARLY)
    before = dan.get()
    stack.deploy(parameters={"LogRetentionDays": "7", "MemorySize": "640"})
    assert stack.status() == "UPDATE_COMPLETE"
    assert dan.get() == before


def test_a_deployment_that_fails_is_rolled_back_and_says_why(
    stack: Deployed,
) -> None:
    eve = user(stack, "eve")
    eve.put(YEARLY)
    before = eve.get()
    broken = stack.built.with_name("broken.json")
    steps = '"Step": "schedules"', '"Step": "nonsense"'
    broken.write_text(stack.built.read_text().replace(*steps))
    with pytest.raises(LabError, match="nonsense"):
        stack.deploy(template=broken, parameters={"MemorySize": "768"})
    assert stack.status() == "UPDATE_ROLLBACK_COMPLETE"
    assert eve.get() == before
    assert stack.invoke("TickFunction", {})["failed"] == 0


def test_the_environment_dev_is_deployed_with_nothing_else(deployed: Deployed) -> None:
    shutil.copy(TEMPLATE.with_name("samconfig.toml"), deployed.built.parent)
    deployed.sam.deploy_environment(deployed.aws, deployed.built, "dev")
    outputs = deployed.aws.outputs("duetick-dev")
    assert {"DashboardUrl", "AlarmTopic", "SignIn", "UsersApiUrl", "Operate"} <= outputs.keys()
    assert "--stack duetick-dev " in outputs["Operate"]


def test_the_audit_counts_what_is_active(stack: Deployed) -> None:
    user(stack, "fay").put(YEARLY)
    counted = stack.invoke("MigrateFunction", {"Step": "audit"})
    assert counted["active"] >= 1
    assert counted["unindexed"] == 0


def test_a_database_that_is_older_than_its_witness_is_recovered_first(stack: Deployed) -> None:
    """As after a restore from a backup: the parameter outside it is an hour ahead."""
    stack.invoke("MigrateFunction", {"Step": "audit"})
    client = stack.aws.client("ssm")
    resource = stack.aws.client("cloudformation").describe_stack_resource(
        StackName=stack.name, LogicalResourceId="Witness"
    )
    name = resource["StackResourceDetail"]["PhysicalResourceId"]
    kept = int(client.get_parameter(Name=name)["Parameter"]["Value"])
    client.put_parameter(Name=name, Value=str(kept + 1), Overwrite=True)
    foreseen = stack.invoke("MigrateFunction", {"Step": "recover"})
    assert (foreseen["restored"], foreseen["dry_run"]) == (True, True)
    done = stack.invoke("MigrateFunction", {"Step": "recover", "How": "skip", "DryRun": False})
    assert (done["restored"], done["complete"]) == (True, True)
    assert stack.invoke("MigrateFunction", {"Step": "recover"})["restored"] is False


def test_schedules_of_a_flow_that_is_gone_are_counted_and_named(stack: Deployed) -> None:
    user(stack, "gus").put(YEARLY)
    there = stack.invoke("MigrateFunction", {"Step": "schedules"})["gone"]
    assert not there["unfinished"]
    lambdas = stack.aws.client("lambda")
    name = stack.outputs["MigrateFunction"]
    before = lambdas.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    configure(stack.aws, name, {**before, "DUETICK_FLOWS": "duetick.domain"})
    try:
        stack.invoke("MigrateFunction", {"Step": "audit"})
        gone = stack.invoke("MigrateFunction", {"Step": "schedules"})["gone"]
    finally:
        configure(stack.aws, name, before)
        stack.invoke("MigrateFunction", {"Step": "schedules"})
    assert gone["schedules"] > there["schedules"]
    assert "reminders" in dict(gone["first"])


def test_what_is_checked_on_a_real_account_passes_where_it_can_be_tried(stack: Deployed) -> None:
    made = check.Stack(stack.name, stack.aws.session(), stack.aws.endpoint)
    can = (
        check.migrate_reaches_the_database,
        check.a_tick_claims_and_delivers,
        check.no_tick_was_given_up,
        check.the_endpoints_are_there,
    )
    assert all(one(made) for one in can)
