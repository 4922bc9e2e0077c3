"""M-06: static schedules are registered at a deploy, on every store, by `deploy`."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from duetick import Context, Flow, Policies, Principal
from duetick.core.deployment import PAUSE, deploy
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Flows
from duetick.core.purge import purge
from duetick.core.static import Registered, pause_static, register, resume_static
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.domain.errors import InvalidSchedule, NotFound, StoreUnavailable
from duetick.domain.schedule import IndexRow, Schedule
from duetick.stores import open_store
from duetick.testing.conformance.suite import must
from duetick.transports.inline import InlineTransport

from tests.integration.local_product import NINE, Clock
from tests.lab.dynamodb import DynamoDB, table_name

DAY = 86_400_000
SLOW = pytest.mark.slow
HERE = "duetick"


@pytest.fixture
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new, empty database of each kind."""
    kind: str = request.param
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/static.db"
    if kind == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    server: DynamoDB = request.getfixturevalue(kind)
    return server.table_url(table_name())


@pytest.fixture
def clock() -> Clock:
    return Clock(NINE - 1_800_000)


@pytest.fixture
def store(address: str, clock: Clock) -> Iterator[Store]:
    """A store that was migrated, half an hour before nine."""
    opened = open_store(address, clock=clock)
    opened.migrate()
    yield opened
    opened.close()


everywhere = pytest.mark.parametrize(
    "address",
    ["sqlite", pytest.param("postgres", marks=SLOW), pytest.param("dynamodb_local", marks=SLOW)],
    indirect=True,
)


def flow(cron: str = "0 9 * * *", *others: str, timezone: str | None = None) -> Flow:
    """Return a flow with a nightly job, and one more static schedule for each other name."""
    made = Flow("jobs")
    made.action("clean")(lambda _input, _ctx: None)
    for name in ("nightly", *others):
        made.schedule(name, cron=cron, timezone=timezone, action="clean")
    return made


def flows(*given: Flow) -> Flows:
    return Flows({each.name: each for each in given})


def rows(store: Store, *names: str) -> dict[str, int]:
    """Return the next times of the static schedules' index rows."""
    found = {name: store.index.get("", f"jobs/{name}") for name in names}
    return {name: row.next_fire_at for name, row in found.items() if row}


@everywhere
def test_m06_a_static_schedule_gets_an_index_row_without_a_user(store: Store) -> None:
    assert register(store, flows(flow()).static(), HERE) == Registered(put=["jobs/nightly"])
    assert rows(store, "nightly") == {"nightly": NINE}


@everywhere
def test_m04_a_redeploy_moves_no_unchanged_schedule(store: Store, clock: Clock) -> None:
    interval = flows(flow("rate(7 minutes)"))
    register(store, interval.static(), HERE)
    before = rows(store, "nightly")
    clock.now += 60_000
    assert register(store, interval.static(), HERE) == Registered(kept=["jobs/nightly"])
    assert rows(store, "nightly") == before


@everywhere
def test_m04_a_changed_expression_or_zone_moves(store: Store) -> None:
    register(store, flows(flow()).static(), HERE)
    assert register(store, flows(flow("30 9 * * *")).static(), HERE).put == ["jobs/nightly"]
    assert rows(store, "nightly") == {"nightly": NINE + 1_800_000}
    berlin = flows(flow("0 10 * * *", timezone="Europe/Berlin"))
    assert register(store, berlin.static(), HERE).put == ["jobs/nightly"]
    assert rows(store, "nightly") == {"nightly": NINE}


@everywhere
def test_m06_one_removed_from_the_source_is_removed_and_nothing_else_is(store: Store) -> None:
    register(store, flows(flow("0 9 * * *", "weekly")).static(), HERE)
    by_hand = IndexRow("", "jobs/by-hand", "0 9 * * *", None, NINE, flow="jobs")
    store.index.upsert(by_hand)
    store.schedules.put(Schedule("ann", "nightly", "0 9 * * *", "jobs", "clean"))
    unmarked = Schedule("", "jobs/imported", "0 9 * * *", "jobs", "clean")
    store.schedules.put(unmarked)

    assert register(store, flows(flow()).static(), HERE).removed == ["jobs/weekly"]
    left = rows(store, "nightly", "weekly", "by-hand", "imported")
    assert left == dict.fromkeys(("nightly", "by-hand", "imported"), NINE)
    assert store.index.get("ann", "nightly")


