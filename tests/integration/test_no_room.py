"""A command that cannot write says what refused it and what to do. Nothing half-written is left."""

import errno
import io
import shutil
from pathlib import Path

import pytest
from duetick.cli import new, package
from duetick.cli.main import main
from duetick.cli.tokens import keep_key

from tests.integration.local_product import Product


class FullDisk:
    """A disk that takes so many files more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._copy = shutil.copyfile

    def copyfile(self, source: str, into: str, **options: bool) -> str:
        """Copy a file, as far as there is room."""
        self.room -= 1
        if self.room < 0:
            Path(into).touch()
            raise OSError(errno.ENOSPC, "No space left on device", str(into))
        return str(self._copy(source, into, **options))


class FullOutput(io.StringIO):
    """An output to a full disk."""

    def write(self, text: str) -> int:
        """Write a text."""
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wheel is built: that is what takes long."""
    monkeypatch.setattr(new, "_requirement", lambda _: "duetick\n")
    monkeypatch.setattr(package, "_archive_layer", lambda _, into: into.touch())


MAKERS = (["new"], ["package", "--to"], ["layer", "layers/flows/flows", "--to"])


@pytest.mark.parametrize("words", MAKERS)
def test_a_folder_that_cannot_be_made_is_told_plainly(
    no_wheel: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (tmp_path / "file").touch()
    assert main([*words, str(tmp_path / "file" / "app")]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"duetick: {tmp_path}/file/app cannot be made (")
    assert told.endswith("Name a folder of yours, where there is room. Nothing was written.\n")


@pytest.mark.parametrize("is_there", [False, True])
def test_of_a_repository_that_has_no_room_nothing_is_left(
    no_wheel: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_there: bool,
) -> None:
    folder = tmp_path / "my-app"
    if is_there:
        folder.mkdir()
    monkeypatch.setattr(shutil, "copyfile", FullDisk(3).copyfile)
    assert main(["new", str(folder)]) == 1
    assert "cannot be made (No space left on device). Name a folder" in capsys.readouterr().err
    assert [*tmp_path.rglob("*")] == ([folder] if is_there else [])


def test_of_an_export_that_has_no_room_nothing_is_left(
    running: Product,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "schedules.csv"

    def print_nowhere(*_: object, **__: object) -> None:
        FullOutput().write("")

    monkeypatch.setattr("duetick.cli.transfer.exporting.print", print_nowhere, raising=False)
    known = ["--url", running.stack.server.url, "--token", running.stack.token]
    assert main(["export", "csv", *known, "--output", str(file)]) == 1
    said = f"{file} cannot be written (No space left on device). Nothing is left of it."
    assert capsys.readouterr().err == f"duetick: {said}\n"
    assert not file.exists()


def test_an_output_that_is_full_is_told_plainly(
    running: Product, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = ["--url", running.stack.server.url, "--token", running.stack.token]
    monkeypatch.setattr("sys.stdout", FullOutput())
    assert main(["schedules", *known, "list"]) == 1
    told = "duetick: The output cannot be written (No space left on device).\n"
    assert capsys.readouterr().err == told


def test_an_output_that_is_closed_is_no_problem(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ["--url", running.stack.server.url, "--token", running.stack.token]
    monkeypatch.setattr("sys.stdout", None)
    assert main(["schedules", *known, "list"]) == 0


def test_a_key_that_is_another_users_is_told_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_key(tmp_path)
    monkeypatch.chdir(tmp_path)

    def refuse(path: Path, *_: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    assert main(["token"]) == 1
    told = capsys.readouterr().err
    assert "local-key cannot be read (Permission denied). It is the key of a local stack" in told
