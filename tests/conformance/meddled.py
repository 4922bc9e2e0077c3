"""A session of a broken store, whose queries of one name do something else."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from duetick.stores.sql.session import Database, Params, QueryCall, Row, Session, Value


class Meddled:
    """A session in which queries of one name do something else."""

    def __init__(self, session: Session, name: str = "", instead: Sequence[Row] = ()) -> None:
        self._session = session
        self._name = name
        self._instead = instead

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """Run it, unless it has that name."""
        return self._instead if name == self._name else self._session.rows(name, params)

    def several(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        """Run the queries, with those of that name altered."""
        return [self.rows(name, params) for name, params in calls]

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """Run it, unless it has that name."""
        return [1 for _ in params] if name == self._name else self._session.each(name, params)

    def start(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """Start the queries, with those of that name altered."""
        answers = self.several(calls)
        return lambda: answers

    def every(self, name: str, names: Sequence[str], given: Iterable[Sequence[Value]]) -> int:
        """Run it, unless it has that name."""
        return sum(self.each(name, [dict(zip(names, each, strict=True)) for each in given]))

    def last(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """Run the last queries, with those of that name altered."""
        answers = self.several(calls)
        return lambda: answers

    def script(self, sql: str) -> None:
        """Run it."""
        self._session.script(sql)

    def script_of(self, name: str) -> None:
        """Run them."""
        self._session.script_of(name)

    def run(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """Run it."""
        return self._session.run(sql, params)


class MeddledDatabase:
    """A database whose sessions are wrapped."""

    def __init__(self, database: Database, wrap: Callable[[Session], Session]) -> None:
        self._database = database
        self._wrap = wrap

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        with self._database.transaction() as session:
            yield self._wrap(session)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        with self._database.reading() as session:
            yield self._wrap(session)

    @contextmanager
    def claiming(self, *, waits: bool = True) -> Iterator[Session]:
        with self._database.claiming(waits=waits) as session:
            yield self._wrap(session)

    @contextmanager
    def looking(self) -> Iterator[Session]:
        with self._database.looking() as session:
            yield self._wrap(session)

    @contextmanager
    def volatile(self) -> Iterator[Session]:
        with self._database.volatile() as session:
            yield self._wrap(session)

    def migration(self) -> AbstractContextManager[Session]:
        return self._database.migration()

    def check_transactions(self) -> None:
        self._database.check_transactions()

    def now(self) -> int:
        return self._database.now()

    def close(self) -> None:
        self._database.close()
