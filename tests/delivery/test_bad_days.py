"""The bad days of a scheduler, on real sockets and processes: nothing lost, nothing begun twice.

Each ends with the same question to the ledger: how did every occurrence end?
"""

import json
import socket
import threading
import time
from collections import Counter
from http.client import HTTPConnection

import pytest
from duetick.core.store import Store
from duetick.core.tick import TickReport, claims, loop, run_tick
from duetick.domain.attempts import Begun
from duetick.domain.errors import DuetickError
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import State
from duetick.runtime.secrets import Guard, SecretTexts
from duetick.stores import open_store
from duetick.transports.http import HttpTransport, bearer

from tests.delivery.endpoint import Behave, Endpoint, endpoint, hang, hang_up, status
from tests.delivery.office import Office, office
from tests.delivery.scene import MINUTE, NINE, Scene, request
from tests.delivery.tick_process import authorize
from tests.lab.postgres import EmbeddedPostgres
from tests.lab.process import LOCALHOST, free_port

pytestmark = pytest.mark.slow


def through(place: str, scene: Scene, timeout: float = 60.0) -> TickReport:
    """Run a tick at nine to another endpoint."""
    transport = HttpTransport(place, authorize)
    report = run_tick(scene.store, transport, now=NINE, budget=timeout, slots=8)
    transport.close()
    return report


@pytest.mark.parametrize("behave", [status(503), hang_up, status(429), status(403)])
def test_an_api_that_refuses_or_cuts_loses_nothing(open_office: Office, behave: Behave) -> None:
    scene = open_office.scene
    with endpoint(behave) as place:
        report = through(place.url, scene)
    assert (report.delivered, report.failed) == (0, report.claimed)
    open_office.tick(NINE + MINUTE)
    assert open_office.states() == {State.SUCCEEDED: 20}
    assert set(open_office.runs.values()) == {1}


