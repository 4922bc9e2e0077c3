"""The report of a machine's whole crontab, and of the lists of an AWS account."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from duetick.aws import client_of
from moto import mock_aws

from tests.integration.local_product import Product
from tests.integration.transfer.test_import_command import RUNS, Terminal, kinds, terminal

__all__ = ["terminal"]

MACHINE = Path(__file__).with_name("machine.crontab").read_text()
"""The crontab of a machine with Debian, its packages and an application."""

TARGET = {
    "Arn": "arn:aws:lambda:eu-central-1:123456789012:function:remind",
    "RoleArn": "arn:aws:iam::123456789012:role/scheduler",
    "Input": '{"text": "water"}',
}


def test_the_report_of_a_machines_crontab_accounts_for_each_line(
    running: Product, terminal: Terminal
) -> None:
    terminal.crontab.write_text(MACHINE)
    zone = ("--system", "--timezone", "Europe/Berlin")
    code, out, _ = terminal.run("import", "crontab", str(terminal.crontab), *RUNS, *zone)
    first, *rows, last = out.splitlines()
    assert code == 1, "a line is refused"
    assert first.split()[:3] == ["PLACE", "SOURCE", "WHAT"]
    assert last == "10 would be new, 1 refused, 3 no schedule. --yes does it."
    assert "@reboot" in rows[0], "what is refused stands first"
    assert "duetick schedules run KEY, or enqueue a job" in rows[0]
    assert [row.split()[0].rpartition(":")[2] for row in rows[1:11]] == [
        *map(str, (6, 7, 8, 9, 10, 11, 12, 14, 15, 16))
    ]
    assert "3 lines" in rows[-1], "each other line is blank, or a comment"
    assert list(running.client().list()) == []


def test_a_machines_crontab_fires_here_in_its_zone(running: Product, terminal: Terminal) -> None:
    terminal.crontab.write_text(MACHINE)
    zone = ("--system", "--timezone", "Europe/Berlin")
    assert kinds(terminal.brings(*zone, "--yes"))["new"] == 10
    made = {one["key"].rpartition("-")[0]: one for one in running.client().list()}
    assert {one["timezone"] for one in made.values()} == {"Europe/Berlin"}
    assert made["quarter"]["cron"] == "0 0 1 */3 1"
    assert made["pg_dump"]["input"] == {
        "text": "pg_dump app | gzip > /var/backups/app-$(date +%F).sql.gz"
    }
    assert kinds(terminal.brings(*zone, "--yes")) == {"same": 10, "refused": 1, "no schedule": 3}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account with schedules in two groups, and rules with times and without."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    client_of.cache_clear()
    with mock_aws():
        scheduler, events = (client_of(name, "eu-central-1") for name in ("scheduler", "events"))
        scheduler.create_schedule_group(Name="garden")
        exact = {"FlexibleTimeWindow": {"Mode": "OFF"}, "Target": TARGET}
        berlin = {"ScheduleExpressionTimezone": "Europe/Berlin"}
        often = "cron(0 9 ? * MON-FRI *)"
        scheduler.create_schedule(Name="daily", ScheduleExpression=often, **berlin, **exact)
        scheduler.create_schedule(
            Name="gone", ScheduleExpression="at(2020-01-01T00:00:00)", **exact
        )
        window = {"FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 10}}
        hourly = {"ScheduleExpression": "rate(1 hour)", "GroupName": "garden", **window}
        scheduler.create_schedule(Name="water", Target=TARGET, **hourly)
        events.put_rule(Name="nightly", ScheduleExpression="cron(30 2 * * ? *)")
        targets = [{"Id": number, "Arn": TARGET["Arn"]} for number in ("1", "2")]
        events.put_targets(Rule="nightly", Targets=targets)
        events.put_rule(Name="on-put", EventPattern='{"source": ["aws.s3"]}')
        yield
    client_of.cache_clear()


@pytest.mark.usefixtures("account")
def test_an_accounts_own_schedules_and_rules_are_read_from_its_api(
    running: Product, terminal: Terminal
) -> None:
    asked = ("import", "eventbridge", "--from", "aws", "--flow", "reminders", "--action", "remind")
    given = ("--input", '{"text": "{name}"}')
    code, out, err = terminal.run(*asked, *given)
    rows = {row.split()[1]: row for row in out.splitlines()}
    assert (code, "1 were refused" in err) == (1, True)
    assert "4 would be new, 1 refused. --yes does it." in out
    assert "has no time after now" in rows["gone"]
    assert "it counts from its creation here" in rows["water"]
    assert "on-put" not in out
    terminal.run(*asked, *given, "--yes")
    made = {one["key"]: one for one in running.client().list()}
    assert set(made) == {"daily", "garden/water", "nightly/1", "nightly/2"}
    assert (made["daily"]["timezone"], made["daily"]["policies"]["gap"]) == (
        "Europe/Berlin",
        "skip",
    )
    assert made["garden/water"]["policies"]["spread"] == 600
    _, again, _ = terminal.run(*asked, *given, "--yes")
    assert "4 stays, 1 refused." in again


@pytest.mark.usefixtures("account")
def test_one_group_of_an_account_is_read_alone(terminal: Terminal) -> None:
    asked = ("import", "eventbridge", "--from", "aws", "--group", "garden", "--json")
    _, out, err = terminal.run(*asked, "--flow", "reminders", "--action", "remind")
    assert kinds(json.loads(out)) == {"new": 1}, err
