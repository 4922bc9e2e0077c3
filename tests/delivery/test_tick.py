"""T-01 to T-11: the tick, on a clock that only the test moves. T-06 has a file of its own."""

import threading
from collections.abc import Sequence
from typing import Literal, NoReturn
from unittest.mock import Mock

import pytest
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.core.tick.claims import Claims
from duetick.domain.errors import StoreUnavailable
from duetick.domain.policies import Misfire, Overlap, Policies
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State

from tests.delivery.scene import MINUTE, NINE, Scene
from tests.delivery.ticking import Recorder, Time, rows


def test_t01_the_report_adds_up(store: Store) -> None:
    rows(store, 300)
    store.index.upsert(IndexRow("u", "bad", "not a cron", None, NINE, "mail"))
    report = run_tick(store, Recorder(store), now=NINE)
    assert (report.claimed, report.delivered, report.failed, report.left) == (300, 300, 0, 0)
    assert (report.poisoned, report.backlog) == (1, 0)


def test_t01_poison_beyond_a_page_is_counted(store: Store) -> None:
    for number in range(130):
        store.index.upsert(IndexRow("u", f"k{number}", "not a cron", None, NINE, "mail"))
    assert run_tick(store, Recorder(store), now=NINE).poisoned == 130


def test_i15_a_tick_goes_on_until_nothing_is_due(store: Store) -> None:
    rows(store, 500)
    assert run_tick(store, Recorder(store), now=NINE, chunk=50).delivered == 500


def test_i15_nothing_is_leased_when_there_is_no_time(store: Store) -> None:
    rows(store, 50)
    report = run_tick(store, Recorder(store), now=NINE, budget=4.0)
    assert (report.claimed, report.backlog) == (0, 50)


def test_i15_what_there_was_no_time_for_is_given_back(store: Store) -> None:
    rows(store, 200)
    transport = Recorder(store)
    time = Time(transport)

    def deliver(occurrence: Occurrence, status: int) -> None:
        del occurrence, status
        time.now += 1.0

    report = run_tick(
        store, transport, now=NINE, budget=30.0, slots=1, elapsed=time, on_dispatch=deliver
    )
    assert report.claimed == report.delivered + report.left
    assert 24 <= report.delivered <= 26
    assert report.left + report.backlog + report.delivered == 200
    again = run_tick(store, Recorder(store), now=NINE + MINUTE)
    assert again.delivered == 200 - report.delivered


