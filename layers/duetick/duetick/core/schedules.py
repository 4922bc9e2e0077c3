"""What users and operators do with schedules: one user's namespace at a time."""

from collections.abc import Mapping
from typing import Final

from duetick.core.answers import Answer, error
from duetick.core.flows import Flows
from duetick.core.second_opinion import confirm
from duetick.core.wire import iso, occurrence_json, read_schedule, schedule_json
from duetick.domain.errors import InvalidCursor, SchemaOutdated, StoreUnavailable
from duetick.domain.expression import upcoming
from duetick.domain.identity import InvalidId, check_key
from duetick.domain.schedule import Json, Schedule
from duetick.ports import Clock, Store

NOT_FOUND: Final = "No such schedule."
LONGEST_PAGE: Final = 100


class UserSchedules:
    """One user's schedules."""

    def __init__(self, store: Store, flows: Flows, user_id: str, clock: Clock) -> None:
        self._store = store
        self._flows = flows
        self._user_id = user_id
        self._clock = clock

    def put(self, key: str, body: Mapping[str, Json]) -> Answer:
        """Create or replace; 201 where there was none."""
        check_key(self._user_id, key)
        schedule = read_schedule(self._user_id, key, body)
        self._flows.check_input(schedule)
        confirm(schedule.cron, self._clock())
        existed = self._store.schedules.get(self._user_id, key) is not None
        put = self._store.schedules.put(schedule, now=self._clock())
        return Answer(200 if existed else 201, schedule_json(put))

    def get(self, key: str) -> Answer:
        """The schedule."""
        return Answer(200, schedule_json(self._find(key)))

    def list(self, limit: int, cursor: str | None) -> Answer:
        """A page, ordered by key."""
        page = self._store.schedules.list(self._user_id, limit=limit, cursor=cursor)
        found: list[Json] = [schedule_json(schedule) for schedule in page.schedules]
        return Answer(200, {"schedules": found, "cursor": page.cursor})

    def delete(self, key: str) -> Answer:
        """Gone, with what was due of it accounted for."""
        self._find(key)
        self._store.schedules.delete(self._user_id, key, now=self._clock())
        return Answer(204, {})

    def upcoming(self, key: str, count: int) -> Answer:
        """The next fire times."""
        schedule = self._find(key)
        policies = schedule.policies
        times = upcoming(
            schedule.cron,
            schedule.timezone,
            self._clock(),
            count,
            gap=policies.gap,
            repeat=policies.repeat,
            anchor=schedule.anchor,
        )
        shown: list[Json] = [iso(time) for time in times] if schedule.enabled else []
        return Answer(200, {"upcoming": shown})

    def history(self, key: str, limit: int) -> Answer:
        """What became of its occurrences, the newest first."""
        found = self._store.ledger.find(self._user_id, key, limit=limit)
        if not found:
            self._find(key)
        history: list[Json] = [occurrence_json(occurrence) for occurrence in found]
        return Answer(200, {"history": history})

    def _find(self, key: str) -> Schedule:
        check_key(self._user_id, key)
        schedule = self._store.schedules.get(self._user_id, key)
        if schedule is None:
            raise LookupError(key)
        return schedule


def refused(problem: Exception) -> Answer | None:
    """The answer to what a user did wrong, or what is down; None for anything else."""
    for kind, code, message in _REFUSALS:
        if isinstance(problem, kind):
            return error(code, message or str(problem))
    return None


_REFUSALS: Final[tuple[tuple[type[Exception], str, str], ...]] = (
    (InvalidId, "invalid_schedule_id", ""),
    (InvalidCursor, "invalid_cursor", ""),
    (ValueError, "invalid_schedule", ""),
    (LookupError, "schedule_not_found", NOT_FOUND),
    (SchemaOutdated, "schema_outdated", ""),
    (StoreUnavailable, "store_unavailable", "The database did not answer; try again."),
)
