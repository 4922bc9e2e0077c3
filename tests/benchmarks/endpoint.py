"""An endpoint in a process of its own: it answers each call after a while, and stamps its
arrival.
"""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import TypedDict

TOP = Path(__file__).parents[2]
ACCEPTED = b'HTTP/1.1 202 Accepted\r\ncontent-length: 22\r\n\r\n{"status": "accepted"}'
NOMINAL = re.compile(rb'"nominalFireTime": "([^"]+)"')


class Answering(asyncio.Protocol):
    """One connection, one call at a time."""

    delay = 0.0
    late: list[int]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, gap, body = self._data.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)content-length: (\d+)", head)
        if not gap or len(body) < int(found[1] if found else 0):
            return
        self._data = b""
        if head.startswith(b"GET"):
            noted = json.dumps({"late": self.late, "cpu": time.process_time()}).encode()
            self.late.clear()
            size = f"HTTP/1.1 200 OK\r\ncontent-length: {len(noted)}\r\n\r\n".encode()
            self._transport.write(size + noted)
            return
        nominal = NOMINAL.search(body)
        if nominal:
            due = datetime.fromisoformat(nominal[1].decode()).timestamp()
            self.late.append(round((time.time() - due) * 1_000))
        asyncio.get_running_loop().call_later(self.delay, self._transport.write, ACCEPTED)


async def serve(delay: float) -> None:
    """Until it is ended."""
    Answering.delay, Answering.late = delay, []
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def answering(delay: float) -> Iterator[int]:
    """Yield the port of an endpoint."""
    command = [sys.executable, "-m", "tests.benchmarks.endpoint", str(delay)]
    with subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.kill()


class Told(TypedDict):
    """Milliseconds of each arrival after its nominal time, since the last time of asking; and the
    seconds of processor time so far.
    """

    late: list[int]
    cpu: float


def told(port: int) -> Told:
    """Return its notes."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    found: Told = json.loads(connection.getresponse().read())
    connection.close()
    return found


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
