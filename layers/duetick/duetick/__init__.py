"""Duetick: per-user schedules for serverless applications."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetick.core.context import Context
    from duetick.core.failure_hooks import FailureInput
    from duetick.core.flows import Flow
    from duetick.domain.errors import ActionFailed
    from duetick.domain.policies import Policies
    from duetick.domain.schedule import Principal, Schedule

__all__ = [
    "ActionFailed",
    "Context",
    "FailureInput",
    "Flow",
    "Policies",
    "Principal",
    "Schedule",
]

_HOMES = {
    "ActionFailed": "duetick.domain.errors",
    "Context": "duetick.core.context",
    "FailureInput": "duetick.core.failure_hooks",
    "Flow": "duetick.core.flows",
    "Policies": "duetick.domain.policies",
    "Principal": "duetick.domain.schedule",
    "Schedule": "duetick.domain.schedule",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use: a tick needs none of them at its cold start."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
