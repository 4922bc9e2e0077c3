"""Ways to claim due rows: ours, the least that any way must write, and the documents' loop."""

import datetime as dt
from collections.abc import Callable, Sequence
from time import perf_counter
from zoneinfo import ZoneInfo

from croniter import croniter
from duetick.core.store import Store
from pg8000.native import Connection

from tests.benchmarks.postgres_data import FAR
from tests.lab.postgres import connect

Way = Callable[[int], int]
"""Claims all that is due at a time; how many rows that were."""

FLOOR_UPDATE = """
UPDATE schedule_index SET next_fire_at = :far, mark = :now WHERE next_fire_at <= :now
RETURNING user_id, key
"""

FLOOR_INSERT = """
INSERT INTO occurrences (user_id, key, nominal_at, origin, id, cron, timezone, flow, state,
    due_at, attempts, priority, fence, lease_until, exclusive, redefined_at, count, created_at,
    updated_at)
SELECT user_id, key, :now, 'schedule', 'occ_0123456789abcdef01234567', cron, timezone, flow,
    'queued', :now, 0, 0, 1, :lease, 1, redefined_at, 1, :now, :now
FROM schedule_index WHERE next_fire_at = :far AND mark = :now
"""

LOOP_SELECT = """
SELECT user_id, key, cron, timezone FROM schedule_index WHERE next_fire_at <= :now
ORDER BY next_fire_at LIMIT 100 FOR UPDATE SKIP LOCKED
"""

ADVANCE = """
UPDATE schedule_index i SET next_fire_at = v.next_at::bigint
FROM (VALUES {rows}) AS v (user_id, key, next_at) WHERE i.user_id = v.user_id AND i.key = v.key
"""


FLOOR_IN_ONE = """
WITH advanced AS (
    UPDATE schedule_index SET next_fire_at = :far, mark = :now WHERE next_fire_at <= :now
    RETURNING user_id, key, cron, timezone, flow, redefined_at
)
INSERT INTO occurrences (user_id, key, nominal_at, origin, id, cron, timezone, flow, state,
    due_at, attempts, priority, fence, lease_until, exclusive, redefined_at, count, created_at,
    updated_at)
SELECT user_id, key, :now, 'schedule', 'occ_0123456789abcdef01234567', cron, timezone, flow,
    'queued', :now, 0, 0, 1, :lease, 1, redefined_at, 1, :now, :now
FROM advanced RETURNING user_id, key
"""


def ours(store: Store, limit: int = 1_000) -> Way:
    """Chunk after chunk until nothing is due: recorded, leased, and made into occurrences."""

    def claim(now: int) -> int:
        claimed = 0
        while found := store.index.claim_due(now, limit):
            claimed += len(found)
        return claimed

    return claim


def floor(url: str) -> Way:
    """Run one constant UPDATE and one INSERT of as many rows, in one transaction."""
    connection = connect(url)
    far = [FAR]

    def claim(now: int) -> int:
        far[0] += 1  # a constant of its own for each tick, so that the INSERT finds its rows
        connection.run("BEGIN")
        rows = connection.run(FLOOR_UPDATE, now=now, far=far[0])
        connection.run(FLOOR_INSERT, now=now, far=far[0], lease=now + 60_000)
        connection.run("COMMIT")
        return len(rows or ())

    return claim


def floor_in_one(url: str) -> Way:
    """Run one statement that advances with a constant and records as many rows."""
    connection = connect(url)
    far = [FAR]

    def claim(now: int) -> int:
        far[0] += 1
        rows = connection.run(FLOOR_IN_ONE, now=now, far=far[0], lease=now + 60_000)
        return len(rows or ())

    return claim


def documents_loop(url: str) -> Way:
    """Claim as the source documents do: a hundred at a time, with croniter, nothing recorded."""
    connection = connect(url)

    def claim(now: int) -> int:
        claimed = 0
        while found := a_hundred(connection, now):
            claimed += len(found)
        return claimed

    return claim


def a_hundred(connection: Connection, now: int) -> Sequence[Sequence[str]]:
    """Advance at most a hundred due rows. Return the user, key, cron and zone of each."""
    connection.run("BEGIN")
    rows: list[list[str]] = connection.run(LOOP_SELECT, now=now) or []
    if rows:
        places = ", ".join(f"(:u{n}, :k{n}, :n{n})" for n in range(len(rows)))
        values: dict[str, object] = {}
        for n, (user_id, key, cron, zone) in enumerate(rows):
            values |= {f"u{n}": user_id, f"k{n}": key, f"n{n}": str(_next(cron, zone, now))}
        connection.run(ADVANCE.format(rows=places), **values)
    connection.run("COMMIT")
    return rows


def _next(cron: str, zone: str, now: int) -> int:
    local = dt.datetime.fromtimestamp(now / 1_000, ZoneInfo(zone))
    return int(croniter(cron, local).get_next(float) * 1_000)


def timed(way: Way, now: int) -> tuple[int, float]:
    """Return the number of claimed occurrences, and the seconds that they took."""
    begun = perf_counter()
    return way(now), perf_counter() - begun
