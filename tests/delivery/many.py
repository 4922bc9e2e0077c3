"""Many actions at once on one store, and the number of connections that they hold."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from duetick.core.store import Store
from duetick.domain.attempts import Begun
from duetick.domain.schedule import NewOccurrence
from duetick.domain.states import State
from duetick.stores import open_store
from duetick.testing.conformance.suite import run as bring_and_begin

from tests.delivery.outages import door
from tests.delivery.scene import NINE, Scene
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.waiting import wait

STEP = 20
"""How many begin or settle at a time: it is one process that does it for all."""

POOL = 8
KEPT = 32
"""How many connections the DynamoDB client keeps."""

OPEN = Path("/proc/self/fd")
"""Where this process is told what it has open."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A store, the number of its connections at the moment, and the most that it may have."""

    store: Store
    connections: Callable[[], int]
    most: int


def sqlite(path: Path) -> Iterator[Watched]:
    """Yield a store with one connection for a process: the files that it has open tell."""
    store = open_store(f"sqlite:///{path}", clock=lambda: NINE)
    yield Watched(store, lambda: open_files(path), 1)
    store.close()


def open_files(path: Path) -> int:
    """Return the number of this process's descriptors of the file."""
    named = (os.readlink(each) for each in OPEN.iterdir() if each.is_symlink())
    return sum(name == str(path) for name in named)


def postgres(url: str) -> Iterator[Watched]:
    """Yield a store with a pool, lent for a transaction at a time: the server tells."""
    pool = f"{'&' if '?' in url else '?'}pool={POOL}"
    store = open_store(f"{url}{pool}", clock=lambda: NINE)
    watcher = open_store(url, clock=lambda: NINE)
    yield Watched(store, lambda: backends(watcher) - 1, POOL)
    for each in (store, watcher):
        each.close()


def backends(watcher: Store) -> int:
    """Return the number of connections, as the database says: the watcher's is one of them."""
    asked = NewOccurrence("test", "sql", "", None, NINE, origin="run:1", due_at=NINE)
    begun = bring_and_begin(watcher, asked, NINE)
    assert isinstance(begun, Begun)
    with watcher.ledger.settling(begun.occurrence, lambda: NINE) as effects:
        rows = effects.run(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND backend_type = 'client backend'"
        )
    return int(str(rows[0][0]))


def dynamodb(local: DynamoDB) -> Iterator[Watched]:
    """Yield a store whose HTTP connections a door before the endpoint counts. A few are kept."""
    port = local.endpoint.rpartition(":")[2]
    with door(int(port)) as way:
        address = local.table_url(table_name()).replace(port, str(way.port))
        store = open_store(address, clock=lambda: NINE)
        yield Watched(store, way.count, KEPT)
        store.close()


def at_once(watched: Watched, many: int) -> int:
    """Run a number of actions at once. Return the number of connections that they held."""
    watched.store.migrate()
    scene, goes_on = Scene(watched.store), threading.Semaphore(0)
    for number in range(many):
        scene.put(f"k{number:04}", cron="0 9 * * *")
    scene.act = lambda *_: goes_on.acquire(timeout=300)
    claimed = watched.store.index.claim_due(NINE, many)
    threads = [threading.Thread(target=scene.deliver, args=(each,)) for each in claimed]
    for number, thread in enumerate(threads):
        thread.start()
        wait(partial(has_begun, scene, number - STEP))
    wait(lambda: len(scene.ran) == many)
    peak = watched.connections()
    for _ in range(many // STEP):
        goes_on.release(STEP)
        time.sleep(0.01)
    for thread in threads:
        thread.join(300)
    states = Counter(o.state for o in watched.store.ledger.find("ada", limit=2 * many))
    assert states == {State.SUCCEEDED: many}
    return peak


def has_begun(scene: Scene, many: int) -> bool:
    """Return True once a number of actions run."""
    return len(scene.ran) >= many
