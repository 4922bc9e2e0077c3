"""Planted bugs. A simulator that does not find them finds nothing.

Each makes the shelf of every process wrong, in one way that real schedulers were wrong.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Final, NamedTuple, TypeVar, cast

from duetick.domain.attempts import SUCCEEDED, Begun, Settled, settle
from duetick.domain.backfilling import KIND, Backfill, BackfillStep
from duetick.domain.book import Book
from duetick.domain.errors import DuetickError
from duetick.domain.group_pauses import GroupPause, Pauses
from duetick.domain.identity import is_failure_hook
from duetick.domain.occurrence import LATEST, IndexRow, Leased, Occurrence, ScheduleName
from duetick.domain.policies import Overlap
from duetick.domain.retention import Retention, Retired
from duetick.domain.standing import StandingOrder
from duetick.domain.states import Reason, State
from duetick.ports import NO_TERMS, Alter, Chunk, Fair, Shelf, Terms
from duetick.stores.sql.session import Session
from duetick.stores.sql.shelf import SqlShelf

from tests.conformance.broken_stores import CommitsBetween
from tests.simulation.boundaries import CrossedShelf
from tests.simulation.story import Verb
from tests.simulation.world import Alters

T = TypeVar("T")


class Altered:
    """A shelf that acts as another one, with one planted bug."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def __getattr__(self, name: str) -> object:
        return getattr(self._shelf, name)


class Asked(NamedTuple):
    """A call of `Shelf.change`, without its function."""

    user_id: str
    key: str
    now: int
    about: Leased | None
    alone: bool
    terms: Terms


class WrongChanges(Altered):
    """A shelf that changes books wrongly."""

    def change(
        self,
        user_id: str,
        key: str,
        now: int,
        alter: "Alter[T]",
        *,
        about: Leased | None = None,
        alone: bool = False,
        terms: Terms = NO_TERMS,
    ) -> T:
        """See `ports.Shelf`."""
        return self.change_wrongly(Asked(user_id, key, now, about, alone, terms), alter)

    def change_wrongly(self, asked: Asked, alter: "Alter[T]") -> T:
        """Change a book as the bug does."""
        raise NotImplementedError

    def change_rightly(self, asked: Asked, alter: "Alter[T]") -> T:
        """Change a book as the shelf does."""
        user_id, key, now, about, alone, terms = asked
        return self._shelf.change(user_id, key, now, alter, about=about, alone=alone, terms=terms)


class SettlesFirst(Altered):
    """An attempt counts as a success before its action runs."""

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | DuetickError | None]:
        """Begin, and settle at once."""
        begun = self._shelf.begin(leases, now)
        self._shelf.settle(
            [settle(one.occurrence, SUCCEEDED, now) for one in begun if isinstance(one, Begun)], now
        )
        return begun


class ForgetsFailures(Altered):
    """A `finally` deletes each delivered occurrence, although its action may have failed."""

    def settle(
        self, settled: Sequence[Settled], now: int
    ) -> Sequence[Occurrence | DuetickError | None]:
        """Settle everything as a success."""
        return self._shelf.settle([settle(one.before, SUCCEEDED, now) for one in settled], now)


class SettlesWithoutFence(Altered):
    """A settle is taken under any fence."""

    def settle(
        self, settled: Sequence[Settled], now: int
    ) -> Sequence[Occurrence | DuetickError | None]:
        """Settle under the fence that is current."""
        (one,) = settled
        found = self._shelf.occurrence(one.before.identity)
        if found is None or found.fence == one.before.fence:
            return self._shelf.settle(settled, now)

        def alter(book: Book) -> Occurrence:
            current = book.pages.find(found.nominal_at, found.origin) or found
            after = replace(one.after, fence=current.fence, attempts=current.attempts)
            book.moved[after.identity] = after
            return after

        return [self._shelf.change(found.user_id, found.key, now, alter, about=one.before)]


