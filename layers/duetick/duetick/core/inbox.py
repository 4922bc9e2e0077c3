"""The inbox: rows of other applications, each made a job as the API would, or a dead one.

  INSERT INTO inbox ──▶ a tick: check ──┬── right ──▶ a job, due
                                        └── wrong ──▶ a job that is dead, with the reason

The row leaves in the transaction that makes the job. If that fails, the row stays; and no row makes
two jobs.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from duetick.core.accepting import Quotas
from duetick.core.flows import Flows
from duetick.core.ids import new_id
from duetick.core.jobs import UserJobs
from duetick.core.log_lines import log_dead
from duetick.core.schedules import UserSchedules
from duetick.core.store import Store
from duetick.core.wire import require_json
from duetick.domain.book import Book
from duetick.domain.errors import CreationStands, Refusal
from duetick.domain.identity import InvalidId
from duetick.domain.jobs import InboxRow, Job, make_refused_job
from duetick.domain.occurrence import Occurrence
from duetick.domain.schedule import Json
from duetick.ports import Effects

logger = logging.getLogger("duetick.inbox")


@dataclass(frozen=True, slots=True)
class Inbox:
    """The inbox of a deployment. `on_dead` sees each dead job."""

    store: Store
    flows: Flows
    clock: Callable[[], int]
    quotas: Quotas
    on_dead: Callable[[Occurrence], object]

    def take(self, row: InboxRow, effects: Effects) -> None:
        """Make the job of a row, with the rights of its user."""
        try:
            schedules = UserSchedules(self.store, self.flows, row.user_id, self.clock, self.quotas)
        except InvalidId as problem:
            details = {"action": "inbox_refused", "row": row.id}
            logger.error("a row of the inbox is dropped: %s", problem, extra=details)
            return
        try:
            jobs = UserJobs(schedules)
            jobs.make(jobs.read(_body_of(row)), effects)
        except CreationStands:
            return  # its key has made a job, which is purged by now
        except (Refusal, ValueError) as problem:
            self._reject(row, str(problem), effects)

    def _reject(self, row: InboxRow, why: str, effects: Effects) -> None:
        dead = make_refused_job(row, new_id(), why, self.clock())

        def alter(book: Book) -> Job:
            return book.enqueue(dead, self.clock())

        effects.change(row.user_id, dead.record.key, self.clock(), alter)
        log_dead(dead.occurrence)
        self.on_dead(dead.occurrence)


def _body_of(row: InboxRow) -> dict[str, Json]:
    """Return the body that the API would get."""
    given = None if row.input is None else require_json(row.input, "the input")
    body: dict[str, Json] = {"flow": row.flow, "action": row.action, "input": given}
    if row.due_at is not None:
        body["at"] = max(row.due_at, 0)
    return body | ({"key": row.key} if row.key is not None else {})
