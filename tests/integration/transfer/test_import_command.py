"""`duetick import` and `duetick export` at a terminal, beside a local stack."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from duetick.cli.main import main
from duetick.client import Fields

from tests.integration.api.asking import HELLO
from tests.integration.local_product import Product, set_again

CRONTAB = """\
CRON_TZ=Europe/Berlin
*/5 * * * * /opt/five
0 9 * * 1-5 /opt/nine --password=sesame
@reboot /opt/boot
"""
RUNS = ("--flow", "reminders", "--action", "remind", "--input", '{"text": "{command}"}')


class Terminal:
    """The command, with the operator's token and a user's."""

    def __init__(self, running: Product, printed: pytest.CaptureFixture[str], folder: Path) -> None:
        self._running = running
        self._printed = printed
        self.folder = folder
        self.crontab = folder / "crontab.txt"
        self.crontab.write_text(CRONTAB)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command. Return its exit code and its output."""
        self._printed.readouterr()
        stack = self._running.stack
        code = main([*arguments, "--url", stack.server.url, "--token", stack.token])
        printed = self._printed.readouterr()
        return code, printed.out, printed.err

    def brings(self, *more: str, form: str = "crontab", file: Path | None = None) -> dict[str, Any]:
        """Return the document of an import."""
        runs = RUNS if form == "crontab" else ()
        _, out, err = self.run("import", form, str(file or self.crontab), *runs, "--json", *more)
        assert out.startswith("{"), err
        found: dict[str, Any] = json.loads(out)
        return found


