"""Check on a real account what no emulator has: the proxy, its tokens, routes and endpoints.

    python -m tests.cloud.check duetick

Asks with the credentials and the region of the environment. It changes nothing but what a tick and
a migration change, and both are safe at any time. Its dispatch is for a schedule that does not
exist.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

Client: TypeAlias = Any


class Session(Protocol):
    """As much of boto3's as is used."""

    @property
    def client(self) -> Callable[..., Client]:
        """Makes a client of a service."""


REFUSED: Final = 403
NOBODYS: Final = "/api/flows/nobodys/schedules/nobody~2Fnothing/dispatch"
PATIENCE: Final = Config(read_timeout=310, retries={"total_max_attempts": 1})
"""A migration may take five minutes; asked again meanwhile, there would be two."""


class Failed(Exception):
    """A check's findings."""


def expect(is_so: object, otherwise: str) -> None:
    """Fail the check with the fault, unless all is well."""
    if not is_so:
        raise Failed(otherwise)


@dataclass(frozen=True, slots=True)
class Stack:
    """A deployed stack, and clients."""

    name: str
    session: Session
    endpoint: str | None = None

    def client(self, service: str) -> Client:
        """Return a client of a service."""
        return self.session.client(service, endpoint_url=self.endpoint, config=PATIENCE)

    def outputs(self) -> dict[str, str]:
        """The outputs of the stack."""
        (found,) = self.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return {one["OutputKey"]: one["OutputValue"] for one in found["Outputs"]}

    def made(self, kind: str) -> list[str]:
        """Return the physical names of the stack's resources of a type."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources")
        return [
            one["PhysicalResourceId"]
            for page in pages.paginate(StackName=self.name)
            for one in page["StackResourceSummaries"]
            if one["ResourceType"] == kind
        ]

    def total(self, metric: str) -> float:
        """Return the sum of a metric of Duetick's over the last day."""
        found = self.client("cloudwatch").get_metric_statistics(
            Namespace="Duetick",
            MetricName=metric,
            Dimensions=[{"Name": "service", "Value": self.name}],
            StartTime=datetime.now(UTC) - timedelta(days=1),
            EndTime=datetime.now(UTC),
            Period=86_400,
            Statistics=["Sum"],
        )
        return sum((float(one["Sum"]) for one in found["Datapoints"]), 0.0)

    def invoke(self, output: str, event: Mapping[str, object]) -> dict[str, Any]:
        """Invoke a function; its answer."""
        answer = self.client("lambda").invoke(
            FunctionName=self.outputs()[output], Payload=json.dumps(event)
        )
        text = answer["Payload"].read().decode()
        expect(not answer.get("FunctionError"), f"{output} failed: {text[:500]}")
        read: dict[str, Any] = json.loads(text)
        return read


def migrate_reaches_the_database(stack: Stack) -> str:
    """Through the VPC, TLS, the proxy and its token, where there are any."""
    return str(stack.invoke("MigrateFunction", {"Step": "schema"})["schema"])


def a_tick_claims_and_delivers(stack: Stack) -> str:
    """Check the tick's route to the database, and to the API if something is due just now."""
    report = stack.invoke("TickFunction", {})
    expect(report["failed"] == 0, f"deliveries failed: {report}")
    return f"claimed {report['claimed']}, delivered {report['delivered']}"


def deliveries_arrive(stack: Stack) -> str:
    """Check the ticks' route to the API, if anything was due in the last day."""
    delivered, failed = stack.total("Delivered"), stack.total("Failed")
    expect(delivered or not failed, f"none of {failed:.0f} deliveries of the last day arrived")
    return f"{delivered:.0f} of the last day did, {failed:.0f} failed"


def no_tick_was_given_up(stack: Stack) -> str:
    """Check that there are no dead letters."""
    queue = stack.outputs()["TickDeadLetters"]
    name = "ApproximateNumberOfMessages"
    answer = stack.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=[name])
    expect(answer["Attributes"][name] == "0", f"{answer['Attributes'][name]} ticks failed")
    return "none"


