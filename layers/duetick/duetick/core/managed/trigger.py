"""The note of the trigger: its deployment says what brings the nominal times of a store.

It names the resources of the stack that a function's own environment cannot name, because they
depend on the function. After a stack has moved to bells, the note also says how many of the bells
have been made.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import Final

from duetick.core.store import Store
from duetick.domain.errors import ConfigurationError

NOTE: Final = "trigger"
MOVED_UNTIL: Final = "marked_until"
"""The name of `moved_until` in the note: code of before reads and writes it so."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """The trigger of a store. `group` and `role` are those of its bells. The bells call the
    function `dispatch`, a wake calls the function `tick`.

    `moved_until` is the place up to which a move has made the bells of all rows pending; None after
    the last. Once all of these are put, the trigger is `settled`: ticks leave rows to bells.
    """

    deployment: str
    group: str = ""
    role: str = ""
    dispatch: str = ""
    tick: str = ""
    moved_until: str | None = ""
    settled: bool = False

    @property
    def is_managed(self) -> bool:
        """True if bells ring; False if a tick comes each minute instead."""
        return bool(self.group)

    def is_of(self, wanted: "Trigger") -> bool:
        """Return True if its bells are those of another trigger."""
        return replace(self, moved_until="", settled=False) == wanted


def read_trigger(store: Store) -> Trigger | None:
    """Return the trigger of the store; None if no deployment has named one."""
    kept = store.shelf.note(NOTE)
    if kept is None:
        return None
    body = json.loads(kept)
    return Trigger(moved_until=body.pop(MOVED_UNTIL), **body)


def keep_trigger(store: Store, trigger: Trigger) -> None:
    """Keep the trigger of the store."""
    body = asdict(trigger)
    body[MOVED_UNTIL] = body.pop("moved_until")
    store.shelf.keep_note(NOTE, json.dumps(body))


def check_alone(known: Trigger | None, wanted: Trigger) -> None:
    """Raise ConfigurationError if the bells of another deployment ring for the store."""
    if known and known.is_managed and known.deployment != wanted.deployment:
        raise ConfigurationError(
            f"The bells of the deployment {known.deployment!r} ring for this store, and a store "
            "has those of one. Deploy that one with Trigger=tick first; a stack that takes its "
            f"place is deployed with Deployment={known.deployment}."
        )
