"""The activity of a span behind us, minute by minute, from the reports of its ticks."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from duetick.core.store import Store
from duetick.core.wire import iso
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import DAY, MINUTE_MS
from duetick.domain.schedule import Json
from duetick.domain.workers import REPORTS_KEPT_MS, Worker

LONGEST_MS: Final = DAY * 1_000 + 60 * MINUTE_MS
"""The longest span of one answer: a day on which the clocks go back."""

MOST_REPORTS: Final = 10_000
"""The most reports that are read for one answer: runs in the background have reports too."""

COUNTED: Final = ("claimed", "delivered", "failed", "lost", "poisoned")


class Minutes(NamedTuple):
    """The full minutes from an instant on, before another."""

    since: int
    until: int

    @classmethod
    def read(cls, since: int | None, until: int | None, now: int) -> "Minutes":
        """Return the span that a caller names; without bounds, the day up to now.

        Raises InvalidSchedule if it is too long, or ends before it begins.
        """
        end = now if until is None else until
        start = end - DAY * 1_000 if since is None else since
        if not 0 < end - start <= LONGEST_MS:
            said = "expected an instant after `from`, at most 25 hours later."
            raise InvalidSchedule("to", said, "out_of_range")
        return cls(start - start % MINUTE_MS, end + -end % MINUTE_MS)

    @property
    def amount(self) -> int:
        """How many minutes there are."""
        return (self.until - self.since) // MINUTE_MS


def activity(store: Store, span: Minutes) -> dict[str, Json]:
    """Return what the ticks of a span did, as JSON: for each number, the sums of the minutes.

    A tick belongs to the minute in which it began. `from` is later than asked for if the reports of
    before are deleted, or too many.
    """
    found = store.shelf.workers(span.since, MOST_REPORTS, span.until)
    if len(found) == MOST_REPORTS:
        span = Minutes(_next_minute(found[-1].started_at), span.until)
    kept = Minutes(max(span.since, _next_minute(store.now() - REPORTS_KEPT_MS)), span.until)
    ticks = [one for one in found if one.kind == "tick" and one.started_at >= kept.since]
    shown: dict[str, Json] = {name: _sums(ticks, name, kept) for name in COUNTED}
    shown |= {"ticks": _sums(ticks, None, kept), "latenessMilliseconds": _latest(ticks, kept)}
    return {"from": iso(kept.since), "to": iso(kept.until), **shown}


def _next_minute(at: int) -> int:
    return at + -at % MINUTE_MS


def _sums(ticks: Sequence[Worker], name: str | None, span: Minutes) -> list[Json]:
    """Return the sum of a number for each minute; of None, the count of the ticks."""
    sums = [0] * max(span.amount, 0)
    for one in ticks:
        sums[_place(one, span)] += 1 if name is None else one.counts.get(name, 0)
    return [*sums]


def _latest(ticks: Sequence[Worker], span: Minutes) -> list[Json]:
    """Return the greatest lateness of each minute."""
    found = [0] * max(span.amount, 0)
    for one in ticks:
        place = _place(one, span)
        found[place] = max(found[place], one.lateness_ms)
    return [*found]


def _place(one: Worker, span: Minutes) -> int:
    return (one.started_at - span.since) // MINUTE_MS
