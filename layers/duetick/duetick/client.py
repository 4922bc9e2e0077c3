"""A small client of the schedules API, on the standard library.

    client = Client("https://….execute-api.eu-west-1.amazonaws.com/v1", token=token)
    made = client.put("weekly", {"cron": "0 9 * * MON", "flow": "digests", "action": "send_digest"})
    print(made.body["nextFireAt"])

Answers have the types of `duetick.api.views`, which are also in the API's document. Without `user`,
the client acts for the token's user. With `user`, it uses the operators' routes. They are signed,
so pass `authorize`: it gets method, URL and body, and returns headers.
"""

import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from duetick.api.views import (
    ActionsView,
    ActionView,
    BackfillAnswer,
    BackfillList,
    BackfillView,
    EnqueuedViews,
    ErasedView,
    ExplanationView,
    ExportView,
    FlowsView,
    FlowView,
    ForecastView,
    JobView,
    MendedView,
    OccurrenceView,
    PreviewView,
    ProblemView,
    PutViews,
    RunView,
    ScheduleView,
    TimelineView,
    UpcomingView,
)
from duetick.domain.errors import ConfigurationError, DuetickError
from duetick.domain.identity import check_key, to_path
from duetick.domain.schedule import Json
from duetick.transports.http import split_url

SignCall: TypeAlias = Callable[[str, str, bytes], Mapping[str, str]]
Fields: TypeAlias = dict[str, Json]
Body = TypeVar("Body")

TIMEOUT: Final = 30.0
NO_CONTENT: Final = 204
WHY_SAFE: Final = "".join(map(chr, range(32, 127))).replace("%", "")
"""The characters of a reason that a header holds as they are."""


