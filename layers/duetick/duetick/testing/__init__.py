"""For tests of flows: `fire`, `Stage` and `FakeClock`. For stores: their conformance suite.

A flow is tested as it runs: a schedule is put, claimed, dispatched and settled, in memory.

    from duetick.testing import fire

    def test_the_digest_is_sent():
        fired = fire(digests, action="send_digest", input={"topic": "news"})
        assert fired.state == "succeeded"

## A store of your own

A store keeps schedules, their index and the ledger of what fired (`duetick.ports.Store`). Whatever
database is behind it, the promises are the same, and `StoreConformance` is those promises as tests.
To add a store:

1. Write a class that satisfies `duetick.ports.Store`: `index`, `schedules`, `ledger`, and the
   handful of methods beside them. Read the docstrings of `ports`: they are the contract. What to
   write is decided for you by pure functions, the same for all stores:
   `domain.firing.decide` says what fires for a row that is due, `domain.occurrences` makes the
   occurrences, `domain.mirror.plan_put` says what a change of a schedule writes, and
   `domain.attempts` says what a begin, a settle or a lost lease leads to. A store reads what is
   there, asks them, and writes the answer atomically: in one transaction, or one conditional write.
2. Subclass the suite, give it a store that is open, migrated and **empty**, and run pytest:

       import pytest
       from duetick.ports import Store
       from duetick.testing import StoreConformance

       class TestMyStore(StoreConformance):
           @pytest.fixture
           def store(self) -> Store:
               store = MyStore(...)
               store.migrate()
               return store

3. Make it green. Tests are named after the promise that they check (`i04`: atomic claims; `t07`:
   leases and fences; `j09`: what fires late; `d08`: overlap; `m01`: schedules and their index).
   Every test passes the time as `now`; none sleeps, and one alone reads a clock, the store's own.

What your database cannot do, say out loud: leave it out of `capabilities`, and the tests that need
it are skipped with its name as the reason. Three hooks make the suite look deeper where you offer
them; each is a method to override:

- `failing_writes(store)`: a context manager inside which every write of an occurrence fails, and
  which yields the error's type. It shows that a claim is all or nothing (capability
  `failing_writes`).
- `another(store)`: a second store on the same database, as another process would have it. It makes
  the races of the concurrency tests real. Without it, threads share the one store.
- `reopened(store)`: the same database seen anew, to show that what was written is there to stay.
  By default the store itself, after `close()`.

Then drive it at random: `tests/conformance/stateful.py` in Duetick's repository holds a model and a
machine that takes any store.
"""

from duetick.testing import assertions as assertions
from duetick.testing.clock import FakeClock
from duetick.testing.conformance import Capability, StoreConformance
from duetick.testing.stage import Fired, Stage, fire

__all__ = ["Capability", "FakeClock", "Fired", "Stage", "StoreConformance", "fire"]
