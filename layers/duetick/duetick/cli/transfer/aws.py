"""The schedules and scheduled rules of an account, as its own API lists them."""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from duetick.aws import AwsClient, client_of
from duetick.cli.problem import CliProblem

RIGHTS: Final = (
    "That needs the rights scheduler:ListSchedules, scheduler:GetSchedule, events:ListRules and "
    "events:ListTargetsByRule."
)


def documents(group: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each schedule, then each rule that has times, with its targets; with where it is."""
    try:
        from duetick.cli.aws_problems import AWS_PROBLEMS, what_helps
    except ImportError as missing:
        raise CliProblem("--from aws needs boto3: pip install boto3.") from missing
    region = os.environ.get("AWS_REGION")  # the aws command reads it, and botocore not
    try:
        yield from _schedules(client_of("scheduler", region), group)
        if group is None:
            yield from _rules(client_of("events", region))
    except AWS_PROBLEMS as problem:
        raise CliProblem(
            f"AWS does not list the schedules {what_helps(problem, RIGHTS)}"
        ) from problem


def _schedules(client: AwsClient, group: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    asked = {"GroupName": group} if group else {}
    for page in client.get_paginator("list_schedules").paginate(**asked):
        for one in page["Schedules"]:
            found = client.get_schedule(GroupName=one["GroupName"], Name=one["Name"])
            yield "scheduler", found


def _rules(client: AwsClient) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for page in client.get_paginator("list_rules").paginate():
        for rule in page["Rules"]:
            if not rule.get("ScheduleExpression"):
                continue
            pages = client.get_paginator("list_targets_by_rule").paginate(Rule=rule["Name"])
            targets = [target for part in pages for target in part["Targets"]]
            yield "events", {**rule, "Targets": targets}
