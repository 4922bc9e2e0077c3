"""How a schedule wants to be fired. Every duration is in seconds, every instant in milliseconds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, Literal, Self, get_args

from duetick.domain.errors import InvalidSchedule

Gap = Literal["run", "skip"]
Repeat = Literal["first", "both"]

LEASE_MARGIN: Final = 35
LONGEST_TIMEOUT: Final = 900
MINUTE_MS: Final = 60_000
DAY: Final = 86_400
LAST_INSTANT: Final = 253_402_300_799_999
"""The end of the year 9999."""


class Delivery(StrEnum):
    """What a lost or failed attempt means."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    EFFECTIVELY_ONCE = "effectively_once"


class Overlap(StrEnum):
    """What happens to an occurrence while an earlier one is still running."""

    SKIP = "skip"
    ALLOW = "allow"
    WAIT = "wait"


class Misfire(StrEnum):
    """Which of the nominal times that are past their grace still fire."""

    LATEST = "latest"
    ALL = "all"
    SKIP = "skip"


class Backoff(StrEnum):
    """How the delay before the next attempt grows."""

    NONE = "none"
    FIXED = "fixed"
    EXPONENTIAL = "exponential"


def _bounded(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidSchedule(name, f"expected a whole number from {low} to {high}, got {value!r}.")


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidSchedule(name, f"expected one of {', '.join(allowed)}, got {value!r}.")


@dataclass(frozen=True, slots=True)
class Retry:
    """When a failed attempt of an at-least-once schedule is tried again."""

    backoff: Backoff = Backoff.EXPONENTIAL
    attempts: int = 5
    first: int = 10
    longest: int = 3_600

    def __post_init__(self) -> None:
        _one_of("policies.retry.backoff", self.backoff, tuple(Backoff))
        object.__setattr__(self, "backoff", Backoff(self.backoff))
        _bounded("policies.retry.attempts", self.attempts, 1, 185)
        _bounded("policies.retry.first", self.first, 1, DAY)
        _bounded("policies.retry.longest", self.longest, self.first, DAY)

    def delay(self, attempt: int) -> int | None:
        """Milliseconds to wait after the failed `attempt`; None when they are spent."""
        if self.backoff is Backoff.NONE or attempt >= self.attempts:
            return None
        if self.backoff is Backoff.FIXED:
            return self.first * 1_000
        return min(self.first << (attempt - 1), self.longest) * 1_000


@dataclass(frozen=True, slots=True)
class Policies:
    """The defaults are those of the README's table.

    Nothing fires before `starts_at` or after `ends_at`. `max_runs` counts what has begun since
    the limit was set: the schedule is done with the last of them.
    """

    delivery: Delivery = Delivery.AT_MOST_ONCE
    retry: Retry = field(default_factory=Retry)
    overlap: Overlap = Overlap.SKIP
    misfire: Misfire = Misfire.LATEST
    grace: int = 150
    catch_up: int = 10
    longest_lateness: int | None = None
    spread: int = 0
    gap: Gap = "run"
    repeat: Repeat = "first"
    priority: int = 0
    timeout: int = 25
    starts_at: int | None = None
    ends_at: int | None = None
    max_runs: int | None = None

    def __post_init__(self) -> None:
        for name, kind in (("delivery", Delivery), ("overlap", Overlap), ("misfire", Misfire)):
            value = getattr(self, name)
            _one_of(f"policies.{name}", value, tuple(kind))
            object.__setattr__(self, name, kind(value))
        _one_of("policies.gap", self.gap, get_args(Gap))
        _one_of("policies.repeat", self.repeat, get_args(Repeat))
        _bounded("policies.grace", self.grace, 0, DAY)
        _bounded("policies.catch_up", self.catch_up, 0, 1_000)
        _bounded("policies.spread", self.spread, 0, DAY)
        _bounded("policies.priority", self.priority, -100, 100)
        _bounded("policies.timeout", self.timeout, 1, LONGEST_TIMEOUT)
        if self.longest_lateness is not None:
            _bounded("policies.longest_lateness", self.longest_lateness, 1, 366 * DAY)
        if self.max_runs is not None:
            _bounded("policies.max_runs", self.max_runs, 1, 1_000_000)
        self._check_window()

    def _check_window(self) -> None:
        for name in ("starts_at", "ends_at"):
            if getattr(self, name) is not None:
                _bounded(f"policies.{name}", getattr(self, name), 0, LAST_INSTANT)
        if self.ends_at is not None and self.ends_at < (self.starts_at or 0):
            raise InvalidSchedule("policies.ends_at", "is before the start; put it after.")

    @property
    def on_time_ms(self) -> int:
        """How late is still on time: the grace, unless the longest lateness is shorter."""
        longest = self.grace if self.longest_lateness is None else self.longest_lateness
        return min(self.grace, longest) * 1_000

    @property
    def lease_ms(self) -> int:
        """How long an attempt is held before it counts as lost."""
        return (self.timeout + LEASE_MARGIN) * 1_000

    @property
    def begin_within_ms(self) -> int:
        """How long after its due time an occurrence that never began may still begin."""
        return (3_600 if self.longest_lateness is None else self.longest_lateness) * 1_000

    @property
    def retries(self) -> bool:
        """Whether a failed or lost attempt is followed by another."""
        return self.delivery is not Delivery.AT_MOST_ONCE

    def dump(self) -> str | None:
        """The fields that differ from the defaults as compact JSON; None where none does."""
        different = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name != "retry" and getattr(self, f.name) != getattr(_DEFAULTS, f.name)
        }
        if self.retry != _DEFAULTS.retry:
            different["retry"] = {f.name: getattr(self.retry, f.name) for f in fields(Retry)}
        return json.dumps(different, sort_keys=True, separators=(",", ":")) if different else None

    @staticmethod
    def load(text: str | None) -> "Policies":
        """What `dump` wrote. Remembered: many schedules have the same, and nothing changes them."""
        return _loaded(text)

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """Policies as an API body names them; an unknown name is refused with the known ones."""
        values = dict(given)
        retry = values.pop("retry", None)
        if retry is not None:
            values["retry"] = Retry(**_known(Retry, "policies.retry", retry))
        return cls(**_known(cls, "policies", values))


@lru_cache(maxsize=1_000)
def _loaded(text: str | None) -> Policies:
    return Policies.of(json.loads(text)) if text else Policies()


def _known(kind: type, name: str, given: object) -> dict[str, Any]:
    names = [f.name for f in fields(kind)]
    if not isinstance(given, Mapping):
        raise InvalidSchedule(name, f"expected an object, got {type(given).__name__}.")
    for key in given:
        if key not in names:
            raise InvalidSchedule(name, f"{key!r} is not known; known are {', '.join(names)}.")
    return dict(given)


_DEFAULTS: Final = Policies()
