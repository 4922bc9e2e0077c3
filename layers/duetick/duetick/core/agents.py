"""`ctx.schedules`: the schedules of an action's user, for the action or an agent in it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypedDict, Unpack

from duetick.core.definitions import (
    Draft,
    GivenCron,
    GivenPolicies,
    draft,
    draft_cron,
    draft_policies,
)
from duetick.core.schedules import UserSchedules
from duetick.core.store import Listing
from duetick.core.wire import instant, moment
from duetick.domain.errors import InvalidSchedule, VersionConflict
from duetick.domain.schedule import Json, Record, Schedule, dump_input

AT_ONCE: Final = 100
"""The lines of a history that are read at a time."""


class ScheduleFields(TypedDict, total=False):
    """The fields of a schedule besides cron and action.

    Without `flow`, the schedule belongs to the flow of the running action.
    """

    flow: str
    timezone: str | None
    input: Json
    policies: GivenPolicies
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class AgentSchedules:
    """The schedules of the user for whom an action runs, with the checks and quotas of the API."""

    schedules: UserSchedules
    flow: str

    def actions(self) -> list[Json]:
        """Return the actions that the user may schedule, with their defaults, as the API does."""
        from duetick.core.offers import offers  # few actions ask for it

        return offers(self.schedules.flows, to_users=True)

    def schema(self, action: str, *, flow: str | None = None) -> dict[str, Json]:
        """Return the JSON Schema of the arguments of `create` for an action, for an agent's tool.

        It names only the policies that a schedule may change.
        """
        from duetick.core.offers import schema_of  # few actions ask for it

        return schema_of(self.schedules.flows, self.flow if flow is None else flow, action)

    def get(self, key: str) -> Record | None:
        """Return the schedule, or None."""
        return self.schedules.find(key)

    def list(
        self,
        state: Listing = None,
        *,
        flow: str | None = None,
        label: str | None = None,
        text: str | None = None,
    ) -> Iterator[Record]:
        """Yield the schedules that are active or paused, by key; or those in one `state`.

        They are of the `flow`, have the `label` (NAME=TEXT), and the `text` in key, cron, flow,
        action, outside id or labels.
        """
        from duetick.core.sought import Sought  # few actions list any

        sought = Sought.read(flow, label, text)
        takes = None if sought.anything else sought.takes
        cursor: str | None = None
        while True:
            page = self.schedules.list(cursor=cursor, state=state, takes=takes)
            yield from page.schedules
            cursor = page.cursor
            if cursor is None:
                return

    def history(
        self,
        key: str,
        *,
        state: str | None = None,
        since: int | str | None = None,
        until: int | str | None = None,
    ) -> Iterator[dict[str, Json]]:
        """Yield the history of a schedule, newest first, as the API shows it to the user.

        `state` selects one state, `since` and `until` the time from one instant to before another.
        """
        from duetick.core.histories import Wanted, history_page, lines  # few actions ask for it

        wanted = Wanted.read(state, since, until)
        cursor: str | None = None
        while True:
            page, cursor = history_page(self.schedules, key, AT_ONCE, cursor, wanted)
            yield from lines(self.schedules.store.ledger, page, operator=False)
            if cursor is None:
                return

    def explain(self, key: str, *, at: int | str | None = None) -> dict[str, Json]:
        """Return why the schedule fired at a time or did not, or if it will fire, as the API shows
        that to the user.

        The time is now by default. Raises NotFound.
        """
        from duetick.core.wording import explanation_json  # few actions ask for it

        found = self.schedules.explain(key, moment("at", at))
        return explanation_json(found, operator=False)

    def create(
        self, key: str, *, cron: GivenCron, action: str, **more: Unpack[ScheduleFields]
    ) -> Record:
        """Create a schedule. If exactly the same one exists, return it: a retried action may repeat
        its call. Raises VersionConflict if another schedule has the key.
        """
        self.schedules.count_write()
        request = self._draft(key, cron, action, more)
        found = None if request.refusals else self.schedules.find(key)
        if found and _same_definition(found, _as_kept(request.readable)):
            return self.schedules.with_warning(found)
        wanted = self._read(request)
        try:
            return self.schedules.create(wanted)
        except VersionConflict:
            found = self.schedules.get(key)
            if _same_definition(found, wanted):
                return self.schedules.with_warning(found)
            raise

    def replace(
        self, key: str, *, cron: GivenCron, action: str, **more: Unpack[ScheduleFields]
    ) -> Record:
        """Create or replace a schedule. A replaced schedule keeps its pause."""
        self.schedules.count_write()
        request = self._draft(key, cron, action, more)
        return self.schedules.replace(self._read(request))[0]

    def pause(self, key: str, *, note: str = "", until: int | str | None = None) -> Record:
        """Pause the schedule, for good or until an instant: milliseconds, or a text of the API."""
        self.schedules.count_write()
        return self.schedules.pause(key, note=note, until=instant("until", until))

    def resume(self, key: str) -> Record:
        """Resume the schedule."""
        self.schedules.count_write()
        return self.schedules.resume(key)

    def delete(self, key: str) -> bool:
        """Delete the schedule. Return False if there is none."""
        if self.schedules.find(key) is None:
            return False
        self.schedules.count_write()
        self.schedules.delete(key)
        return True

    def _read(self, request: Draft) -> Schedule:
        """Return the schedule of a request. Raises InvalidSchedule naming all that is wrong."""
        return _as_kept(request.schedule(self.schedules.find_refusals))

    def _draft(self, key: str, cron: GivenCron, action: str, more: ScheduleFields) -> Draft:
        """Read a request. A model may have invented the arguments: their names are checked too."""
        known = ", ".join(ScheduleFields.__annotations__)
        unknown = [
            InvalidSchedule(
                (name,), f"is not a field; besides cron and action: {known}.", "unknown_field"
            )
            for name in sorted(more.keys() - ScheduleFields.__annotations__.keys())
        ]
        given: dict[str, Any] = {
            name: value for name, value in more.items() if name in ScheduleFields.__annotations__
        }
        policies, unfit, doubts = draft_policies(given.get("policies"))
        text, wrong = draft_cron(cron)
        fields = {"flow": self.flow, **given, "cron": text, "action": action, "policies": policies}
        drafted = draft(self.schedules.user_id, key, fields, [*unknown, *wrong, *unfit])
        return replace(drafted, doubts=doubts).with_defaults(self.schedules.flows.with_defaults)


def _as_kept(wanted: Schedule) -> Schedule:
    """Return the schedule with its input as JSON keeps it, so that a repeat is the same."""
    return replace(wanted, input=json.loads(dump_input(wanted.input)))


def _same_definition(found: Schedule, wanted: Schedule) -> bool:
    """Return True if a repeated creation requests the existing schedule."""
    names = ("cron", "timezone", "flow", "action", "input", "policies", "labels", "external_id")
    return all(getattr(found, name) == getattr(wanted, name) for name in names)
