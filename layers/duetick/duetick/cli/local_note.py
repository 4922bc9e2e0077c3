"""The note by which the command finds a local stack: its address, its two tokens, its store.

It is a file that only its owner may read, in the folder `.cache` of the project. The stack removes
it as it stops.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = ".cache"
PREFIX: Final = "local-stack-"


class LocalNote(NamedTuple):
    """A local stack: its address, a user's token, the operator's, its process, and its store."""

    url: str
    token: str
    operator: str
    pid: int
    store: str = ""

    @property
    def is_running(self) -> bool:
        """True unless its process has ended without removing the note."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True


def leave(project: Path, note: LocalNote) -> Path:
    """Write the note of a stack, and return its file."""
    folder = project / FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"{PREFIX}{note.url.rpartition(':')[2]}.json"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(note._asdict(), file)
    return path


def find(start: Path) -> list[LocalNote]:
    """Return the stacks that run from this folder, else from the nearest folder above it."""
    for folder in (start, *start.parents):
        notes = [_read(path) for path in sorted((folder / FOLDER).glob(f"{PREFIX}*.json"))]
        running = [note for note in notes if note and note.is_running]
        if running:
            return running
    return []


def _read(path: Path) -> LocalNote | None:
    with suppress(OSError, ValueError, TypeError):
        return LocalNote(**json.loads(path.read_text()))
    return None
