"""G-08: from an outside id to the schedule that owns it, and the caller's body to its action."""

import json
from dataclasses import replace

import pytest
from duetick.core.context import Context
from duetick.core.dispatch import Request
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.identity import to_path
from duetick.domain.operating import Operator
from duetick.domain.policies import Delivery, Overlap, Policies, Retry
from duetick.domain.schedule import Json

from tests.delivery.scene import MINUTE, NINE, SECRET, Scene, told

OUTSIDE = "crm/project 7"
RETRIED = Policies(delivery=Delivery.AT_LEAST_ONCE, retry=Retry(attempts=3))
PUSH: Json = {"key": "PROJ-7", "origin": "crm", "fence": 5, "changed": ["title"]}


def owned(scene: Scene) -> Scene:
    """Ada's schedule has the outside id; another one of hers has none."""
    scene.put("other")
    digest = scene.put("digest", cron="0 * * * *", given={"topic": "news"})
    scene.store.schedules.put(replace(digest, external_id=OUTSIDE), now=NINE - MINUTE)
    return scene


def call(
    scene: Scene,
    body: str,
    external_id: str = OUTSIDE,
    *,
    method: str = "POST",
    **headers: str,
) -> tuple[int, dict[str, Json]]:
    """Make a machine's call by an outside id."""
    sent = {name.replace("_", "-"): text for name, text in headers.items()}
    asked = Request("", None, SECRET | sent, body, "r-1", method, external_id=to_path(external_id))
    return told(scene.dispatch(asked))


def test_g08_a_webhook_reaches_the_schedule_that_owns_it(each_scene: Scene) -> None:
    scene = owned(each_scene)
    status, answer = call(scene, json.dumps(PUSH))
    assert status == 202
    assert str(answer["origin"]).startswith("call:")
    ((given, ctx),) = scene.ran
    assert given == {"topic": "news"}
    assert (ctx.schedule_id, ctx.body, ctx.nominal_at) == ("ada/digest", PUSH, NINE)


def test_g08_each_call_is_an_occurrence_of_its_own(scene: Scene) -> None:
    owned(scene)
    assert [call(scene, "{}")[0] for _ in range(3)] == [202, 202, 202]
    assert [one.origin for one in scene.store.index.claim_due(NINE)] == ["schedule", "schedule"]
    assert len(scene.ran) == 3


def test_g08_the_same_idempotency_key_runs_once_in_a_day(each_scene: Scene) -> None:
    scene = owned(each_scene)
    first = call(scene, "{}", idempotency_key="delivery-1")
    scene.clock.advance(23 * 60 * MINUTE)
    again = call(scene, "{}", idempotency_key="delivery-1")
    assert (first[0], again) == (202, (200, {"status": "duplicate", "state": "succeeded"}))
    assert call(scene, "{}", idempotency_key="delivery-2")[0] == 202
    assert len(scene.ran) == 2


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("", None),
        ("7", 7),
        ('["a"]', ["a"]),
        ("a=1&b=2", "a=1&b=2"),
        ("NaN", "NaN"),
        ("[" * 9_000, "[" * 9_000),
    ],
)
def test_g08_whatever_a_caller_sends_is_the_body(scene: Scene, body: str, seen: Json) -> None:
    owned(scene)
    assert call(scene, body)[0] == 202
    assert scene.ran[0][1].body == seen


def test_g08_a_call_of_a_flows_route_has_a_body_for_its_action_too(scene: Scene) -> None:
    owned(scene)
    assert scene.post(body=PUSH, idempotencyKey="k")[0] == 202
    assert scene.ran[0][1].body == PUSH


def test_g08_a_tick_delivers_without_a_body(scene: Scene) -> None:
    owned(scene)
    for due in scene.store.index.claim_due(NINE):
        scene.deliver(due)
    assert [ctx.body for _, ctx in scene.ran] == [None, None]


def test_g08_a_retry_has_the_body_of_its_call(each_scene: Scene) -> None:
    def act(_given: Json, _ctx: Context) -> None:
        if len(each_scene.ran) == 1:
            raise RuntimeError("not yet")

    scene = owned(each_scene)
    digest = scene.store.schedules.get("ada", "digest")
    assert digest
    scene.store.schedules.put(replace(digest, policies=RETRIED), now=NINE - MINUTE)
    scene.act = act
    assert call(scene, json.dumps(PUSH))[0] == 500
    scene.clock.advance(20_000)
    (again,) = scene.store.ledger.claim_waiting(scene.clock.now)
    assert scene.deliver(again)[0] == 202
    assert [ctx.body for _, ctx in scene.ran] == [PUSH, PUSH]


