"""The parts of a shelf's answer to a forecast: rows that fire alike, occurrences that wait alike.

Rows fire alike if cron, zone, next time, flow, policies and spent runs are the same: a thousand of
them are one `Alike`.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from duetick.domain.identity import is_job, stands_beside
from duetick.domain.occurrence import IndexRow, Occurrence, ScheduleName
from duetick.domain.states import WAITING, State


class Selection(NamedTuple):
    """The schedules of a forecast: of a user, of a flow, of an action of it; None is every one.

    A row tells its user if the user is in `apart`, and its action if the flow is in `by_action`: a
    pause or a limit asks for them.
    """

    user_id: str | None = None
    flow: str | None = None
    action: str | None = None
    apart: frozenset[str] = frozenset()
    by_action: frozenset[str] = frozenset()

    @property
    def is_all(self) -> bool:
        """True if nothing is left out."""
        return self.user_id is None and self.flow is None

    def takes(self, user_id: str, flow: str, action: str) -> bool:
        """Return True if it has the schedules of a user in a flow with an action."""
        pairs = (self.user_id, user_id), (self.flow, flow), (self.action, action)
        return all(wanted in (None, given) for wanted, given in pairs)


class Alike(NamedTuple):
    """Rows that fire alike: so many (`number`), due for the same nominal time.

    The time of a rate may be the full minute before it, if it is later than this minute and the
    rows have neither an end nor a spread: no other fire lies between. `policies` are their text.
    `anchor` is None if the next time is one of their rate's own. `mark` is there if they were set
    back behind it. If the rows have a limit of runs, `spent` counts the runs of each that are used
    up or wait to begin. If the rows have a spread, they tell their `names`.
    """

    number: int
    cron: str
    timezone: str | None
    next_fire_at: int
    flow: str = ""
    policies: str | None = None
    anchor: int | None = None
    mark: int | None = None
    user_id: str = ""
    action: str = ""
    spent: int = 0
    names: tuple[ScheduleName, ...] = ()


class Waits(NamedTuple):
    """Occurrences that are recorded and due within one minute: so many (`number`).

    A pause of a group lets those that are `kept` wait for its end, and cancels the others.
    """

    number: int
    due_at: int
    flow: str = ""
    user_id: str = ""
    action: str = ""
    kept: bool = False
    job: bool = False


class AlikePage(NamedTuple):
    """A part of a shelf's answer. The next part begins at `place`; None if this is the last one.

    If `partly` is set, more occurrences wait than were counted.
    """

    rows: Sequence[Alike]
    waiting: Sequence[Waits] = ()
    unreadable: int = 0
    place: str | None = None
    partly: bool = False


def make_alike(row: IndexRow, mark: int | None, *, action: str = "", spent: int = 0) -> Alike:
    """Return a row as a shelf tells it that groups none."""
    return Alike(
        number=1,
        cron=row.cron,
        timezone=row.timezone,
        next_fire_at=row.next_fire_at,
        flow=row.flow,
        policies=row.policies.dump(),
        anchor=None if row.redefined_at else row.anchor,
        mark=mark if mark is not None and mark >= row.next_fire_at else None,
        user_id=row.user_id,
        action=action,
        spent=0 if row.policies.max_runs is None else spent,
        names=((row.user_id, row.key),) if row.policies.spread else (),
    )


def waits(one: Occurrence, now: int, until: int, *, action: str = "") -> Waits | None:
    """Return an occurrence as one that waits; None if it does not wait, or is due later."""
    leased_ahead = one.state is State.QUEUED and one.due_at > now
    if one.due_at >= until or not (leased_ahead or one.state in WAITING):
        return None
    kept, job = bool(one.attempts) or stands_beside(one.origin), is_job(one.origin)
    return Waits(1, one.due_at, one.flow, one.user_id, action, kept, job)


_TO_BEGIN: Final = frozenset({State.SCHEDULED, State.QUEUED})


def count_spent_runs(runs: int, under_way: Iterable[Occurrence]) -> int:
    """Return the runs of a limit that are used up, with those that wait to begin."""
    return runs + sum(
        not one.attempts and one.state in _TO_BEGIN and not stands_beside(one.origin)
        for one in under_way
    )
