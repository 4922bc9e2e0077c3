"""Check and rebuild: every schedule beside its row, and each row that differs put right.

It walks all schedules, so it runs where time is not short: on a store that the caller reaches, or
as a step of the function `migrate`. A rebuild that ended early may be repeated.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Final

from duetick.core.store import Difference, Store, compare
from duetick.domain.errors import PoisonedRow

MOST_NAMED: Final = 100
"""The most differences that a report names."""


@dataclass(slots=True)
class Repair:
    """The result of a check, or of a rebuild. `found` names the first of the `differences`.

    A rebuild brings back the rows that can be read by now; those that are `unreadable` stay. If not
    `complete`, the time ended first: do it again.
    """

    dry_run: bool
    schedules: int = 0
    differences: int = 0
    unreadable: int = 0
    mended: int = 0
    complete: bool = True
    found: list[dict[str, str]] = field(default_factory=list)

    def json(self) -> dict[str, object]:
        """Return the result as JSON."""
        return asdict(self)


def repair(
    store: Store,
    now: int,
    *,
    dry_run: bool = True,
    may_go_on: Callable[[], bool] = lambda: True,
    tell: Callable[[Difference], object] = lambda _difference: None,
    saw: Callable[[], object] = lambda: None,
) -> Repair:
    """Compare every schedule with its row. Unless it is a dry run, mend each difference.

    `tell` gets each difference, `saw` is called for each schedule.
    """
    result = Repair(dry_run)
    for one in store.shelf.every_book():
        if not may_go_on():
            result.complete = False
            return result
        result.schedules += 1
        saw()
        difference = compare(one, now)
        if difference is None:
            continue
        tell(difference)
        mended = not dry_run and _mend(store, difference, now)
        result.mended += mended
        _count(result, difference, mended=mended)
    if not dry_run:
        result.mended += store.shelf.tidy(now)
    return result


def _mend(store: Store, found: Difference, now: int) -> bool:
    """Mend a difference. Return False if it stays: it still cannot be read."""
    if found.problem != "unreadable":
        return store.mend(found.user_id, found.key, now=now)
    with suppress(PoisonedRow):
        return store.index.restore(found.user_id, found.key, now=now)
    return False


def _count(result: Repair, found: Difference, *, mended: bool) -> None:
    result.differences += 1
    result.unreadable += found.problem == "unreadable" and not mended
    if len(result.found) < MOST_NAMED:
        result.found.append({"user": found.user_id, "key": found.key, "problem": found.problem})
