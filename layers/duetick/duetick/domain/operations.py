"""The record of what operators did: who did what, when and why, and the outcome.

An operation is recorded before it is done, and its outcome afterwards. If its process died, the
operation has no outcome: nobody knows how far it came.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from duetick.domain.ending import KEPT_GONE_MS

KEPT_OPERATION_MS: Final = KEPT_GONE_MS
"""The time for which a store keeps an operation."""

BEGUN: Final = "begun"
DONE: Final = "done"
DRY_RUN: Final = "dry_run"
FAILED: Final = "failed"
"""The outcomes besides the code of an error, which refused the operation."""

OperationPlace: TypeAlias = tuple[int, str]
"""The time and the id of an operation, after which a page begins: the newest come first."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `user_id` is the user whose data it is about, or None; `target` names the
    schedule, or whatever else the verb is about.
    """

    id: str
    at: int
    who: str
    verb: str
    user_id: str | None = None
    target: str = ""
    why: str = ""
    outcome: str = BEGUN

    @property
    def place(self) -> OperationPlace:
        """The place of the operation in the record."""
        return self.at, self.id
