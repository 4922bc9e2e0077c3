"""A Postgres that asks for passwords: to refuse is another thing than not to answer yet."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from duetick.core.deployment import GRACE, PAUSE, deploy
from duetick.core.flows import Flows
from duetick.core.store import Store
from duetick.domain.errors import ConfigurationError, NotAccepted
from duetick.runtime.database import read_password
from duetick.stores.postgres.shelf import PostgresShelf, open_postgres

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


def waited(shelf: PostgresShelf, meanwhile: Callable[[], object] = lambda: None) -> float:
    """Return the seconds for which a deployment waited for its database before it succeeded."""
    passed: list[float] = []

    def sleep(seconds: float) -> None:
        passed.append(seconds)
        meanwhile()

    try:
        deploy(
            Store(shelf),
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
        shelf.close()
    return sum(passed)


def as_asked(server: EmbeddedPostgres, database: str = "postgres") -> str:
    """Return the address of the user who is asked for a password."""
    return server.tcp_url.replace("//postgres@", "//asked@").replace("/postgres", f"/{database}")


@pytest.mark.slow
def test_the_right_password_is_not_waited_for(server: EmbeddedPostgres) -> None:
    assert waited(open_postgres(as_asked(server), password=lambda: "right")) == 0


ODD = ["a\u00a0b", "\u2168", "soft\u00adhyphen", "e\u0301", "\u00aa", 'it\'s "so" 100%', "日本"]
"""A no-break space and its like: a login sends another form of them than was written."""


@pytest.fixture
def odd(server: EmbeddedPostgres) -> Iterator[str]:
    """The address of a user that is asked for its password, and not made yet."""
    rules = server.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(ASKED.replace("asked", "odd", 1) + before)
    with connect(server.url) as admin:
        admin.run("SELECT pg_reload_conf()")
        yield server.tcp_url.replace("//postgres@", "//odd@")
        admin.run("DROP OWNED BY odd; DROP ROLE odd")
    rules.write_text(before)


@pytest.mark.slow
@pytest.mark.parametrize("password", ODD)
def test_a_user_that_is_made_logs_in_with_its_password_whatever_it_holds(
    server: EmbeddedPostgres, odd: str, password: str
) -> None:
    with closing(open_postgres(server.tcp_url)) as owner:
        owner.migrate()
        owner.admit("odd", lambda: password)
    with closing(open_postgres(odd, password=lambda: password)) as user:
        user.check_schema()
    with (
        closing(open_postgres(odd, password=lambda: f"{password}?")) as stranger,
        pytest.raises(NotAccepted, match="authentication failed"),
    ):
        stranger.check_schema()


@pytest.mark.slow
@pytest.mark.parametrize("password", ["a\u0007b", "\u0627\u0628a", "\ue000", "\u0221"])
def test_a_password_that_no_login_may_send_is_refused_before_a_user_is_made_with_it(
    server: EmbeddedPostgres, password: str
) -> None:
    with closing(open_postgres(server.tcp_url)) as owner:
        owner.migrate()
        with pytest.raises(ConfigurationError, match="Make another") as refused:
            owner.admit("nobody at all", lambda: password)
    assert password not in str(refused.value)
    with connect(server.url) as admin:
        assert admin.run("SELECT 1 FROM pg_roles WHERE rolname = 'nobody at all'") == []


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
