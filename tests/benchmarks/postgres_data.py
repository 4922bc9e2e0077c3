"""A table of schedules to claim from, and ways to make some of them due again."""

from dataclasses import dataclass
from typing import Self
from zoneinfo import available_timezones

from duetick.stores import open_store
from pg8000.native import Connection

from tests.lab.postgres import connect

MINUTE = 60_000
START = 1_700_000_040_000
FAR = 4_000_000_000_000
ZONES = [zone for zone in sorted(available_timezones()) if zone.count("/") == 1][::9][:48]
CRONS = [
    *(f"{minute} * * * *" for minute in range(0, 60, 5)),
    *(f"{minute} {hour} * * *" for minute in (0, 30) for hour in range(6, 18)),
    *(f"0 {hour} * * MON-FRI" for hour in range(6, 12)),
    *(f"15 9 * * {day}" for day in range(6)),
]
GROUPS = len(CRONS) * len(ZONES)

FILL = """
INSERT INTO schedule_index
    (user_id, key, cron, timezone, next_fire_at, flow, anchor, redefined_at, policies, mark)
SELECT 'user-' || n, 'digest', (:crons::text[])[1 + n % :crons_count::bigint],
    (:zones::text[])[1 + (n / :crons_count) % :zones_count::bigint], :far::bigint, 'reminders',
    :start::bigint + n, 0, NULL, NULL
FROM generate_series(1, :rows::bigint) AS n
"""

PUT_BACK = """
UPDATE schedule_index SET next_fire_at = :far WHERE next_fire_at < :far
"""

MAKE_DUE = """
UPDATE schedule_index i SET next_fire_at = :due, mark = NULL
FROM (
    SELECT 'user-' || (n * :step + :offset) % :rows + 1 AS user_id
    FROM generate_series(1, :count::bigint) n
) AS chosen
WHERE i.user_id = chosen.user_id AND i.key = 'digest'
"""

SPREAD = """
UPDATE schedule_index SET next_fire_at = :due - :minute * ((hashtext(user_id) & 65535) % :times)
WHERE next_fire_at = :due
"""


@dataclass
class Table:
    """Schedules in one database. Each `make_due` is a tick of its own, later than before."""

    url: str
    rows: int
    tick: int = 0

    def filled(self) -> Self:
        """Migrate, and fill in the rows, all due some day. Return the table."""
        store = open_store(self.url)
        store.migrate()
        store.close()
        with connect(self.url) as connection:
            connection.run("TRUNCATE schedule_index, occurrences, marks")
            connection.run(
                FILL,
                crons=CRONS,
                zones=ZONES,
                crons_count=len(CRONS),
                zones_count=len(ZONES),
                far=FAR,
                start=START,
                rows=self.rows,
            )
            connection.run("VACUUM ANALYZE")
            connection.run("CHECKPOINT")
        return self

    def make_due(self, count: int, times: int = 1) -> int:
        """Make a number of rows due, at places all over the table. Return their due time.

        With several `times`, each row is due for one of the last so many minutes, whatever its cron
        says. No two ticks have a time in common.
        """
        self.tick += times
        due = START + self.tick * MINUTE
        with connect(self.url) as connection:
            _put_back(connection)
            connection.run(
                MAKE_DUE,
                due=due,
                step=7_919,
                offset=self.tick * 31,
                rows=self.rows,
                count=count,
            )
            if times > 1:
                connection.run(SPREAD, due=due, minute=MINUTE, times=times)
        return due


def _put_back(connection: Connection) -> None:
    connection.run(PUT_BACK, far=FAR)