@pytest.fixture
def terminal(
    running: Product,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Terminal:
    """A terminal beside the local stack."""
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    monkeypatch.setattr(
        "duetick.cli.transfer.importing.time.time_ns", lambda: running.clock.now * 1_000_000
    )
    return Terminal(running, capsys, tmp_path)


def kinds(document: dict[str, Any]) -> dict[str, int]:
    """Count the parts of the source by verdict."""
    found: dict[str, int] = document["counts"]
    return found


def test_a_dry_run_reports_each_line_and_stores_nothing(
    running: Product, terminal: Terminal
) -> None:
    code, out, err = terminal.run("import", "crontab", str(terminal.crontab), *RUNS)
    assert code == 1, "an item is refused"
    assert "2 would be new, 1 refused, 1 no schedule. --yes does it." in out
    assert "1 were refused" in err
    assert "nothing here boots" in out
    assert "sesame" not in out
    assert list(running.client().list()) == []


def test_an_import_makes_schedules_and_a_second_one_doubles_nothing(
    running: Product, terminal: Terminal
) -> None:
    assert kinds(terminal.brings("--yes"))["new"] == 2
    made = {one["key"]: one for one in running.client().list()}
    assert {(one["cron"], one["timezone"]) for one in made.values()} == {
        ("*/5 * * * *", "Europe/Berlin"),
        ("0 9 * * 1-5", "Europe/Berlin"),
    }
    again = terminal.brings("--yes")
    assert kinds(again) == {"same": 2, "refused": 1, "no schedule": 1}
    assert {one["key"]: one for one in running.client().list()} == made


def test_what_changes_at_the_source_changes_here_and_keeps_its_key(
    running: Product, terminal: Terminal
) -> None:
    terminal.brings("--yes")
    before = {one["key"]: one["cron"] for one in running.client().list()}
    terminal.crontab.write_text(CRONTAB.replace("*/5", "*/10"))
    assert kinds(terminal.brings())["changed"] == 1
    assert kinds(terminal.brings("--yes"))["changed"] == 1
    after = {one["key"]: one["cron"] for one in running.client().list()}
    assert after.keys() == before.keys()
    assert sorted(after.values()) == ["*/10 * * * *", "0 9 * * 1-5"]
    assert kinds(terminal.brings("--yes"))["same"] == 2


def test_what_is_changed_here_stays_until_the_source_changes_too(
    running: Product, terminal: Terminal
) -> None:
    terminal.brings("--yes")
    (key,) = [one["key"] for one in running.client().list() if one["cron"] == "*/5 * * * *"]
    running.client().change(key, {"cron": "*/7 * * * *"})
    assert kinds(terminal.brings("--yes"))["edited"] == 1
    assert running.client().get(key).body["cron"] == "*/7 * * * *"
    terminal.crontab.write_text(CRONTAB.replace("*/5", "*/10"))
    (line,) = [one for one in terminal.brings("--yes")["lines"] if one["verdict"] == "changed"]
    assert "changed here too" in line["how"]
    assert running.client().get(key).body["cron"] == "*/10 * * * *"


def test_a_pause_here_outlives_a_change_of_the_source_and_one_of_the_source_ends_with_it(
    running: Product, terminal: Terminal
) -> None:
    file = terminal.folder / "given.jsonl"
    rows: list[Fields] = [
        {"key": "mine", "cron": "0 9 * * *", **_work()},
        {"key": "theirs", "cron": "0 9 * * *", "enabled": False, **_work()},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    terminal.brings("--yes", form="jsonl", file=file)
    running.client().pause("mine")
    later = [{**one, "cron": "0 10 * * *", "enabled": True} for one in rows]
    file.write_text("\n".join(map(json.dumps, later)))
    terminal.brings("--yes", form="jsonl", file=file)
    states = {one["key"]: (one["cron"], one["state"]) for one in running.client().list()}
    assert states == {"mine": ("0 10 * * *", "paused"), "theirs": ("0 10 * * *", "active")}


def _work() -> Fields:
    return {name: HELLO[name] for name in ("flow", "action", "input")}


def test_what_is_gone_from_the_source_is_told_and_deleted_only_when_asked(
    running: Product, terminal: Terminal
) -> None:
    terminal.brings("--yes")
    terminal.crontab.write_text("*/5 * * * * /opt/five\n")
    more = ("--timezone", "Europe/Berlin")
    assert kinds(terminal.brings("--yes", *more)) == {"same": 1, "gone": 1}
    assert kinds(terminal.brings("--remove", *more)) == {"same": 1, "removed": 1}
    assert len(list(running.client().list())) == 2
    assert kinds(terminal.brings("--yes", "--remove", *more)) == {"same": 1, "removed": 1}
    assert len(list(running.client().list())) == 1


def test_nothing_is_deleted_while_an_item_is_refused_for_it_may_be_that_one(
    running: Product, terminal: Terminal
) -> None:
    terminal.brings("--yes")
    terminal.crontab.write_text(CRONTAB.replace("*/5", "75"))
    assert kinds(terminal.brings("--yes", "--remove"))["gone"] == 1
    assert len(list(running.client().list())) == 2


def test_a_key_that_somebody_else_has_is_never_overwritten_unless_it_is_asked(
    running: Product, terminal: Terminal
) -> None:
    file = terminal.folder / "given.jsonl"
    file.write_text(json.dumps({"key": "hello", "cron": "0 10 * * *", **_work()}))
    running.client().put("hello", HELLO)
    (line,) = terminal.brings("--yes", form="jsonl", file=file)["lines"]
    assert line["verdict"] == "refused"
    assert "--prefix" in line["how"]
    assert running.client().get("hello").body["cron"] == HELLO["cron"]
    assert kinds(terminal.brings("--yes", "--prefix", "old/", form="jsonl", file=file)) == {
        "new": 1
    }
    for more in ((), ("--yes",)):
        found = terminal.brings(*more, "--take-over", "--source", "b", form="jsonl", file=file)
        assert kinds(found) == {"new": 1}
    assert running.client().get("hello").body["cron"] == "0 10 * * *"
    again = terminal.brings("--yes", "--source", "b", form="jsonl", file=file)
    assert kinds(again) == {"same": 1}


def test_the_api_refuses_what_it_would_refuse_at_any_put_in_the_dry_run_already(
    terminal: Terminal,
) -> None:
    file = terminal.folder / "given.jsonl"
    rows = [
        {"key": "a", "cron": "0 9 * * *", "flow": "none", "action": "x"},
        {"key": "b", "cron": "at(2020-01-01T09:00:00)", **_work()},
        {"key": "c", "cron": "0 9 * * *", **_work(), "policies": {"spread": -1}},
        {"key": "c", "cron": "0 9 * * *", **_work()},
        {"key": "d", "cron": "0 9 * * *", "colour": "red", **_work()},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    _, out, _ = terminal.run("import", "jsonl", str(file), "--json")
    told = [one["how"] for one in json.loads(out)["lines"]]
    for word in ("flow", "future", "spread", "that of", "colour"):
        assert any(word in (how or "") for how in told), word
    assert kinds(json.loads(out)) == {"refused": 5}


def test_an_operator_imports_for_one_user_and_for_all(running: Product, terminal: Terminal) -> None:
    assert kinds(terminal.brings("--yes", "--user", "ann"))["new"] == 2
    file = terminal.folder / "all.csv"
    with file.open("w", newline="") as text:
        rows = csv.writer(text)
        rows.writerow(["user", "key", "cron", "flow", "action", "input"])
        for user in ("bob", "cem"):
            rows.writerow([user, "k", "0 9 * * *", "reminders", "remind", '{"text": "x"}'])
    code, out, err = terminal.run("import", "csv", str(file), "--all-users", "--yes")
    assert (code, "2 new" in out) == (0, True), err
    assert [one["key"] for one in running.client("cem").list()] == ["k"]
    code, out, _ = terminal.run("import", "csv", str(file), "--all-users", "--yes")
    assert "2 stays" in out
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:2]))
    code, out, _ = terminal.run("import", "csv", str(file), "--all-users", "--yes", "--remove")
    assert "1 stays, 1 removed" in out
    assert list(running.client("cem").list()) == []


