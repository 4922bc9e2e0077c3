"""The records on SQL: each change moves the index row and accounts for what was due, at once."""

from collections.abc import Callable
from dataclasses import replace

from duetick.domain.creation import Made, Repeatable
from duetick.domain.errors import InvalidSchedule, VersionConflict
from duetick.domain.expression import TZDATA_VERSION
from duetick.domain.mirror import (
    Before,
    Change,
    due_range,
    plan_put,
    too_many,
    unfired_so_far,
)
from duetick.domain.schedule import Schedule
from duetick.domain.states import Reason
from duetick.domain.versions import Expected, check_version
from duetick.ports import Page
from duetick.stores.paging import make_cursor, read_cursor
from duetick.stores.sql.index import drop_poison, drop_row, put_row, record_ranges
from duetick.stores.sql.rows import (
    read_index,
    read_made,
    read_mark,
    read_number,
    read_schedule,
    schedule_params,
)
from duetick.stores.sql.session import Database, Params, Session, Value, retried


def read_before(session: Session, user_id: str, key: str) -> Before:
    """What stands of (user_id, key), locked until the transaction ends."""
    name: Params = {"user_id": user_id, "key": key}
    session.rows("name_lock", name)
    records = session.rows("schedule_lock", name)
    rows = session.rows("index_lock", name)
    mark, defined = session.rows("watermark_get", name), session.rows("definition_newest", name)
    return Before(
        schedule=read_schedule(records[0]) if records else None,
        row=read_index(rows[0]) if rows else None,
        fired_through=read_mark(mark[0][0]),
        defined_at=read_mark(defined[0][0]) or 0,
    )


def lower_mark(session: Session, schedule: Schedule) -> None:
    """What was claimed ahead of a change of timing hides none of the times that are new.

    Ranges hide theirs: a claim whose clock was ahead of the change's may have made one.
    """
    params: dict[str, Value] = {
        "user_id": schedule.user_id,
        "key": schedule.key,
        "timing": schedule.timing,
    }
    ranged = read_mark(session.rows("ranged_through", params)[0][0])
    params["timing"] = max(schedule.timing, ranged or 0)
    session.rows("watermark_lower", params)
    session.rows("index_mark_lower", params)


def _keep_in_mind(session: Session, made: Schedule, repeatable: Repeatable) -> None:
    """Unless another creation is by that name: then nothing is made. What is over is forgotten."""
    session.rows("creations_forget", {"user_id": made.user_id, "now": made.created_at})
    params: Params = {
        "user_id": made.user_id,
        "name": repeatable.name,
        "digest": repeatable.digest,
        "made_at": made.created_at,
        "next_fire_at": made.next_fire_at,
        "kept_until": repeatable.until,
    }
    if session.each("creation_put", [params]) == [0]:
        raise VersionConflict(0, made.version)


