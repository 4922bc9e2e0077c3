"""The database goes away at any point: a clear error or a retry, nothing lost, nothing twice."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from duetick.cli.context import LocalContext
from duetick.cli.gateway import Handler
from duetick.core.context import Context
from duetick.core.store import Store
from duetick.domain.attempts import Outcome
from duetick.domain.errors import StoreUnavailable
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import Json, Occurrence
from duetick.stores import open_store

from tests.delivery.office import Office, office
from tests.delivery.outages import Gone, Locked, Outage, door
from tests.delivery.scene import MINUTE, NINE, Scene
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.process import LOCALHOST

if TYPE_CHECKING:
    from tests.lab.postgres import EmbeddedPostgres

pytestmark = pytest.mark.slow

KEYS = ("first", "second", "third")
NAMES = "SQLite|Postgres|DynamoDB"

Place = tuple[str, Outage]


@dataclass(slots=True)
class Shaky:
    """A store that can go away, and an office on it with three schedules at nine."""

    store: Store
    outage: Outage
    office: Office
    lock: threading.Lock = field(default_factory=threading.Lock)
    away: bool = False

    def put(self, policies: Policies | None = None) -> None:
        """Put schedules that are due at nine."""
        for key in KEYS:
            self.office.scene.put(key, cron="0 9 * * *", policies=policies)

    def goes_away(self) -> None:
        """Once, for everybody: also for who is connected."""
        with self.lock:
            if not self.away:
                self.away = True
                self.outage.begin()
                self.store.close()

    def tick(self) -> None:
        """Run a tick that the outage meets: its next claim fails, else its deliveries do."""
        try:
            report = self.office.tick(NINE)
        except StoreUnavailable:
            return
        assert (report.delivered, report.failed) == (0, 3)

    def comes_back(self) -> None:
        """Once, with all that it held."""
        with self.lock:
            if self.away:
                self.outage.end()
                self.away = False

    def history(self) -> list[tuple[str, str | None, int]]:
        """Return the state, the reason and the attempts of each of the three."""
        return sorted((o.state, o.reason, o.attempts) for o in self.store.ledger.find("ada"))

    def runs(self) -> list[int]:
        """Count the runs of each action."""
        return sorted(self.office.runs.values())


@pytest.fixture(params=["locked", "gone", "postgres", "dynamodb"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """The address of a fresh store, and its outage. Nobody waits for long here."""
    monkeypatch.setattr("duetick.stores.sqlite.database.BUSY_SECONDS", 0.2)
    monkeypatch.setattr("duetick.stores.dynamodb.service.TRIES", 2)
    monkeypatch.setattr("duetick.core.dispatch.attempt.PAUSE", 0.02)
    if request.param == "postgres":
        server: EmbeddedPostgres = request.getfixturevalue("own_postgres")
        with door(server.port) as way:
            yield f"postgresql://postgres@{LOCALHOST}:{way.port}/postgres", way
    elif request.param == "dynamodb":
        local: DynamoDB = request.getfixturevalue("dynamodb_local")
        port = int(local.endpoint.rpartition(":")[2])
        with door(port) as way:
            yield local.table_url(table_name()).replace(str(port), str(way.port)), way
    else:
        folder = tmp_path / "volume"
        folder.mkdir()
        path = folder / "duetick.db"
        yield f"sqlite:///{path}", Locked(path) if request.param == "locked" else Gone(folder)


@pytest.fixture
def shaky(place: Place) -> Iterator[Shaky]:
    """A store there, and an office on it."""
    address, outage = place
    store = open_store(address, clock=lambda: NINE)
    store.migrate()
    with office(Scene(store)) as made:
        yield Shaky(store, outage, made)
    store.close()


def test_down_when_the_tick_comes(shaky: Shaky) -> None:
    shaky.put()
    shaky.goes_away()
    with pytest.raises(StoreUnavailable, match=NAMES):
        shaky.office.tick(NINE)
    shaky.comes_back()
    assert shaky.office.tick(NINE + MINUTE).delivered == 3
    assert (shaky.history(), shaky.runs()) == ([("succeeded", "fired", 1)] * 3, [1] * 3)


def before(act: Callable[[], None], handle: Handler) -> Handler:
    """Return a handler that lets something happen first."""

    def handler(event: dict[str, Any], context: LocalContext) -> Mapping[str, Any]:
        act()
        return handle(event, context)

    return handler


def test_down_between_the_claim_and_the_dispatch(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing began, and the tick cannot even give it back: the leases' end does."""
    shaky.put()
    [route] = shaky.office.server.routes
    shaky.office.server.routes = [replace(route, handler=before(shaky.goes_away, route.handler))]
    shaky.tick()
    assert shaky.office.runs == {}
    shaky.office.server.routes = [route]
    shaky.comes_back()
    assert shaky.office.tick(NINE + 2 * MINUTE).delivered == 3
    assert (shaky.history(), shaky.runs()) == ([("succeeded", "fired", 1)] * 3, [1] * 3)


def test_down_for_a_moment_while_the_actions_run(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A success is not lost for that: it is settled when the database is back."""
    shaky.put()
    together, real = threading.Barrier(len(KEYS)), shaky.store.ledger.settle

    def act(_input: Json, _ctx: Context) -> None:
        if together.wait(60) == 0:
            shaky.goes_away()
        together.wait(60)

    def settle(
        occurrence: Occurrence, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        try:
            return real(occurrence, outcome, now=now)
        except StoreUnavailable:
            shaky.comes_back()
            raise

    monkeypatch.setattr(shaky.store.ledger, "settle", settle)
    shaky.office.scene.act = act
    with suppress(StoreUnavailable):  # where its next claim falls into that moment
        shaky.office.tick(NINE)
    assert (shaky.history(), shaky.runs()) == ([("succeeded", "fired", 1)] * 3, [1] * 3)


@pytest.mark.parametrize(
    ("delivery", "end", "runs"),
    [
        (Delivery.AT_MOST_ONCE, ("dead", "lost", 1), 1),
        (Delivery.AT_LEAST_ONCE, ("succeeded", "fired", 2), 2),
    ],
)
def test_down_from_the_action_on(
    shaky: Shaky, delivery: Delivery, end: tuple[str, str, int], runs: int
) -> None:
    """Nobody can write that they ran: they are lost, or run again, as was promised for that."""
    shaky.put(Policies(delivery=delivery))
    together = threading.Barrier(len(KEYS))

    def act(_input: Json, _ctx: Context) -> None:
        together.wait(60)
        shaky.goes_away()

    shaky.office.scene.act = act
    shaky.tick()
    shaky.office.scene.act = None
    shaky.comes_back()
    shaky.office.tick(NINE + 2 * MINUTE)
    assert (shaky.history(), shaky.runs()) == ([end] * 3, [runs] * 3)
