"""The steps of the function `migrate` that operators ask for: check, rebuild, verify, recover,
redrive.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from duetick.core.gone import time_left
from duetick.core.operations import Asked, record_around
from duetick.core.recovery import recover
from duetick.core.repair import MOST_NAMED, repair
from duetick.core.verify import fault_json, verified_json, verify
from duetick.core.wire import instant
from duetick.domain.accounts import Fault
from duetick.domain.policies import DAY
from duetick.runtime import wiring

Requested: TypeAlias = Mapping[str, Any]
MayGoOn: TypeAlias = Callable[[], bool]

INVOKED: Final = "whoever invoked migrate"
"""The name of an operator who gives none: the function is not told who invokes it."""


def take(step: str, request: Requested, seconds: float) -> dict[str, object]:
    """Take a step of `OPERATORS` within the seconds. A step that changes something is recorded."""
    may_go_on = time_left(seconds)
    if step not in WRITING or request.get("DryRun") is not False:
        return OPERATORS[step](request, may_go_on)
    who = str(request.get("Who") or INVOKED)
    with record_around(wiring.store(), Asked(who, step, why=str(request.get("Why") or ""))):
        return OPERATORS[step](request, may_go_on)


def _repair(request: Requested, may_go_on: MayGoOn) -> dict[str, object]:
    store = wiring.store()
    dry_run = request["Step"] == "check" or request.get("DryRun") is not False
    return repair(store, store.now(), dry_run=dry_run, may_go_on=may_go_on).json()


def _verify(request: Requested, may_go_on: MayGoOn) -> dict[str, object]:
    """Verify a span, from a place on. The answer names where to go on, if the time ended."""
    store, faults = wiring.store(), list[dict[str, object]]()
    now = store.now()
    until = _instant(request, "Until", now)
    since = _instant(request, "Since", until - DAY * 1_000)

    def tell(schedule: str, found: Fault) -> None:
        if len(faults) < MOST_NAMED:
            faults.append(fault_json(schedule, found))

    place = str(request.get("Place") or "")
    whole = verify(store, since, until, now=now, place=place, may_go_on=may_go_on, tell=tell)
    return verified_json(whole, faults)


def _instant(request: Requested, name: str, default: int) -> int:
    found = instant(name, request.get(name))
    return default if found is None else found


def _recover(request: Requested, may_go_on: MayGoOn) -> dict[str, object]:
    """Recover from a restore, as `How` says. It is a dry run unless `DryRun` is false."""
    store = wiring.store()
    recovered = recover(
        store,
        wiring.witness(),
        request.get("How", "skip"),
        now=store.now(),
        dry_run=request.get("DryRun") is not False,
        may_go_on=may_go_on,
    )
    return asdict(recovered)


def _redrive(request: Requested, may_go_on: MayGoOn) -> dict[str, object]:
    """Redrive the packs that came back too often. It is a dry run unless `DryRun` is false."""
    from duetick.runtime.redriving import redrive

    chosen, dry_run = wiring.settings(), request.get("DryRun") is not False
    now = wiring.store().now()
    done = redrive(chosen.dead_packs, chosen.queue, now, dry_run=dry_run, may_go_on=may_go_on)
    return asdict(done)


OPERATORS: Final[Mapping[str, Callable[[Requested, MayGoOn], dict[str, object]]]] = {
    "check": _repair,
    "rebuild": _repair,
    "verify": _verify,
    "recover": _recover,
    "redrive": _redrive,
}
WRITING: Final = frozenset({"rebuild", "recover", "redrive"})
