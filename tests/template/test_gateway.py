"""API Gateway: the calls that it lets in, their limits, and its own answers and logs."""

import json
import re
from fnmatch import fnmatchcase
from typing import Final

import pytest
from duetick.runtime import gateway

from tests.template.combinations import KEPT_IN, NETWORK, combinations, spoken
from tests.template.parsed import Deployment, Value, Values, template

every = pytest.mark.parametrize("parameters", combinations(), ids=spoken)

PAGE: Final = {"AllowedOrigin": "https://app.example.com"}
PRIVATE: Final = {**NETWORK, "PrivateApi": "true"}
SECRET: Final = {"DispatchSecretArn": KEPT_IN}
OUTSIDE_IDS: Final = "/api/schedules/by-external/"
ACCOUNT: Final = {"AWS": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}}


def definition(deployment: Deployment, api: str) -> Values:
    """Return an API's OpenAPI document."""
    body: Values = deployment.resources[api]["Properties"]["DefinitionBody"]
    return body


def stage(deployment: Deployment, api: str) -> Values:
    """Return the settings of an API's stage."""
    properties: Values = deployment.resources[api]["Properties"]
    return properties


@every
def test_users_routes_are_there_only_with_an_authorizer(parameters: dict[str, str]) -> None:
    deployment = Deployment(**parameters)
    assert ("UsersApi" in deployment.resources) == (parameters.get("Users") != "none")
    for name, api in deployment.of_type("AWS::Serverless::Api").items():
        for path, methods in api["Properties"]["DefinitionBody"]["paths"].items():
            for method, one in methods.items():
                dispatches = path.startswith("/api/flows/") or (
                    path.startswith(OUTSIDE_IDS) and method == "post"
                )
                secret = "DispatchSecretArn" in parameters and dispatches
                wanted: Value = (
                    [{"user": []}] if name == "UsersApi" else [] if secret else [{"iam": []}]
                )
                assert one["security"] == wanted


@pytest.mark.parametrize("name", ["Api", "UsersApi"])
def test_the_gateways_own_refusals_have_the_form_of_our_errors(name: str) -> None:
    body = definition(Deployment(Users="cognito"), name)
    refusals = body["x-amazon-apigateway-gateway-responses"]
    told = {
        kind: one["responseTemplates"]["application/json"].replace(
            "$context.error.messageString", '"Missing Authentication Token"'
        )
        for kind, one in refusals.items()
    }
    assert {kind: json.loads(text) for kind, text in told.items()} == {
        "DEFAULT_4XX": {"error": "refused", "message": "Missing Authentication Token"},
        "DEFAULT_5XX": {"error": "unavailable", "message": "Missing Authentication Token"},
    }


@every
def test_a_browser_may_ask_without_a_token_where_an_origin_is_allowed(
    parameters: dict[str, str],
) -> None:
    if parameters.get("Users") == "none":
        return
    for origin in ({}, PAGE):
        made = Deployment(**parameters, **origin)
        body = definition(made, "UsersApi")
        asked = [methods.get("options") for methods in body["paths"].values()]
        known = 8 + ("Agents" in parameters)
        assert [one and one["security"] for one in asked] == [[] if origin else None] * known
        refusals = body["x-amazon-apigateway-gateway-responses"].values()
        assert ["responseParameters" in one for one in refusals] == [bool(origin)] * 2
        assert "options" not in str(made.resources["Api"])


@pytest.mark.parametrize(
    "path",
    [
        "/api/actions",
        "/api/flows",
        "/api/forecast",
        "/api/jobs",
        "/api/jobs/{proxy+}",
        "/api/mcp",
        "/api/upcoming",
        "/api/schedules",
        "/api/schedules/{proxy+}",
    ],
)
def test_the_gateway_answers_a_browser_by_itself_as_the_local_stack_does(path: str) -> None:
    made = definition(Deployment(Users="cognito", Agents="true", **PAGE), "UsersApi")
    asked = made["paths"][path]["options"]
    integration = asked["x-amazon-apigateway-integration"]
    assert "uri" not in integration
    assert integration["type"] == "mock"
    (answer,) = integration["responses"].values()
    status = answer["statusCode"]
    assert json.loads(integration["requestTemplates"]["application/json"]) == {"statusCode": 204}
    assert status == "204"
    told = {
        name.removeprefix("method.response.header."): value
        for name, value in answer["responseParameters"].items()
    }
    assert told.keys() == asked["responses"][status]["headers"].keys()
    origin = told.pop("Access-Control-Allow-Origin")
    assert origin == {"Fn::Sub": "'${AllowedOrigin}'"}
    known = gateway.preflight_headers(PAGE["AllowedOrigin"])
    assert known.pop("Access-Control-Allow-Origin") == PAGE["AllowedOrigin"]
    assert told == {name: f"'{value}'" for name, value in known.items()}


