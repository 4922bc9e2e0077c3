"""Schedules and index rows for tests, and the instants at which they are looked at."""

from collections.abc import Sequence
from typing import Final

import pytest

from duetick.domain.policies import Delivery, Misfire, Overlap, Policies, Retry
from duetick.domain.schedule import IndexRow, Occurrence, Schedule
from duetick.ports import Store

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

NOON: Final = 1_803_902_400_000
"""Monday, 1 March 2027, 12:00 UTC: no zone changes its clock near it."""

SOON: Final = NOON + SECOND
"""When a tick comes for what was due at noon. Only tests of the very instant claim at noon."""

DAILY: Final = "0 12 * * *"
EACH_MINUTE: Final = "* * * * *"
BAD: Final = "not an expression"
QUIET: Final = "0 6 * * *"
"""Has no time near noon: a row of it that is due yields that one time alone."""

AT_LEAST_ONCE: Final = Policies(delivery=Delivery.AT_LEAST_ONCE)
ALLOW: Final = Policies(overlap=Overlap.ALLOW)
WAIT: Final = Policies(overlap=Overlap.WAIT)
SKIP_MISSED: Final = Policies(misfire=Misfire.SKIP)
TWO_TRIES: Final = Policies(delivery=Delivery.AT_LEAST_ONCE, retry=Retry(attempts=2))

HOSTILE: Final = ("100%", "a%2Fb", "日本", "c\\d", "auth0|Abc", "k?#&= +", "'; --", 'q"{}', "ß,Ł")

hostile = pytest.mark.parametrize("name", HOSTILE)


def row(
    key: str = "digest",
    *,
    user: str = "ada",
    cron: str = DAILY,
    timezone: str | None = None,
    at: int = NOON,
    policies: Policies | None = None,
) -> IndexRow:
    """An index row without a record."""
    return IndexRow(user, key, cron, timezone, at, policies=policies or Policies())


def schedule(
    key: str = "digest",
    *,
    user: str = "ada",
    cron: str = DAILY,
    timezone: str | None = None,
    policies: Policies | None = None,
    enabled: bool = True,
    external_id: str | None = None,
) -> Schedule:
    """A schedule that sends something."""
    return Schedule(
        user_id=user,
        key=key,
        cron=cron,
        timezone=timezone,
        flow="reminders",
        action="send",
        policies=policies or Policies(),
        enabled=enabled,
        external_id=external_id,
    )


def by_hand(key: str = "digest", *, run: str = "run:1", at: int = NOON) -> Occurrence:
    """An occurrence that a caller brings along, unknown to the tick."""
    return Occurrence("ada", key, DAILY, None, at, origin=run, flow="reminders", due_at=at)


def due_rows(store: Store, count: int) -> list[IndexRow]:
    """Index that many rows, all due at noon."""
    rows = [row(f"k{number:04}") for number in range(count)]
    for one in rows:
        store.index.upsert(one)
    return rows


def keys(found: Sequence[Occurrence]) -> list[str]:
    """Their keys, in order."""
    return [occurrence.key for occurrence in found]
