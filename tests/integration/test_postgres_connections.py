"""Connections to Postgres: shared, replaced once when dead, never trusted after a lost commit."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pg8000.dbapi
import pytest
from duetick.core.store import Store
from duetick.domain.errors import (
    InvalidSchedule,
    NoTransactions,
    SchemaOutdated,
    StoreUnavailable,
)
from duetick.domain.schedule import IndexRow, Record, Schedule
from duetick.stores import open_store
from duetick.stores.postgres.connecting import QuietConnection
from pg8000.exceptions import InterfaceError

from tests.integration.severing import Moment, SeveringProxy
from tests.lab.postgres import EmbeddedPostgres, connect

T = 1_700_000_040_000
END_SESSIONS = """
SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
SESSIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
"""

OPEN_TRANSACTIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
"""


def due(store: Store, count: int) -> None:
    for n in range(count):
        store.index.upsert(IndexRow("ann", f"k{n}", "* * * * *", None, T))


def end_sessions(url: str) -> None:
    """End all sessions but the present one, and wait for their end."""
    with connect(url) as connection:
        connection.run(END_SESSIONS)


def wait_for_the_end_of_transactions(server: EmbeddedPostgres) -> None:
    """Wait until the server has noticed a cut connection, and freed its locks."""
    with connect(server.url) as connection:
        while connection.run(OPEN_TRANSACTIONS)[0][0]:
            pass


def test_a_connection_that_died_while_idle_is_replaced(store: Store, postgres_url: str) -> None:
    due(store, 1)
    end_sessions(postgres_url)
    assert len(store.index.claim_due(T)) == 1


def test_a_server_that_dies_as_one_connects_leaves_nothing_open() -> None:
    """pg8000's buffer holds the unsent bytes, and would send them when it is collected."""
    ours, theirs = socket.socketpair()
    theirs.close()
    with pytest.raises(InterfaceError) as raised:
        QuietConnection("me", sock=ours, ssl_context=False)
    ours.close()
    assert ours.fileno() == -1, raised


def test_a_database_that_is_gone_is_unavailable_and_says_no_password() -> None:
    store = open_store("postgresql://me:geheim@127.0.0.1:1/base")
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/base") as raised:
        store.check_schema()
    assert "geheim" not in str(raised.value)
    assert raised.value.__cause__ is not None


def test_i10_a_database_without_a_schema_names_the_command(postgres_url: str) -> None:
    store = open_store(postgres_url)
    with pytest.raises(SchemaOutdated, match="duetick migrate"):
        store.index.claim_due(T)
    store.close()


def test_i10_a_column_that_is_missing_names_the_command(store: Store, postgres_url: str) -> None:
    with connect(postgres_url) as connection:
        connection.run("ALTER TABLE schedule_index RENAME COLUMN mark TO gone")
    with pytest.raises(SchemaOutdated, match="duetick migrate"):
        store.index.claim_due(T)


def test_i12_a_failed_transaction_surfaces_its_own_error_and_the_connection_goes_on(
    store: Store, postgres_url: str
) -> None:
    due(store, 3)
    with connect(postgres_url) as connection:
        connection.run("ALTER TABLE occurrences ADD CONSTRAINT none CHECK (false) NOT VALID")
        with pytest.raises(StoreUnavailable, match="none"):
            store.index.claim_due(T)
        connection.run("ALTER TABLE occurrences DROP CONSTRAINT none")
    assert len(store.index.claim_due(T)) == 3


def test_i18_dbapi_connections_serve_too(store: Store, postgres_url: str) -> None:
    due(store, 2)
    theirs = open_store(lambda: dbapi(postgres_url))
    assert len(theirs.index.claim_due(T)) == 2
    theirs.close()


def test_i18_a_factory_that_cannot_connect_at_first_is_unavailable() -> None:
    """As it is later on; the driver's own error is the cause."""
    with pytest.raises(StoreUnavailable, match="your factory connects to cannot be reached") as why:
        open_store(lambda: pg8000.dbapi.Connection("me", host="127.0.0.1", port=1))
    assert isinstance(why.value.__cause__, InterfaceError)


