"""The hourly count of bells: each row has one, and no bell is without a row.

A write makes the bell that it moves pending. The count finds the other faults: a bell that somebody
deleted in EventBridge, and a bell of a process that stood still beyond its time with it.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from duetick.core.audit import CENSUS
from duetick.core.managed.keeping import BellKeeper
from duetick.core.store import Store
from duetick.domain.bells import PREFIX, bell_name
from duetick.domain.policies import MINUTE_MS
from duetick.ports import Listed
from duetick.ports.bells import Bells

if TYPE_CHECKING:
    from duetick.domain.occurrence import ScheduleName

AT_ONCE: Final = 50_000
"""The bells that one hour compares, about. Of more, each hour has a part: a sixteenth, or less."""

HOUR_MS: Final = 60 * MINUTE_MS


class CountedBells(NamedTuple):
    """The bells that were missing, and those without a row. Both are pending now."""

    missing: int = 0
    stray: int = 0


class BellLook:
    """One look at every schedule: `at` notes the bells that an hour's part should have."""

    def __init__(self, store: Store, bells: Bells, now: int) -> None:
        self._store = store
        self._bells = bells
        self._prefix = PREFIX + _part_of_hour(_active(store), now)
        self._wanted: dict[str, ScheduleName] = {}

    def at(self, one: Listed) -> None:
        """Note the bell of a row."""
        name = bell_name(one.user_id, one.key)
        if one.row and name.startswith(self._prefix):
            self._wanted[name] = one.user_id, one.key

    def end(self, keeper: BellKeeper, may_go_on: Callable[[], bool]) -> CountedBells:
        """Make bells pending that differ, and bring them in step as far as there is time."""
        found = set(self._bells.names(self._prefix))
        missing = [self._wanted[name] for name in self._wanted.keys() - found]
        stray = [self._bells.schedule_of(name) for name in sorted(found - self._wanted.keys())]
        wrong = [*missing, *(one for one in stray if one)]
        if wrong:
            self._store.shelf.make_bells_pending(wrong, self._store.now())
            keeper.keep_pending(may_go_on)
        return CountedBells(len(missing), len(stray))


def _active(store: Store) -> int:
    """Return the number of schedules that the last hourly count found active."""
    return int(json.loads(store.shelf.note(CENSUS) or "{}").get("active", 0))


def _part_of_hour(active: int, now: int) -> str:
    """Return the digits with which the digests of an hour's part begin."""
    digits = 0
    while active > AT_ONCE * 16**digits:
        digits += 1
    return f"{now // HOUR_MS % 16**digits:0{digits}x}" if digits else ""
