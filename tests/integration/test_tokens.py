"""The key of the local stacks of a folder: a token that was pasted once holds."""

import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from duetick.cli.local_note import LocalNote, leave
from duetick.cli.main import main
from duetick.cli.problem import CliProblem
from duetick.cli.tokens import find_key, keep_key, mint, operator_of, verify

HOUR = 3_600


def test_the_key_of_a_folder_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    key = keep_key(tmp_path)
    assert keep_key(tmp_path) == key
    (kept,) = (tmp_path / ".cache").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    (tmp_path / "other").mkdir()
    assert keep_key(tmp_path / "other") != key


def test_starts_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as starts:
        assert len({*starts.map(keep_key, [tmp_path] * 8)}) == 1
    assert [path.name for path in (tmp_path / ".cache").iterdir()] == ["local-key"]


def test_a_damaged_key_is_told_and_not_replaced(tmp_path: Path) -> None:
    keep_key(tmp_path)
    (tmp_path / ".cache/local-key").write_text("abc")
    with pytest.raises(CliProblem, match=r"local-key is no key of a local stack\. Delete it"):
        keep_key(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return the exit code and output of `duetick token`."""
    capsys.readouterr()
    code = main(["token", *words])
    printed = capsys.readouterr()
    return code, printed.out.strip(), printed.err


def test_the_command_mints_a_token_of_any_user_for_the_stacks_of_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = keep_key(tmp_path)
    (tmp_path / "flows").mkdir()
    monkeypatch.chdir(tmp_path / "flows")
    now = int(time.time())
    code, token, told = said(capsys, "--user", "bob", "--hours", "2")
    claims = verify(key, token, now)
    assert (code, claims and claims["sub"]) == (0, "bob")
    assert verify(key, token, now + 3 * HOUR) is None
    assert "A token of bob, until " in told
    assert f"for the local stacks of {tmp_path}." in told
    own = verify(key, said(capsys)[1], now)
    assert own
    assert own["sub"] == "you"
    assert said(capsys, "--operator")[1] == operator_of(key)


def test_a_token_is_of_a_user_who_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_key(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert said(capsys, "--user", "")[0] == 2
    code, out, told = said(capsys, "--user", "a/b")
    assert (code, out) == (1, "")
    assert "a slash" in told


def test_where_no_stack_has_run_there_is_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_key(tmp_path) is None
    code, out, told = said(capsys)
    assert (code, out) == (1, "")
    assert "No local stack has run in this folder or above it; `make run` starts one." in told


def test_what_tells_a_stack_and_what_tells_a_key_stand_beside_each_other(tmp_path: Path) -> None:
    key = keep_key(tmp_path)
    leave(tmp_path, LocalNote("http://127.0.0.1:8080", "t", operator_of(key), 1))
    assert find_key(tmp_path) == (key, tmp_path)


def test_a_token_of_another_folder_opens_nothing(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    here, there = (keep_key(tmp_path / name) for name in ("here", "there"))
    end = int(time.time()) + HOUR
    assert verify(here, mint(there, "ann", end), end - 1) is None
