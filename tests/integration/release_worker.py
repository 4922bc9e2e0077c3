"""A process of one version: a tick with its dispatch, on an injected clock.

It reads an order from each line, and writes an answer to each. Its argument is a store's address.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

from duetick import Context, Flow, Policies, Schedule
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Flows
from duetick.core.schedules import UserSchedules
from duetick.core.tick import run_tick
from duetick.core.verify import verify
from duetick.domain.errors import DuetickError
from duetick.stores import open_store
from duetick.testing import FakeClock
from duetick.transports.inline import InlineTransport
from duetick.version import VERSION

FLOW = Flow("jobs")
FIRED: list[tuple[str, int, int]] = []


@FLOW.action("note")
def note(_input: object, ctx: Context) -> None:
    """Note the run. A schedule whose key begins with `flaky` fails at each first attempt."""
    FIRED.append((ctx.schedule_id, ctx.nominal_at, ctx.attempt))
    if "/flaky" in ctx.schedule_id and ctx.attempt == 1:
        raise ConnectionError("the first attempt of each")


class Worker:
    """This version at work on a store."""

    def __init__(self, address: str) -> None:
        self.clock = FakeClock()
        self.store = open_store(address, clock=self.clock)
        self.flows = Flows({"jobs": FLOW})
        self.users = UserSchedules(self.store, self.flows, "ann", self.clock)

    def migrate(self) -> object:
        """Expand the schema."""
        return self.store.migrate()

    def check(self) -> object:
        """Is the schema usable?"""
        self.store.check_schema()
        return True

    def put(self, keys: list[str], policies: Mapping[str, Any]) -> object:
        """Put schedules that fire each minute."""
        chosen = Policies(**policies)
        for key in keys:
            self.users.replace(Schedule("ann", key, "* * * * *", "jobs", "note", policies=chosen))
        return len(keys)

    def pause(self, key: str) -> object:
        """Pause one."""
        return self.users.pause(key).version

    def resume(self, key: str) -> object:
        """Let it fire again."""
        return self.users.resume(key).version

    def tick(self) -> object:
        """Fire what is due."""
        FIRED.clear()
        dispatch = Dispatcher(self.store, self.flows, lambda _request: True, self.clock)
        run_tick(self.store, InlineTransport(dispatch), now=self.clock())
        return [[VERSION, *one] for one in FIRED]

    def verify(self, since: int) -> object:
        """Account for every fire time since an instant. Return the faults, and the number of
        times.
        """
        faults: list[str] = []
        found = verify(
            self.store,
            since,
            self.clock(),
            now=self.clock(),
            tell=lambda schedule, fault: faults.append(f"{schedule}: {fault}"),
        )
        return [faults, found.times]

    def policies(self, key: str) -> object:
        """Return the policies of a schedule, as they are stored."""
        found = self.store.schedules.get("ann", key)
        return found and found.policies.dump()


def main() -> None:
    """Obey until the input ends."""
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        order = json.loads(line)
        worker.clock.now = order.pop("now")
        do = order.pop("do")
        try:
            answer: object = {"done": getattr(worker, do)(**order)}
        except DuetickError as problem:
            answer = {"refused": f"{type(problem).__name__}: {problem}"}
        sys.stdout.write(f"{json.dumps(answer, default=str)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
