"""The explanation of one time of a schedule: it fired then, it did not, or it will, and why (A-02).

shelf.change ── look at the book ──▶ Sight ──┐
shelf.account ─ its definitions ─────────────┴─ judge ──▶ Explanation ──▶ said, in wording
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from duetick.core.keeping import find_kept_since
from duetick.core.previews import Preview, count_spent, local_time, previews
from duetick.core.store import Store
from duetick.core.verify import reckon_schedule, rules_of_store
from duetick.domain.accounts import Account, Fault, Rules, zone_of
from duetick.domain.definitions import Definition
from duetick.domain.errors import NotFound
from duetick.domain.explaining import Judgement, Sight, judge, look
from duetick.domain.expression import InvalidTimezone
from duetick.domain.failures import Event, Failure, failures_of
from duetick.domain.group_pauses import GroupPause, Pauses
from duetick.domain.identity import BACKFILL_ORIGIN, SCHEDULE_ORIGIN
from duetick.domain.limits import Limit
from duetick.domain.occurrence import Occurrence, ScheduleName
from duetick.domain.schedule import Record
from duetick.domain.transitions import has_ended, wake_of
from duetick.domain.verdicts import Verdict

NEXT: Final = 10
"""The fire times that an explanation shows besides."""

BESIDES: Final = 10
TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer for one time, and the facts that it follows from.

    `besides` are the occurrences of other origins at that very time. `pause_now` is the pause of a
    group that holds the schedule now. `limit` is the full limit for which the occurrence waits.
    """

    at: int
    now: int
    sight: Sight
    judged: Judgement
    timezone: str | None
    events: Sequence[Event]
    besides: Sequence[Occurrence]
    upcoming: Sequence[Preview]
    pause_now: GroupPause | None
    limit: Limit | None = None

    @property
    def verdict(self) -> Verdict:
        """The answer in one word."""
        return self.judged.verdict

    @property
    def occurrence(self) -> Occurrence | None:
        """The ledger's entry, which may be a range; None if the ledger has none."""
        return self.sight.entry

    @property
    def failures(self) -> Sequence[Failure]:
        """The failed attempts of the ledger's entry, the oldest first."""
        return failures_of(self.sight.entry, self.events) if self.sight.entry else ()

    @property
    def local(self) -> str | None:
        """The local time; None if the zone cannot be read, or has the year 10000 by then."""
        try:
            return local_time(self.timezone, self.at)
        except (InvalidTimezone, OverflowError):
            return None


def explain(store: Store, user_id: str, key: str, at: int, now: int) -> Explanation:
    """Explain one time of a schedule, as things stand now.

    Raises NotFound if nothing is kept of such a schedule.
    """
    name = user_id, key
    sight, account, pauses = _read(store, name, at, now)
    rules, missing = rules_of_store(store), list[Fault]()
    if sight.verdict is None and at <= now:
        missing += reckon_schedule(store, name, at - 1, at, rules).faults
    besides = [one for one in _find_besides(store, name, at) if one != sight.entry]
    made = any(one.origin.startswith(BACKFILL_ORIGIN) for one in besides)
    judged = judge(sight, account, missing, at, rules, pauses=pauses, backfilled=made)
    if judged.verdict == "unaccounted" and _is_forgotten(store, at, now):
        judged = judged._replace(verdict="unknown")
    if not (sight.record or sight.row or sight.entry or account.definitions or besides):
        raise NotFound
    return Explanation(
        at=at,
        now=now,
        sight=sight,
        judged=judged,
        timezone=next(_zones(sight, judged.definition, rules), None),
        events=store.ledger.events(sight.entry) if sight.entry else (),
        besides=besides,
        upcoming=_next_readable(store, sight.record, now),
        pause_now=_pause_now(sight.record, pauses, now),
        limit=_limit_of(store, sight, now),
    )


def _limit_of(store: Store, sight: Sight, now: int) -> Limit | None:
    """Return the limit that holds a due occurrence back, or None."""
    entry = sight.entry
    if entry is None or has_ended(entry) or sight.group or wake_of(entry) > now:
        return None
    action = sight.record.action if sight.record else ""
    covering = store.limits.standing().of(entry.user_id, entry.flow, action)
    full = [one for one in covering if one.room(now) < 1]
    return max(full, key=lambda one: one.free_at(now), default=None)


def _pause_now(record: Record | None, pauses: Pauses, now: int) -> GroupPause | None:
    return pauses.holding(record.user_id, record.flow, now) if record else None


def next_fires(store: Store, record: Record | None, now: int, count: int) -> Sequence[Preview]:
    """Return the next fire times; none if it is done, or paused without an end."""
    if record is None or not record.enabled or record.done_at is not None:
        return ()
    return previews(record, now, count, spent=count_spent(store, record, now))


def _next_readable(store: Store, record: Record | None, now: int) -> Sequence[Preview]:
    """Return the next fire times; none if they cannot be read."""
    try:
        return next_fires(store, record, now, NEXT)
    except ValueError:
        return ()


def _read(
    store: Store, name: ScheduleName, at: int, now: int, tries: int = TRIES
) -> tuple[Sight, Account, Pauses]:
    """Read the definitions, the pauses of groups and the book. If a definition came in between,
    read all again.
    """
    account = store.shelf.account(*name, 0, at)
    pauses = store.pauses.since(min(at, now))
    sight, defined_at = store.shelf.change(
        *name, now, lambda book: (look(book, at, now, pauses), book.defined_at)
    )
    known = account.definitions[-1].since if account.definitions else 0
    if known < defined_at and tries > 1:
        return _read(store, name, at, now, tries - 1)
    return sight, account, pauses


def _is_forgotten(store: Store, at: int, now: int) -> bool:
    return at <= find_kept_since(store, now)


def _find_besides(store: Store, name: ScheduleName, at: int) -> Sequence[Occurrence]:
    found = store.ledger.find(*name, before=at + 1, limit=BESIDES)
    return [one for one in found if one.nominal_at == at and one.origin != SCHEDULE_ORIGIN]


def _zones(sight: Sight, definition: Definition | None, rules: Rules) -> Iterator[str | None]:
    """Yield the zones of the definitions that may name the time, the nearest first."""
    if definition:
        yield zone_of(definition, rules)
    for one in (sight.entry, sight.record, sight.row):
        if one:
            yield one.timezone
