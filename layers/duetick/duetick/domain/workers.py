"""Locks by name, and the reports of workers (J-08, J-12)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from duetick.domain.policies import DAY

WorkerKind: TypeAlias = Literal["tick", "background"]

REPORTS_KEPT_MS: Final = 8 * DAY * 1_000
"""The time for which the report of a worker is kept."""


class NamedLock(NamedTuple):
    """A lock: its owner has it since `since`, and loses it at `until` unless the owner extends it.

    A lock whose time is over is free.
    """

    name: str
    owner: str
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Worker:
    """The report of a tick, or of a run in the background.

    `silent_at` is the end of its longest life: without an `ended_at` it is lost from then on.
    `lost_at` is the instant at which that was found. `counts` are the numbers of its report.
    """

    id: str
    kind: WorkerKind
    started_at: int
    silent_at: int
    ended_at: int | None = None
    lost_at: int | None = None
    lateness_ms: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def is_lost(self, now: int) -> bool:
        """Return True if the worker's longest life is over and it has reported no end."""
        return self.ended_at is None and self.silent_at <= now
