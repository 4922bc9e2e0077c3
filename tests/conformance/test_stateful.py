"""SQLite, driven at random beside the model."""

from duetick.ports import Store
from duetick.stores import open_store
from hypothesis import settings

from tests.conformance.stateful import StoreMachine


class SqliteMachine(StoreMachine):
    """Each run has a memory of its own."""

    def open_store(self) -> Store:
        store = open_store("sqlite://")
        store.migrate()
        return store


TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True
)
