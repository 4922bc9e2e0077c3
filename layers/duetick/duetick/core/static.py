"""The schedules that flows always have: put at a deploy, deleted with what declares them.

Each is a record with an empty user, so that what was due is accounted for as any user's is, and
with a label that says who made it: what stands beside without that label is left alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Schedule
from duetick.ports import Store

NOBODY: Final = ""
LABELS: Final = {"duetick": "static"}


@dataclass(frozen=True, slots=True)
class Registered:
    """The keys (`flow/id`) by what was done about them."""

    put: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def register(store: Store, declared: Iterable[Schedule]) -> Registered:
    """Make the static schedules of the store those that are declared. Unchanged ones stay put."""
    wanted = {schedule.key: replace(schedule, labels=LABELS) for schedule in declared}
    for key in wanted:
        _check_free(store, key)
    done = Registered()
    for key, schedule in wanted.items():
        before = store.schedules.get(NOBODY, key)
        after = store.schedules.put(schedule)
        (done.kept if before and before.version == after.version else done.put).append(key)
    for key in [schedule.key for schedule in _ours(store) if schedule.key not in wanted]:
        store.schedules.delete(NOBODY, key)
        done.removed.append(key)
    return done


def _check_free(store: Store, key: str) -> None:
    """What somebody else put under the same name must not be written over.

    The row is read first: where another deployment makes both meanwhile, its record is seen.
    """
    row, record = store.index.get(NOBODY, key), store.schedules.get(NOBODY, key)
    if record.labels != LABELS if record else row:
        raise InvalidSchedule(
            "key",
            f"{key!r} without a user is there, and no deployment made it. "
            "Remove it, or name the static schedule otherwise.",
        )


def _ours(store: Store) -> Iterator[Schedule]:
    cursor: str | None = None
    while True:
        page = store.schedules.list(NOBODY, cursor=cursor)
        yield from (schedule for schedule in page.schedules if schedule.labels == LABELS)
        cursor = page.cursor
        if cursor is None:
            return
