"""The flows of a deployment, loaded from the package of their authors."""

import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from traceback import walk_tb
from types import ModuleType

from duetick.core.flow_settings import FlowSettings
from duetick.core.flows import Flow, Flows
from duetick.domain.errors import ConfigurationError, DuetickError


def load_flows(package: str, rows: str = "", settings: FlowSettings | None = None) -> Flows:
    """Load every flow of the package's modules. `rows` names the flow of index rows without one.

    Raise ConfigurationError, with file and line, if a module cannot be imported.
    """
    found: dict[str, Flow] = {}
    for module in _modules(package):
        for flow in _flows_of(module):
            if found.setdefault(flow.name, flow) is not flow:
                raise ConfigurationError(
                    f"Two flows are called {flow.name!r}; the second is in {module.__name__}. "
                    "Give one of them another name."
                )
    return Flows(found, rows, settings)


def _modules(package: str) -> Iterator[ModuleType]:
    with _locate_errors(package):
        top = import_module(package)
    yield top
    for each in pkgutil.walk_packages(top.__path__, f"{package}."):
        with _locate_errors(package):
            module = import_module(each.name)
        yield module


def _flows_of(module: ModuleType) -> list[Flow]:
    return [value for value in vars(module).values() if isinstance(value, Flow)]


@contextmanager
def _locate_errors(package: str) -> Iterator[None]:
    """Turn any error of an import, `sys.exit` too, into a ConfigurationError: one line, with its
    place.
    """
    try:
        yield
    except (Exception, SystemExit) as problem:
        said = getattr(problem, "msg", None) or str(problem)
        kind = "" if isinstance(problem, DuetickError) else type(problem).__name__
        parts = (_place(problem, package), kind, said)
        described = ": ".join(filter(None, parts))
        raise ConfigurationError(f"The flows cannot be loaded. {described}") from problem


def _place(problem: BaseException, package: str) -> str:
    """Return file and line: of a syntax error, or of the last line of the flows that ran."""
    if isinstance(problem, SyntaxError) and problem.filename:
        return f"{problem.filename}:{problem.lineno or 1}"
    lines = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in walk_tb(problem.__traceback__)
        if f"{frame.f_globals.get('__name__')}.".startswith(f"{package}.")
    ]
    return lines[-1] if lines else ""
