"""A small client of the schedules API, on the standard library.

    client = Client("https://….execute-api.eu-west-1.amazonaws.com/v1", token=token)
    made = client.put("weekly", {"cron": "0 9 * * MON", "flow": "digests", "action": "send_digest"})
    print(made.body["nextFireAt"])

Answers have the types of `duetick.api.views`, of which the API's own document is made.
Without `user` it speaks for the token's user. With one it uses the operators' routes; those are
signed, so give `authorize`, which gets method, URL and body and returns headers.
"""

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from duetick.api.views import (
    ErasedView,
    ExportView,
    OccurrenceView,
    RunView,
    ScheduleView,
    UpcomingView,
)
from duetick.domain.errors import ConfigurationError, DuetickError
from duetick.domain.identity import check_key, to_path
from duetick.domain.schedule import Json

Authorize: TypeAlias = Callable[[str, str, bytes], Mapping[str, str]]
Fields: TypeAlias = dict[str, Json]
Body = TypeVar("Body")

TIMEOUT: Final = 30.0


class ApiError(DuetickError):
    """The API refused: `status` and `code` say why, the message what to do."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{message} ({status} {code})")
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Reply(Generic[Body]):
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    body: Body

    @property
    def etag(self) -> str:
        """What to give as `if_match` so that a change is made only if nobody else made one."""
        return self.headers.get("etag", "")


class Client:
    """One user's schedules over HTTP. A refusal is raised as ApiError."""

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        user: str | None = None,
        authorize: Authorize | None = None,
        connect_to: str = "",
    ) -> None:
        """`connect_to` is where to connect, where the name in the URL does not lead there."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(f"The API's address is no http(s) URL: {url[:80]!r}.")
        self._parts = parts
        self._place = urlsplit(connect_to) if connect_to else parts
        bearer = {"authorization": f"Bearer {token}"}
        self._authorize: Authorize = authorize or (lambda *_: bearer)
        self._user = "/api" if user is None else f"/api/users/{to_path(user)}"
        self._base = f"{self._user}/schedules"

    def list(self, *, limit: int = 100) -> Iterator[ScheduleView]:
        """All schedules, page after page."""
        return self._pages(self._base, "schedules", limit)

    def get(self, key: str) -> Reply[ScheduleView]:
        """The schedule, with its ETag."""
        return self.call("GET", self._of(key))

    def by_external(self, external_id: str) -> Reply[ScheduleView]:
        """The schedule of an outside id."""
        return self.call("GET", f"{self._base}/by-external/{to_path(external_id)}")

    def create(
        self,
        schedule: Mapping[str, Json],
        *,
        key: str | None = None,
        idempotency_key: str | None = None,
    ) -> Reply[ScheduleView]:
        """A new schedule; repeated with the same idempotency key, the same one."""
        given: Fields = {} if key is None else {"key": key}
        return self.call("POST", self._base, {**given, **schedule}, _once(idempotency_key))

    def put(
        self, key: str, schedule: Mapping[str, Json], *, if_match: str | None = None
    ) -> Reply[ScheduleView]:
        """Create or replace."""
        return self.call("PUT", self._of(key), schedule, _matching(if_match))

    def change(
        self, key: str, fields: Mapping[str, Json], *, if_match: str | None = None
    ) -> Reply[ScheduleView]:
        """Change some fields."""
        return self.call("PATCH", self._of(key), fields, _matching(if_match))

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Delete it."""
        self.call("DELETE", self._of(key), None, _matching(if_match))

    def pause(
        self, key: str, *, note: str = "", until: str | None = None, if_match: str | None = None
    ) -> Reply[ScheduleView]:
        """Keep it from firing, until it is resumed or until a time."""
        end: Fields = {} if until is None else {"until": until}
        body = {"note": note, **end}
        return self.call("POST", f"{self._of(key)}/pause", body, _matching(if_match))

    def resume(self, key: str, *, if_match: str | None = None) -> Reply[ScheduleView]:
        """Let it fire again."""
        return self.call("POST", f"{self._of(key)}/resume", None, _matching(if_match))

    def run(self, key: str, *, idempotency_key: str | None = None) -> RunView:
        """Fire it now, besides its own times; once, if repeated with the same idempotency key."""
        path, once = f"{self._of(key)}/run", _once(idempotency_key)
        answer: Reply[RunView] = self.call("POST", path, None, once)
        return answer.body

    def upcoming(self, key: str, *, limit: int = 10) -> UpcomingView:
        """The next fire times."""
        answer: Reply[UpcomingView] = self.call("GET", f"{self._of(key)}/upcoming?limit={limit}")
        return answer.body

    def history(self, key: str, *, limit: int = 50) -> Iterator[OccurrenceView]:
        """What became of its fire times, the newest first, page after page."""
        return self._pages(f"{self._of(key)}/history", "history", limit)

    def export(self) -> ExportView:
        """Everything that is kept of the user, all parts in one; for operators."""
        whole = self._part(None)
        while whole["cursor"] is not None:
            part = self._part(whole["cursor"])
            whole["schedules"] += part["schedules"]
            whole["history"] += part["history"]
            whole["cursor"] = part["cursor"]
        return whole

    def erase(self) -> ErasedView:
        """Delete everything that is kept of the user; for operators."""
        answer: Reply[ErasedView] = self.call("DELETE", self._user)
        return answer.body

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Json] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply[Any]:
        """Any route; raise ApiError unless it answers with a success."""
        data = b"" if body is None else json.dumps(dict(body)).encode()
        target = self._parts.path.rstrip("/") + path
        url = f"{self._parts.scheme}://{self._parts.netloc}{target}"
        named = {"content-type": "application/json", "host": self._parts.netloc}
        sent = {**named, **self._authorize(method, url, data)}
        reply = self._send(method, target, data, {**sent, **(headers or {})})
        if reply.status >= 300:
            code = str(reply.body.get("error", "refused"))
            raise ApiError(reply.status, code, str(reply.body.get("message", "No reason given.")))
        return reply

    def _send(
        self, method: str, target: str, data: bytes, headers: Mapping[str, str]
    ) -> Reply[Fields]:
        secure = self._place.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._place.hostname or "", self._place.port, timeout=TIMEOUT)
        try:
            connection.request(method, target, data, dict(headers))
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as problem:
            raise ApiError(0, "unreachable", f"{self._parts.netloc}: {problem}.") from problem
        except ValueError:  # it shows the header, which may be the token
            raise ConfigurationError(
                "The token, or another header, holds what no header can: a line break perhaps."
            ) from None
        finally:
            connection.close()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, names, _object(text))

    def _of(self, key: str) -> str:
        check_key("", key)  # none, or dots, would be the path of something else
        return f"{self._base}/{to_path(key)}"

    def _part(self, cursor: str | None) -> ExportView:
        query = "" if cursor is None else "?" + urlencode({"cursor": cursor}, quote_via=quote)
        answer: Reply[ExportView] = self.call("GET", f"{self._user}/export{query}")
        return answer.body

    def _pages(self, path: str, name: str, limit: int) -> Iterator[Any]:
        query: dict[str, object] = {"limit": limit}
        while True:
            page = self.call("GET", f"{path}?{urlencode(query, quote_via=quote)}").body
            yield from page[name]
            if page["cursor"] is None:
                return
            query["cursor"] = page["cursor"]


def _matching(etag: str | None) -> dict[str, str]:
    return {} if etag is None else {"if-match": etag}


def _once(idempotency_key: str | None) -> dict[str, str]:
    return {} if idempotency_key is None else {"idempotency-key": idempotency_key}


def _object(text: bytes) -> Fields:
    """The body; a gateway's own may be none."""
    try:
        value = json.loads(text or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
