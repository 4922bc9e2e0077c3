"""Code of one layer that needs a dependency of the other."""

from six import ensure_str


def greet(name: str) -> str:
    """The greeting for a name."""
    return ensure_str(f"Hello, {name}")
