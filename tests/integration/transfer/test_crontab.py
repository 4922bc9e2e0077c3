"""Crontabs: each line is accounted for, and an imported one fires as under Debian's cron."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from duetick.cli.transfer.crontab import CrontabReader
from duetick.cli.transfer.items import RefusedItem, Remark, SourceItem, SourcePart

from tests.integration.transfer.evaluated import SINCE, UNTIL, here
from tests.integration.transfer.parts import items, only, refused

TEXT = """\
# the things of the night
SHELL=/bin/sh
MAILTO="ops@example.com"
CRON_TZ=America/New_York

*/5 * * * * /usr/bin/run-parts /etc/five % first % second
0 9 * * mon-fri FOO=bar /opt/report --day=$(date +\\%F)
@reboot /bin/start
@daily\tbackup
0 0 31 2 * never
PATH = /bin:/usr/bin
-10 * * * * quiet
0 22-2 * * * late
"""


def read(
    text: str, zone: str | None = "Europe/Berlin", *, with_user: bool = False
) -> list[SourcePart]:
    """Return the parts of a crontab."""
    return [*CrontabReader(zone, with_user=with_user).read("crontab", text)]


def test_every_line_of_a_crontab_is_accounted_for() -> None:
    found = read(TEXT)
    placed = {part.place.partition(":")[2] for part in found if ":" in part.place}
    comments = [part for part in found if ":" not in part.place]
    assert len(placed) == len(found) - 1
    assert [(one.text, getattr(one, "why", "")) for one in comments] == [
        ("2 lines", "blank, or comments")
    ]
    assert len(placed) + 2 == len(TEXT.splitlines())


def test_a_line_of_which_nothing_can_come_says_why_and_what_to_write_instead() -> None:
    told = {one.text: one for one in read(TEXT) if isinstance(one, RefusedItem)}
    assert told["@reboot /bin/start"].why.startswith("nothing here boots")
    assert told["0 0 31 2 * never"].instead.endswith("0 0 L 2 *")
    assert told["0 22-2 * * * late"].instead == "22-23,0-2"
    assert len(told) == 3


def test_a_variable_says_what_becomes_of_it() -> None:
    told = {one.text: one.why for one in read(TEXT) if isinstance(one, Remark)}
    assert "no mail is sent here" in told['MAILTO="ops@example.com"']
    assert "{environment}" in told["PATH = /bin:/usr/bin"]


def test_the_lines_below_cron_tz_have_its_zone_and_those_above_the_machines() -> None:
    above, below = read(f"0 9 * * * a\n{'CRON_TZ=Asia/Tokyo'}\n0 9 * * * b\n")[0::2]
    assert isinstance(above, SourceItem)
    assert isinstance(below, SourceItem)
    assert (above.timing.timezone, below.timing.timezone) == ("Europe/Berlin", "Asia/Tokyo")


def test_a_zone_that_is_none_is_refused() -> None:
    (_, found) = read("CRON_TZ=Europe/Berln\n0 9 * * * a\n")
    assert isinstance(found, RefusedItem)
    assert "Europe/Berlin" in found.why


def test_a_percent_ends_the_command_and_the_rest_is_its_input() -> None:
    found = [one for one in read(TEXT) if isinstance(one, SourceItem)]
    assert found[0].facts["command"] == "/usr/bin/run-parts /etc/five"
    assert found[0].facts["stdin"] == " first \n second"
    assert found[1].facts["command"] == "FOO=bar /opt/report --day=$(date +%F)"
    assert found[1].facts["stdin"] is None


def test_a_system_crontab_has_a_user_in_each_line() -> None:
    found = only(read("17 *\t* * *\troot    cd / && run-parts /etc/hourly", with_user=True))
    assert (found.facts["runs_as"], found.facts["command"]) == (
        "root",
        "cd / && run-parts /etc/hourly",
    )
    assert "--system" in refused(read("17 * * * * root", with_user=True)).instead


def test_a_name_stays_when_the_times_change_and_no_secret_is_in_it() -> None:
    names = [
        only(read(f"{times} /opt/send --password=sesame to@example.com")).name
        for times in ("0 9 * * *", "@hourly")
    ]
    assert names[0] == names[1]
    assert names[0].startswith("send-")
    assert "sesame" not in names[0]
    other = only(read("0 9 * * * /opt/send --password=another to@example.com")).name
    assert other == names[0], "nobody can try passwords on a name"


def test_lines_of_one_command_have_names_of_their_own() -> None:
    first, second = read("0 9 * * * backup\n0 18 * * * backup\n")
    assert isinstance(first, SourceItem)
    assert isinstance(second, SourceItem)
    assert second.name == f"{first.name}-2"


def test_a_comment_may_name_the_line_below_it() -> None:
    first, second, _ = read("# key: nightly\n0 2 * * * backup\n0 18 * * * backup\n")
    assert isinstance(first, SourceItem)
    assert isinstance(second, SourceItem)
    assert first.name == "nightly"
    assert second.name.startswith("backup-")


def test_the_name_of_a_line_that_is_switched_off_is_no_other_ones() -> None:
    off, on = "#0 2 * * * backup\n", "0 18 * * * tidy\n"
    first, _ = read(f"# key: nightly\n{off}{on}")
    second, _ = read(f"# key: nightly\n# it tidies up at night, all the rooms\n{on}")
    assert isinstance(first, SourceItem)
    assert first.name.startswith("tidy-")
    assert isinstance(second, SourceItem)
    assert second.name == "nightly"


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("1~5 * * * * x", "spread"),
        ("@every_second x", "look-ahead"),
        ("@60 x", "rate(60 seconds)"),
        ("0 9 * *", "minute hour day-of-month month day-of-week command"),
        ("@fortnightly x", "@daily"),
        ("0 9 * * moon x", "MON-FRI"),
    ],
)
def test_what_other_crons_know_is_refused_with_what_to_write(line: str, instead: str) -> None:
    found = refused(read(line))
    assert instead in f"{found.instead} {found.why}"


CRONS = [
    *("*/5 * * * *", "0 9 * * mon-fri", "0 9 * * 0", "0 9 * * 7", "0 9 1,15 * *", "@hourly"),
    *("0 9 13 * 5", "0 9 */2 * 1", "0 9 1 * */2", "0 9 * jan-mar,12 sun,3", "@weekly", "@monthly"),
    *("30 2 * * *", "*/10 2 * * *", "15 */3 * * *", "59 23 31 * *", "0 0 29 2 *", "1-59/7 5 * * *"),
]

ZONES = ["Europe/Berlin", "UTC", "America/Santiago", "Asia/Kathmandu"]


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_what_is_imported_fires_as_debians_cron_does_for_a_year(zone: str) -> None:
    for cron in CRONS:
        found = only(read(f"{cron} command", None if zone == "UTC" else zone))
        start = datetime.fromtimestamp(SINCE / 1_000 - 1, ZoneInfo(zone))
        theirs = []
        for moment in CronSim(found.timing.cron, start):
            if moment.timestamp() * 1_000 > UNTIL:
                break
            theirs.append(round(moment.timestamp() * 1_000))
        assert here(found.timing) == theirs, cron


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\x0c", "\x1c"])
def test_a_separator_of_unicodes_is_part_of_a_command(separator: str) -> None:
    text = f"0 9 * * * say one{separator}two\n0 10 * * * say three\n"
    found = items(CrontabReader("UTC").read("c", text))
    assert [one.facts["command"] for one in found] == [f"say one{separator}two", "say three"]
