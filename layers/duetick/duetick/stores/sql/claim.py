"""A chunk of a claim, on any SQL database: its due rows, and the writes that follow from them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from duetick.core.ids import new_id
from duetick.domain.book import Unreadable
from duetick.domain.claims import DueRow, Templates, index_row, name_for, pick_shares
from duetick.domain.ending import times_of_end
from duetick.domain.failure_hooks import hooks_of
from duetick.domain.occurrence import Occurrence
from duetick.domain.policies import Policies
from duetick.domain.ranges import leave_out
from duetick.domain.schedule import Pause
from duetick.domain.states import State
from duetick.ports import Chunk, Fair
from duetick.stores.sql.rows import identity_params, occurrence_params, unreadable_params
from duetick.stores.sql.session import QueryCall, Row, Session

NEXT_FIRE_AT: Final = 4
FLOW: Final = 5
"""The places of these fields in a `DueRow`."""

SERIAL: Final = 6
"""The number of hexadecimal digits at the end of an id. They count the occurrences of a chunk."""


class ClaimChunk(Protocol):
    """The claim of a chunk, as a backend does it."""

    def __call__(self, session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """Claim one chunk in an open transaction."""


@dataclass(slots=True)
class ChunkPlan:
    """The writes of one chunk. `rows` are the due rows; a place is a position in `rows`.

    `made` has the new occurrences, without names; `of` has, for each, the place of the row that
    names it. `advanced` has (place, next time, mark). If `decide_usual` decided, `lists` has the
    occurrences of each advanced row, in place of `made`: rows that are alike have the same tuple.
    `done` has (place, mark) of each row that never fires again. `broken` has the rows that cannot
    be read.
    """

    rows: Sequence[DueRow]
    now: int
    made: list[Occurrence] = field(default_factory=list)
    of: list[int] = field(default_factory=list)
    advanced: list[tuple[int, int, int]] = field(default_factory=list)
    lists: list[tuple[Occurrence, ...]] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)
    broken: list[tuple[Unreadable, Occurrence]] = field(default_factory=list)
    stem: str = field(default_factory=lambda: new_id()[:-SERIAL])

    def decide_usual(self, templates: Templates) -> list[int]:
        """Decide the writes of the rows that go on. Return the places of the others."""
        others: list[int] = []
        for place, row in enumerate(self.rows):
            found = templates.usual(row)
            if found is None:
                template = templates.of(row)
                if template.next_at is None:
                    others.append(place)
                    continue
                found = template.made, template.next_at, template.mark
            made, next_at, mark = found
            self.lists.append(made)
            self.advanced.append((place, next_at, mark))
        return others

    def decide(self, templates: Templates) -> None:
        """Decide the writes of every row."""
        for place, row in enumerate(self.rows):
            if usual := templates.usual(row):
                made, next_at, mark = usual
                self.made += made
                self.of += [place] * len(made)
                self.advanced.append((place, next_at, mark))
                continue
            template = templates.of(row)
            if template.error is not None:
                broken = Unreadable(index_row(row), template.error, self.now)
                self.broken.append((broken, name_for(row, template.made[0], new_id())))
                continue
            self.made += template.made
            self.of += [place] * len(template.made)
            if template.next_at is None:
                self.done.append((place, template.mark))
            else:
                self.advanced.append((place, template.next_at, template.mark))

    def ranges(self) -> list[int]:
        """Return the positions of the ranges in `made`."""
        return [n for n, one in enumerate(self.made) if one.range_end is not None]

    def leave_out(self, known: Mapping[int, Sequence[int]]) -> None:
        """Leave out of ranges the known times. `known` has them by a range's position in `made`.

        A known time has an occurrence already: it was claimed ahead of a change, or a caller
        brought it.
        """
        made, of = self.made, self.of
        self.made, self.of = [], []
        for n, (one, place) in enumerate(zip(made, of, strict=True)):
            whole = name_for(self.rows[place], one, "") if n in known else one
            parts = leave_out(whole, known[n]) if n in known else [one]
            self.made += parts
            self.of += [place] * len(parts)

    def ids(self) -> Iterator[str]:
        """Yield the id of each in `made`: the chunk's random stem and a serial number."""
        return (f"{self.stem}{n:06x}" for n in range(len(self.made)))

    def occurrences(self) -> Iterator[Occurrence]:
        """Yield each that the claim leases, with its name and its id. The tick delivers them."""
        for one, place, name in zip(self.made, self.of, self.ids(), strict=True):
            if one.state is State.QUEUED:
                yield name_for(self.rows[place], one, name)

    def find_leased(self) -> list[Occurrence]:
        """Return the occurrences of `lists` that the claim leases, for the tick to deliver."""
        rows, stem, leased = self.rows, self.stem, list[Occurrence]()
        serial = 0
        for (place, _, _), made in zip(self.advanced, self.lists, strict=True):
            for one in made:
                if one.state is State.QUEUED:
                    leased.append(name_for(rows[place], one, f"{stem}{serial:06x}"))
                serial += 1
        return leased

    def find_poisoned(self) -> list[Occurrence]:
        """Return the occurrences of rows that cannot be read."""
        return [one for _, one in self.broken]


