"""Two callers change a schedule at once: the result is as if one of them had come first.

The first is parked between its reading and its writing, while the second, on a connection of its
own, acts to its end or has to wait. The measure is the same two acts one after the other, on a
store in memory.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

import pytest
from duetick.core.store import Store
from duetick.domain.occurrence import ScheduleName
from duetick.stores.dynamodb.items import item_key
from duetick.stores.dynamodb.shelf import open_dynamodb
from duetick.stores.dynamodb.table import Item, Table
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.connecting import connect_to
from duetick.stores.postgres.database import PostgresDatabase, PostgresSession
from duetick.stores.postgres.shelf import PostgresShelf, open_postgres
from duetick.stores.sql.queries import load, migrations
from duetick.stores.sql.schema import OF_USERS
from duetick.stores.sql.session import Database, Session

from tests.conformance.general_way import GeneralDynamo, GeneralPostgres
from tests.conformance.meddled import MeddledDatabase
from tests.conformance.memory_shelf import MemoryShelf
from tests.conformance.parking import Parking, ParkingSession, ParkingTable, interleave
from tests.conformance.standing import Standing, look, place
from tests.conformance.verbs import SCENES, TICKS, Answer, Hand, T
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import Postgres, connect, drop_database, fresh_database

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

pytestmark = pytest.mark.slow

Ended = tuple[Answer, Answer, Standing]
"""Both answers, and the schedule as it stands in the end."""

PAIRS: Final = [
    (scene, parked, other)
    for scene, each in SCENES.items()
    for parked in each.verbs
    for other in each.verbs
]


@cache
def in_turn(scene: str, first: str, second: str) -> Ended:
    """Run the same acts one after the other, on a fresh store."""
    store, name = Store(MemoryShelf()), ("ann", "k")
    standing = SCENES[scene].standing
    place(store.shelf, name, standing, T)
    hand = Hand(store, name, standing)
    return hand.does(first), hand.does(second), look(store.shelf, name, T)


class Bench(Protocol):
    """A database, and two who act on it: the one that is parked takes no fast way."""

    parking: Parking
    parked: Store
    other: Store

    def is_blocked(self) -> bool:
        """Return True if the other one waits for a lock of the parked one."""

    def clear(self, name: ScheduleName) -> None:
        """See that no tick finds anything of the schedule."""


class PostgresBench:
    """Each of the two has a connection of its own; a third asks who is blocked."""

    def __init__(self, url: str) -> None:
        self.parking = Parking()
        self.other = Store(open_postgres(url))
        self.other.migrate()
        database = PostgresDatabase(connect_to(read_address(url)), 2, code=1)
        self._parking = MeddledDatabase(database, self._wrap)
        self.parked = Store(self._open(self._parking))
        self._asking = connect(url)

    def _open(self, database: Database) -> PostgresShelf:
        return GeneralPostgres(database, migrations("postgres"))

    def _wrap(self, session: Session) -> Session:
        return ParkingSession(session, self.parking)

    def is_blocked(self) -> bool:
        """See `Bench`."""
        [[blocked]] = self._asking.run(BLOCKED)
        return bool(blocked)

    def clear(self, name: ScheduleName) -> None:
        del name
        self._asking.run(CLEAR)

    def close(self) -> None:
        self._asking.close()
        self.parked.close()
        self.other.close()


class FastBench(PostgresBench):
    """The one that is parked claims without locks: between its read and its write."""

    def _open(self, database: Database) -> PostgresShelf:
        return PostgresShelf(database, migrations("postgres"))

    def clear(self, name: ScheduleName) -> None:
        super().clear(name)
        self.parked = Store(self._open(self._parking))


BLOCKED = """SELECT EXISTS (SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0)"""
CLEAR = f"TRUNCATE {', '.join(OF_USERS)}"


class DynamoBench:
    """Each of the two writes on the condition that nothing has changed since its read."""

    def __init__(self, url: str, kind: type[ParkingTable] = ParkingTable) -> None:
        self.parking = Parking()
        shelf = open_dynamodb(url, checks_clock=False)
        self.other = Store(shelf)
        self.other.migrate()
        self._table = kind(shelf._table, self._stop)
        self.parked = Store(GeneralDynamo(self._table, 1, checks_clock=False))

    def _stop(self) -> None:
        self.parking.stop()

    def is_blocked(self) -> bool:
        """Nobody ever is."""
        return False

    def clear(self, name: ScheduleName) -> None:
        self._table.delete(item_key(*name))

    def close(self) -> None:
        self.other.close()


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Bench]:
    url = fresh_database(postgres)
    bench = PostgresBench(url)
    yield bench
    bench.close()
    drop_database(postgres, url)


@pytest.fixture(scope="module")
def claiming_fast(postgres: Postgres) -> Iterator[Bench]:
    url = fresh_database(postgres)
    bench = FastBench(url)
    yield bench
    bench.close()
    drop_database(postgres, url)


@pytest.fixture(scope="module")
def on_dynamodb(dynamodb_local: DynamoDB) -> Iterator[Bench]:
    bench = DynamoBench(dynamodb_local.table_url(table_name()))
    yield bench
    bench.close()


@pytest.fixture(params=["on_postgres", "on_dynamodb"])
def bench(request: pytest.FixtureRequest) -> Bench:
    found: Bench = request.getfixturevalue(request.param)
    return found


numbers = count()


def at_once(bench: Bench, scene: str, parked: str, other: str) -> Ended:
    """Park the first where it would write, until the second is done or blocked."""
    name, standing = ("ann", f"k{next(numbers)}"), SCENES[scene].standing
    bench.parking = Parking()
    place(bench.other.shelf, name, standing, T)
    first, second = Hand(bench.parked, name, standing), Hand(bench.other, name, standing)
    answers = interleave(
        bench.parking,
        lambda: first.does(parked),
        lambda: second.does(other),
        bench.is_blocked,
    )
    answers = _come_again(first, parked, answers[0]), _come_again(second, other, answers[1])
    ended = *answers, look(bench.other.shelf, name, T)
    bench.clear(name)
    return ended


def _come_again(hand: Hand, verb: str, answer: Answer) -> Answer:
    """Repeat a tick that passed by the rows that another one held: it finds them now."""
    return hand.does(verb) if verb in TICKS and answer == () else answer


def wrong(bench: Bench, scene: str, parked: str, other: str) -> list[str]:
    """Return the differences from both orders; none if the result is as one of them."""
    found = at_once(bench, scene, parked, other)
    second, first, standing = in_turn(scene, other, parked)
    as_first = [*differences(found, in_turn(scene, parked, other))]
    as_last = [*differences(found, (first, second, standing))]
    both = ["where it comes first", *as_first, "where it comes last", *as_last]
    return both if as_first and as_last else []


def differences(found: object, expected: object, place: str = "") -> Iterator[str]:
    """Yield the parts in which two answers, or the data of two stores, differ."""
    if is_dataclass(found) and is_dataclass(expected) and type(found) is type(expected):
        for one in fields(found):
            name = f"{place}.{one.name}"
            yield from differences(getattr(found, one.name), getattr(expected, one.name), name)
    elif isinstance(found, tuple) and isinstance(expected, tuple) and len(found) == len(expected):
        for number, pair in enumerate(zip(found, expected, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif found != expected:
        yield f"  {place}: {found!r}, not {expected!r}"


@pytest.mark.parametrize(("scene", "parked", "other"), PAIRS)
def test_j13_of_two_changes_at_once_one_came_first(
    bench: Bench, scene: str, parked: str, other: str
) -> None:
    told = wrong(bench, scene, parked, other)
    assert not told, "\n".join(told)


@pytest.mark.parametrize(("scene", "parked", "other"), [one for one in PAIRS if one[1] == "claim"])
def test_j13_a_claim_without_locks_came_first_or_last(
    claiming_fast: Bench, scene: str, parked: str, other: str
) -> None:
    told = wrong(claiming_fast, scene, parked, other)
    assert not told, "\n".join(told)


class UnlockedBench(PostgresBench):
    """Some locks are not taken."""

    locks: tuple[str, ...] = ()

    def _wrap(self, session: Session) -> Session:
        assert isinstance(session, PostgresSession)
        session._queries = load("postgres") | {name: _unlocked(name) for name in self.locks}
        return super()._wrap(session)


def _unlocked(name: str) -> str:
    query = load("postgres")[name]
    without = re.sub(r"FOR UPDATE OF \w+|pg_advisory_xact_lock", "", query)
    assert without != query
    return without


@pytest.fixture(scope="module")
def unlocked(postgres: Postgres) -> Iterator[UnlockedBench]:
    url = fresh_database(postgres)
    bench = UnlockedBench(url)
    yield bench
    bench.close()
    drop_database(postgres, url)


@pytest.mark.parametrize(
    ("locks", "scene", "parked", "other"),
    [
        (
            ("name_lock", "schedule_lock", "occurrences_in_place"),
            *("paused", "put policies", "resume"),
        ),
        (("schedule_lock",), "free", "put policies", "begin"),
        (("index_lock",), "free", "put policies", "claim"),
        (("occurrence_lock",), "free", "release", "begin"),
        (("occurrences_in_place",), "shared", "put policies", "lease"),
    ],
)
def test_a_lock_that_is_not_taken_is_missed(
    unlocked: UnlockedBench, locks: tuple[str, ...], scene: str, parked: str, other: str
) -> None:
    unlocked.locks = locks
    assert wrong(unlocked, scene, parked, other)


class UnrevisedTable(ParkingTable):
    """A table that writes schedules without regard to other writes."""

    def put(self, item: Item, rev: int | None = None) -> None:
        if rev is not None:
            self._stop()
        Table.put(self, item)

    def transact(self, writes: "Sequence[TransactWriteItemTypeDef]") -> None:
        super().transact([_unconditional(one) for one in writes])


def _unconditional(write: "TransactWriteItemTypeDef") -> "TransactWriteItemTypeDef":
    put = write.get("Put")
    if put is None:
        return write
    return {"Put": {"TableName": put["TableName"], "Item": put["Item"]}}


@pytest.mark.parametrize("other", ["begin", "release", "bring", "claim"])
def test_a_revision_that_is_not_asked_is_missed(dynamodb_local: DynamoDB, other: str) -> None:
    bench = DynamoBench(dynamodb_local.table_url(table_name()), UnrevisedTable)
    assert wrong(bench, "free", "put policies", other)
    bench.close()
