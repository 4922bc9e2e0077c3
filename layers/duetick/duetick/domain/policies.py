"""The policies of a schedule. Every duration is in seconds, every instant in milliseconds."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from duetick.domain.choosing import Choosing
from duetick.domain.errors import (
    Flaw,
    InvalidSchedule,
    Refusal,
    kind_of,
    refusals_of,
    refuse,
)
from duetick.domain.identity import check_name

Gap = Literal["run", "skip"]
Repeat = Literal["first", "both"]
AfterCompletion = Literal["keep", "delete"]

LEASE_MARGIN: Final = 35
LONGEST_TIMEOUT: Final = 900
MINUTE_MS: Final = 60_000
DAY: Final = 86_400
LAST_INSTANT: Final = 253_402_300_799_999
"""The end of the year 9999."""


class Delivery(StrEnum):
    """The promise of a schedule: the meaning of a lost or failed attempt."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    EFFECTIVELY_ONCE = "effectively_once"


class Overlap(StrEnum):
    """The fate of an occurrence while an earlier one is still running."""

    SKIP = "skip"
    ALLOW = "allow"
    WAIT = "wait"


class Misfire(StrEnum):
    """The choice of the nominal times past their grace that still fire."""

    LATEST = "latest"
    ALL = "all"
    SKIP = "skip"


class Backoff(StrEnum):
    """The growth of the delay before the next attempt."""

    NONE = "none"
    FIXED = "fixed"
    EXPONENTIAL = "exponential"


