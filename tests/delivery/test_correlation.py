"""J-02: a line of the log has the ids of its occurrence and of its tick."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
from duetick.core.context import Context
from duetick.core.correlation import ids, in_tick, own_lines, stamp
from duetick.core.tick import run_tick
from duetick.core.wire import delivery_json
from duetick.domain.schedule import Json
from duetick.runtime import telemetry

from tests.delivery.scene import NINE, SECRET, Scene, request

DAY = 86_400_000
mine = logging.getLogger("duetick.flows.mail")


@pytest.fixture(autouse=True)
def stamped(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Lines are captured as the functions' handlers write them."""
    caplog.handler.addFilter(stamp)
    with caplog.at_level("INFO"):
        yield
    caplog.handler.removeFilter(stamp)


def speaks(_input: Json, ctx: Context) -> None:
    """Write a line, then fail."""
    mine.info("about to fail")
    raise RuntimeError(ctx.occurrence_id)


def named(caplog: pytest.LogCaptureFixture, name: str) -> list[object]:
    """Return the values of a field, one for each line."""
    return [vars(one).get(name) for one in caplog.records]


def occurrence_id(scene: Scene, at: int = NINE) -> str:
    found = scene.store.ledger.get("ada", "digest", at, "schedule")
    assert found
    return found.id


def test_j02_each_line_of_a_tick_and_of_its_dispatches_has_the_ids_of_both(
    each_scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene = each_scene
    scene.put(cron="0 9 * * *")
    scene.act = speaks
    ticks = set[object]()
    for at in (NINE, NINE + DAY):
        caplog.clear()
        run_tick(scene.store, scene.inline, now=at)
        said = {one.getMessage().partition(":")[0] for one in caplog.records}
        assert said >= {"about to fail", "action failed", "delivery failed"}
        assert set(named(caplog, "correlation_id")) == {occurrence_id(scene, at)}
        (tick,) = set(named(caplog, "tick"))
        assert str(tick).startswith("tick_")
        ticks.add(tick)
        scene.clock.advance(DAY)
    assert len(ticks) == 2
    assert ids() == {}


def test_j02_a_line_of_the_tick_itself_has_its_id(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise ConnectionError

    scene.put(cron="0 9 * * *")
    monkeypatch.setattr(scene.store.index, "claim_due", away)
    with in_tick("of-the-invocation"), pytest.raises(ConnectionError):
        run_tick(scene.store, scene.inline, now=NINE)
    assert named(caplog, "action") == ["claim_failed"]
    assert named(caplog, "tick") == ["of-the-invocation"]
    assert named(caplog, "correlation_id") == [None]


def test_j02_the_body_of_a_delivery_brings_both_ids_to_another_process(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.put(cron="0 9 * * *")
    scene.act = speaks
    claimed = scene.claim()
    with in_tick("tick_1"):
        body = delivery_json(claimed)
    assert "tick" not in delivery_json(claimed)
    with own_lines():
        scene.dispatch(request("mail", "ada/digest", body))
        assert ids() == {"correlation_id": claimed.id, "tick": "tick_1"}
    assert set(named(caplog, "tick")) == {"tick_1"}
    assert set(named(caplog, "correlation_id")) == {claimed.id}
    assert ids() == {}


def test_j02_a_call_from_outside_is_correlated_by_the_occurrence_that_it_makes(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.put()
    scene.act = speaks
    scene.post(idempotencyKey="k", occurrence="occ_of-somebody")
    (made,) = scene.store.ledger.find("ada", "digest")
    assert set(named(caplog, "correlation_id")) == {made.id}
    assert set(named(caplog, "tick")) == {None}


@pytest.mark.parametrize("odd", [5, None, "x" * 129, "a\nb", ["occ"]])
def test_j02_what_is_no_id_stands_in_no_line(scene: Scene, odd: Json) -> None:
    with own_lines():
        scene.post(occurrence=odd, tick=odd)
        assert ids() == {}


def test_d02_nothing_of_a_body_stands_in_a_line_before_its_caller_is_known(scene: Scene) -> None:
    body: dict[str, Json] = {"occurrence": "occ_1", "tick": "tick_1"}
    with own_lines():
        scene.dispatch(request("mail", "ada/digest", body, headers={}))
        assert ids() == {}


@pytest.mark.parametrize("by_tick", [True, False])
def test_j02_an_invocation_of_its_own_has_the_same_ids(scene: Scene, by_tick: bool) -> None:
    scene.flow.action("slow", background=True)(lambda _input, _ctx: None)
    scene.put(cron="0 9 * * *", action="slow")
    with own_lines(), in_tick("tick_1"):
        if by_tick:
            run_tick(scene.store, scene.inline, now=NINE)
        else:
            scene.post()
    (queued,) = scene.queued
    (held,) = scene.store.ledger.find("ada", "digest")
    with own_lines():
        scene.dispatch.run_queued(replace(queued, headers=SECRET))
        known = {"tick": "tick_1"} if by_tick else {}
        assert ids() == {"correlation_id": held.id, **known}
    assert json.loads(queued.body)["occurrence"] == held.id


def test_j02_every_handler_of_the_functions_stamps_its_lines() -> None:
    handlers = [*telemetry.logger.handlers, *logging.getLogger("duetick").handlers]
    assert handlers
    assert all(stamp in one.filters for one in handlers)


def test_j02_an_action_reads_the_labels_of_its_schedule(scene: Scene) -> None:
    made = scene.put(cron="0 9 * * *")
    claimed = scene.claim()
    scene.store.schedules.put(replace(made, labels={"team": "ops"}), now=NINE)
    scene.deliver(claimed)
    ((_, context),) = scene.ran
    assert context.labels == {"team": "ops"}
