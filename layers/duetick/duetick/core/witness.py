"""The witness of a store: it tells a restore from a backup from mere downtime.

Each hour the store notes an instant, and then the witness outside keeps the same. A store whose
note is older than its witness was restored from a backup: it does not know what fired since, so
nothing is claimed until `core.recovery` was told what to do. If both are old, nothing ran.

                   the store's note   the witness
    in order       10:07              10:07
    downtime       10:07              10:07          however long ago that is
    a restore      08:07              10:07          what fired since is unknown

Two instants of a witness are at least `APART_MS` from each other. A note that is younger than
`TRUSTED_MS` can therefore have no newer witness, and a tick reads only the note: the witness itself
is read in the last minutes of an hour, and if an hourly count failed.

A backup that is younger than the newest instant looks like downtime: at most an hour of fires is
repeated then.
"""

import json
import logging
from typing import Final, NamedTuple

from duetick.core.store import Store
from duetick.core.wire import iso
from duetick.domain.errors import StoreRestored, WitnessUnavailable
from duetick.domain.policies import MINUTE_MS
from duetick.ports import Witness

NOTE: Final = "witness"
NOTE_OF_RESTORE: Final = "restored"
APART_MS: Final = 55 * MINUTE_MS
TRUSTED_MS: Final = 53 * MINUTE_MS
"""A tick's clock may be behind the clock of the hourly count by the difference."""

logger = logging.getLogger("duetick.witness")


class Restored(NamedTuple):
    """A restore: the store's newest note, if it has one, its witness, and when it was found.

    Ticks claim nothing from `found_at` on, so every time after it did not fire.
    """

    noted: int | None
    witnessed: int
    found_at: int


def is_trusted(noted: str | None, now: int) -> bool:
    """Return True if a note of the store is so young that no newer witness can be."""
    return noted is not None and 0 <= now - int(noted) < TRUSTED_MS


def check_witness(store: Store, witness: Witness, now: int) -> None:
    """Raise StoreRestored if the store is older than its witness.

    If the witness does not answer, a line of the log says so and nothing is raised. The hourly
    count fails then: that is a better alarm than schedules that stand still.
    """
    if is_trusted(store.shelf.note(NOTE), now):
        return
    try:
        found = find_restore(store, witness, now)
    except WitnessUnavailable:
        logger.warning("the witness was not read", extra={"action": "witness_failed"})
        return
    if found:
        note_restore(store, found)
        raise refusal_of(found)


def find_restore(store: Store, witness: Witness, now: int) -> Restored | None:
    """Return the restore that the store has not recovered from, or None.

    A store that holds nothing is new: it has nothing to fire, so it catches up with its witness.
    """
    noted, witnessed = read_noted(store), witness.read()
    if witnessed is None or (noted is not None and noted >= witnessed):
        return None
    if noted is None and next(iter(store.shelf.every_book()), None) is None:
        catch_up(store, witnessed)
        return None
    kept = json.loads(store.shelf.note(NOTE_OF_RESTORE) or "{}")
    found_at = kept["found_at"] if kept.get("witnessed") == witnessed else now
    return Restored(noted, witnessed, found_at)


def note_restore(store: Store, found: Restored) -> None:
    """Note when a restore was found. Only a tick and a recovery do: before, another store fires."""
    kept = {"witnessed": found.witnessed, "found_at": found.found_at}
    store.shelf.keep_note(NOTE_OF_RESTORE, json.dumps(kept))


def read_restore(store: Store) -> Restored | None:
    """Return the restore for which ticks claim nothing, or None.

    A tick has noted it: the witness is not read.
    """
    kept, noted = json.loads(store.shelf.note(NOTE_OF_RESTORE) or "{}"), read_noted(store)
    if not kept or (noted is not None and noted >= kept["witnessed"]):
        return None
    return Restored(noted, kept["witnessed"], kept["found_at"])


def keep_witness(store: Store, witness: Witness, now: int) -> None:
    """Note the instant in the store, then in the witness, unless the newest one is too young.

    Raises StoreRestored if the store is older than its witness, which then stays as it is.
    """
    found = find_restore(store, witness, now)
    if found:
        logger.error("restored", extra={"action": "restored", "witnessed": iso(found.witnessed)})
        raise refusal_of(found)
    noted, witnessed = read_noted(store), witness.read()
    newest = max(noted or 0, witnessed or 0)
    if noted == witnessed and 0 <= now - newest < APART_MS:
        return
    at = max(now, newest + 1)
    store.shelf.keep_note(NOTE, str(at))
    witness.write(at)


def catch_up(store: Store, witnessed: int) -> None:
    """Note in the store the instant of its witness, so that the store is not older any more."""
    store.shelf.keep_note(NOTE, str(witnessed))


def read_noted(store: Store) -> int | None:
    """Return the newest instant that the store has noted, or None."""
    kept = store.shelf.note(NOTE)
    return None if kept is None else int(kept)


def refusal_of(found: Restored) -> StoreRestored:
    """Return the error of a claim on a store that was restored."""
    noted = f"it was last noted at {iso(found.noted)}" if found.noted else "it was never noted"
    return StoreRestored(
        f"The store was restored from a backup: {noted}, and its witness says "
        f"{iso(found.witnessed)}. What fired since is unknown, so nothing is claimed. Say what to "
        'do with `duetick recover`, or invoke the migrate function with {"Step": "recover"}: '
        "both begin with a dry run."
    )