def test_i15_to_give_back_takes_no_more_than_the_ticks_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of their leases frees the others; a tick that its runtime cuts tells nothing."""
    rows(store, 190)
    transport, freed = Recorder(store), list[Occurrence]()
    time = Time(transport)

    def slow(occurrence: Occurrence, **_: object) -> bool:
        freed.append(occurrence)
        time.now += 1.0
        return True

    def nearly_over(_occurrence: Occurrence, _status: int) -> None:
        time.now = 26.0

    monkeypatch.setattr(store.ledger, "release", slow)
    report = run_tick(
        store, transport, now=NINE, budget=30.0, slots=1, elapsed=time, on_dispatch=nearly_over
    )
    assert (report.claimed, report.delivered, report.left) == (190, 1, 189)
    assert 1 <= len(freed) <= 6


def test_i15_claims_follow_the_pace_of_deliveries(store: Store) -> None:
    rows(store, 2_000)
    transport = Recorder(store)
    time = Time(transport)

    def slow(occurrence: Occurrence, status: int) -> None:
        del occurrence, status
        time.now += 0.1

    report = run_tick(
        store, transport, now=NINE, budget=60.0, slots=4, elapsed=time, on_dispatch=slow
    )
    assert report.delivered > 450
    assert report.left < 60


@pytest.mark.slow
def test_t14_a_tick_reaches_whose_one_stands_behind_anothers_thousands(store: Store) -> None:
    for number in range(1_500):
        store.index.upsert(IndexRow("big", f"k{number:04}", "0 9 * * *", None, NINE, "mail"))
    store.index.upsert(IndexRow("small", "only", "0 9 * * *", None, NINE, "mail"))
    transport = Recorder(store)
    time = Time(transport)

    def deliver(occurrence: Occurrence, status: int) -> None:
        del occurrence, status
        time.now += 0.01

    run_tick(store, transport, now=NINE, chunk=100, slots=4, elapsed=time, on_dispatch=deliver)
    order = [occurrence.user_id for occurrence, _ in transport.seen]
    assert (len(order), order.index("small") < 1_000) == (1_501, True)


def test_t14_what_is_due_has_its_turn_beside_a_mass_of_what_waits(store: Store) -> None:
    for number in range(50):
        store.index.upsert(IndexRow("big", f"k{number}", "0 9 * * *", None, NINE, "mail"))
    assert len(store.index.claim_due(NINE)) == 50
    later = NINE + 2 * MINUTE  # their leases are over
    store.index.upsert(IndexRow("small", "only", "2 9 * * *", None, later, "mail"))
    claims = Claims(store, later, chunk=20, slots=64, look_ahead=0, budget=55.0)
    chunks = [chunk for _ in range(6) for chunk in claims.next(1_000, lambda _share: ())]
    users = [[o.user_id for o in chunk] for chunk in chunks]
    assert users == [["big"] * 20, ["small"], *([["big"] * 10] * 3), []]
    assert claims.over


def test_t02_the_hook_sees_every_delivery_and_may_raise(store: Store) -> None:
    rows(store, 20)
    seen: list[int] = []

    def hook(_occurrence: Occurrence, status: int) -> NoReturn:
        seen.append(status)
        raise RuntimeError("observer")

    report = run_tick(store, Recorder(store, status=0), now=NINE, on_dispatch=hook)
    assert (seen, report.failed) == ([0] * 20, 20)


def test_t02_in_a_deployed_stack_the_hook_is_a_function_of_the_flow(scene: Scene) -> None:
    seen: list[tuple[str, int]] = []
    scene.flow.on_dispatch(lambda occurrence, status: seen.append((occurrence.key, status)))
    rows(scene.store, 1)
    flows = scene.flows
    run_tick(scene.store, Recorder(scene.store), now=NINE, on_dispatch=flows.observe)
    assert seen == [("k0000", 202)]


def test_t01_a_failing_claim_is_loud_and_what_was_claimed_before_is_delivered(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows(store, 100)
    transport, real = Recorder(store), store.index.claim_due
    claims = iter([True, False])

    def claim(now: int, limit: int = 100, **_: object) -> Sequence[Occurrence]:
        if not next(claims):
            raise StoreUnavailable("gone")
        return real(now, limit)

    monkeypatch.setattr(store.index, "claim_due", claim)
    with pytest.raises(StoreUnavailable, match="gone"):
        run_tick(store, transport, now=NINE, chunk=10)
    assert len(transport.seen) == 10


def test_t11_a_stop_begins_nothing_more_and_gives_the_rest_back(store: Store) -> None:
    rows(store, 100)
    transport = Recorder(store)
    report = run_tick(store, transport, now=NINE, slots=1, stopped=lambda: len(transport.seen) >= 3)
    assert report.delivered == len(transport.seen) < 100
    assert report.claimed == report.delivered + report.left
    assert run_tick(store, Recorder(store), now=NINE + MINUTE).delivered == 100 - report.delivered


def test_no_thread_is_lost_to_what_a_transport_a_hook_or_a_release_raises(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_out(*_: object, **__: object) -> bool:
        raise SystemExit

    def overflow(*_: object, **__: object) -> bool:
        raise OverflowError

    rows(store, 3)
    broken = Recorder(store)
    monkeypatch.setattr(Recorder, "deliver", give_out)
    monkeypatch.setattr(type(store.ledger), "release", overflow)
    report = run_tick(store, broken, now=NINE, slots=1, on_dispatch=give_out)
    assert (report.claimed, report.failed, report.left) == (3, 3, 0)


def test_an_endpoint_that_is_down_is_not_leased_everything(store: Store) -> None:
    rows(store, 3_000)
    report = run_tick(store, Recorder(store, status=503), now=NINE, chunk=100)
    assert report.failed == report.claimed < 600
    assert report.backlog > 2_000


def test_t03_what_never_began_is_the_next_ticks(store: Store) -> None:
    rows(store, 5)
    assert run_tick(store, Recorder(store, status=503), now=NINE).failed == 5
    assert run_tick(store, Recorder(store), now=NINE + MINUTE).delivered == 5


def test_t03_what_never_began_within_its_window_is_lost_and_counted(each_store: Store) -> None:
    rows(each_store, 60)
    run_tick(each_store, Recorder(each_store, status=503), now=NINE)
    report = run_tick(each_store, Recorder(each_store), now=NINE + 2 * 60 * MINUTE)
    assert (report.delivered, report.lost) == (0, 60)


def test_t03_what_is_given_back_too_late_is_counted_and_logged_as_lost(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    rows(store, 3)
    seconds = [0.0]
    transport = Recorder(store, status=503)

    def an_hour_later(_occurrence: Occurrence, _status: int) -> None:
        seconds[0] = 3_601.0

    report = run_tick(
        store,
        transport,
        now=NINE,
        budget=9_999.0,
        slots=1,
        on_dispatch=an_hour_later,
        elapsed=lambda: seconds[0],
    )
    assert (report.failed, report.lost) == (3, 2)
    dead = [vars(line) for line in caplog.records if line.getMessage().startswith("dead")]
    assert [(line["reason"], line["flow"]) for line in dead] == [("lost", "mail")] * 2


def test_t10_after_downtime_each_schedule_is_one_decision(store: Store) -> None:
    rows(store, 3, cron="* * * * *", at=NINE - 24 * 60 * MINUTE)
    transport = Recorder(store)
    run_tick(store, transport, now=NINE)
    fired = [o for o, _ in transport.seen if o.user_id == "u0"]
    assert {o.nominal_at for o in fired} == {NINE, NINE - MINUTE, NINE - 2 * MINUTE}
    missed = [o for o in store.ledger.find("u0", "k0000") if o.reason is Reason.MISSED]
    assert [(o.state, o.count) for o in missed] == [(State.CANCELLED, 1_438)]


def test_j09_catching_up_is_paced(store: Store) -> None:
    policies = Policies(misfire=Misfire.ALL, catch_up=5, overlap=Overlap.ALLOW)
    late = IndexRow("u", "k", "0 * * * *", None, NINE - 20 * 60 * MINUTE, "mail", policies=policies)
    store.index.upsert(late)
    counts = []
    for minute in range(6):
        transport = Recorder(store)
        run_tick(store, transport, now=NINE + minute * MINUTE)
        counts.append(len(transport.seen))
    assert sum(counts) == 6
    assert max(counts[1:]) == 1


def test_two_ticks_at_once_deliver_each_once(each_store: Store) -> None:
    rows(each_store, 60)
    transport = Recorder(each_store)
    threads = [
        threading.Thread(target=run_tick, args=(each_store, transport), kwargs={"now": NINE})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(transport.seen) == len({o.identity for o, _ in transport.seen}) == 60


@pytest.mark.parametrize("after", ["keep", "delete"])
def test_l01_a_tick_looks_for_done_schedules_only_if_it_may_have_ended_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, after: Literal["keep", "delete"]
) -> None:
    scene.put(cron="at(2026-12-01T09:00:00)", policies=Policies(after_completion=after))
    leaving = Mock(wraps=scene.store.shelf.leaving)
    monkeypatch.setattr(scene.store.shelf, "leaving", leaving)
    scene.clock.now = NINE
    assert run_tick(scene.store, scene.inline, now=NINE).delivered == 1
    assert leaving.call_count == (after == "delete")
    assert (scene.store.schedules.get("ada", "digest") is None) == (after == "delete")
