"""The timeline of one schedule: the outcomes of a span in short, and the facts that they follow
from.

The history has the outcomes, and the dated definitions name the times that were to fire. The fire
times ahead follow the record as it is now.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from duetick.core.histories import Owned, Wanted, history_page
from duetick.core.keeping import find_kept_since
from duetick.core.previews import changes_near, count_spent, local_time, within_limit
from duetick.core.store import Store
from duetick.core.verify import fault_json, reckon_schedule, rules_of_store
from duetick.core.wire import iso
from duetick.core.wording import definition_json
from duetick.domain.definitions import Definition
from duetick.domain.errors import InvalidSchedule, NotFound
from duetick.domain.expression import InvalidTimezone
from duetick.domain.firing import Times
from duetick.domain.group_pauses import Pauses
from duetick.domain.pausing import is_paused, resume
from duetick.domain.policies import DAY
from duetick.domain.rows import row_of
from duetick.domain.schedule import LATEST, Json, Occurrence, Record

MOST_SHOWN: Final = 1_500
"""The most outcomes, and the most times ahead: a day of a schedule that fires each minute has room.
"""

LONGEST_MS: Final = 400 * DAY * 1_000


class Window(NamedTuple):
    """A span from an instant on, before another, as a caller asked for it."""

    since: int
    until: int

    @classmethod
    def read(cls, since: int | None, until: int | None, now: int) -> "Window":
        """Return the span that a caller names; without bounds, a day behind and a day ahead.

        Raises InvalidSchedule if it is too long, or ends before it begins.
        """
        start = now - DAY * 1_000 if since is None else since
        end = max(now, start) + DAY * 1_000 if until is None else until
        if not 0 < end - start <= LONGEST_MS:
            said = "expected an instant after `from`, at most 400 days later."
            raise InvalidSchedule("to", said, "out_of_range")
        return cls(start, end)


def timeline(schedules: Owned, key: str, window: Window) -> dict[str, Json]:
    """Return the timeline as JSON. `from` is later than asked for if there are more outcomes than
    one answer holds.

    Raises NotFound if there is neither a schedule nor a history.
    """
    now, store = schedules.clock(), schedules.store
    record = schedules.find(key)
    page, more = _outcomes(schedules, key, window)
    shown = window._replace(since=page[-1].nominal_at) if more and page else window
    name = schedules.user_id, key
    definitions = store.shelf.account(*name, shown.since, shown.until).definitions
    dated = list(_in_force(definitions, shown))
    if record is None and not page and not definitions:
        raise NotFound
    zone = _zone(record, definitions)
    pauses = store.pauses.since(shown.since)
    return {
        "from": iso(shown.since),
        "to": iso(shown.until),
        "timezone": zone,
        "entries": [_entry_json(one) for one in page],
        "definitions": [definition_json(one) for one in dated],
        "pauses": [*_pauses_json(pauses, schedules.user_id, record, dated, shown)],
        "clockChanges": [*_clock_changes(zone, shown)],
        "ahead": [iso(at) for at in _list_ahead(store, record, shown, now)],
        "leftOut": [iso(at) for at in _list_left_out(record, shown, now)],
        "unaccounted": [*_list_unaccounted(schedules, key, shown, now)],
    }


def _outcomes(schedules: Owned, key: str, window: Window) -> tuple[Sequence[Occurrence], bool]:
    """Return the newest outcomes of the span, and whether there are others."""
    wanted = Wanted(None, window.since, window.until)
    try:
        page, cursor = history_page(schedules, key, MOST_SHOWN, None, wanted)
    except NotFound:
        return (), False
    return page, cursor is not None


def _in_force(definitions: Sequence[Definition], window: Window) -> Iterator[Definition]:
    """Yield the definitions that were in force in the span, the oldest first."""
    ends = [one.since for one in definitions[1:]] + [LATEST]
    for one, end in zip(definitions, ends, strict=False):
        if one.since < window.until and end > window.since:
            yield one


def _zone(record: Record | None, definitions: Sequence[Definition]) -> str | None:
    if record:
        return record.timezone
    return definitions[-1].timezone if definitions else None


def _entry_json(one: Occurrence) -> dict[str, Json]:
    return {
        "at": iso(one.nominal_at),
        "until": iso(one.range_end),
        "count": one.count,
        "origin": one.origin,
        "state": one.state,
        "reason": one.reason,
    }


def _pauses_json(
    pauses: Pauses,
    user_id: str,
    record: Record | None,
    dated: Sequence[Definition],
    window: Window,
) -> Iterator[dict[str, Json]]:
    """Yield the pauses of groups that covered some of the span, the earliest first."""
    flow = record.flow if record else dated[-1].flow if dated else None
    found = sorted(pauses.of(user_id, flow), key=lambda one: (one.since, one.scope))
    for one in found:
        if one.since < window.until and one.end > window.since:
            yield {"scope": one.scope, "since": iso(one.since), "until": iso(one.until)}


def _clock_changes(zone: str | None, window: Window) -> Iterator[dict[str, Json]]:
    """Yield the changes of the zone's clocks in the span; none if the zone cannot be read."""
    half = (window.until - window.since) // 2
    try:
        found = changes_near(zone, window.since + half, half)
        for one in found:
            before, after = local_time(zone, one.at - 1), local_time(zone, one.at)
            yield {"at": iso(one.at), "before": before[-6:], "after": after[-6:]}
    except InvalidTimezone:
        return


def _list_ahead(store: Store, record: Record | None, window: Window, now: int) -> Sequence[int]:
    """Return the fire times from now on in the span, as things stand."""
    if record is None or not record.enabled or record.done_at or record.defect:
        return ()
    since = max(now, window.since - 1)
    try:
        times = Times.of(row_of(record, now))
        spent = count_spent(store, record, now)
        most = within_limit(record, MOST_SHOWN, spent + times.count(now, since))
        return times.between(since, window.until - 1, most)
    except ValueError:
        return ()


def _list_left_out(record: Record | None, window: Window, now: int) -> Sequence[int]:
    """Return the times that a pause of the schedule leaves out while it holds. The history has them
    when it is over.
    """
    if record is None or record.pause is None or not is_paused(record, now):
        return ()
    pause, times = record.pause, Times.of(row_of(resume(record), now))
    end = window.until if pause.until is None else min(pause.until, window.until)
    try:
        return times.between(max(pause.since, window.since - 1), end - 1, MOST_SHOWN)
    except ValueError:
        return ()


def _list_unaccounted(
    schedules: Owned, key: str, window: Window, now: int
) -> Iterator[dict[str, Json]]:
    """Yield the times up to now that do not add up, as verify tells them."""
    store = schedules.store
    since, until = max(window.since - 1, find_kept_since(store, now)), min(window.until - 1, now)
    if since >= until:
        return
    name = schedules.user_id, key
    for one in reckon_schedule(store, name, since, until, rules_of_store(store)).faults:
        told = fault_json("", one)
        yield {field: str(told[field]) for field in ("problem", "first", "last", "why")} | {
            "count": one.counted
        }
