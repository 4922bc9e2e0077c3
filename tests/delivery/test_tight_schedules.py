"""T-13: a put of a schedule that fires more often than the tick comes is warned."""

import logging
from collections.abc import Iterator

import pytest
from duetick import Context, Flow
from duetick.core.deployment import deploy
from duetick.core.flows import Flows
from duetick.core.store import Store
from duetick.domain.pausing import pause, resume
from duetick.domain.schedule import Schedule
from duetick.runtime import wiring
from duetick.stores import open_store
from duetick.testing import Stage
from duetick.testing.conformance.samples import DAY, MINUTE, NOON

TIGHT = "*/5 * * * *"
SAID = (
    "fires up to each 300 s, and a tick comes each 1800 s: "
    "what comes due between two ticks waits, or collapses to the newest"
)


@pytest.fixture
def seldom() -> Iterator[Store]:
    """A store whose tick comes each half hour."""
    store = open_store("sqlite://", clock=lambda: NOON, tick_seconds=1_800)
    store.migrate()
    yield store
    store.close()


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[object, str]]:
    """Return the schedules that the log calls tight, with its messages."""
    told = [one for one in caplog.records if vars(one).get("action") == "tight"]
    return [(vars(one)["schedule"], one.getMessage()) for one in told]


def tight(key: str = "k", cron: str = TIGHT) -> Schedule:
    return Schedule("ada", key, cron, "mail", "send")


def flow_of(cron: str) -> Flow:
    """Return a flow with one static schedule."""
    flow = Flow("mail")
    flow.action("send")(lambda _input, _ctx: None)
    flow.schedule("sweep", cron=cron, action="send")
    return flow


def test_t13_a_python_caller_reads_it_in_the_answer_and_in_the_log(
    seldom: Store, caplog: pytest.LogCaptureFixture
) -> None:
    assert seldom.schedules.put(tight()).warning == SAID
    assert lines(caplog) == [("ada/k", f"a schedule {SAID}")]
    assert seldom.schedules.put(tight("slow", "*/30 * * * *")).warning is None
    assert len(lines(caplog)) == 1


def test_t13_the_warning_is_no_part_of_the_schedule(seldom: Store) -> None:
    made = seldom.schedules.put(tight())
    found = seldom.schedules.get("ada", "k")
    assert found == made
    assert found.warning is None
    assert seldom.schedules.put(made).version == made.version


def test_t13_a_pause_writes_no_line_and_the_resume_does(
    seldom: Store, caplog: pytest.LogCaptureFixture
) -> None:
    made = seldom.schedules.put(tight())
    caplog.clear()
    paused = seldom.schedules.put(pause(made, "", None, NOON + MINUTE), now=NOON + MINUTE)
    assert not lines(caplog)
    assert seldom.schedules.put(resume(paused), now=NOON + DAY).warning == SAID
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize("cron", ["* * * * *", "rate(60 seconds)"])
def test_t13_nothing_is_tighter_than_a_tick_each_minute(cron: str) -> None:
    with Stage(flow_of(TIGHT)) as stage:
        assert stage.put(tight(cron=cron)).warning is None


def test_t13_where_ticks_look_ahead_nothing_waits_for_one() -> None:
    store = open_store("sqlite://", clock=lambda: NOON, look_ahead=True, tick_seconds=60)
    store.migrate()
    assert store.schedules.put(tight(cron="rate(30 seconds)")).warning is None
    store.close()


def test_t13_a_deployment_says_it_of_static_schedules_each_time(
    seldom: Store, caplog: pytest.LogCaptureFixture
) -> None:
    flows = Flows({"mail": flow_of(TIGHT)})
    for _deployment in range(2):
        caplog.clear()
        assert deploy(seldom, lambda: flows)["warnings"] == {"mail/sweep": SAID}
        assert [said for said, _ in lines(caplog)] == ["sweep"]
    assert "warnings" not in deploy(seldom, lambda: Flows({"mail": flow_of("@hourly")}))


def test_t13_an_action_reads_it_in_what_ctx_schedules_answers(seldom: Store) -> None:
    told: list[str | None] = []
    flow = Flow("mail")

    @flow.action("send")
    def send(_given: object, ctx: Context) -> None:
        made = [ctx.schedules.create("more", cron=TIGHT, action="send") for _ in range(2)]
        last = ctx.schedules.replace("more", cron="@hourly", action="send")
        told.extend(one.warning for one in (*made, last))

    with Stage(flow, store=seldom) as stage:
        stage.fire(tight("first", "@hourly"))
    assert told == [SAID, SAID, None]


def test_t13_the_functions_store_knows_the_cadence_of_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUETICK_STORE", "sqlite://")
    monkeypatch.setenv("DUETICK_TICK_SECONDS", "1800")
    wiring.settings.cache_clear()
    store = wiring.store.__wrapped__()
    store.migrate()
    assert store.schedules.put(tight()).warning == SAID
    store.close()
    wiring.settings.cache_clear()


def test_t13_the_line_is_a_warning(seldom: Store, caplog: pytest.LogCaptureFixture) -> None:
    seldom.schedules.put(tight())
    (line,) = [one for one in caplog.records if vars(one).get("action") == "tight"]
    assert line.levelno == logging.WARNING
    assert (vars(line)["user"], vars(line)["flow"]) == ("ada", "mail")
