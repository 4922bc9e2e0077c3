"""What a deployment does to the database: its schema before the new code, its schedules after."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Final, Literal, TypeAlias

from duetick.core.flows import Flows
from duetick.core.static import register
from duetick.domain.errors import NotAccepted, NotPermitted, StoreUnavailable
from duetick.ports import Store

Step: TypeAlias = Literal["schema", "schedules"]
STEPS: Final[tuple[Step, ...]] = ("schema", "schedules")

PAUSE: Final = 2.0
"""Seconds between two looks at a database that does not answer yet."""

GRACE: Final = 60.0
"""Seconds until a login that was only just made, or a right to it, is known everywhere."""


def deploy(
    store: Store,
    flows: Callable[[], Flows],
    steps: tuple[Step, ...] = STEPS,
    *,
    name: str = "",
    migrate: Callable[[], None] | None = None,
    patience: float = 0.0,
    elapsed: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, object]:
    """Take the steps, and tell what was done. Safe twice, and beside another.

    A database that is only just being made is waited for, `patience` seconds at most; one that
    answers, and refuses who we are, only for the `GRACE` that a new user may take. By its `name`
    a deployment knows the static schedules that it made. `migrate` is the store's own, unless the
    schema is another's to change.
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
    migrate: Callable[[], None],
) -> dict[str, object]:
    done: dict[str, object] = {}
    if "schema" in steps:
        migrate()
        store.check_schema()
        done["schema"] = "up to date"
    if "schedules" in steps:
        done["schedules"] = asdict(register(store, flows().static(), name))
    return done
