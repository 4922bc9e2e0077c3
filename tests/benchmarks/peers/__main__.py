"""Duetick beside pgqueuer, pg-boss and graphile-worker, on one server: ratios of one run.

    python -m tests.benchmarks.peers [--due 10000] [--others 1000000] [--rounds 5]

From a due schedule to recorded, leased work. Duetick starts from the schedules: it works out what
is due and when it is due next, advances the index, and records and leases each occurrence. The
peers have no schedules of this kind: their caller says what is due. Their own insert records a job,
and their own fetch leases it, a thousand at a time each, as Duetick's tick does. `lease alone` is
their time if the jobs exist already. Every commit is durable.
"""

import argparse
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from duetick.stores import open_store

from tests.benchmarks.postgres_claim import DURABLE, table
from tests.benchmarks.postgres_ways import floor, ours, timed
from tests.lab.cache import made_once
from tests.lab.missing import missing
from tests.lab.postgres import EmbeddedPostgres, Postgres, drop_database, fresh_database
from tests.lab.process import Command, run
from tests.lab.pythons import environment

HERE = Path(__file__).parent
PACKAGES = ("package.json", "package-lock.json")


class Rates(NamedTuple):
    """Rows a second: recorded and leased; leased where they were recorded before."""

    both: float
    lease: float | None = None


def node_modules() -> Path:
    """Install the lock's packages with npm, and a node that is new enough for all of them."""
    if shutil.which("npm") is None:
        missing("The peers", "npm is not on the PATH", "Install Node.js, then run again.")
    digest = hashlib.sha256((HERE / PACKAGES[1]).read_bytes()).hexdigest()[:12]
    return made_once(f"peers-{digest}", _install)


def _install(place: Path) -> None:
    for name in PACKAGES:
        shutil.copy(HERE / name, place)
    run(["npm", "ci", "--no-audit", "--no-fund"], cwd=place)


def node(script: str) -> Command:
    """Return a script beside the packages: node looks for them there."""
    place = node_modules()
    shutil.copy(HERE / script, place)
    return [place / "node_modules" / ".bin" / "node", place / script]


def pgqueuer() -> Command:
    return [environment("pgqueuer", "pgqueuer") / "bin" / "python", HERE / "pgqueuer_jobs.py"]


PEERS: Mapping[str, Callable[[], Command]] = {
    "pg-boss 12, insert and fetch": lambda: node("pgboss.mjs"),
    "pgqueuer 1.6, enqueue and dequeue": pgqueuer,
    "graphile-worker 0.18, add, run and complete": lambda: node("graphile.mjs"),
}


def measure_peer(server: Postgres, command: Command, due: int, others: int, rounds: int) -> Rates:
    """Measure a peer in a database of its own, and drop the database."""
    url = fresh_database(server)
    told = run([*command, str(due), str(others), str(rounds)], env=_environment(url))
    drop_database(server, url)
    found = [json.loads(line) for line in told.splitlines() if line.startswith("[")]
    return Rates(
        due / median(record + lease for record, lease in found),
        due / median(lease for _, lease in found),
    )


def _environment(url: str) -> dict[str, str]:
    """Return the address as libpq's variables, which all drivers read."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    return os.environ | {
        "PGHOST": query["host"][0],
        "PGPORT": query["port"][0],
        "PGUSER": parts.username or "postgres",
        "PGDATABASE": parts.path.removeprefix("/"),
    }


def measure_ours(server: Postgres, due: int, others: int, rounds: int) -> dict[str, Rates]:
    """Measure ours and the floor, in turns."""
    with table(server, due + others) as made:
        store = open_store(made.url)
        ways = {
            "the least that must be written": floor(made.url),
            "Duetick, chunks of 1,000": ours(store),
            "Duetick, chunks of 5,000": ours(store, 5_000),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                seconds[name].append(timed(way, made.make_due(due))[1])
        store.close()
    return {name: Rates(due / median(found)) for name, found in seconds.items()}


def compare(server: Postgres, due: int, others: int, rounds: int) -> None:
    rates = measure_ours(server, due, others, rounds)
    base = rates["Duetick, chunks of 1,000"].both
    for name, command in PEERS.items():
        rates[name] = measure_peer(server, command(), due, others, rounds)
    print(f"\n{due:,} due beside {others:,} that are not, load {os.getloadavg()[0]:.1f}")
    print(f"  {'':<46} {'recorded and leased':>26} {'lease alone':>22}")
    for name, (both, lease) in rates.items():
        alone = f"{lease:>10,.0f}/s {lease / base:>6.0%}" if lease else ""
        print(f"  {name:<46} {both:>13,.0f}/s {both / base:>8.0%} {alone:>24}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--due", type=int, default=10_000)
    parser.add_argument("--others", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    server = EmbeddedPostgres(DURABLE)
    try:
        for others in sorted({0, given.others}):
            compare(server, given.due, others, given.rounds)
    finally:
        server.remove()


if __name__ == "__main__":
    main()
