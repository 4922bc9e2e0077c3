"""Claimers as processes of their own, for any store that each of them can open."""

import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier as BarrierType
from typing import TypeAlias

from duetick.core.store import Store
from duetick.domain.schedule import IndexRow
from duetick.testing.conformance.samples import NOON

Name = tuple[str, str, int, str]

Opens: TypeAlias = Callable[[], Store]
"""Opens the one database. It travels to other processes by its name: a function of a module, or a
`functools.partial` of one."""


def forked() -> ForkServerContext:
    """Processes that start in milliseconds, from a server that has imported the store already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.integration.claimers"])
    return context


def index_due(store: Store, count: int) -> list[str]:
    """Index that many rows, due at noon; their keys."""
    keys = [f"k{number:05}" for number in range(count)]
    for key in keys:
        store.index.upsert(IndexRow("ada", key, "0 12 * * *", None, NOON))
    return keys


def claim_all(opens: Opens, now: int, limit: int, barrier: BarrierType, pipe: Connection) -> None:
    """Wait for the other processes, claim until nothing is due, and send the claimed names."""
    store = opens()
    store.check_schema()
    barrier.wait(timeout=120)
    claimed: list[Name] = []
    while chunk := store.index.claim_due(now, limit):
        claimed += [occurrence.identity for occurrence in chunk]
    pipe.send(claimed)
    store.close()


def race_claimers(opens: Opens, count: int, now: int, limit: int) -> Sequence[Sequence[Name]]:
    """Return the claims of `count` claimers that begin at once."""
    context = forked()
    barrier = context.Barrier(count)
    pipes, processes = [], []
    for _ in range(count):
        mine, theirs = context.Pipe()
        process = context.Process(target=claim_all, args=(opens, now, limit, barrier, theirs))
        process.start()
        pipes.append(mine)
        processes.append(process)
    found = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join(timeout=120)
    return found
