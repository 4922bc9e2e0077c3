"""The steps of a deployment: the schema before the new code, the static schedules after it."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Final, Literal, TypeAlias

from duetick.core.declarations import check_dialects
from duetick.core.flows import Flows
from duetick.core.static import register
from duetick.core.store import Store
from duetick.domain.errors import NotAccepted, NotPermitted, StoreUnavailable

Step: TypeAlias = Literal["schema", "schedules"]
STEPS: Final[tuple[Step, ...]] = ("schema", "schedules")

PAUSE: Final = 2.0
"""The seconds between two tries while the database does not answer yet."""

GRACE: Final = 60.0
"""The seconds until a new login, or a new right of it, is known everywhere."""


def deploy(
    store: Store,
    flows: Callable[[], Flows],
    steps: tuple[Step, ...] = STEPS,
    *,
    name: str = "",
    migrate: Callable[[], int] | None = None,
    patience: float = 0.0,
    elapsed: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, object]:
    """Take the steps, and report them. It is safe to repeat, and to run twice at the same time.

    If the database does not answer yet, wait for at most `patience` seconds. If it answers and
    refuses our login, wait for at most `GRACE`. `name` marks the static schedules of this
    deployment. `migrate` replaces the store's migration, for a role that may change the schema.
    """
    end = elapsed() + patience
    while True:
        try:
            return _take(store, flows, steps, name, migrate or store.migrate)
        except NotPermitted:
            raise
        except StoreUnavailable as problem:
            if isinstance(problem, NotAccepted):
                end = min(end, elapsed() + GRACE)
            if elapsed() + PAUSE > end:
                raise
        sleep(PAUSE)


def _take(
    store: Store,
    flows: Callable[[], Flows],
    steps: tuple[Step, ...],
    name: str,
    migrate: Callable[[], int],
) -> dict[str, object]:
    done: dict[str, object] = {}
    declared = flows()
    # Mistakes in flows and settings are refused before anything changes.
    check_dialects(declared, store.dialect)
    declared.check_settings()
    if "schema" in steps:
        taken_over = migrate()
        store.check_schema()
        done["schema"] = "up to date"
        if taken_over:
            done["rows"] = declared.home.describe(taken_over)
    if "schedules" in steps:
        registered = asdict(register(store, declared.static(), name))
        warnings, paused = registered.pop("warnings"), registered.pop("paused")
        done["schedules"] = registered
        if paused:
            done["paused"] = paused
        if warnings:
            done["warnings"] = warnings
    return done
