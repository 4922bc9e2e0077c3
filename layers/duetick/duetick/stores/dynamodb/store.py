"""The store on DynamoDB: one table, and no transaction in anything that a fire needs."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote, urlsplit

from duetick.domain.errors import InvalidStoreUrl
from duetick.domain.mirror import problem_of, repair
from duetick.domain.policies import MINUTE_MS
from duetick.ports import Clock, Difference
from duetick.stores.dynamodb.alteration import runs_of_minute
from duetick.stores.dynamodb.clock import Skew, host_clock
from duetick.stores.dynamodb.entities import Entities, Name
from duetick.stores.dynamodb.erasure import erase
from duetick.stores.dynamodb.errors import Conflict
from duetick.stores.dynamodb.index import DynamoIndex
from duetick.stores.dynamodb.items import Entity, name_of
from duetick.stores.dynamodb.journal import Journal
from duetick.stores.dynamodb.ledger import DynamoLedger
from duetick.stores.dynamodb.migration import check_schema, migrate
from duetick.stores.dynamodb.occurrences import number, text
from duetick.stores.dynamodb.schedules import DynamoSchedules
from duetick.stores.dynamodb.schema import DIRECTORIES, DIRECTORY
from duetick.stores.dynamodb.table import Table, Update, connect
from duetick.stores.ids import new_id

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LARGEST_SHARDS: Final = 256


class DynamoStore:
    """`ports.Store` on DynamoDB."""

    def __init__(
        self, table: Table, shards: int, clock: Clock | None, *, look_ahead: bool = False
    ) -> None:
        self.now: Clock = clock or host_clock
        self._table = table
        self._entities = Entities(table, shards)
        journal = Journal(table, self._entities.layout)
        skew = Skew(checked=clock is None)
        self.index = DynamoIndex(self._entities, journal, self.now, new_id, skew)
        self.schedules = DynamoSchedules(self._entities, self.now, new_id, look_ahead=look_ahead)
        self.ledger = DynamoLedger(self._entities, journal, self.now, new_id)

    @property
    def client(self) -> "DynamoDBClient":
        """What the store speaks to DynamoDB through."""
        return self._table.client

    def migrate(self) -> None:
        """See `ports.Store`."""
        migrate(self._table, self._entities.shards)

    def check_schema(self) -> None:
        """See `ports.Store`."""
        check_schema(self._table)

    def check(self, *, now: int | None = None) -> Sequence[Difference]:
        """See `ports.Store`."""
        at = self.now() if now is None else now
        found = [difference(entity, at) for entity in self._everything()]
        return sorted((one for one in found if one), key=lambda one: (one.user_id, one.key))

    def _everything(self) -> Iterator[Entity]:
        for directory in range(DIRECTORIES):
            names: list[Name] = []
            for item in self._table.query(
                "dir = :d", {":d": text(str(directory))}, index=DIRECTORY
            ):
                names.append(name_of(item))
                if len(names) == 500:
                    yield from self._entities.load_many(names).values()
                    names = []
            yield from self._entities.load_many(names).values()

    def rebuild(self, *, now: int | None = None) -> int:
        """See `ports.Store`. Rows that stand in a shard of an earlier layout are moved as well."""
        at = self.now() if now is None else now
        leaving = self._entities.layout.leaving(at)
        mended = sum(self._mend(entity, at) for entity in self._everything())
        self._entities.layout.leave(leaving, at)
        return mended

    def _mend(self, entity: Entity, now: int) -> bool:
        found = difference(entity, now)
        try:
            if found is None:
                return self._entities.move(entity, now)
            return self._put_right(entity, found, now)
        except Conflict:
            return self._mend(self._entities.load(entity.user_id, entity.key), now)

    def _put_right(self, entity: Entity, found: Difference, now: int) -> bool:
        row, record = entity.indexed, entity.record
        if found.problem == "unreadable" or record is None or not record.enabled:
            entity.row = entity.row if entity.poison else None
            self._entities.save(entity, now)
            return found.problem != "unreadable"
        try:
            change = repair(record, row, entity.fired_through, now)
        except ValueError:
            entity.row = None
            self._entities.save(entity, now)
            return False
        self.schedules.mend(entity, change, now)
        return True

    def erase(self, user_id: str) -> int:
        """See `ports.Store`."""
        return erase(self._table, user_id)

    def admit_run(self, user_id: str, at_most: int, *, now: int | None = None) -> bool:
        """See `ports.Store`."""
        minute = (self.now() if now is None else now) // MINUTE_MS
        over = (minute + 1) * MINUTE_MS // 1_000
        update = Update(
            "ADD #n :one SET #ttl = :over",
            "attribute_not_exists(#n) OR #n < :most",
            {"#n": "n", "#ttl": "ttl"},
            {":one": number(1), ":over": number(over), ":most": number(at_most)},
        )
        try:
            return at_most > 0 and bool(self._table.update(runs_of_minute(user_id, minute), update))
        except Conflict:
            return False

    def close(self) -> None:
        """See `ports.Store`."""
        self.index.close()
        self._table.client.close()


def difference(entity: Entity, now: int) -> Difference | None:
    """Where a record and its index row disagree. A row without a record is left alone."""
    problem = problem_of(entity.record, entity.indexed, entity.fired_through, now)
    if entity.poison:
        problem = "unreadable"
    return Difference(entity.user_id, entity.key, problem) if problem else None


def open_dynamodb(url: str, clock: Clock | None, *, look_ahead: bool = False) -> DynamoStore:
    """A store at dynamodb://table?region=…&endpoint=…&shards=N."""
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    name = unquote(parts.netloc)
    unknown = options.keys() - {"region", "endpoint", "shards"}
    if not name or parts.path.strip("/") or unknown:
        raise InvalidStoreUrl(
            f"{url!r} is no table's address: expected dynamodb://table, then "
            "?region=…&endpoint=…&shards=… as needed."
        )
    client = connect(options.get("region"), options.get("endpoint"))
    shards = _shards(options.get("shards", "1"))
    return DynamoStore(Table(name, client), shards, clock, look_ahead=look_ahead)


def _shards(given: str) -> int:
    if not given.isdecimal() or not 1 <= int(given) <= LARGEST_SHARDS:
        raise InvalidStoreUrl(f"shards={given}: expected a number from 1 to {LARGEST_SHARDS}.")
    return int(given)
