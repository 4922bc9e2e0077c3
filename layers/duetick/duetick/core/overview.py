"""The overview that an operator reads first: how much is due, late, under way, dead, unreadable;
the last ticks; what is paused, limited and backfilled; and if all times added up.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from duetick.core.audit import GONE, last_count
from duetick.core.backfills import backfill_json, read_ordered
from duetick.core.managed.trigger import read_trigger
from duetick.core.occurrences import AllOccurrences, Which
from duetick.core.reports import worker_json
from duetick.core.store import Store
from duetick.core.verify import Progress
from duetick.core.wire import group_pause_json, iso, limit_json
from duetick.core.witness import read_restore
from duetick.core.wrong import wrong_in
from duetick.domain.backfilling import KIND
from duetick.domain.group_pauses import Pauses
from duetick.domain.limits import Limits
from duetick.domain.policies import DAY
from duetick.domain.schedule import Json
from duetick.domain.standing import StandingOrder
from duetick.domain.states import State
from duetick.domain.workers import REPORTS_KEPT_MS, Worker
from duetick.ports import DueJob

AT_MOST: Final = 1_000
"""The most of each kind that are counted."""

TARDY: Final = 30
"""The seconds by which a tick may be late itself."""

PENDING_MS: Final = 2 * 3_600_000
"""The milliseconds after which a pending bell is wrong: as in the alarm."""

DEAD_MS: Final = DAY * 1_000

SHOWN: Final = 5
"""How many ticks, pauses and backfills are shown; and flows and users that fail."""

LOOKED_AT_DEAD: Final = 100
"""The newest dead occurrences whose flows and users are counted."""

DEAD_ONES: Final = frozenset({State.DEAD})

SILENT_TICKS: Final = 3
"""The ticks that are missing when nobody ticks: as in the alarm."""

USUAL_READ: Final = 50
"""The reports among which the last ticks usually are: a run in the background has one too."""


def overview(store: Store, now: int) -> dict[str, Json]:
    """Return the overview as JSON. Counts end at `AT_MOST`: with `more` there may be more."""
    shown: dict[str, Json] = {"at": iso(now), "lateAfter": late_after(store)}
    standing = store.shelf.standing()
    for name, (count, more) in _counts(store, standing, now).items():
        shown[name] = {"count": count, "more": more}
    shown |= {"restored": _find_restore(store), "ticks": _ticks(store, now)}
    shown |= _list_orders(standing, now)
    shown |= {
        "counted": _last_count(store),
        "gone": _count_gone(store),
        "verified": _show_verification(store),
    }
    shown |= {"bells": _bells(store, now), "failing": _failing(store, now)}
    wrong: list[Json] = [dict(one._asdict()) for one in wrong_in(shown)]
    return shown | {"wrong": wrong}


def _failing(store: Store, now: int) -> dict[str, Json]:
    """Return the flows and the users that most of the newest dead of the last day are of."""
    page = AllOccurrences(store).page(Which(DEAD_ONES, since=now - DEAD_MS), LOOKED_AT_DEAD)
    return {
        "of": len(page.found),
        "flows": _most(Counter(one.flow for one in page.found), "flow"),
        "users": _most(Counter(one.user_id for one in page.found), "user"),
    }


def _most(counted: Counter[str], name: str) -> list[Json]:
    return [{name: value, "dead": count} for value, count in counted.most_common(SHOWN)]


def _find_restore(store: Store) -> dict[str, Json] | None:
    """Return the restore from a backup for which no tick claims, or None."""
    found = read_restore(store)
    if found is None:
        return None
    return {
        "noted": iso(found.noted),
        "witnessed": iso(found.witnessed),
        "foundAt": iso(found.found_at),
    }


def late_after(store: Store) -> int:
    """Return the seconds after which a row that is due is late: two ticks have passed it by."""
    return 2 * store.schedules.tick_seconds + TARDY


def _counts(
    store: Store, standing: Sequence[StandingOrder], now: int
) -> Mapping[str, tuple[int, bool]]:
    found, late_at = store.shelf.tally(now, now - DEAD_MS, AT_MOST), now - late_after(store) * 1_000
    leased = found.queued + found.running >= AT_MOST
    waits = found.scheduled + found.retrying >= AT_MOST
    jobs = _free(found.due_jobs, standing, now)
    late = store.shelf.backlog(late_at, AT_MOST) + sum(one.due_at <= late_at for one in jobs)
    due = store.shelf.backlog(now, AT_MOST) + len(jobs)
    return {
        "due": (due, due >= AT_MOST),
        "late": (late, late >= AT_MOST),
        "queued": (found.queued, leased or found.partly),
        "running": (found.running, leased or found.partly),
        "scheduled": (found.scheduled, waits or found.partly),
        "retrying": (found.retrying, waits or found.partly),
        "dead": (found.dead, found.dead >= AT_MOST),
        "unreadable": (found.unreadable, found.unreadable >= AT_MOST),
    }


def _free(jobs: Iterable[DueJob], standing: Sequence[StandingOrder], now: int) -> list[DueJob]:
    """Return the jobs that the next tick takes: no pause holds them, and each limit has a place."""
    pauses, limits = Pauses.of_orders(standing), Limits.of_orders(standing)
    return [
        one
        for one in jobs
        if pauses.holding(one.user_id, one.flow, now) is None
        and all(limits.room(each, now) > 0 for each in limits.of(one.user_id, one.flow, one.action))
    ]


def _ticks(store: Store, now: int) -> dict[str, Json]:
    """Return the last ticks, and if none is at work or has ended for a while: then nothing fires.

    A tick has a report once it claims something, or ends.
    """
    found = _last_ticks(store, now)
    seconds = SILENT_TICKS * store.schedules.tick_seconds
    heard = [_last_heard_at(one, now) for one in found]
    silent = max(heard, default=0) <= now - seconds * 1_000
    last: list[Json] = [worker_json(one, now) for one in found]
    return {"silent": silent, "silentAfter": seconds, "last": last}


def _last_ticks(store: Store, now: int) -> Sequence[Worker]:
    """Return the last ticks, as far as they are among the newest `AT_MOST` reports."""
    found = store.workers(now - REPORTS_KEPT_MS, USUAL_READ)
    ticks = [one for one in found if one.kind == "tick"]
    if len(ticks) < SHOWN and len(found) == USUAL_READ:
        found = store.workers(now - REPORTS_KEPT_MS, AT_MOST)
        ticks = [one for one in found if one.kind == "tick"]
    return ticks[:SHOWN]


def _last_heard_at(tick: Worker, now: int) -> int:
    """Return the end of a tick; now, if the tick is at work; its beginning, if the tick is lost."""
    if tick.ended_at is not None:
        return tick.ended_at
    return tick.started_at if tick.is_lost(now) else now


def _list_orders(standing: Sequence[StandingOrder], now: int) -> dict[str, Json]:
    """Return the pauses of groups that hold, and the backfills that stand, the newest first; and
    the limits, first those without a place.

    One read has all of them: their number is bounded as they are made.
    """
    pauses = [one for one in Pauses.of_orders(standing).every if one.covers(now)]
    backfills = [read_ordered(one) for one in standing if one.kind == KIND]
    limits = sorted(
        Limits.of_orders(standing).every, key=lambda one: (one.room(now) > 0, one.scope)
    )
    newest_pauses = sorted(pauses, key=lambda one: (-one.since, one.scope))
    newest = sorted(backfills, key=lambda one: (-one.since, one.name))
    return {
        "pauses": {
            "count": len(pauses),
            "first": [group_pause_json(one, now) for one in newest_pauses[:SHOWN]],
        },
        "limits": {
            "count": len(limits),
            "first": [limit_json(one, now) for one in limits[:SHOWN]],
        },
        "backfills": {
            "count": len(backfills),
            "first": [backfill_json(one) for one in newest[:SHOWN]],
        },
    }


def _last_count(store: Store) -> dict[str, Json] | None:
    found = last_count(store)
    return found and {**found._asdict(), "at": iso(found.at)}


def _count_gone(store: Store) -> dict[str, Json] | None:
    """Return the number of active schedules whose flow or action is not deployed, and the first
    such names.

    The last deployment or hour counted them; None before the first count.
    """
    note = store.shelf.note(GONE)
    if note is None:
        return None
    kept = json.loads(note)
    first: list[Json] = [{"flow": flow, "schedules": count} for flow, count in kept["first"]]
    return {"at": iso(kept["at"]), "count": kept["schedules"], "first": first[:SHOWN]}


def _bells(store: Store, now: int) -> dict[str, Json] | None:
    """Return the number of pending bells, and the instant since which one is pending; None unless
    bells ring.
    """
    trigger = read_trigger(store)
    if trigger is None or not trigger.is_managed:
        return None
    pending = store.shelf.pending_bells(AT_MOST)
    since = min((one.since for one in pending), default=None)
    return {
        "pending": {"count": len(pending), "more": len(pending) >= AT_MOST},
        "since": iso(since),
        "areLate": since is not None and since <= now - PENDING_MS,
    }


def _show_verification(store: Store) -> dict[str, Json]:
    """Return the progress of the hourly verification, and the number of faults it has found."""
    found = Progress.load(store)
    return {
        "until": iso(found.verified_until),
        "endedAt": iso(found.finished_at),
        "faults": found.verified_faults,
        "faultsSince": found.faults,
    }