def the_proxy_takes_tokens_over_tls_alone(stack: Stack) -> str:
    """Check the proxy's settings, and that its target is healthy."""
    proxies = stack.made("AWS::RDS::DBProxy")
    for name in proxies:
        (proxy,) = stack.client("rds").describe_db_proxies(DBProxyName=name)["DBProxies"]
        expect(proxy["RequireTLS"], f"{name} takes connections without TLS")
        modes = {one["IAMAuth"] for one in proxy["Auth"]}
        expect(modes == {"REQUIRED"}, f"{name} takes passwords: {modes}")
        targets = stack.client("rds").describe_db_proxy_targets(DBProxyName=name)["Targets"]
        states = {one["TargetHealth"]["State"] for one in targets}
        expect(states == {"AVAILABLE"}, f"{name} has targets that are {states}")
    return f"{len(proxies)} proxies"


def the_proxy_pins_few_sessions(stack: Stack) -> str:
    """A pinned session is a connection of its own: many of them defeat the proxy."""
    worst = 0.0
    for name in stack.made("AWS::RDS::DBProxy"):
        found = stack.client("cloudwatch").get_metric_statistics(
            Namespace="AWS/RDS",
            MetricName="DatabaseConnectionsCurrentlySessionPinned",
            Dimensions=[{"Name": "ProxyName", "Value": name}],
            StartTime=datetime.now(UTC) - timedelta(hours=1),
            EndTime=datetime.now(UTC),
            Period=60,
            Statistics=["Maximum"],
        )
        worst = max([worst, *(one["Maximum"] for one in found["Datapoints"])])
    expect(worst <= 1, f"{worst:.0f} sessions were pinned at once in the last hour")
    return f"at most {worst:.0f} at once"


def the_endpoints_are_there(stack: Stack) -> str:
    """Check that each endpoint is available."""
    names = stack.made("AWS::EC2::VPCEndpoint")
    if names:
        found = stack.client("ec2").describe_vpc_endpoints(VpcEndpointIds=names)["VpcEndpoints"]
        waiting = [one["ServiceName"] for one in found if one["State"] != "available"]
        expect(not waiting, f"not available: {waiting}")
    return f"{len(names)} endpoints"


def a_stranger_is_refused(stack: Stack) -> str:
    """Send an unsigned dispatch: it is refused, or, if the API is private, not even reached."""
    url = urlsplit(stack.outputs()["ApiUrl"])
    connection = HTTPSConnection(url.netloc, timeout=10)
    try:
        connection.request("POST", f"{url.path}{NOBODYS}", "{}")
        status = connection.getresponse().status
    except OSError as unreachable:
        return f"not reached from here ({unreachable})"
    finally:
        connection.close()
    expect(status in (401, REFUSED), f"answered with {status}")
    return f"refused with {status}"


CHECKS: Final = (
    migrate_reaches_the_database,
    a_tick_claims_and_delivers,
    deliveries_arrive,
    no_tick_was_given_up,
    the_proxy_takes_tokens_over_tls_alone,
    the_proxy_pins_few_sessions,
    the_endpoints_are_there,
    a_stranger_is_refused,
)


def run(stack: Stack) -> Iterator[tuple[str, bool, str]]:
    """Yield the name of each check, whether it passed, and its finding."""
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            yield name, True, check(stack)
        except (Failed, BotoCoreError, ClientError) as wrong:
            yield name, False, str(wrong)


def main() -> int:
    """Print the findings. Return 1 if something is wrong."""
    if len(sys.argv) != 2:
        sys.stderr.write("Name the stack: python -m tests.cloud.check duetick\n")
        return 2
    found = list(run(Stack(sys.argv[1], boto3.Session())))
    for name, passed, text in found:
        sys.stdout.write(f"{'ok  ' if passed else 'FAIL'} {name}: {text}\n")
    return int(not all(passed for _, passed, _ in found))


if __name__ == "__main__":
    sys.exit(main())
