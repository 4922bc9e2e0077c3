"""Q-01: occurrences that travel together, under every promise of the API."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from duetick.core.context import Context
from duetick.core.dispatch.packs import SETTLE_WITHIN_MS
from duetick.domain.packs import LARGEST, MOST_LEASES, SHARE, read_message
from duetick.domain.pausing import pause
from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import IndexRow, Json, Schedule

from tests.delivery.post import Post
from tests.delivery.scene import AT_LEAST_ONCE, MINUTE, NINE, TWICE, Scene, fails
from tests.lab.waiting import wait

TOP = Path(__file__).parents[2]

DAILY = "0 9 * * *"
SECOND = 1_000


def put(
    scene: Scene,
    count: int,
    user: str = "ada",
    policies: Policies | None = None,
    cron: str = DAILY,
) -> None:
    """Put that many schedules of a user, due at nine."""
    policies = policies or Policies()
    for number in range(count):
        one = Schedule(user, f"k{number:03}", cron, "mail", "send", policies=policies)
        scene.store.schedules.put(one, now=NINE - 10 * MINUTE)


def send_packs(scene: Scene, count: int, now: int = NINE) -> Post:
    """Put that many schedules of a user, and let a tick send them."""
    put(scene, count)
    post = Post(scene)
    post.tick(now)
    return post


def ended(scene: Scene, user: str = "ada") -> Counter[tuple[str, str | None]]:
    """Count a user's occurrences by state and reason."""
    return Counter((o.state, o.reason) for o in scene.store.ledger.find(user, limit=1_000))


FIRED = ("succeeded", "fired")


def test_q01_what_is_due_in_the_same_second_travels_together(each_scene: Scene) -> None:
    put(each_scene, 30)
    post = Post(each_scene)
    report = post.tick(NINE - MINUTE)
    assert (report.claimed, report.handed_on, report.packs) == (30, 30, 2)
    assert post.run_all(NINE - 1) == []
    assert sum(one.succeeded for one in post.run_all(NINE)) == 30
    assert ended(each_scene) == {FIRED: 30}
    assert len(each_scene.ran) == 30


def test_q01_a_pack_is_sorted_by_name_and_has_one_of_each_schedule(scene: Scene) -> None:
    for key, cron in (("b", "* * * * *"), ("a", DAILY), ("c", "* * * * *")):
        scene.put(key, cron=cron)
    post = Post(scene)
    post.tick(NINE - 1)
    assert sorted(post.packs()) == [
        [["ada/a", "ada/b", "ada/c"]],
        [["ada/b", "ada/c"]],
    ]


def test_q01_a_user_of_more_than_a_share_has_packs_of_a_group_of_its_own(scene: Scene) -> None:
    put(scene, 3 * MOST_LEASES, "many")
    for user in ("ann", "bob"):
        put(scene, 1, user)
    post = Post(scene)
    post.tick(NINE - MINUTE)
    groups = {one.group: {each.user_id for each in one.occurrences} for one in post.sent}
    assert {"ann", "bob", "many"} in groups.values()
    assert sorted(len(users) for users in groups.values()) == [1, 3]
    mixed = next(one for one in post.sent if "ann" in {each.user_id for each in one.occurrences})
    assert sum(each.user_id == "many" for each in mixed.occurrences) == SHARE


def test_q01_two_mixed_packs_are_two_groups(scene: Scene) -> None:
    for number in range(2 * MOST_LEASES):
        put(scene, 1, f"user{number}")
    post = Post(scene)
    post.tick(NINE - MINUTE)
    assert [len(one.occurrences) for one in post.sent] == [MOST_LEASES, MOST_LEASES]
    assert len({one.group for one in post.sent}) == 2


def test_q01_a_message_is_never_longer_than_a_queue_takes(scene: Scene) -> None:
    for number in range(MOST_LEASES):
        row = IndexRow(f"{'u' * 60}{number}", "日" * 60, DAILY, None, NINE, "mail")
        scene.store.index.upsert(row)
    post = Post(scene)
    post.tick()
    assert max(len(one.body.encode()) for one in post.sent) <= LARGEST + 200
    assert sum(len(one.occurrences) for one in post.sent) == MOST_LEASES


