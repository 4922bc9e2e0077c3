"""`duetick verify` at a terminal: times that add up, times that do not, and a wrong question."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from duetick.cli.main import main
from duetick.core.verify import verify_hour
from duetick.core.wire import iso
from duetick.stores import open_store
from duetick.testing.conformance.samples import DAY, EACH_MINUTE, MINUTE, row, schedule
from duetick.testing.conformance.suite import drain, must


@pytest.fixture
def address(tmp_path: Path) -> str:
    """Return the address of a store in which ten times of a schedule were claimed five minutes
    ago.
    """
    address = f"sqlite:///{tmp_path}/file.db"
    store = open_store(address)
    store.migrate()
    now = store.now() - 5 * MINUTE
    begun = now - now % MINUTE - 10 * MINUTE
    store.schedules.put(schedule(cron=EACH_MINUTE), now=begun)
    for minute in range(1, 11):
        drain(store, begun + minute * MINUTE + 1)
    store.index.upsert(row("bare", at=now + DAY))
    store.close()
    return address


def test_a02_what_adds_up_is_counted(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--store", address]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("2 schedules, 10 times from 20")
    assert "; 10 are under way.\nRows without a record: 1. " in printed.out
    assert printed.err == ""


def test_a02_each_fault_is_a_line_and_the_exit_code_says_so(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(address)
    kept = must(store.index.get("ada", "digest"))
    store.index.upsert(replace(kept, next_fire_at=kept.next_fire_at + 3 * MINUTE))
    store.close()
    assert main(["verify", "--store", address]) == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("ada/digest: missing at 20")
    assert ", 3 times: the expression names these times, and the ledger has no" in printed.out
    assert printed.err == "duetick: 1 faults are above, a line each.\n"


def test_a02_what_the_hourly_work_covered_can_be_asked(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask() -> str:
        assert main(["verify", "--store", address, "--covered"]) == 0
        return capsys.readouterr().out

    assert ask() == "The hourly work has not verified every schedule yet.\n"
    with closing(open_store(address)) as store:
        now = store.now()
        verify_hour(store, now, most=1, may_go_on=lambda: True)
        assert ask().endswith(f" It is on its way up to {iso(now)}: 1 schedules so far.\n")
        verify_hour(store, now, most=None, may_go_on=lambda: True)
    assert ask().startswith(f"The hourly work has verified every schedule up to {iso(now)}. It")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--since", "yesterday"], "expected a time like 2026-12-01T09:00:00Z"),
        (
            ["--since", "2026-12-02T09:00:00Z", "--until", "2026-12-01T09:00:00Z"],
            "--since 2026-12-02T09:00:00Z is not before --until 2026-12-01T09:00:00Z.",
        ),
    ],
)
def test_a_wrong_span_is_told(
    address: str, given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--store", address, *given]) == 1
    assert said in capsys.readouterr().err


def test_a_store_that_was_never_migrated_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--store", f"sqlite:///{tmp_path}/new.db"]) == 1
    assert "migrate" in capsys.readouterr().err
