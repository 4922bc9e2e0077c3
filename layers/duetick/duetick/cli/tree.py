"""The files of which a stack is made: of the checkout that runs, or as the wheel carries them."""

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

from duetick.cli.problem import CliProblem

PACKAGE: Final = Path(__file__).parents[1]
IN_WHEEL: Final = PACKAGE / "deployable"


def tree() -> Path:
    """Return the folder with `template.yaml`, `functions` and `layers`."""
    return IN_WHEEL if IN_WHEEL.is_dir() else PACKAGE.parents[2]


def handler_of(function: str) -> Callable[..., Any]:
    """Return the handler of a function, made as a cold start makes it."""
    path = tree() / "functions" / function / "app.py"
    spec = spec_from_file_location(f"duetick_function_{function}", path)
    if spec is None or spec.loader is None:
        raise CliProblem(f"{path} cannot be imported.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Callable[..., Any] = module.handler
    return handler