class SqlSchedules:
    """`ports.Schedules` on any SQL database."""

    def __init__(
        self,
        database: Database,
        now: Callable[[], int],
        new_id: Callable[[], str],
        *,
        look_ahead: bool = False,
    ) -> None:
        self._database = database
        self._look_ahead = look_ahead
        self._now = now
        self._new_id = new_id

    @retried
    def put(
        self,
        schedule: Schedule,
        *,
        now: int | None = None,
        if_version: Expected | None = None,
        at_most: int | None = None,
        repeatable: Repeatable | None = None,
    ) -> Schedule:
        """See `ports.Schedules`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            if at_most is not None:
                session.rows("user_lock", {"user_id": schedule.user_id})
            before = read_before(session, schedule.user_id, schedule.key)
            check_version(before.schedule, if_version)
            change = plan_put(before, schedule, at, look_ahead=self._look_ahead)
            if change is None:
                return before.schedule or schedule
            self._check_external(session, schedule)
            if before.schedule is None:
                self._check_count(session, schedule.user_id, at_most)
            self.write(session, change)
            row = change.row
            made = replace(change.schedule, next_fire_at=row.next_fire_at if row else None)
            if repeatable:
                _keep_in_mind(session, made, repeatable)
        return made

    @retried
    def made(self, user_id: str, name: str, *, now: int | None = None) -> Made | None:
        """See `ports.Schedules`."""
        at = self._now() if now is None else now
        params: Params = {"user_id": user_id, "name": name, "now": at}
        with self._database.transaction() as session:
            rows = session.rows("creation_get", params)
        return read_made(rows[0]) if rows else None

    @retried
    def get(self, user_id: str, key: str) -> Schedule | None:
        """See `ports.Schedules`."""
        return self._one("schedule_get", {"user_id": user_id, "key": key})

    @retried
    def list(self, user_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """See `ports.Schedules`."""
        params: Params = {"user_id": user_id, "after": read_cursor(cursor), "limit": limit + 1}
        with self._database.transaction() as session:
            found = [read_schedule(row) for row in session.rows("schedule_list", params)]
        more = len(found) > limit
        return Page(tuple(found[:limit]), make_cursor(found[limit - 1].key) if more else None)

    @retried
    def delete(
        self, user_id: str, key: str, *, now: int | None = None, if_version: Expected | None = None
    ) -> bool:
        """See `ports.Schedules`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            before = read_before(session, user_id, key)
            check_version(before.schedule, if_version)
            if before.schedule is None:
                return False
            lost = unfired_so_far(before, at, Reason.SCHEDULE_DELETED)
            record_ranges(session, lost, self._new_id)
            drop_row(session, user_id, key)
            drop_poison(session, user_id, key)
            session.rows("schedule_delete", {"user_id": user_id, "key": key})
            end = replace(before.schedule, enabled=False, timing=max(at, before.defined_at + 1))
            self._define(session, end)
        return True

    @retried
    def find_by_external(self, external_id: str) -> Schedule | None:
        """See `ports.Schedules`."""
        return self._one("schedule_by_external", {"external_id": external_id})

    def _one(self, name: str, params: Params) -> Schedule | None:
        with self._database.transaction() as session:
            rows = session.rows(name, params)
        return read_schedule(rows[0]) if rows else None

    @staticmethod
    def _check_count(session: Session, user_id: str, at_most: int | None) -> None:
        if at_most is None:
            return
        rows = session.rows("schedule_count", {"user_id": user_id})
        if read_number(rows[0][0]) >= at_most:
            raise too_many(at_most)

    @staticmethod
    def _check_external(session: Session, schedule: Schedule) -> None:
        if schedule.external_id is None:
            return
        rows = session.rows("schedule_by_external", {"external_id": schedule.external_id})
        if rows and read_schedule(rows[0]).id != schedule.id:
            raise InvalidSchedule("external_id", "is already another schedule's; choose another.")

    def write(self, session: Session, change: Change) -> None:
        """Carry out what was planned, in the caller's transaction."""
        schedule = change.schedule
        session.rows("schedule_put", schedule_params(schedule))
        record_ranges(session, change.ranges, self._new_id)
        if change.redefines:
            self._define(session, schedule)
            lower_mark(session, schedule)
            drop_poison(session, schedule.user_id, schedule.key)
        if change.row:
            put_row(session, change.row)
        elif change.redefines:
            drop_row(session, schedule.user_id, schedule.key)

    def count_run(self, session: Session, schedule: Schedule, now: int) -> bool:
        """Whether a schedule with a limit may run once more; its last run takes it off the index.

        In the transaction of the begin that asks.
        """
        before = read_before(session, schedule.user_id, schedule.key)
        if before.schedule is None or before.schedule.used_up:
            return False
        name: Params = {"user_id": schedule.user_id, "key": schedule.key}
        session.rows("schedule_ran", name)
        if replace(before.schedule, runs=before.schedule.runs + 1).used_up:
            lost = due_range(before.row, before.fired_through, now, Reason.QUOTA)
            record_ranges(session, lost, self._new_id)
            drop_row(session, schedule.user_id, schedule.key)
            end = max(now, before.defined_at + 1)
            self._define(session, replace(before.schedule, enabled=False, timing=end))
        return True

    @staticmethod
    def _define(session: Session, schedule: Schedule) -> None:
        session.rows(
            "definition_put",
            {
                "user_id": schedule.user_id,
                "key": schedule.key,
                "since": schedule.timing,
                "cron": schedule.cron,
                "timezone": schedule.timezone,
                "policies": schedule.policies.dump(),
                "anchor": schedule.anchor,
                "enabled": int(schedule.enabled),
                "tzdata": TZDATA_VERSION,
            },
        )