class ApiError(DuetickError):
    """A refusal of the API: `status` and `code` say why, and the message says what to do.

    `problems` lists everything that is wrong with the request, each with its field. If the API
    names the seconds after which the same call may succeed, `retry_after` has them.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        problems: Sequence[ProblemView] = (),
        retry_after: int | None = None,
    ) -> None:
        super().__init__(f"{message} ({status} {code})" if status else message)
        self.status = status
        self.code = code
        self.problems = tuple(problems)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Reply(Generic[Body]):
    """An answer of the API."""

    status: int
    headers: Mapping[str, str]
    body: Body

    @property
    def etag(self) -> str:
        """The value for `if_match`: a change then fails if another has changed the schedule."""
        return self.headers.get("etag", "")

    @property
    def warning(self) -> str:
        """The warning that a schedule fires more often than the tick comes; empty if it does
        not.
        """
        return self.headers.get("warning", "").partition('"')[2].rpartition('"')[0]


class Client:
    """The schedules of one user over HTTP. A refusal is raised as ApiError."""

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        user: str | None = None,
        authorize: SignCall | None = None,
        connect_to: str = "",
        why: str = "",
    ) -> None:
        """Take the URL. If its name does not resolve to the API, `connect_to` is the address.

        `why` is recorded with each write of an operator.
        """
        self._parts = split_url(url)
        self._place = split_url(connect_to) if connect_to else self._parts
        bearer = {"authorization": f"Bearer {token}"}
        self._authorize: SignCall = authorize or (lambda *_: bearer)
        self._why = {"duetick-why": quote(why, safe=WHY_SAFE)} if why else {}
        self._user = "/api" if user is None else f"/api/users/{to_path(user)}"
        self._base = f"{self._user}/schedules"
        self._jobs = f"{self._user}/jobs"

    def actions(self) -> Iterator[ActionView]:
        """Yield the actions that may be scheduled, with their defaults."""
        answer: Reply[ActionsView] = self.call("GET", f"{self._user}/actions")
        yield from answer.body["actions"]

    def list(
        self,
        *,
        limit: int = 100,
        state: Literal["active", "paused", "done", "all"] | None = None,
        flow: str | None = None,
        label: str | None = None,
        text: str | None = None,
    ) -> Iterator[ScheduleView]:
        """Yield the schedules that are active or paused, page by page; or those in one `state`.

        They are of the `flow`, have the `label` (NAME=TEXT), and the `text` in key, cron, flow,
        action, outside id or labels.
        """
        filters = {"state": state, "flow": flow, "label": label, "text": text}
        return self.pages(self._base, "schedules", limit, filters)

    def get(self, key: str) -> Reply[ScheduleView]:
        """Return the schedule with its ETag."""
        return self.call("GET", self._of(key))

    def by_external(self, external_id: str) -> Reply[ScheduleView]:
        """Return the user's schedule that has an outside id."""
        return self.call("GET", f"{self._base}/by-external/{to_path(external_id)}")

    def flows(self) -> Iterator[FlowView]:
        """Yield the flows, with their actions and the JSON Schemas of their inputs."""
        answer: Reply[FlowsView] = self.call("GET", "/api/flows")
        yield from answer.body["flows"]

    def preview(
        self,
        cron: str | Mapping[str, Json],
        *,
        timezone: str | None = None,
        policies: Mapping[str, Json] | None = None,
        after: str | None = None,
        limit: int = 10,
    ) -> PreviewView:
        """Return the meaning of an expression before anything is saved."""
        given: Fields = {"timezone": timezone, "after": after}
        given |= {"policies": None if policies is None else {**policies}}
        named: Fields = {"cron": cron if isinstance(cron, str) else {**cron}, "limit": limit}
        named |= {name: value for name, value in given.items() if value is not None}
        answer: Reply[PreviewView] = self.call("POST", "/api/upcoming", named)
        return answer.body

    def forecast(self, asked: Mapping[str, Json] | None = None) -> ForecastView:
        """Return the number of occurrences due in each minute ahead, read to the end.

        `asked` has the fields of the route's body: `from`, `to`, `flow`, `schedule`, `most`, ….
        """
        *_, whole = self.forecast_parts(asked)
        return whole

    def forecast_parts(self, asked: Mapping[str, Json] | None = None) -> Iterator[ForecastView]:
        """Yield a forecast as it is read: each has the sums so far, and the last one is whole."""
        cursor: str | None = None
        while True:
            goes_on: Fields = {} if cursor is None else {"cursor": cursor}
            answer: Reply[ForecastView] = self.call(
                "POST", f"{self._user}/forecast", {**(asked or {}), **goes_on}
            )
            yield answer.body
            cursor = answer.body["cursor"]
            if cursor is None:
                return

    def create(
        self,
        schedule: Mapping[str, Json],
        *,
        key: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Reply[ScheduleView]:
        """Create a schedule. A repeat with the same idempotency key returns the same one.

        A dry run checks everything and stores nothing.
        """
        given: Fields = {} if key is None else {"key": key}
        path, once = self._base + _dry(dry_run), _once(idempotency_key)
        return self.call("POST", path, {**given, **schedule}, once)

    def put(
        self,
        key: str,
        schedule: Mapping[str, Json],
        *,
        if_match: str | None = None,
        dry_run: bool = False,
    ) -> Reply[ScheduleView]:
        """Create or replace a schedule. A dry run checks everything and stores nothing."""
        return self.call("PUT", self._of(key) + _dry(dry_run), schedule, _matching(if_match))

    def change(
        self,
        key: str,
        fields: Mapping[str, Json],
        *,
        if_match: str | None = None,
        dry_run: bool = False,
    ) -> Reply[ScheduleView]:
        """Change some fields of a schedule. A dry run checks everything and stores nothing."""
        return self.call("PATCH", self._of(key) + _dry(dry_run), fields, _matching(if_match))

    def put_many(
        self, schedules: Sequence[Mapping[str, Json]], *, dry_run: bool = False
    ) -> PutViews:
        """Create or replace up to 500 schedules, each with its `key`, and perhaps the version that
        it replaces (`ifVersion`; 0: none). Each has an answer of its own, in order.
        """
        body: Fields = {"schedules": [dict(one) for one in schedules]}
        answer: Reply[PutViews] = self.call("POST", f"{self._base}/batch{_dry(dry_run)}", body)
        return answer.body

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Delete a schedule."""
        self.call("DELETE", self._of(key), None, _matching(if_match))

    def pause(
        self, key: str, *, note: str = "", until: str | None = None, if_match: str | None = None
    ) -> Reply[ScheduleView]:
        """Pause a schedule, until it is resumed or until a time."""
        end: Fields = {} if until is None else {"until": until}
        body = {"note": note, **end}
        return self.call("POST", f"{self._of(key)}/pause", body, _matching(if_match))

    def resume(self, key: str, *, if_match: str | None = None) -> Reply[ScheduleView]:
        """Resume a schedule."""
        return self.call("POST", f"{self._of(key)}/resume", None, _matching(if_match))

    def mend(self, key: str) -> MendedView:
        """Bring the row of a schedule in line with it; for operators. A row that could not be read
        is read again. It has to be mended: its cron and zone.
        """
        answer: Reply[MendedView] = self.call("POST", f"{self._of(key)}/mend")
        return answer.body

    def run(self, key: str, *, idempotency_key: str | None = None) -> RunView:
        """Run a schedule now, in addition to its fire times. An idempotency key stands for one
        run.
        """
        path, once = f"{self._of(key)}/run", _once(idempotency_key)
        answer: Reply[RunView] = self.call("POST", path, None, once)
        return answer.body

    def enqueue(self, job: Mapping[str, Json]) -> Reply[JobView]:
        """Enqueue a job: an action that runs once, at once or at a time. If its key made one within
        a day, return that (status 200).
        """
        return self.call("POST", self._jobs, job)

    def enqueue_many(self, jobs: Sequence[Mapping[str, Json]]) -> EnqueuedViews:
        """Enqueue up to 500 jobs in one call. Each has an answer, in order."""
        body: Fields = {"jobs": [dict(one) for one in jobs]}
        answer: Reply[EnqueuedViews] = self.call("POST", f"{self._jobs}/batch", body)
        return answer.body

    def jobs(
        self, *, limit: int = 100, state: str | None = None, flow: str | None = None
    ) -> Iterator[JobView]:
        """Yield the jobs by id, page by page: in a state, such as `pending`, or of a flow."""
        return self.pages(self._jobs, "jobs", limit, {"state": state, "flow": flow})

    def job(self, name: str) -> JobView:
        """Return the job of an id."""
        answer: Reply[JobView] = self.call("GET", self._job(name))
        return answer.body

    def cancel_job(self, name: str) -> JobView:
        """End a job that waits or runs."""
        answer: Reply[JobView] = self.call("POST", f"{self._job(name)}/cancel")
        return answer.body

    def job_history(self, name: str, *, limit: int = 50) -> Iterator[OccurrenceView]:
        """Yield the history of a job, with the failure hook that told of its death."""
        return self.pages(f"{self._job(name)}/history", "history", limit, {})

    def explain_job(self, name: str) -> ExplanationView:
        """Return the outcome of a job, or the one to come, and why."""
        answer: Reply[ExplanationView] = self.call("GET", f"{self._job(name)}/explain")
        return answer.body

    def _job(self, name: str) -> str:
        return f"{self._jobs}/{to_path(name)}"

    def upcoming(self, key: str, *, limit: int = 10) -> UpcomingView:
        """Return the next fire times."""
        answer: Reply[UpcomingView] = self.call("GET", f"{self._of(key)}/upcoming?limit={limit}")
        return answer.body

    def history(
        self,
        key: str,
        *,
        limit: int = 50,
        state: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Iterator[OccurrenceView]:
        """Yield the history of a schedule, newest first, page by page.

        `state` selects one state, `since` and `until` the time from one instant to before another.
        """
        filters = {"state": state, "from": since, "to": until}
        return self.pages(f"{self._of(key)}/history", "history", limit, filters)

    def explain(self, key: str, *, at: str | None = None) -> ExplanationView:
        """Return why the schedule fired at a time or did not, or if it will fire; now by
        default.
        """
        asked = "" if at is None else f"?{urlencode({'at': at})}"
        answer: Reply[ExplanationView] = self.call("GET", f"{self._of(key)}/explain{asked}")
        return answer.body

    def timeline(
        self, key: str, *, since: str | None = None, until: str | None = None
    ) -> TimelineView:
        """Return a span of a schedule in short: each outcome, the definitions that were in force,
        pauses, changes of the clocks, and the fire times ahead. By default it is the day behind us
        and the day ahead.
        """
        filters = {"from": since, "to": until}
        given = {name: value for name, value in filters.items() if value is not None}
        path = f"{self._of(key)}/timeline?{urlencode(given)}"
        answer: Reply[TimelineView] = self.call("GET", path)
        return answer.body

    def start_backfill(
        self, key: str, order: Mapping[str, Json], *, dry_run: bool = True
    ) -> BackfillAnswer:
        """Make fire times of the past again; for operators. A dry run makes nothing.

        The order has the span, `from` and `to`, and options such as `atOnce` and `overlap`.
        """
        body = {**order, "dryRun": dry_run}
        answer: Reply[BackfillAnswer] = self.call("POST", f"{self._of(key)}/backfills", body)
        return answer.body

    def backfills(self) -> BackfillList:
        """Return the backfills of the user's schedules, the newest first; for operators."""
        answer: Reply[BackfillList] = self.call("GET", f"{self._user}/backfills")
        return answer.body

    def backfill(self, name: str) -> BackfillView:
        """Return a backfill and its progress; for operators."""
        return self._backfill("GET", name)

    def stop_backfill(self, name: str) -> BackfillView:
        """Stop a backfill; for operators."""
        return self._backfill("POST", name, "/stop")

    def continue_backfill(self, name: str) -> BackfillView:
        """Continue a backfill that was stopped; for operators."""
        return self._backfill("POST", name, "/continue")

    def _backfill(self, method: str, name: str, verb: str = "") -> BackfillView:
        check_key("", name)
        path = f"{self._user}/backfills/{to_path(name)}{verb}"
        answer: Reply[BackfillView] = self.call(method, path)
        return answer.body

    def export(self) -> ExportView:
        """Return all data of the user, from all parts; for operators."""
        whole = self._part(None)
        while whole["cursor"] is not None:
            part = self._part(whole["cursor"])
            whole["schedules"] += part["schedules"]
            whole["jobs"] += part["jobs"]
            whole["history"] += part["history"]
            whole["cursor"] = part["cursor"]
        return whole

    def erase(self) -> ErasedView:
        """Delete all data of the user; for operators."""
        answer: Reply[ErasedView] = self.call("DELETE", self._user)
        return answer.body

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Json] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply[Any]:
        """Call any route. Raises ApiError unless the answer is a success."""
        data = b"" if body is None else json.dumps(dict(body)).encode()
        target = self._parts.path.rstrip("/") + path
        url = f"{self._parts.scheme}://{self._parts.netloc}{target}"
        named = {"content-type": "application/json", "host": self._parts.netloc, **self._why}
        sent = {**named, **self._authorize(method, url, data)}
        reply = self._send(method, target, data, {**sent, **(headers or {})})
        if reply.status >= 300:
            raise _refusal(reply, self._parts.netloc)
        if reply.body is None:
            raise ApiError(reply.status, "unreadable", _not_of_the_api(reply, self._parts.netloc))
        return reply

    def _send(
        self, method: str, target: str, data: bytes, headers: Mapping[str, str]
    ) -> Reply[Fields | None]:
        secure = self._place.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._place.hostname or "", self._place.port, timeout=TIMEOUT)
        try:
            connection.request(method, target, data, dict(headers))
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as problem:
            raise ApiError(0, "unreachable", f"{self._parts.netloc}: {problem}.") from problem
        except ValueError:  # its text quotes the header, which may be the token
            raise ConfigurationError(
                "The token, or another header, holds what no header can: a line break perhaps."
            ) from None
        finally:
            connection.close()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, names, {} if answer.status == NO_CONTENT else _object(text))

    def _of(self, key: str) -> str:
        check_key("", key)  # an empty key, or dots, would be the path of another route
        return f"{self._base}/{to_path(key)}"

    def _part(self, cursor: str | None) -> ExportView:
        query = "" if cursor is None else "?" + urlencode({"cursor": cursor}, quote_via=quote)
        answer: Reply[ExportView] = self.call("GET", f"{self._user}/export{query}")
        return answer.body

    def pages(
        self, path: str, name: str, limit: int, filters: Mapping[str, str | None]
    ) -> Iterator[Any]:
        """Yield the items that the pages of any route list under a name."""
        query: dict[str, object] = {"limit": limit}
        query |= {name: text for name, text in filters.items() if text is not None}
        while True:
            page = self.call("GET", f"{path}?{urlencode(query, quote_via=quote)}").body
            yield from page[name]
            if page["cursor"] is None:
                return
            query["cursor"] = page["cursor"]