@everywhere
@pytest.mark.parametrize("kind", ["row", "record"])
def test_m06_what_no_deployment_made_is_not_written_over(store: Store, kind: str) -> None:
    if kind == "row":
        store.index.upsert(IndexRow("", "jobs/nightly", "5 5 * * *", None, NINE + 5))
    else:
        store.schedules.put(Schedule("", "jobs/nightly", "5 5 * * *", "jobs", "clean"))
    before = rows(store, "nightly")
    with pytest.raises(InvalidSchedule, match="no deployment made it"):
        register(store, flows(flow("0 9 * * *", "weekly")).static(), HERE)
    assert rows(store, "nightly", "weekly") == before


@everywhere
def test_m06_two_deployments_on_one_database_leave_each_others_alone(store: Store) -> None:
    register(store, flows(flow("0 9 * * *", "weekly")).static(), HERE)
    mails = Flow("mails")
    mails.action("send")(lambda _input, _ctx: None)
    mails.schedule("daily", cron="0 9 * * *", action="send")
    assert register(store, flows(mails).static(), "other") == Registered(put=["mails/daily"])
    assert register(store, flows().static(), "other") == Registered(removed=["mails/daily"])
    assert rows(store, "nightly", "weekly") == {"nightly": NINE, "weekly": NINE}


@everywhere
def test_m06_what_another_deployment_made_is_refused_until_its_place_is_taken(
    store: Store,
) -> None:
    register(store, flows(flow()).static(), HERE)
    moved = flows(flow("30 9 * * *"))
    with pytest.raises(InvalidSchedule, match="Deployment=duetick"):
        register(store, moved.static(), "other")
    assert rows(store, "nightly") == {"nightly": NINE}
    assert register(store, moved.static(), HERE).put == ["jobs/nightly"]


@everywhere
def test_m06_of_two_deployments_that_race_for_a_name_the_second_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = store.schedules.put

    def put_late(schedule: Schedule, *, if_version: int | None = None) -> Schedule:
        monkeypatch.setattr(store.schedules, "put", put)
        register(store, flows(flow("30 9 * * *")).static(), "other")
        return put(schedule, if_version=if_version)

    monkeypatch.setattr(store.schedules, "put", put_late)
    with pytest.raises(InvalidSchedule, match="Deployment=other"):
        register(store, flows(flow()).static(), HERE)
    assert rows(store, "nightly") == {"nightly": NINE + 1_800_000}


@everywhere
def test_i10_two_deployments_at_once_both_succeed(address: str, clock: Clock) -> None:
    declared = flows(flow("0 9 * * *", "weekly", "monthly"))
    problems: list[BaseException] = []

    def run() -> None:
        opened = open_store(address, clock=clock)
        try:
            deploy(opened, lambda: declared, patience=30)
        except BaseException as problem:
            problems.append(problem)
        finally:
            opened.close()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    opened = open_store(address, clock=clock)
    assert rows(opened, "nightly", "weekly", "monthly").keys() == {"nightly", "weekly", "monthly"}
    opened.close()


@everywhere
@pytest.mark.parametrize("principal", [None, Principal("robot")])
def test_m06_it_runs_as_its_flow_unless_it_names_another(
    store: Store, clock: Clock, principal: Principal | None
) -> None:
    ran: list[str] = []
    made = Flow("jobs")
    made.action("clean")(lambda _input, ctx: ran.append(ctx.principal.user_id))
    made.schedule("nightly", cron="0 9 * * *", action="clean", principal=principal)
    deploy(store, lambda: flows(made))
    clock.now = NINE
    dispatch = Dispatcher(store, flows(made), lambda _request: True, clock)
    assert run_tick(store, InlineTransport(dispatch)).delivered == 1
    assert ran == ["flow:jobs" if principal is None else "robot"]


@everywhere
def test_l01_a_static_schedule_that_is_done_stays_and_may_be_deployed_again(
    store: Store, clock: Clock
) -> None:
    once = flow("at(2026-12-01T09:00:00)")
    deploy(store, lambda: flows(once))
    clock.now = NINE
    assert store.index.claim_due(NINE)
    purge(store, NINE + 31 * 86_400_000)
    clock.now += 31 * 86_400_000
    done = deploy(store, lambda: flows(once))["schedules"]
    assert done == {"put": [], "kept": ["jobs/nightly"], "removed": []}
    gone = deploy(store, flows)["schedules"]
    assert gone == {"put": [], "kept": [], "removed": ["jobs/nightly"]}