METHODS = {"get", "put", "post", "patch", "delete"}


@pytest.mark.parametrize("users", ["cognito", "lambda"])
def test_an_agent_gets_in_only_where_the_deployment_says_so_and_with_a_users_token(
    users: str,
) -> None:
    closed = Deployment(Users=users)
    assert "/api/mcp" not in definition(closed, "UsersApi")["paths"]
    assert "AgentsCalledByUsersApi" not in closed.resources
    opened = Deployment(Users=users, Agents="true")
    methods = definition(opened, "UsersApi")["paths"]["/api/mcp"]
    assert methods.keys() == {"post", "get", "delete"}
    for method in methods.values():
        assert method["security"] == [{"user": []}]
        assert "SchedulesFunction" in str(method["x-amazon-apigateway-integration"]["uri"])
    called = opened.resources["AgentsCalledByUsersApi"]["Properties"]
    assert str(called["SourceArn"]["Fn::Sub"]).endswith("${UsersApi}/*/*/api/mcp")
    for made in (closed, opened):
        variables = made.resources["SchedulesFunction"]["Properties"]["Environment"]["Variables"]
        assert variables.get("DUETICK_AGENTS") == ("true" if made is opened else None)
        assert "DUETICK_AGENTS" not in str(made.resources["DispatchFunction"])


def test_each_path_of_operators_leads_to_the_schedules_function_but_those_of_flows() -> None:
    """A route that is new needs no change of the gateway."""
    made = Deployment(Users="cognito")
    paths = definition(made, "Api")["paths"]
    assert paths.keys() == {"/api/flows/{proxy+}", f"{OUTSIDE_IDS}{{proxy+}}", "/api/{proxy+}"}
    assert paths["/api/{proxy+}"].keys() == METHODS
    for method in paths["/api/{proxy+}"].values():
        assert method["security"] == [{"iam": []}]
        assert "SchedulesFunction" in str(method["x-amazon-apigateway-integration"]["uri"])
    called = made.resources["SchedulesCalledByApi"]["Properties"]["SourceArn"]
    assert str(called["Fn::Sub"]).endswith("${Api}/*/*/api/*")


def test_g08_an_outside_id_is_looked_up_by_one_function_and_dispatched_by_another() -> None:
    made = Deployment(Users="cognito")
    methods = definition(made, "Api")["paths"][f"{OUTSIDE_IDS}{{proxy+}}"]
    leads = {
        name: str(one["x-amazon-apigateway-integration"]["uri"]) for name, one in methods.items()
    }
    assert leads.keys() == {"get", "post"}
    assert "SchedulesFunction" in leads["get"]
    assert "DispatchFunction" in leads["post"]
    called = made.resources["OutsideIdsCalledByApi"]["Properties"]
    assert called["FunctionName"] == {"Ref": "DispatchFunction"}
    assert str(called["SourceArn"]["Fn::Sub"]).endswith("${Api}/*/POST/api/schedules/by-external/*")


def allowed(policy: Values, principal: Value, method: str, path: str) -> bool:
    """Return True if a resource policy lets a caller in who comes from the VPC."""
    wanted = f"execute-api:/v1/{method}{path}"
    for statement in policy["Statement"]:
        named = statement["Resource"]
        about = any(
            fnmatchcase(wanted, one) for one in (named if isinstance(named, list) else [named])
        )
        if about and statement["Effect"] == "Allow" and statement["Principal"] in ("*", principal):
            return True
    return False


