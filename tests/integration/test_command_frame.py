"""J-07: the output of the command, the stack that it finds, and its exit code."""

import json
import os
import stat
from contextlib import closing
from pathlib import Path

import pytest
from duetick.cli import local_note
from duetick.cli.local_note import LocalNote
from duetick.cli.main import main
from duetick.cli.showing import field, show_many, show_one, table
from duetick.cli.store_address import from_anywhere
from duetick.domain.occurrence import IndexRow
from duetick.stores import open_store

ROWS = [["a", "one two three four"], ["日本", "x"]]
COLUMNS = (field("KEY", "key"), field("NOTE", "note"))


def test_columns_are_aligned_also_with_wide_characters() -> None:
    assert table(["K", "NOTE"], ROWS, None) == [
        "K     NOTE",
        "a     one two three four",
        "日本  x",
    ]


def test_a_narrow_terminal_folds_the_widest_column() -> None:
    assert table(["K", "NOTE"], [["a", "one two three four"]], 15) == [
        "K  NOTE",
        "a  one two",
        "   three four",
    ]


def test_a_terminal_that_is_far_too_narrow_shows_blocks() -> None:
    long = ["x" * 30, "y" * 30]
    assert table(["A", "B"], [long, long], 18)[:4] == [
        f"A: {long[0]}",
        f"B: {long[1]}",
        "",
        (f"A: {long[0]}"),
    ]


def test_a_list_is_one_document_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    items: list[dict[str, object]] = [{"key": "a", "note": "ü"}, {"key": "b", "note": None}]
    show_many(iter(items), COLUMNS, as_json=True)
    assert json.loads(capsys.readouterr().out) == items
    show_many([], COLUMNS, as_json=True)
    assert json.loads(capsys.readouterr().out) == []


def test_a_list_says_that_there_is_more_where_it_is_in_nobodys_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    items = [{"key": str(number), "note": ""} for number in range(3)]
    show_many(iter(items), COLUMNS, as_json=False, limit=2)
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["KEY  NOTE", "0    -", "1    -"]
    assert "--limit 20 shows more" in printed.err
    show_many(iter(items), COLUMNS, as_json=False, limit=3)
    assert capsys.readouterr().err == ""


def test_v01_nothing_that_is_shown_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_one({"note": "\x1b[31mred", "count": 12_345}, as_json=False)
    show_many([{"key": "\x1b[2J"}], COLUMNS, as_json=False)
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "12,345" in printed


def test_a_local_stack_is_found_from_its_folder_and_below(tmp_path: Path) -> None:
    note = LocalNote("http://127.0.0.1:8080", "user", "operator", os.getpid())
    path = local_note.leave(tmp_path, note)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    below = tmp_path / "layers" / "flows"
    below.mkdir(parents=True)
    assert local_note.find(tmp_path) == local_note.find(below) == [note]
    path.unlink()
    assert local_note.find(below) == []


def test_a_command_that_reads_a_store_takes_that_of_the_local_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "its own.db"
    with closing(open_store(f"sqlite:///{file}")) as store:
        store.migrate()
        store.index.upsert(IndexRow("ann", "digest", "0 9 * * *", None, 1))
    monkeypatch.chdir(tmp_path)
    address = from_anywhere("sqlite:///its own.db")
    assert address == f"sqlite:///{file}"
    stack = LocalNote("http://127.0.0.1:8080", "u", "o", os.getpid(), address)
    local_note.leave(tmp_path, stack)
    below = tmp_path / "layers"
    below.mkdir()
    monkeypatch.chdir(below)
    assert main(["check"]) == 0
    assert "1 schedules, 0 differences" in capsys.readouterr().err
    local_note.leave(tmp_path, stack._replace(url="http://127.0.0.1:2", store="sqlite://"))
    assert main(["check"]) == 2
    assert "Several local stacks run here" in capsys.readouterr().err
    (tmp_path / ".cache" / "local-stack-8080.json").unlink()
    assert main(["check"]) == 2
    assert "keeps its schedules in memory" in capsys.readouterr().err


@pytest.mark.parametrize("left", ["", "{}", '{"url": 1}', "gone"])
def test_a_note_that_is_no_stacks_any_more_is_passed_over(tmp_path: Path, left: str) -> None:
    local_note.leave(tmp_path, LocalNote("http://127.0.0.1:8080", "u", "o", 2**22 + 1))
    if left != "gone":
        (tmp_path / ".cache" / "local-stack-8080.json").write_text(left)
    assert local_note.find(tmp_path) == []


