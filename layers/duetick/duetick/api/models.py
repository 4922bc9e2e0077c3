"""What the API takes. Names are camelCase, times are UTC text."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from duetick.domain.identity import LONGEST_ID
from duetick.domain.schedule import LONGEST_NOTE

Instant: TypeAlias = Annotated[str, Field(examples=["2026-12-01T09:00:00Z"])]
Id: TypeAlias = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=100)]


class Shape(BaseModel):
    """The base of all: unknown fields are refused, and no type is taken for another."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", strict=True, validate_by_name=True
    )


class RetryShape(Shape):
    """When a failed attempt is tried again (at least once). Durations are seconds."""

    backoff: Literal["none", "fixed", "exponential"] = "exponential"
    attempts: int = 5
    first: int = 10
    longest: int = 3_600


class PoliciesShape(Shape):
    """How the schedule wants to be fired; all that is left out has its default."""

    delivery: Literal["at_most_once", "at_least_once", "effectively_once"] = "at_most_once"
    retry: RetryShape = RetryShape()
    overlap: Literal["skip", "allow", "wait"] = "skip"
    misfire: Literal["latest", "all", "skip"] = "latest"
    grace: int = 150
    catch_up: int = 10
    longest_lateness: int | None = None
    spread: int = 0
    gap: Literal["run", "skip"] = "run"
    repeat: Literal["first", "both"] = "first"
    priority: int = 0
    timeout: int = 25
    starts_at: Instant | None = None
    ends_at: Instant | None = None
    max_runs: int | None = None


class ScheduleBody(Shape):
    """A whole schedule, to create it or to replace one."""

    cron: Annotated[str, Field(examples=["0 9 * * MON-FRI"])]
    flow: str
    action: str
    timezone: Annotated[str | None, Field(examples=["Europe/Berlin"])] = None
    input: JsonValue = None
    enabled: bool = True
    policies: PoliciesShape | None = None
    labels: dict[str, str] | None = None
    external_id: Id | None = None


class NewSchedule(ScheduleBody):
    """A schedule to create; without a key it gets one."""

    key: Id | None = None


class ScheduleChange(Shape):
    """What is to change. null takes a field back to its default; in policies and labels, each
    name by itself.
    """

    cron: str | None = None
    flow: str | None = None
    action: str | None = None
    timezone: str | None = None
    input: JsonValue = None
    enabled: bool | None = None
    policies: dict[str, JsonValue] | None = None
    labels: dict[str, str | None] | None = None
    external_id: Id | None = None


class PauseBody(Shape):
    """Why it is paused, and until when; without an end it stays so until it is resumed."""

    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""
    until: Instant | None = None


class PageQuery(Shape):
    """Which part of a list."""

    model_config = ConfigDict(strict=False)

    limit: Count = 50
    cursor: str | None = None


class CursorQuery(Shape):
    """Where to go on."""

    model_config = ConfigDict(strict=False)

    cursor: str | None = None


class CountQuery(Shape):
    """How many."""

    model_config = ConfigDict(strict=False)

    limit: Count = 10


class GatewayView(BaseModel):
    """What API Gateway says itself, before any of our code runs."""

    message: str | None = None
