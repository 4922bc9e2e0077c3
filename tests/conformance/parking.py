"""Two callers at once: one is parked between its reading and its writing while another acts."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar

from duetick.stores.dynamodb.table import Item, Table
from duetick.stores.sql.queries import load
from duetick.stores.sql.session import Params, QueryCall, Row, Session, Value

from tests.conformance.meddled import Meddled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

T = TypeVar("T")
U = TypeVar("U")

LONGEST: Final = 60
"""Seconds. Nothing waits so long, unless it is broken."""

LOOK_AGAIN: Final = 0.001
"""Seconds. The other one is most often done by then."""


@dataclass
class Parking:
    """The place where a caller waits, once, before it writes."""

    reached: Event = field(default_factory=Event)
    may_leave: Event = field(default_factory=Event)

    def stop(self) -> None:
        """Wait here, unless a caller has waited before."""
        if not self.reached.is_set():
            self.reached.set()
            assert self.may_leave.wait(LONGEST)


def interleave(
    parking: Parking,
    parked: Callable[[], T],
    other: Callable[[], U],
    is_blocked: Callable[[], bool],
) -> tuple[T, U]:
    """Their answers. The other one acts to its end, or until it is blocked; then the parked one
    goes on. One that writes nothing is never parked.
    """
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(parked)
        first.add_done_callback(lambda _: parking.reached.set())
        assert parking.reached.wait(LONGEST)
        second = threads.submit(other)
        while not second.done() and not is_blocked():
            wait([second], LOOK_AGAIN)
        parking.may_leave.set()
        return first.result(LONGEST), second.result(LONGEST)


WRITES: Final = ("INSERT", "UPDATE", "DELETE", "WITH made", "WITH advanced")


def _writes(name: str) -> bool:
    """Return True if the query of that name writes."""
    return load("postgres")[name].lstrip().startswith(WRITES)


class ParkingSession(Meddled):
    """A session of Postgres that stops before its first write."""

    def __init__(self, session: Session, parking: Parking) -> None:
        super().__init__(session)
        self._parking = parking

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        self._stop([name])
        return self._session.rows(name, params)

    def several(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        self._stop([name for name, _ in calls])
        return self._session.several(calls)

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        self._stop([name] if params else [])
        return self._session.each(name, params)

    def every(self, name: str, names: Sequence[str], given: Iterable[Sequence[Value]]) -> int:
        self._stop([name] if (written := [*given]) else [])
        return self._session.every(name, names, written)

    def start(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        self._stop([name for name, _ in calls])
        return self._session.start(calls)

    def last(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        self._stop([name for name, _ in calls])
        return self._session.last(calls)

    def _stop(self, names: Sequence[str]) -> None:
        if any(map(_writes, names)):
            self._parking.stop()


class ParkingTable(Table):
    """A table that stops before the first write of a schedule's item."""

    def __init__(self, table: Table, stop: Callable[[], None]) -> None:
        super().__init__(table.name, table.service)
        self._stop = stop

    def put(self, item: Item, rev: int | None = None) -> None:
        if rev is not None:
            self._stop()
        super().put(item, rev)

    def transact_with(
        self,
        first: "TransactWriteItemTypeDef",
        others: "Sequence[TransactWriteItemTypeDef]",
    ) -> None:
        self._stop()
        super().transact_with(first, others)
