"""J-07: each command that the operators' page shows is done, on a local stack and a store."""

import argparse
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from duetick.cli.main import _parser, main
from duetick.cli.stores import whoever
from duetick.cli.wrong import wrong_lines
from duetick.core.audit import audit
from duetick.core.flows import Flows
from duetick.core.gone import find_gone
from duetick.core.operations import NEWEST
from duetick.core.static import register
from duetick.core.verify import Progress
from duetick.core.wire import iso
from duetick.domain.errors import MIGRATE, SchemaOutdated
from duetick.domain.occurrence import IndexRow
from duetick.domain.schedule import Schedule
from duetick.domain.workers import NamedLock, Worker
from duetick.stores import open_store

from tests.documents import OPERATORS, section
from tests.integration.api.asking import HELLO
from tests.integration.local_product import NINE, Product

OPERATORS_PAGE = section(OPERATORS, "The operator's command")
SHOWN = re.findall(r"```sh\n(.*?)```", OPERATORS_PAGE, re.DOTALL)


def commands(block: str) -> list[list[str]]:
    """Return the commands of a block, as a shell would split them."""
    joined = block.replace("\\\n", "")
    lines = [line for line in joined.splitlines() if not line.startswith("#")]
    return [shlex.split(line)[1:] for line in lines]


