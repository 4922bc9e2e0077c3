"""The steps of a deployment, as its custom resource or by hand; each hour witness, audit, purge.

If there is more to purge than one invocation has time for, the function invokes itself.
"""

import time
from typing import TYPE_CHECKING, Any, Final

from duetick.core.deployment import STEPS, deploy
from duetick.runtime.custom_resource import (
    RESERVE,
    ResourceContext,
    ResourceEvent,
    ResourceRequest,
    is_asked_by_cloudformation,
)
from duetick.runtime.telemetry import (
    logger,
    record_audit,
    record_bells,
    record_gone,
    record_verified,
    withhold_raised,
)

if TYPE_CHECKING:
    from duetick.core.managed.counting import BellLook

OPERATORS = ("check", "rebuild", "verify", "recover", "redrive")
"""The steps that an operator asks for, and no deployment takes."""

MOST_PURGES: Final = 12
"""The invocations of one purge. What is left then, the next hour deletes."""


@withhold_raised
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: ResourceContext) -> dict[str, object]:
    """Take the steps. It is safe to run twice or at once. `{"Step": "schema"}` takes one step."""
    patience = context.get_remaining_time_in_millis() / 1_000 - 2 * RESERVE
    if is_asked_by_cloudformation(event):
        ResourceRequest(event, context).run(
            lambda asked: work(asked["ResourceProperties"], patience)
        )
        return {}
    return work(event, patience)


def work(request: ResourceEvent, patience: float) -> dict[str, object]:
    """Take the requested step, or all steps of a deployment."""
    # Imported here: a flow that cannot be imported fails the deployment with its reason.
    from duetick.core.gone import count_gone, time_left
    from duetick.core.operations import Asked, record
    from duetick.runtime import wiring

    step, end = request.get("Step"), time.monotonic() + patience
    if step == "audit":
        return _keep_witness_and_audit(end)
    if step == "purge":
        return _purge_recorded(request, end)
    if step in OPERATORS:
        from duetick.runtime.steps import take

        return take(step, request, end - time.monotonic())
    if step not in (None, *STEPS):
        known = ", ".join((*STEPS, "audit", "purge", *OPERATORS))
        raise ValueError(f"Step {step!r} is not known; known are {known}.")
    steps = tuple(each for each in STEPS if step in (None, each))
    name = wiring.settings().deployment
    wiring.retention()  # the purge reads it later: days that it would refuse fail the deployment
    if step == "schedules" and "Trigger" in request:
        _move(request, end)
    done = deploy(
        wiring.store(), wiring.flows, steps, name=name, migrate=wiring.migrate, patience=patience
    )
    if "schedules" in steps and wiring.is_managed():
        done["pending"] = wiring.bells().go_on(time_left((end - time.monotonic()) / 2))
    if "schedules" in steps:
        found = count_gone(
            wiring.store(), wiring.flows(), may_go_on=time_left(end - time.monotonic())
        )
        done["gone"] = record_gone(found) if found else "not counted; the log says why"
    if request.get("Who"):
        record(wiring.store(), Asked(request["Who"], "migrate", why=request.get("Why", "")))
    logger.info("deployed", action="deploy", done=done)
    return done


def _move(request: ResourceEvent, end: float) -> None:
    """Give the store the trigger that the template names."""
    from duetick.core.gone import time_left
    from duetick.core.managed.moving import move
    from duetick.core.managed.trigger import Trigger
    from duetick.runtime import wiring

    deployment, may_go_on = wiring.settings().deployment, time_left((end - time.monotonic()) / 2)
    if request["Trigger"] != "managed":
        move(wiring.store(), Trigger(deployment), may_go_on)
        return
    wanted = Trigger(
        deployment,
        group=request["BellGroup"],
        role=request["BellRole"],
        dispatch=request["DispatchFunction"],
        tick=request["TickFunction"],
    )
    wiring.bells().move(wanted, may_go_on)


def _keep_witness_and_audit(end: float) -> dict[str, object]:
    """Keep the witness, then audit. If the witness fails, the step fails after the audit."""
    from duetick.core.witness import keep_witness
    from duetick.runtime import wiring

    store, witness = wiring.store(), wiring.witness()
    try:
        if witness:
            keep_witness(store, witness, store.now())
    finally:
        counted = _audit(end)
    return counted


def _audit(end: float) -> dict[str, object]:
    from duetick.core.audit import audit
    from duetick.core.gone import GoneLook, time_left
    from duetick.core.verify import verify_hour
    from duetick.core.workers import reap
    from duetick.runtime import wiring

    store, chosen = wiring.store(), wiring.settings()
    now = store.now()
    gone = GoneLook(store, wiring.flows(), now, pauses=chosen.gone_flows == "pause")
    bells = wiring.bells().look(now) if wiring.is_managed() else None
    looks = (gone.at, bells.at) if bells else (gone.at,)
    counted = record_audit(audit(store, now, *looks, tell=wiring.tell_finding))
    if bells:
        _count_bells(bells, (end - time.monotonic()) / 3)
    part = (end - time.monotonic()) / 3
    record_gone(gone.end(time_left(part)))
    most = chosen.verified_per_hour
    if most:
        record_verified(
            verify_hour(
                store, now, most=most, may_go_on=time_left(part), tell=wiring.tell_unaccounted
            )
        )
    wiring.announce(min(part, end - time.monotonic()))
    reap(store, now)
    _purge({}, min(part, end - time.monotonic()))
    return counted


def _count_bells(look: "BellLook", seconds: float) -> None:
    """Make bells pending that are missing, or without a row, and bring pending ones in step."""
    from duetick.core.gone import time_left
    from duetick.runtime import wiring

    may_go_on = time_left(seconds)
    found = wiring.bells().end_look(look, may_go_on)
    record_bells(found, wiring.bells().go_on(may_go_on))


def _purge_recorded(request: ResourceEvent, end: float) -> dict[str, object]:
    """Purge. If an operator asks for it, that is recorded: an invocation that goes on names
    none.
    """
    from duetick.core.operations import Asked, record_around
    from duetick.runtime import wiring

    if not request.get("Who"):
        return _purge(request, end - time.monotonic())
    with record_around(wiring.store(), Asked(request["Who"], "purge", why=request.get("Why", ""))):
        return _purge(request, end - time.monotonic())


def _purge(request: ResourceEvent, seconds: float) -> dict[str, object]:
    """Purge for so long. If there is more, another invocation goes on, up to `MOST_PURGES`.

    The next one has the name of the first, so that the lock stays theirs.
    """
    from duetick.core.ids import new_name
    from duetick.core.purge import purge_within
    from duetick.runtime import invoking, wiring

    chain, owner = int(request.get("Chain", 1)), request.get("Owner") or new_name("purge")
    kept, rest = wiring.retention(), time.sleep
    done = purge_within(seconds, wiring.store(), retention=kept, owner=owner, rest=rest)
    if done is None:
        return {"purged": "another purge is at work"}
    goes_on = done.more and chain < MOST_PURGES
    if goes_on:
        invoking.call_this({"Step": "purge", "Chain": chain + 1, "Owner": owner})
    logger.info("purge", action="purge_ended", chain=chain, goes_on=goes_on, **done._asdict())
    return {"purged": done._asdict(), "goes_on": goes_on}
