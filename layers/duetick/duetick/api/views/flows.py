"""Answers about flows, their actions and policies."""

from typing import Literal

from duetick.api.views.fields import IsoTime, TypedDict


class RetryView(TypedDict):
    """The retries of failed attempts (at least once). Durations are seconds."""

    backoff: Literal["none", "fixed", "exponential"]
    attempts: int
    first: int
    longest: int
    jitter: int


class PoliciesView(TypedDict):
    """The policies of a schedule."""

    delivery: Literal["at_most_once", "at_least_once", "effectively_once"]
    retry: RetryView
    overlap: Literal["skip", "allow", "wait"]
    misfire: Literal["latest", "all", "skip"]
    grace: int
    catchUp: int
    longestLateness: int | None
    spread: int
    gap: Literal["run", "skip"]
    repeat: Literal["first", "both"]
    priority: int
    timeout: int
    startsAt: IsoTime | None
    endsAt: IsoTime | None
    maxRuns: int | None
    afterCompletion: Literal["keep", "delete"]
    pauseAfter: int | None
    onFailure: str | None


class JobPoliciesView(TypedDict):
    """The policies of a job."""

    delivery: Literal["at_most_once", "at_least_once", "effectively_once"]
    retry: RetryView
    priority: int
    timeout: int
    onFailure: str | None


class ActionView(TypedDict):
    """An action. Its schedules have its `policies` unless they choose others. They may choose only
    the policies in `mayChange`. If `users` is false, only the application may schedule it.
    """

    flow: str
    action: str
    users: bool
    policies: PoliciesView
    mayChange: list[str]


class OfferView(TypedDict):
    """An action of a flow, with the JSON Schema of its input. The rest is as in `/api/actions`."""

    action: str
    users: bool
    policies: PoliciesView
    mayChange: list[str]
    background: bool
    input: dict[str, object]


class FlowView(TypedDict):
    """A flow and its actions that a schedule may name."""

    flow: str
    actions: list[OfferView]


class FlowsView(TypedDict):
    """The flows of the deployment; for a user, only flows with an action that users may
    schedule.
    """

    flows: list[FlowView]


class ActionsView(TypedDict):
    """The actions of all flows."""

    actions: list[ActionView]
