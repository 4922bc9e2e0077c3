"""Answers about jobs."""

from typing import NotRequired

from duetick.api.views.fields import EndReason, IsoTime, ShownState, TypedDict
from duetick.api.views.flows import JobPoliciesView
from duetick.api.views.occurrences import FailureView
from duetick.api.views.problems import ErrorView


class JobView(TypedDict):
    """A job: one occurrence without a schedule, due `at` a time. Its other fields are those of a
    line of the history. It has `endedAt` once it has ended for good.
    """

    user: NotRequired[str]
    id: str
    key: str | None
    flow: str
    action: str
    input: object
    at: IsoTime
    policies: JobPoliciesView
    state: ShownState
    reason: EndReason | None
    labels: dict[str, str]
    attempts: int
    error: str | None
    failures: list[FailureView]
    failureHook: str | None
    nextAttemptAt: IsoTime | None
    begunAt: IsoTime | None
    updatedAt: IsoTime
    createdAt: IsoTime
    endedAt: IsoTime | None


class JobsPage(TypedDict):
    """Jobs ordered by id. `cursor` asks for the next page; null: there is none."""

    jobs: list[JobView]
    cursor: str | None


class EnqueuedView(TypedDict):
    """The answer to one job of a batch: its status, and its job or its error."""

    status: int
    job: JobView | None
    error: ErrorView | None


class EnqueuedViews(TypedDict):
    """The answers to a batch, in its order."""

    jobs: list[EnqueuedView]