def test_i18_an_error_of_the_factorys_own_is_left_alone() -> None:
    def connect_without_a_secret() -> object:
        raise KeyError("SECRET")

    with pytest.raises(KeyError):
        open_store(connect_without_a_secret)


def test_i18_autocommit_is_refused_at_once(store: Store, postgres_url: str) -> None:
    def connect_with_autocommit() -> object:
        connection = dbapi(postgres_url)
        connection.autocommit = True
        return connection

    with pytest.raises(NoTransactions):
        open_store(connect_with_autocommit)


def test_i18_a_connection_that_drops_begin_is_refused_at_once(postgres_url: str) -> None:
    def connect_without_begin() -> object:
        connection = connect(postgres_url)
        send = connection.send_QUERY
        connection.send_QUERY = lambda sql: send("SELECT 1" if "BEGIN" in sql else sql)
        return connection

    with pytest.raises(NoTransactions):
        open_store(connect_without_begin)


def dbapi(url: str) -> pg8000.dbapi.Connection:
    with connect(url) as known:
        (database,) = known.run("SELECT current_database()")[0]
    query = dict(part.split("=") for part in urlsplit(url).query.split("&"))
    return pg8000.dbapi.Connection(
        "postgres", database=database, unix_sock=f"{query['host']}/.s.PGSQL.{query['port']}"
    )


def test_a_thousand_dispatches_share_a_few_connections(store: Store, postgres_url: str) -> None:
    with ThreadPoolExecutor(100) as threads:
        list(threads.map(lambda n: store.index.get("ann", f"k{n}"), range(1_000)))
    with connect(postgres_url) as connection:
        assert connection.run(SESSIONS)[0][0] <= 8 + 1


def test_j01_migrations_at_the_same_time_wait_for_each_other(postgres_url: str) -> None:
    stores = [open_store(postgres_url) for _ in range(4)]
    start = threading.Barrier(4)

    def migrate(store: Store) -> None:
        start.wait()
        store.migrate()
        store.check_schema()
        store.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(migrate, stores))


def test_two_that_create_one_schedule_at_once_make_one_of_it(postgres_url: str) -> None:
    stores = [open_store(postgres_url) for _ in range(8)]
    stores[0].migrate()
    start = threading.Barrier(8)

    def put(store: Store) -> Record:
        start.wait()
        return store.schedules.put(Schedule("ann", "k", "0 9 * * *", "flow", "act"), now=T)

    with ThreadPoolExecutor(8) as threads:
        made = {schedule.version for schedule in threads.map(put, stores)}
    for store in stores:
        store.close()
    assert made == {1}


def test_text_that_postgres_cannot_keep_is_refused_and_the_store_goes_on(store: Store) -> None:
    for text in ("nul\0", "half\ud800"):
        with pytest.raises(InvalidSchedule):
            store.index.upsert(IndexRow("ann", text, "* * * * *", None, T))
    due(store, 1)


def test_a_connection_lost_before_the_commit_is_replaced_once(
    severed: tuple[Store, SeveringProxy],
) -> None:
    store, proxy = severed
    due(store, 1)
    proxy.cut(b"pg_advisory_xact_lock", "before")
    due(store, 2)
    assert proxy.connections == 2
    assert len(store.index.claim_due(T)) == 2


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_commit_whose_answer_is_lost_is_never_done_again(
    severed: tuple[Store, SeveringProxy], own_postgres: EmbeddedPostgres, moment: Moment
) -> None:
    store, proxy = severed
    due(store, 3)
    proxy.cut(b"COMMIT", moment)
    with pytest.raises(StoreUnavailable, match="whether it was, only the database can tell"):
        store.index.claim_due(T)
    wait_for_the_end_of_transactions(own_postgres)
    in_doubt = len(store.ledger.find("ann"))
    claimed = store.index.claim_due(T)
    assert (in_doubt, len(claimed)) in ((0, 3), (3, 0))
    assert len(store.ledger.find("ann")) == 3
