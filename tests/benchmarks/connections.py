"""A thousand actions at once, and the connections that they hold on each backend.

`python -m tests.benchmarks.connections`, or with another number. The suite does the same, with
fewer on DynamoDB.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.delivery.many import Watched, at_once, dynamodb, postgres, sqlite
from tests.lab.credentials import DUMMY
from tests.lab.dynamodb import start_dynamodb_local
from tests.lab.postgres import EmbeddedPostgres


def backends(folder: Path) -> Iterator[tuple[str, Watched]]:
    """Yield each backend during a look at it."""
    for made in sqlite(folder / "many.db"):
        yield "SQLite", made
    server = EmbeddedPostgres()
    for made in postgres(server.url):
        yield "Postgres", made
    server.remove()
    local = start_dynamodb_local(folder)
    for made in dynamodb(local):
        yield "DynamoDB", made
    local.stop()


def main(many: int = 1_000) -> None:
    """Print the peak of each."""
    os.environ.update(DUMMY)
    with tempfile.TemporaryDirectory() as folder:
        for name, made in backends(Path(folder)):
            begin = time.monotonic()
            peak = at_once(made, many)
            took = time.monotonic() - begin
            sys.stdout.write(f"{name}: {many} actions at once, {peak} connections, {took:.0f} s\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
