"""The jobs of one user: the use cases of users, their agents, actions and operators."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, Unpack

from duetick.core.accepting import find_flaws_of_work
from duetick.core.context import Context, JobFields
from duetick.core.definitions import (
    Draft,
    GivenPolicies,
    draft,
    draft_policies,
    read_draft,
    refuse_once,
)
from duetick.core.dispatch.attempt import Attempt
from duetick.core.explain import Explanation, explain
from duetick.core.histories import lines
from duetick.core.log_lines import about
from duetick.core.rights import check_action, check_hook, check_not_withheld, vouch
from duetick.core.schedules import UserSchedules
from duetick.core.store.jobs import Enqueued, JobPage
from duetick.core.wire import instant, iso, policies_json
from duetick.domain.errors import (
    DuetickError,
    InvalidSchedule,
    JobNotFound,
    Refusal,
    kind_of,
    refusals_of,
)
from duetick.domain.failures import OWN_USER
from duetick.domain.identity import is_job, is_job_id, job_key
from duetick.domain.jobs import OF_JOBS, Job, due_at_of
from duetick.domain.operating import Operated, Operator
from duetick.domain.paging import make_cursor
from duetick.domain.policies import Policies
from duetick.domain.redaction import redact_text
from duetick.domain.schedule import Json, Occurrence, Principal, Schedule
from duetick.domain.states import State
from duetick.ports import Effects, HandOn

DRAFTED: Final = "job"
"""The key under which the definition of a job is checked. The store gives it its own."""

AT_ONCE: Final = 500
LOOKED_AT: Final = 2_000
"""The most jobs that are read for one page."""

LONGEST_KEY: Final = 256
ENDS: Final[Mapping[str | None, bool | None]] = {"pending": False, "ended": True, "all": None}
PENDING: Final = frozenset({"scheduled", "queued", "processing", "retrying"})

logger = logging.getLogger("duetick.dispatch")

THE_USER: Final = Operator(OWN_USER)
"""The operator of a cancellation that the user asked for."""


class JobDraft(NamedTuple):
    """The definition of a job as it was read, with its due time and its key."""

    wanted: Schedule
    due_at: int
    key: str | None


@dataclass(frozen=True, slots=True)
class UserJobs:
    """The jobs of the user of these schedules, under the same rights and quotas.

    With `hand_on`, a job that is due begins at once; a tick delivers it if that fails.
    """

    schedules: UserSchedules
    hand_on: HandOn | None = None

    @property
    def _user_id(self) -> str:
        return self.schedules.user_id

    def read(self, body: Mapping[str, Json], found: Sequence[Refusal] = ()) -> JobDraft:
        """Return the job of a request body. Raises InvalidSchedule naming all that is wrong."""
        fields = {name: value for name, value in body.items() if name not in _OF_TIME}
        drafted = read_draft(self._user_id, DRAFTED, {**fields, "cron": "@daily"}, found)
        return self._finish(drafted, body.get("at"), body.get("delay"), body.get("key"))

    def draft(
        self,
        action: str,
        given: Json,
        *,
        flow: str,
        policies: GivenPolicies | None = None,
        labels: Mapping[str, str] | None = None,
        delay: float | None = None,
        at: int | str | None = None,
        key: str | None = None,
    ) -> JobDraft:
        """Return the job that Python code asks for. Raises InvalidSchedule naming all that is
        wrong.
        """
        read, unfit, doubts = draft_policies(policies)
        fields: dict[str, Any] = {"cron": "@daily", "flow": flow, "action": action, "input": given}
        fields |= {"policies": read, "labels": labels or {}}
        drafted = draft(self._user_id, DRAFTED, fields, [*unfit, *_unfit_policies(policies)])
        return self._finish(replace(drafted, doubts=doubts), at, delay, key)

    def _finish(self, drafted: Draft, at: Json, delay: Json, key: Json) -> JobDraft:
        due: list[int] = []
        now, flows = self.schedules.clock(), self.schedules.flows
        field = "at" if delay is None else "delay"
        wrong = refusals_of(
            [
                lambda: due.append(due_at_of(_read_due(at, delay, now), now, field)),
                lambda: _check_key(key),
            ]
        )
        drafted = replace(drafted, refusals=[*drafted.refusals, *wrong])
        drafted = drafted.with_defaults(flows.with_defaults)
        wanted = drafted.schedule(self._refusals)
        refuse_once(self._refusals(wanted))
        if self.schedules.owns_names:
            wanted = vouch(flows, None, wanted)
        return JobDraft(wanted, due[0], None if key is None else str(key))

    def _refusals(self, wanted: Schedule) -> Sequence[Refusal]:
        flows, quotas = self.schedules.flows, self.schedules.quotas
        rules = [lambda: flows.check_fixed(wanted)]
        if self.schedules.owns_names:
            wanted = vouch(flows, None, wanted)
            rules.append(partial(check_not_withheld, None, wanted))
        else:
            rules.append(partial(check_action, flows, None, wanted))
            rules.append(partial(check_hook, flows, None, wanted))
        return refusals_of(rules) + find_flaws_of_work(wanted, flows, quotas)

    def enqueue(self, asked: JobDraft) -> Enqueued:
        """Make the job. The same key within a day makes nothing more. Raises QuotaReached."""
        made = self.make(asked)
        if made.made:
            self.begin_soon(made.job)
        return made

    def make(
        self, asked: JobDraft, effects: Effects | None = None, within: Occurrence | None = None
    ) -> Enqueued:
        """Make the job, and let `begin_soon` hand it on: with `effects`, after their commit, which
        settles the attempt `within` which it is made.
        """
        return self.schedules.store.jobs.enqueue(
            asked.wanted,
            due_at=asked.due_at,
            key=asked.key,
            at_most=self.schedules.quotas.jobs,
            leased=self.hand_on is not None,
            effects=effects,
            within=within,
            now=self.schedules.clock(),
        )

    def begin_soon(self, job: Job) -> None:
        """Hand on a job that was leased as it was made. If that fails, the next tick delivers
        it.
        """
        held, ledger = job.occurrence, self.schedules.store.ledger
        if self.hand_on is None or held.state is not State.QUEUED:
            return
        try:
            self.hand_on(held)
        except Exception:
            details = {"action": "enqueue_failed", **about(held)}
            logger.warning("not enqueued", extra=details, exc_info=True)
            with suppress(DuetickError):  # then it comes back when its lease ends
                ledger.release(held, now=self.schedules.clock())

    def get(self, name: str) -> Job:
        """Return the job of an id. Raises JobNotFound."""
        found = self.schedules.store.jobs.get(self._user_id, name)
        if found is None:
            raise JobNotFound
        return found

    def list(
        self,
        limit: int = 100,
        cursor: str | None = None,
        *,
        state: str | None = None,
        flow: str | None = None,
    ) -> JobPage:
        """Return a page of jobs by id: those in a state, of a flow. `pending` and `ended` are
        states here too. If few jobs match, a page may be short or empty, and still have a next one.
        """
        ended = ENDS.get(state, None if state is None else state not in PENDING)
        found: list[Job] = []
        read = 0
        while len(found) < limit and read < LOOKED_AT:
            page = self.schedules.store.jobs.list(
                self._user_id, limit=min(limit, AT_ONCE), cursor=cursor, ended=ended
            )
            for one in page.jobs:
                read += 1
                if _is_wanted(one, state, flow):
                    found.append(one)
                if len(found) == limit:
                    return JobPage(tuple(found), make_cursor(one.record.key))
            cursor = page.cursor
            if cursor is None:
                break
        return JobPage(tuple(found), cursor)

    def cancel(self, name: str, by: Operator = THE_USER) -> Operated:
        """End a job that waits or runs. Raises JobNotFound, or OccurrenceConflict if it has ended
        otherwise.
        """
        found = self.get(name).occurrence
        return self.schedules.store.ledger.cancel(found, by, now=self.schedules.clock())

    def explain(self, name: str) -> Explanation:
        """Explain the outcome of a job, or the one to come. Raises JobNotFound."""
        key, now = _key_of(name), self.schedules.clock()
        found = self.schedules.store.jobs.get(self._user_id, name)
        history = () if found else self.schedules.store.ledger.find(self._user_id, key, limit=50)
        own = [found.occurrence] if found else [one for one in history if is_job(one.origin)]
        if not own:
            raise JobNotFound
        return explain(self.schedules.store, self._user_id, key, own[0].nominal_at, now)

    def history(self, name: str) -> Sequence[Occurrence]:
        """Return the occurrences of a job: its own, and the failure hooks of its death. Raises
        JobNotFound.
        """
        found = self.schedules.store.ledger.find(self._user_id, _key_of(name), limit=AT_ONCE)
        if not found:
            raise JobNotFound
        return found

    def every(self) -> Iterator[Job]:
        """Yield all jobs of the user."""
        cursor: str | None = None
        while True:
            page = self.list(AT_ONCE, cursor)
            yield from page.jobs
            cursor = page.cursor
            if cursor is None:
                return


def enqueue_for(
    jobs: UserJobs,
    context: Context,
    attempt: Attempt,
    action: str,
    given: Json,
    /,
    **more: Unpack[JobFields],
) -> Job:
    """Enqueue a job for an action, as its principal. See `Context.enqueue`."""
    unknown = sorted(more.keys() - JobFields.__annotations__.keys())
    if unknown:
        known = ", ".join(JobFields.__annotations__)
        raise InvalidSchedule((unknown[0],), f"is not a field; a job has {known}.", "unknown_field")
    asked = jobs.draft(
        action,
        given,
        flow=more.get("flow", context.flow),
        policies=more.get("policies"),
        labels=more.get("labels"),
        delay=more.get("delay"),
        at=more.get("at"),
        key=more.get("key"),
    )
    if context.principal != Principal(context.principal.user_id):
        asked = asked._replace(wanted=replace(asked.wanted, principal=context.principal))
    if attempt.effects is None:
        return jobs.enqueue(asked).job
    made = jobs.make(asked, attempt.effects, attempt.occurrence)
    if made.made:
        attempt.after_commit.append(partial(jobs.begin_soon, made.job))
    return made.job


_OF_TIME: Final = ("at", "delay", "key")


def _key_of(name: str) -> str:
    """Return the key of the job of an id. Raises JobNotFound if no job can have it."""
    if not is_job_id(name):
        raise JobNotFound
    return job_key(name)


def _is_wanted(one: Job, state: str | None, flow: str | None) -> bool:
    in_state = state is None or state in ENDS or one.occurrence.state == state
    return in_state and flow in (None, one.record.flow)


def _read_due(at: Json, delay: Json, now: int) -> int | None:
    """Return the due time that is asked for; None for now."""
    if at is not None and delay is not None:
        both = "and at are both given; leave one of them out."
        raise InvalidSchedule("delay", both, "invalid")
    if delay is None:
        return instant("at", at)
    if isinstance(delay, bool) or not isinstance(delay, (int, float)) or not delay >= 0:
        got = delay if isinstance(delay, (int, float)) else kind_of(delay)
        wanted = f"expected seconds, 0 or more, got {got}."
        raise InvalidSchedule("delay", wanted, "out_of_range")
    return now + int(min(delay, 10.0**9) * 1_000)


def _check_key(key: Json) -> None:
    if key is None:
        return
    if not isinstance(key, str):
        raise InvalidSchedule("key", f"expected text, got {kind_of(key)}.", "wrong_type")
    wanted = f"expected 1 to {LONGEST_KEY} printable characters."
    if not key:
        raise InvalidSchedule("key", wanted, "blank")
    if len(key) > LONGEST_KEY:
        raise InvalidSchedule("key", wanted, "too_long")
    if not key.isprintable():
        raise InvalidSchedule("key", wanted, "character")


def _unfit_policies(given: GivenPolicies | None) -> list[Refusal]:
    """Return the refusals of policies that no job has."""
    names = given.chosen if isinstance(given, Policies) else given or {}
    wrong = f"no job has it; a job has {', '.join(OF_JOBS)}."
    return [
        InvalidSchedule(("policies", str(name)), wrong, "unknown_field")
        for name in names
        if str(name) not in {*OF_JOBS, "onFailure"}
    ]


def lines_of_jobs(
    schedules: UserSchedules, jobs: Sequence[Job], *, operator: bool
) -> list[dict[str, Json]]:
    """Return jobs as the API shows them. Operators see no secrets of their user."""
    shown = lines(schedules.store.ledger, [one.occurrence for one in jobs], operator=operator)
    return [
        _job_json(schedules, one, line, operator=operator)
        for one, line in zip(jobs, shown, strict=True)
    ]


def _job_json(
    schedules: UserSchedules, one: Job, line: Mapping[str, Json], *, operator: bool
) -> dict[str, Json]:
    record, key = one.record, one.occurrence.idempotency_key
    policies = policies_json(record.policies)
    whose: dict[str, Json] = {"user": record.user_id} if operator else {}
    return {
        **whose,
        "id": one.id,
        "key": redact_text(key) if operator else key,
        "flow": record.flow,
        "action": record.action,
        "input": schedules.flows.preview(record) if operator else record.input,
        "at": line["nominalFireTime"],
        "policies": {name: policies[name] for name in SHOWN_POLICIES},
        **{name: line[name] for name in SHOWN_OF_OCCURRENCE},
        "createdAt": iso(record.created_at),
        "endedAt": iso(record.done_at),
    }


SHOWN_POLICIES: Final = ("delivery", "retry", "priority", "timeout", "onFailure")
"""The names of a job's policies in JSON."""

SHOWN_OF_OCCURRENCE: Final = (
    *("state", "reason", "labels", "attempts", "error", "failures", "failureHook"),
    *("nextAttemptAt", "begunAt", "updatedAt"),
)
"""The fields that a job shares with a line of the history."""
