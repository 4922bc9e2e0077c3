"""The delay of each user beside a mass of another's: on each store, due rows and retries.

    python -m tests.benchmarks.fairness
    python -m tests.benchmarks.fairness --only postgres --seconds 1 --mass 2000

Twenty users have one occurrence each. Beside them is the mass: one user's, ten users', or one
user's retries of priority 100. All are due at once, and each action takes its time. The delay is
that from the start of the tick to the begin of the user's first action.
"""

import argparse
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome
from duetick.domain.policies import Backoff, Delivery, Policies, Retry
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Delivered
from duetick.stores import open_store

from tests.benchmarks.before import SIZES, addresses
from tests.lab.credentials import DUMMY

NOON: Final = 1_803_902_400_000
MINUTE: Final = 60_000
SLOTS: Final = 64
RETRIED: Final = Policies(
    delivery=Delivery.AT_LEAST_ONCE, retry=Retry(backoff=Backoff.FIXED, attempts=5, first=10)
)
URGENT: Final = Policies(delivery=RETRIED.delivery, retry=RETRIED.retry, priority=100)
FAILED: Final = Outcome(State.FAILED, Reason.FAILED, "no mail server")


@dataclass(frozen=True, slots=True)
class Mass:
    """The other users, who together have the mass."""

    users: int
    policies: Policies = RETRIED
    retried: bool = False


MASSES: Final = {
    "one user's": Mass(1),
    "ten users'": Mass(10),
    "one user's retries of priority 100": Mass(1, URGENT, retried=True),
}


@dataclass
class Slow:
    """A transport whose endpoint begins, takes its time and settles."""

    store: Store
    seconds: float
    began: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    since: float = field(default_factory=time.monotonic)

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """Run it, and succeed."""
        begun = self.store.ledger.begin(occurrence, now=occurrence.due_at)
        if not isinstance(begun, Begun):
            return Delivered(409)
        with self.lock:
            self.began.setdefault(occurrence.user_id, time.monotonic() - self.since)
        time.sleep(min(self.seconds, timeout))
        self.store.ledger.settle(begun.occurrence, SUCCEEDED, now=occurrence.due_at)
        return Delivered(202, '{"status": "accepted"}')

    def close(self) -> None:
        """Nothing is open."""


def fill(store: Store, mass: Mass, size: int) -> int:
    """Make all due; the time of the tick."""
    for number in range(size):
        _make_due(store, f"many{number % mass.users}", f"k{number}", mass.policies)
    for number in range(20):
        _make_due(store, f"one{number:02}", "k", RETRIED)
    if mass.retried:
        _fail_all(store)
    return NOON + MINUTE


def _make_due(store: Store, user: str, key: str, policies: Policies) -> None:
    store.index.upsert(IndexRow(user, key, "0 12 * * *", None, NOON, "m", policies=policies))


def _fail_all(store: Store) -> None:
    while claimed := store.index.claim_due(NOON, 100):
        for one in claimed:
            begun = store.ledger.begin(one, now=NOON)
            if isinstance(begun, Begun):
                store.ledger.settle(begun.occurrence, FAILED, now=NOON)


def measure(url: str, mass: Mass, size: int, seconds: float) -> Mapping[str, float]:
    """Return the delay of each user that one tick served."""
    store = open_store(url)
    store.migrate()
    now = fill(store, mass, size)
    slow = Slow(store, seconds)
    run_tick(store, slow, now=now, slots=SLOTS, budget=55.0)
    store.close()
    return slow.began


def show(kind: str, name: str, delays: Mapping[str, float]) -> None:
    """Print the delay of each of the twenty users, and the longest one."""
    found = {user: delay for user, delay in delays.items() if user.startswith("one")}
    print(f"{kind}: beside {name}: {len(found)} of 20 served", flush=True)
    if found:
        print("  " + "  ".join(f"{user} {delay:.2f} s" for user, delay in sorted(found.items())))
        print(f"  the longest delay: {max(found.values()):.2f} s", flush=True)


def main() -> None:
    """Print each user's delay, for each store and mass."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=SIZES)
    parser.add_argument("--mass", type=int, default=1_000, help="occurrences of the others")
    parser.add_argument("--seconds", type=float, default=5.0, help="that each action takes")
    chosen = parser.parse_args()
    os.environ.update(DUMMY)
    for kind, make in addresses([chosen.only] if chosen.only else list(SIZES)):
        for name, mass in MASSES.items():
            show(kind, name, measure(make(), mass, chosen.mass, chosen.seconds))


if __name__ == "__main__":
    main()
