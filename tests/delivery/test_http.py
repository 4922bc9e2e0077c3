"""The HTTP transport over real sockets: kept connections, deadlines, signatures, secrets."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from duetick.domain.identity import to_path
from duetick.domain.schedule import Occurrence
from duetick.network.sigv4 import Credentials, Signer
from duetick.runtime.secrets import Guard, SecretTexts
from duetick.transports.http import HttpTransport, bearer

from tests.delivery.endpoint import (
    OK,
    Behave,
    Endpoint,
    answer,
    drip,
    endpoint,
    hang,
    hang_up,
    status,
)
from tests.delivery.scene import NINE
from tests.lab.process import free_port

DUE = Occurrence("ada", "digest", "* * * * *", None, NINE, 1, flow="mail", id="occ_1", due_at=NINE)


def fixed(*live: str) -> "Source":
    """Secrets that do not change."""
    return Source(live)


class Source:
    """Secrets that can be rotated. The memory has the last read ones."""

    def __init__(self, live: SecretTexts) -> None:
        self.kept = self.live = tuple(live)
        self.asked = 0

    def __call__(self, *, fresh: bool = False) -> SecretTexts:
        if fresh:
            self.asked += 1
            self.kept = self.live
        return self.kept


Through = Callable[..., HttpTransport]


@pytest.fixture
def through() -> Iterator[Through]:
    """Makes a transport to a URL, and closes it."""
    made: list[HttpTransport] = []

    def make(url: str, source: Source | None = None) -> HttpTransport:
        made.append(HttpTransport(url, bearer(source or fixed("s3cret"))))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


def test_a_connection_is_kept_from_call_to_call(through: Through) -> None:
    with endpoint(answer(OK)) as place:
        transport = through(place.url)
        assert [transport.deliver(DUE, timeout=30).status for _ in range(3)] == [202] * 3
        assert (len(place.requests), place.connections) == (3, 1)


def test_the_call_is_the_one_that_dispatch_reads(through: Through) -> None:
    with endpoint(answer(OK)) as place:
        through(place.url).deliver(DUE, timeout=30)
    line, _, rest = place.requests[0].partition("\r\n")
    assert line == "POST /v1/api/flows/mail/schedules/ada~2Fdigest/dispatch HTTP/1.1"
    assert "authorization: Bearer s3cret" in rest
    assert '"nominalFireTime": "2026-12-01T09:00:00Z"' in rest


def test_a_kept_connection_that_was_closed_is_no_failure(through: Through) -> None:
    def once_each(_place: Endpoint, connection: socket.socket, _request: str) -> bool:
        answer(OK)(_place, connection, _request)
        return False

    with endpoint(once_each) as place:
        transport = through(place.url)
        for _ in range(3):
            assert transport.deliver(DUE, timeout=30).status == 202
            time.sleep(0.02)
    assert len(place.requests) == 3


@pytest.mark.parametrize("behave", [hang, drip])
def test_t02_the_deadline_is_for_the_whole_exchange(behave: Behave, through: Through) -> None:
    with endpoint(behave) as place:
        delivery = through(place.url).deliver(DUE, timeout=0.4)
    assert (delivery.status, delivery.detail.partition(":")[0]) == (0, "TimeoutError")


def test_t02_the_deadline_is_for_all_addresses_together(
    through: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        host, port = full.getsockname()
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found * 100)
        begin = time.monotonic()
        delivery = through("http://api.example.org/v1").deliver(DUE, timeout=0.4)
        assert (delivery.status, time.monotonic() - begin < 20) == (0, True)
        for each in waiting:
            each.close()


def test_t02_the_deadline_is_for_the_resolution_of_the_name_too(
    through: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, resolved = threading.Event(), list[str]()

    def hangs(host: str, *_: object, **__: object) -> list[object]:
        let_go.wait(20)
        resolved.append(host)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hangs)
    delivery = through("http://api.example.org/v1").deliver(DUE, timeout=1)
    assert (delivery.status, resolved) == (0, [])
    assert delivery.detail == "TimeoutError: the name api.example.org was not resolved in time"
    let_go.set()


def test_a_host_is_tried_at_each_of_its_addresses(
    through: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(answer(OK)) as place:
        found = [
            one
            for port in (free_port(), place.port)
            for one in socket.getaddrinfo("127.0.0.1", port, type=socket.SOCK_STREAM)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert through("http://api.example.org/v1").deliver(DUE, timeout=30).status == 202


def test_a_cut_connection_is_a_transport_error(through: Through) -> None:
    with endpoint(hang_up) as place:
        delivery = through(place.url).deliver(DUE, timeout=30)
    assert delivery.status == 0
    assert "s3cret" not in delivery.detail


def test_nobody_listening_is_a_transport_error(through: Through) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    assert through(nowhere).deliver(DUE, timeout=30).status == 0


@pytest.mark.parametrize("number", [400, 403, 409, 429, 500, 502, 503, 504])
def test_the_answer_is_told_as_it_is(number: int, through: Through) -> None:
    with endpoint(status(number)) as place:
        assert through(place.url).deliver(DUE, timeout=30).status == number
        assert len(place.requests) == 1


@pytest.mark.parametrize("token", [None, "session"])
@pytest.mark.parametrize("key", ["digest", "100%", "a%2Fb", "日本", "k?#&= +", "auth0|Abc"])
def test_the_signature_is_botocores(key: str, token: str | None) -> None:
    path = f"/v1/api/flows/mail/schedules/{to_path(f'ada/{key}')}/dispatch"
    body, host = b'{"fence": 1}', "abc.execute-api.eu-central-1.amazonaws.com"
    ours = Signer(lambda: Credentials("AKID", "secret", token), "eu-central-1")
    headers = ours.headers(host, path, body, NINE)
    assert headers["authorization"] == theirs(host, path, body, token)["Authorization"]


def test_a_signature_is_of_its_own_second_host_and_credentials() -> None:
    given = [Credentials("AKID", "secret", "token")]
    kept = Signer(lambda: given[0], "eu-central-1")
    calls = [
        (Credentials(*keys), host, NINE + later)
        for keys in (("AKID", "secret", "token"), ("AKID", "other", "token"), ("AKID", "other"))
        for host in ("a.example.org", "b.example.org")
        for later in (0, 999, 1_000, 86_400_000)
    ]
    signatures = set()
    for credentials, host, now in calls:
        given[0] = credentials
        headers = kept.headers(host, "/x", b"{}", now)
        assert headers == Signer(lambda: given[0], "eu-central-1").headers(host, "/x", b"{}", now)
        signatures.add(headers["authorization"])
    assert len(signatures) == 3 * 2 * 3


def theirs(host: str, path: str, body: bytes, token: str | None) -> Mapping[str, str]:
    """Return the request that botocore makes of the same call at the same time."""
    request = AWSRequest("POST", f"https://{host}{path}", {"host": host}, body)
    signer = SigV4Auth(BotoCredentials("AKID", "secret", token), "execute-api", "eu-central-1")
    with pytest.MonkeyPatch.context() as patch:
        moment = datetime.fromtimestamp(NINE / 1_000, UTC)
        patch.setattr("botocore.auth.get_current_datetime", lambda: moment)
        signer.add_auth(request)
    return dict(request.headers.items())


def test_d17_a_secret_rotated_a_minute_ago_loses_no_fire(through: Through) -> None:
    """Sender and receiver each remember the old secret; each looks again before it gives up."""
    sender, receiver = Source(("old",)), Source(("old",))
    guard = Guard(receiver)

    def guarded(place: Endpoint, connection: socket.socket, request: str) -> bool:
        header = request.partition("authorization: ")[2].partition("\r\n")[0]
        behave = answer(OK) if guard.admits(header) else status(401)
        return behave(place, connection, request)

    with endpoint(guarded) as place:
        transport = through(place.url, sender)
        assert transport.deliver(DUE, timeout=30).status == 202
        sender.live = receiver.live = ("new", "old")
        assert transport.deliver(DUE, timeout=30).status == 202
        sender.live = receiver.live = ("newer", "new")
        receiver(fresh=True)
        assert transport.deliver(DUE, timeout=30).status == 202
        assert len(place.requests) == 4
        receiver.live = receiver.kept = ("other",)
        assert transport.deliver(DUE, timeout=30).status == 401


def test_d17_two_secrets_are_live() -> None:
    guard = Guard(fixed("new", "old"))
    assert guard.admits("Bearer new")
    assert guard.admits("Bearer old")
    assert guard.admits("bearer old")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "new", "Basic new", "Bearer ne", "Bearer new old", "ü"]
)
def test_d17_anything_else_is_refused(header: str) -> None:
    assert not Guard(fixed("new", "old")).admits(header)


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer x", "Bearer None"])
def test_d17_without_a_secret_everybody_is_refused(header: str) -> None:
    assert not Guard(fixed()).admits(header)


def test_d17_guessing_does_not_ask_the_secrets_keeper_each_time() -> None:
    source, now = fixed("new"), [0.0]
    guard = Guard(source, lambda: now[0])
    for _ in range(100):
        guard.admits("Bearer guess")
    assert source.asked == 1
    now[0] = 5.0
    guard.admits("Bearer guess")
    assert source.asked == 2
