"""T-12: what alarms and the dashboard name is emitted, and what is emitted is looked at."""

import json
import re

import pytest
from duetick.cli.costs import Usage
from duetick.core.audit import Audit
from duetick.core.tally import TickReport
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.runtime import telemetry

from tests.template.parsed import Deployment, Values, template

STACK = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
UUID = "0f0e4d5c-0000-0000-0000-000000000000"
"""The last part of a stack's id."""


def emitted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of all that the code emits, told by the code itself."""
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED", raising=False)
    dead = Occurrence("ann", "k", "* * * * *", None, 0, state=State.DEAD, reason=Reason.LOST)
    capsys.readouterr()
    telemetry.metrics.clear_metrics()
    telemetry.record_tick(TickReport())
    telemetry.record_settled(dead)
    telemetry.record_answer(500)
    telemetry.record_audit(Audit(0, 0))
    lines = capsys.readouterr().out.splitlines()
    described = [json.loads(line)["_aws"] for line in lines if '"_aws"' in line]
    return {
        metric["Name"] for one in described for metric in one["CloudWatchMetrics"][0]["Metrics"]
    }


def watched() -> Values:
    """Our metrics that alarms name, each with its alarm."""
    alarms = Deployment(LeastActive="1").of_type("AWS::CloudWatch::Alarm")
    found = [one["Properties"] for one in alarms.values()]
    return {one["MetricName"]: one for one in found if one["Namespace"] == "Duetick"}


def shown() -> set[str]:
    """Our metrics that the dashboard shows."""
    body = template()["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    return {
        metric[1]
        for widget in json.loads(body)["widgets"]
        for metric in widget["properties"].get("metrics", [])
    }


def test_t12_every_metric_that_is_named_is_emitted_and_every_one_emitted_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = emitted(capsys, monkeypatch)
    assert watched().keys() <= known
    assert shown() == known


def test_t12_what_must_wake_somebody_has_an_alarm() -> None:
    assert {"Active", "Unindexed", "Claimed", "Lateness", "Dead", "Lost", "Poisoned"} <= (
        watched().keys()
    )


def test_t12_three_minutes_without_a_tick_are_an_alarm_even_without_data() -> None:
    alarm = watched()["Claimed"]
    assert (alarm["Statistic"], alarm["EvaluationPeriods"]) == ("SampleCount", 3)
    assert alarm["TreatMissingData"] == "breaching"
    assert template()["Mappings"]["Ticks"]["1"]["Seconds"] == 60


def test_t12_every_alarm_is_told_to_the_topic_and_says_what_to_do() -> None:
    for alarm in Deployment(LeastActive="1").of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["Properties"]["AlarmDescription"]
        assert "AlarmActions" not in alarm["Properties"]
    topic = "arn:aws:sns:eu-central-1:123456789012:alarms"
    for alarm in Deployment(AlarmTopicArn=topic).of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["Properties"]["AlarmActions"] == [{"Ref": "AlarmTopicArn"}]


def test_the_metrics_of_two_stacks_are_apart() -> None:
    service = [{"Name": "service", "Value": {"Ref": "AWS::StackName"}}]
    assert all(alarm["Dimensions"] == service for alarm in watched().values())
    assert Deployment().environment("TickFunction")["POWERTOOLS_SERVICE_NAME"] == {
        "Ref": "AWS::StackName"
    }


def test_the_dashboards_of_two_stacks_are_apart_even_in_two_regions() -> None:
    name = Deployment().resources["Dashboard"]["Properties"]["DashboardName"]["Fn::Sub"]
    assert {"${AWS::StackName}", "${AWS::Region}"} <= set(re.findall(r"\$\{[^}]+\}", name))


def test_a_count_that_fails_is_an_alarm_too() -> None:
    alarm = Deployment().resources["AuditFailedAlarm"]["Properties"]
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": "MigrateFunction"}}]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "Errors")


def test_what_is_billed_for_watching_is_what_there_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Usage().metrics == len(emitted(capsys, monkeypatch))
    assert Usage().alarms == len(Deployment().of_type("AWS::CloudWatch::Alarm"))


def test_every_alarm_has_a_time_that_cloudwatch_takes() -> None:
    for row in template()["Mappings"]["Ticks"].values():
        for alarm in Deployment(LeastActive="1").of_type("AWS::CloudWatch::Alarm").values():
            period = alarm["Properties"]["Period"]
            seconds = period if isinstance(period, int) else row["Seconds"]
            assert seconds % 60 == 0
            assert seconds * alarm["Properties"]["EvaluationPeriods"] <= 86_400


def test_failed_ticks_go_to_one_queue_that_has_an_alarm() -> None:
    tick = Deployment().resources["TickFunction"]["Properties"]
    queue = {"Fn::GetAtt": ["TickDeadLetters", "Arn"]}
    schedule = tick["Events"]["Tick"]["Properties"]
    assert schedule["DeadLetterConfig"] == {"Arn": queue}
    assert tick["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"] == queue
    alarm = Deployment().resources["TickFailedAlarm"]["Properties"]
    assert alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"


def test_a_count_that_was_never_started_goes_to_a_queue_that_has_an_alarm() -> None:
    audit = Deployment().resources["MigrateFunction"]["Properties"]["Events"]["Hourly"]
    given_up = audit["Properties"]["DeadLetterConfig"]
    assert given_up == {"Arn": {"Fn::GetAtt": ["AuditDeadLetters", "Arn"]}}
    (queue,) = Deployment().resources["AuditMissedAlarm"]["Properties"]["Dimensions"]
    assert queue["Value"] == {"Fn::GetAtt": ["AuditDeadLetters", "QueueName"]}


@pytest.mark.parametrize("minutes", sorted(map(int, template()["Mappings"]["Ticks"])))
def test_t13_each_cadence_has_an_expression_that_keeps_it(minutes: int) -> None:
    row = template()["Mappings"]["Ticks"][str(minutes)]
    assert row["Seconds"] == minutes * 60
    assert row["Late"] == row["Seconds"] * 1_000 + 90_000
    assert row["Timeout"] == min(row["Seconds"], 900)
    wanted = {1: r"cron\(\* \*.*", 60: r"cron\(0 \*.*"}.get(minutes, rf"cron\(0/{minutes} .*")
    assert re.fullmatch(wanted, row["Expression"])
    allowed = template()["Parameters"]["TickMinutes"]["AllowedValues"]
    assert {str(one) for one in allowed} == set(template()["Mappings"]["Ticks"])


def test_the_schedules_of_two_stacks_have_two_names() -> None:
    for function in Deployment().of_type("AWS::Serverless::Function").values():
        for event in function["Properties"].get("Events", {}).values():
            text, names = event["Properties"]["Name"]["Fn::Sub"]
            assert names == {"Id": STACK}
            assert len(text.replace("${Id}", UUID)) <= 64


def test_the_proxys_name_fits_whatever_the_stack_is_called() -> None:
    text, names = template()["Resources"]["DatabaseProxy"]["Properties"]["DBProxyName"]["Fn::Sub"]
    assert names == {"Id": STACK}
    assert len(text.replace("${Id}", UUID)) <= 63
