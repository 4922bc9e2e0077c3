"""Static schedules: a deployment puts them, and deletes those that no flow declares any more.

Each is a record with an empty user, so its due times are accounted for like any user's. Its labels
name its deployment. A deployment never touches schedules without its labels, such as those of
another deployment on the same database.

An operator, or failures in a row, may pause a static schedule. A deployment ends that pause only if
it declares the schedule otherwise than before: the action may be mended then.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from duetick.core.retrying import retry
from duetick.core.store import Store
from duetick.domain.errors import InvalidSchedule, NotFound, VersionConflict
from duetick.domain.pausing import is_paused, pause, resume
from duetick.domain.schedule import Record, Schedule
from duetick.ports import Clock

NOBODY: Final = ""
STATIC: Final = {"duetick": "static"}
TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Registered:
    """The keys (`flow/id`) of static schedules: put, kept as they were, or removed.

    `paused` are the kept ones that stay paused. `warnings` has the words of a put for each that
    fires more often than the tick comes.
    """

    put: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    warnings: dict[str, str] = field(default_factory=dict)


def register(store: Store, declared: Iterable[Schedule], deployment: str) -> Registered:
    """Put the declared static schedules of a deployment, and delete its other ones."""
    labels = {**STATIC, "deployment": deployment}
    wanted = {schedule.key: replace(schedule, labels=labels) for schedule in declared}
    for key in wanted:
        _check_free(store, key, labels)
    done = Registered()
    for key, schedule in wanted.items():
        before, after = _put(store, schedule, labels)
        (done.kept if after.version == before else done.put).append(key)
        if is_paused(after, store.now()):
            done.paused.append(key)
        if after.warning:
            done.warnings[key] = after.warning
    ours = [schedule.key for schedule in _list_labelled(store, labels)]
    for key in [key for key in ours if key not in wanted]:
        store.schedules.delete(NOBODY, key)
        done.removed.append(key)
    return done


def _put(store: Store, schedule: Schedule, labels: Mapping[str, str]) -> tuple[int, Record]:
    """Put a static schedule. Return the version that it had before (0: none), and the record.

    If two deployments race for a name, the condition of the write lets one win.
    """

    def put() -> tuple[int, Record]:
        before = _check_free(store, schedule.key, labels)
        version = before.version if before else 0
        if before and _stays_paused(before, schedule, store.now()):
            return version, before
        return version, store.schedules.put(schedule, if_version=version)

    return retry(put, VersionConflict, TRIES)


def _stays_paused(before: Record, declared: Schedule, now: int) -> bool:
    """Return True if a schedule is paused, and declared as it was before the pause."""
    return is_paused(before, now) and resume(before).defines(declared)


@dataclass(frozen=True, slots=True)
class StaticSchedules:
    """The static schedules of all deployments, to read: they have no user."""

    store: Store
    clock: Clock

    @property
    def user_id(self) -> str:
        """Nobody."""
        return NOBODY

    def find(self, key: str) -> Record | None:
        """Return a static schedule by its flow and name, or None."""
        return self.store.schedules.get(NOBODY, key)

    def get(self, key: str) -> Record:
        """Return the schedule. Raises NotFound."""
        found = self.find(key)
        if found is None:
            raise NotFound
        return found


def pause_static(
    store: Store, flow: str, name: str, *, note: str = "", until: int | None = None
) -> Record:
    """Pause a static schedule, for good or until an instant. Raises NotFound."""
    now = store.now()
    return _change(store, flow, name, lambda found: pause(found, note, until, now))


def resume_static(store: Store, flow: str, name: str) -> Record:
    """Resume a static schedule from now on. Raises NotFound."""
    return _change(store, flow, name, resume)


def _change(store: Store, flow: str, name: str, edit: Callable[[Record], Record]) -> Record:
    def put() -> Record:
        found = store.schedules.get(NOBODY, f"{flow}/{name}")
        if found is None:
            raise NotFound
        return store.schedules.put(edit(found), if_version=found.version)

    return retry(put, VersionConflict, TRIES)


def _check_free(store: Store, key: str, labels: Mapping[str, str]) -> Record | None:
    """Return the record of this deployment, or None. Raises InvalidSchedule if another has the key.

    The row is read first: if another deployment creates row and record at the same time, the record
    is seen.
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


def _list_labelled(store: Store, labels: Mapping[str, str]) -> Iterator[Record]:
    cursor: str | None = None
    while True:
        page = store.schedules.list(NOBODY, cursor=cursor, state="all")
        yield from (schedule for schedule in page.schedules if schedule.labels == labels)
        cursor = page.cursor
        if cursor is None:
            return
