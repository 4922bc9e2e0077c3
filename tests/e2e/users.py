"""Users of a stack: each with a token, and one schedule."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.e2e.conftest import Deployed

EACH_MINUTE = {
    "cron": "* * * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning"},
}
EVER = datetime.min.replace(tzinfo=UTC)
YEARLY = EACH_MINUTE | {"cron": "0 9 1 1 *"}


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a token, and one schedule."""

    stack: Deployed
    token: str
    path: str

    def put(self, schedule: object) -> tuple[int, Any]:
        """Create or replace it."""
        answer = self.stack.as_user(self.token, "PUT", self.path, schedule)
        return answer.status, answer.json()

    def pause(self) -> int:
        """Until it is resumed."""
        return self.stack.as_user(self.token, "POST", f"{self.path}/pause", {}).status

    def get(self) -> dict[str, Any]:
        """Read it."""
        return self.stack.as_user(self.token, "GET", self.path).json()

    def history(self) -> list[dict[str, Any]]:
        """Return the user's occurrences, the newest first."""
        answer = self.stack.as_user(self.token, "GET", f"{self.path}/history").json()
        found: list[dict[str, Any]] = answer["history"]
        return found

    def fired(self, after: datetime = EVER) -> list[dict[str, Any]]:
        """Return the successes of nominal times after an instant."""
        later = (line for line in self.history() if time_of(line) > after)
        return [line for line in later if line["state"] == "succeeded"]


def time_of(line: dict[str, Any]) -> datetime:
    """Return the nominal time of a line of history."""
    return datetime.fromisoformat(line["nominalFireTime"])


def user(stack: Deployed, name: str) -> User:
    """Make a new user of the stack."""
    return User(stack, stack.user(name), "/api/schedules/hello")
