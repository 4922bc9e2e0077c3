"""The recovery of a store that was restored from a backup: it decides about the unknown times."""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from duetick.core.backfills import Backfills
from duetick.core.store import Store
from duetick.core.wire import iso
from duetick.core.witness import catch_up, find_restore, note_restore
from duetick.domain.errors import ConfigurationError
from duetick.domain.group_pauses import Pauses
from duetick.domain.occurrence import LATEST
from duetick.domain.recovering import Recovery, foresee
from duetick.domain.states import Reason
from duetick.ports import Listed, Witness

if TYPE_CHECKING:
    from duetick.domain.schedule import Occurrence

RECOVERIES: Final[tuple[Recovery, ...]] = ("skip", "latest", "fire")
AT_ONCE: Final = 50
NOTE_OF_PLACE: Final = "recovering"

logger = logging.getLogger("duetick.recovery")


@dataclass(slots=True)
class Recovered:
    """The result of a recovery, or of its dry run.

    `restored` is False if the store is as old as its witness: there is nothing to do. `schedules`
    have `fires` times that ticks may fire now and `recorded` times that are recorded as missed, all
    of them due up to now. `lost` counts occurrences that were under way in the backup and are dead
    now; a dry run does not know them. If not `complete`, the time ended first: do it again. The
    next run goes on, and counts the rest; a dry run begins anew.
    """

    how: Recovery
    dry_run: bool
    restored: bool = False
    noted: str | None = None
    witnessed: str | None = None
    until: str | None = None
    schedules: int = 0
    fires: int = 0
    recorded: int = 0
    lost: int = 0
    complete: bool = True


def recover(
    store: Store,
    witness: Witness | None,
    how: Recovery = "skip",
    *,
    now: int,
    dry_run: bool = True,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Recovered:
    """Decide about the times that may have fired between the backup and the restore.

    `skip` records them as missed. `latest` leaves the newest of each schedule to its misfire
    policy, `fire` leaves all of them to it. With `skip` and `latest`, the occurrences that were
    under way in the backup are dead, reason `lost`, and backfills are stopped; with `fire` both go
    on. Ticks claim again once the recovery is complete. A repeat does nothing twice.
    """
    if how not in RECOVERIES:
        raise ConfigurationError(f"A recovery is {', '.join(RECOVERIES)}, not {how!r}.")
    if witness is None:
        raise ConfigurationError("This store has no witness, so no restore can be told.")
    result = Recovered(how, dry_run)
    found = find_restore(store, witness, now)
    if found is None:
        return result
    result.restored, result.until = True, iso(found.found_at)
    result.noted, result.witnessed = iso(found.noted), iso(found.witnessed)
    if not dry_run:
        note_restore(store, found)
    if how != "fire" and not dry_run:
        _stop_backfills(store)
        result.lost = _write_off(store, found.found_at, now, may_go_on)
        result.complete = may_go_on()
    walk, pauses = _Walk(store, found.witnessed, how), store.pauses.current(now)
    for one in store.shelf.every_book("" if dry_run else walk.place()):
        if not may_go_on():
            result.complete = False
            break
        _recover_one(store, one, found.found_at, now, result, pauses=pauses)
        walk.seen = one.place
    if not dry_run and not result.complete:
        walk.keep()
    if result.complete and not dry_run:
        catch_up(store, found.witnessed)
    logger.info("recover", extra={"action": "recover", **asdict(result)})
    return result


@dataclass(slots=True)
class _Walk:
    """The progress of a recovery that ended early: an API's call has no time for all books. The
    next call goes on behind it, unless it recovers another restore, or in another way.
    """

    store: Store
    witnessed: int
    how: Recovery
    seen: str = ""

    def place(self) -> str:
        """Return the place of the last book that is done."""
        kept = json.loads(self.store.shelf.note(NOTE_OF_PLACE) or "{}")
        if (kept.get("witnessed"), kept.get("how")) == (self.witnessed, self.how):
            self.seen = kept["place"]
        return self.seen

    def keep(self) -> None:
        """Note it."""
        kept = {"witnessed": self.witnessed, "how": self.how, "place": self.seen}
        self.store.shelf.keep_note(NOTE_OF_PLACE, json.dumps(kept))


def _stop_backfills(store: Store) -> None:
    """Stop the backfills of the backup: they may have brought more since than the store knows."""
    backfills = Backfills(store)
    for one in backfills.find(ended_after=LATEST):
        backfills.stop(one.name, "recover")


def _recover_one(
    store: Store, one: Listed, until: int, now: int, result: Recovered, *, pauses: Pauses
) -> None:
    """Count the unknown times of a schedule, and pass them over unless it is a dry run.

    If the row cannot be read, the next tick records it as poisoned.
    """
    if one.row is None or one.row.next_fire_at > until:
        return
    holes = pauses.spans(one.row.user_id, one.row.flow)
    try:
        foreseen = foresee(one.row, one.mark, until, now, result.how, holes=holes)
    except ValueError:
        return
    result.schedules += 1
    result.fires += foreseen.fires
    result.recorded += foreseen.recorded
    if not result.dry_run and result.how != "fire":
        newest = result.how == "latest"
        store.pass_over(one.user_id, one.key, until, now=now, keeps_newest=newest)


def _write_off(store: Store, until: int, now: int, may_go_on: Callable[[], bool]) -> int:
    """End the occurrences that waited or were under way in the backup, and whose turn came by
    `until`.

    Each is leased first, as of `until`. If the recovery stops between the two, its next run finds
    the lease ended. A second pass finds those leases, and the leases of the backup that have ended
    since. An occurrence that came due later is given back.

    The failure hooks of lost occurrences are ended too: such an occurrence may have succeeded, or a
    hook told of it, after the backup.
    """
    lost: list[Occurrence] = []
    later: list[Occurrence] = []
    for at in (until, now):
        while may_go_on():
            leased = store.ledger.claim_waiting(at, AT_ONCE, on_lost=lost.append)
            if not leased:
                break
            later += (one for one in leased if _comes_later(one, until))
            over = (one for one in leased if not _comes_later(one, until))
            lost += filter(None, (store.ledger.write_off(one, now=now) for one in over))
    for one in later:
        store.ledger.release(one, now=now)
    return len(lost)


def _comes_later(one: "Occurrence", until: int) -> bool:
    """Return True if an occurrence came due after an instant, and tells of no loss."""
    tells_of_loss = one.death is not None and one.death.reason is Reason.LOST
    return one.due_at > until and not tells_of_loss
