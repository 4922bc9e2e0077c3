"""A Postgres that asks for passwords: to refuse is another thing than not to answer yet."""

from collections.abc import Callable, Iterator

import pytest
from duetick.core.deployment import GRACE, PAUSE, deploy
from duetick.core.flows import Flows
from duetick.domain.errors import ConfigurationError, NotAccepted
from duetick.runtime.database_password import read_password
from duetick.stores.postgres.store import PostgresStore, open_postgres

from tests.lab.postgres import EmbeddedPostgres, connect

PATIENCE = 280.0
ASKED = "host all asked 127.0.0.1/32 scram-sha-256\n"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server that lets the user `asked` in by a password alone."""
    server = EmbeddedPostgres()
    rules = server.folder / "data" / "pg_hba.conf"
    rules.write_text(ASKED + rules.read_text())
    server.restart()
    with connect(server.url) as admin:
        admin.run("CREATE ROLE asked SUPERUSER LOGIN PASSWORD 'right'")
    yield server
    server.remove()


def waited(store: PostgresStore, meanwhile: Callable[[], object] = lambda: None) -> float:
    """For how long a deployment waited for its database, before it succeeded."""
    passed: list[float] = []

    def sleep(seconds: float) -> None:
        passed.append(seconds)
        meanwhile()

    try:
        deploy(
            store,
            lambda: Flows({}),
            ("schema",),
            patience=PATIENCE,
            elapsed=lambda: sum(passed),
            sleep=sleep,
        )
    except NotAccepted:
        assert sum(passed) <= GRACE
        raise
    finally:
        store.close()
    return sum(passed)


def as_asked(server: EmbeddedPostgres, database: str = "postgres") -> str:
    """The address of the user who is asked for a password."""
    return server.tcp_url.replace("//postgres@", "//asked@").replace("/postgres", f"/{database}")


def test_the_right_password_is_not_waited_for(server: EmbeddedPostgres) -> None:
    assert waited(open_postgres(as_asked(server), password=lambda: "right")) == 0


@pytest.mark.parametrize("password", ["wrong", "", None])
def test_i10_a_deployment_with_a_wrong_password_fails_soon_and_says_why(
    server: EmbeddedPostgres, password: str | None
) -> None:
    with pytest.raises(NotAccepted, match=r"authentication failed .* \(28P01\)\. Look at the user"):
        waited(open_postgres(as_asked(server), password=lambda: password))


def test_i10_a_deployment_to_a_database_that_is_not_there_fails_soon(
    server: EmbeddedPostgres,
) -> None:
    with pytest.raises(NotAccepted, match=r"\"nowhere\" does not exist .*Make it, or name another"):
        waited(open_postgres(as_asked(server, "nowhere"), password=lambda: "right"))


def test_i10_a_deployment_with_a_certificate_that_is_not_trusted_fails_soon(
    server: EmbeddedPostgres,
) -> None:
    with pytest.raises(NotAccepted, match="sslmode=disable"):
        waited(open_postgres(f"{as_asked(server)}?sslmode=verify-full&sslrootcert=system"))


def test_a_user_who_is_only_just_being_made_is_waited_for(server: EmbeddedPostgres) -> None:
    def makes_it() -> None:
        with connect(server.url) as admin:
            admin.run("CREATE ROLE late SUPERUSER LOGIN")

    late = open_postgres(server.tcp_url.replace("//postgres@", "//late@"))
    assert waited(late, makes_it) == PAUSE


def test_a_second_deployments_password_does_not_replace_the_firsts(
    server: EmbeddedPostgres,
) -> None:
    owner = open_postgres(server.tcp_url)
    first = open_postgres(as_asked(server), password=lambda: "right")
    second = open_postgres(as_asked(server), password=lambda: "of the second")

    def migrate_with(password: str) -> None:
        owner.migrate()
        owner.admit("asked", lambda: password)

    for _ in range(2):
        migrate_with("right")
        first.check_schema()
        migrate_with("of the second")
        with pytest.raises(NotAccepted, match="keeps the password that they have"):
            second.check_schema()
    for store in (owner, first, second):
        store.close()


@pytest.mark.parametrize(
    "secret", ["", '{"password": ""}', '{"password": null}', '{"username": "x"}']
)
def test_a_secret_without_a_password_is_a_mistake_at_once(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="password"):
        read_password(secret)