def test_an_api_that_hangs_costs_no_more_than_the_ticks_time(
    open_office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (claims, loop):
        monkeypatch.setattr(module, "MARGIN", 0.5)
    scene = open_office.scene
    with endpoint(hang) as place:
        begin = time.monotonic()
        report = through(place.url, scene, timeout=1.5)
        assert time.monotonic() - begin < 25
    assert report.delivered == 0
    open_office.tick(NINE + MINUTE)
    assert open_office.states() == {State.SUCCEEDED: 20}


def test_an_answer_that_is_cut_after_the_action_ran_runs_nothing_again(
    open_office: Office,
) -> None:
    open_office.cut = True
    assert open_office.tick(NINE).failed == 20
    assert {answer.status for answer in open_office.unheard} == {202}
    open_office.cut = False
    open_office.tick(NINE + 5 * MINUTE)
    assert open_office.states() == {State.SUCCEEDED: 20}
    assert set(open_office.runs.values()) == {1}


def test_a_kept_connection_that_is_cut_after_the_action_ran_runs_nothing_again(
    open_office: Office,
) -> None:
    """The call is made once more, and told the outcome."""
    kept: list[socket.socket] = []
    cuts: list[str] = []

    def cuts_the_second(place: Endpoint, connection: socket.socket, text: str) -> bool:
        body = text.partition("\r\n\r\n")[2]
        call = request("mail", f"ada/{json.loads(body)['key']}", body)
        answer = open_office.dispatch(call)
        if connection in kept:
            cuts.append(body)
            return False
        kept.append(connection)
        return status(answer.status, json.dumps(answer.body))(place, connection, text)

    with endpoint(cuts_the_second) as place:
        report = through(place.url, open_office.scene)
    assert cuts
    assert (report.delivered, report.skipped, report.failed) == (20, len(cuts), 0)
    assert open_office.states() == {State.SUCCEEDED: 20}
    assert set(open_office.runs.values()) == {1}


@pytest.mark.parametrize(
    ("policies", "state", "attempts"),
    [
        (Policies(), State.DEAD, 1),
        (Policies(delivery=Delivery.AT_LEAST_ONCE), State.SUCCEEDED, 2),
    ],
)
def test_a_runtime_that_dies_in_the_middle_of_an_action(
    each_scene: Scene, policies: Policies, state: State, attempts: int
) -> None:
    """It began and never settled, as when Lambda ends an invocation: its lease tells."""
    each_scene.put("digest", cron="0 9 * * *", policies=policies)
    begun = each_scene.store.ledger.begin(each_scene.claim(), now=NINE)
    assert isinstance(begun, Begun)
    with office(each_scene) as made:
        made.tick(NINE + 2 * MINUTE)
    (kept,) = each_scene.store.ledger.find("ada", "digest")
    assert (kept.state, kept.attempts) == (state, attempts)
    assert len(each_scene.ran) == attempts - 1


def test_a_clock_ten_minutes_wrong_fires_nothing_twice(each_scene: Scene) -> None:
    policies = Policies(overlap=Overlap.ALLOW)
    each_scene.put("digest", cron="* * * * *", policies=policies)
    with office(each_scene) as made:
        for minute in (0, 10, 1, 2, 3, 12, 4, 13):
            made.tick(NINE + minute * MINUTE)
        nominal = Counter(ctx.nominal_at for _, ctx in each_scene.ran)
    assert set(nominal.values()) == {1}
    assert accounted(each_scene.store) == 14


def accounted(store: Store) -> int:
    """Count the nominal times whose outcome the ledger knows, with those of ranges."""
    return sum(o.count for o in store.ledger.find("ada", "digest", limit=1_000))


def test_a_database_that_is_down_is_told_and_nothing_is_lost(
    own_postgres: EmbeddedPostgres,
) -> None:
    store = open_store(own_postgres.url, clock=lambda: NINE)
    store.migrate()
    scene = Scene(store)
    scene.put("k", cron="0 9 * * *")
    with office(scene) as made:
        own_postgres.stop()
        with pytest.raises(DuetickError, match="Postgres"):
            made.tick(NINE)
        own_postgres.start()
        assert made.tick(NINE + MINUTE).delivered == 1
    assert scene.history("k") == [("succeeded", "fired")]
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////nowhere/at/all.db",
        "postgresql://u:hunter2@127.0.0.1:{port}/db?connect_timeout=1",
        "dynamodb://t?region=us-east-1&endpoint=http://127.0.0.1:{port}",
    ],
)
def test_a_store_that_is_not_there_is_a_clear_error(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetick.stores.dynamodb.service.TRIES", 2)
    store = open_store(url.format(port=free_port()), clock=lambda: NINE)

    def nobody(_occurrence: Occurrence, _status: int) -> None:
        raise AssertionError("nothing can be delivered")

    with pytest.raises(DuetickError) as caught:
        run_tick(store, HttpTransport("http://x", authorize), now=NINE, on_dispatch=nobody)
    assert "hunter2" not in str(caught.value)


class Kept:
    """The secrets that a process keeps until it asks their source again."""

    def __init__(self, *kept: str) -> None:
        self.kept = self.live = kept

    def __call__(self, *, fresh: bool = False) -> SecretTexts:
        self.kept = self.live if fresh else self.kept
        return self.kept


@pytest.mark.parametrize(
    ("sender", "receiver"), [("old", "new old"), ("new old", "old"), ("old", "new")]
)
def test_a_secret_that_is_rotated_in_the_midst_of_a_tick_loses_nothing(
    open_office: Office, sender: str, receiver: str
) -> None:
    """By then the tick remembers the one, and dispatch the other, and each asks once more."""
    sends, knows = Kept("old"), Kept("old")
    open_office.scene.admits = Guard(knows).admits
    open_office.dispatch = open_office.scene.dispatch
    once = threading.Lock()

    def rotated(_input: object, _ctx: object) -> None:
        if len(open_office.scene.ran) >= 5 and once.acquire(blocking=False):
            sends.live = knows.live = ("new",) if receiver == "new" else ("new", "old")
            sends.kept, knows.kept = tuple(sender.split()), tuple(receiver.split())

    open_office.scene.act = rotated
    assert open_office.tick(NINE, bearer(sends)).delivered == 20
    assert open_office.states() == {State.SUCCEEDED: 20}
    assert set(open_office.runs.values()) == {1}


@pytest.mark.parametrize(
    ("delivery", "state"),
    [(Delivery.AT_MOST_ONCE, State.DEAD), (Delivery.AT_LEAST_ONCE, State.RETRYING)],
)
def test_an_action_that_never_returns_is_ended_and_told(
    each_scene: Scene, delivery: Delivery, state: State
) -> None:
    each_scene.put(cron="0 9 * * *", policies=Policies(delivery=delivery, timeout=1))
    goes_on = threading.Event()
    with office(each_scene) as made:
        each_scene.act = lambda *_: goes_on.wait(60)
        assert made.tick(NINE).failed == 1
    goes_on.set()
    (kept,) = each_scene.store.ledger.find("ada", "digest")
    assert (kept.state, kept.attempts) == (state, 1)
    assert kept.error == "The action took longer than 1 s."


def test_a_body_of_six_megabytes_is_refused(each_scene: Scene) -> None:
    each_scene.put()
    with office(each_scene) as made:
        connection = HTTPConnection(LOCALHOST, made.server.server_port, timeout=60)
        path = "/api/flows/mail/schedules/ada/digest/dispatch"
        connection.request("POST", path, b"x" * 6 * 1024 * 1024, {"authorization": "yes"})
        answer = connection.getresponse()
        assert (answer.status, b"too_large" in answer.read()) == (413, True)
        connection.close()
    assert (each_scene.ran, each_scene.history()) == ([], [])
