"""A backup takes the place of a SQLite file: ticks refuse, `recover` decides which times fire."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aws_lambda_powertools.utilities.parameters.ssm import SSMProvider
from duetick.cli.context import LocalContext
from duetick.cli.main import main
from duetick.cli.recover import _describe
from duetick.cli.tree import handler_of
from duetick.core.recovery import Recovered
from duetick.core.verify import verify
from duetick.domain.errors import ConfigurationError, StoreRestored, WitnessUnavailable
from duetick.domain.policies import Misfire, Overlap, Policies
from duetick.domain.schedule import Schedule
from duetick.runtime import wiring
from duetick.runtime.witness import FileWitness, ParameterWitness, open_witness
from duetick.stores import open_store

from tests.integration.local_product import NINE, Clock, Product, product

MINUTE = 60_000
HOUR = 60 * MINUTE


@contextmanager
def running(file: Path, clock: Clock) -> Iterator[Product]:
    """Yield the local stack on a file, started anew."""
    with (
        pytest.MonkeyPatch.context() as patch,
        product(f"sqlite:///{file}", clock, patch) as made,
    ):
        yield made


def ticks(made: Product, hours: int, each: int = 10 * MINUTE) -> int:
    """Let hours pass. Return the number of deliveries."""
    delivered = 0
    for _ in range(hours * HOUR // each):
        made.clock.now += each
        delivered += made.tick()["delivered"]
    return delivered


@pytest.fixture
def week_old(tmp_path: Path) -> tuple[Path, Clock]:
    """A file that is the backup of some hours ago, and the time."""
    return backup_of(tmp_path, Policies())


def backup_of(tmp_path: Path, policies: Policies) -> tuple[Path, Clock]:
    """Return the backup and the time, for a schedule with such policies."""
    file, clock = tmp_path / "duetick.db", Clock(NINE)
    with running(file, clock) as made:
        hourly = Schedule("you", "hourly", "0 * * * *", "reminders", "remind", input={"text": "x"})
        made.store.schedules.put(replace(hourly, policies=policies), now=clock.now)
        assert ticks(made, 3) == 3
    shutil.copy(file, tmp_path / "backup.db")
    with running(file, clock) as made:
        assert ticks(made, 6) == 6
    shutil.copy(tmp_path / "backup.db", file)
    clock.now += 30 * MINUTE
    return file, clock


def history(made: Product) -> list[tuple[str | None, int]]:
    """Return the reasons of the outcomes and their counts, the oldest first."""
    found = made.store.ledger.find("you", "hourly", limit=100)
    return [(one.reason, one.count) for one in reversed(found)]


def test_without_a_recovery_no_tick_claims(week_old: tuple[Path, Clock]) -> None:
    with running(*week_old) as made:
        for _ in range(3):
            with pytest.raises(StoreRestored, match=r"duetick recover.*dry run"):
                made.tick()
            made.clock.now += MINUTE
        assert history(made) == [("fired", 1)] * 3


def test_skip_repeats_nothing_and_ticks_go_on(
    week_old: tuple[Path, Clock],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, clock = week_old
    with running(file, clock) as made, pytest.raises(StoreRestored):
        made.tick()
    dry = ["recover", "--store", f"sqlite:///{file}"]
    monkeypatch.setattr("duetick.cli.stores.open_store", lambda url: open_store(url, clock=clock))
    assert main(dry) == 0
    assert "skip: 6 are recorded as missed, 0 may fire" in capsys.readouterr().out
    with running(file, clock) as made, pytest.raises(StoreRestored):
        made.tick()
    assert main([*dry, "--yes"]) == 0
    assert "Ticks claim again." in capsys.readouterr().out
    with running(file, clock) as made:
        assert made.tick()["delivered"] == 0
        assert ticks(made, 2) == 2
        assert history(made) == [*[("fired", 1)] * 3, ("missed", 6), *[("fired", 1)] * 2]
        assert verify(made.store, 0, clock.now, now=clock.now).found == {}
    assert main(dry) == 0
    assert "nothing to recover" in capsys.readouterr().out


def test_j07_overview_and_doctor_name_a_restore(
    week_old: tuple[Path, Clock],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tick that is refused has no report: without this nothing says why nothing fires."""
    file, clock = week_old
    store = f"sqlite:///{file}"
    monkeypatch.setattr("duetick.cli.stores.open_store", lambda url: open_store(url, clock=clock))
    monkeypatch.setattr("duetick.cli.doctor.open_store", lambda url: open_store(url, clock=clock))
    with running(file, clock) as made:
        with pytest.raises(StoreRestored):
            made.tick()
        monkeypatch.setenv("DUETICK_URL", made.stack.server.url)
        monkeypatch.setenv("DUETICK_OPERATOR", made.stack.operator)
        main(["overview"])
        assert "WRONG  The database is a backup of before" in capsys.readouterr().out
        main(["doctor", "--store", store])
        assert "not ok  backup: the database is one of before" in capsys.readouterr().out
        assert main(["recover", "skip", "--store", store, "--yes"]) == 0
        capsys.readouterr()
        main(["overview"])
        assert "backup" not in capsys.readouterr().out
        main(["doctor", "--store", store])
        assert "ok      backup: no tick has found" in capsys.readouterr().out


