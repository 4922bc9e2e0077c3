"""Pickles of others run nothing here, although they ask for it."""

import collections
import os
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from duetick.cli.transfer.apscheduler import read_rows
from duetick.cli.transfer.pickles import LARGEST, NotAPickle, StandIn, read_pickle

from tests.integration.transfer.parts import refused


class Evil:
    """An object whose pickle writes a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_calls_something_calls_nothing(tmp_path: Path, protocol: int) -> None:
    sign = tmp_path / "sign"
    found = read_pickle(pickle.dumps([Evil(sign)], protocol))
    assert not sign.exists()
    assert isinstance(found, list)
    assert isinstance(found[0], StandIn)
    assert found[0].ref.endswith(":system")


def test_the_same_pickle_loaded_as_usual_would_have_called_it(tmp_path: Path) -> None:
    load = "import pickle, sys; pickle.load(sys.stdin.buffer)"
    data = pickle.dumps(Evil(tmp_path / "sign"))
    subprocess.run([sys.executable, "-c", load], input=data, check=True)
    assert (tmp_path / "sign").exists()


@pytest.mark.parametrize(
    "name", ["builtins\neval", "builtins\n__import__", "subprocess\nPopen", "os\nsystem"]
)
def test_no_name_of_the_interpreter_is_reached(name: str) -> None:
    found = read_pickle(f"c{name}\n(S'1+1'\ntR.".encode())
    assert isinstance(found, StandIn)
    assert found.arguments == ("1+1",)


@pytest.mark.parametrize(
    "data",
    [
        b"cbuiltins\ngetattr\n(cdatetime\ndatetime\nS'now'\ntR.",
        b"cbuiltins\ngetattr\n(czoneinfo\nZoneInfo\nS'from_file'\ntR.",
    ],
)
def test_no_attribute_is_reached(data: bytes) -> None:
    with pytest.raises(NotAPickle, match="asks for an attribute"):
        read_pickle(data)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_times_zones_and_plain_values_come_back(protocol: int) -> None:
    given = {
        "at": datetime(2026, 12, 1, 9, tzinfo=ZoneInfo("Europe/Berlin")),
        "utc": datetime(2026, 12, 1, 9, tzinfo=UTC),
        "fixed": datetime(2026, 12, 1, 9, tzinfo=timezone(timedelta(hours=2))),
        "day": date(2026, 12, 1),
        "set": {1, 2},
        "ordered": collections.OrderedDict(a=1),
        "text": "ü",
        "none": None,
    }
    assert read_pickle(pickle.dumps(given, protocol)) == given


@pytest.mark.parametrize("data", [b"", b"\x80", b"x", b"\x80\x05.", b"\x80\x04\x95\xff", b"P1\n."])
def test_what_is_no_pickle_is_one_error(data: bytes) -> None:
    with pytest.raises(NotAPickle):
        read_pickle(data)


def test_a_pickle_that_is_too_large_is_not_read() -> None:
    with pytest.raises(NotAPickle, match="are read at most"):
        read_pickle(b"\x80" * (LARGEST + 1))


def test_a_job_whose_state_calls_something_is_refused_and_nothing_is_called(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    row = {"id": "j", "job_state": pickle.dumps({"trigger": Evil(sign), "id": "j"})}
    found = refused(read_rows("jobs", [row], 0))
    assert not sign.exists()
    assert "system" in found.why
