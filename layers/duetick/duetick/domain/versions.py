"""Which version of a schedule a change insists on."""

from typing import TypeAlias

from duetick.domain.errors import VersionConflict
from duetick.domain.schedule import Schedule

Expected: TypeAlias = Schedule | int
"""A version, 0 for none; or a record as it was read. Versions begin anew where a schedule is
deleted and made again, and a record stands for its own life alone.
"""


def check_version(current: Schedule | None, if_version: Expected | None) -> None:
    """Raise VersionConflict unless the record is the one that is expected."""
    if if_version is None:
        return
    found = current.version if current else 0
    wanted = if_version.version if isinstance(if_version, Schedule) else if_version
    if wanted != found or not _of_one_life(current, if_version):
        raise VersionConflict(wanted, found)


def _of_one_life(current: Schedule | None, other: Expected) -> bool:
    if current is None or not isinstance(other, Schedule):
        return True
    return current.created_at == other.created_at
