"""The version of a schedule that a change expects."""

from typing import TypeAlias

from duetick.domain.errors import VersionConflict
from duetick.domain.schedule import Record

Expected: TypeAlias = Record | int
"""A version, 0 for no schedule; or a record as it was read.

If a schedule is deleted and created again, its versions begin anew. A record matches only its own
creation.
"""


def check_version(current: Record | None, if_version: Expected | None) -> None:
    """Raise VersionConflict unless the record is the expected one."""
    if if_version is None:
        return
    found = current.version if current else 0
    wanted = if_version.version if isinstance(if_version, Record) else if_version
    if wanted != found or not _are_of_one_creation(current, if_version):
        raise VersionConflict(wanted, found)


def _are_of_one_creation(current: Record | None, other: Expected) -> bool:
    if current is None or not isinstance(other, Record):
        return True
    return current.created_at == other.created_at