def test_q01_a_message_names_leases_and_nothing_that_a_user_wrote(scene: Scene) -> None:
    one = scene.put(given={"text": "my-input"}, cron=DAILY)
    labelled = replace(one, labels={"team": "my-label"}, external_id="my-outside-id")
    scene.store.schedules.put(labelled, now=NINE - MINUTE)
    post = Post(scene)
    post.tick()
    (sent,) = post.sent
    assert "my-" not in sent.body
    assert json.loads(sent.body)["packs"][0][0][:2] == ["ada", "digest"]


def test_q01_the_late_ones_of_one_schedule_follow_one_another(each_scene: Scene) -> None:
    """Side by side, its overlap policy would cancel all but one."""
    each_scene.put(cron="* * * * *")
    each_scene.put("other", cron="* * * * *")
    running: list[int] = []
    most: list[int] = []

    def act(_input: Json, ctx: Context) -> None:
        running.append(ctx.nominal_at)
        most.append(len([at for at in running if ctx.schedule_id == "ada/digest" and at]))
        running.remove(ctx.nominal_at)

    each_scene.act = act
    post = Post(each_scene)
    post.tick(NINE + 2 * MINUTE, look_ahead=0)
    assert post.packs() == [[["ada/digest", "ada/other"]] * 3]
    post.run_all()
    assert ended(each_scene) == {FIRED: 6}
    times = [ctx.nominal_at for _, ctx in each_scene.ran if ctx.schedule_id == "ada/digest"]
    assert times == [NINE, NINE + MINUTE, NINE + 2 * MINUTE]


def test_q01_what_may_overlap_does_not_wait_for_another(scene: Scene) -> None:
    scene.put(cron="* * * * *", policies=Policies(overlap=Overlap.ALLOW))
    post = Post(scene)
    post.tick(NINE + MINUTE, look_ahead=0)
    assert post.packs() == [[["ada/digest"]]] * 2


@pytest.mark.parametrize("apart", [0, 400])
def test_q01_a_message_that_comes_twice_begins_nothing_twice(each_scene: Scene, apart: int) -> None:
    put(each_scene, 5)
    each_scene.act = lambda _given, ctx: fails(None, ctx) if ctx.schedule_id[-1] == "4" else None
    post = Post(each_scene)
    post.tick()
    message = post.take_one()
    post.run(message)
    each_scene.clock.now += apart * SECOND
    again = post.run(message)
    assert (again.begun, again.comes_back_in) == (0, None)
    assert again.refused + again.over == 5
    assert Counter(ctx.schedule_id for _, ctx in each_scene.ran).most_common(1)[0][1] == 1


def test_q01_a_message_that_comes_twice_at_once_begins_nothing_twice(each_scene: Scene) -> None:
    """Its visibility ended too soon: another one gets it while the actions run."""
    put(each_scene, 5)
    second: list[object] = []
    post = Post(each_scene)
    post.tick()
    message = post.take_one()
    entered = threading.Barrier(5)

    def act(_input: Json, _ctx: Context) -> None:
        if entered.wait() == 0:
            second.append(post.scene.dispatch.run_message(message.body))

    each_scene.act = act
    post.run(message)
    assert ended(each_scene) == {FIRED: 5}
    assert [one.refused for one in second] == [5]  # type: ignore[attr-defined]


def test_q01_a_pack_that_comes_after_its_leases_asks_the_store_for_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = send_packs(scene, 3)
    monkeypatch.setattr(scene.store.shelf, "begin", None)
    scene.clock.now += 61 * SECOND
    (report,) = post.run_all()
    assert (report.over, report.begun, report.comes_back_in) == (3, 0, None)


def paused(scene: Scene) -> None:
    found = scene.store.schedules.get("ada", "k001")
    assert found
    scene.store.schedules.put(pause(found, "", None, scene.clock.now), now=scene.clock.now)


def deleted(scene: Scene) -> None:
    scene.store.schedules.delete("ada", "k001", now=scene.clock.now)


def retimed(scene: Scene) -> None:
    found = scene.store.schedules.get("ada", "k001")
    assert found
    scene.store.schedules.put(replace(found, cron="0 10 * * *"), now=scene.clock.now)


