"""D-17: secrets where AWS keeps them, through a rotation."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError
from duetick.domain.errors import ConfigurationError
from duetick.runtime.secrets import Guard, SecretTexts, secrets_manager_source
from duetick.runtime.settings import Settings
from duetick.transports.http import bearer
from moto import mock_aws

from tests.delivery.endpoint import endpoint, hang

Rotate = Callable[[str], object]

NAME = "dispatch"
FIRST, SECOND, THIRD = (f"{name:-<32}" for name in ("first", "second", "third"))


@pytest.fixture
def rotate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rotate]:
    """A Secrets Manager that holds one secret; puts another in its place."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        client = boto3.client("secretsmanager")
        client.create_secret(Name=NAME, SecretString=FIRST)
        yield lambda new: client.put_secret_value(SecretId=NAME, SecretString=new)


def test_d17_the_secret_before_a_rotation_stays_live(rotate: Rotate) -> None:
    source = secrets_manager_source(NAME)
    assert source() == (FIRST,)
    rotate(SECOND)
    assert source() == (FIRST,)
    assert source(fresh=True) == (SECOND, FIRST)
    assert source() == (SECOND, FIRST)


JSON = [
    json.dumps({"secret": SECOND, "note": "of May"}),
    json.dumps({"secret": SECOND}, separators=(",", ":")),
    json.dumps(SECOND),
    f'{{"secret":"{SECOND[:-1]}\\u002d"}}',
]


@pytest.mark.slow
@pytest.mark.parametrize("text", JSON)
def test_d17_a_secret_that_is_json_is_the_text_of_its_field(rotate: Rotate, text: str) -> None:
    rotate(text)
    source = secrets_manager_source(NAME)
    assert source() == (SECOND, FIRST)
    assert Guard(source).admits(f"Bearer {SECOND}")
    for part in ('{"secret":', text, '"of'):
        assert not Guard(source).admits(f"Bearer {part}")


@pytest.mark.parametrize("text", JSON)
def test_d17_the_environments_secret_may_be_json_too(text: str) -> None:
    read = Settings.read({"DUETICK_STORE": "sqlite://", "DUETICK_DISPATCH_SECRET": text})
    assert read.dispatch_secret == SECOND


def test_d17_a_secret_may_begin_with_a_quote(rotate: Rotate) -> None:
    rotate(f'"{SECOND}')
    assert secrets_manager_source(NAME)() == (f'"{SECOND}', FIRST)


BAD = {
    "two of them": f"{FIRST} {SECOND}",
    "a line's end": f"{FIRST}\n",
    "a tab": f"{FIRST}\t{SECOND}",
    "no ASCII": f"{FIRST}\u00a0{SECOND}",
    "too short": FIRST[:31],
    "another field": json.dumps({"password": FIRST}),
    "a number": json.dumps({"secret": 10**40}),
    "half of JSON": f'{{"secret": "{FIRST}',
    "JSON with a blank": json.dumps({"secret": f"{FIRST} {SECOND}"}),
    "JSON without a blank": f'{{"password":"{FIRST}"}}',
    "too short in quotes": json.dumps(FIRST[:31]),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_d17_a_secret_that_could_not_be_meant_is_refused_with_the_reason(
    rotate: Rotate, text: str
) -> None:
    rotate(text)
    source = secrets_manager_source(NAME)
    why = r"white space|31 characters, and 32|no text as its field `secret`"
    with pytest.raises(ConfigurationError, match=why) as refused:
        Guard(source).admits(f"Bearer {FIRST}")
    assert FIRST[:31] not in str(refused.value)
    with pytest.raises(ConfigurationError):
        bearer(source)("host", "/", b"")


def test_d17_a_rotation_mends_a_secret_that_was_refused(rotate: Rotate) -> None:
    rotate("short")
    rotate(SECOND)
    assert secrets_manager_source(NAME)() == (SECOND,)


@pytest.mark.parametrize("text", [*BAD.values(), "short", " "])
def test_d17_the_environments_secret_is_held_to_the_same(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"The dispatch secret|The secret of dispatch"):
        Settings.read({"DUETICK_STORE": "sqlite://", "DUETICK_DISPATCH_SECRET": text})
    read = Settings.read({"DUETICK_STORE": "sqlite://", "DUETICK_DISPATCH_SECRET": FIRST})
    assert read.dispatch_secret == FIRST


def test_t02_a_keeper_that_hangs_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setattr("duetick.runtime.secrets.PATIENCE", 0.2)
    with endpoint(hang) as place:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{place.port}")
        with pytest.raises(GetParameterError, match="Read timeout"):
            secrets_manager_source(NAME)()
        assert len(place.requests) == 2


def test_d17_a_receiver_learns_of_a_rotation_from_the_first_call(rotate: Rotate) -> None:
    guard = Guard(secrets_manager_source(NAME))
    assert guard.admits(f"Bearer {FIRST}")
    rotate(SECOND)
    assert guard.admits(f"Bearer {SECOND}")
    assert guard.admits(f"Bearer {FIRST}")
    assert not guard.admits(f"Bearer {THIRD}")


def test_d17_who_calls_while_another_looks_waits_for_what_is_found() -> None:
    looking, found = threading.Event(), threading.Event()

    def source(*, fresh: bool = False) -> SecretTexts:
        if fresh:
            looking.set()
            assert found.wait(60)
        return ("new",) if found.is_set() else ("old",)

    guard = Guard(source)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(guard.admits, "Bearer new")
        assert looking.wait(60)
        second = pool.submit(guard.admits, "Bearer new")
        wait([second], timeout=0.1)
        found.set()
        assert (first.result(), second.result()) == (True, True)


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "600001"])
def test_a_look_ahead_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="DUETICK_LOOK_AHEAD"):
        Settings.read({"DUETICK_STORE": "sqlite://", "DUETICK_LOOK_AHEAD": text})


def test_settings_tell_look_ahead_and_where_the_secret_is() -> None:
    read = Settings.read(
        {
            "DUETICK_STORE": "sqlite://",
            "DUETICK_LOOK_AHEAD": "60000",
            "DUETICK_DISPATCH_SECRET_ARN": "arn:x",
        }
    )
    assert (read.look_ahead, read.dispatch_secret_arn) == (60_000, "arn:x")
