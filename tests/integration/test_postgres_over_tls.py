"""TLS with a real server, and the errors if the server cannot be trusted."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import pytest
from duetick.domain.errors import StoreUnavailable
from duetick.domain.schedule import Schedule
from duetick.stores import open_store
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.connecting import connect_to
from duetick.stores.postgres.database import PostgresDatabase

from tests.lab.certificates import EXPIRED, Authority
from tests.lab.missing import LACKS
from tests.lab.postgres import EmbeddedPostgres, connect, machines_own
from tests.lab.process import LOCALHOST
from tests.lab.tls import TlsProxy

pytestmark = pytest.mark.slow


class TlsPostgres(Protocol):
    """A server that shows a certificate, and another one when asked to."""

    server: EmbeddedPostgres

    @property
    def port(self) -> int: ...

    def show(self, certificate: Path, key: Path) -> None:
        """From now on."""

    def encrypted(self, url: str) -> bool:
        """Return True if a connection of ours is encrypted."""

    def remove(self) -> None: ...


class BehindProxy:
    """The Postgres of the wheel behind a proxy, as it has no TLS of its own: this runs
    everywhere.
    """

    def __init__(self) -> None:
        self.server = EmbeddedPostgres()
        self._proxy = TlsProxy(self.server.port)
        self.port = self._proxy.port
        self.show = self._proxy.show

    def encrypted(self, url: str) -> bool:
        """Return True if the proxy, which takes nothing but TLS, had another handshake."""
        before = self._proxy.handshakes
        asked(url, "SELECT 1")
        return self._proxy.handshakes > before

    def remove(self) -> None:
        self._proxy.close()
        self.server.remove()


class OfItsOwn:
    """This machine's own Postgres, if it has one that was built with TLS."""

    def __init__(self) -> None:
        programs = machines_own()
        if programs is None:
            pytest.skip(f"a machine without a Postgres of its own {LACKS} 'tls'")
        self.server = EmbeddedPostgres(programs=programs)
        self.port = self.server.port
        with connect(self.server.url) as admin:
            library = admin.run("SHOW ssl_library")[0][0]
        if not library:
            self.server.remove()
            pytest.skip(f"{programs} {LACKS} 'tls'")

    def show(self, certificate: Path, key: Path) -> None:
        """From now on."""
        with connect(self.server.url) as admin:
            for name, value in (
                ("ssl_cert_file", self._given(certificate)),
                ("ssl_key_file", self._given(key)),
                ("ssl", "on"),
            ):
                admin.run(f"ALTER SYSTEM SET {name} = '{value}'")
        self.server.restart()

    def _given(self, file: Path) -> Path:
        """Return a copy of a file that only the server may read."""
        place = self.server.folder / file.name
        shutil.copy(file, place)
        place.chmod(0o600)
        owner = self.server.folder.stat()
        os.chown(place, owner.st_uid, owner.st_gid)
        return place

    def encrypted(self, url: str) -> bool:
        """It says so itself."""
        return bool(asked(url, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))

    def remove(self) -> None:
        self.server.remove()


def asked(url: str, question: str) -> object:
    """Return the server's answer on a connection of ours."""
    database = PostgresDatabase(connect_to(read_address(url)), 1, code=1)
    with database.transaction() as session:
        rows = session.run(question, {})
    database.close()
    return rows[0][0]


def url_of(
    port: int, authority: Path, *, host: str = "localhost", mode: str = "verify-full"
) -> str:
    root = quote(str(authority), safe="")
    return f"postgresql://postgres@{host}:{port}/postgres?sslmode={mode}&sslrootcert={root}"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module", params=[BehindProxy, OfItsOwn])
def tls(request: pytest.FixtureRequest, authority: Authority) -> Iterator[TlsPostgres]:
    made: TlsPostgres = request.param()
    made.show(*authority.sign("localhost"))
    yield made
    made.remove()


def refused(url: str) -> str:
    """Return the error for a server that is not trusted."""
    store = open_store(url)
    with pytest.raises(StoreUnavailable) as told:
        store.check_schema()
    return str(told.value)


@pytest.mark.parametrize("mode", ["verify-full", "verify-ca", "require"])
def test_with_its_authority_a_server_is_spoken_to_encrypted(
    tls: TlsPostgres, authority: Authority, mode: str
) -> None:
    assert tls.encrypted(url_of(tls.port, authority.certificate, mode=mode))


def test_a_store_works_over_tls(tls: TlsPostgres, authority: Authority) -> None:
    store = open_store(url_of(tls.port, authority.certificate))
    store.migrate()
    store.check_schema()
    large = Schedule("ada", "large", "0 9 * * *", "reminders", "send", input="x" * 60_000)
    store.schedules.put(large)
    found = store.schedules.get("ada", "large")
    store.close()
    assert found is not None
    assert found.input == large.input


def test_a_server_of_another_authority_is_refused(tls: TlsPostgres, tmp_path: Path) -> None:
    said = refused(url_of(tls.port, Authority(tmp_path / "theirs").certificate))
    assert "is not trusted" in said
    assert "sslrootcert" in said


def test_a_server_of_another_name_is_refused(tls: TlsPostgres, authority: Authority) -> None:
    said = refused(url_of(tls.port, authority.certificate, host=LOCALHOST))
    assert "is not trusted" in said
    assert "a name that its certificate says" in said


def test_a_name_is_no_matter_where_the_authority_alone_is_asked_for(
    tls: TlsPostgres, authority: Authority
) -> None:
    assert tls.encrypted(url_of(tls.port, authority.certificate, host=LOCALHOST, mode="verify-ca"))


def test_an_expired_certificate_is_refused(tls: TlsPostgres, authority: Authority) -> None:
    tls.show(*authority.sign("localhost", EXPIRED))
    said = refused(url_of(tls.port, authority.certificate))
    tls.show(*authority.sign("localhost"))
    assert "certificate has expired" in said
    assert "renewed" in said
    assert tls.encrypted(url_of(tls.port, authority.certificate))


def test_what_a_server_refuses_it_says_over_tls_too(tls: TlsPostgres, authority: Authority) -> None:
    url = url_of(tls.port, authority.certificate).replace("/postgres?", "/no_such_base?")
    assert "does not exist" in refused(url)


def test_a_dead_connection_is_replaced_over_tls_too(tls: TlsPostgres, authority: Authority) -> None:
    store = open_store(url_of(tls.port, authority.certificate))
    store.migrate()
    tls.server.restart()
    store.check_schema()
    store.close()


def test_a_server_without_tls_is_refused(
    own_postgres: EmbeddedPostgres, authority: Authority
) -> None:
    said = refused(url_of(own_postgres.port, authority.certificate))
    assert "speaks no TLS" in said
    assert "ssl = on" in said
