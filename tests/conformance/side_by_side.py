"""All stores side by side in worlds at random: `python -m tests.conformance.side_by_side`.

Each world has a seed, and is the same every time. If stores differ, the command ends and tells the
seed, the last steps, and each field in which they differ.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

from duetick.core.store import Store
from duetick.stores import open_store

from tests.conformance.world import World
from tests.lab.credentials import DUMMY
from tests.lab.dynamodb import start_dynamodb_local, table_name
from tests.lab.postgres import EmbeddedPostgres, emptied

Opens: TypeAlias = Mapping[str, Callable[[], Store]]
"""The functions that open an empty store of each kind, by its name."""
TOLD_EVERY = 10


def opened(address: str) -> Store:
    """Return the store at an address, ready for use."""
    store = open_store(address)
    store.migrate()
    return store


def compare(opens: Opens, seeds: Iterable[int], steps: int) -> None:
    """Compare a world of each seed, in empty stores of its own. Raise if two stores differ."""
    for seed in seeds:
        with ExitStack() as open_now:
            stores = {name: opens_one() for name, opens_one in opens.items()}
            for store in stores.values():
                open_now.callback(store.close)
            _live(World(stores, seed), seed, steps)


def _live(world: World, seed: int, steps: int) -> None:
    try:
        world.goes_on(steps)
    except Exception as error:
        error.add_note(f"in the world of seed {seed}, {world.sides.last_steps}")
        raise


@contextmanager
def all_stores() -> Iterator[Opens]:
    """Yield each store, on servers of this machine: DynamoDB with one shard, and with several."""
    with ExitStack() as started, tempfile.TemporaryDirectory(prefix="duetick-sides-") as folder:
        postgres = EmbeddedPostgres()
        started.callback(postgres.remove)
        dynamodb = start_dynamodb_local(Path(folder))
        started.callback(dynamodb.stop)
        yield {
            "SQLite": lambda: opened("sqlite://"),
            "Postgres": lambda: opened(emptied(postgres.url)),
            "DynamoDB": lambda: opened(dynamodb.table_url(table_name())),
            "DynamoDB, 4 shards": lambda: opened(dynamodb.table_url(table_name()) + "&shards=4"),
        }


def main() -> int:
    """Compare, and print the progress."""
    parser = argparse.ArgumentParser(description="Drive all stores side by side, at random.")
    parser.add_argument("--seeds", type=int, default=20, help="how many worlds")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one's seed")
    parser.add_argument("--steps", type=int, default=80, help="how much happens in each")
    asked = parser.parse_args()
    os.environ.update(DUMMY)
    end = asked.first + asked.seeds
    with all_stores() as opens:
        for first in range(asked.first, end, TOLD_EVERY):
            seeds = range(first, min(first + TOLD_EVERY, end))
            compare(opens, seeds, asked.steps)
            _say(f"{', '.join(opens)} agree in the worlds {seeds.start} to {seeds.stop - 1}")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
