"""`duetick purge`, `duetick workers` and `duetick locks`, on a file."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from duetick.cli.main import main
from duetick.core.keeping import keep_retention
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.retention import Days, Retention
from duetick.domain.workers import NamedLock, Worker
from duetick.runtime.witness import FileWitness
from duetick.stores import open_store
from duetick.testing.conformance.samples import DAY, MINUTE, NOON, SECOND, by_hand
from duetick.testing.conformance.suite import must, start

AS_IT_RUNS = "from duetick.cli.main import main; raise SystemExit(main())"


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/one.db"


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with closing(open_store(address)) as made:
        made.migrate()
        yield made


def ran(store: Store, days_ago: int, number: int) -> None:
    """Let a run by hand of a schedule that is gone have ended `days_ago` days ago."""
    at = store.now() - days_ago * DAY - MINUTE
    held = start(store, by_hand(run=f"run:{number}", at=at), at)
    must(store.ledger.settle(held, SUCCEEDED, now=at))


def test_j10_it_deletes_what_is_older_than_thirty_days(
    store: Store, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, days_ago in enumerate((29, 30, 31)):
        ran(store, days_ago, number)
    assert main(["purge", "--store", address]) == 0
    assert "2 occurrences left" in capsys.readouterr().out
    assert len(store.ledger.find("ada")) == 1
    assert main(["purge", "--store", address, "--days", "7"]) == 0
    assert len(store.ledger.find("ada")) == 0


@pytest.mark.slow
def test_j07_a_log_line_never_stands_in_an_answer(
    store: Store, address: str, tmp_path: Path
) -> None:
    """A script reads one document, even if the command logs. It runs in a process of its own
    here.
    """
    ran(store, 31, 1)
    FileWitness(tmp_path / "one.db.witness").write(NOON)
    for command in (["purge"], ["recover", "skip"]):
        asked = ["-c", AS_IT_RUNS, *command, "--json", "--store", address]
        done = subprocess.run(
            [sys.executable, *asked], capture_output=True, check=True, timeout=120
        )
        assert isinstance(json.loads(done.stdout), dict), done.stdout


def test_j10_it_keeps_to_the_retention_of_the_deployment(store: Store, address: str) -> None:
    """A purge by hand must not delete occurrences that the deployment keeps."""
    ran(store, 100, 1)
    keep_retention(store, Retention(Days(200, 200)), store.now())
    assert main(["purge", "--store", address]) == 0
    assert len(store.ledger.find("ada")) == 1


def test_j08_it_leaves_the_work_to_whoever_is_at_it(
    store: Store, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    now = store.now()
    assert store.shelf.acquire(NamedLock("purge", "another", now, now + MINUTE), now)
    assert main(["purge", "--store", address]) == 1
    assert "Another purge is at work" in capsys.readouterr().err
    assert main(["locks", "--store", address]) == 0
    assert "another" in capsys.readouterr().out


@pytest.mark.parametrize("given", ["x", "x=0", "x=400", "x=5/y"])
def test_a_flow_whose_days_cannot_be_read_is_refused(
    store: Store, address: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store.check_schema()
    assert main(["purge", "--store", address, "--by-flow", given]) == 1
    assert "retention: expected" in capsys.readouterr().err


def test_j12_it_lists_the_last_ticks(
    store: Store, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["workers", "--store", address]) == 0
    assert "No tick" in capsys.readouterr().out
    now = store.now()
    tick = Worker("tick_1", "tick", now - MINUTE, now - SECOND)
    store.shelf.report(tick)
    ended = replace(tick, id="tick_2", ended_at=now, lateness_ms=7, counts={"claimed": 3})
    store.shelf.report(ended)
    assert main(["workers", "--store", address, "--json"]) == 0
    newest, lost = json.loads(capsys.readouterr().out)
    assert (newest["id"], newest["milliseconds"]) == ("tick_2", MINUTE)
    assert (newest["counts"], newest["latenessMilliseconds"]) == ({"claimed": 3}, 7)
    assert lost["state"] == "lost"
    assert main(["workers", "--store", address]) == 0
    assert "claimed 3" in capsys.readouterr().out
