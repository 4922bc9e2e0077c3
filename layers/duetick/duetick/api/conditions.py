"""ETags: a schedule's version and when it was made, and the conditions that callers put."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from duetick.domain.errors import InvalidSchedule, VersionConflict
from duetick.domain.schedule import Schedule
from duetick.domain.versions import Expected

_TAG: Final = re.compile(r'\s*(W/)?"([^"]*)"\s*')


def etag(schedule: Schedule) -> str:
    """Of this version of this schedule, and of no other that had its key before: one is made later
    than all that.
    """
    return f'"{schedule.version}-{schedule.created_at:x}"'


@dataclass(frozen=True, slots=True)
class Condition:
    """`tags`: one of them has to be the schedule's; `exists`: it has to be there; `absent`: not."""

    tags: tuple[str, ...] = ()
    exists: bool = False
    absent: bool = False

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> "Condition":
        """Of If-Match and If-None-Match; raise InvalidSchedule where they cannot be read."""
        match, none = headers.get("if-match"), headers.get("if-none-match")
        if none is not None and none.strip() != "*":
            raise InvalidSchedule("If-None-Match", "only * is understood: create, never replace.")
        if match is None:
            return cls(absent=none is not None)
        if match.strip() == "*":
            return cls(exists=True, absent=none is not None)
        found = [_TAG.fullmatch(part) for part in match.split(",")]
        if not all(found):
            raise InvalidSchedule("If-Match", "expected the ETag of an answer, with its quotes.")
        strong = tuple(f'"{tag[2]}"' for tag in found if tag and not tag[1])
        return cls(tags=strong or ("",), exists=True, absent=none is not None)

    def version(self, current: Schedule | None) -> Expected | None:
        """What to insist on, None for anything; raise VersionConflict where it does not hold."""
        found = current.version if current else 0
        if self.absent and found:
            raise VersionConflict(0, found)
        if not self.exists:
            return 0 if self.absent else None
        if current is None or (self.tags and etag(current) not in self.tags):
            raise VersionConflict(1, found, tag=etag(current) if current else None)
        return current