EDITS: dict[str, tuple[Callable[[Scene], None], tuple[str, str | None]]] = {
    "paused": (paused, ("cancelled", "disabled")),
    "deleted": (deleted, ("cancelled", "schedule_deleted")),
    "retimed": (retimed, ("cancelled", "superseded")),
}


@pytest.mark.parametrize("edit", EDITS)
def test_q01_a_late_edit_of_one_wins_and_its_neighbours_fire(each_scene: Scene, edit: str) -> None:
    post = send_packs(each_scene, 3, NINE - MINUTE)
    change, expected = EDITS[edit]
    change(each_scene)
    post.run_all(NINE)
    found = each_scene.store.ledger.get("ada", "k001", NINE, "schedule")
    assert found
    assert (found.state, found.reason) == expected
    assert ended(each_scene)[FIRED] == 2


def test_q01_one_whose_place_is_taken_is_cancelled_and_its_neighbours_fire(
    each_scene: Scene,
) -> None:
    put(each_scene, 3)
    each_scene.put("busy", cron="* * * * *", policies=Policies(timeout=200))
    each_scene.clock.now = NINE
    busy = next(one for one in each_scene.store.index.claim_due(NINE) if one.key == "busy")
    each_scene.store.ledger.begin(busy, now=NINE)
    put(each_scene, 3, "bob", cron="1 9 * * *")
    post = Post(each_scene)
    post.tick(NINE + 1, look_ahead=MINUTE)
    (report,) = post.run_all(NINE + MINUTE)
    assert (report.begun, report.refused) == (3, 1)
    (second, _) = each_scene.store.ledger.find("ada", "busy")
    assert (second.state, second.reason) == ("cancelled", "overlap")


@pytest.mark.parametrize("scope", ["flow:mail", "user:ada"])
def test_q01_a_pause_of_a_group_that_came_after_the_claim_holds(
    each_scene: Scene, scope: str
) -> None:
    post = send_packs(each_scene, 3, NINE - MINUTE)
    each_scene.store.pauses.pause(scope, now=NINE - MINUTE)
    post.run_all(NINE)
    assert ended(each_scene) == {("cancelled", "paused"): 3}


def test_q01_a_limit_that_came_after_the_claim_holds(each_scene: Scene) -> None:
    post = send_packs(each_scene, 3, NINE - MINUTE)
    each_scene.store.limits.set("flow:mail", parallel=1, now=NINE - MINUTE)
    post.run_all(NINE)
    assert ended(each_scene)[FIRED] == 1
    assert {one.state for one in each_scene.store.ledger.find("ada")} == {"succeeded", "queued"}


def test_q01_a_failure_is_retried_or_dead_as_its_promise_says(each_scene: Scene) -> None:
    put(each_scene, 2)
    put(each_scene, 2, "bob", replace(AT_LEAST_ONCE, retry=TWICE))
    each_scene.act = fails
    post = Post(each_scene)
    post.tick()
    post.run_all()
    assert ended(each_scene) == {("dead", "failed"): 2}
    assert ended(each_scene, "bob") == {("retrying", None): 2}
    assert sorted(post.told) == [("dead", "k000"), ("dead", "k001")]
    post.tick(NINE + MINUTE)
    post.run_all()
    assert ended(each_scene, "bob") == {("dead", "failed"): 2}
    each_retry = each_scene.store.ledger.find("bob", limit=1)[0]
    assert len(each_scene.store.ledger.events(each_retry)) == 1


def test_q01_an_action_that_takes_too_long_fails_and_its_neighbours_do_not_wait(
    scene: Scene,
) -> None:
    put(scene, 3)
    slow = replace(Policies(), timeout=1)
    scene.store.schedules.put(
        Schedule("ada", "k001", DAILY, "mail", "send", policies=slow), now=NINE - 10 * MINUTE
    )
    hangs = threading.Event()
    scene.act = lambda _given, ctx: hangs.wait(30) if ctx.schedule_id == "ada/k001" else None
    post = Post(scene)
    post.tick()
    (report,) = post.run_all()
    hangs.set()
    assert (report.succeeded, report.failed) == (2, 1)
    (dead,) = scene.store.ledger.find("ada", "k001")
    assert dead.error == "The action took longer than 1 s."


