"""The folders of tests are in memory, where the system has such a folder with room.

SQLite waits for the disk at each commit: a quarter of the time of the quick tests.
"""

import os
from pathlib import Path
from typing import Final

IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- pytest makes a folder in it that is its own
ROOT: Final = "PYTEST_DEBUG_TEMPROOT"
ROOM: Final = 4 << 30


def pytest_configure() -> None:
    """Let pytest make its folders there, unless somebody chose another place."""
    if _has_room():
        os.environ.setdefault(ROOT, str(IN_MEMORY))


def _has_room() -> bool:
    """Return True if there is room, and programs may be run from there."""
    if not os.access(IN_MEMORY, os.W_OK):
        return False
    found = os.statvfs(IN_MEMORY)
    return found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & os.ST_NOEXEC
