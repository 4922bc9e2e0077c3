"""T-12: each metric that alarms and the dashboard name is emitted, and each emitted one is looked
at.
"""

import json
import re

import pytest
from duetick.cli.costs import (
    ALARMS_OF_BELLS,
    ALARMS_OF_PACKS,
    METRICS_OF_BELLS,
    METRICS_OF_PACKS,
    Usage,
)
from duetick.core.audit import Audit
from duetick.core.dispatch.packs import PackReport
from duetick.core.gone import Gone
from duetick.core.managed.counting import CountedBells
from duetick.core.tick import TickReport
from duetick.core.verify import Verified
from duetick.domain.schedule import Occurrence, Record
from duetick.domain.states import Reason, State
from duetick.runtime import telemetry

from tests.documents import OPERATORS, rows, section
from tests.template.combinations import MANAGED
from tests.template.parsed import Deployment, Values, template

STACK = {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}
RUNBOOK = section(OPERATORS, "Runbook")
UUID = "0f0e4d5c-0000-0000-0000-000000000000"
"""The last part of a stack's id."""


def emitted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, managed: bool = True
) -> set[str]:
    """Return the names of all metrics that the code emits, told by the code itself."""
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED", raising=False)
    dead = Occurrence("ann", "k", "* * * * *", None, 0, state=State.DEAD, reason=Reason.LOST)
    capsys.readouterr()
    telemetry.metrics.clear_metrics()
    telemetry.record_tick(TickReport())
    telemetry.record_settled(dead)
    telemetry.record_answer(500)
    telemetry.record_audit(Audit())
    telemetry.record_gone(Gone())
    telemetry.record_auto_paused(Record("ann", "k", "* * * * *", "flow", "act"))
    telemetry.record_verified(Verified(0, 0))
    telemetry.record_pack(PackReport(), {})
    telemetry.metrics.flush_metrics()
    if managed:
        telemetry.record_bells(CountedBells(), 0)
    lines = capsys.readouterr().out.splitlines()
    described = [json.loads(line)["_aws"] for line in lines if '"_aws"' in line]
    return {
        metric["Name"] for one in described for metric in one["CloudWatchMetrics"][0]["Metrics"]
    }