def test_which_of_two_local_stacks_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DUETICK_URL", "DUETICK_TOKEN", "DUETICK_OPERATOR"):
        monkeypatch.delenv(name, raising=False)
    for port in (1, 2):
        local_note.leave(tmp_path, LocalNote(f"http://127.0.0.1:{port}", "u", "o", os.getpid()))
    assert main(["overview"]) == 2
    assert "http://127.0.0.1:1, http://127.0.0.1:2" in capsys.readouterr().err
    assert main(["overview", "--url", "http://127.0.0.1:1"]) == 1
    assert "Is the address" in capsys.readouterr().err


def test_nobody_is_asked_as_an_operator_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DUETICK_URL", "DUETICK_TOKEN", "DUETICK_OPERATOR"):
        monkeypatch.delenv(name, raising=False)
    for command in ("overview", "operations", "unreadable"):
        assert main([command]) == 1
        assert "No local stack runs in this folder or above it" in capsys.readouterr().err
    assert main(["schedules", "list", "--user", "a", "--all-users"]) == 2
    assert main(["overview", "--stack", "a", "--url", "b"]) == 2


def test_j07_a_store_that_is_not_there_is_told_with_what_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("check", "verify", "rebuild"):
        assert main([command]) == 1
        assert "There is no file" in capsys.readouterr().err
    assert main(["migrate"]) == 0
    for command in ("check", "verify", "rebuild"):
        assert main([command]) == 0, capsys.readouterr().err
    postgres = "postgresql://u:hunter22@127.0.0.1:1/d"
    assert main(["check", "--store", postgres]) == 1
    told = capsys.readouterr().err
    assert ("Is its server up" in told, "hunter22" in told) == (True, False)


def test_something_unexpected_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError("the moon")

    monkeypatch.setattr("duetick.cli.upcoming.previews", break_down)
    monkeypatch.delenv("DUETICK_DEBUG", raising=False)
    assert main(["upcoming", "@daily"]) == 1
    told = capsys.readouterr().err
    assert told == "duetick: unexpected: RuntimeError: the moon. DUETICK_DEBUG=1 shows where.\n"


def test_upcoming_needs_no_server_and_points_out_the_clocks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["upcoming", "30 2 * * *", "--timezone", "Europe/Berlin"]
    assert main([*asked, "--after", "2026-03-27T12:00:00Z", "--count", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["utc"] for one in found] == [
        "2026-03-28T01:30:00Z",
        "2026-03-29T01:00:00Z",
        "2026-03-30T00:30:00Z",
    ]
    assert "clocks go forward" in found[1]["clock"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["75 * * * *"], "'75' is outside 0-59"),
        (["@daily", "--timezone", "PST"], "is no IANA zone"),
        (["0 0 30 2 *"], "never"),
        (["@daily", "--after", "soon"], "expected a time like"),
    ],
)
def test_upcoming_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["upcoming", *arguments]) == 1
    printed = capsys.readouterr()
    assert (says in printed.err, printed.out) == (True, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["schedules", "list", "--user", ""],
        ["schedules", "--user", "", "delete", "digest"],
        ["schedules", "pause", "digest", "--flow", ""],
        ["export", "csv", "--user", ""],
        ["jobs", "list", "--user="],
        ["backfill", "list", "--user", ""],
        ["forecast", "--flow", ""],
        ["operations", "--user", ""],
    ],
)
def test_j07_an_empty_name_is_not_taken_for_none(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """A script with an unset variable would reach its own schedules, or everybody's."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    option = next(one.rstrip("=") for one in arguments if one.startswith("--"))
    expected = f"argument {option}: expected a name, got ''; leave the option out if you mean none"
    assert printed.err.splitlines()[-1].endswith(expected)


@pytest.mark.parametrize("command", ["doctor", "check", "verify", "purge", "recover"])
def test_j07_a_misspelled_address_makes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """An empty store in its place reads as if the schema of the right one were gone."""
    file = tmp_path / "duetick.bd"
    assert main([command, "--store", f"sqlite:///{file}"]) == 1
    printed = capsys.readouterr()
    assert f"There is no file {file}." in printed.out + printed.err
    assert not file.exists()
