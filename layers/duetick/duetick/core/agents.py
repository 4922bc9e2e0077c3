"""`ctx.schedules`: what an action, or an agent in it, does with the schedules of its user."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict, Unpack

from duetick.core.schedules import UserSchedules, same_definition
from duetick.core.wire import instant
from duetick.domain.errors import InvalidSchedule, VersionConflict
from duetick.domain.policies import Policies
from duetick.domain.schedule import Json, Schedule, dump_input


class Definition(TypedDict, total=False):
    """What a schedule can be given besides its cron and its action.

    Without `flow` it is of the action's own flow.
    """

    flow: str
    timezone: str | None
    input: Json
    policies: Policies
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class AgentSchedules:
    """The schedules of the user that the action acts for, with the API's checks and quotas."""

    own: UserSchedules
    flow: str

    def get(self, key: str) -> Schedule | None:
        """The schedule, None where there is none."""
        return self.own.find(key)

    def list(self) -> Iterator[Schedule]:
        """All of them, ordered by key."""
        cursor: str | None = None
        while True:
            page = self.own.list(cursor=cursor)
            yield from page.schedules
            cursor = page.cursor
            if cursor is None:
                return

    def create(self, key: str, *, cron: str, action: str, **more: Unpack[Definition]) -> Schedule:
        """A new schedule. Where the very same is there, that one: an action that is tried again
        may say again what it said. Raises VersionConflict where another has the key.
        """
        wanted = self._wanted(key, cron, action, more)
        try:
            return self.own.create(wanted)
        except VersionConflict:
            found = self.own.get(key)
            if same_definition(found, wanted):
                return found
            raise

    def replace(self, key: str, *, cron: str, action: str, **more: Unpack[Definition]) -> Schedule:
        """Create or replace. A pause outlives it."""
        return self.own.replace(self._wanted(key, cron, action, more))[0]

    def pause(self, key: str, *, note: str = "", until: int | str | None = None) -> Schedule:
        """Keep it from firing, for ever or until an instant: milliseconds, or as the API has it."""
        return self.own.pause(key, note=note, until=instant("until", until))

    def resume(self, key: str) -> Schedule:
        """Let it fire again."""
        return self.own.resume(key)

    def delete(self, key: str) -> bool:
        """False where there was none."""
        if self.own.find(key) is None:
            return False
        self.own.delete(key)
        return True

    def _wanted(self, key: str, cron: str, action: str, more: Definition) -> Schedule:
        """What is asked for, its input as JSON keeps it: asked for again, it is the very same.

        A model may have made up the arguments, so their names are looked at here too.
        """
        for name in more.keys() - Definition.__annotations__.keys():
            known = ", ".join(Definition.__annotations__)
            raise InvalidSchedule(name[:40], f"is not a field; besides cron and action: {known}.")
        given: Definition = {"flow": self.flow, **more}
        given["input"] = json.loads(dump_input(given.get("input")))
        return Schedule(user_id=self.own.user_id, key=key, cron=cron, action=action, **given)
