"""The parts that every store runs leave out no statement."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import pytest
from duetick.core.store import Store
from duetick.stores.sql.queries import FRAGMENTS, load
from duetick.stores.sqlite.database import SqliteSession
from duetick.stores.sqlite.shelf import SqliteShelf
from duetick.testing import Capability
from duetick.testing.conformance.suite import OF_HOOKS

from tests.conformance.broken import AlteredDatabase
from tests.conformance.judge import judge, names_of
from tests.conformance.parts import EveryStatement

ELSEWHERE: Final = ("take_over", "inbox_")
"""The beginnings of the names of statements that `tests/integration/test_takeover.py` and
`test_inbox.py` run.
"""


class Parts(EveryStatement):
    """The parts in memory, without hooks."""

    capabilities = frozenset(Capability) - OF_HOOKS - {Capability.LASTING, Capability.THREADS}


class Noted(dict[str, str]):
    """Queries that note the names of those that are used."""

    asked: set[str]

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


class NotingDatabase(AlteredDatabase):
    """A database that notes the queries of all its transactions."""

    def __init__(self, asked: set[str]) -> None:
        self._asked = asked
        super().__init__()

    @contextmanager
    def altering(self, opened: AbstractContextManager[SqliteSession]) -> Iterator[SqliteSession]:
        with super().altering(opened) as session:
            session._queries = noted = Noted(session._queries)
            noted.asked = self._asked
            yield session


@pytest.mark.slow
def test_the_parts_run_every_statement() -> None:
    asked: set[str] = set()

    @contextmanager
    def opened() -> Iterator[Store]:
        database = NotingDatabase(asked)
        store = Store(SqliteShelf(database))
        store.migrate()
        yield store
        database.connection.close()

    suite = Parts()
    assert judge(suite, opened, names_of(suite)).failed == set()
    statements = {name for name in load("sqlite") if not name.endswith(FRAGMENTS)}
    assert {name for name in statements - asked if not name.startswith(ELSEWHERE)} == set()