def endings(session: Session, plan: ChunkPlan) -> list[QueryCall]:
    """Return the call that marks the records of rows that never fire again.

    The records are read: a row alone does not show whether its schedule is enabled, or paused.
    """
    if not plan.done:
        return []
    at = {plan.rows[place][:2]: max(plan.now, mark) for place, mark in plan.done}
    marks = [
        (user_id, key, *times_of_end(user_id, Policies.load(policies), Pause.load(pause), since))
        for user_id, key, enabled, pause, policies in session.rows(
            "schedules_ending", {"names": json.dumps([*at])}
        )
        if enabled and (since := at[user_id, key])
    ]
    return [("schedules_end", {"marks": json.dumps(marks)})] if marks else []


def leave_out_param(fair: Fair) -> str:
    """Return the users that a claim leaves out, as the parameter of the queries."""
    return json.dumps(sorted(fair.leave_out)) if fair.leave_out else "[]"


def rows_within(fair: Fair, rows: Sequence[Row], limit: int) -> list[int]:
    """Return the positions of the rows that the claim takes: all, or each user's share.

    Rows that only advance are in no share.
    """
    if fair.share is None or len(rows) < limit:
        return [*range(len(rows))]
    free = places_only_advancing(fair, rows)
    others = [n for n in range(len(rows)) if n not in free]
    picked = pick_shares([rows[n][0] for n in others], fair.share)
    return sorted([*free, *(others[n] for n in picked)])


def places_only_advancing(fair: Fair, rows: Sequence[Row]) -> frozenset[int]:
    """Return the positions of the rows of which the claim leases nothing."""
    if fair.is_plain:
        return frozenset()
    due = ((n, row[0], row[FLOW], row[NEXT_FIRE_AT]) for n, row in enumerate(rows))
    return frozenset(n for n, *one in due if fair.leases_nothing(*one))


def set_aside(broken: Iterable[tuple[Unreadable, Occurrence]]) -> Iterator[QueryCall]:
    """Yield the calls that move unreadable rows out of the index and record the errors."""
    for one, record in broken:
        name = {"user_id": one.row.user_id, "key": one.row.key}
        yield "mark_keep", name
        yield "index_remove", name
        yield "mark_raise", {**name, "mark": one.row.next_fire_at}
        yield "unreadable_put", unreadable_params(one)
        yield "occurrence_put", occurrence_params(record)


def tell_of(session: Session, poisoned: Iterable[Occurrence]) -> Iterator[QueryCall]:
    """Yield the calls that record the failure hooks of poisoned occurrences, before these are
    written.

    An occurrence that the ledger already has does not die again.
    """
    for one in poisoned:
        for hook in hooks_of([one], new_id):
            if not session.rows("occurrence_get", identity_params(one.identity)):
                yield "occurrence_put", occurrence_params(hook)