@pytest.mark.parametrize("mode", [{}, SECRET], ids=["iam", "secret"])
def test_a_private_api_lets_strangers_dispatch_in_secret_mode_and_nothing_else(
    mode: dict[str, str],
) -> None:
    made = definition(Deployment(**PRIVATE, **mode), "Api")
    policy = made["x-amazon-apigateway-policy"]
    dispatch = ("POST", "/api/flows/reminders/schedules/ann~2Fhello/dispatch")
    listing = ("GET", "/api/flows/reminders/schedules")
    outside = ("POST", f"{OUTSIDE_IDS}crm-7/dispatch")
    for method, path in (dispatch, listing, outside):
        assert allowed(policy, "anybody", method, path) == bool(mode)
        assert allowed(policy, ACCOUNT, method, path)
    for method in ("GET", "PUT", "POST", "PATCH", "DELETE"):
        for path in ("/api/users/ann/schedules/k", "/api/users/ann", "/api/users/a/api/flows/x"):
            assert not allowed(policy, "anybody", method, path)
            assert allowed(policy, ACCOUNT, method, path)
    assert not allowed(policy, "anybody", "DELETE", listing[1])
    assert not allowed(policy, "anybody", "GET", f"{OUTSIDE_IDS}crm-7")
    assert [one["Effect"] for one in policy["Statement"]].count("Deny") == 1
    (strangers,) = (one for one in policy["Statement"] if one["Effect"] == "Deny")
    assert strangers["Principal"] == "*"
    assert strangers["Resource"] == "execute-api:/*"
    assert strangers["Condition"] == {"StringNotEquals": {"aws:SourceVpce": {"Ref": "ApiEndpoint"}}}


def limits(deployment: Deployment, api: str) -> dict[str, str]:
    """Return the parameter that limits each route, as `method path`."""
    found = {}
    for one in stage(deployment, api)["MethodSettings"]:
        assert one["ThrottlingRateLimit"] == one["ThrottlingBurstLimit"]
        path = one["ResourcePath"].removeprefix("/").replace("~1", "/")
        found[f"{one['HttpMethod']} {path}"] = one["ThrottlingRateLimit"]["Ref"]
    return found


def test_each_api_has_a_limit_and_dispatch_one_of_its_own() -> None:
    deployment = Deployment(Users="cognito")
    assert limits(deployment, "UsersApi") == {"* *": "UsersPerSecond"}
    known = limits(deployment, "Api")
    assert known == {
        "* *": "OperatorsPerSecond",
        "POST /api/flows/{proxy+}": "DispatchesPerSecond",
        f"POST {OUTSIDE_IDS}{{proxy+}}": "DispatchesPerSecond",
    }
    paths = definition(deployment, "Api")["paths"]
    assert "post" in paths["/api/flows/{proxy+}"]
    for name in {*known.values(), "UsersPerSecond"}:
        parameter = template()["Parameters"][name]
        assert parameter["MinValue"] == 1, "0 would refuse every call"


@pytest.mark.parametrize("number", ["0", "4"])
def test_ticks_are_reserved_their_share_where_it_is_asked_for(number: str) -> None:
    made = Deployment(TickConcurrency=number).resources["TickFunction"]["Properties"]
    wanted = {"Ref": "TickConcurrency"} if number != "0" else None
    assert made.get("ReservedConcurrentExecutions") == wanted


@pytest.mark.parametrize("users", [{"Users": "none"}, {}], ids=["none", "cognito"])
@pytest.mark.parametrize("logs", ["true", "false"])
def test_each_call_is_a_line_of_a_log_that_ends_where_it_is_asked_for(
    users: dict[str, str], logs: str
) -> None:
    deployment = Deployment(**users, AccessLogs=logs)
    apis = deployment.of_type("AWS::Serverless::Api")
    assert len(apis) == (1 if users else 2)
    for api in apis:
        setting = stage(deployment, api).get("AccessLogSetting")
        assert bool(setting) == (logs == "true")
        if setting:
            log = deployment.resources[setting["DestinationArn"]["Fn::GetAtt"][0]]
            assert log["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    made = deployment.of_type("AWS::Logs::LogGroup").keys() & {"ApiLog", "UsersApiLog"}
    assert len(made) == (len(apis) if logs == "true" else 0)


@pytest.mark.parametrize("api", ["Api", "UsersApi"])
def test_a_line_of_it_is_json_that_says_who_and_holds_no_secret(api: str) -> None:
    made = stage(Deployment(Users="cognito", AccessLogs="true"), api)
    line = json.loads(re.sub(r"\$context[\w.]+", "x", made["AccessLogSetting"]["Format"]))
    assert {"requestId", "who", "method", "path", "status"} <= line.keys()
    used = re.findall(r"\$context\.[\w.]+", made["AccessLogSetting"]["Format"])
    assert not [one for one in used if "header" in one.lower() or "query" in one.lower()]


def test_the_users_of_a_pool_come_by_the_clients_that_are_named() -> None:
    named = "DUETICK_USER_CLIENTS"
    ours = Deployment(Users="cognito").environment("SchedulesFunction")
    assert ours[named] == {"Ref": "UserPoolClient"}
    given = Deployment(Users="cognito", UserPoolArn="x", UserPoolClientId="y")
    assert given.environment("SchedulesFunction")[named] == {"Ref": "UserPoolClientId"}
