"""The verification: every nominal time of every schedule has exactly one outcome (A-01, A-02).

                                  ┌ definitions, dated ┐
  shelf.accounts ──▶ each account ┤                    ├ reckon ──▶ faults, seen twice
                                  └ entries            ┘

A fault is told after a second read of its schedule: a tick or an edit may have written meanwhile.
That read also looks for the occurrences of backfills, which account for their times.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from duetick.core.keeping import find_kept_since
from duetick.core.store import Store
from duetick.core.wire import iso
from duetick.domain.accounts import WHY, Account, Fault, Reckoned, Rules, reckon
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.expression import learn
from duetick.domain.group_pauses import Pauses
from duetick.domain.identity import BACKFILL_ORIGIN, schedule_id
from duetick.domain.occurrence import LATEST, Identity, ScheduleName
from duetick.domain.policies import DAY

MOST_NAMED: Final = 20
NOTE: Final = "verify"
READ_AT_ONCE: Final = 500
"""The occurrences of one read that looks for backfills."""

FIRST_SPAN_MS: Final = DAY * 1_000
"""The span of the first hourly verification: the day before it."""

LONGEST_SPAN_MS: Final = 8 * DAY * 1_000
"""The longest span of an hourly verification: a row that stays due for longer is the audit's."""

logger = logging.getLogger("duetick.verify")


@dataclass(slots=True)
class Verified:
    """The result for the times in (since, until].

    If the store keeps nothing older, `since` is later than the instant of the request. The next
    call goes on at `place`; empty if every schedule was seen. `unverified` counts rows without a
    record: nothing tells their times. `faults` has the first of them, by schedule. Times after
    `late_since` were due and not claimed yet: they are verified later. Nothing that ended after
    `kept` was deleted by its age.
    """

    since: int
    until: int
    schedules: int = 0
    times: int = 0
    under_way: int = 0
    unverified: int = 0
    found: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, Fault]] = field(default_factory=list)
    place: str = ""
    late_since: int = LATEST
    kept: int = 0

    @property
    def is_complete(self) -> bool:
        """True if every schedule was seen."""
        return not self.place


class _Known(NamedTuple):
    """The facts that all schedules have in common: the rules of zones, and the pauses of groups."""

    rules: Rules
    pauses: Pauses


def verify(
    store: Store,
    since: int,
    until: int,
    *,
    now: int,
    place: str = "",
    most: int | None = None,
    may_go_on: Callable[[], bool] = lambda: True,
    tell: Callable[[str, Fault], object] = lambda _schedule, _fault: None,
) -> Verified:
    """Compare the times due in (since, until] with the ledger, for every schedule from a place on.

    Nothing later than `now` is looked at. `tell` gets each fault. The walk ends after `most`
    schedules, or when it may not go on.
    """
    kept = find_kept_since(store, now)
    result = Verified(max(since, kept), min(until, now), kept=kept)
    if result.since >= result.until:
        return result
    known = _Known(rules_of_store(store), store.pauses.since(now - KEPT_GONE_MS))
    for account in store.shelf.accounts(result.since, result.until, place):
        _add(store, account, result, known, tell)
        if (most is not None and result.schedules >= most) or not may_go_on():
            result.place = account.place
            break
    return result


def verified_json(whole: Verified, faults: Sequence[dict[str, object]]) -> dict[str, object]:
    """Return the result as JSON, with the first faults. If the walk ended early, it goes on at
    `place`.
    """
    return {
        "since": iso(whole.since),
        "until": iso(whole.until),
        "schedules": whole.schedules,
        "times": whole.times,
        "under_way": whole.under_way,
        "unverified": whole.unverified,
        "faults": whole.found.total(),
        "found": [*faults],
        "place": whole.place or None,
    }


def fault_json(schedule: str, found: Fault) -> dict[str, object]:
    """Return a fault as JSON."""
    return {
        "schedule": schedule,
        "problem": found.problem,
        "first": iso(found.first),
        "last": iso(found.last),
        "count": found.counted,
        "why": WHY[found.problem],
    }


def rules_of_store(store: Store) -> Rules:
    """Return the zones that the store has of other tzdata, by the digest of their rules."""
    known: dict[str, str | None] = {}

    def find(digest: str) -> str | None:
        if digest not in known:
            kept = store.shelf.rules(digest)
            known[digest] = None if kept is None else learn(kept)
        return known[digest]

    return find


def reckon_schedule(
    store: Store, name: ScheduleName, since: int, until: int, rules: Rules
) -> Reckoned:
    """Compare one schedule as it is now.

    A schedule between the arrival of new rules and the hour that dates them may have fired under
    either: it adds up if it does under one of them.
    """

    def of(rules: Rules) -> Reckoned:
        account = store.shelf.account(*name, since, until)
        pauses = store.pauses.since(since)  # after it: a claim under a pause comes after the pause
        made = partial(_find_backfilled, store, name)
        return reckon(account, since, until, rules, pauses, backfilled=made)

    found = of(rules)
    return found if not found.faults else min(found, of(_todays), key=_problems)


