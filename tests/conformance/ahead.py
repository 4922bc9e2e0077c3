"""A forecast of a month, and the month: the number due in each minute is the number that fires in
it.

Schedules of every kind are put before October 2026, in which clocks go forward in Sydney and on
Lord Howe and back in Berlin. For two days no tick comes. Then the month is forecast, a week at a
time, and lived: the real tick and dispatch fire whatever is due at the end of each minute.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from duetick.core.flows import Flow
from duetick.core.forecast import Forecast, Question
from duetick.core.forecast_cursor import ReadSoFar
from duetick.core.store import Store
from duetick.domain.alike import Selection
from duetick.domain.forecasting import Outlook
from duetick.domain.occurrence import IndexRow, Occurrence
from duetick.domain.pausing import pause
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import Schedule
from duetick.testing import Stage
from duetick.testing.clock import FakeClock
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, SECOND

BEGIN: Final = int(datetime(2026, 9, 29, 12, tzinfo=UTC).timestamp()) * 1_000
NOW: Final = BEGIN + 2 * DAY + 20 * SECOND
DAYS: Final = 31
END: Final = NOW - NOW % MINUTE + DAYS * DAY
WEEK: Final = 7 * DAY

PAUSED: Final = 93
"""The times of the month that the pauses of a user and of a flow leave out."""

SYDNEY, HOWE, BERLIN = "Australia/Sydney", "Australia/Lord_Howe", "Europe/Berlin"


OF_STORES: Final = frozenset(
    {
        *("spread", "rate with a spread", "rate that ends", "once", "days", "window"),
        *("three runs", "runs with a spread", "runs of a rate", "all missed", "none missed"),
    }
)
"""The kinds of which a store tells more than cron and zone: enough where each tick takes long."""


def day(number: int, hour: int = 0) -> int:
    """Return an instant of that day after the forecast."""
    return NOW - NOW % DAY + number * DAY + hour * HOUR


def kinds() -> Iterator[tuple[str, str, str | None, Policies]]:
    """Yield the name, the cron, the zone and the policies of each schedule."""
    yield "gap", "30 2 * * *", SYDNEY, Policies()
    yield "no gap", "30 2 * * *", SYDNEY, Policies(gap="skip")
    yield "half a gap", "15 2 * * *", HOWE, Policies()
    yield "repeat", "30 2 * * *", BERLIN, Policies()
    yield "both passes", "30 2 * * *", BERLIN, Policies(repeat="both")
    yield "real time", "*/30 2 * * SUN", BERLIN, Policies()
    yield "spread", "0 9 * * *", BERLIN, Policies(spread=3_600)
    yield "spread over a day", "0 12 * * *", None, Policies(spread=86_400)
    yield "spread of seconds", "0 9 * * MON", None, Policies(spread=45)
    yield "rate", "rate(1501 minutes)", None, Policies()
    yield "rate of seconds", "rate(90001 seconds)", None, Policies()
    yield "rate with a spread", "rate(2 days)", None, Policies(spread=7_200)
    yield "rate that ends", "rate(1 day)", None, Policies(ends_at=day(9, 3))
    yield "once", "at(2026-10-09T12:00:30)", BERLIN, Policies(spread=45)
    yield "days", "days(mon 09:00, thu 17:30)", BERLIN, Policies()
    yield "last day", "0 8 L * *", None, Policies()
    yield "window", "0 6 * * *", None, Policies(starts_at=day(4), ends_at=day(12, 6))
    yield "three runs", "0 7 * * *", None, Policies(max_runs=3)
    yield "runs with a spread", "0 7 * * *", None, Policies(max_runs=4, spread=600)
    yield "runs of a rate", "rate(3 days)", None, Policies(max_runs=2)
    yield "all missed", "0 */6 * * *", None, Policies(misfire=Misfire.ALL, ends_at=day(1))
    yield (
        "none missed",
        "30 */6 * * *",
        None,
        Policies(misfire=Misfire.SKIP, ends_at=day(1)),
    )
    yield "done", "at(2026-09-30T00:00:00)", None, Policies()


@dataclass
class Month:
    """A store, and the fires of a month on it by their minute."""

    store: Store
    clock: FakeClock
    kinds: Collection[str] | None = None
    fired: Counter[int] = field(default_factory=Counter)
    looked_at: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        flows = Flow("flow"), Flow("paused"), Flow("rows")
        for each in flows:
            each.action("act")(lambda _input, _ctx: None)
            each.on_dispatch(self._see)
        flows[2].resolver(lambda _id, _ctx: Schedule("eve", "row", "0 4 * * *", "rows", "act"))
        self.stage = Stage(*flows, clock=self.clock, store=self.store)

    def _see(self, occurrence: Occurrence, status: int) -> None:
        assert status == 202, f"{occurrence.key}: {status}"
        self.fired[self.looked_at[-1]] += 1

    def fills(self) -> None:
        """Put a schedule of each kind, schedules of users and flows that are paused, jobs, and
        rows.
        """
        schedules = self.store.schedules
        every = (one for one in kinds() if self.kinds is None or one[0] in self.kinds)
        for name, cron, zone, policies in every:
            wanted = Schedule("ada", name, cron, "flow", "act", timezone=zone, policies=policies)
            schedules.put(wanted, now=BEGIN)
        for user, flow in (("bob", "flow"), ("ada", "paused")):
            for number, cron in enumerate(("0 10 * * *", "rate(11 hours)", "0 10 1-9 * *")):
                policies = Policies(spread=600 * number)
                wanted = Schedule(user, f"k{number}", cron, flow, "act", policies=policies)
                schedules.put(wanted, now=BEGIN)
        daily = Schedule("eve", "paused", "0 5 * * *", "flow", "act")
        schedules.put(pause(daily, "", None, BEGIN), now=BEGIN)
        until = Schedule("eve", "paused for a while", "0 5 * * *", "flow", "act")
        schedules.put(pause(until, "", day(8, 5), BEGIN), now=BEGIN)
        self.store.index.upsert(IndexRow("eve", "row", "0 4 * * *", None, day(1, 13), "rows"))
        self.store.index.upsert(IndexRow("eve", "bad", "no cron", None, day(3), "flow"))
        self._orders()

    def _orders(self) -> None:
        pauses, jobs = self.store.pauses, self.store.jobs
        pauses.pause("user:bob", until=day(6, 10), now=BEGIN + 3 * HOUR)
        pauses.pause("flow:paused", until=day(20, 9), now=BEGIN + 3 * HOUR)
        for due_at in (BEGIN + HOUR, day(2, 3) + 500, day(6, 3)):
            for user, flow in (("eve", "flow"), ("bob", "flow"), ("eve", "paused")):
                wanted = Schedule(user, "job", "@daily", flow, "act")
                jobs.enqueue(wanted, due_at=due_at, at_most=10, now=BEGIN)

    def lives(self, ahead: Collection[int], minutes: Sequence[int] = ()) -> None:
        """Tick at the end of these minutes; else of each minute in which something is forecast.

        Then it also ticks in each minute in which a row is due whatever the forecast says, and once
        a day.
        """
        for minute in minutes or self._due_minutes(sorted(ahead)):
            self.looked_at.append(minute)
            self.stage.tick(minute + MINUTE - 1 - self.clock())

    def _due_minutes(self, ahead: Sequence[int]) -> Iterator[int]:
        minute = NOW - NOW % MINUTE
        while minute < END:
            yield minute
            rows = self.store.shelf.read_alike(Selection(), self.clock(), END).rows
            due = min((one.next_fire_at for one in rows), default=END)
            place = bisect_right(ahead, minute)
            following = ahead[place] if place < len(ahead) else END
            night = minute - minute % DAY + DAY
            minute = max(minute + MINUTE, min(due - due % MINUTE, following, night))


def forecast(store: Store, since: int, until: int) -> Outlook:
    """Return the numbers that are due in a span, as of now."""
    asked = Question(since=since, until=until, operator=True)
    found = Forecast.begin(store, asked, ReadSoFar.begin(NOW, None))
    found.read(lambda: True)
    found.answer()
    return found.outlook


def by_minute(outlook: Outlook) -> Counter[int]:
    """Return the minutes in which anything is due."""
    every = enumerate(outlook.sums[0].due)
    return Counter({outlook.span.since + n * MINUTE: due for n, due in every if due})


def live_as_forecast(
    store: Store,
    clock: FakeClock,
    minutes: Sequence[int] = (),
    *,
    of: Collection[str] | None = None,
) -> Month:
    """Forecast the month, a week at a time; live it, and compare. Of all kinds, or of some."""
    month = Month(store, clock, of)
    month.fills()
    clock.advance(NOW - clock())
    starts = range(NOW - NOW % MINUTE, END, WEEK)
    weeks = [forecast(store, start, min(start + WEEK, END)) for start in starts]
    ahead = Counter[int]()
    for week in weeks:
        ahead.update(by_minute(week))
    _adds_up(weeks, ahead)
    month.lives(ahead, minutes)
    assert month.fired == ahead, _differences(month.fired, ahead)
    return month


def _adds_up(weeks: Sequence[Outlook], ahead: Counter[int]) -> None:
    totals = [week.finish() for week in weeks]
    counted = sum(one.fires + one.waiting + one.jobs for one in totals)
    assert counted == ahead.total()
    assert sum(one.jobs for one in totals) == 9
    assert {one.unreadable for one in totals} == {1}
    assert sum(one.paused for one in totals) == PAUSED


def _differences(fired: Counter[int], ahead: Counter[int]) -> str:
    minutes = sorted(at for at in fired.keys() | ahead.keys() if fired[at] != ahead[at])
    told = [f"{datetime.fromtimestamp(at / 1_000, UTC):%d %H:%M}" for at in minutes]
    return "; ".join(
        f"{when}: {ahead[at]} forecast, {fired[at]} fired"
        for when, at in zip(told, minutes, strict=True)
    )
