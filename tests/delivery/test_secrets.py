"""D-17: secrets where AWS keeps them, through a rotation."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import boto3
import pytest
from duetick.domain.errors import ConfigurationError
from duetick.runtime.secrets import Guard, Secrets, kept_in_secrets_manager
from duetick.runtime.settings import Settings
from moto import mock_aws

Rotate = Callable[[str], object]

NAME = "dispatch"


@pytest.fixture
def rotate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rotate]:
    """A Secrets Manager that holds one secret; puts another in its place."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        client = boto3.client("secretsmanager")
        client.create_secret(Name=NAME, SecretString="first")
        yield lambda new: client.put_secret_value(SecretId=NAME, SecretString=new)


def test_d17_the_secret_before_a_rotation_stays_live(rotate: Rotate) -> None:
    source = kept_in_secrets_manager(NAME)
    assert source() == ("first",)
    rotate("second")
    assert source() == ("first",)
    assert source(fresh=True) == ("second", "first")
    assert source() == ("second", "first")


def test_d17_a_receiver_learns_of_a_rotation_from_the_first_call(rotate: Rotate) -> None:
    guard = Guard(kept_in_secrets_manager(NAME))
    assert guard.admits("Bearer first")
    rotate("second")
    assert guard.admits("Bearer second")
    assert guard.admits("Bearer first")
    assert not guard.admits("Bearer third")


def test_d17_who_calls_while_another_looks_waits_for_what_is_found() -> None:
    looking, found = threading.Event(), threading.Event()

    def source(*, fresh: bool = False) -> Secrets:
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
