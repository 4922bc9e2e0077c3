"""What a tick cannot see: how much is active, and what should be and is not."""

import logging
from dataclasses import dataclass
from typing import Final

from duetick.domain.policies import LAST_INSTANT
from duetick.ports import Store

EVERYTHING: Final = 2**31 - 1
MOST_NAMED: Final = 20

logger = logging.getLogger("duetick.audit")


@dataclass(frozen=True, slots=True)
class Audit:
    """`unindexed` are enabled, can fire again, and have no row that a tick would find."""

    active: int
    unindexed: int


def audit(store: Store) -> Audit:
    """Count, and name the first of those that never fire: an alarm sends there.

    It reads every record's name, so it is for once an hour.
    """
    missing = [found for found in store.check() if found.problem == "missing"]
    for found in missing[:MOST_NAMED]:
        details = {"action": "unindexed", "user": found.user_id, "key": found.key}
        logger.error("unindexed", extra=details)
    return Audit(store.index.backlog(LAST_INSTANT, EVERYTHING), len(missing))
