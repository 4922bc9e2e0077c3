"""What users, their agents and operators do with schedules: one user's namespace at a time."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final, TypeVar

from duetick.core.accepting import Quotas, check
from duetick.core.flows import Flows
from duetick.core.previews import Preview, previews
from duetick.domain.creation import Repeatable
from duetick.domain.errors import InvalidSchedule, NotFound, VersionConflict
from duetick.domain.identity import InvalidId, check_external, check_key
from duetick.domain.pausing import as_paused_as, paused, resumed
from duetick.domain.redaction import WITHHELD, is_redacted
from duetick.domain.schedule import Json, Schedule, dump_input
from duetick.domain.versions import Expected, check_version
from duetick.ports import Clock, Page, Store

T = TypeVar("T")

TRIES: Final = 8

LARGEST_PAGE: Final = 512 * 1024
"""Characters of inputs in one answer: a function's may have 6 MB, in which each is escaped."""

BY_EXTERNAL: Final = "by-external"
"""In paths, what precedes an outside id: a schedule of that key would have no history there."""

Change = Callable[[Schedule], Schedule]


def new_key() -> str:
    """A key for a schedule that was given none."""
    return f"s-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class UserSchedules:
    """One user's schedules. Nothing here reaches beyond `user_id`.

    `owns_names` says that it is the application who asks: it hands out outside ids, which are names
    across all users, and changes what runs as another principal. A user does neither, nor an agent.
    """

    store: Store
    flows: Flows
    user_id: str
    clock: Clock
    quotas: Quotas = field(default_factory=Quotas)
    owns_names: bool = False

    def __post_init__(self) -> None:
        if not self.user_id:
            raise InvalidId("user", "must not be empty.")
        check_key(self.user_id, "any")

    def find(self, key: str) -> Schedule | None:
        """The schedule, None where there is none."""
        check_key(self.user_id, key)
        return self.store.schedules.get(self.user_id, key)

    def get(self, key: str) -> Schedule:
        """The schedule; raise NotFound."""
        found = self.find(key)
        if found is None:
            raise NotFound
        return found

    def by_external(self, external_id: str) -> Schedule:
        """The schedule of that outside id, if it is this user's; raise NotFound."""
        check_external(external_id)
        found = self.store.schedules.find_by_external(external_id)
        if found is None or found.user_id != self.user_id:
            raise NotFound
        return found

    def list(self, limit: int = 100, cursor: str | None = None) -> Page:
        """A page, ordered by key: of fewer than asked for where their inputs are large."""
        page = self.store.schedules.list(self.user_id, limit=limit, cursor=cursor)
        sizes = [len(dump_input(schedule.input)) for schedule in page.schedules]
        fitting = sum(total <= LARGEST_PAGE for total in accumulate(sizes))
        if fitting == len(sizes):
            return page
        return self.store.schedules.list(self.user_id, limit=fitting, cursor=cursor)

    def create(self, wanted: Schedule, repeatable: Repeatable | None = None) -> Schedule:
        """A new schedule; raise VersionConflict where its key is taken.

        What is `repeatable` is made once: later it is told as it was made, whatever became of it.
        """
        new = self._off(wanted)
        earlier = self._made(new, repeatable)
        if earlier:
            return earlier
        try:
            return self._put(new, None, if_version=0, repeatable=repeatable)
        except VersionConflict:
            earlier = self._made(new, repeatable)
            if earlier:
                return earlier
            raise

    def _made(self, wanted: Schedule, repeatable: Repeatable | None) -> Schedule | None:
        if repeatable is None:
            return None
        found = self.store.schedules.made(self.user_id, repeatable.name, now=self.clock())
        return found.again(wanted, repeatable) if found else None

    def replace(
        self, wanted: Schedule, *, if_version: Expected | None = None, resume: bool = False
    ) -> tuple[Schedule, bool]:
        """Create or replace; also whether it was created.

        A pause outlives being replaced, unless `resume` says otherwise.
        """

        def attempt() -> tuple[Schedule, bool]:
            current = self.find(wanted.key)
            version = _version(current, if_version)
            new = self._replacing(current, wanted, resume=resume) if current else self._off(wanted)
            return self._put(new, current, if_version=version), current is None

        return self._again(attempt, if_version)

    def change(self, key: str, change: Change, *, if_version: Expected | None = None) -> Schedule:
        """Read, change and write back."""

        def attempt() -> Schedule:
            current = self.get(key)
            version = _version(current, if_version)
            return self._put(change(current), current, if_version=version)

        return self._again(attempt, if_version)

    def _again(self, attempt: Callable[[], T], if_version: Expected | None) -> T:
        """Do it again where somebody else wrote first, unless a version is asked for."""
        left = 1 if if_version is not None else TRIES
        while True:
            left -= 1
            try:
                return attempt()
            except VersionConflict:
                if not left:
                    raise

    def pause(
        self,
        key: str,
        *,
        note: str = "",
        until: int | None = None,
        if_version: Expected | None = None,
    ) -> Schedule:
        """Keep it from firing, for ever or until an instant."""
        now = self.clock()
        return self.change(
            key, lambda found: paused(found, note, until, now), if_version=if_version
        )

    def resume(self, key: str, *, if_version: Expected | None = None) -> Schedule:
        """Let it fire again, from now on."""
        return self.change(key, resumed, if_version=if_version)

    def delete(self, key: str, *, if_version: Expected | None = None) -> None:
        """Gone, with what was due of it accounted for; raise NotFound."""
        self.get(key)
        now = self.clock()
        if not self.store.schedules.delete(self.user_id, key, now=now, if_version=if_version):
            raise NotFound

    def upcoming(self, key: str, count: int) -> Sequence[Preview]:
        """The next fire times; none where it is paused without an end."""
        schedule = self.get(key)
        return previews(schedule, self.clock(), count) if schedule.enabled else []

    def _off(self, wanted: Schedule) -> Schedule:
        """A schedule that is asked for as not enabled is paused."""
        if wanted.enabled or wanted.pause:
            return wanted
        return paused(wanted, "", None, self.clock())

    def _replacing(self, current: Schedule, wanted: Schedule, *, resume: bool) -> Schedule:
        kept = replace(wanted, principal=wanted.principal or current.principal)
        if not self.owns_names and wanted.external_id is None:
            kept = replace(kept, external_id=current.external_id)
        if resume or not wanted.enabled:
            return self._off(kept)
        return as_paused_as(current, kept, self.clock())

    def _put(
        self,
        wanted: Schedule,
        current: Schedule | None,
        *,
        if_version: Expected,
        repeatable: Repeatable | None = None,
    ) -> Schedule:
        check_key(self.user_id, wanted.key)
        if wanted.external_id is not None:
            check_external(wanted.external_id)
        now = self.clock()
        if not self.owns_names:
            _check_own(current, wanted)
        elif current is None or current.input != wanted.input:
            _check_whole(wanted)
        if current is None and wanted.key == BY_EXTERNAL:
            raise InvalidId("key", f"{BY_EXTERNAL!r} is a word of the API's paths; name another.")
        if current is None or _asks_again(current, wanted):
            check(wanted, self.flows, self.quotas, now)
        return self.store.schedules.put(
            wanted,
            now=now,
            if_version=if_version,
            at_most=self.quotas.schedules,
            repeatable=repeatable,
        )


