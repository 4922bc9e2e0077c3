"""The user as whom the functions connect: it changes no schema, and its password is not sent.

The conformance suite, which also runs as such a user, shows that the user can do all that they do.
"""

import base64
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from duetick.cli.context import LocalContext
from duetick.core.deployment import deploy
from duetick.core.flows import Flows
from duetick.core.store import Store
from duetick.domain.errors import NotPermitted
from duetick.runtime import database, wiring
from duetick.stores.postgres.roles import ROUTINES, scram_verifier
from duetick.stores.postgres.shelf import PostgresShelf, open_postgres
from duetick.stores.sql.schema import OF_NOBODY, OF_USERS
from pg8000.native import Connection

from tests.integration.handlers import load_handler
from tests.lab.postgres import connect

USER = "duetick functions"
ANY = 'it\'s 100% "secret"'


@pytest.fixture
def owner(postgres_url: str) -> Iterator[PostgresShelf]:
    store = open_postgres(postgres_url)
    store.migrate()
    store.admit(USER, lambda: ANY)
    yield store
    store.close()
    with connect(postgres_url) as admin:
        admin.run(f'DROP OWNED BY "{USER}"; DROP ROLE "{USER}"')


@pytest.fixture
def user(owner: PostgresShelf, postgres_url: str) -> Iterator[Connection]:
    """A session as that user."""
    del owner
    with connect(postgres_url) as session:
        session.run(f'SET SESSION AUTHORIZATION "{USER}"')
        yield session
        session.run("RESET SESSION AUTHORIZATION")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE schedules",
        "ALTER TABLE schedules ADD COLUMN more text",
        "TRUNCATE occurrences",
        "CREATE TABLE more (a text)",
        "CREATE INDEX more ON schedules (cron)",
        "DROP FUNCTION rows_expected",
        "UPDATE schema_version SET version = 9",
        "CREATE ROLE another",
        "CREATE SCHEMA more",
        "SELECT * FROM of_somebody_else",
    ],
)
def test_it_changes_no_schema_and_reads_nothing_of_others(
    user: Connection, postgres_url: str, statement: str
) -> None:
    with connect(postgres_url) as admin:
        admin.run("CREATE TABLE of_somebody_else (a text)")
    with pytest.raises(Exception, match=r"permission denied|must be owner"):
        user.run(statement)


def test_everything_that_a_migration_makes_is_granted(
    owner: PostgresShelf, postgres_url: str
) -> None:
    del owner
    with connect(postgres_url) as admin:
        tables = admin.run("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        routines = admin.run(
            "SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
        )
    assert {name for (name,) in tables} == {*OF_USERS, *OF_NOBODY, "schema_version"}
    assert {name for (name,) in routines} == set(ROUTINES)


def test_a_second_migration_grants_again_and_leaves_the_password(
    owner: PostgresShelf, postgres_url: str
) -> None:
    kept = verifier(postgres_url)
    owner.migrate()
    owner.admit(USER, lambda: "another")
    assert verifier(postgres_url) == kept


def test_the_password_is_kept_as_postgres_keeps_it(owner: PostgresShelf, postgres_url: str) -> None:
    del owner
    with connect(postgres_url) as admin:
        quoted = ANY.replace("'", "''")
        admin.run("SET password_encryption = 'scram-sha-256'")
        ours = verifier(postgres_url)
        admin.run(f"ALTER ROLE \"{USER}\" PASSWORD '{quoted}'")
        theirs = verifier(postgres_url)
    for text in (ours, theirs):
        assert scram_verifier(ANY, salt_of(text)) == text


def as_plain_owner(url: str, *may: str) -> str:
    """Return the address of an owner who is no superuser, with a schema of the owner's name."""
    with connect(url) as admin:
        admin.run(f"CREATE ROLE plain_owner LOGIN {' '.join(may)}")
        admin.run("CREATE SCHEMA plain_owner AUTHORIZATION plain_owner")
    return url.replace("//postgres@", "//plain_owner@")


@pytest.fixture
def without_plain_owner(postgres_url: str) -> Iterator[None]:
    """Roles are the whole server's."""
    yield
    with connect(postgres_url) as admin:
        admin.run("DROP OWNED BY plain_owner")
        admin.run("DROP ROLE plain_owner")


def test_a_user_that_is_made_finds_the_tables_where_the_owner_has_them(
    postgres_url: str, without_plain_owner: None
) -> None:
    owner = open_postgres(as_plain_owner(postgres_url, "CREATEROLE"))
    owner.migrate()
    owner.admit(USER, lambda: ANY)
    user = open_postgres(postgres_url.replace("//postgres@", f"//{quote(USER)}@"))
    try:
        user.check_schema()
    finally:
        owner.close()
        user.close()
        with connect(postgres_url) as admin:
            admin.run(f'DROP OWNED BY "{USER}"')
            admin.run(f'DROP ROLE "{USER}"')


def test_an_owner_who_may_not_make_roles_fails_the_deployment_at_once(
    postgres_url: str, without_plain_owner: None
) -> None:
    owner = open_postgres(as_plain_owner(postgres_url))
    waited: list[float] = []

    def migrate() -> int:
        taken_over = owner.migrate().taken_over
        owner.admit(USER, lambda: ANY)
        return taken_over

    with pytest.raises(NotPermitted, match=r"denied to create role .* who is there already"):
        deploy(
            Store(owner),
            lambda: Flows({}),
            ("schema",),
            migrate=migrate,
            patience=10.0,
            elapsed=lambda: sum(waited),
            sleep=waited.append,
        )
    owner.close()
    assert waited == []


def verifier(url: str) -> str:
    """Return the verifier that Postgres keeps of the user's password."""
    with connect(url) as admin:
        ((kept,),) = admin.run("SELECT rolpassword FROM pg_authid WHERE rolname = :u", u=USER)
    return str(kept)


def salt_of(kept: str) -> bytes:
    """Return the salt of a stored password."""
    return base64.b64decode(kept.split("$")[1].partition(":")[2])


def test_i10_migrate_changes_the_schema_as_its_owner_and_does_the_rest_as_the_functions_user(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = "duetick_migrated"
    monkeypatch.setenv("DUETICK_OWNER_STORE", postgres_url)
    monkeypatch.setenv("DUETICK_STORE", postgres_url.replace("//postgres@", f"//{user}@"))
    monkeypatch.setattr(database, "password_from", lambda _arn: lambda: ANY)
    wiring.store.cache_clear()
    done = load_handler("migrate")({}, LocalContext(60_000))
    assert (done["schema"], wiring.settings().owner_store) == ("up to date", postgres_url)
    assert done["schedules"]["put"]
    wiring.store().close()
    wiring.store.cache_clear()
    with connect(postgres_url) as admin:
        owners = admin.run("SELECT tableowner FROM pg_tables WHERE tablename = 'schedules'")
        admin.run(f"DROP OWNED BY {user}; DROP ROLE {user}")
    assert owners == [["postgres"]]
