"""The records."""

from dataclasses import dataclass
from typing import Protocol

from duetick.domain.creation import Made, Repeatable
from duetick.domain.schedule import Schedule
from duetick.domain.versions import Expected


@dataclass(frozen=True, slots=True)
class Page:
    """Some schedules of one user, and where the next page begins."""

    schedules: tuple[Schedule, ...]
    cursor: str | None = None


class Schedules(Protocol):
    """The records. Each change moves the index row in the same transaction."""

    def put(
        self,
        schedule: Schedule,
        *,
        now: int | None = None,
        if_version: Expected | None = None,
        at_most: int | None = None,
        repeatable: Repeatable | None = None,
    ) -> Schedule:
        """Create or replace; the answer holds what the store set (version, anchor, next time).

        An unchanged schedule is left as it is. A change of timing first accounts for what was due.
        Raises VersionConflict unless what is there is as `if_version` says (`domain.versions`);
        QuotaReached where it would be one more than `at_most` of its user's. Both are decided by
        the very write: of several at once, one wins. With `repeatable`, a creation is kept in mind
        by that write, until its end; VersionConflict too where another one is by that name.
        """

    def made(self, user_id: str, name: str, *, now: int | None = None) -> Made | None:
        """What the creation made that is kept in mind by that name, whatever became of it since."""

    def get(self, user_id: str, key: str) -> Schedule | None:
        """The record, or None."""

    def list(self, user_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """One user's, ordered by key."""

    def delete(
        self, user_id: str, key: str, *, now: int | None = None, if_version: Expected | None = None
    ) -> bool:
        """False where there was none. What was due is accounted for.

        Raises VersionConflict unless what is there is as `if_version` says.
        """

    def find_by_external(self, external_id: str) -> Schedule | None:
        """The one schedule that owns an outside id."""
