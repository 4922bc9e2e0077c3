"""The fourth document: cron on many workers, with ticks made ahead, failover and a backfill.

Its reader has several workers, a Postgres, 10,000 workspaces, and jobs that each worker sends
today. Each test is a section of that document. A worker is a process that ticks. Here it is a
thread, or a claim whose owner is gone.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from duetick import Flow, Policies
from duetick.core.deployment import deploy
from duetick.core.flows import Flows
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.domain.schedule import Json, Schedule
from duetick.domain.states import Reason, State
from duetick.stores import open_store
from duetick.testing import FakeClock, Stage

from tests.delivery.ticking import Recorder, Time
from tests.integration.local_product import NINE, Product
from tests.integration.theirs import PUT, Database, at

MINUTE = 60_000
HOUR = 60 * MINUTE
AHEAD = 2 * MINUTE
LEASE = 100_000
"""Milliseconds: longer than any lease of a claim that was never begun."""


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    return at(request, tmp_path)


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with closing(database.migrated()) as store:
        yield store


def ten_thousand() -> Iterator[tuple[str, str, int]]:
    """Yield the document's mix, evenly over their periods: 1,000 hourly, 5,000 daily, 4,000
    weekly.
    """
    for name, count, minutes in (("h", 1_000, 60), ("d", 5_000, 1_440), ("w", 4_000, 10_080)):
        for number in range(count):
            minute = number * minutes // count
            day, (hour, past) = minute // 1_440, divmod(minute % 1_440, 60)
            cron = {"h": f"{past} * * * *", "d": f"{past} {hour} * * *"}.get(
                name, f"{past} {hour} * * {(2 + day) % 7}"
            )
            # Nine on that Tuesday is minute 0 of each hour, and minute 540 of day and week.
            first = (minute - (0 if name == "h" else 540)) % minutes
            yield f"{name}{number:04}", cron, NINE + first * MINUTE


def test_t06_of_ten_thousand_a_tick_reads_what_comes_due_within_its_two_minutes(
    database: Database, store: Store
) -> None:
    """Workspace scaling: some twenty of 10,000 in a minute, each one exactly once.

    The window of two minutes has three of them, since both its ends belong to it.
    """
    every = list(ten_thousand())
    values = ", ".join(f"('ws-{key}', 'report', '{cron}', NULL, {due})" for key, cron, due in every)
    database.run(PUT.format(values))
    expected = Counter({f"ws-{key}": 1 for key, _, due in every if due <= NINE + AHEAD})
    assert 55 <= len(expected) <= 65

    recorder = Recorder(store)
    time = Time(recorder, [due for _, _, due in every if due <= NINE + AHEAD])
    recorder.clock = time
    two = [
        run_tick(
            store,
            recorder,
            now=NINE,
            budget=200.0,
            look_ahead=AHEAD,
            elapsed=time,
            sleep=time.sleep,
        )
        for _worker in range(2)
    ]
    assert [report.claimed for report in two] == [len(expected), 0]
    assert Counter(occurrence.user_id for occurrence, _ in recorder.seen) == expected
    assert all(0 <= when - one.due_at < 1_000 for one, when in recorder.seen)


def test_t06_workers_at_once_send_one_message_for_each_interval(store: Store) -> None:
    """Problem statement: five workers, one message an interval instead of five."""
    store.schedules.put(
        Schedule("", "jobs/memo-batch-check", "* * * * *", "jobs", "check"), now=NINE - MINUTE
    )
    recorder, together = Recorder(store), threading.Barrier(5)

    def work() -> None:
        together.wait(30)
        run_tick(store, recorder, now=NINE)

    workers = [threading.Thread(target=work) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [one.nominal_at for one, _ in recorder.seen] == [NINE]


def test_l05_each_worker_declares_its_schedules_at_its_start_and_one_stands(store: Store) -> None:
    """Integration: a declaration takes the place of each node's `schedule()`; five starts make one
    schedule.
    """
    jobs = Flow("jobs")
    jobs.action("check")(lambda _given, _ctx: None)
    jobs.schedule("memo-batch-check", cron="*/5 * * * *", action="check")
    for _worker in range(5):
        deploy(store, lambda: Flows({"jobs": jobs}))
    stand = [(one.key, one.version) for one in store.schedules.list("").schedules]
    assert stand == [("jobs/memo-batch-check", 1)]


def test_c05_thirty_seconds_are_an_interval_where_ticks_look_ahead(tmp_path: Path) -> None:
    """System-wide crons: each 30 s, on the second, though a tick comes once a minute."""
    address = f"sqlite:///{tmp_path}/often.db"
    with closing(open_store(address, clock=lambda: NINE, look_ahead=True)) as store:
        store.migrate()
        often = Schedule("", "jobs/often", "rate(30 seconds)", "jobs", "check")
        store.schedules.put(often, now=NINE)
        recorder = Recorder(store)
        time = Time(recorder, [NINE + 30_000, NINE + 60_000, NINE + 90_000])
        recorder.clock = time
        run_tick(
            store,
            recorder,
            now=NINE,
            budget=100.0,
            look_ahead=AHEAD,
            elapsed=time,
            sleep=time.sleep,
        )
    assert [one.nominal_at - NINE for one, _ in recorder.seen] == [30_000, 60_000, 90_000]


def test_t05_a_worker_that_dies_leaves_its_leases_to_the_others(store: Store) -> None:
    """Failure handling: the lease ends, and the next tick delivers each once."""
    for workspace in ("a", "b", "c"):
        schedule = Schedule(workspace, "report", "0 9 * * *", "jobs", "check")
        store.schedules.put(schedule, now=NINE - MINUTE)
    assert len(store.index.claim_due(NINE)) == 3, "by a worker that is gone"
    recorder = Recorder(store)
    assert run_tick(store, recorder, now=NINE + 1_000).delivered == 0
    assert run_tick(store, recorder, now=NINE + LEASE).delivered == 3
    assert run_tick(store, recorder, now=NINE + 2 * LEASE).delivered == 0
    assert sorted(one.user_id for one, _ in recorder.seen) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("misfire", "fires"),
    [("skip", []), ("latest", [HOUR * 3]), ("all", [HOUR, HOUR * 2, HOUR * 3])],
)
def test_t07_when_all_workers_were_down_each_schedule_says_what_is_made_good(
    database: Database, misfire: str, fires: list[int]
) -> None:
    """Future enhancements, backfill: afterwards nothing fires, or the newest time, or all missed
    times.
    """
    jobs, ran = Flow("jobs"), list[int]()
    jobs.action("check")(lambda _given, ctx: ran.append(ctx.nominal_at - NINE))
    with Stage(jobs, clock=FakeClock(NINE), store=database.address) as stage:
        mine = stage.schedules("a", flow="jobs")
        mine.create("hourly", cron="0 * * * *", action="check", policies={"misfire": misfire})
        stage.tick(3 * HOUR + 5 * MINUTE)
        for _minute in range(5):
            stage.tick(MINUTE)
        assert sorted(ran) == fires
        history = stage.store.ledger.find("a", "hourly")
    ended = sum(one.count for one in history if one.state is State.SUCCEEDED)
    missed = sum(one.count for one in history if one.reason is Reason.MISSED)
    assert (ended, missed) == (len(fires), 3 - len(fires)), "each time has one outcome"


def test_j09_an_operator_backfills_an_outage_of_days(running: Product) -> None:
    """Future enhancements, backfill: it goes on at a chosen pace, beside the times that come
    due.
    """
    ann, operator = running.client("ann"), running.operator("ann")
    hourly: dict[str, Json] = {"cron": "0 * * * *", "flow": "reminders", "action": "remind"}
    ann.put("hourly", {**hourly, "input": {"text": "hello"}, "policies": {"misfire": "skip"}})
    running.clock.now = NINE + 5 * HOUR + 5 * MINUTE
    running.tick()
    (outage,) = ann.history("hourly")
    assert (outage["reason"], outage["count"]) == ("missed", 6)

    span: dict[str, Json] = {"from": "2026-12-01T09:00:00Z", "to": "2026-12-01T12:00:00Z"}
    assert operator.start_backfill("hourly", span)["plan"]["toBring"] == 3
    operator.start_backfill("hourly", span, dry_run=False)
    for _minute in range(10):
        running.clock.now += MINUTE
        running.tick()
    brought = [one for one in ann.history("hourly") if one["origin"].startswith("backfill:")]
    assert [one["state"] for one in brought] == ["succeeded"] * 3


def test_t08_a_spread_takes_the_herd_apart_and_renames_nothing(store: Store) -> None:
    """Future enhancements, jitter: due within the minute, named by the time that the cron says."""
    for number in range(40):
        schedule = Schedule(
            f"ws{number}", "daily", "0 9 * * *", "jobs", "check", policies=Policies(spread=60)
        )
        store.schedules.put(schedule, now=NINE - MINUTE)
    seen: dict[str, tuple[int, int]] = {}
    recorder = Recorder(store)
    for second in range(0, 66, 6):
        run_tick(store, recorder, now=NINE + second * 1_000)
    seen = {one.user_id: (one.nominal_at, one.due_at - one.nominal_at) for one, _ in recorder.seen}
    assert len(seen) == len(recorder.seen) == 40
    assert {nominal for nominal, _ in seen.values()} == {NINE}
    assert all(0 <= delay <= 60_000 for _, delay in seen.values())
    assert len({delay // 10_000 for _, delay in seen.values()}) >= 4


def test_t13_the_more_urgent_goes_first_and_each_has_its_own_zone(store: Store) -> None:
    """Future enhancements, priority and time zones: nine in Berlin is an hour before."""
    for key, zone, priority in (
        ("digest", None, 0),
        ("billing", None, 9),
        ("berlin", "Europe/Berlin", 0),
    ):
        policies = Policies(priority=priority)
        schedule = Schedule(
            "ws", key, "0 9 * * *", "jobs", "check", timezone=zone, policies=policies
        )
        store.schedules.put(schedule, now=NINE - 2 * HOUR)
    recorder = Recorder(store)
    for due in (NINE - HOUR, NINE):
        run_tick(store, recorder, now=due, slots=1)
    assert [one.key for one, _ in recorder.seen] == ["berlin", "billing", "digest"]