class ReadsTheWallClock(Altered):
    """A claim asks the machine what time it is."""

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """Claim by a clock of its own."""
        return self._shelf.claim(time.time_ns() // 1_000_000, limit, ahead, fair)


class ChecksThenActs(Altered):
    """A begin reads first, then writes without another look."""

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | DuetickError | None]:
        """Begin an occurrence that was leased at the read."""
        (lease,) = leases
        seen = self._shelf.occurrence(lease.identity)
        if seen is None or seen.state is not State.QUEUED or seen.fence != lease.fence:
            return [None]
        if seen.policies.max_runs or seen.policies.overlap is not Overlap.ALLOW:
            return self._shelf.begin(leases, now)

        def alter(book: Book) -> Begun:
            after = replace(
                seen,
                state=State.PROCESSING,
                attempts=seen.attempts + 1,
                begun_at=now,
                lease_until=now + seen.policies.lease_ms,
            )
            book.moved[after.identity] = after
            if book.record and not seen.attempts:
                book.record = replace(book.record, runs=book.record.runs + 1)
            return Begun(after, book.view())

        return [self._shelf.change(lease.user_id, lease.key, now, alter, about=lease)]


class PausesInSilence(WrongChanges):
    """A pause accounts for none of the times that it takes."""

    def change_wrongly(self, asked: Asked, alter: "Alter[T]") -> T:
        """Change, and drop the ranges of pauses."""

        def altered(book: Book) -> T:
            answer = alter(book)
            paused = (Reason.PAUSED, Reason.DISABLED)
            book.made = [one for one in book.made if one.reason not in paused]
            return answer

        altered.__qualname__ = alter.__qualname__
        return self.change_rightly(asked, altered)


class ForgetsKeys(WrongChanges):
    """The key of a job is looked at and never kept."""

    def change_wrongly(self, asked: Asked, alter: "Alter[T]") -> T:
        """Change, and keep no creation."""
        forgetful = asked.terms._replace(creation=None)
        return self.change_rightly(asked._replace(terms=forgetful), alter)


class MovesFirst(WrongChanges):
    """The cursor of a backfill moves before its occurrences are recorded."""

    def change_wrongly(self, asked: Asked, alter: "Alter[T]") -> T:
        """Keep the progress of a backfill, and change after that."""
        if alter.__qualname__.startswith("Ledger.backfill"):
            name = asked.user_id, asked.key
            taken = self._shelf.change(*name, asked.now, lambda book: alter(book.copy()))
            assert isinstance(taken, BackfillStep)
            for order in self._shelf.standing():
                one = Backfill.load(order) if order.kind == KIND else None
                if one and (one.user_id, one.key) == name:
                    self._shelf.keep_order(order.change(taken.after.dump()))
        return self.change_rightly(asked, alter)


class TellsLater(WrongChanges):
    """A failure hook is recorded in a second write, after the death."""

    def change_wrongly(self, asked: Asked, alter: "Alter[T]") -> T:
        """Change without the hooks, then record them."""
        late: list[Occurrence] = []

        def altered(book: Book) -> T:
            answer = alter(book)
            late[:] = [one for one in book.made if is_failure_hook(one.origin)]
            book.made = [one for one in book.made if not is_failure_hook(one.origin)]
            return answer

        def tell(book: Book) -> None:
            book.made += late

        altered.__qualname__ = tell.__qualname__ = alter.__qualname__
        answer = self.change_rightly(asked, altered)
        if late:
            self._shelf.change(asked.user_id, asked.key, asked.now, tell)
        return answer


class CountsAttempts(Altered):
    """A limit of runs counts each attempt."""

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | DuetickError | None]:
        """Begin, and count a second attempt as a run."""
        begun = self._shelf.begin(leases, now)
        for one in begun:
            if isinstance(one, Begun) and one.occurrence.attempts > 1:
                self._shelf.change(one.occurrence.user_id, one.occurrence.key, now, _count)
        return begun


class SettlesTheCancelled(Altered):
    """An attempt settles an occurrence that an operator cancelled: its fence is the same."""

    def settle(
        self, settled: Sequence[Settled], now: int
    ) -> Sequence[Occurrence | DuetickError | None]:
        """Settle under the right fence, in any state."""
        (one,) = settled
        found = self._shelf.occurrence(one.before.identity)
        if found is None or found.reason is not Reason.OPERATOR or found.fence != one.before.fence:
            return self._shelf.settle(settled, now)

        def alter(book: Book) -> Occurrence:
            book.moved[one.after.identity] = one.after
            return one.after

        return [self._shelf.change(found.user_id, found.key, now, alter, about=one.before)]


