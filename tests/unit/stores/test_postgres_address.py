"""The address of a Postgres, as libpq writes it, and TLS that fails closed."""

import sys
from urllib.parse import unquote

import pytest
from duetick.domain.errors import InvalidStoreUrl
from duetick.stores import open_store
from duetick.stores.postgres.address import Address, read_address
from duetick.stores.postgres.connecting import connect_to


def test_an_address_is_read_as_libpq_writes_it() -> None:
    read = read_address(
        "postgresql://a%40b:p%2Fw%3A@db.example:6432/my%20base"
        "?sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=3&application_name=tick"
    )
    assert read == Address(
        user="a@b",
        database="my base",
        host="db.example",
        port=6432,
        password=unquote("p%2Fw%3A"),
        tls="verify-full",
        root_certificate="/ca.pem",
        connect_timeout=3,
        application_name="tick",
    )


def test_a_socket_is_named_by_the_host_behind_the_question_mark() -> None:
    read = read_address("postgres://me@/base?host=/run/postgresql&port=5433")
    assert read.socket_file == "/run/postgresql/.s.PGSQL.5433"


def test_the_database_is_named_like_the_user_unless_it_has_a_name() -> None:
    assert read_address("postgresql://me@localhost").database == "me"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@db.example/base",
        "postgresql://me@db.example/base?sslmode=prefer",
        "postgresql://me@db.example/base?sslmode=require",
        "postgresql://me@db.example/base?sslmode=verify-full",
        "postgresql://me@localhost/base?sslmode=verify-ca",
    ],
)
def test_tls_without_an_authority_is_refused_with_what_to_do(url: str) -> None:
    with pytest.raises(InvalidStoreUrl, match=r"sslrootcert=/path/to/ca\.pem"):
        read_address(url)


def test_a_network_that_may_read_along_has_to_be_said() -> None:
    assert read_address("postgresql://me@db.example/base?sslmode=disable").tls == "off"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "%2Frun%2Fpostgresql"])
def test_this_machine_needs_no_tls(host: str) -> None:
    assert read_address(f"postgresql://me@{host}/base").tls == "off"


def test_require_with_an_authority_checks_it() -> None:
    url = "postgresql://me@db.example/base?sslmode=require&sslrootcert=/ca.pem"
    assert read_address(url).tls == "verify-ca"


def test_an_authority_that_cannot_be_read_is_refused_before_any_connection() -> None:
    url = "postgresql://me@db.example/base?sslmode=verify-full&sslrootcert=/no/such.pem"
    with pytest.raises(InvalidStoreUrl, match=r"/no/such\.pem"):
        connect_to(read_address(url))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:geheim@localhost:port/base",
        "postgresql://me:geheim@localhost/base?sslmode=maybe",
        "postgresql://me:geheim@localhost/base?connect_timeout=soon",
        "postgresql://me:geheim@localhost/base?unknown=1",
        "postgresql://:geheim@localhost/base",
        "postgresql://me:geheim@db.example/base",
        "postgresql://me:geheim@[half/base",
        "//me:geheim@localhost/base",
    ],
)
def test_what_is_wrong_is_said_without_the_password(url: str) -> None:
    with pytest.raises(InvalidStoreUrl) as raised:
        open_store(url)
    assert "geheim" not in str(raised.value)
    assert "geheim" not in repr(raised.value.__cause__)


def test_an_address_shows_no_password() -> None:
    assert "geheim" not in repr(read_address("postgresql://me:geheim@localhost/base"))


def test_a_token_of_aws_is_never_sent_in_the_clear() -> None:
    with pytest.raises(InvalidStoreUrl, match="TLS"):
        read_address("postgresql://me@db.example/base?sslmode=disable&iam=true&region=eu-west-1")


def test_aws_is_not_imported_for_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    connect_to(read_address("postgresql://me:secret@localhost/base"))