def _find_backfilled(store: Store, name: ScheduleName, after: int, until: int) -> Sequence[int]:
    """Return the times in (after, until] that backfills of a schedule have made."""
    found: set[int] = set()
    before: Identity | int = until + 1
    while True:
        page = store.ledger.find(*name, before=before, limit=READ_AT_ONCE)
        mine = [one for one in page if one.nominal_at > after]
        found |= {one.nominal_at for one in mine if one.origin.startswith(BACKFILL_ORIGIN)}
        if len(mine) < READ_AT_ONCE:
            return sorted(found)
        before = mine[-1].identity


def _add(
    store: Store,
    account: Account,
    result: Verified,
    known: _Known,
    tell: Callable[[str, Fault], object],
) -> None:
    result.schedules += 1
    if not account.definitions and not (account.row and account.row.redefined_at):
        result.unverified += account.row is not None
        return
    name = account.user_id, account.key
    if account.row and account.row.next_fire_at <= result.until:
        result.late_since = min(result.late_since, account.row.next_fire_at - 1)
    since = max(_find_start(account, result.since), result.kept)
    if since < result.since:
        account = store.shelf.account(*name, since, result.until)
    found = reckon(account, since, result.until, *known)
    if found.faults:
        found = reckon_schedule(store, name, since, result.until, known.rules)
    result.times += found.times
    result.under_way += found.under_way
    schedule = schedule_id(*name)
    for one in found.faults:
        result.found[one.problem] += 1
        if len(result.faults) < MOST_NAMED:
            result.faults.append((schedule, one))
        tell(schedule, one)


def _find_start(account: Account, since: int) -> int:
    """Return the instant from which a schedule is verified.

    A pause that ended in the span is verified as a whole: it has a range only now.
    """
    for one, following in pairwise(account.definitions):
        paused = one.standing == "paused" or one.paused_until is not None
        if paused and one.since < since < following.since:
            return one.since
    return since


def _todays(_digest: str) -> None:
    """Return None: there are no rules but those of the package."""


def _problems(found: Reckoned) -> int:
    return len(found.faults)


@dataclass(frozen=True, slots=True)
class Progress:
    """The passes over all schedules: the end of the last one's span, and the place of the present
    one.

    A pass verifies the times in (since, until] of every schedule, in as many hours as it needs. The
    next one begins at the first time that was due and not claimed yet. `faults` counts those of
    this pass so far, `verified_faults` those of the last pass; None if it is not known.
    """

    verified_until: int | None = None
    finished_at: int | None = None
    since: int | None = None
    until: int | None = None
    place: str = ""
    schedules: int = 0
    late_since: int = LATEST
    faults: int = 0
    verified_faults: int | None = None

    @classmethod
    def load(cls, store: Store) -> "Progress":
        """Return the progress that the store has."""
        kept = json.loads(store.shelf.note(NOTE) or "{}")
        return cls(**{name: kept[name] for name in cls.__slots__ if name in kept})

    def keep(self, store: Store) -> None:
        """Keep the progress in the store."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        store.shelf.keep_note(NOTE, json.dumps(fields))


def verify_hour(
    store: Store,
    now: int,
    *,
    most: int | None,
    may_go_on: Callable[[], bool],
    tell: Callable[[str, Fault], object] = lambda _schedule, _fault: None,
) -> Verified:
    """Verify a part of the schedules; log each fault, and `tell` it. The next hour goes on from
    there.
    """
    before = Progress.load(store)
    since, until = before.since, before.until
    if since is None or until is None:
        since = min(before.verified_until or now - FIRST_SPAN_MS, before.late_since)
        since, until = max(since, now - LONGEST_SPAN_MS), now

    def log_and_tell(schedule: str, found: Fault) -> None:
        _log(schedule, found)
        tell(schedule, found)

    result = verify(
        store,
        since,
        until,
        now=now,
        place=before.place,
        most=most,
        may_go_on=may_go_on,
        tell=log_and_tell,
    )
    begun = before.until is not None
    seen = (before.schedules if begun else 0) + result.schedules
    late_since = min(before.late_since if begun else LATEST, result.late_since)
    faults = (before.faults if begun else 0) + result.found.total()
    if result.is_complete:
        after = Progress(until, now, schedules=seen, late_since=late_since, verified_faults=faults)
    else:
        after = replace(
            before,
            since=since,
            until=until,
            place=result.place,
            schedules=seen,
            late_since=late_since,
            faults=faults,
        )
    after.keep(store)
    return result


def _log(schedule: str, found: Fault) -> None:
    details = {
        "action": "unaccounted",
        "schedule": schedule,
        "problem": found.problem,
        "first": found.first,
        "last": found.last,
        "times": found.counted,
    }
    logger.error("%s: %s", found.problem, WHY[found.problem], extra=details)