def test_g08_a_call_that_waited_for_a_place_has_its_body(each_scene: Scene) -> None:
    scene = owned(each_scene)
    digest = scene.store.schedules.get("ada", "digest")
    assert digest
    waits = replace(digest, policies=Policies(overlap=Overlap.WAIT))
    scene.store.schedules.put(waits, now=NINE - MINUTE)
    (of_nine,) = (one for one in scene.store.index.claim_due(NINE) if one.key == "digest")
    running = scene.store.ledger.begin(of_nine, now=NINE)
    assert isinstance(running, Begun)
    assert call(scene, json.dumps(PUSH))[0] == 409
    assert scene.ran == []
    scene.store.ledger.settle(running.occurrence, SUCCEEDED, now=NINE + 1)
    scene.clock.advance(MINUTE)
    waited = scene.store.ledger.claim_waiting(scene.clock.now)
    scene.deliver(next(one for one in waited if one.key == "digest"))
    assert [ctx.body for _, ctx in scene.ran] == [PUSH]


@pytest.mark.parametrize(
    "sent", ["\ud800", "\0", "🌍" * 60_000, "\ud800" * 40_000, [1, [2, [None]]], False, ""]
)
def test_g08_whatever_is_sent_is_kept(each_scene: Scene, sent: Json) -> None:
    scene = owned(each_scene)
    assert call(scene, json.dumps(sent, ensure_ascii=sent != "🌍" * 60_000))[0] == 202
    (made,) = scene.store.ledger.find("ada", "digest")
    assert json.loads(scene.store.ledger.body(made.identity) or "") == sent


def test_g08_a_body_that_no_store_can_keep_is_refused(scene: Scene) -> None:
    status, answer = call(owned(scene), f"[{','.join(['1e15'] * 40_000)}]")
    assert (status, answer["error"]) == (413, "too_large")
    assert scene.store.ledger.find("ada", "digest") == []


def test_g08_an_erasure_takes_the_body(each_scene: Scene) -> None:
    scene = owned(each_scene)
    call(scene, json.dumps(PUSH))
    (made,) = scene.store.ledger.find("ada", "digest")
    assert json.loads(scene.store.ledger.body(made.identity) or "") == PUSH
    scene.store.erase("ada")
    assert scene.store.ledger.body(made.identity) is None


def test_o01_a_discarded_call_has_no_body_any_more(each_scene: Scene) -> None:
    scene = owned(each_scene)
    call(scene, json.dumps(PUSH))
    (made,) = scene.store.ledger.find("ada", "digest")
    scene.store.ledger.discard(made, Operator("ops"), now=NINE + 1)
    assert scene.store.ledger.body(made.identity) is None


def test_g08_a_background_action_reads_the_body_that_is_kept(each_scene: Scene) -> None:
    scene = each_scene

    @scene.flow.action("later", background=True)
    def later(given: Json, ctx: Context) -> None:
        scene.ran.append((given, ctx))

    digest = scene.put("digest", action="later")
    scene.store.schedules.put(replace(digest, external_id=OUTSIDE), now=NINE - MINUTE)
    assert call(scene, json.dumps({"changed": 1, "token": "sesame"}))[0] == 202
    (queued,) = scene.queued
    assert "sesame" not in queued.body
    assert scene.dispatch.run_queued(queued).status == 202
    assert scene.ran[0][1].body == {"changed": 1, "token": "sesame"}


def test_g08_what_fails_quotes_no_secret_of_the_body(scene: Scene) -> None:
    def act(_given: Json, ctx: Context) -> None:
        raise RuntimeError(f"the partner refused {ctx.body}")

    owned(scene).act = act
    assert call(scene, json.dumps({"token": "sesame"}))[0] == 500
    (dead,) = scene.store.ledger.find("ada", "digest")
    assert dead.error
    assert "partner" in dead.error
    assert "sesame" not in dead.error


def test_g08_an_outside_id_that_nobody_has_is_not_found(each_scene: Scene) -> None:
    assert call(owned(each_scene), "{}", "crm/project 8")[1]["error"] == "schedule_not_found"


@pytest.mark.parametrize("external_id", ["", "x" * 129, "a\nb", " "])
def test_g08_what_can_be_no_outside_id_is_refused(scene: Scene, external_id: str) -> None:
    status, answer = call(owned(scene), "{}", external_id)
    assert (status, answer["error"]) == (400, "invalid_schedule_id")


def test_g08_nothing_is_looked_up_for_a_stranger(scene: Scene) -> None:
    owned(scene).admits = lambda _header: False
    for external_id in (OUTSIDE, "nobody's"):
        assert call(scene, "{}", external_id)[0] == 401
    scene.admits = bool
    assert call(scene, "{}", method="GET")[0] == 405
    assert scene.ran == []


def test_g08_a_body_is_bounded(scene: Scene) -> None:
    assert call(owned(scene), "x" * 262_145)[0] == 413