def failing(cron: str = "0 9 * * *") -> Flow:
    """Return a flow whose nightly schedule fails, and is paused after its first failure."""
    made = Flow("jobs", policies=Policies(pause_after=1))
    made.action("clean")(fail)
    made.schedule("nightly", cron=cron, action="clean")
    return made


def fail(_input: None, _ctx: Context) -> None:
    raise RuntimeError("it is broken")


def fires_and_fails(store: Store, clock: Clock) -> None:
    """Deploy the flow that fails, and let it fire once."""
    deploy(store, lambda: flows(failing()))
    clock.now = NINE
    dispatch = Dispatcher(store, flows(failing()), lambda _request: True, clock)
    assert run_tick(store, InlineTransport(dispatch)).failed == 1


@everywhere
def test_m06_after_failures_it_stays_paused_when_it_is_deployed_again(
    store: Store, clock: Clock
) -> None:
    fires_and_fails(store, clock)
    assert rows(store, "nightly") == {}
    clock.now += 60_000
    assert deploy(store, lambda: flows(failing())) == {
        "schema": "up to date",
        "schedules": {"put": [], "kept": ["jobs/nightly"], "removed": []},
        "paused": ["jobs/nightly"],
    }
    assert rows(store, "nightly") == {}
    assert resume_static(store, "jobs", "nightly").enabled
    assert rows(store, "nightly") == {"nightly": NINE + DAY}
    assert "paused" not in deploy(store, lambda: flows(failing()))


@everywhere
def test_m06_a_changed_declaration_ends_its_pause(store: Store, clock: Clock) -> None:
    fires_and_fails(store, clock)
    done = deploy(store, lambda: flows(failing("30 9 * * *")))
    assert (done["schedules"], "paused" in done) == (
        {"put": ["jobs/nightly"], "kept": [], "removed": []},
        False,
    )
    assert rows(store, "nightly") == {"nightly": NINE + 1_800_000}


@everywhere
@pytest.mark.parametrize("until", [None, NINE + 3 * DAY])
def test_m06_an_operators_pause_outlives_a_deployment(
    store: Store, clock: Clock, until: int | None
) -> None:
    deploy(store, lambda: flows(flow()))
    pause_static(store, "jobs", "nightly", note="the disk is full", until=until)
    assert deploy(store, lambda: flows(flow()))["paused"] == ["jobs/nightly"]
    assert must(store.schedules.get("", "jobs/nightly")).pause is not None
    if until:
        clock.now = until
        assert "paused" not in deploy(store, lambda: flows(flow()))
    with pytest.raises(NotFound):
        resume_static(store, "jobs", "weekly")


def test_a_static_schedule_whose_action_is_unknown_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    wrong = Flow("jobs")
    wrong.schedule("nightly", cron="0 9 * * *", action="claen")
    store = open_store(f"sqlite:///{tmp_path}/static.db")
    store.migrate()
    with pytest.raises(InvalidSchedule, match="claen"):
        deploy(store, lambda: flows(flow("0 9 * * *"), wrong))
    assert store.schedules.list("").schedules == ()
    store.close()


@pytest.fixture
def starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Store]:
    """Return a function that makes a store whose database answers only after some calls."""

    def make(failures: int) -> Store:
        left = [StoreUnavailable("not yet")] * failures
        store = open_store(f"sqlite:///{tmp_path}/static.db")
        migrate = store.migrate

        def fail_or_migrate() -> None:
            if left:
                raise left.pop()
            migrate()

        monkeypatch.setattr(store, "migrate", fail_or_migrate)
        return store

    return make


def deploy_with_patience(store: Store, seconds: float) -> float:
    """Deploy, and return the seconds of the wait."""
    waited: list[float] = []
    try:
        deploy(
            store,
            flows,
            ("schema",),
            patience=seconds,
            elapsed=lambda: sum(waited),
            sleep=waited.append,
        )
    finally:
        store.close()
    return sum(waited)


def test_i10_a_database_that_is_being_made_is_waited_for(
    starting: Callable[[int], Store],
) -> None:
    assert deploy_with_patience(starting(3), 10.0) == 3 * PAUSE
    assert deploy_with_patience(starting(0), 0.0) == 0


def test_i10_a_database_that_never_answers_is_waited_for_only_so_long(
    starting: Callable[[int], Store],
) -> None:
    with pytest.raises(StoreUnavailable, match="not yet"):
        deploy_with_patience(starting(99), 10.0)
