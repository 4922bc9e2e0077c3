"""Connections to an address: a socket without Nagle's delay, verified TLS, a fresh token."""

import socket
import ssl
from collections.abc import Callable
from typing import Final, TypeAlias

from pg8000.core import CoreConnection
from pg8000.native import Connection

from duetick.aws import client_of
from duetick.domain.errors import InvalidStoreUrl
from duetick.stores.postgres.address import SYSTEM, Address
from duetick.stores.postgres.errors import connecting
from duetick.stores.postgres.wire import nothing_unsent, remember_columns

ConnectPostgres: TypeAlias = Callable[[], CoreConnection]
Password: TypeAlias = Callable[[], str | None]

ANSWER_SECONDS: Final = 60
"""The last resort if a server hangs: far longer than any statement may take."""

KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class QuietConnection(Connection):
    """A connection that closes its socket in every case, even if the server dies at the login."""

    def __init__(self, *args: object, **named: object) -> None:
        try:
            super().__init__(*args, **named)
        except BaseException:
            with nothing_unsent(self):
                if getattr(self, "_usock", None) is not None:
                    self._usock.close()
                raise

    def close(self) -> None:
        """Close the buffer, too: pg8000 drops it without closing it, so the socket stays open."""
        with nothing_unsent(self):
            super().close()


def connect_to(address: Address, password: Password | None = None) -> ConnectPostgres:
    """Return a factory of connections. Each connection requests the password anew."""
    context = _tls(address)
    secret = password or _password(address)

    def connect() -> CoreConnection:
        with connecting(address.place):
            return _connect(address, _open_socket(address), context, secret())

    return connect


def _connect(
    address: Address, sock: socket.socket, context: ssl.SSLContext | None, password: str | None
) -> CoreConnection:
    try:
        connection = QuietConnection(
            address.user,
            host=address.host,
            port=address.port,
            database=address.database,
            password=password or "",
            application_name=address.application_name,
            ssl_context=context or False,
            sock=sock,
        )
    except BaseException:
        sock.close()
        raise
    # Under TLS another socket has replaced the one that was passed.
    connection._usock.settimeout(ANSWER_SECONDS)
    remember_columns(connection)
    return connection


def _open_socket(address: Address) -> socket.socket:
    """Open a socket with TCP_NODELAY: without it, parameters over about 8 KB wait 40 ms."""
    if address.socket_file is None:
        made = socket.create_connection((address.host, address.port), address.connect_timeout)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE:
            if hasattr(socket, name):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return made
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(address.connect_timeout)
        made.connect(address.socket_file)
    except BaseException:
        made.close()
        raise
    return made


def _tls(address: Address) -> ssl.SSLContext | None:
    """Make the context of all connections. It trusts the authority of the address and no other."""
    if address.tls == "off":
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = address.tls == "verify-full"
    try:
        if address.root_certificate == SYSTEM:
            context.load_default_certs()
        else:
            context.load_verify_locations(address.root_certificate)
    except (OSError, ssl.SSLError) as error:
        raise InvalidStoreUrl(
            f"sslrootcert={address.root_certificate!r} cannot be read ({error}). It is the PEM "
            "file of the authority that signed the server's certificate."
        ) from error
    return context


def _password(address: Address) -> Password:
    if address.region is None:
        return lambda: address.password
    return iam_token(address, address.region)


def iam_token(address: Address, region: str) -> Password:
    """Return a function that makes tokens of AWS in place of a password.

    A token lasts a quarter of an hour, so none is kept.
    """
    rds = client_of("rds", region)

    def token() -> str:
        made = rds.generate_db_auth_token(
            DBHostname=address.host, Port=address.port, DBUsername=address.user
        )
        return str(made)

    return token