def test_t12_what_a_tick_rejects_counts_as_dead(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED", raising=False)
    telemetry.metrics.clear_metrics()
    telemetry.record_tick(TickReport(claimed=2, failed=2, rejected=2))
    telemetry.metrics.flush_metrics()
    (line,) = [one for one in capsys.readouterr().out.splitlines() if '"_aws"' in one]
    assert json.loads(line)["Dead"] == [2.0]


def test_t12_a_death_of_what_is_gone_rings_one_alarm_and_is_logged_as_any_other(
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("POWERTOOLS_METRICS_DISABLED", raising=False)
    telemetry.metrics.clear_metrics()
    capsys.readouterr()
    telemetry.record_gone_death(
        Occurrence("ann", "k", "* * * * *", None, 0, state=State.DEAD, reason=Reason.REJECTED)
    )
    telemetry.metrics.flush_metrics()
    (line,) = [one for one in capsys.readouterr().out.splitlines() if '"_aws"' in one]
    metric = json.loads(line)
    assert (metric["Gone"], metric.keys() & {"Dead", "Lost"}) == ([1.0], set())
    assert [(one.__dict__["action"], one.__dict__["schedule"]) for one in caplog.records] == [
        ("dead", "ann/k")
    ]


def test_t12_the_alarm_of_what_is_gone_stays_from_one_count_to_the_next() -> None:
    alarm = watched()["Gone"]
    assert (alarm["Statistic"], alarm["Period"], alarm["Threshold"]) == ("Maximum", 3600, 1)


def watched() -> Values:
    """Return our metrics that alarms name, each with its alarm."""
    alarms = Deployment(**MANAGED).of_type("AWS::CloudWatch::Alarm")
    found = [(metric, one["Properties"]) for one in alarms.values() for metric in metrics(one)]
    return {metric["MetricName"]: one for metric, one in found if metric["Namespace"] == "Duetick"}


def metrics(alarm: Values) -> list[Values]:
    """Return the metrics that an alarm reads: its own, or those of its expressions."""
    given = alarm["Properties"]
    stats = [one["MetricStat"] for one in given.get("Metrics", ()) if "MetricStat" in one]
    return [one["Metric"] for one in stats] or [given]


def periods(alarm: Values) -> set[int | str]:
    """Return the periods of an alarm: it reads one value of each."""
    given = alarm["Properties"]
    stats = [one["MetricStat"] for one in given.get("Metrics", ()) if "MetricStat" in one]
    return {one["Period"] for one in stats or [given] if isinstance(one["Period"], int)} or {"tick"}


def shown() -> set[str]:
    """Return our metrics that the dashboard shows."""
    text = template()["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"][0]
    body = text.replace("${Age}", "")
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
    assert {"Active", "Unindexed", "Claimed", "Lateness", "Dead", "Gone", "Lost", "Poisoned"} <= (
        watched().keys()
    )


def test_t12_each_finding_of_the_audit_has_an_alarm_of_its_own() -> None:
    for name in ("Unindexed", "Stale", "Unreadable", "Overdue", "OldTzdata", "Unaccounted"):
        alarm = watched()[name]
        assert (alarm["Threshold"], alarm["Period"], alarm["Statistic"]) == (1, 3_600, "Maximum")
        assert alarm["TreatMissingData"] == "notBreaching"
    assert len(watched()) == len({one["AlarmDescription"] for one in watched().values()})


def test_s01_bells_that_stay_pending_have_an_alarm_where_bells_ring() -> None:
    alarm = watched()["Pending"]
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == ("Minimum", 3600, 2)
    assert "PendingAlarm" not in Deployment().resources


def test_t12_three_minutes_without_a_tick_are_an_alarm_even_without_data() -> None:
    alarm = watched()["Claimed"]
    assert (alarm["Statistic"], alarm["EvaluationPeriods"]) == ("SampleCount", 3)
    assert alarm["TreatMissingData"] == "breaching"
    assert template()["Mappings"]["Ticks"]["1"]["Seconds"] == 60


TOPIC = "arn:aws:sns:eu-central-1:123456789012:alarms"


@pytest.mark.parametrize(
    ("given", "topic"), [({}, "AlarmTopic"), ({"AlarmTopicArn": TOPIC}, "AlarmTopicArn")]
)
def test_t12_every_alarm_is_told_to_a_topic_and_says_what_to_do(
    given: dict[str, str], topic: str
) -> None:
    made = Deployment(**given)
    for alarm in made.of_type("AWS::CloudWatch::Alarm").values():
        told = alarm["Properties"]
        assert told["AlarmDescription"]
        assert told["AlarmActions"] == told["OKActions"] == [{"Ref": topic}]
    assert ("AlarmTopic" in made.resources) == (topic == "AlarmTopic")
    assert made.decided(template()["Outputs"]["AlarmTopic"]["Value"]) == {"Ref": topic}


def test_t12_an_address_is_told_of_alarms_where_one_is_given() -> None:
    assert not Deployment().of_type("AWS::SNS::Subscription")
    made = Deployment(AlarmEmail="oncall@example.com")
    (one,) = made.of_type("AWS::SNS::Subscription").values()
    assert one["Properties"] == {
        "TopicArn": {"Ref": "AlarmTopic"},
        "Protocol": "email",
        "Endpoint": {"Ref": "AlarmEmail"},
    }


def test_t12_alarms_can_write_to_the_topic() -> None:
    """The key that AWS has for topics refuses them, without a word."""
    assert "KmsMasterKeyId" not in Deployment().resources["AlarmTopic"]["Properties"]


def test_the_metrics_of_two_stacks_are_apart() -> None:
    service = [{"Name": "service", "Value": {"Ref": "AWS::StackName"}}]
    alarms = Deployment(**MANAGED).of_type("AWS::CloudWatch::Alarm").values()
    every = [metric for alarm in alarms for metric in metrics(alarm)]
    ours = [metric for metric in every if metric["Namespace"] == "Duetick"]
    assert len(ours) == len(watched())
    assert all(metric["Dimensions"] == service for metric in ours)
    assert Deployment().environment("TickFunction")["POWERTOOLS_SERVICE_NAME"] == {
        "Ref": "AWS::StackName"
    }


def test_the_dashboards_of_two_stacks_are_apart_even_in_two_regions() -> None:
    name = Deployment().resources["Dashboard"]["Properties"]["DashboardName"]["Fn::Sub"]
    assert {"${AWS::StackName}", "${AWS::Region}"} <= set(re.findall(r"\$\{[^}]+\}", name))


def test_the_runbook_names_resources_that_are_there() -> None:
    named = set(re.findall(r"\$\(name (\w+)\)", RUNBOOK)) | set(re.findall(r"\b\w+Log\b", RUNBOOK))
    assert {"TickLog", "DispatchLog", "MigrateLog", "TickFunction"} <= named
    assert named <= template()["Resources"].keys()


def symptoms() -> dict[str, list[str]]:
    """Return the runbook's cells for each alarm: where to look, what to do, when to worry."""
    found = [(re.match(r"`(\w+Alarm)`", first), cells) for first, *cells in rows(RUNBOOK)]
    return {name[1]: cells for name, cells in found if name}


def test_the_runbook_has_a_row_for_each_alarm() -> None:
    by_queue = Deployment(Transport="queue").of_type("AWS::CloudWatch::Alarm")
    alarms = by_queue | Deployment(**MANAGED).of_type("AWS::CloudWatch::Alarm")
    assert symptoms().keys() == alarms.keys()
    assert all(look.startswith("`") and do and worry for look, do, worry in symptoms().values())


LOOKED = [
    "Dead",
    "Gone",
    "Lost",
    "Poisoned",
    "Unindexed",
    "Stale",
    "Unreadable",
    "OldTzdata",
    "Overdue",
    "Unaccounted",
]


@pytest.mark.parametrize("alarm", LOOKED)
def test_the_runbook_looks_where_the_alarm_does(alarm: str) -> None:
    look, *_ = symptoms()[f"{alarm}Alarm"]
    said = str(watched()[alarm]["AlarmDescription"])
    assert set(re.findall(r"\w+Log", look)) == set(re.findall(r"\w+Log", said))


def test_a_count_that_fails_is_an_alarm_too() -> None:
    alarm = Deployment().resources["AuditFailedAlarm"]["Properties"]
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": "MigrateFunction"}}]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "Errors")


def test_what_is_billed_for_watching_is_what_there_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    emitted_unmanaged = emitted(capsys, monkeypatch, managed=False)
    assert Usage().metrics + METRICS_OF_PACKS == len(emitted_unmanaged)
    assert Usage().alarms == len(Deployment().of_type("AWS::CloudWatch::Alarm"))
    with_queue = Deployment(Transport="queue").of_type("AWS::CloudWatch::Alarm")
    assert Usage().alarms + ALARMS_OF_PACKS == len(with_queue)
    emitted_managed = emitted(capsys, monkeypatch, managed=True)
    assert len(emitted_unmanaged) + METRICS_OF_BELLS == len(emitted_managed)
    with_bells = Deployment(Trigger="managed", TickMinutes="60").of_type("AWS::CloudWatch::Alarm")
    assert Usage().alarms + ALARMS_OF_BELLS == len(with_bells)


def test_every_alarm_has_a_time_that_cloudwatch_takes() -> None:
    for row in template()["Mappings"]["Ticks"].values():
        for alarm in Deployment().of_type("AWS::CloudWatch::Alarm").values():
            (period,) = periods(alarm)
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
