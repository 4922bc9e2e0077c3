"""The schedules that flows always have: put at a deploy, deleted with what declares them.

Each is a record with an empty user, so that what was due is accounted for as any user's is, and
with labels that say which deployment made it: what stands beside without them is left alone, and so
is what another deployment on the same database made.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from duetick.domain.errors import InvalidSchedule, VersionConflict
from duetick.domain.schedule import Schedule
from duetick.ports import Store

NOBODY: Final = ""
STATIC: Final = {"duetick": "static"}
TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Registered:
    """The keys (`flow/id`) by what was done about them."""

    put: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def register(store: Store, declared: Iterable[Schedule], deployment: str) -> Registered:
    """Make the deployment's static schedules those that are declared. Unchanged ones stay put."""
    labels = {**STATIC, "deployment": deployment}
    wanted = {schedule.key: replace(schedule, labels=labels) for schedule in declared}
    for key in wanted:
        _check_free(store, key, labels)
    done = Registered()
    for key, schedule in wanted.items():
        (done.put if _put(store, schedule, labels) else done.kept).append(key)
    ours = [schedule.key for schedule in _labelled(store, labels)]
    for key in [key for key in ours if key not in wanted]:
        store.schedules.delete(NOBODY, key)
        done.removed.append(key)
    return done


def _put(store: Store, schedule: Schedule, labels: Mapping[str, str], tries: int = TRIES) -> bool:
    """Whether anything changed. Of two deployments that race for a name, the write picks one."""
    before = _check_free(store, schedule.key, labels)
    version = before.version if before else 0
    try:
        return store.schedules.put(schedule, if_version=version).version != version
    except VersionConflict:
        if tries == 1:
            raise
    return _put(store, schedule, labels, tries - 1)


def _check_free(store: Store, key: str, labels: Mapping[str, str]) -> Schedule | None:
    """The record, where it is ours. What somebody else put there must not be written over.

    The row is read first: where another deployment makes both meanwhile, its record is seen.
    """
    row, record = store.index.get(NOBODY, key), store.schedules.get(NOBODY, key)
    if record.labels == labels if record else not row:
        return record
    if record and STATIC.items() <= record.labels.items():
        other = record.labels.get("deployment", "")
        raise InvalidSchedule(
            "key",
            f"{key!r} is a static schedule of the deployment {other!r}, on the same database. "
            "Name this one otherwise, or give the database to one deployment alone; one that "
            f"takes the other's place is deployed with Deployment={other}.",
        )
    raise InvalidSchedule(
        "key",
        f"{key!r} without a user is there, and no deployment made it. "
        "Remove it, or name the static schedule otherwise.",
    )


def _labelled(store: Store, labels: Mapping[str, str]) -> Iterator[Schedule]:
    cursor: str | None = None
    while True:
        page = store.schedules.list(NOBODY, cursor=cursor)
        yield from (schedule for schedule in page.schedules if schedule.labels == labels)
        cursor = page.cursor
        if cursor is None:
            return
