"""The static schedules of a flow, as an operator reads them."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlencode

from duetick.api.views import ExplanationView, OccurrenceView, ScheduleView, TimelineView
from duetick.client import Client, Reply
from duetick.domain.identity import to_path

STATIC: Final = "/api/static-schedules"


class StaticClient:
    """The static schedules of one flow, by their names. A refusal is raised as ApiError."""

    def __init__(self, client: Client, flow: str) -> None:
        """Take a client that acts as an operator."""
        self._client = client
        self._base = f"{STATIC}/{to_path(flow)}"

    def get(self, name: str) -> Reply[ScheduleView]:
        """Return the schedule."""
        return self._client.call("GET", self._of(name))

    def history(
        self,
        name: str,
        *,
        limit: int = 50,
        state: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Iterator[OccurrenceView]:
        """Yield its history, newest first, page by page; filters are as in `Client.history`."""
        filters = {"state": state, "from": since, "to": until}
        return self._client.pages(f"{self._of(name)}/history", "history", limit, filters)

    def timeline(
        self, name: str, *, since: str | None = None, until: str | None = None
    ) -> TimelineView:
        """Return a span of the schedule in short, as `Client.timeline` does."""
        filters = {"from": since, "to": until}
        given = {field: value for field, value in filters.items() if value is not None}
        path = f"{self._of(name)}/timeline?{urlencode(given)}"
        answer: Reply[TimelineView] = self._client.call("GET", path)
        return answer.body

    def explain(self, name: str, *, at: str | None = None) -> ExplanationView:
        """Return why the schedule fired at a time or did not, or if it will fire; now by
        default.
        """
        asked = "" if at is None else f"?{urlencode({'at': at})}"
        answer: Reply[ExplanationView] = self._client.call(
            "GET", f"{self._of(name)}/explain{asked}"
        )
        return answer.body

    def _of(self, name: str) -> str:
        return f"{self._base}/{to_path(name)}"
