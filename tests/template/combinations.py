"""The parameters that change a deployment, in every combination that is allowed."""

from itertools import product

KEPT_IN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:duetick-AbCdEf"
AUTHORIZER = "arn:aws:lambda:eu-central-1:123456789012:function:authorizer"
CLIENT = "4tf7example0client8id"
POOL = "arn:aws:cognito-idp:eu-central-1:123456789012:userpool/eu-central-1_Example"

NETWORK = {
    "VpcId": "vpc-0123456789abcdef0",
    "SubnetIds": "subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    "RouteTableIds": "rtb-0123456789abcdef0",
}
BACKENDS = [
    {"Backend": "dynamodb"},
    {"Backend": "aurora"},
    {
        "Backend": "postgres",
        "PostgresAddress": "postgresql://duetick@db.example.com/app?sslrootcert=system",
        "PostgresSecretArn": KEPT_IN,
    },
]
NETWORKS: list[dict[str, str]] = [
    {},
    NETWORK,
    {**NETWORK, "PrivateApi": "true"},
    {**NETWORK, "PrivateApi": "true", "Egress": "endpoints"},
]
FLOWS: dict[str, str] = {
    "FlowsLayerArn": "arn:aws:lambda:eu-central-1:123456789012:layer:flows:7",
    "ActionPolicyArns": "arn:aws:iam::123456789012:policy/mail",
    "Settings": '{"sender": "me@example.com"}',
    "SettingsSecretArn": KEPT_IN,
}
"""What a team gives of its own."""

USERS: list[dict[str, str]] = [
    {},
    {"Users": "none"},
    {"UserPoolArn": POOL, "UserPoolClientId": CLIENT},
    {"Users": "lambda", "AuthorizerArn": AUTHORIZER, "Agents": "true"},
]
MANAGED = {"Trigger": "managed", "TickMinutes": "60"}
SECRETS: list[dict[str, str]] = [{}, {"DispatchSecretArn": KEPT_IN}]
TRANSPORTS: list[dict[str, str]] = [{}, {"Transport": "queue"}]
BUS = "arn:aws:events:eu-central-1:123456789012:event-bus/operations"
GIVEN: dict[str, str] = {
    **FLOWS,
    "EventBus": BUS,
    "LogSuccesses": "10",
    "RowFlow": "reminders/remind",
    "RetentionByFlow": "reminders=365 noise=7/14",
    **BACKENDS[2],
    **NETWORKS[3],
    **USERS[3],
    **SECRETS[1],
    "UserPoolArn": POOL,
    "UserPoolClientId": CLIENT,
    "PostgresOwnerAddress": "postgresql://owner@db.example.com/app?sslrootcert=system",
    "PostgresOwnerSecretArn": KEPT_IN,
    "PostgresSecurityGroupId": "sg-0123456789abcdef0",
    "Deployment": "other",
    "AllowedOrigin": "https://app.example.com",
    "SecretKeyArn": "arn:aws:kms:eu-central-1:123456789012:key/0f0e4d5c",
    "AlarmEmail": "oncall@example.com",
    "AlarmTopicArn": "arn:aws:sns:eu-central-1:123456789012:alarms",
    "ApiDomain": "execute-api.example.com",
    "ApiAddress": "https://vpce-0123456789abcdef0.example.com",
}
"""Something for every parameter that may be empty."""


def combinations() -> list[dict[str, str]]:
    """Return each backend in each network, with each kind of users, with and without secret mode
    and the queue; and each backend in each network with the other trigger.
    """
    every = product(BACKENDS, NETWORKS, USERS, SECRETS, TRANSPORTS)
    merged = [{**a, **b, **c, **d, **e} for a, b, c, d, e in every]
    merged += [{**a, **b, **MANAGED} for a, b in product(BACKENDS, NETWORKS)]
    return [one for one in merged if one["Backend"] != "aurora" or "VpcId" in one]


def covering() -> list[dict[str, str]]:
    """Return some combinations: each choice of each kind stands in one, beside other choices."""
    every = combinations()
    return [*every[:1], *every[7::23], {**every[-1], **FLOWS}]


def spoken(parameters: dict[str, str]) -> str:
    """Return the name of a combination for a test's name."""
    network = parameters.get("Egress") or ("private" if "PrivateApi" in parameters else "nat")
    parts = [
        parameters["Backend"],
        network if "VpcId" in parameters else "",
        parameters.get("Users", ""),
        "given" if "UserPoolArn" in parameters else "",
        "agents" if "Agents" in parameters else "",
        "secret" if "DispatchSecretArn" in parameters else "",
        parameters.get("Transport", ""),
        parameters.get("Trigger", ""),
    ]
    return "-".join(filter(None, parts))