@pytest.fixture
def at_work(running: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Product:
    """An operator's shell, where a local stack runs and ann has a schedule."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".cache").mkdir()
    (tmp_path / "crontab.txt").write_text("# key: tea\n0 16 * * MON-FRI /usr/bin/kettle\n")
    (rules,) = re.findall(r"```toml\n(.*?)```", OPERATORS_PAGE, re.DOTALL)
    (tmp_path / "rules.toml").write_text(rules)
    monkeypatch.setenv("DUETICK_URL", running.stack.server.url)
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    monkeypatch.delenv("DUETICK_TOKEN", raising=False)
    monkeypatch.setattr("duetick.cli.doctor.time.time_ns", lambda: running.clock.now * 1_000_000)
    running.client("ann").put("digest", HELLO)
    nightly = Schedule("", "garden/nightly", "0 9 * * *", "garden", "water")
    register(running.store, [nightly], "")
    return running


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command. Return its exit code and its output."""
    capsys.readouterr()
    code = main(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.slow
@pytest.mark.parametrize("block", SHOWN)
def test_each_command_that_is_shown_is_done(
    at_work: Product, capsys: pytest.CaptureFixture[str], block: str
) -> None:
    assert run(capsys, "migrate")[0] == 0
    at_work.tick()
    for command in commands(block):
        code, _, err = run(capsys, *command)
        assert (code, "Traceback" in err) == (0, False), (command, err)


def test_each_command_is_shown() -> None:
    """Not shown here are the local stack, which `make run` starts, the recovery, which has a page,
    the redrive, which needs a queue of AWS, and the commands that make and build a repository.
    """
    shown = {command[0] for block in SHOWN for command in commands(block)}
    (known,) = [
        action.choices
        for action in _parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    others = {"local", "recover", "redrive", "layer", "new", "package", "token"}
    assert set(known) - shown == others


def test_j07_an_operator_sees_what_happened_and_who_did_it(
    at_work: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("schedules", "pause", "digest", "--user", "ann", "--why", "für die Nacht: 100 %")
    assert run(capsys, *asked)[0] == 0
    _, out, _ = run(capsys, "operations", "--json")
    (found,) = json.loads(out)
    assert (found["verb"], found["why"], found["user"]) == (
        "pause_schedule",
        "für die Nacht: 100 %",
        "ann",
    )
    at_work.store.index.upsert(IndexRow("bob", "broken", "75 * * * *", None, NINE))
    at_work.clock.now = NINE
    at_work.store.index.claim_due(NINE)
    _, out, _ = run(capsys, "overview")
    assert re.search(r"^unreadable +1 ", out, re.MULTILINE)
    _, out, _ = run(capsys, "unreadable")
    assert "bob" in out
    code, _, err = run(capsys, "schedules", "mend", "broken", "--user", "bob")
    assert (code, "still cannot be read" in err) == (1, True)


def test_j07_an_overview_says_what_is_wrong_and_the_next_command(
    at_work: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator at 3 a.m. pastes the commands that it names, as they stand."""
    running = at_work
    running.tick()
    _, out, _ = run(capsys, "overview")
    assert out.splitlines()[0] == "Nothing is wrong, as far as these numbers tell."
    running.store.index.upsert(IndexRow("bob", "broken", "75 * * * *", None, NINE))
    running.clock.now = NINE
    running.store.index.claim_due(NINE)
    running.store.pauses.pause("flow:billing", note="the bank is down", by="ops", now=NINE)
    late = Worker("tick_9", "tick", NINE - 2_000, NINE, counts={"claimed": 9, "failed": 2})
    running.store.shelf.report(replace(late, ended_at=NINE - 1_000))
    running.store.shelf.report(replace(late, id="tick_8", started_at=NINE - 60_000))
    Progress(NINE, NINE, verified_faults=1_234).keep(running.store)
    running.store.index.upsert(IndexRow("ann", "late", "0 9 * * *", None, NINE))
    running.clock.now = NINE + 200_000
    url = running.stack.server.url
    code, out, _ = run(capsys, "overview", "--url", url)
    wrong = [line for line in out.splitlines() if line.startswith("WRONG")]
    assert code == 0
    assert [re.split(r"[:,]", line.removeprefix("WRONG  "))[0] for line in wrong] == [
        "No tick has ended for 3 minutes",
        "Rows and jobs due for more than 150 s",
        "Ticks that never ended",
        "Deliveries of the last ticks that failed",
        "Occurrences that died in the last day",
        "Rows that cannot be read",
        "Fire times without an outcome",
    ]
    assert f"Paused: flow:billing from {iso(NINE)} until a resume, by ops: the bank is down." in out
    for line in wrong[:-1]:
        command = shlex.split(line.rpartition("? ")[2])
        assert command[-2:] == ["--url", url]
        assert run(capsys, *command[1:])[0] in (0, 1), command
    assert wrong[-1].endswith("Which? duetick verify"), "it has no --url"


def test_j12_doctor_says_that_no_tick_has_ended_for_a_while(
    at_work: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    at_work.tick()
    assert run(capsys, "doctor")[0] == 0
    at_work.clock.now += 181_000
    code, out, _ = run(capsys, "doctor")
    assert code == 1
    assert "none has ended for 180 s; the last one began 181 s ago and ended 181 s ago. Is" in out


def test_j07_doctor_says_of_each_trouble_what_to_do_next(
    at_work: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command that it names runs as it stands, once the names of a schedule are filled in."""
    running = at_work
    url = running.stack.server.url
    _, out, _ = run(capsys, "doctor", "--url", url)
    assert "not ok  ticks: none has reported in eight days" in out
    running.tick()
    code, out, _ = run(capsys, "doctor", "--url", url)
    assert (code, "not ok" in out) == (0, False), out
    running.store.index.upsert(IndexRow("bob", "broken", "75 * * * *", None, NINE))
    running.clock.now = NINE
    running.store.index.claim_due(NINE)
    running.store.index.upsert(IndexRow("ann", "late", "0 9 * * *", None, NINE))
    running.clock.now = NINE + 200_000
    audit(running.store, running.clock.now)
    find_gone(running.store, Flows({}), running.clock.now)
    Progress(NINE, NINE, verified_faults=3).keep(running.store)
    code, out, err = run(capsys, "doctor", "--url", url)
    wrong = [line for line in out.splitlines() if line.startswith("not ok")]
    assert [re.split("[:(]", line.removeprefix("not ok  "))[0] for line in wrong] == [
        "ticks",
        "rows due",
        "rows",
        "flows",
        "deaths",
        "verification",
    ]
    assert (code, err) == (1, f"duetick: 6 of {len(out.splitlines())} are not ok.\n")
    named = re.findall(r"`duetick (.*?)`", out)
    assert len(named) == 7
    for command in named:
        asked = shlex.split(command.replace("KEY", "broken").replace("USER", "bob"))
        assert run(capsys, *asked)[0] in (0, 1), command
    assert all(url in one for one in named if not one.startswith("verify"))


def test_j07_doctor_looks_at_a_store_as_at_an_api(
    at_work: Product, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"sqlite:///{tmp_path}/it.db"
    run(capsys, "migrate", "--store", address)
    store = open_store(address, clock=at_work.clock)
    store.schedules.put(Schedule("ann", "k", "@daily", "reminders", "remind"))
    store.index.upsert(IndexRow("bob", "broken", "75 * * * *", None, NINE))
    store.index.claim_due(NINE)
    store.index.remove("ann", "k")
    audit(store, NINE)
    store.close()
    _, out, _ = run(capsys, "doctor", "--store", address)
    assert "not ok  ticks: none has reported" in out
    assert "`duetick unreadable --stack NAME` names them" in out
    assert f"`duetick check --store {address}` names them" in out


def test_j07_an_overview_names_the_stack_in_each_command() -> None:
    found = {
        "restored": {"witnessed": "2026-12-01T08:07:00Z", "foundAt": "2026-12-01T08:30:00Z"},
        "ticks": {"silent": True, "silentAfter": 180, "last": []},
        "verified": {"faults": 1, "faultsSince": 0},
        "counted": {"at": "2026-12-01T09:00:00Z", "unindexed": 0, "stale": 2, "overdue": 0},
        "gone": {"at": "2026-12-01T09:00:00Z", "count": 2, "first": [{"flow": "billing"}]},
        "lateAfter": 150,
    } | {name: {"count": 1_000, "more": True} for name in ("late", "dead", "unreadable")}
    lines = wrong_lines(found, " --stack duetick")
    assert len(lines) == 8
    assert all(line.endswith(" --stack duetick") for line in lines)
    assert "backup of before 2026-12-01T08:07:00Z" in lines.pop(0)
    assert all(": 1,000 or more. " in line for line in lines[1:4])
    assert "is not deployed: 2 (billing), at 2026-12-01T09:00:00Z." in lines[4]
    assert "require: 2, at 2026-12-01T09:00:00Z. Which? duetick check" in lines[5]


def test_t12_an_overview_says_that_deliveries_are_late_and_that_a_claim_raised() -> None:
    slow = {"latenessMilliseconds": 236_000, "state": "ended", "counts": {"left": 84}}
    broken = {"latenessMilliseconds": 0, "state": "ended", "counts": {"raised": 1}}
    none = {"count": 0, "more": False}
    found = {
        "restored": None,
        "ticks": {"silent": False, "silentAfter": 180, "last": [slow, broken]},
        "verified": {"faults": 0, "faultsSince": 0},
        "counted": None,
        "gone": None,
        "lateAfter": 150,
        **dict.fromkeys(("late", "dead", "unreadable"), none),
    }
    raised, late = wrong_lines(found, "")
    assert raised.startswith("WRONG  Ticks that could not claim, of the last 2: 1.")
    assert late.startswith(
        "WRONG  The last ticks delivered up to 236 s late, and the last one left"
    )
    on_time = {**slow, "latenessMilliseconds": 150_000, "counts": {}}
    found["ticks"] = {"silent": False, "silentAfter": 180, "last": [on_time]}
    assert wrong_lines(found, "") == ["Nothing is wrong, as far as these numbers tell."]


def test_i10_an_operator_reads_how_to_update_a_schema(
    at_work: Product, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def outdated(*_: object, **__: object) -> None:
        raise SchemaOutdated(f"No usable schema is there. {MIGRATE}")

    monkeypatch.setattr(at_work.store.shelf, "tally", outdated)
    code, _, err = run(capsys, "overview")
    assert (code, MIGRATE in err) == (1, True)
    assert MIGRATE in run(capsys, "doctor")[1]


def test_j12_an_operator_sees_the_last_ticks_and_who_has_a_lock(
    at_work: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "workers")[1].startswith("No tick or run in the background has reported")
    assert run(capsys, "locks")[1] == "Nobody has a lock.\n"
    at_work.tick()
    at_work.store.shelf.acquire(NamedLock("purge", "me", NINE, NINE + 60_000), NINE)
    _, out, _ = run(capsys, "workers", "--json", "--limit", "1")
    assert [(one["kind"], one["state"]) for one in json.loads(out)] == [("tick", "ended")]
    _, out, _ = run(capsys, "locks")
    assert re.search(r"^purge +held +me ", out, re.MULTILINE)
    for verb in ("workers", "locks"):
        assert run(capsys, verb, "--store", "sqlite://", "--url", "http://x")[0] == 2


def test_j07_a_users_token_opens_nothing_of_operators(
    at_work: Product, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DUETICK_OPERATOR", at_work.stack.token)
    code, out, err = run(capsys, "overview")
    assert (code, out) == (1, "")
    assert "This is a user's token" in err
    assert "unset DUETICK_TOKEN and DUETICK_OPERATOR" in err


@pytest.mark.usefixtures("at_work")
def test_a_user_is_erased_only_by_a_second_word(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "users", "erase", "ann")
    assert (code, "--yes" in err) == (2, True)
    _, out, _ = run(capsys, "users", "export", "ann")
    assert [one["key"] for one in json.loads(out)["schedules"]] == ["digest"]


def test_o01_what_is_done_to_a_store_is_recorded_with_whoever_is_logged_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/it.db"
    assert run(capsys, "migrate", "--store", url, "--why", "first")[0] == 0
    store = open_store(url)
    store.schedules.put(Schedule("ann", "k", "@daily", "reminders", "remind"))
    store.index.remove("ann", "k")
    code, out, err = run(capsys, "check", "--store", url)
    assert (code, "unindexed  ann   k" in out, "1 differences" in err) == (1, True, True)
    assert run(capsys, "rebuild", "--store", url)[0] == 0
    assert store.index.get("ann", "k") is None
    code, out, _ = run(capsys, "rebuild", "--store", url, "--yes", "--json", "--why", "drift")
    assert (code, json.loads(out)["mended"]) == (0, 1)
    assert store.index.get("ann", "k")
    found = store.shelf.operations(NEWEST, 10)
    assert [(one.verb, one.why, one.outcome) for one in found] == [
        ("rebuild", "drift", "done"),
        ("migrate", "first", "done"),
    ]
    assert {one.who for one in found} == {whoever()}
    store.close()


def test_i13_check_says_what_mends_each_kind_of_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/it.db"
    run(capsys, "migrate", "--store", url)
    store = open_store(url)
    store.index.upsert(IndexRow("bob", "broken", "75 * * * *", None, NINE))
    store.index.claim_due(NINE)
    code, _, err = run(capsys, "check", "--store", url)
    assert (code, "1 cannot be read: put each with a cron" in err) == (1, True)
    assert "mends them" not in err
    store.schedules.put(Schedule("ann", "k", "@daily", "reminders", "remind"))
    store.index.remove("ann", "k")
    _, _, err = run(capsys, "check", "--store", url)
    assert f"`duetick rebuild --yes --store {url}` mends them; but 1 cannot be read: put" in err
    code, out, err = run(capsys, "rebuild", "--store", url, "--yes", "--json")
    assert (code, json.loads(out)["mended"]) == (1, 1)
    assert "1 cannot be read and stay: put each with a cron" in err
    store.close()


def test_doctor_says_of_a_store_that_was_never_migrated_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    code, out, _ = run(capsys, "doctor", "--store", url)
    assert code == 1
    assert f"duetick migrate --store {url}` makes" in out
    (tmp_path / "new.db").touch()
    code, out, _ = run(capsys, "doctor", "--store", url)
    assert code == 1
    assert f"duetick migrate --store '{url}'" in out
    run(capsys, "migrate", "--store", url)
    code, out, err = run(capsys, "doctor", "--store", url)
    assert (code, err) == (0, "")
    assert all(line.startswith("ok  ") for line in out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--store", "postgresql://u:hunter22@127.0.0.1:1/d"], "not ok  database"),
        (["--store", "mysql://x"], "not ok  address"),
        (["--url", "http://127.0.0.1:1"], "not ok  operator"),
    ],
)
def test_doctor_says_what_is_not_ok(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.delenv("DUETICK_OPERATOR", raising=False)
    code, out, err = run(capsys, "doctor", *arguments)
    assert (code, says in out) == (1, True)
    assert "hunter22" not in out + err


def test_j07_whoever_mends_a_static_schedule_is_told_how(
    at_work: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    del at_work
    code, _, err = run(capsys, "schedules", "mend", "reminders/nightly")
    assert code == 2
    assert "rebuild --yes" in err
