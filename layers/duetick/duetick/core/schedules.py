"""The schedules of one user: the use cases of users, their agents and operators."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeVar

from duetick.core.accepting import Quotas, find_refusals
from duetick.core.definitions import refuse_once
from duetick.core.flows import Flows
from duetick.core.rates import count
from duetick.core.retrying import retry
from duetick.core.rights import (
    check_action,
    check_external_id,
    check_hook,
    check_named_principal,
    check_not_withheld,
    check_principal,
    check_reserved_key,
    check_work,
    vouch,
)
from duetick.core.store import Listing, Page, Sift, Store
from duetick.domain.creation import Made, Repeatable
from duetick.domain.errors import NotFound, Refusal, VersionConflict, refusals_of
from duetick.domain.identity import InvalidId, check_external, check_key, check_user, is_job
from duetick.domain.pausing import ends_pause, keep_pause, pause, resume
from duetick.domain.schedule import FLOW_USER, Record, Schedule, dump_input
from duetick.domain.versions import Expected, check_version
from duetick.ports import Clock

if TYPE_CHECKING:
    from duetick.core.explain import Explanation
    from duetick.core.previews import Preview

T = TypeVar("T")

TRIES: Final = 8

LARGEST_PAGE: Final = 512 * 1024
"""The most characters of inputs in an answer: escaped, they must fit into a function's 6 MB."""

Edit = Callable[[Record], Schedule]


