"""A store that was written from the stores' README and the suite alone: they say enough."""

import pytest
from duetick.core.store import Store
from duetick.testing import StoreConformance
from hypothesis import settings

from tests.conformance.memory_shelf import MemoryShelf
from tests.conformance.stateful import StoreMachine


class TestMemory(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return Store(MemoryShelf())


class MemoryMachine(StoreMachine):
    def open_store(self) -> Store:
        return Store(MemoryShelf())


TestMemoryAndTheModelAgree = MemoryMachine.TestCase
TestMemoryAndTheModelAgree.settings = settings(max_examples=40, stateful_step_count=40)
