"""Ctrl-C in the middle of a tick: `duetick local` ends soon, and occurrences that did not begin are
due.
"""

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.domain.schedule import Schedule
from duetick.domain.states import State
from duetick.stores import open_store

from tests.lab.process import Command, Server

TOP = Path(__file__).parents[2]
COUNT = 300
YEAR_MS = 366 * 86_400_000
SLOW = '''"""A flow that takes its time, and leaves a mark for each run."""

import os
import time
from pathlib import Path

from duetick import Flow

slow = Flow("slow")


@slow.action("work")
def work(_: None, ctx) -> None:
    time.sleep({seconds})
    Path(os.environ["MARKS"], ctx.schedule_id.replace("/", "-")).touch()
'''

pytestmark = pytest.mark.slow


@pytest.fixture
def start(tmp_path: Path) -> Callable[[float], Server]:
    """Return a function that starts the local stack on due schedules whose action takes some
    seconds.
    """

    def started(seconds: float) -> Server:
        (tmp_path / "slow_flows").mkdir()
        (tmp_path / "slow_flows" / "__init__.py").write_text(SLOW.format(seconds=seconds))
        (tmp_path / "marks").mkdir()
        prepare(store_in(tmp_path))
        env = os.environ | {
            "DUETICK_FLOWS": "slow_flows",
            "PYTHONPATH": str(tmp_path),
            "MARKS": str(tmp_path / "marks"),
        }
        address = f"sqlite:///{tmp_path}/duetick.db"
        duetick = Path(sys.executable).with_name("duetick")
        command: Command = [duetick, "local", "--port", "0", "--store", address]
        return Server(command, tmp_path / "output", env=env, cwd=TOP)

    return started


def store_in(folder: Path) -> Store:
    """Open the stack's own store."""
    return open_store(f"sqlite:///{folder}/duetick.db")


def prepare(store: Store) -> None:
    """Hundreds of schedules with one time that is due, whenever that was."""
    store.migrate()
    for number in range(COUNT):
        due = Schedule(f"u{number % 50}", f"k{number}", "0 0 1 1 *", "slow", "work")
        store.schedules.put(due, now=store.now() - YEAR_MS)
    store.close()


def marks(folder: Path) -> int:
    """Return the number of actions that came to their end."""
    return len(list((folder / "marks").iterdir()))


def states(folder: Path) -> Counter[State]:
    """Return the states of all occurrences in the ledger."""
    store = store_in(folder)
    found = [o for n in range(50) for o in store.ledger.find(f"u{n}", limit=COUNT)]
    store.close()
    return Counter(o.state for o in found)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_t11_a_stop_ends_the_tick_and_gives_back_what_was_not_begun(
    tmp_path: Path, start: Callable[[float], Server], sent: signal.Signals
) -> None:
    server = start(0.5)
    server.wait_until(lambda: marks(tmp_path) > 0)
    server.stop(with_signal=sent, grace=60)
    ended = states(tmp_path)
    assert ended[State.SUCCEEDED] == marks(tmp_path) < COUNT
    assert ended[State.QUEUED] > 0
    assert set(ended) <= {State.SUCCEEDED, State.QUEUED, State.CANCELLED}
    printed = server.log.read_text()
    assert f"Stopped before {ended[State.QUEUED]} were begun" in printed
    assert "Traceback" not in printed
    assert due_again(tmp_path) == ended[State.QUEUED]


def due_again(folder: Path) -> int:
    """Count the occurrences that the next start would deliver."""
    store = store_in(folder)
    waiting = store.ledger.claim_waiting(store.now() + 1_000, COUNT)
    store.close()
    return len(waiting)
