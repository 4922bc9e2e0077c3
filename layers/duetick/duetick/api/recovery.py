"""The operation of operators on a store that was restored from a backup."""

import time
from dataclasses import asdict
from typing import Final

from duetick.api.calls import ApiCall
from duetick.api.checking import check_shape
from duetick.api.models import RecoverBody
from duetick.core.answers import Answer, error
from duetick.domain.errors import ConfigurationError, InvalidQuery, WitnessUnavailable

SECONDS: Final = 15.0
UNREAD: Final = "The witness cannot be read; try again."


def recover_store(call: ApiCall) -> Answer:
    """Decide about the times that may have fired between a backup and its restore: `skip` records
    them as missed, `latest` leaves the newest of each schedule to its misfire policy, `fire` leaves
    all of them to it. Unless `dryRun` is false, nothing is changed. A call ends after 15 seconds.
    Repeat it until `complete`: it goes on. A dry run begins anew.
    """
    from duetick.core.recovery import recover  # once in years: no start pays for it

    asked = check_shape(RecoverBody, call.read_body())
    end = time.monotonic() + SECONDS
    try:
        done = recover(
            call.store,
            call.witness(),
            asked.how,
            now=call.store.now(),
            dry_run=asked.dry_run,
            may_go_on=lambda: time.monotonic() < end,
        )
    except WitnessUnavailable:
        return error("store_unavailable", UNREAD)
    except ConfigurationError as problem:
        raise InvalidQuery(str(problem)) from None
    shown = asdict(done)
    shown["dryRun"] = shown.pop("dry_run")
    return Answer(200, shown)
