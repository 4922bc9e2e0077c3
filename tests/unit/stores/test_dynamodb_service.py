"""Requests to DynamoDB: their address, their credentials, and their repeats."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from botocore.regions import EndpointResolver
from botocore.session import get_session
from duetick.domain.errors import InvalidStoreUrl
from duetick.network.exchange import HttpAnswer
from duetick.network.sigv4 import Credentials, Signer
from duetick.stores.dynamodb import botocore_service
from duetick.stores.dynamodb.botocore_service import BotocoreService
from duetick.stores.dynamodb.place import connect, find_place, url_of
from duetick.stores.dynamodb.service import (
    TRIES,
    JsonService,
    ServiceRefusal,
    ServiceSilent,
    _fields,
    encode,
    read_date,
)

NOON = 1_800_014_400_000
NOON_TEXT = "Fri, 15 Jan 2027 12:00:00 GMT"
KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}
PLAIN = {**KEYS, "AWS_DEFAULT_REGION": "eu-west-1", "AWS_CONFIG_FILE": "/dev/null"}
GOOD = HttpAnswer(200, b'{"Item": {}}', kept=True, date=NOON_TEXT)
Answer = HttpAnswer | Exception


def refused(code: str, status: int = 400, date: str = NOON_TEXT) -> HttpAnswer:
    """Return a refusal, as the service writes one."""
    told = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "because"}
    return HttpAnswer(status, json.dumps(told).encode(), kept=True, date=date)


@dataclass
class Answering:
    """A sender that has its answers ready."""

    answers: Iterator[Answer]
    dates: list[int] = field(default_factory=list)

    def send(self, operation: str, body: bytes, now: int) -> HttpAnswer:
        """See `Sender`."""
        del operation, body
        self.dates.append(now)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds between tries. The tests do not sleep for them."""
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


def service(*answers: Answer, now: int = NOON) -> tuple[JsonService, Answering]:
    sender = Answering(iter(answers))
    return JsonService(sender, lambda: now), sender


@pytest.mark.parametrize(
    "problem",
    [
        refused("ProvisionedThroughputExceededException"),
        refused("ThrottlingException"),
        refused("InternalServerError", 500),
        HttpAnswer(503, b"<html>", kept=False),
        ConnectionResetError("cut"),
        TimeoutError("late"),
    ],
)
def test_what_another_try_may_mend_is_tried_again(problem: Answer, waited: list[float]) -> None:
    made, sender = service(problem, problem, GOOD)
    assert made.call("GetItem", {}) == {"Item": {}}
    assert (len(sender.dates), len(waited)) == (3, 2)


@pytest.mark.parametrize(
    "code", ["ConditionalCheckFailedException", "ValidationException", "AccessDeniedException"]
)
def test_what_no_other_try_mends_is_told_at_once(code: str, waited: list[float]) -> None:
    made, _ = service(refused(code))
    with pytest.raises(ServiceRefusal, match="GetItem was refused: because") as told:
        made.call("GetItem", {})
    assert (told.value.code, told.value.operation, waited) == (code, "GetItem", [])


@pytest.mark.parametrize(
    ("problem", "kind"),
    [(refused("ThrottlingException"), ServiceRefusal), (OSError("no route"), ServiceSilent)],
)
def test_a_request_is_given_up_after_some_tries(
    problem: Answer, kind: type[Exception], waited: list[float]
) -> None:
    made, sender = service(*[problem] * TRIES)
    with pytest.raises(kind):
        made.call("GetItem", {})
    assert (len(sender.dates), len(waited)) == (TRIES, TRIES - 1)
    assert all(0 <= each <= 8 for each in waited)


def test_an_answer_that_is_no_json_says_its_status() -> None:
    made, _ = service(HttpAnswer(413, b"too large", kept=False))
    with pytest.raises(ServiceRefusal, match="HTTP 413"):
        made.call("PutItem", {})


def test_j03_a_host_whose_clock_is_wrong_signs_by_the_services(waited: list[float]) -> None:
    """So a claim is refused for the clock, and not for a signature, which nobody would
    understand.
    """
    made, sender = service(refused("InvalidSignatureException"), GOOD, GOOD, now=NOON + 3_600_000)
    made.call("GetItem", {})
    made.call("GetItem", {})
    assert sender.dates == [NOON + 3_600_000, NOON, NOON]
    assert made.date == NOON


def test_a_wrong_secret_is_not_taken_for_a_wrong_clock(waited: list[float]) -> None:
    made, sender = service(refused("InvalidSignatureException"))
    with pytest.raises(ServiceRefusal):
        made.call("GetItem", {})
    assert (sender.dates, waited) == ([NOON], [])


@pytest.mark.parametrize("text", ["", "today", "Fri, 15 Jan 2027 12:00:00 CET"])
def test_a_date_that_is_none_is_none(text: str) -> None:
    assert read_date(text) is None


def test_a_date_is_read() -> None:
    assert read_date(NOON_TEXT) == NOON


@pytest.mark.parametrize("token", [None, "session"])
@pytest.mark.parametrize("operation", ["GetItem", "TransactWriteItems"])
def test_the_signature_is_botocores(operation: str, token: str | None) -> None:
    host, body = "dynamodb.eu-west-1.amazonaws.com", encode(operation, {"TableName": "täble"})
    signer = Signer(lambda: Credentials("AKID", "secret", token), "eu-west-1", "dynamodb")
    ours = signer.headers(host, "/", body, NOON, _fields(operation))
    request = AWSRequest(
        "POST", f"https://{host}/", {"host": host, **dict(_fields(operation))}, body
    )
    with pytest.MonkeyPatch.context() as patch:
        moment = datetime.fromtimestamp(NOON / 1_000, UTC)
        patch.setattr("botocore.auth.get_current_datetime", lambda: moment)
        theirs = SigV4Auth(BotoCredentials("AKID", "secret", token), "dynamodb", "eu-west-1")
        theirs.add_auth(request)
    assert ours["authorization"] == dict(request.headers.items())["Authorization"]


