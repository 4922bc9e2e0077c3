"""Types of fields that many answers have. Times are UTC text: 2026-12-01T09:00:00Z."""

import sys
from typing import Literal, TypeAlias

from duetick.domain.verdicts import EndReason

if sys.version_info >= (3, 12):
    from typing import TypedDict
else:
    from typing_extensions import TypedDict  # the older one hides from pydantic what is required

__all__ = ["EndReason", "IsoTime", "ShownState", "TypedDict"]

IsoTime: TypeAlias = str

ShownState: TypeAlias = Literal[
    "scheduled", "queued", "processing", "retrying", "succeeded", "dead", "cancelled", "deleted"
]
"""The state of an occurrence in which a reader may find it: it passes through `failed`."""
