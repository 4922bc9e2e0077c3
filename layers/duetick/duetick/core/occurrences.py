"""The occurrences of all users, which operators list, look into, retry, cancel and delete.

A question that no index answers is refused, never scanned: across users, only the occurrences that
run, wait or are dead are listed. A condition that an index does not answer is sifted from a bounded
number of occurrences.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from duetick.core.ids import read_time_of_id
from duetick.core.store import Store
from duetick.core.wire import instant
from duetick.domain.errors import (
    InvalidQuery,
    InvalidSchedule,
    OccurrenceConflict,
    OccurrenceNotFound,
)
from duetick.domain.identity import check_key, check_user
from duetick.domain.occurrence import LATEST, Identity, Leased, Occurrence, ScheduleName
from duetick.domain.operating import Operated, Operator
from duetick.domain.paging import make_cursor, read_anywhere
from duetick.domain.policies import DAY
from duetick.domain.states import LEASED, REASONS, TERMINAL, WAITING, Reason, State

OperatorVerb: TypeAlias = Literal["retry", "cancel", "delete"]
OriginKind: TypeAlias = Literal["schedule", "run", "call", "backfill", "failure", "job"]
"""What asked for an occurrence: the beginning of its origin."""

LOOKED_AT: Final = 500
"""The most occurrences that a page reads if it sifts them."""

MOST_IN_HISTORY: Final = 4 * LOOKED_AT
"""The most occurrences of a schedule that are read for an id."""

MOST_CHANGED: Final = 100
"""The most occurrences that one call changes."""

FIRST: Final = 10
"""The occurrences, and the refusals, that a call of many names."""

RUNNING: Final = "running"
SHOWN_STATES: Final[Mapping[str, frozenset[State]]] = {
    RUNNING: LEASED,
    **{one.value: frozenset({one}) for one in State if one is not State.FAILED},
}
"""The states that a caller may name. `running` stands for queued and processing."""

ACTS_ON: Final[Mapping[OperatorVerb, frozenset[State]]] = {
    "retry": frozenset({State.DEAD}),
    "cancel": LEASED | WAITING,
    "delete": TERMINAL | {State.QUEUED},
}
"""The states of the occurrences that a verb may change."""

UNFOUND: Final = (
    "Nothing with this id was found. Without user and key a store may find only what runs, waits "
    "or is dead: give both. Each log line shows them beside the id."
)


@dataclass(frozen=True, slots=True)
class Which:
    """The occurrences that a caller names: by state, reason, origin, flow, label, schedule and
    time.
    """

    states: frozenset[State] = frozenset()
    reason: Reason | None = None
    origin: str | None = None
    flow: str | None = None
    label: tuple[str, str] | None = None
    user_id: str | None = None
    key: str | None = None
    since: int = 0
    until: int = LATEST

    @classmethod
    def read(cls, given: Mapping[str, str | None]) -> "Which":
        """Read the filters of a caller. Raises InvalidSchedule naming a filter that is wrong.

        If there is a reason and no state, the state is the one that ends with the reason.
        """
        state, reason = given.get("state"), given.get("reason")
        if state is not None and state not in SHOWN_STATES:
            raise _not_one_of("state", state, SHOWN_STATES)
        if reason is not None and reason not in [one.value for one in Reason]:
            raise _not_one_of("reason", reason, Reason)
        origin = given.get("origin")
        if origin is not None and origin not in get_args(OriginKind):
            raise _not_one_of("origin", origin, get_args(OriginKind))
        states = SHOWN_STATES[state] if state else frozenset()
        if reason and not state:
            states = frozenset(one for one, ends in REASONS.items() if reason in ends)
        user_id, key = given.get("user"), given.get("key")
        if user_id is not None:
            check_user(user_id) if key is None else check_key(user_id, key)
        end = instant("to", given.get("until"))
        return cls(
            states=states,
            reason=Reason(reason) if reason else None,
            origin=origin,
            flow=given.get("flow"),
            label=read_label(given.get("label")),
            user_id=user_id,
            key=key,
            since=instant("from", given.get("since")) or 0,
            until=LATEST if end is None else end,
        )

    def narrow_to(self, verb: OperatorVerb) -> "Which":
        """Return it with the states that the verb acts on, where it names none: of all users, a
        delete acts on the dead.

        Raises InvalidQuery if it names others.
        """
        fitting = ACTS_ON[verb]
        if self.states - fitting:
            wanted = ", ".join(sorted(fitting))
            named = ", ".join(sorted(self.states))
            raise InvalidQuery(f"{verb} is for occurrences in state {wanted}; got {named}.")
        default = fitting
        if verb == "delete":
            default = ACTS_ON["retry"] if self.user_id is None else TERMINAL
        return self if self.states else replace(self, states=default)

    @property
    def sifts(self) -> bool:
        """True if a filter is applied to the occurrences that were read: no index answers it."""
        return (self.reason, self.origin, self.flow, self.label) != (None, None, None, None)

    def takes(self, one: Occurrence) -> bool:
        """Return True if an occurrence in one of the states is meant."""
        labelled = self.label is None or one.labels.get(self.label[0]) == self.label[1]
        asked = self.origin in (None, one.origin.partition(":")[0])
        of = self.reason in (None, one.reason) and self.flow in (None, one.flow)
        return labelled and asked and of


class OccurrencePage(NamedTuple):
    """Some occurrences, and the place at which the next ones begin; None if there are no more."""

    found: Sequence[Occurrence]
    cursor: str | None


class Declined(NamedTuple):
    """An occurrence that a verb did not change, and why."""

    occurrence: Occurrence
    why: str


class Bulk(NamedTuple):
    """The result of one call that changes occurrences: `first` names some of the changed ones.

    If it was a dry run, they would be changed.
    """

    changed: int
    declined: int
    first: Sequence[Occurrence]
    first_declined: Sequence[Declined]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class AllOccurrences:
    """The occurrences of all users, for operators."""

    store: Store

    def get(self, name: str, of: ScheduleName | None = None) -> Occurrence:
        """Return the occurrence of an id. Raises OccurrenceNotFound.

        If its schedule is given, at most `MOST_IN_HISTORY` of its occurrences are read for it.
        """
        found = self.store.ledger.find_by_id(name) if of is None else self._in_history(name, of)
        if found is None:
            raise OccurrenceNotFound(UNFOUND) if of is None else OccurrenceNotFound
        return found

    def _in_history(self, name: str, of: ScheduleName) -> Occurrence | None:
        """Look through a schedule's occurrences backwards: at first from a day after the time of
        the id on, then from the newest.
        """
        check_key(*of)
        made = read_time_of_id(name)
        starts = [LATEST] if made is None else [made + DAY * 1_000, LATEST]
        found = (self._before(name, of, start) for start in starts)
        return next((one for one in found if one), None)

    def _before(self, name: str, of: ScheduleName, start: int) -> Occurrence | None:
        before: int | Identity = start
        for _ in range(MOST_IN_HISTORY // LOOKED_AT):
            found = self.store.ledger.find(*of, limit=LOOKED_AT, before=before)
            named = next((one for one in found if one.id == name), None)
            if named or len(found) < LOOKED_AT:
                return named
            before = found[-1].identity
        return None

    def page(self, which: Which, limit: int, cursor: str | None = None) -> OccurrencePage:
        """Return a page, the newest first. It may be short, or empty, and have a next page.

        Raises InvalidQuery if no index answers.
        """
        before = which.until if cursor is None else read_anywhere(cursor)
        amount = max(limit, LOOKED_AT) if which.sifts else limit
        found = self.store.ledger.find(
            which.user_id, which.key, state=which.states, limit=amount + 1, before=before
        )
        page: list[Occurrence] = []
        for place, one in enumerate(found[:amount], 1):
            if one.nominal_at < which.since:
                return OccurrencePage(page, None)
            if which.takes(one):
                page.append(one)
            if len(page) == limit and place < len(found):
                return OccurrencePage(page, _cursor(one))
        more = len(found) > amount
        return OccurrencePage(page, _cursor(found[amount - 1]) if more else None)

    def change(
        self, verb: OperatorVerb, found: Leased, by: Operator, now: int, *, dry: bool = False
    ) -> Operated:
        """Retry, cancel or delete one. Raises OccurrenceConflict if it cannot be as it is."""
        ledger = self.store.ledger
        changes = {"retry": ledger.retry, "cancel": ledger.cancel, "delete": ledger.discard}
        return changes[verb](found, by, now=now, dry=dry)

    def change_many(
        self,
        verb: OperatorVerb,
        which: Which,
        by: Operator,
        limit: int,
        cursor: str | None = None,
        *,
        dry: bool = False,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> Bulk:
        """Retry, cancel or delete a page of the occurrences that are meant. `cursor` goes on after
        it.

        An occurrence that cannot be changed stays as it is, and counts by its reason. A dry run
        changes nothing, and gives the answer of a real one.
        """
        page = self.page(which.narrow_to(verb), min(limit, MOST_CHANGED), cursor)
        now, after = self.store.now(), page.cursor
        changed, declined = list[Occurrence](), list[Declined]()
        for place, one in enumerate(page.found):
            if place and not may_go_on():
                after = _cursor(page.found[place - 1])
                break
            try:
                answer = self.change(verb, one, by, now, dry=dry)
            except (OccurrenceConflict, OccurrenceNotFound) as problem:
                declined.append(Declined(one, str(problem)))
            else:
                changed += [one] if answer.changed else []
        return Bulk(len(changed), len(declined), changed[:FIRST], declined[:FIRST], after)


def _cursor(last: Occurrence) -> str:
    return make_cursor(last.nominal_at, last.user_id, last.key, last.origin)


def read_label(text: str | None) -> tuple[str, str] | None:
    """Return the name and the text of a filter such as team=garden, or None for none."""
    if text is None:
        return None
    name, equals, value = text.partition("=")
    if not name or not equals:
        said = f"expected NAME=TEXT, such as team=garden; got {text[:40]!r}."
        raise InvalidSchedule("label", said, "invalid")
    return name, value


def _not_one_of(field: str, got: str, known: Iterable[str]) -> InvalidSchedule:
    said = f"expected one of {', '.join(known)}, got {got[:40]!r}."
    return InvalidSchedule(field, said, "not_one_of")
