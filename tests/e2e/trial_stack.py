"""A stack with flows that go wrong, and the ways to ask it."""

import json
from dataclasses import dataclass
from typing import Any

from duetick.core.store import Store
from duetick.core.wire import delivery_json
from duetick.domain.identity import to_path
from duetick.domain.policies import Policies
from duetick.domain.schedule import Json, Occurrence, Record, Schedule

from tests.e2e.conftest import Deployed
from tests.lab.postgres import EmbeddedPostgres

BEARER = "only-for-this-test-which-has-a-secret"

Row = tuple[int, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Trials:
    """A stack with flows that go wrong, and its database, looked at from outside."""

    stack: Deployed
    server: EmbeddedPostgres
    store: Store

    def put(
        self, key: str, action: str = "works", given: Json = None, policies: Policies | None = None
    ) -> Record:
        """Put a schedule of bea's that fires once a year, by itself long after this test."""
        wanted = Schedule(
            "bea", key, "0 9 1 1 *", "trials", action, input=given, policies=policies or Policies()
        )
        return self.store.schedules.put(wanted)

    def claim(self, schedule: Record) -> Occurrence:
        """Lease its next occurrence, as to a tick of that time."""
        assert schedule.next_fire_at
        due = self.store.index.claim_due(schedule.next_fire_at, 1_000)
        (found,) = (each for each in due if each.key == schedule.key)
        return found

    def post(
        self, schedule_id: str, body: object = None, *, flow: str = "trials", token: str = BEARER
    ) -> Row:
        """Call the dispatch route with a secret."""
        path = f"/api/flows/{flow}/schedules/{to_path(schedule_id)}/dispatch"
        aws, api = self.stack.aws, self.stack.outputs["ApiId"]
        text = "" if body is None else json.dumps(body)
        answer = aws.rest_call(api, "v1", "POST", path, body=text, signed=False, token=token)
        return answer.status, json.loads(answer.body)

    def deliver(self, occurrence: Occurrence) -> Row:
        """Make a tick's call."""
        return self.post(occurrence.schedule_id, delivery_json(occurrence))

    def became(self, key: str) -> list[tuple[str, str | None]]:
        """Return the state and the reason of a schedule's occurrences."""
        return [(o.state, o.reason) for o in self.store.ledger.find("bea", key)]
