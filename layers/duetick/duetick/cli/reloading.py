"""The flows of the local stack, loaded again after a change of their files."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import invalidate_caches
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

Stamps: TypeAlias = Mapping[Path, tuple[int, int]]
"""The time at which each file was written, and its size."""

PAUSE: Final = 0.5
"""The seconds between two looks at the files."""


class Watch:
    """A look at files, again and again. A change counts once two looks in a row agree: an editor
    may write a file in several steps.
    """

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._known = self._seen = self._stamps()

    def find_changed(self) -> list[Path]:
        """Return the files that were written, added or removed since this last returned any."""
        before, self._seen = self._seen, self._stamps()
        if self._seen != before or self._seen == self._known:
            return []
        both = self._seen.keys() | self._known.keys()
        found = sorted(one for one in both if self._seen.get(one) != self._known.get(one))
        self._known = self._seen
        return found

    def _stamps(self) -> Stamps:
        found = {}
        for path in self._files():
            with suppress(OSError):
                stat = path.stat()
                found[path] = (stat.st_mtime_ns, stat.st_size)
        return found

    def follow(self, stopping: threading.Event, act: Callable[[list[Path]], None]) -> None:
        """Act on each change, until the event is set."""
        while not stopping.wait(PAUSE):
            if found := self.find_changed():
                act(found)


def sources(package: str, project: Path) -> list[Path]:
    """Return the Python files of a package, and of the project's other modules that it loaded."""
    top = sys.modules.get(package)
    folders = [Path(one) for one in getattr(top, "__path__", ())]
    files = {path for folder in folders for path in folder.rglob("*.py")}
    others = (_file_of(one) for one in own_modules(package, project).values())
    return sorted(files | {path for path in others if path is not None})


def own_modules(package: str, project: Path) -> dict[str, ModuleType]:
    """Return the loaded modules of the flows' package, and of the project beside it. Installed
    modules are not the project's, and neither is Duetick.
    """
    found = {}
    for name, module in [*sys.modules.items()]:
        is_flows = f"{name}.".startswith(f"{package}.")
        if is_flows or (name != "__main__" and _is_of_project(name, module, project)):
            found[name] = module
    return found


def _is_of_project(name: str, module: ModuleType, project: Path) -> bool:
    path = _file_of(module)
    if path is None or name.partition(".")[0] == "duetick":
        return False
    return path.is_relative_to(project) and "site-packages" not in path.parts


def _file_of(module: ModuleType) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name).resolve() if name and name.endswith(".py") else None


@contextmanager
def import_anew(package: str, project: Path) -> Iterator[None]:
    """Let the block import the project's modules from their files. If the block raises, the modules
    of before are there again: a running action may import them.
    """
    before = own_modules(package, project)
    for path in sources(package, project):
        with suppress(OSError):  # it may be of the same second, and of the same size
            Path(cache_from_source(str(path))).unlink(missing_ok=True)
    _forget(before)
    invalidate_caches()
    try:
        yield
    except BaseException:
        _forget(own_modules(package, project))
        sys.modules.update(before)
        raise


def _forget(modules: Iterable[str]) -> None:
    for name in modules:
        sys.modules.pop(name, None)
