"""The occurrences of all users over HTTP: a part of the client of operators.

occurrences = Operators(url, authorize=sign, why="the partner is back").occurrences
for dead in occurrences.list(state="dead", flow="billing"):
    print(dead["id"], dead["error"])
occurrences.retry_many({"flow": "billing"}, dry_run=False)
"""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode

from duetick.api.views import (
    AnyOccurrence,
    ChangedOccurrence,
    ChangedOccurrences,
    OccurrenceDetail,
)
from duetick.client import Client, Reply
from duetick.domain.identity import to_path
from duetick.domain.occurrence import ScheduleName
from duetick.domain.schedule import Json

PATH: Final = "/api/occurrences"
MANY: Final = "/api/all-occurrences"


class OccurrencesClient:
    """The occurrences of all users. A refusal is raised as `duetick.client.ApiError`.

    `of` is the schedule of an occurrence, (user, key): DynamoDB finds one that ended well only by
    it. `filters` are `state`, `reason`, `flow`, `label`, `user`, `key`, `since` and `until`.
    """

    def __init__(self, client: Client) -> None:
        """Take a client that asks as an operator."""
        self._client = client

    def list(
        self, filters: Mapping[str, str | None], *, limit: int = 100
    ) -> Iterator[AnyOccurrence]:
        """Yield the occurrences that the filters name, newest first, page by page."""
        return self._client.pages(PATH, "occurrences", limit, _name_filters(filters))

    def get(self, name: str, *, of: ScheduleName | None = None) -> OccurrenceDetail:
        """Return one occurrence by its id, with its attempts, its transitions and its schedule."""
        answer: Reply[OccurrenceDetail] = self._client.call("GET", _path(name, of))
        return answer.body

    def retry(self, name: str, *, of: ScheduleName | None = None) -> ChangedOccurrence:
        """Let a dead occurrence begin once more."""
        return self._change("POST", _path(name, of, "/retry"))

    def cancel(self, name: str, *, of: ScheduleName | None = None) -> ChangedOccurrence:
        """End an occurrence that runs or waits."""
        return self._change("POST", _path(name, of, "/cancel"))

    def delete(self, name: str, *, of: ScheduleName | None = None) -> ChangedOccurrence:
        """Delete the content of an occurrence that has ended, or never began."""
        return self._change("DELETE", _path(name, of))

    def retry_many(
        self,
        filters: Mapping[str, str | None],
        *,
        dry_run: bool = True,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ChangedOccurrences:
        """Retry a page of the dead occurrences that the filters name."""
        return self._change_many("retry", filters, _page(limit, cursor, dry_run=dry_run))

    def cancel_many(
        self,
        filters: Mapping[str, str | None],
        *,
        dry_run: bool = True,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ChangedOccurrences:
        """Cancel a page of the occurrences that the filters name."""
        return self._change_many("cancel", filters, _page(limit, cursor, dry_run=dry_run))

    def delete_many(
        self,
        filters: Mapping[str, str | None],
        *,
        dry_run: bool = True,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ChangedOccurrences:
        """Delete a page of the occurrences that the filters name."""
        return self._change_many("delete", filters, _page(limit, cursor, dry_run=dry_run))

    def _change(self, method: str, path: str) -> ChangedOccurrence:
        answer: Reply[ChangedOccurrence] = self._client.call(method, path)
        return answer.body

    def _change_many(
        self, verb: str, filters: Mapping[str, str | None], page: Mapping[str, Json]
    ) -> ChangedOccurrences:
        answer: Reply[ChangedOccurrences] = self._client.call(
            "POST", f"{MANY}/{verb}", {**page, **_name_filters(filters)}
        )
        return answer.body


def _page(limit: int, cursor: str | None, *, dry_run: bool) -> dict[str, Json]:
    after: dict[str, Json] = {} if cursor is None else {"cursor": cursor}
    return {"dryRun": dry_run, "limit": limit, **after}


def _name_filters(filters: Mapping[str, str | None]) -> dict[str, str]:
    """Return the filters that are given, by their names in the API."""
    names = {"since": "from", "until": "to"}
    return {names.get(name, name): text for name, text in filters.items() if text is not None}


def _path(name: str, of: ScheduleName | None, verb: str = "") -> str:
    query = "" if of is None else f"?{urlencode({'user': of[0], 'key': of[1]}, quote_via=quote)}"
    return f"{PATH}/{to_path(name)}{verb}{query}"
