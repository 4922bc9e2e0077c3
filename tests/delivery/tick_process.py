"""One tick in a process of its own, to be killed: `python -m tests.delivery.tick_process`."""

import sys

from duetick.core.tick import run_tick
from duetick.stores import open_store
from duetick.transports.http import Headers, HttpTransport

from tests.delivery.scene import NINE


def authorize(
    host: str, path: str, body: bytes, *, refused: Headers | None = None
) -> Headers | None:
    """The scene asks for no more than a header."""
    del host, path, body
    return None if refused else {"authorization": "yes"}


def main(address: str, url: str) -> None:
    """Tick at nine."""
    store = open_store(address, clock=lambda: NINE)
    transport = HttpTransport(url, authorize)
    run_tick(store, transport, now=NINE, slots=4, chunk=10)
    transport.close()
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
