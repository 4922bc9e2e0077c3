"""Webhooks against a real HTTPS server: signed, bounded, and never a way in."""

import hmac
import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from duetick import Flow
from duetick.actions import Webhook
from duetick.actions.messages import TargetFailed
from duetick.actions.webhook import Network
from duetick.domain.errors import ConfigurationError
from duetick.domain.policies import Policies
from duetick.domain.schedule import Schedule
from duetick.testing import Fired, fire

from tests.integration.actions.hooks import HOST, OTHER, SIGNING, Hooks
from tests.lab.process import LOCALHOST

OUTWARD = "93.184.215.14"


def sent_by(webhook: Webhook, timeout: int = 25) -> Fired:
    """Fire a schedule whose action is the webhook."""
    flow = Flow("outside")
    flow.action("notify", target=webhook)
    policies = Policies(timeout=timeout)
    return fire(
        flow,
        Schedule(
            "ann",
            "due",
            "0 9 * * *",
            "outside",
            "notify",
            None,
            {"text": "good morning"},
            policies=policies,
        ),
    )


def test_a_webhook_tells_who_what_and_when(hooks: Hooks) -> None:
    assert sent_by(hooks.webhook()).state == "succeeded"
    ((path, _, body),) = hooks.seen
    told = json.loads(body)
    assert path == "/due"
    assert (told["user"], told["input"]) == ("ann", {"text": "good morning"})
    assert told["nominalFireTime"] == "2026-12-01T09:00:00Z"


def test_a_webhook_is_signed_with_its_time(hooks: Hooks) -> None:
    sent_by(hooks.webhook())
    ((_, headers, body),) = hooks.seen
    stamp, _, signature = headers["duetick-signature"].partition(",v1=")
    at = stamp.removeprefix("t=")
    assert int(at) == 1_796_115_600
    expected = hmac.digest(SIGNING.encode(), f"{at}.".encode() + body, "sha256").hex()
    assert signature == expected
    assert SIGNING not in str(headers) + body.decode()


def test_the_same_occurrence_has_the_same_idempotency_key(hooks: Hooks) -> None:
    for _ in range(2):
        sent_by(hooks.webhook())
    first, second = (headers["idempotency-key"] for _, headers, _ in hooks.seen)
    assert first == second


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 500, 503])
def test_any_other_answer_than_success_fails(hooks: Hooks, status: int) -> None:
    hooks.status = status
    hooks.headers = {"location": f"https://{HOST}/elsewhere"}
    with pytest.raises(TargetFailed, match=str(status)):
        sent_by(hooks.webhook())
    assert len(hooks.seen) == 1, "a redirect was followed"


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("http://hooks.example.org/", "https"),
        ("https://evil.example/", "allowed hosts"),
        ("https://169.254.169.254/latest/meta-data", "allowed hosts"),
        ("https://user:secret@hooks.example.org/", "user"),
        ("https://hooks.example.org:8443/", "port"),
        ("file:///etc/passwd", "https"),
        ("https://hooks.example.org:99999/", "cannot be read"),
        ("https://[::1/", "cannot be read"),
        ("https://hooks.example.org/\xfc", "UnicodeEncodeError"),
        ("/again", "More than 2"),
    ],
)
def test_each_redirect_is_checked_like_the_first(hooks: Hooks, location: str, says: str) -> None:
    hooks.status, hooks.headers = 307, {"location": location}
    with pytest.raises(TargetFailed, match=says):
        sent_by(hooks.webhook(redirects=2))


def test_a_redirect_to_a_name_that_leads_inward_is_not_followed(hooks: Hooks) -> None:
    hooks.status, hooks.headers = 307, {"location": f"https://{OTHER}/"}
    network = hooks.webhook().network
    inward = replace(
        network, resolve=lambda host, _: [LOCALHOST if host == HOST else "169.254.169.254"]
    )
    with pytest.raises(TargetFailed, match="not public"):
        sent_by(hooks.webhook(redirects=1, hosts=(HOST, OTHER), network=inward))
    assert len(hooks.seen) == 1


@pytest.mark.parametrize(
    "found", [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], [OUTWARD, "10.0.0.1"], []]
)
def test_a_name_that_leads_inward_is_not_called(found: Sequence[str]) -> None:
    network = Network(resolve=lambda _host, _port: found)
    with pytest.raises(TargetFailed, match="not public"):
        sent_by(Webhook(f"https://{HOST}/", lambda: SIGNING, (HOST,), network=network))


def test_the_address_that_was_checked_is_the_one_that_is_called(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[tuple[str, int]] = []
    create: Callable[..., socket.socket] = socket.create_connection

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address)
        return create(address, timeout)

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr(socket, "getaddrinfo", _never)
    sent_by(hooks.webhook())
    assert connected == [(LOCALHOST, hooks.port)]


