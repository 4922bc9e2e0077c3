"""TLS before a Postgres that was built without it, spoken as Postgres does."""

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from select import select
from typing import Final

from tests.lab.process import LOCALHOST

SSL_REQUEST: Final = bytes.fromhex("0000000804d2162f")
"""The first bytes of a client that wants TLS. The server answers with one letter, in the clear."""
AT_ONCE: Final = 65_536


class TlsProxy:
    """A proxy that takes nothing but TLS, and hands on the deciphered bytes to a port of this
    machine.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._context: ssl.SSLContext
        self.handshakes = 0
        """The number of clients that trusted its certificate."""
        self._listener = socket.create_server((LOCALHOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def show(self, certificate: Path, key: Path) -> None:
        """From now on."""
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if client.recv(len(SSL_REQUEST)) != SSL_REQUEST:
                return
            client.sendall(b"S")
            with self._context.wrap_socket(client, server_side=True) as spoken:
                self.handshakes += 1
                with socket.create_connection((LOCALHOST, self._target)) as server:
                    _exchange(spoken, server)


def _exchange(spoken: ssl.SSLSocket, server: socket.socket) -> None:
    """Until either side closes. One thread for both ways: a TLS socket is not for two."""
    while True:
        # What TLS has read ahead no `select` sees: each message is read to its end.
        ready, _, _ = select([spoken, server], [], [])
        for end, other in ((spoken, server), (server, spoken)):
            if end in ready:
                data = end.recv(AT_ONCE)
                while end is spoken and spoken.pending():
                    data += spoken.recv(AT_ONCE)
                if not data:
                    return
                other.sendall(data)
