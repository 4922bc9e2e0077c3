"""The password of an address of any form is shown nowhere."""

import pytest
from duetick.cli.store_address import hide_secrets
from duetick.domain.errors import InvalidStoreUrl, StoreUnavailable
from duetick.stores import open_store

FORMS = [
    "postgresql://bob:{}@127.0.0.1:9/base?sslmode=disable",
    "postgresql://127.0.0.1:9/base?user=bob&password={}&sslmode=disable",
    "postgresql://bob@127.0.0.1:9/base?sslmode=disable&pa%73sword={}",
    "postgres://:{}@/base?host=/tmp/nowhere&user=bob",
    "postgresql://bob:{}@[::1]:9/base",
    "postgresql://bob@127.0.0.1:9/base?password=first&password={}",
    "postgresql://bob@127.0.0.1:9/base?PASSWORD={}",
    "postgresql://bob@127.0.0.1:9/base?{}",
    "postgresql://127.0.0.1:9/base?user=bob;password={}&sslmode=disable",
    "postgresql://bob@127.0.0.1:9/base?sslmode=disable%26password={}",
    "postgresql://bob:12/{}@127.0.0.1:9/base",
    "postgresql://bob:12#{}@127.0.0.1:9/base",
    "postgresql://bob:{}@[127.0.0.1:9/base",
    "sqlite://bob:{}@127.0.0.1/file.db",
    "dynamodb://bob:{}@table?region=eu-west-1&more=1",
    "dynamodb://table?region=eu-west-1&token={}",
]
SECRETS = ["hunter2", "hunter2%40%2F", "hunter2@more", "hunter2:more"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", SECRETS)
def test_no_password_of_a_store_is_told(form: str, secret: str) -> None:
    """The local stack tells the address and its fault, or that it is no address."""
    address = form.format(secret)
    with pytest.raises((InvalidStoreUrl, StoreUnavailable)) as refused:
        open_store(address).migrate()
    readable = isinstance(refused.value, StoreUnavailable)
    assert "hunter2" not in f"{hide_secrets(address) if readable else ''} {refused.value}"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("sqlite:///.cache/duetick.db", "sqlite:///.cache/duetick.db"),
        ("postgresql://bob@db:6432/base", "postgresql://bob@db:6432/base"),
        ("postgresql://bob:x@db/base?port=6432", "postgresql://bob:…@db/base?port=6432"),
        (
            "postgresql://bob@/base?host=/run&password=x&sslmode=disable",
            "postgresql://bob@/base?host=/run&password=…&sslmode=disable",
        ),
        (
            "postgresql://h/db?user=bob;password=x&host=%2Frun",
            "postgresql://h/db?user=…&host=%2Frun",
        ),
        ("dynamodb://table?region=eu-west-1", "dynamodb://table?region=eu-west-1"),
        ("dynamodb://table?region=eu-west-1;token=x", "dynamodb://table?region=…"),
    ],
)
def test_the_rest_of_an_address_is_shown_as_it_is(address: str, told: str) -> None:
    assert hide_secrets(address) == told
