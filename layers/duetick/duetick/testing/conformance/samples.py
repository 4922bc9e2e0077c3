"""Schedules, index rows and instants for tests."""

from collections.abc import Sequence
from typing import Final

import pytest

from duetick.core.store import Store
from duetick.domain.policies import Delivery, Misfire, Overlap, Policies, Retry
from duetick.domain.schedule import IndexRow, NewOccurrence, Occurrence, Schedule

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

NOON: Final = 1_803_902_400_000
"""Monday, 1 March 2027, 12:00 UTC: no zone changes its clock near it."""

SOON: Final = NOON + SECOND
"""The usual time of a claim after noon. Only tests of the very instant claim at noon."""

DAILY: Final = "0 12 * * *"
EACH_MINUTE: Final = "* * * * *"
BAD: Final = "not an expression"
QUIET: Final = "0 6 * * *"
"""An expression without a time near noon: a row that is due then yields that time alone."""

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
    """Return an index row without a record."""
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
    """Return a schedule that sends a message."""
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


def by_hand(key: str = "digest", *, run: str = "run:1", at: int = NOON) -> NewOccurrence:
    """Return the occurrence of a caller, unknown to the tick."""
    return NewOccurrence("ada", key, DAILY, None, at, origin=run, flow="reminders", due_at=at)


def ask_again(occurrence: Occurrence) -> NewOccurrence:
    """Return the same occurrence as a caller without its fence would request it."""
    return NewOccurrence(
        occurrence.user_id,
        occurrence.key,
        occurrence.cron,
        occurrence.timezone,
        occurrence.nominal_at,
        origin=occurrence.origin,
        due_at=occurrence.due_at,
        flow=occurrence.flow,
    )


def due_rows(store: Store, count: int) -> list[IndexRow]:
    """Index that many rows, all due at noon."""
    rows = [row(f"k{number:04}") for number in range(count)]
    for one in rows:
        store.index.upsert(one)
    return rows


def keys(found: Sequence[Occurrence]) -> list[str]:
    """Return their keys in order."""
    return [occurrence.key for occurrence in found]
