"""A dispatcher on a store of the test's own, a flow whose actions the test can see, and a clock."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from duetick.core.accepting import Quotas
from duetick.core.answers import Answer
from duetick.core.context import Context
from duetick.core.dispatch import Dispatcher, Request
from duetick.core.flows import Flow, Flows
from duetick.core.store import Store
from duetick.core.threads import REAL, Threads
from duetick.core.timeouts import Within, run_within
from duetick.core.wire import delivery_json
from duetick.domain.errors import StoreUnavailable
from duetick.domain.identity import to_path
from duetick.domain.policies import Backoff, Delivery, Policies, Retry
from duetick.domain.schedule import Json, Occurrence, Principal, Schedule
from duetick.testing import FakeClock
from duetick.transports.inline import InlineTransport

NINE = 1_796_115_600_000  # 2026-12-01T09:00:00Z
MINUTE = 60_000
SECRET = {"authorization": "yes"}
TWICE = Retry(backoff=Backoff.FIXED, attempts=2, first=10)
AT_LEAST_ONCE = Policies(delivery=Delivery.AT_LEAST_ONCE, retry=TWICE)
EFFECTIVELY_ONCE = replace(AT_LEAST_ONCE, delivery=Delivery.EFFECTIVELY_ONCE)


@dataclass(slots=True)
class Scene:
    """A store, flows and a dispatch for one test."""

    store: Store
    clock: FakeClock = field(default_factory=lambda: FakeClock(NINE))
    flow: Flow = field(default_factory=lambda: Flow("mail"))
    ran: list[tuple[object, Context]] = field(default_factory=list)
    queued: list[Request] = field(default_factory=list)
    throttled: bool = False
    act: Callable[[Json, Context], object] | None = None
    admits: Callable[[str], bool] = bool
    within: Within = run_within
    threads: Threads = REAL
    quotas: Quotas = field(default_factory=Quotas)

    def __post_init__(self) -> None:
        @self.flow.action("send", transactional=True)
        def send(given: Json, ctx: Context) -> object:
            self.ran.append((given, ctx))
            return self.act(given, ctx) if self.act else None

    @property
    def dispatch(self) -> Dispatcher:
        """Everybody with an Authorization header may come in, unless a test admits fewer."""
        return Dispatcher(
            self.store,
            self.flows,
            lambda request: self.admits(request.headers.get("authorization", "")),
            self.clock,
            enqueue=self._enqueue,
            within=self.within,
            threads=self.threads,
            quotas=self.quotas,
        )

    @property
    def flows(self) -> Flows:
        """The flows of its deployment."""
        return Flows({self.flow.name: self.flow})

    @property
    def inline(self) -> InlineTransport:
        """A tick's way to its dispatch."""
        return InlineTransport(lambda call: self.dispatch(replace(call, headers=SECRET)))

    def _enqueue(self, call: Request) -> None:
        if self.throttled:
            raise StoreUnavailable("The invocation was not queued.")
        self.queued.append(call)

    def put(
        self,
        key: str = "digest",
        *,
        cron: str = "* * * * *",
        timezone: str | None = None,
        action: str = "send",
        given: Json = None,
        enabled: bool = True,
        principal: Principal | None = None,
        policies: Policies | None = None,
    ) -> Schedule:
        """Put a schedule of ada's that fires each minute, made a minute before nine."""
        schedule = Schedule(
            user_id="ada",
            key=key,
            cron=cron,
            flow=self.flow.name,
            action=action,
            timezone=timezone,
            input=given,
            principal=principal,
            enabled=enabled,
            policies=policies or Policies(),
        )
        return self.store.schedules.put(schedule, now=self.clock.now - MINUTE)

    def claim(self) -> Occurrence:
        """Claim the one occurrence that is due."""
        (claimed,) = self.store.index.claim_due(self.clock.now)
        return claimed

    def post(self, schedule_id: str = "ada/digest", **body: Json) -> tuple[int, dict[str, Json]]:
        """Make an outside caller's call. Return its status and body."""
        return told(self.dispatch(request(self.flow.name, schedule_id, body)))

    def deliver(self, occurrence: Occurrence) -> tuple[int, dict[str, Json]]:
        """Make a tick's call."""
        body = delivery_json(occurrence)
        return told(self.dispatch(request(occurrence.flow, occurrence.schedule_id, body)))

    def history(self, key: str = "digest") -> list[tuple[str, str | None]]:
        """Return the states and reasons of ada's occurrences, the newest first."""
        return [(o.state, o.reason) for o in self.store.ledger.find("ada", key)]


def request(
    flow: str,
    schedule_id: str,
    body: Mapping[str, Json] | str,
    *,
    headers: Mapping[str, str] = SECRET,
    method: str = "POST",
) -> Request:
    """Return a call with a body, authenticated unless its headers say otherwise."""
    text = body if isinstance(body, str) else json.dumps(body)
    return Request(flow, to_path(schedule_id), headers, text, "r-1", method)


def told(answer: Answer) -> tuple[int, dict[str, Json]]:
    """Return the status and the body of an answer."""
    return answer.status, answer.body


def fails(_input: Json, _ctx: Context) -> NoReturn:
    """Fail, as an action that never succeeds."""
    raise RuntimeError("no mail server")
