"""ETags, and the conditions of callers. An ETag is a schedule's version and time of creation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from duetick.domain.errors import InvalidSchedule, VersionConflict
from duetick.domain.schedule import Record
from duetick.domain.versions import Expected

_TAG: Final = re.compile(r'\s*(W/)?"([^"]*)"\s*')


def etag(schedule: Record) -> str:
    """Return the ETag of this version of this schedule. An earlier schedule of the same key never
    has the same: it was created earlier.
    """
    return f'"{schedule.version}-{schedule.created_at:x}"'


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a write: the schedule has one of `tags`, or it `exists`, or is `absent`."""

    tags: tuple[str, ...] = ()
    exists: bool = False
    absent: bool = False

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> "Condition":
        """Read If-Match and If-None-Match. Raise InvalidSchedule if they cannot be read."""
        match, none = headers.get("if-match"), headers.get("if-none-match")
        if none is not None and none.strip() != "*":
            raise _bad("If-None-Match", "only * is understood: create, never replace.")
        if match is None:
            return cls(absent=none is not None)
        if match.strip() == "*":
            return cls(exists=True, absent=none is not None)
        found = [_TAG.fullmatch(part) for part in match.split(",")]
        if not all(found):
            raise _bad("If-Match", "expected the ETag of an answer, with its quotes.")
        strong = tuple(f'"{tag[2]}"' for tag in found if tag and not tag[1])
        return cls(tags=strong or ("",), exists=True, absent=none is not None)

    def version(self, current: Record | None) -> Expected | None:
        """Return the version that the write requires, None for any. Raise VersionConflict if the
        condition does not hold.
        """
        found = current.version if current else 0
        if self.absent and found:
            raise VersionConflict(0, found)
        if not self.exists:
            return 0 if self.absent else None
        if current is None or (self.tags and etag(current) not in self.tags):
            raise VersionConflict(1, found, tag=etag(current) if current else None)
        return current


def _bad(header: str, problem: str) -> InvalidSchedule:
    return InvalidSchedule((header,), problem, "invalid_header")
