"""The functions' handlers, each loaded as a cold start loads it."""

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from duetick.runtime import wiring

TOP = Path(__file__).parents[2]
MADE_ONCE = (
    *("settings", "witness", "flows", "dispatcher", "transport", "secrets", "guard", "quotas"),
    *("runs", "queue", "tick"),
)


def load_handler(function: str) -> Callable[..., Any]:
    """Return the handler of functions/<function>, with nothing kept from another."""
    for name in MADE_ONCE:
        clear = getattr(getattr(wiring, name, None), "cache_clear", None)
        if clear:
            clear()
    spec = spec_from_file_location(f"duetick_{function}", TOP / "functions" / function / "app.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Callable[..., Any] = module.handler
    return handler