class KeepsPausesForEver(Altered):
    """A claim advances rows under each pause that its process has ever seen."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__(shelf)
        self._seen: dict[str, GroupPause] = {}

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """Claim under pauses that have ended."""
        self._seen |= {f"{one.scope} {one.since}": one for one in fair.pauses.every}
        endless = (one._replace(until=None, resumed_at=now) for one in self._seen.values())
        return self._shelf.claim(now, limit, ahead, fair._replace(pauses=Pauses(tuple(endless))))


class TakesUnseen(Altered):
    """A limit is read, and its lease is written over the writes of others."""

    def keep_order(self, order: StandingOrder) -> bool:
        """Write the order over the one that stands."""
        kept = self._shelf.keep_order(order)
        if kept or order.kind != "limit":
            return kept
        current = [one for one in self._shelf.standing() if one.name == order.name]
        return any(self._shelf.keep_order(order._replace(rev=one.rev + 1)) for one in current)


class FollowsNoZone(WrongChanges):
    """New rules of a zone are dated, and the row stays at the time that the old ones gave."""

    def change_wrongly(self, asked: Asked, alter: "Alter[T]") -> T:
        """Change, but leave the row of a schedule whose zone has new rules."""

        def altered(book: Book) -> T:
            row, answer = book.row, alter(book)
            self.leave(book, row)
            return answer

        altered.__qualname__ = alter.__qualname__
        follows = alter.__qualname__.startswith("Store.follow_zone")
        does = altered if follows else alter
        return self.change_rightly(asked, does)

    @staticmethod
    def leave(book: Book, row: IndexRow | None) -> None:
        """Leave the row as it was."""
        book.row = row


class DatesNoRules(FollowsNoZone):
    """A row follows the new rules of its zone, and no definition dates them."""

    @staticmethod
    def leave(book: Book, row: IndexRow | None) -> None:
        """Leave the definition as it was."""
        del row
        book.definitions.clear()


class BringsBackTheErased(Altered):
    """A run writes its occurrence once more at its end, although its user was erased before."""

    def settle(
        self, settled: Sequence[Settled], now: int
    ) -> Sequence[Occurrence | DuetickError | None]:
        """Settle; if there is nothing to settle, make it."""
        (one,) = settled
        if self._shelf.occurrence(one.before.identity):
            return self._shelf.settle(settled, now)

        def alter(book: Book) -> Occurrence:
            book.made.append(one.after)
            return one.after

        return [self._shelf.change(one.after.user_id, one.after.key, now, alter)]


class PurgesTheMark(Altered):
    """A purge goes by the age alone, and takes the mark too: a row that is set back fires again."""

    def retire(self, retention: Retention, now: int, limit: int) -> Retired:
        """Delete all that ended before the shortest time, and forget the marks."""
        crossed = self._shelf
        assert isinstance(crossed, CrossedShelf)
        inner = crossed._shelf
        assert isinstance(inner, SqlShelf)
        retired = crossed.retire(retention, now, limit)
        with inner._database.transaction() as session:
            session.run(
                "DELETE FROM occurrences WHERE state IN ('succeeded', 'cancelled', 'dead')"
                " AND updated_at <= :before",
                {"before": now - retention.shortest_ms},
            )
            session.script("UPDATE schedule_index SET mark = NULL; DELETE FROM marks")
        return retired


class MakesPendingLater(WrongChanges):
    """A write of its own makes a bell pending, after the one that moves it."""

    def change_wrongly(self, asked: Asked, alter: "Alter[T]") -> T:
        """Change, then make the bell pending."""
        moved: list[Book] = []

        @wraps(alter)
        def altered(book: Book) -> T:
            answer = alter(book)
            moved[:] = [book] if book.bell else []
            book.bell = None
            return answer

        answer = self.change_rightly(asked, altered)
        if moved:
            self._shelf.make_bells_pending([(asked.user_id, asked.key)], asked.now)
        return answer


class EndsAnyToken(Altered):
    """A process deletes the pending bell that it put, even if another write made it pending
    since.
    """

    def end_bell(self, name: ScheduleName, token: str) -> bool:
        """Delete the pending bell with any token."""
        crossed = self._shelf
        assert isinstance(crossed, CrossedShelf)
        current = crossed._shelf.take_bell(name, LATEST, 0)
        return crossed.end_bell(name, current or token)


class SharesBells(Altered):
    """Two processes may have one bell at a time."""

    def take_bell(self, name: ScheduleName, now: int, until: int) -> str | None:
        """Take the bell, even if another process has it."""
        return self._shelf.take_bell(name, LATEST, until)


def _count(book: Book) -> None:
    if book.record:
        book.record = replace(book.record, runs=book.record.runs + 1)


def advances_apart(shelf: Shelf) -> Shelf:
    """The advance of a claim is committed before its occurrences are recorded."""
    assert isinstance(shelf, CrossedShelf)
    inner = shelf._shelf
    assert isinstance(inner, SqlShelf)
    claim = inner._claim

    def claim_apart(session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        return claim(CommitsBetween(session, "occurrence_claimed"), now, limit, ahead, fair)

    inner._claim = claim_apart
    return shelf


def _altered(kind: Callable[[Shelf], Altered]) -> Alters:
    return lambda shelf: cast("Shelf", kind(shelf))


PLANTED: Final[Mapping[str, Alters]] = {
    "settle before run": _altered(SettlesFirst),
    "delete in finally": _altered(ForgetsFailures),
    "no fence at settle": _altered(SettlesWithoutFence),
    "wall clock": _altered(ReadsTheWallClock),
    "check, then act": _altered(ChecksThenActs),
    "a pause that accounts for nothing": _altered(PausesInSilence),
    "an advance outside the claim's transaction": advances_apart,
    "a failure hook that is written after the death": _altered(TellsLater),
    "a limit that counts attempts": _altered(CountsAttempts),
    "a cursor that moves before the bring": _altered(MovesFirst),
    "a settle of what was cancelled": _altered(SettlesTheCancelled),
    "an advance under a pause that has ended": _altered(KeepsPausesForEver),
    "a limit that is read, then written": _altered(TakesUnseen),
    "a purge that takes the mark": _altered(PurgesTheMark),
    "a row that stays at its old time under new rules": _altered(FollowsNoZone),
    "new rules that nobody dates": _altered(DatesNoRules),
    "a settle that brings back what was erased": _altered(BringsBackTheErased),
    "a job's key that is not kept": _altered(ForgetsKeys),
    "a bell that is pending after the write": _altered(MakesPendingLater),
    "a pending bell that ends whatever its token": _altered(EndsAnyToken),
    "a bell that two processes have": _altered(SharesBells),
}
"""The bugs by name."""

ONLY_WITH: Final[Mapping[str, Verb]] = {
    "a limit that is read, then written": "limit",
    "a row that stays at its old time under new rules": "new tzdata",
    "new rules that nobody dates": "new tzdata",
    "a settle that brings back what was erased": "erase",
    "a job's key that is not kept": "enqueue",
    "a bell that is pending after the write": "move",
    "a pending bell that ends whatever its token": "move",
    "a bell that two processes have": "move",
}
"""The verb without which no story comes to the place of a bug: so others need not be told."""

FOUND_BY: Final[Mapping[str, int]] = {
    "settle before run": 2,
    "delete in finally": 2,
    "no fence at settle": 43,
    "wall clock": 1,
    "check, then act": 1,
    "a pause that accounts for nothing": 10,
    "an advance outside the claim's transaction": 40,
    "a limit that counts attempts": 4,
    "a cursor that moves before the bring": 8,
    "a settle of what was cancelled": 33,
    "an advance under a pause that has ended": 52,
    "a purge that takes the mark": 15,
    "a row that stays at its old time under new rules": 89,
    "new rules that nobody dates": 23,
    "a settle that brings back what was erased": 1_027,
    "a failure hook that is written after the death": 14,
    "a limit that is read, then written": 6,
    "a job's key that is not kept": 2,
    "a bell that is pending after the write": 9,
    "a pending bell that ends whatever its token": 196,
    "a bell that two processes have": 814,
}
"""The seed of the first story that finds a bug. It saves time only: that story is told first."""
