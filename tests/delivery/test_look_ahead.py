"""T-06: a tick claims ahead what comes due in its time, and delivers each at its own second."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from duetick.core.store import Store
from duetick.core.tick import TickReport, loop, run_tick
from duetick.domain.schedule import IndexRow, Occurrence

from tests.delivery.scene import MINUTE, NINE, Scene
from tests.delivery.ticking import Recorder, Time, rows


def test_t06_look_ahead_delivers_each_at_its_own_second(each_store: Store) -> None:
    for second in range(0, 60, 7):
        due = NINE + second * 1_000
        each_store.index.upsert(IndexRow("u", f"k{second}", "0 9 * * *", None, due, "mail"))
    transport = Recorder(each_store)
    time = Time(transport, [NINE + second * 1_000 for second in range(0, 60, 7)])
    transport.clock = time
    report = run_tick(
        each_store,
        transport,
        now=NINE,
        budget=100.0,
        look_ahead=MINUTE,
        elapsed=time,
        sleep=time.sleep,
    )
    assert report.delivered == 9
    late = [when - occurrence.due_at for occurrence, when in transport.seen]
    assert all(0 <= each < 100 for each in late), late
    assert report.lateness_ms < 100


def test_t06_an_edit_after_the_claim_wins(scene: Scene) -> None:
    scene.put("paused", cron="0 9 * * *")
    scene.put("deleted", cron="0 9 * * *")
    scene.put("moved", cron="0 9 * * *")
    scene.put("edited", cron="0 9 * * *", given="old")
    ahead = scene.store.index.claim_due(NINE - 30_000, ahead=MINUTE)
    scene.clock.now = NINE
    scene.store.schedules.delete("ada", "deleted", now=NINE - 20_000)
    for key, change in (
        ("paused", {"enabled": False}),
        ("moved", {"cron": "30 9 * * *"}),
        ("edited", {"input": "new"}),
    ):
        found = scene.store.schedules.get("ada", key)
        assert found
        scene.store.schedules.put(replace(found, **change), now=NINE - 20_000)
    answers = {o.key: scene.deliver(o)[1].get("reason") for o in ahead}
    assert answers == {
        "paused": "disabled",
        "deleted": "schedule_deleted",
        "moved": "superseded",
        "edited": None,
    }
    assert [given for given, _ in scene.ran] == ["new"]


def test_t06_of_a_mass_that_comes_due_later_a_part_is_held_and_all_is_delivered(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One tick cannot deliver all by its end; the tick that overlaps it delivers the rest."""
    monkeypatch.setattr(loop, "AHEAD", 10)
    rows(store, 60, at=NINE + 10_000)
    transport = Recorder(store)
    time, left = Time(transport), list[int]()

    def sleep(seconds: float) -> None:
        left.append(store.index.backlog(NINE + 10_000))
        time.sleep(seconds)

    report = run_tick(
        store,
        transport,
        now=NINE,
        budget=20.0,
        look_ahead=2 * MINUTE,
        chunk=5,
        elapsed=time,
        sleep=sleep,
    )
    assert left[0] == 50
    assert (report.delivered, report.left, report.backlog) == (60, 0, 0)


def test_t06_two_ticks_that_look_ahead_at_once_deliver_each_once(
    each_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        due = NINE + number * 15
        each_store.index.upsert(IndexRow(f"u{number}", "k", "0 9 * * *", None, due, "mail"))
    transport, reports = Recorder(each_store), list[TickReport]()
    both, first = threading.Barrier(2), threading.local()
    real: Callable[..., Sequence[Occurrence]] = each_store.index.claim_due

    def claim(*asked: object, **terms: object) -> Sequence[Occurrence]:
        if not hasattr(first, "over"):
            first.over = both.wait(60)
        return real(*asked, **terms)

    def look_ahead() -> None:
        reports.append(run_tick(each_store, transport, now=NINE, look_ahead=MINUTE, chunk=5))

    monkeypatch.setattr(each_store.index, "claim_due", claim)
    threads = [threading.Thread(target=look_ahead) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sum(report.delivered for report in reports) == 40
    assert len({occurrence.identity for occurrence, _ in transport.seen}) == 40
