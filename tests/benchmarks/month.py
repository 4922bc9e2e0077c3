"""A month of a hundred users on each store: `python -m tests.benchmarks.month --users 100`.

They make, finish, pause, edit and delete schedules over forty days, as in the suite, which has
fewer of them on the slower stores. Each evening the store has to say what was worked out beside it,
and verify has to find nothing.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from duetick.stores import open_store

from tests.conformance.month import live_together
from tests.lab.credentials import DUMMY
from tests.lab.dynamodb import start_dynamodb_local, table_name
from tests.lab.postgres import EmbeddedPostgres

DAYS = 40


def lives(name: str, address: str, users: int) -> None:
    """Live the month on one store, and print its counts."""
    began = time.perf_counter()
    with closing(open_store(address)) as store:
        store.migrate()
        town = live_together(store, users, DAYS, seed=7)
    took = time.perf_counter() - began
    print(f"{name:10}{users} users, {DAYS} days, {len(town.plans)} schedules left: {took:.0f} s")


def on_postgres(users: int) -> None:
    """Live the month on a Postgres of its own."""
    server = EmbeddedPostgres()
    lives("Postgres", server.url, users)
    server.remove()


def on_dynamodb(users: int) -> None:
    """Live the month on Amazon's DynamoDB Local."""
    with tempfile.TemporaryDirectory() as folder:
        local = start_dynamodb_local(Path(folder))
        lives("DynamoDB", local.table_url(table_name()), users)
        local.stop()


STORES: dict[str, Callable[[int], None]] = {
    "sqlite": lambda users: lives("SQLite", "sqlite://", users),
    "postgres": on_postgres,
    "dynamodb": on_dynamodb,
}


def main() -> None:
    """Live it on every store, or on one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--only", choices=STORES)
    asked = parser.parse_args()
    os.environ.update(DUMMY)
    for name, live in STORES.items():
        if asked.only in (None, name):
            live(asked.users)


if __name__ == "__main__":
    main()
