"""A store on a SQL database: everything but the claim, which each backend does its own way."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from duetick.domain.mirror import drifted, problem_of, repair
from duetick.domain.policies import MINUTE_MS
from duetick.domain.schedule import IndexRow
from duetick.ports import Clock, Difference
from duetick.stores.ids import new_id
from duetick.stores.sql.index import Claim, SqlIndex, drop_row
from duetick.stores.sql.ledger import SqlLedger
from duetick.stores.sql.queries import Migration
from duetick.stores.sql.rows import (
    read_difference,
    read_index,
    read_mark,
    read_number,
    read_schedule,
    read_version,
)
from duetick.stores.sql.schedules import SqlSchedules, read_before
from duetick.stores.sql.session import Database, Params, Row, Session, retried
from duetick.stores.versions import check_version

VERSION_TABLE = """CREATE TABLE IF NOT EXISTS schema_version
(version integer NOT NULL, oldest_code integer NOT NULL)"""

OF_USERS = (
    "schedules", "schedule_index", "poisoned", "watermarks", "definitions", "occurrences", "events",
    "caller_keys", "creations", "run_counts",
)  # fmt: skip
"""The tables with what is kept of users."""


CHECKED_AT_ONCE: Final = 1_000


class SqlStore:
    """`ports.Store` on any SQL database."""

    def __init__(
        self,
        database: Database,
        claim: Claim,
        steps: Sequence[Migration],
        clock: Clock | None,
        *,
        look_ahead: bool = False,
    ) -> None:
        self._database = database
        self._steps = steps
        self.now: Clock = clock or database.now
        self.index = SqlIndex(database, self.now, new_id, claim)
        self.schedules = SqlSchedules(database, self.now, new_id, look_ahead=look_ahead)
        count_run = self.schedules.count_run
        self.ledger: SqlLedger = SqlLedger(database, self.now, new_id, count_run)

    def check_transactions(self) -> None:
        """Raise NoTransactions where the connections cannot hold one."""
        self._database.check_transactions()

    @retried
    def migrate(self) -> None:
        """See `ports.Store`."""
        with self._database.migration() as session:
            session.script(VERSION_TABLE)
            applied, _ = _version(session)
            for step in self._steps:
                if step.version > applied:
                    session.script(step.sql)
                    session.rows("schema_version_clear", {})
                    session.rows(
                        "schema_version_set",
                        {"version": step.version, "oldest_code": step.oldest_code},
                    )

    @retried
    def check_schema(self) -> None:
        """See `ports.Store`."""
        with self._database.transaction() as session:
            version, oldest_code = _version(session)
        check_version(self._steps[-1].version, version, oldest_code)

    @retried
    def check(self, *, now: int | None = None) -> Sequence[Difference]:
        """See `ports.Store`."""
        at = self.now() if now is None else now
        with self._database.transaction() as session:
            found = [read_difference(row) for row in session.rows("differences", {})]
        differences = {(one.user_id, one.key): one for one in found}
        for one in (*self._missing(at), *self._drifted(at)):
            differences.setdefault((one.user_id, one.key), one)
        return [differences[name] for name in sorted(differences)]

    def _pages(self, name: str, params: Params) -> Iterator[Row]:
        """What a query finds that begins with a name and goes on after one, a page at a time."""
        page: Sequence[Row] = [("", "")]
        while page:
            after = {"after_user": str(page[-1][0]), "after_key": str(page[-1][1])}
            with self._database.transaction() as session:
                page = session.rows(name, {**params, **after, "limit": CHECKED_AT_ONCE})
            yield from page

    def _drifted(self, now: int) -> Iterator[Difference]:
        """Every row of a record is looked at."""
        for row in self._pages("index_after", {"now": now}):
            problem = _problem(read_index(row), read_mark(row[9]), now)
            if problem:
                yield Difference(str(row[0]), str(row[1]), problem)

    def _missing(self, now: int) -> Iterator[Difference]:
        """A missing row may be right: one that never fires again has none."""
        for record in map(read_schedule, self._pages("schedules_without_row", {})):
            problem = problem_of(record, None, None, now)
            if problem:
                yield Difference(record.user_id, record.key, problem)

    def rebuild(self, *, now: int | None = None) -> int:
        """See `ports.Store`."""
        at = self.now() if now is None else now
        return sum(self._mend(difference, at) for difference in self.check(now=at))

    @retried
    def _mend(self, difference: Difference, now: int) -> bool:
        """Decided anew under the locks of a put: what was found may have been put right since."""
        with self._database.transaction() as session:
            before = read_before(session, difference.user_id, difference.key)
            problem = problem_of(before.schedule, before.row, before.fired_through, now)
            if problem is None or session.rows("poison_get", _name(difference)):
                return False
            drop_row(session, difference.user_id, difference.key)
            if problem == "unreadable":
                return False
            if before.schedule is None or not before.schedule.enabled:
                return True
            try:
                change = repair(before.schedule, before.row, before.fired_through, now)
            except ValueError:
                return False
            self.schedules.write(session, change)
            return True

    @retried
    def erase(self, user_id: str) -> int:
        """See `ports.Store`."""
        params: Params = {"user_id": user_id}
        with self._database.transaction() as session:
            count = read_number(session.rows("schedule_count", params)[0][0])
            for table in OF_USERS:
                session.rows(f"erase_{table}", params)
        return count

    @retried
    def admit_run(self, user_id: str, at_most: int, *, now: int | None = None) -> bool:
        """See `ports.Store`."""
        minute = (self.now() if now is None else now) // MINUTE_MS
        params: Params = {"user_id": user_id, "minute": minute, "at_most": at_most}
        with self._database.transaction() as session:
            return at_most > 0 and session.each("run_count", [params]) == [1]

    def close(self) -> None:
        """See `ports.Store`."""
        self._database.close()


def _problem(
    row: IndexRow, fired_through: int | None, now: int
) -> Literal["stale", "unreadable"] | None:
    try:
        return "stale" if drifted(row, fired_through, now) else None
    except ValueError:
        return "unreadable"


def _version(session: Session) -> tuple[int, int]:
    rows = session.rows("schema_version", {})
    return read_version(rows[0]) if rows else (0, 0)


def _name(difference: Difference) -> Params:
    return {"user_id": difference.user_id, "key": difference.key}
