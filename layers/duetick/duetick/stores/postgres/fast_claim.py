"""The everyday claim on Postgres: one conditional statement for a chunk, without locks before it.

A tick reads many due rows at once, and writes them chunk by chunk. A row is written if it is the
version that was read. While the server writes a chunk, the next one is decided.

Rows that do not go on, because they are done or cannot be read, are locked and written in the same
transaction by `claim.LockingClaim`. That claims the rest of a tick, too, if another claim is at
work on the same rows, if somebody holds the lock of a row, or if a time has an occurrence already.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, repeat
from operator import add
from typing import Final, NamedTuple, TypeAlias

from duetick.domain.claims import DueRow, Templates
from duetick.domain.occurrence import Occurrence
from duetick.ports import Chunk, Fair, Part
from duetick.stores.postgres.claim import (
    EMPTY,
    LOWEST,
    LockingClaim,
    array,
    claim_locked,
    columns_of,
    read_chunk,
    tids,
)
from duetick.stores.postgres.errors import RowLocked
from duetick.stores.sql.claim import NEXT_FIRE_AT, ChunkPlan, leave_out_param, rows_within
from duetick.stores.sql.session import (
    Database,
    Params,
    QueryCall,
    Row,
    Session,
    Undone,
    Value,
    number,
)

BLOCK: Final = 4
"""The chunks that one read brings, if the chunk before was full."""

WORDS: Final = frozenset({"state", "reason"})
"""The columns of an occurrence that hold words of ours."""

DueRead: TypeAlias = tuple[str, str, DueRow]
"""A due row with its place and its version."""


@dataclass(slots=True)
class _Plan:
    """A chunk that is decided and not written. The rows of `others` are for the other way."""

    asked: tuple[int, Fair]
    reads: Sequence[DueRead]
    plan: ChunkPlan
    others: Sequence[int]


class _Written(NamedTuple):
    """A chunk that was sent: the number of advanced rows, and the occurrences of the other rows."""

    advanced: int
    chunk: Chunk
    others: Sequence[Occurrence]


@dataclass(slots=True)
class _Tick:
    """The rows that a tick has read and not claimed, without those of the users left out.

    Beyond `reached` it has read no row. `is_last` says that nothing more was due at that read.
    """

    of: tuple[int, int]
    left_out: frozenset[str] = frozenset()
    part: Part | None = None
    reads: list[DueRead] = field(default_factory=list)
    reached: int = LOWEST
    is_last: bool = False
    was_full: bool = False
    gives_way: bool = False
    next: _Plan | None = None

    def has(self, limit: int) -> bool:
        """Return True if the rows that were read are enough for a chunk."""
        return len(self.reads) >= limit or (self.is_last and bool(self.reads))

    @property
    def lowest(self) -> int:
        """The time from which the tick reads next: rows that are not claimed come again."""
        return self.reads[0][2][NEXT_FIRE_AT] if self.reads else self.reached


class FastClaim:
    """The claims of a process. Of its threads one reads ahead; the others lock what they read."""

    def __init__(self, locking: LockingClaim) -> None:
        self._locking = locking
        self._tick = _Tick((0, 0))
        self._lock = threading.Lock()

    def claim(self, database: Database, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """See `ports.Shelf`."""
        if not self._lock.acquire(blocking=False):
            return self._claim_locking(database, now, limit, ahead, fair)
        try:
            self._continue((now, ahead), fair)
            if not self._tick.gives_way:
                return self._claim(database, limit, fair)
        except (Undone, RowLocked):
            self._give_way()
        except BaseException:
            self._tick = _Tick((0, 0))
            raise
        finally:
            self._lock.release()
        return self._claim_locking(database, now, limit, ahead, fair)

    def _claim_locking(
        self, database: Database, now: int, limit: int, ahead: int, fair: Fair
    ) -> Chunk:
        with database.claiming() as session:
            return self._locking(session, now, limit, ahead, fair)

    def _continue(self, of: tuple[int, int], fair: Fair) -> None:
        """Go on with the rows that were read, or begin anew for another question."""
        before = self._tick
        if (before.of, before.left_out, before.part) != (of, fair.leave_out, fair.part):
            gives_way = before.gives_way and before.of == of
            self._tick = _Tick(of, fair.leave_out, fair.part, gives_way=gives_way)

    def _give_way(self) -> None:
        """Leave the rest of the tick to `LockingClaim`: another process is at work on its rows."""
        self._tick = _Tick(self._tick.of, self._tick.left_out, self._tick.part, gives_way=True)

    def _claim(self, database: Database, limit: int, fair: Fair) -> Chunk:
        planned = self._take_planned(limit, fair)
        if planned is None:
            if not self._tick.has(limit):
                self._read(database, limit, fair)
            planned = self._plan(limit, fair)
        if planned is None:
            return Chunk(0)
        return self._write(database, planned)

    # Reads.

    def _take_planned(self, limit: int, fair: Fair) -> _Plan | None:
        """Return the chunk that was decided ahead, if it is the one that is asked for."""
        tick, planned = self._tick, self._tick.next
        tick.next = None
        if planned and planned.asked != (limit, fair):
            tick.reads[:0] = planned.reads
            return None
        return planned

    def _read(self, database: Database, limit: int, fair: Fair) -> None:
        """Read the next due rows; if there are none, from the start: some may have come back."""
        tick = self._tick
        wanted = limit * BLOCK if tick.was_full else limit
        params: dict[str, Value] = {"until": sum(tick.of) - fair.late, "limit": wanted}
        params["leave_out"] = leave_out_param(fair)
        query = "claim_read"
        if fair.part:
            query, params = "claim_read_part", params | fair.part._asdict()
        for lowest in dict.fromkeys((tick.lowest, LOWEST)):
            with database.claiming(waits=False) as session:
                ((found, *_),) = session.last([(query, params | {"from": lowest})])()
            tick.reads = _reads(found)
            if tick.reads:
                break
        tick.is_last = len(tick.reads) < wanted
        tick.was_full = not tick.is_last
        if tick.reads:
            tick.reached = tick.reads[-1][2][NEXT_FIRE_AT]

    def _plan(self, limit: int, fair: Fair) -> _Plan | None:
        """Take a chunk of the rows that were read, and decide it."""
        tick = self._tick
        first, rest = tick.reads[:limit], tick.reads[limit:]
        if not first:
            return None
        rows = [row for _, _, row in first]
        full = len(first) if rest or not tick.is_last else limit
        taken = rows_within(fair, rows, full)
        if len(taken) < len(first):
            kept = {*range(len(first))}.difference(taken)
            rest = [*(first[n] for n in sorted(kept)), *rest]
            first, rows = [first[n] for n in taken], [rows[n] for n in taken]
        tick.reads = rest
        plan = ChunkPlan(rows, tick.of[0])
        return _Plan((limit, fair), first, plan, plan.decide_usual(self._templates(fair)))

    def _templates(self, fair: Fair) -> Templates:
        return self._locking.templates(*self._tick.of, fair)

    # Writes.

    def _write(self, database: Database, planned: _Plan) -> Chunk:
        """Write a chunk. If a row had changed, another one is at work: the other way claims it."""
        with database.claiming(waits=False) as session:
            written = self._send(session, planned)
        if written.advanced == len(planned.plan.advanced):
            return written.chunk
        self._give_way()
        with database.looking() as session:
            (rows,) = session.last([("occurrences_of_chunk", {"stem": planned.plan.stem})])()
        new = {name for (name,) in rows} | {one.id for one in written.others}
        made = [one for one in written.chunk.occurrences if one.id in new]
        return written.chunk._replace(occurrences=made)

    def _send(self, session: Session, planned: _Plan) -> _Written:
        """Write a chunk. While the server works, make its occurrences and decide the next one."""
        calls = [("claim_advance", _params(planned)), *_verify(planned.plan)]
        if planned.others:
            answers = session.start([*calls, ("claim_lock", _others(planned))])
        else:
            answers = session.last(calls)
        made = planned.plan.find_leased()
        self._decide_next(planned)
        advanced, *more = answers()
        others = Chunk(0)
        if planned.others:
            others = self._claim_others(session, more[-1][0], planned)
        chunk = Chunk(len(planned.reads), [*made, *others.occurrences], others.poisoned)
        return _Written(number(advanced), chunk, others.occurrences)

    def _claim_others(self, session: Session, found: Row, planned: _Plan) -> Chunk:
        """Claim the rows of the chunk that had to be locked."""
        if found[0] is None:
            return Chunk(0)
        return claim_locked(session, *read_chunk(found), self._templates(planned.asked[1]))

    def _decide_next(self, planned: _Plan) -> None:
        limit, fair = planned.asked
        if self._tick.has(limit):
            self._tick.next = self._plan(limit, fair)


def _reads(found: Row) -> list[DueRead]:
    if found[0] is None:
        return []
    places, versions, *columns = found
    rows = zip(*columns, strict=True)
    return [*zip(str(places).split(";"), str(versions).split(","), rows, strict=True)]


def _others(planned: _Plan) -> Params:
    return _places([planned.reads[n] for n in planned.others])


def _verify(plan: ChunkPlan) -> list[QueryCall]:
    """Return the call that verifies the ranges of several times."""
    long = {id(made) for made in plan.lists if any(map(_is_long, made))}
    if not long:
        return []
    pairs = zip(plan.advanced, plan.lists, strict=True)
    found = [(plan.rows[place], one) for (place, _, _), one in pairs if id(one) in long]
    ranges = [(row, one) for row, made in found for one in made if _is_long(one)]
    params: Params = {
        "users": json.dumps([row[0] for row, _ in ranges]),
        "keys": json.dumps([row[1] for row, _ in ranges]),
        "first": array([one.nominal_at for _, one in ranges]),
        "last": array([one.range_end for _, one in ranges]),
    }
    return [("claim_verify", params)]


def _is_long(one: Occurrence) -> bool:
    """Return True for a range of several times."""
    return one.range_end is not None and one.range_end != one.nominal_at


def _params(planned: _Plan) -> Params:
    plan = planned.plan
    lists = {id(one): one for one in plan.lists}
    numbers = {name: number for number, name in enumerate(lists, 1)}
    ends = [*accumulate(map(len, lists.values()))]
    serials = [*accumulate(map(len, plan.lists), initial=0)]
    order = _by_name(plan)
    advanced = [plan.advanced[n] for n in order]
    return {
        **_columns([*chain(*lists.values())]),
        **_places([planned.reads[place] for place, _, _ in advanced]),
        "now": plan.now,
        "stem": plan.stem,
        "next_at": array([next_at for _, next_at, _ in advanced]),
        "marks": array([mark for _, _, mark in advanced]),
        "lists": array([numbers[id(plan.lists[n])] for n in order]),
        "serials": array([serials[n] for n in order]),
        "first": array(map(add, [0, *ends[:-1]], repeat(1))),
        "last": array(ends),
    }


def _by_name(plan: ChunkPlan) -> list[int]:
    """Return the numbers of the advanced rows in the order of their users.

    The server then finds the rows side by side in its indexes, with a tenth less work.
    """
    users = [plan.rows[place][0] for place, _, _ in plan.advanced]
    return sorted(range(len(users)), key=users.__getitem__)


def _columns(made: Sequence[Occurrence]) -> Params:
    """Return the columns of occurrences, with words and nulls as numbers where they differ."""
    words: list[Value] = []
    params: dict[str, Value] = {}
    for name, values, alike in columns_of(made):
        params[f"{name}_of_all"], params[name] = values[0] if alike else None, EMPTY
        if name in WORDS and not alike:
            words += {*values}.difference(words, [None])
            params[name] = array([words.index(one) + 1 if one else 0 for one in values])
        elif not alike:
            params[name] = array([one or 0 for one in values])
    return {**params, "words": array(words)}


def _places(reads: Sequence[DueRead]) -> Params:
    """Return the places of rows, and their versions."""
    versions = ",".join([seen for _, seen, _ in reads])
    return {"places": tids([place for place, _, _ in reads]), "versions": f"{{{versions}}}"}