def test_j10_a_recovery_whose_time_ended_promises_no_claim() -> None:
    ended = Recovered("skip", dry_run=False, restored=True, complete=False)
    assert "No tick claims yet." in _describe(ended)
    assert "Ticks claim again." in _describe(replace(ended, complete=True))


@pytest.mark.parametrize(("how", "late", "error"), [("latest", 1, "unknown: "), ("fire", 5, "")])
def test_what_users_see_after_a_recovery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, late: int, error: str
) -> None:
    """It is as the help of `recover` says, for a schedule whose misfires may all fire."""
    every = Policies(misfire=Misfire.ALL, catch_up=5, overlap=Overlap.ALLOW)
    file, clock = backup_of(tmp_path, every)
    with running(file, clock) as made, pytest.raises(StoreRestored):
        made.tick()
    monkeypatch.setattr("duetick.cli.stores.open_store", lambda url: open_store(url, clock=clock))
    assert main(["recover", how, "--store", f"sqlite:///{file}", "--yes"]) == 0
    with running(file, clock) as made:
        made.tick()
        clock.now += 10 * MINUTE
        made.tick()
        seen = list(made.client().history("hourly"))[:-3]
        fired = [one for one in seen if one["reason"] == "fired"]
        (missed,) = [one for one in seen if one["reason"] == "missed"]
        assert (len(fired), missed["count"]) == (late, 6 - late)
        assert str(missed["error"] or "")[:9] == error


def test_two_old_files_are_downtime(week_old: tuple[Path, Clock]) -> None:
    """Nobody can tell a copy of both from a machine that was off."""
    file, clock = week_old
    Path(f"{file}.witness").write_text(str(NINE))
    with running(file, clock) as made:
        assert made.tick()["delivered"] == 1
        assert history(made)[3:] == [("missed", 5), ("fired", 1)]


def test_a_file_that_is_deleted_is_no_restore(week_old: tuple[Path, Clock]) -> None:
    file, clock = week_old
    file.unlink()
    with running(file, clock) as made:
        hourly = Schedule("you", "hourly", "0 * * * *", "reminders", "remind", input={"text": "x"})
        made.store.schedules.put(hourly, now=clock.now)
        assert ticks(made, 1) == 1


def test_a_folder_that_takes_no_witness_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "duetick.db.witness.new").mkdir()
    with running(tmp_path / "duetick.db", Clock(NINE)) as made:
        assert made.tick()["failed"] == 0
    assert "A restore from a backup will not be told" in capsys.readouterr().err


def test_migrate_recovers_and_the_hourly_step_refuses(
    week_old: tuple[Path, Clock],
) -> None:
    with running(*week_old) as made:
        handle = handler_of("migrate")
        with pytest.raises(StoreRestored):
            handle({"Step": "audit"}, LocalContext())
        foreseen = handle({"Step": "recover"}, LocalContext())
        assert (foreseen["how"], foreseen["dry_run"], foreseen["recorded"]) == ("skip", True, 6)
        with pytest.raises(StoreRestored):
            made.tick()
        done = handle({"Step": "recover", "How": "skip", "DryRun": False}, LocalContext())
        assert (done["recorded"], done["schedules"], done["complete"]) == (6, 1, True)
        handle({"Step": "audit"}, LocalContext())
        assert ticks(made, 1) == 1
        with pytest.raises(ConfigurationError, match="skip, latest, fire"):
            handle({"Step": "recover", "How": "replay"}, LocalContext())


def test_a_store_in_memory_has_no_witness() -> None:
    assert open_witness("", "sqlite://") is None
    assert open_witness("", "postgresql://db/duetick") is None
    assert isinstance(open_witness("", "sqlite:///a.db"), FileWitness)
    assert isinstance(open_witness("ssm:one", "dynamodb://table"), ParameterWitness)
    with pytest.raises(ConfigurationError, match="ssm:NAME"):
        open_witness("file:one", "sqlite:///a.db")


def test_a_witness_that_holds_something_else_says_so(tmp_path: Path) -> None:
    (tmp_path / "w").write_text("yesterday")
    with pytest.raises(WitnessUnavailable, match="yesterday"):
        FileWitness(tmp_path / "w").read()


def test_a_parameter_keeps_the_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"one": "0"}
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")

    def read(_: object, name: str, **_options: object) -> str:
        return kept[name]

    def write(_: object, name: str, value: str, **_options: object) -> None:
        kept[name] = value

    monkeypatch.setattr(SSMProvider, "_get", read)
    monkeypatch.setattr(SSMProvider, "set", write)
    witness = ParameterWitness("one")
    assert witness.read() is None
    witness.write(NINE)
    assert witness.read() == NINE
    with pytest.raises(WitnessUnavailable, match="two"):
        ParameterWitness("two").read()


def test_the_settings_say_where_the_witness_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUETICK_STORE", "dynamodb://table")
    monkeypatch.setenv("DUETICK_WITNESS", "ssm:one")
    wiring.settings.cache_clear()
    wiring.witness.cache_clear()
    try:
        assert isinstance(wiring.witness(), ParameterWitness)
    finally:
        wiring.settings.cache_clear()
        wiring.witness.cache_clear()
