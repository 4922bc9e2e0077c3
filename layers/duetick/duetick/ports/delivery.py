"""The way from a tick to dispatch, and what came back."""

from dataclasses import dataclass
from typing import Protocol

from duetick.domain.schedule import Occurrence


@dataclass(frozen=True, slots=True)
class Delivery:
    """What dispatch answered: the HTTP status, 0 for a transport error."""

    status: int
    detail: str = ""


class Transport(Protocol):
    """How an occurrence gets from a tick to dispatch."""

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivery:
        """Hand it over and wait for the answer, at most `timeout` seconds. Never raises."""

    def close(self) -> None:
        """Let go of connections."""
