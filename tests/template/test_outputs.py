"""The outputs of a deployment: the places to look, the ways to sign in and to operate."""

import re
from importlib.resources import files

import pytest
from duetick.cli.main import main
from duetick.cli.template import read_template

from tests.template.parsed import Deployment, Values, template

POOL = {"UserPoolArn": "arn:aws:cognito-idp:x:1:userpool/x_y", "UserPoolClientId": "z"}
"""A pool of users that a team has already."""


def shown(**parameters: str) -> Values:
    """Return the outputs that a deployment has."""
    made = Deployment(**parameters)
    every = template()["Outputs"]
    return {
        name: made.decided(one["Value"])
        for name, one in every.items()
        if "Condition" not in one or made.holds(one["Condition"])
    }


def test_the_default_deployment_has_users_of_its_own_whom_its_owner_creates() -> None:
    made = Deployment()
    pool = made.resources["UserPool"]["Properties"]
    assert pool["AdminCreateUserConfig"] == {"AllowAdminCreateUserOnly": True}
    assert "ALLOW_USER_PASSWORD_AUTH" not in str(made.resources["UserPoolClient"])
    assert {"UsersApiUrl", "UserPoolId", "UserPoolClientId", "SignIn"} <= shown().keys()


def test_a_pool_of_yours_has_a_sign_in_of_its_own() -> None:
    assert "UsersApiUrl" in shown(**POOL)
    assert not {"UserPoolId", "SignIn"} & shown(**POOL).keys()
    assert "UsersApiUrl" not in shown(Users="none")


@pytest.mark.parametrize("given", [{}, POOL])
def test_a_new_project_shows_what_the_stack_that_it_nests_has(given: dict[str, str]) -> None:
    skeleton = files("duetick.cli").joinpath("skeleton/template.yaml")
    project = read_template(skeleton.read_text())
    passed = project["Resources"]["Duetick"]["Properties"]["Parameters"]
    assert all(passed[name] == {"Ref": name} for name in POOL)
    assert project["Conditions"] == {"MakesUserPool": {"Fn::Equals": [{"Ref": "UserPoolArn"}, ""]}}
    nested = {
        one["Value"]["Fn::GetAtt"][1].removeprefix("Outputs.")
        for one in project["Outputs"].values()
        if "Condition" not in one or not given
    }
    assert nested <= shown(**given).keys()
    assert ("SignIn" in nested) is not bool(given)


def test_the_link_leads_to_the_dashboard_of_this_region() -> None:
    link = shown()["DashboardUrl"]["Fn::Sub"]
    assert link.startswith("https://${AWS::Region}.console.aws.amazon.com/cloudwatch/")
    assert link.endswith("region=${AWS::Region}#dashboards/dashboard/${Dashboard}")


def test_the_command_of_an_operator_is_one_that_is_understood() -> None:
    command = shown()["Operate"]["Fn::Sub"]
    region, *words = re.sub(r"\$\{AWS::(\w+)\}", r"\1", command).split()
    assert (region, words[:2]) == ("AWS_DEFAULT_REGION=Region", ["duetick", "schedules"])
    assert words[2:4] == ["--stack", "StackName"]
    with pytest.raises(SystemExit) as stopped:
        main([*words[1:], "--help"])
    assert stopped.value.code == 0


def test_every_output_is_plain_text_as_cloudformation_keeps_no_other() -> None:
    assert all(str(one["Value"]).isascii() for one in template()["Outputs"].values())