def test_a_user_may_not_name_users_and_an_operator_has_to(terminal: Terminal) -> None:
    file = terminal.folder / "all.jsonl"
    file.write_text(json.dumps({"user": "bob", "key": "k", "cron": "@daily", **_work()}))
    assert "names a user" in terminal.run("import", "jsonl", str(file))[2]
    assert (
        "names no user"
        in terminal.run("import", "crontab", str(terminal.crontab), *RUNS, "--all-users")[2]
    )
    code, out, _ = terminal.run("import", "jsonl", str(file), "--user", "ann")
    assert (code, "for ann" in out) == (1, True)


def test_an_import_of_a_users_own_waits_for_the_limit_of_the_minute(
    running: Product, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_WRITES", "2")
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        running.clock.now += round(seconds * 1_000)

    monkeypatch.setattr("duetick.cli.transfer.importing.time.sleep", sleep)
    file = terminal.folder / "many.jsonl"
    rows = [{"key": f"k{n}", "cron": "@daily", **_work()} for n in range(5)]
    file.write_text("\n".join(map(json.dumps, rows)))
    code, out, err = terminal.run("import", "jsonl", str(file), "--yes")
    assert (code, "5 new" in out) == (0, True), (out, err)
    assert waited == [60, 60]
    assert "it goes on in 60 s" in err


def test_an_export_of_all_is_read_back_whole_on_another_stack(
    running: Product, terminal: Terminal
) -> None:
    running.client("ann").put("a", HELLO | {"labels": {"team": "x"}, "policies": {"spread": 60}})
    running.client("bob").put("b", HELLO | {"cron": "rate(36 hours)"})
    file = terminal.folder / "out.jsonl"
    code, _, err = terminal.run("export", "jsonl", "--all-users", "--output", str(file))
    assert (code, "2 schedules, 2 lines" in err) == (0, True), err
    assert terminal.run("export", "jsonl", "--all-users", "--output", str(file))[0] == 1
    before = {
        name: running.operator(name).get(key).body for name, key in (("ann", "a"), ("bob", "b"))
    }
    for name in before:
        running.operator(name).erase()
    assert terminal.run("import", "jsonl", str(file), "--all-users", "--yes")[0] == 0
    same = ("cron", "timezone", "flow", "action", "input", "policies", "enabled")
    for name, key in (("ann", "a"), ("bob", "b")):
        after = running.operator(name).get(key).body
        assert {part: dict(after)[part] for part in same} == {
            part: dict(before[name])[part] for part in same
        }
    assert running.operator("ann").get("a").body["labels"]["team"] == "x"


@pytest.mark.parametrize("form", ["crontab", "eventbridge", "pgboss", "apscheduler", "csv"])
def test_each_form_says_on_stderr_what_it_cannot_say(
    running: Product, terminal: Terminal, form: str
) -> None:
    running.client().put("a", HELLO | {"policies": {"maxRuns": 3}})
    code, out, err = terminal.run("export", form)
    assert code == 0
    assert out.count("\n") >= 1
    assert ("a: " in err and "maxRuns" in err) is (form != "csv")


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_tells_of_a_pause_that_would_never_end_after_an_import(
    running: Product, terminal: Terminal, form: str
) -> None:
    client = running.client()
    client.put("a", HELLO)
    client.put("b", HELLO)
    client.pause("a", until="2026-12-05T00:00:00Z")
    client.pause("b")
    code, _, err = terminal.run("export", form)
    assert code == 0
    assert "a: its pause ends at 2026-12-05T00:00:00Z" in err
    assert "b: " not in err


def test_a_spreadsheets_mark_before_the_first_column_is_none_of_its_name(
    terminal: Terminal,
) -> None:
    file = terminal.folder / "sheet.csv"
    line = 'a,0 9 * * *,reminders,remind,"{""text"": ""hi""}"'
    file.write_text(f"key,cron,flow,action,input\n{line}\n", encoding="utf-8-sig")
    assert kinds(terminal.brings("--yes", form="csv", file=file)) == {"new": 1}


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("import", "crontab"), "Name the files"),
    (("import", "crontab", "none.txt"), "none.txt cannot be read"),
    (("import", "crontab", "x", "--timezone", "Berlin"), "Europe/Berlin"),
    (("import", "crontab", "x", "--flow", "a"), "belong together"),
    (("import", "pgboss"), "--from"),
    (("import", "pgboss", "x", "--from", "sqlite:///y"), "Either --from, or files"),
    (("import", "csv", "x", "--all-users", "--user", "a"), "Either --user or --all-users"),
    (("export", "csv", "--all-users", "--user", "a"), "Either --user or --all-users"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_wrong_usage_says_what_is_right(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(terminal.folder)
    (terminal.folder / "x").write_text("cron\n")
    code, _, err = terminal.run(*words)
    assert code in (1, 2)
    assert said in err
    assert "Traceback" not in err
