"""A store that was written from the README and the suite alone: they say enough."""

import pytest
from duetick.ports import Store
from duetick.testing import Capability, StoreConformance
from hypothesis import settings

from tests.conformance.memory_store import MemoryStore
from tests.conformance.stateful import StoreMachine


class TestMemory(StoreConformance):
    capabilities = frozenset(Capability) - {Capability.FAILING_WRITES}

    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class MemoryMachine(StoreMachine):
    def open_store(self) -> Store:
        return MemoryStore()


TestMemoryAndTheModelAgree = MemoryMachine.TestCase
TestMemoryAndTheModelAgree.settings = settings(max_examples=40, stateful_step_count=40)