def _refusal(reply: Reply[Fields | None], place: str) -> ApiError:
    told = reply.body or {}
    code = str(told.get("error", "refused"))
    message = str(told.get("message") or _not_of_the_api(reply, place))
    after = reply.headers.get("retry-after", "")
    seconds = int(after) if after.isdecimal() else None
    problems: Any = told.get("problems")
    listed = problems if isinstance(problems, list) else ()
    return ApiError(reply.status, code, message, listed, seconds)


def _not_of_the_api(reply: Reply[Fields | None], place: str) -> str:
    """Return what is said of an answer that the API does not give."""
    to = reply.headers.get("location")
    kind = reply.headers.get("content-type", "").partition(";")[0] or "nothing"
    found = f"leads elsewhere, to {to}" if to else f"gave an answer that is not the API's: {kind}"
    return f"{place} {found}. Is the address right, and what stands between?"


def _dry(dry_run: bool) -> str:
    return "?dryRun=true" if dry_run else ""


def _matching(etag: str | None) -> dict[str, str]:
    return {} if etag is None else {"if-match": etag}


def _once(idempotency_key: str | None) -> dict[str, str]:
    return {} if idempotency_key is None else {"idempotency-key": idempotency_key}


def _object(text: bytes) -> Fields | None:
    """Return the body as an object, or None. The body of a gateway may be something else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
