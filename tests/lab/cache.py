"""The cache of the lab's installations: made once, by one process at a time, never half made."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CACHE = TOP / ".cache" / "lab"
MARK = ".complete"


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return the cached directory of this name; `make` fills it, if no earlier run has."""
    place = CACHE / name
    if is_made(place):
        return place
    with locked(name):
        if not is_made(place):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            make(place)
            (place / MARK).touch()
    return place


def is_made(place: Path) -> bool:
    """Return True if a run finished making this directory: the mark is written last."""
    return (place / MARK).exists()


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of that name: of several processes, one."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