@dataclass(frozen=True, slots=True)
class UserSchedules:
    """The schedules of one user. No method reads or changes another user's schedules.

    With `owns_names`, the application is the caller: it may set outside ids, which are unique
    across all users, and change schedules that run as another principal. Users and agents may not.
    Unless `stores`, a put is a dry run: checked as any, and not stored.
    """

    store: Store
    flows: Flows
    user_id: str
    clock: Clock
    quotas: Quotas = field(default_factory=Quotas)
    owns_names: bool = False
    stores: bool = True

    def __post_init__(self) -> None:
        if not self.user_id:
            raise InvalidId("user", "must not be empty.")
        check_user(self.user_id)

    def find(self, key: str) -> Record | None:
        """Return the schedule, or None."""
        check_key(self.user_id, key)
        return None if is_job(key) else self.store.schedules.get(self.user_id, key)

    def get(self, key: str) -> Record:
        """Return the schedule. Raises NotFound."""
        found = self.find(key)
        if found is None:
            raise NotFound
        return found

    def get_runnable(self, key: str) -> Record:
        """Return the schedule for a run by hand. Raises InvalidSchedule if users may not run it."""
        found = self.get(key)
        if not self.owns_names:
            self.flows.check_for_users(found)
        return found

    def by_external(self, external_id: str) -> Record:
        """Return the schedule of an outside id. Raises NotFound if it is not this user's."""
        found = find_by_external(self.store, external_id)
        if found.user_id != self.user_id:
            raise NotFound
        return found

    def list(
        self,
        limit: int = 100,
        cursor: str | None = None,
        state: Listing = None,
        takes: Sift | None = None,
    ) -> Page:
        """Return a page, ordered by key. The page may be short if the inputs are large.

        Without a `state`, the page has the schedules that are active or paused. With `takes`, it
        has those that `takes` accepts.
        """
        page = self._page(limit, cursor, state, takes)
        sizes = [len(dump_input(schedule.input)) for schedule in page.schedules]
        fitting = sum(total <= LARGEST_PAGE for total in accumulate(sizes))
        if fitting == len(sizes):
            return page
        return self._page(fitting, cursor, state, takes)

    def _page(self, limit: int, cursor: str | None, state: Listing, takes: Sift | None) -> Page:
        now = self.clock()
        return self.store.schedules.list(
            self.user_id, limit=limit, cursor=cursor, state=state, now=now, takes=takes
        )

    def create(self, wanted: Schedule, repeatable: Repeatable | None = None) -> Record:
        """Create a schedule. Raises VersionConflict if its key is taken.

        A `repeatable` creation happens once. A repeat returns the schedule as it was created, even
        if it has changed since.
        """
        new = self._pause_if_disabled(self.flows.with_defaults(wanted))
        earlier = self._find_repeated(new, repeatable)
        if earlier:
            return self.with_warning(earlier)
        try:
            return self._put(new, None, if_version=0, repeatable=repeatable)
        except VersionConflict:
            earlier = self._find_repeated(new, repeatable)
            if earlier:
                return self.with_warning(earlier)
            raise

    def with_warning(self, record: Record) -> Record:
        """Return the record with the warning that a put of it would give, if any: it fires too
        often.
        """
        return self.store.schedules.with_warning(record, now=self.clock())

    def find_creation(self, name: str) -> Made | None:
        """Return the result of a repeatable creation; None if there was none, or it is too old."""
        return self.store.schedules.creation(self.user_id, name, now=self.clock())

    def _find_repeated(self, wanted: Schedule, repeatable: Repeatable | None) -> Record | None:
        found = self.find_creation(repeatable.name) if repeatable else None
        return found.repeat(wanted, repeatable) if found and repeatable else None

    def replace(
        self, wanted: Schedule, *, if_version: Expected | None = None, resume: bool = False
    ) -> tuple[Record, bool]:
        """Create or replace a schedule. Return it, and True if it was created.

        A replaced schedule keeps its pause, unless `resume` is true. A policy that is not chosen
        has the default that its action has now.
        """
        wanted = self.flows.with_defaults(wanted)

        def attempt() -> tuple[Record, bool]:
            current = self.find(wanted.key)
            version = _version(current, if_version)
            new = self._replacement(current, wanted, resume=resume)
            return self._put(new, current, if_version=version), current is None

        return self._repeat(attempt, if_version)

    def change(self, key: str, change: Edit, *, if_version: Expected | None = None) -> Record:
        """Read a schedule, change it and write it back."""

        def attempt() -> Record:
            current = self.get(key)
            version = _version(current, if_version)
            return self._put(change(current), current, if_version=version)

        return self._repeat(attempt, if_version)

    def _repeat(self, attempt: Callable[[], T], if_version: Expected | None) -> T:
        """Repeat an attempt after the write of another, unless the caller expects a version."""
        return retry(attempt, VersionConflict, 1 if if_version is not None else TRIES)

    def pause(
        self,
        key: str,
        *,
        note: str = "",
        until: int | None = None,
        if_version: Expected | None = None,
    ) -> Record:
        """Pause the schedule, for good or until an instant."""
        now = self.clock()
        return self.change(key, lambda found: pause(found, note, until, now), if_version=if_version)

    def resume(self, key: str, *, if_version: Expected | None = None) -> Record:
        """Resume the schedule from now on.

        If its row differs from the record, repair the row too; if it was unreadable, the times
        since are a misfire.
        """
        found = self.change(key, resume, if_version=if_version)
        if found.defect is not None:
            self.store.index.restore(self.user_id, key, now=self.clock())
        elif not self.store.mend(self.user_id, key, now=self.clock()):
            return found
        return self.get(key)

    def delete(self, key: str, *, if_version: Expected | None = None) -> None:
        """Delete the schedule, and account for its due times. Raises NotFound."""
        self.get(key)
        now = self.clock()
        if not self.store.schedules.delete(self.user_id, key, now=now, if_version=if_version):
            raise NotFound

    def upcoming(self, key: str, count: int) -> "Sequence[Preview]":
        """Return the next fire times; none if it is done, or paused without an end."""
        from duetick.core.explain import next_fires  # few requests ask for it

        return next_fires(self.store, self.get(key), self.clock(), count)

    def explain(self, key: str, at: int | None = None) -> "Explanation":
        """Explain why the schedule fired at a time, or did not, or whether it will; now by default.

        Raises NotFound if there is neither a schedule nor a history.
        """
        from duetick.core.explain import explain  # few requests ask for it

        check_key(self.user_id, key)
        if is_job(key):
            raise NotFound
        now = self.clock()
        return explain(self.store, self.user_id, key, now if at is None else at, now)

    def count_write(self) -> None:
        """Count a write, before it is checked. Raises RateReached.

        The writes of the application and of static schedules have no limit.
        """
        if not self.owns_names and not self.user_id.startswith(FLOW_USER):
            count(self.store, self.user_id, "writes", self.quotas.writes_a_minute, self.clock())

    def _pause_if_disabled(self, wanted: Schedule) -> Schedule:
        """Pause a schedule that is requested as not enabled."""
        if wanted.enabled or wanted.pause:
            return wanted
        return pause(wanted, "", None, self.clock())

    def _replacement(self, current: Schedule | None, wanted: Schedule, *, resume: bool) -> Schedule:
        if current is None:
            return self._pause_if_disabled(wanted)
        kept = self._keep_applications(current, wanted)
        return self.with_pause(current, kept, resume=resume)

    def with_pause(self, current: Schedule, wanted: Schedule, *, resume: bool) -> Schedule:
        """Return a change under the pause that it keeps or makes. With `resume`, it keeps none."""
        if resume or not wanted.enabled:
            return self._pause_if_disabled(wanted)
        return keep_pause(current, wanted, self.clock())

    def _keep_applications(self, current: Schedule, wanted: Schedule) -> Schedule:
        """Keep the fields of the application: a user's replacement cannot contain them."""
        kept = replace(wanted, principal=wanted.principal or current.principal)
        if not self.owns_names and wanted.external_id is None:
            kept = replace(kept, external_id=current.external_id)
        return kept

    def _put(
        self,
        wanted: Schedule,
        current: Record | None,
        *,
        if_version: Expected,
        repeatable: Repeatable | None = None,
    ) -> Record:
        now = self.clock()
        if self.owns_names:
            wanted = vouch(self.flows, current, wanted)
        refuse_once(self._refusals(wanted, current))
        if not self.stores:
            at_most = self.quotas.schedules
            return self.store.schedules.try_put(
                wanted, now=now, if_version=if_version, at_most=at_most
            )
        return self.store.schedules.put(
            wanted,
            now=now,
            if_version=if_version,
            at_most=self.quotas.schedules,
            repeatable=repeatable,
        )

    def find_refusals(self, wanted: Schedule, *, new: bool = False) -> Sequence[Refusal]:
        """Return everything that is wrong with a new schedule, or with a replacement."""
        current = None if new else self.find(wanted.key)
        wanted = self.flows.with_defaults(wanted)
        if current:
            wanted = self._keep_applications(current, wanted)
        if self.owns_names:
            wanted = vouch(self.flows, current, wanted)
        return self._refusals(wanted, current)

    def _refusals(self, wanted: Schedule, current: Record | None) -> Sequence[Refusal]:
        """Return the refusals by the rights of the caller and by the checks of a schedule."""
        found = refusals_of(self._rules(wanted, current))
        if current is None or _changes_more_than_pause(current, wanted):
            may_be_done = current is not None and (
                ends_pause(current, wanted) or _stays_done(current, wanted)
            )
            found += find_refusals(
                wanted, self.flows, self.quotas, self.clock(), may_be_done=may_be_done
            )
        return found

    def _rules(self, wanted: Schedule, current: Record | None) -> Iterator[Callable[[], None]]:
        """Yield the checks of the caller's rights."""
        yield lambda: check_key(self.user_id, wanted.key)
        yield lambda: self.flows.check_fixed(wanted, current)
        if not self.owns_names:
            yield lambda: check_principal(current, wanted)
            yield lambda: check_external_id(current, wanted)
            yield lambda: check_work(current, wanted)
            yield lambda: check_action(self.flows, current, wanted)
            yield lambda: check_hook(self.flows, current, wanted)
        else:
            yield lambda: check_not_withheld(current, wanted)
            yield lambda: check_named_principal(current, wanted)
        if current is None:
            yield lambda: check_reserved_key(wanted)


def find_by_external(store: Store, external_id: str) -> Record:
    """Return the schedule of an outside id, whosever it is. Raises NotFound."""
    check_external(external_id)
    found = store.schedules.find_by_external(external_id)
    if found is None:
        raise NotFound
    return found


def _version(current: Record | None, if_version: Expected | None) -> Expected:
    """Return the version to replace. Raises VersionConflict if the caller expects another."""
    check_version(current, if_version)
    return current or 0


def _changes_more_than_pause(current: Record, wanted: Schedule) -> bool:
    """Return True unless the change only pauses. A pause is allowed even if the checks changed."""
    is_same = resume(current).defines(resume(wanted))
    return not is_same or (wanted.enabled and not current.enabled)


def _stays_done(current: Record, wanted: Schedule) -> bool:
    """Return True if a schedule that is done is changed otherwise than in its fire times."""
    is_alike = (wanted.enabled, wanted.times) == (current.enabled, current.times)
    return current.done_at is not None and is_alike