def _never(host: str, *_: object, **__: object) -> list[Any]:
    if host == LOCALHOST:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (LOCALHOST, _[0]))]
    raise AssertionError(f"{host} was resolved a second time")


def test_what_was_cut_before_it_was_connected_sends_nothing(
    hooks: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    create: Callable[..., socket.socket] = socket.create_connection

    def late(*arguments: object) -> socket.socket:
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join(60)
        return create(*arguments)

    monkeypatch.setattr(socket, "create_connection", late)
    with pytest.raises(TargetFailed, match="Timeout"):
        sent_by(hooks.webhook(timeout=0.2))
    assert hooks.seen == []


class CutAsItBegins(ssl.SSLSocket):
    """TLS whose handshake begins after its connection has been cut."""

    def do_handshake(self, block: bool = False) -> None:
        select.select([self], [], [], 60)
        super().do_handshake(block)


def test_what_is_cut_as_it_shakes_hands_is_late(hooks: Hooks) -> None:
    def context() -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(hooks.certificate))
        made.sslsocket_class = CutAsItBegins
        return made

    network = replace(hooks.webhook().network, context=context)
    with pytest.raises(TargetFailed, match="Timeout"):
        sent_by(hooks.webhook(network=network, timeout=0.2))
    assert hooks.seen == []


def test_a_certificate_for_another_name_is_refused(hooks: Hooks) -> None:
    elsewhere = hooks.webhook(url="https://third.example.org/", hosts=("third.example.org",))
    with pytest.raises(TargetFailed, match="SSLCertVerificationError"):
        sent_by(elsewhere)
    assert hooks.seen == []


def test_a_server_that_does_not_answer_is_not_waited_for(hooks: Hooks) -> None:
    hooks.answers.clear()
    with pytest.raises(TargetFailed, match="Timeout"):
        sent_by(hooks.webhook(timeout=0.2))


def test_an_answer_that_drips_in_is_not_waited_for(hooks: Hooks) -> None:
    hooks.drip = True
    with pytest.raises(TargetFailed, match="Timeout"):
        sent_by(hooks.webhook(timeout=0.5))


@pytest.fixture
def hanging() -> Iterator[Network]:
    """A network whose resolver answers when the test is over."""
    over = threading.Event()

    def hang(_host: str, _port: int) -> Sequence[str]:
        over.wait()
        return []

    yield Network(resolve=hang)
    over.set()


def test_a_resolver_that_hangs_is_not_waited_for(hanging: Network) -> None:
    webhook = Webhook(f"https://{HOST}/", lambda: SIGNING, (HOST,), timeout=0.2, network=hanging)
    with pytest.raises(TargetFailed, match="not resolved in time"):
        sent_by(webhook)


def test_a_resolver_that_hangs_holds_no_action_beyond_its_own_time(hanging: Network) -> None:
    webhook = Webhook(f"https://{HOST}/", lambda: SIGNING, (HOST,), timeout=60, network=hanging)
    fired = sent_by(webhook, timeout=1)
    assert (fired.state, fired.error) == ("dead", "The action took longer than 1 s.")


def test_redirects_have_no_time_of_their_own(hooks: Hooks) -> None:
    hooks.status, hooks.headers, hooks.delay = 307, {"location": "/again"}, 0.2
    with pytest.raises(TargetFailed, match="Timeout"):
        sent_by(hooks.webhook(redirects=20, timeout=0.5))
    assert len(hooks.seen) < 5


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/",
        "https://evil.example/",
        "ftp://x/",
        "https://",
        "hooks",
        "https://hooks.example.org:99999/",
        "https://hooks.example.org:0/",
        "https://[hooks.example.org/",
        "https://hooks.example.org@2130706433/",
        "https://0x7f.1/",
        "https://\u24d7ooks.example.org/",
    ],
)
def test_an_address_that_may_not_be_called_is_refused_when_it_is_declared(url: str) -> None:
    with pytest.raises(ConfigurationError, match="Webhook"):
        Webhook(url, lambda: SIGNING, (HOST,))


@pytest.mark.parametrize(("timeout", "redirects"), [(0, 0), (-1, 0), (10, -1)])
def test_a_bound_that_lets_nothing_through_is_refused_when_it_is_declared(
    timeout: float, redirects: int
) -> None:
    with pytest.raises(ConfigurationError, match="timeout"):
        Webhook(f"https://{HOST}/", lambda: SIGNING, (HOST,), timeout, redirects)


def test_without_a_secret_nothing_is_sent(hooks: Hooks) -> None:
    with pytest.raises(TargetFailed, match="secret"):
        sent_by(hooks.webhook(secret=lambda: ""))
    assert hooks.seen == []