def test_q01_a_slow_action_does_not_hold_up_the_settling_of_the_quick_ones(scene: Scene) -> None:
    """All but one have ended: they are settled a quarter of a second later."""
    put(scene, 4)
    seen: list[Counter[tuple[str, str | None]]] = []
    post = Post(scene)

    def act(_input: Json, ctx: Context) -> None:
        if ctx.schedule_id == "ada/k002":
            began = scene.clock.now
            while scene.clock.now <= began + 2 * SETTLE_WITHIN_MS:
                threading.Event().wait(0.01)
            seen.append(ended(scene))

    scene.act = act
    post.tick()
    post.run_all()
    assert seen == [{FIRED: 3, ("processing", None): 1}]
    assert ended(scene) == {FIRED: 4}


def test_q01_effects_commit_with_their_attempts(sql_scene: Scene) -> None:
    scene = sql_scene

    def act(given: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            if given == "make":
                effects.run("CREATE TABLE payments (id text)")
                return
            effects.run("INSERT INTO payments (id) VALUES (:id)", id=ctx.schedule_id)
            if ctx.schedule_id == "ada/k001":
                raise RuntimeError("no money")
            if ctx.schedule_id == "ada/k002":
                rows.extend(str(row[0]) for row in effects.run("SELECT id FROM payments"))

    rows: list[str] = []
    scene.act = act
    first = Schedule("ada", "first", "59 8 * * *", "mail", "send", input="make")
    scene.store.schedules.put(first, now=NINE - 10 * MINUTE)
    post = Post(scene)
    post.tick(NINE - MINUTE, look_ahead=0)
    post.run_all()
    put(scene, 3)
    post.tick()
    post.run_all()
    assert ended(scene) == {FIRED: 3, ("dead", "failed"): 1}
    assert "ada/k002" in rows
    assert "ada/k001" not in rows


def test_q01_coroutines_run_side_by_side_on_one_loop(scene: Scene) -> None:
    put(scene, 3)
    loops: set[int] = set()
    entered = []

    @scene.flow.action("wait")
    async def rest(_given: Json, ctx: Context) -> None:
        loops.add(id(asyncio.get_running_loop()))
        entered.append(ctx.schedule_id)
        while len(entered) < 3:
            await asyncio.sleep(0.001)

    for number in range(3):
        one = Schedule("ada", f"k{number:03}", DAILY, "mail", "wait")
        scene.store.schedules.put(one, now=NINE - 10 * MINUTE)
    post = Post(scene)
    post.tick()
    (report,) = post.run_all()
    assert report.succeeded == 3
    assert len(loops) == 1


def test_q01_a_coroutine_that_takes_too_long_is_cancelled(scene: Scene) -> None:
    cancelled: list[str] = []

    @scene.flow.action("wait")
    async def rest(_given: Json, ctx: Context) -> None:
        try:
            await asyncio.sleep(30 if ctx.schedule_id == "ada/k001" else 0)
        except asyncio.CancelledError:
            cancelled.append(ctx.schedule_id)
            raise

    for number in range(3):
        policies = replace(Policies(), timeout=1)
        one = Schedule("ada", f"k{number:03}", DAILY, "mail", "wait", policies=policies)
        scene.store.schedules.put(one, now=NINE - 10 * MINUTE)
    post = Post(scene)
    post.tick()
    (report,) = post.run_all()
    assert (report.succeeded, report.failed) == (2, 1)
    wait(lambda: cancelled == ["ada/k001"])


def test_q01_a_background_action_gets_an_invocation_of_its_own(scene: Scene) -> None:
    ran: list[str] = []

    @scene.flow.action("later", background=True)
    def later(_given: Json, ctx: Context) -> None:
        ran.append(ctx.schedule_id)

    put(scene, 3)
    scene.store.schedules.put(
        Schedule("ada", "k001", DAILY, "mail", "later"), now=NINE - 10 * MINUTE
    )
    post = Post(scene)
    post.tick()
    post.run_all()
    assert ended(scene) == {FIRED: 2, ("queued", None): 1}
    (queued,) = scene.queued
    scene.dispatch.run_queued(queued)
    assert ran == ["ada/k001"]
    assert ended(scene) == {FIRED: 3}


def test_q01_a_flow_that_is_gone_rejects_its_own_alone(each_scene: Scene) -> None:
    put(each_scene, 2)
    gone = IndexRow("ada", "gone", DAILY, None, NINE, "nowhere")
    each_scene.store.index.upsert(gone)
    post = Post(each_scene)
    post.tick()
    post.run_all()
    assert ended(each_scene) == {FIRED: 2, ("dead", "rejected"): 1}
    assert post.told == [("dead", "gone")]


def test_q01_a_name_that_no_path_carries_is_rejected_by_the_tick(scene: Scene) -> None:
    scene.store.index.upsert(IndexRow("a/b", "k", DAILY, None, NINE, "mail"))
    post = Post(scene)
    report = post.tick()
    assert (report.rejected, report.failed, report.handed_on) == (1, 1, 0)
    assert ended(scene, "a/b") == {("dead", "rejected"): 1}


def test_t02_the_hook_sees_each_of_a_pack_with_its_status(scene: Scene) -> None:
    put(scene, 3)
    scene.act = lambda _given, ctx: fails(None, ctx) if ctx.schedule_id == "ada/k001" else None
    post = Post(scene)
    post.tick()
    post.run_all()
    assert sorted(post.statuses) == [("k000", 202), ("k001", 500), ("k002", 202)]


def test_t02_a_hook_that_raises_costs_nothing(scene: Scene) -> None:
    post = send_packs(scene, 3)
    message = post.take_one()

    def raises(_occurrence: object, _status: int) -> None:
        raise SystemExit

    report = scene.dispatch.run_message(message.body, on_dispatch=raises)
    assert report.succeeded == 3


def test_q01_a_late_pack_is_told(scene: Scene) -> None:
    post = send_packs(scene, 2)
    message = post.take_one(NINE + 30 * SECOND)
    told: list[tuple[str, str]] = []
    scene.dispatch.run_message(
        message.body, tell=lambda kind, one: told.append((kind, one.key)), late_after=20 * SECOND
    )
    assert sorted(told) == [("late", "k000"), ("late", "k001")]


def test_q01_what_failed_for_good_runs_its_hook_in_a_pack(each_scene: Scene) -> None:
    told: list[str] = []

    @each_scene.flow.action("tell")
    def tell(_given: Json, ctx: Context) -> None:
        told.append(ctx.origin)

    put(each_scene, 2, policies=Policies(on_failure="tell"))
    each_scene.act = fails
    post = Post(each_scene)
    post.tick()
    post.run_all()
    post.tick(NINE + MINUTE)
    post.run_all()
    assert len(told) == 2
    assert ended(each_scene) == {("dead", "failed"): 2, FIRED: 2}


def test_t06_two_ticks_that_overlap_send_each_occurrence_once(each_scene: Scene) -> None:
    each_scene.put(cron="* * * * *")
    post = Post(each_scene)
    for now in (NINE - MINUTE, NINE - MINUTE + 1, NINE):
        post.tick(now)
    sent = [each.nominal_at for one in post.sent for each in one.occurrences]
    assert sorted(sent) == [NINE + n * MINUTE for n in range(3)]


def test_o03_what_a_limit_covers_is_delivered_by_a_call_in_the_same_tick(
    each_scene: Scene,
) -> None:
    put(each_scene, 4)
    put(each_scene, 4, "bob")
    each_scene.store.limits.set("user:bob", parallel=1, now=NINE - MINUTE)
    post = Post(each_scene)
    post.deliver = each_scene.inline.deliver  # type: ignore[method-assign, assignment]
    report = post.tick(NINE, look_ahead=0)
    assert {each.user_id for one in post.sent for each in one.occurrences} == {"ada"}
    assert (report.handed_on, report.delivered, report.claimed) == (4, 4, 8)
    assert ended(each_scene, "bob") == {FIRED: 4}


def test_q01_an_event_of_the_mapping_is_read_and_one_of_long_ago_begins_nothing(
    scene: Scene,
) -> None:
    post, event = Post(scene), json.loads((TOP / "events" / "packs.json").read_text())
    scene.clock.now = 1_800_000_000_000
    assert len(read_message(event["Records"][0]["body"]).packs[0]) == 2
    assert post.answer(event) == {"batchItemFailures": []}
    assert scene.ran == []