def test_every_region_that_botocore_knows_has_its_address() -> None:
    session = get_session()
    resolver = EndpointResolver(session.get_data("endpoints"))
    for partition in session.get_available_partitions():
        for region in session.get_available_regions("dynamodb", partition):
            known = resolver.construct_endpoint("dynamodb", region, partition) or {}
            assert url_of(region) == f"https://{known['hostname']}"


@pytest.mark.parametrize(
    ("more", "url"),
    [
        ({}, "https://dynamodb.eu-west-1.amazonaws.com"),
        ({"AWS_ENDPOINT_URL": "http://all:1"}, "http://all:1"),
        (
            {"AWS_ENDPOINT_URL": "http://all:1", "AWS_ENDPOINT_URL_DYNAMODB": "http://own:2"},
            "http://own:2",
        ),
        (
            {"AWS_ENDPOINT_URL": "http://a:1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
            "https://dynamodb.eu-west-1.amazonaws.com",
        ),
        ({"AWS_DEFAULT_REGION": "cn-north-1"}, "https://dynamodb.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_the_variables_of_aws_say_where_it_is(more: dict[str, str], url: str) -> None:
    assert find_place(None, None, PLAIN | more).url == url


def test_the_address_of_the_store_comes_before_the_variables() -> None:
    found = find_place("us-east-1", "http://here:3", PLAIN | {"AWS_ENDPOINT_URL": "http://all:1"})
    assert (found.url, found.region) == ("http://here:3", "us-east-1")


def test_credentials_are_read_at_each_call() -> None:
    """A runtime renews them in the environment."""
    env = dict(PLAIN)
    found = find_place(None, None, env)
    assert found.credentials() == Credentials("AKID", "secret")
    env |= {"AWS_ACCESS_KEY_ID": "NEW", "AWS_SESSION_TOKEN": "token"}
    assert found.credentials() == Credentials("NEW", "secret", "token")


@pytest.mark.parametrize(
    "more", [{"AWS_PROFILE": "x"}, {"AWS_USE_FIPS_ENDPOINT": "true"}, {"AWS_SECRET_ACCESS_KEY": ""}]
)
def test_botocore_is_asked_where_the_variables_do_not_say_all(
    more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(botocore_service, "ask_place", lambda *where: asked.append(where))
    find_place("eu-west-1", None, PLAIN | more)
    assert asked == [("eu-west-1", None)]


def test_botocore_finds_where_and_as_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    found = find_place("us-east-1", None, {"AWS_USE_FIPS_ENDPOINT": "true"})
    assert found.url == "https://dynamodb-fips.us-east-1.amazonaws.com"
    assert found.credentials().access_key == "test"


def test_without_a_region_it_is_said_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(InvalidStoreUrl, match="No region is set"):
        connect(None, None, {**KEYS, "AWS_CONFIG_FILE": "/dev/null"})


@pytest.mark.parametrize("more", [{}, {"HTTPS_PROXY": "there"}])
@pytest.mark.parametrize("wrong", ["nonsense", "http://[::1", "http://127.0.0.1:99999", "://x"])
def test_an_endpoint_that_is_no_address_is_told_plainly(
    monkeypatch: pytest.MonkeyPatch, wrong: str, more: dict[str, str]
) -> None:
    with pytest.raises(InvalidStoreUrl, match=r"AWS_ENDPOINT_URL\."):
        connect("eu-west-1", wrong, PLAIN | more)
    monkeypatch.setenv("AWS_ENDPOINT_URL", wrong)
    with pytest.raises(InvalidStoreUrl, match=r"AWS_ENDPOINT_URL\."):
        connect("eu-west-1", None, PLAIN | more | {"AWS_ENDPOINT_URL": wrong})


@pytest.mark.parametrize("more", [{}, {"HTTPS_PROXY": "there"}])
def test_a_region_that_is_none_is_told_plainly(more: dict[str, str]) -> None:
    with pytest.raises(InvalidStoreUrl, match="bad region"):
        connect("bad region", None, PLAIN | more)


def test_a_profile_that_is_not_there_is_told_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nope")
    with pytest.raises(InvalidStoreUrl, match=r"nope.* could not be found\. Look at"):
        connect("eu-west-1", None, PLAIN | {"AWS_PROFILE": "nope"})


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "AWS_CA_BUNDLE"])
def test_botocore_sends_through_proxies_and_by_other_authorities(name: str) -> None:
    made = connect("eu-west-1", None, PLAIN | {name: "there"})
    assert isinstance(made, BotocoreService)
    made.close()


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:8000", "http://localhost:8000"])
def test_nothing_is_between_this_machine_and_itself(endpoint: str) -> None:
    assert isinstance(connect("eu-west-1", endpoint, PLAIN | {"HTTP_PROXY": "there"}), JsonService)


def test_an_actions_own_bytes_are_encoded() -> None:
    assert encode("PutItem", {"B": b"\0\1", "L": ["ü"]}) == b'{"B":"AAE=","L":["\\u00fc"]}'


@pytest.mark.parametrize("wrong", [{"x": {1, 2}}, {"x": object()}])
def test_what_no_item_can_hold_is_refused_before_it_is_sent(wrong: dict[str, object]) -> None:
    with pytest.raises(ServiceRefusal, match="SerializationException"):
        encode("PutItem", wrong)