def _check_bounds(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        wanted = f"expected a whole number from {low} to {high}, got {_show(value)}."
        raise InvalidSchedule(name, wanted, "wrong_type")
    if not low <= value <= high:
        wanted = f"expected a whole number from {low} to {high}, got {value}."
        raise InvalidSchedule(name, wanted, "out_of_range")


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        wanted = f"expected one of {', '.join(allowed)}, got {_show(value)}."
        raise InvalidSchedule(name, wanted, "not_one_of")


def _show(value: object) -> str:
    return repr(value[:40]) if isinstance(value, str) else kind_of(value)


Choice: TypeAlias = tuple[str, tuple[str, ...]]
Bounds: TypeAlias = tuple[str, int, int]

OPTIONAL: Final = frozenset(
    {"longest_lateness", "max_runs", "starts_at", "ends_at", "pause_after", "on_failure"}
)
"""The fields for which None means that there is no limit, or none at all."""


def _find_wrong(
    prefix: str, given: object, choices: Sequence[Choice], bounds: Sequence[Bounds]
) -> list[Refusal]:
    """Return the refusals of texts and numbers. Mostly there is none, and then it is quick."""
    checks: list[Callable[[], None]] = []
    for name, allowed in choices:
        value = getattr(given, name)
        if value not in allowed:
            checks.append(partial(_check_choice, f"{prefix}.{name}", value, allowed))
    for name, low, high in bounds:
        value = getattr(given, name)
        fits = type(value) is int and low <= value <= high
        if not fits and (value is not None or name not in OPTIONAL):
            checks.append(partial(_check_bounds, f"{prefix}.{name}", value, low, high))
    return refusals_of(checks)


BACKOFFS: Final[tuple[Choice, ...]] = (("backoff", tuple(Backoff)),)
RETRY: Final[tuple[Bounds, ...]] = (
    ("attempts", 1, 185),
    ("first", 1, DAY),
    ("longest", 1, DAY),
    ("jitter", 0, 100),
)
_KINDS: Final = (("delivery", Delivery), ("overlap", Overlap), ("misfire", Misfire))
CHOICES: Final[tuple[Choice, ...]] = (
    *((name, tuple(kind)) for name, kind in _KINDS),
    ("gap", get_args(Gap)),
    ("repeat", get_args(Repeat)),
    ("after_completion", get_args(AfterCompletion)),
)
BOUNDS: Final[tuple[Bounds, ...]] = (
    ("grace", 0, DAY),
    ("catch_up", 0, 1_000),
    ("longest_lateness", 1, 366 * DAY),
    ("spread", 0, DAY),
    ("priority", -100, 100),
    ("timeout", 1, LONGEST_TIMEOUT),
    ("starts_at", 0, LAST_INSTANT),
    ("ends_at", 0, LAST_INSTANT),
    ("max_runs", 1, 1_000_000),
    ("pause_after", 1, 1_000),
)


@dataclass(frozen=True, slots=True)
class Retry(Choosing):
    """The retries of an at-least-once schedule: how many, and how long after a failure.

    The longest wait is the first one at least. If only one of them was chosen, that is checked once
    the other one is known: by `over`, or by the book that is put. Beside another flaw it is checked
    at once.
    """

    backoff: Backoff = Backoff.EXPONENTIAL
    attempts: int = 5
    first: int = 10
    longest: int = 3_600
    jitter: int = 0

    def __post_init__(self) -> None:
        found = _find_wrong("policies.retry", self, BACKOFFS, RETRY)
        waits, wrong = {"first", "longest"}, {one.path[-1] for each in found for one in each.flaws}
        if (waits <= self._given or wrong) and not waits & wrong:
            found += refusals_of([self.check_waits])
        refuse(found)
        object.__setattr__(self, "backoff", Backoff(self.backoff))

    def check_waits(self) -> None:
        """Raise InvalidSchedule if the longest wait is shorter than the first one."""
        _check_bounds("policies.retry.longest", self.longest, self.first, DAY)

    def over(self, defaults: "Retry") -> "Retry":
        """Return the defaults, but for the fields that were chosen here."""
        return replace(defaults, **self.chosen)

    def delay(self, attempt: int, name: str = "") -> int | None:
        """Return the milliseconds to wait after a failed `attempt`; None if none remains.

        The jitter, in percent of the delay, is how much sooner the next attempt may come. The
        random id of the occurrence (`name`) decides how much, so the delay is always the same.
        """
        if self.backoff is Backoff.NONE or attempt >= self.attempts:
            return None
        fixed = self.backoff is Backoff.FIXED
        seconds = self.first if fixed else min(self.first << (attempt - 1), self.longest)
        most = seconds * 10 * self.jitter
        return seconds * 1_000 - (_random(f"{name}#{attempt}", most) if most else 0)


@dataclass(frozen=True, slots=True)
class Policies(Choosing):
    """The policies of a schedule. The layer's README has a table of them.

    Nothing fires before `starts_at` or after `ends_at`. `max_runs` limits the runs that begin: with
    the last of them, the schedule is done. `after_completion` says if it is deleted then. After
    `pause_after` failures in a row, the schedule is paused. `on_failure` names the action of its
    flow that runs for each of its occurrences that is dead.
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
    after_completion: AfterCompletion = "keep"
    pause_after: int | None = None
    on_failure: str | None = None

    def __post_init__(self) -> None:
        found = refusals_of([self._read_retry, self._check_hook])
        found += _find_wrong("policies", self, CHOICES, BOUNDS)
        refuse(found or refusals_of([self._check_window]))
        for name, kind in _KINDS:
            object.__setattr__(self, name, kind(getattr(self, name)))

    def _read_retry(self) -> None:
        """Take the retry as a mapping, too: JSON has it so."""
        given: object = self.retry
        if not isinstance(given, Retry):
            named = _check_names(Retry, "policies.retry", given)
            object.__setattr__(self, "retry", Retry(**named))

    def _check_hook(self) -> None:
        if self.on_failure is not None:
            check_name("policies.on_failure", self.on_failure)

    def _check_window(self) -> None:
        if self.ends_at is not None and self.ends_at < (self.starts_at or 0):
            raise InvalidSchedule(
                "policies.ends_at", "is before the start; put it after.", "out_of_range"
            )

    @property
    def on_time_ms(self) -> int:
        """The lateness that is still on time: the shorter of grace and longest lateness."""
        longest = self.grace if self.longest_lateness is None else self.longest_lateness
        return min(self.grace, longest) * 1_000

    @property
    def lease_ms(self) -> int:
        """The length of a lease: an attempt that takes longer counts as lost."""
        return (self.timeout + LEASE_MARGIN) * 1_000

    @property
    def begin_within_ms(self) -> int:
        """The time after its due time in which an occurrence that never began may still begin."""
        return (3_600 if self.longest_lateness is None else self.longest_lateness) * 1_000

    @property
    def retries(self) -> bool:
        """True if another attempt follows a failed or lost one."""
        return self.delivery is not Delivery.AT_MOST_ONCE

    def over(self, defaults: "Policies") -> "Policies":
        """Return the defaults, but for the fields that were chosen here.

        All fields of the result count as chosen.
        """
        return replace(defaults, **self.chosen | {"retry": self.retry.over(defaults.retry)})

    def dump(self) -> str | None:
        """Return the fields that differ from the defaults as compact JSON; None if none differs."""
        return _dump(self, self._later)

    @staticmethod
    def load(text: str | None) -> "Policies":
        """Return the policies that `dump` wrote. All of them are chosen: no default changes them.

        The policies are cached: many schedules have the same, and nothing changes them.

        `dump` writes the policies again that only a later version knows. So while two versions run,
        or after a rollback, such a policy stops no schedule, and none loses it.
        """
        return _load(text)

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """Return the policies of an API body. An unknown name is refused, with the known names."""
        values = dict(given)
        found = refusals_of([partial(_check_names, cls, "policies", values)])
        known: dict[str, Any] = {name: values[name] for name in values if name in _field_names(cls)}
        made: list[Self] = []
        found += refusals_of([lambda: made.append(cls(**known))])
        refuse(found)
        return made[0]


def _random(name: str, most: int) -> int:
    """Return a number from 0 to `most`: as random as the name, and always the same for it."""
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) % (most + 1)


@lru_cache(maxsize=1_000)
def _dump(policies: Policies, later: str) -> str | None:
    """Return the text of the policies, cached: a claim writes the same for each of its rows.
    `later` are those of a later version, which equal policies may not share.
    """
    different = {
        f.name: getattr(policies, f.name)
        for f in fields(policies)
        if f.name != "retry" and getattr(policies, f.name) != getattr(_DEFAULTS, f.name)
    }
    if policies.retry != _DEFAULTS.retry:
        named = {f.name: getattr(policies.retry, f.name) for f in fields(Retry)}
        different["retry"] = {n: value for n, value in named.items() if n != "jitter" or value}
    if later:
        different = {**different, **json.loads(later)}
    return json.dumps(different, sort_keys=True, separators=(",", ":")) if different else None


@lru_cache(maxsize=1_000)
def _load(text: str | None) -> Policies:
    given: dict[str, object] = json.loads(text) if text else {}
    known = {name: value for name, value in given.items() if name in _field_names(Policies)}
    loaded = Policies.of(known).over(_DEFAULTS)
    if len(known) < len(given):
        later = {name: value for name, value in given.items() if name not in known}
        object.__setattr__(loaded, "_later", json.dumps(later))
    return loaded


def _field_names(kind: type) -> list[str]:
    return [f.name for f in fields(kind)]


def _check_names(kind: type, name: str, given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidSchedule(name, f"expected an object, got {kind_of(given)}.", "wrong_type")
    names = _field_names(kind)
    known = ", ".join(names)
    unknown = [
        Flaw((*name.split("."), str(key)), "unknown_field", f"is not known; known are {known}.")
        for key in given
        if key not in names
    ]
    if unknown:
        raise InvalidSchedule.of(unknown)
    return dict(given)


_DEFAULTS: Final = Policies()