def _check_own(current: Schedule | None, wanted: Schedule) -> None:
    """A user may not give a name across all users, nor choose what runs as somebody else, or who
    that is. An agent says it in Python, where no body's shape stands before it.
    """
    if wanted.principal != (current and current.principal):
        raise InvalidSchedule(
            "principal",
            "is named by the application: what a user or an agent makes runs as the user; leave "
            "it out.",
        )
    if wanted.external_id != (current and current.external_id):
        raise InvalidSchedule(
            "externalId",
            "is given by the application, since it is one name across all users; leave it out.",
        )
    if current and current.principal and _what(current) != _what(wanted):
        raise InvalidSchedule(
            "action",
            "runs as whom the application named: flow, action and input are its to change. "
            "When it fires, and whether, is yours.",
        )


def _check_whole(wanted: Schedule) -> None:
    """An operator is not shown all of an input, and may not write back what is shown."""
    if is_redacted(wanted.input):
        raise InvalidSchedule(
            "input",
            f"holds {WITHHELD}, which stands for what operators are not shown. PATCH the other "
            "fields and leave the input out, or give the value itself.",
        )


def _what(schedule: Schedule) -> tuple[str, str, Json]:
    return schedule.flow, schedule.action, schedule.input


def _version(current: Schedule | None, if_version: Expected | None) -> Expected:
    """What is there, which has to be what is asked for."""
    check_version(current, if_version)
    return current or 0


def _asks_again(current: Schedule, wanted: Schedule) -> bool:
    """Whether more than its pause changes: a pause must work for what is no longer accepted."""
    bare = resumed(wanted)
    return bare != resumed(current) or (wanted.enabled and not current.enabled)


def same_definition(found: Schedule, wanted: Schedule) -> bool:
    """Whether a repeated creation asks for what is there."""
    names = ("cron", "timezone", "flow", "action", "input", "policies", "labels", "external_id")
    return all(getattr(found, name) == getattr(wanted, name) for name in names)


def merged(body: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """A definition with the fields of a patch; in policies and labels, name by name.

    null takes a field back to its default.
    """
    result = dict(body)
    for name, value in patch.items():
        inner = result.get(name)
        if value is None:
            result.pop(name, None)
        elif name in ("policies", "labels") and isinstance(value, dict) and isinstance(inner, dict):
            both = {**inner, **value}
            result[name] = {key: text for key, text in both.items() if text is not None}
        else:
            result[name] = value
    return result
