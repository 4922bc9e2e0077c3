"""The flows of the project that the local stack runs, and their settings."""

import os
import sys
from pathlib import Path
from typing import Final

from duetick.cli.problem import CliProblem
from duetick.cli.reloading import import_anew, sources
from duetick.core.declarations import check_dialects
from duetick.core.flows import Flows
from duetick.runtime import wiring
from duetick.runtime.flow_settings import open_flow_settings
from duetick.runtime.loading import load_flows
from duetick.runtime.settings import Settings

PACKAGE: Final = "flows"
VARIABLE: Final = "DUETICK_FLOWS"
FILES: Final = {
    "settings.local.json": "DUETICK_FLOW_SETTINGS",
    "secrets.local.json": "DUETICK_FLOW_SETTINGS_SECRET",
}
"""The files of a project that stand for the parameters of a stack, and their variables."""


class LocalFlows:
    """The flows of a project. Its files are read again when they have changed."""

    def __init__(self, project: Path) -> None:
        """Find the package of the flows. Raise CliProblem if the project has none."""
        self._project = project.resolve()
        self._package = os.environ.get(VARIABLE) or PACKAGE
        self._root = self._project if os.environ.get(VARIABLE) else _root_of(self._project)
        self._given = {name: os.environ.get(name) for name in FILES.values()}
        if str(self._root) not in sys.path:
            sys.path.insert(0, str(self._root))

    def load(self) -> Flows:
        """Return the flows. Raise ConfigurationError for the first mistake."""
        self._read_settings()
        return _check(wiring.flows())

    def load_again(self) -> Flows:
        """Return the flows as their files are now, for all calls from now on. If they cannot be
        loaded, raise a DuetickError: the flows of before stay.
        """
        before = {name: os.environ.get(name) for name in FILES.values()}
        try:
            with import_anew(self._package, self._root):
                self._read_settings()
                chosen = Settings.read()
                told = open_flow_settings(chosen)
                _check(load_flows(chosen.flows, chosen.row_flow, told))
        except BaseException:
            _set(before)
            raise
        wiring.forget_flows()
        return wiring.flows()

    def files(self) -> list[Path]:
        """Return the files whose changes matter. The files of the settings may be missing."""
        named = [self._project / name for name in FILES]
        return [*sources(self._package, self._root), *named]

    def show(self, path: Path) -> str:
        """Return a path as somebody in the project would write it."""
        is_inside = path.is_relative_to(self._project)
        return str(path.relative_to(self._project) if is_inside else path)

    def _read_settings(self) -> None:
        for file, variable in FILES.items():
            path = self._project / file
            _set({variable: _text_of(path) if path.is_file() else self._given[variable]})


def _text_of(path: Path) -> str:
    """Return the text of a file, without the mark that some editors put before it."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise CliProblem(f"{path} cannot be read as a text in UTF-8: {problem}.") from None
    if "\0" in text:
        raise CliProblem(f"{path} is no text: it has a zero byte in it.")
    return text


def _root_of(project: Path) -> Path:
    for folder in (project, project / "layers" / PACKAGE):
        if (folder / PACKAGE / "__init__.py").is_file():
            return folder
    raise CliProblem(
        f"There is no package {PACKAGE} in {project}. Run this in the folder of your "
        "template.yaml, or name it with --project. `duetick new my-app` makes a project."
    )


def _check(flows: Flows) -> Flows:
    flows.check_settings()
    check_dialects(flows, wiring.store().dialect)
    return flows


def _set(variables: dict[str, str | None]) -> None:
    for name, text in variables.items():
        if text is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = text
