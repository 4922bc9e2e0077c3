"""C-02: every zone of the pinned package, read right, and nothing of the system's."""

import datetime
import os
import subprocess
import sys
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from duetick.domain.errors import kind_of
from duetick.domain.expression import (
    TZDATA_VERSION,
    InvalidExpression,
    InvalidTimezone,
    check_zone,
    nearest,
    next_fire,
)
from duetick.domain.expression.zones import FAR_ZONES, NEAR, ZONE_NAMES, ZONES

from tests.unit.expression import cases, oracle
from tests.unit.expression.times import ms


def test_c02_every_zone_agrees_with_the_standard_library_at_and_around_each_change() -> None:
    random, compared = Random(2), 0
    for name in oracle.zone_names():
        zone = FAR_ZONES[name]
        last = cases.second(2199, 12, 30)
        around = [start // 1000 + step for start in zone.starts for step in (-1, 0)]
        chance = [random.randrange(cases.second(1850), last) for _ in range(20)]
        for second in [*chance, *(s for s in around if s < last)]:
            ours = zone.offsets[bisect_right(zone.starts, second * 1000)]
            theirs = datetime.datetime.fromtimestamp(second, oracle.zone(name)).utcoffset()
            assert theirs == datetime.timedelta(milliseconds=ours), (name, second)
            compared += 1
    assert compared > 200_000


def test_c02_no_zone_changes_twice_so_fast_that_gaps_and_repeats_could_meet() -> None:
    for name in oracle.zone_names():
        starts, offsets = FAR_ZONES[name].starts, FAR_ZONES[name].offsets
        sizes = [abs(after - before) for before, after in pairwise(offsets)]
        for (one, two), moved in zip(pairwise(starts), pairwise(sizes), strict=True):
            assert two - one > max(moved), name


def test_c02_the_near_zones_know_every_change_up_to_where_they_end() -> None:
    for name in oracle.zone_names():
        near, far = ([s for s in zones[name].starts if s < NEAR] for zones in (ZONES, FAR_ZONES))
        assert near == far, name
        assert FAR_ZONES[name].offsets[: len(near) + 1] == ZONES[name].offsets[: len(near) + 1]


HOSTILE = """
import os, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from duetick.domain.expression import next_fire
print(next_fire("0 9 * * *", "Europe/Berlin", 1790000000000))
print([path for path in opened if "zoneinfo" in path and "tzdata" not in path])
"""


def test_c02_the_systems_zones_are_never_looked_at(tmp_path: Path) -> None:
    planted = tmp_path / "Europe"
    planted.mkdir()
    (planted / "Berlin").write_bytes(b"no zone")
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE],
        env={
            **os.environ,
            "PYTHONTZPATH": str(tmp_path),
            "TZPATH": str(tmp_path),
            "TZDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(ms("2026-09-22T07:00")), "[]"]


def test_c02_the_version_of_the_zones_is_told() -> None:
    assert TZDATA_VERSION[:4].isdigit()
    assert len(TZDATA_VERSION) == 5


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Europe/Berlim", "'Europe/Berlin'"),
        ("europe/berlin", "'Europe/Berlin'"),
        ("Berlin", "'Europe/Berlin'"),
        ("New York", "'America/New_York'"),
        ("utc", "'UTC'"),
        ("Asia/Calcuta", "'Asia/Calcutta'"),
        ("Mars/Phobos", "names look like 'Europe/Berlin'"),
    ],
)
def test_i17_an_unknown_zone_is_refused_with_the_nearest_names(name: str, near: str) -> None:
    with pytest.raises(InvalidTimezone, match=near):
        check_zone(name)
    with pytest.raises(InvalidExpression):
        next_fire("0 9 * * *", name, 0)


@pytest.mark.parametrize(
    "name",
    [
        *("", "local", "localtime", "/etc/localtime", "../zones", "Europe/../UTC", "Europe"),
        *(
            "posix/UTC",
            "UTC\n",
            "UTC\x00",
            "UTC/",
            "zone.tab",
            "\udc80",
            "Z",
            "+02:00",
            "UTC " * 10**5,
        ),
    ],
)
def test_i17_what_is_no_zones_exact_name_is_refused_without_a_look_at_any_file(name: str) -> None:
    with pytest.raises(InvalidTimezone) as refusal:
        check_zone(name)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("name", [5, b"UTC", ["UTC"]])
def test_i17_a_zone_that_is_not_text_is_refused_by_its_type(name: str) -> None:
    with pytest.raises(InvalidTimezone, match=f"not {kind_of(name)}"):
        check_zone(name)


def test_i08_no_zone_is_utc() -> None:
    check_zone(None)
    assert next_fire("0 9 * * *", None, 0) == next_fire("0 9 * * *", "UTC", 0) == 9 * 3_600_000


def test_c02_a_rate_is_refused_in_an_unknown_zone_too() -> None:
    with pytest.raises(InvalidTimezone):
        next_fire("rate(5 minutes)", "Nowhere", 0)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PST", ["America/Los_Angeles"]),
        ("pdt", ["America/Los_Angeles"]),
        ("Pacific Standard Time", ["America/Los_Angeles"]),
        ("EDT", ["America/New_York"]),
        ("Eastern Time", ["America/New_York"]),
        ("CST", ["America/Chicago", "Asia/Shanghai"]),
        ("MDT", ["America/Denver"]),
        ("BST", ["Europe/London", "Asia/Dhaka"]),
        ("CEST", ["Europe/Berlin"]),
        ("IST", ["Europe/Dublin", "Asia/Kolkata", "Asia/Jerusalem"]),
        ("JST", ["Asia/Tokyo"]),
        ("AEDT", ["Australia/Sydney"]),
        ("Z", ["UTC"]),
        ("Europe/Berln", ["Europe/Berlin"]),
        ("berlin", ["Europe/Berlin"]),
    ],
)
def test_i17_an_abbreviation_is_refused_with_the_zones_that_it_may_mean(
    name: str, meant: list[str]
) -> None:
    with pytest.raises(InvalidTimezone) as refused:
        check_zone(name)
    offered = str(refused.value).partition("did you mean ")[2].removesuffix("?").split(" or ")
    assert [repr(zone) for zone in meant] == offered[: len(meant)]


@pytest.mark.parametrize(
    ("name", "zone", "hours"),
    [
        ("GMT+2", "Etc/GMT-2", 2),
        ("UTC+2", "Etc/GMT-2", 2),
        ("utc +02:00", "Etc/GMT-2", 2),
        ("UTC-5", "Etc/GMT+5", -5),
        ("GMT-0500", "Etc/GMT+5", -5),
        ("+14:00", "Etc/GMT-14", 14),
    ],
)
def test_i17_an_offset_is_refused_with_the_zone_that_has_it(
    name: str, zone: str, hours: int
) -> None:
    with pytest.raises(InvalidTimezone, match="other way round") as refused:
        check_zone(name)
    assert repr(zone) in str(refused.value)
    assert "did you mean" not in str(refused.value)
    assert next_fire("0 12 2 1 *", zone, 0) == (36 - hours) * 3_600_000


def test_i17_an_offset_that_no_zone_has_is_refused_without_one() -> None:
    for name in ("UTC+15", "GMT-13", "UTC+05:30"):
        with pytest.raises(InvalidTimezone) as refused:
            check_zone(name)
        assert "other way round" not in str(refused.value)
        assert "Etc/GMT" not in str(refused.value)


def test_i17_every_zone_that_is_offered_for_an_abbreviation_is_one() -> None:
    assert set(nearest._ABBREVIATIONS) <= ZONE_NAMES
