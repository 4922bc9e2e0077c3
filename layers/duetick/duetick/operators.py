"""A small client of the operators' routes that name no user, on that of the schedules API.

operators = Operators(url, authorize=sign, why="the partner's webhook was down")
for schedule in operators.schedules(state="paused"):
    operators.of(schedule["user"]).resume(schedule["key"])
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal
from urllib.parse import urlencode

from duetick.api.views import (
    AnyScheduleView,
    ForecastView,
    GroupPausesView,
    GroupPauseView,
    LimitsView,
    LimitView,
    LocksView,
    OperationView,
    OverviewView,
    PutViews,
    RecoveredView,
    ScheduleView,
    UnreadableView,
    WorkersView,
)
from duetick.client import Client, Fields, Reply, SignCall
from duetick.domain.identity import to_path
from duetick.domain.limits import Per
from duetick.domain.recovering import Recovery
from duetick.domain.schedule import Json
from duetick.occurrences import OccurrencesClient
from duetick.statics import STATIC, StaticClient

PAUSES: Final = "/api/pauses"
LIMITS: Final = "/api/limits"
BY_EXTERNAL: Final = "/api/schedules/by-external"


class Operators:
    """The calls of machines and operators. A refusal is raised as ApiError.

    `why` is recorded with each write. `client` calls any other route that names no user.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        authorize: SignCall | None = None,
        connect_to: str = "",
        why: str = "",
    ) -> None:
        """Take the URL. Calls are signed by `authorize`; on a local stack a token is enough."""

        def client(user: str | None) -> Client:
            return Client(
                url, token=token, user=user, authorize=authorize, connect_to=connect_to, why=why
            )

        self._of = client
        self.client = client(None)

    def of(self, user: str) -> Client:
        """Return the client of one user's schedules."""
        return self._of(user)

    def by_external(self, external_id: str) -> Reply[ScheduleView]:
        """Return the schedule that has an outside id, with its `user`."""
        return self.client.by_external(external_id)

    def dispatch(
        self,
        external_id: str,
        body: Mapping[str, Json] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Fields:
        """Run the schedule that has an outside id, now. The body reaches the action as `ctx.body`.

        An idempotency key stands for one run in a day. In secret mode, the token is the secret.
        """
        path = f"{BY_EXTERNAL}/{to_path(external_id)}/dispatch"
        once = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        answer: Reply[Fields] = self.client.call("POST", path, body, once)
        return answer.body

    @property
    def occurrences(self) -> OccurrencesClient:
        """The occurrences of all users."""
        return OccurrencesClient(self.client)

    def overview(self) -> OverviewView:
        """Return the number of those that are due, late, running, waiting, dead, unreadable; the
        last ticks, the pauses, the backfills, and the progress of the verification.
        """
        answer: Reply[OverviewView] = self.client.call("GET", "/api/overview")
        return answer.body

    def forecast(self, asked: Mapping[str, Json] | None = None) -> ForecastView:
        """Return the number of occurrences of all users due in each minute ahead. `asked` is as in
        `Client.forecast`.
        """
        return self.client.forecast(asked)

    def workers(self, *, limit: int = 20) -> WorkersView:
        """Return the newest reports of ticks and of runs in the background, at most `limit`."""
        answer: Reply[WorkersView] = self.client.call("GET", f"/api/workers?limit={limit}")
        return answer.body

    def static(self, flow: str) -> StaticClient:
        """Return the client of a flow's static schedules."""
        return StaticClient(self.client, flow)

    def locks(self) -> LocksView:
        """Return the named locks, and who has them."""
        answer: Reply[LocksView] = self.client.call("GET", "/api/locks")
        return answer.body

    def schedules(
        self,
        *,
        state: Literal["active", "paused", "done", "unreadable", "all"] | None = None,
        flow: str | None = None,
        label: str | None = None,
        text: str | None = None,
        limit: int = 100,
    ) -> Iterator[AnyScheduleView]:
        """Yield the schedules of all users, page by page; filters are as in `Client.list`."""
        filters = {"state": state, "flow": flow, "label": label, "text": text}
        return self.client.pages("/api/all-schedules", "schedules", limit, filters)

    def put_many(
        self, schedules: Sequence[Mapping[str, Json]], *, dry_run: bool = False
    ) -> PutViews:
        """Create or replace up to 500 schedules of any users, each with its `user` and its `key`;
        see `Client.put_many`.
        """
        body: Fields = {"schedules": [dict(one) for one in schedules]}
        query = "?dryRun=true" if dry_run else ""
        path = f"/api/all-schedules/batch{query}"
        answer: Reply[PutViews] = self.client.call("POST", path, body)
        return answer.body

    def unreadable(self, *, limit: int = 100) -> Iterator[UnreadableView]:
        """Yield the rows that cannot be read, the latest last."""
        return self.client.pages("/api/unreadable", "unreadable", limit, {})

    def operations(
        self, *, user: str | None = None, who: str | None = None, limit: int = 100
    ) -> Iterator[OperationView]:
        """Yield the operations of operators, the newest first: all of them, those about a user, or
        those whose operator has the text `who` in the name.
        """
        filters = {"user": user, "who": who}
        return self.client.pages("/api/operations", "operations", limit, filters)

    def pauses(self, *, since: str | None = None) -> GroupPausesView:
        """Return the pauses of groups that stand, or that ended after `since`, else in the last
        thirty days.
        """
        query = "" if since is None else "?" + urlencode({"from": since})
        answer: Reply[GroupPausesView] = self.client.call("GET", f"{PAUSES}{query}")
        return answer.body

    def pause(self, scope: str, *, note: str = "", until: str | None = None) -> GroupPauseView:
        """Pause `user:<id>`, `flow:<name>` or `all`, until it is resumed or until a time."""
        end: Fields = {} if until is None else {"until": until}
        answer: Reply[GroupPauseView] = self.client.call(
            "PUT", f"{PAUSES}/{to_path(scope)}", {"note": note, **end}
        )
        return answer.body

    def resume(self, scope: str) -> GroupPausesView:
        """Resume a scope. Return the pauses that this ends."""
        answer: Reply[GroupPausesView] = self.client.call("DELETE", f"{PAUSES}/{to_path(scope)}")
        return answer.body

    def pause_static(
        self, flow: str, name: str, *, note: str = "", until: str | None = None
    ) -> AnyScheduleView:
        """Pause a static schedule of a flow, until it is resumed or until a time."""
        end: Fields = {} if until is None else {"until": until}
        return self._static(flow, name, "pause", {"note": note, **end})

    def resume_static(self, flow: str, name: str) -> AnyScheduleView:
        """Resume a static schedule of a flow."""
        return self._static(flow, name, "resume")

    def _static(
        self, flow: str, name: str, verb: str, body: Fields | None = None
    ) -> AnyScheduleView:
        path = f"{STATIC}/{to_path(flow)}/{to_path(name)}/{verb}"
        answer: Reply[AnyScheduleView] = self.client.call("POST", path, body)
        return answer.body

    def recover(self, how: Recovery = "skip", *, dry_run: bool = True) -> RecoveredView:
        """Recover from a restore; by default a dry run. Until it is `complete`, call it again."""
        body: Fields = {"how": how, "dryRun": dry_run}
        answer: Reply[RecoveredView] = self.client.call("POST", "/api/recover", body)
        return answer.body

    def limits(self) -> LimitsView:
        """Return the limits of users, flows and actions that stand, and the number that runs under
        each.
        """
        answer: Reply[LimitsView] = self.client.call("GET", LIMITS)
        return answer.body

    def limit(
        self,
        scope: str,
        *,
        parallel: int | None = None,
        rate: int | None = None,
        per: Per = "minute",
        note: str = "",
    ) -> LimitView:
        """Limit `user:<id>`, `flow:<name>` or `action:<flow>/<action>`: the number that runs at
        once, the number that begins in each minute, hour or day of the clock, or both.
        """
        bounds: Fields = {"parallel": parallel, "rate": rate, "per": per if rate else None}
        given = {name: value for name, value in bounds.items() if value is not None}
        answer: Reply[LimitView] = self.client.call(
            "PUT", f"{LIMITS}/{to_path(scope)}", {**given, "note": note}
        )
        return answer.body

    def unlimit(self, scope: str) -> LimitsView:
        """Lift the limit of a scope. Return the limit that this ends."""
        answer: Reply[LimitsView] = self.client.call("DELETE", f"{LIMITS}/{to_path(scope)}")
        return answer.body
