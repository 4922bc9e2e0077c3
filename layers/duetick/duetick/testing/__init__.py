"""For tests of flows: `fire`, `Stage` and `FakeClock`. For stores: their conformance suite.

A test runs a flow as a deployment does: a schedule is put, claimed, dispatched and settled.

    from duetick.testing import fire

    def test_the_digest_is_sent():
        fired = fire(digests, action="send_digest", input={"topic": "news"})
        assert fired.state == "succeeded"

These work under any runner of tests. `StoreConformance`, the promises of a store as tests, needs
pytest; `duetick/stores/README.md` says how to write a store, and how to let the suite judge it.
"""

from typing import TYPE_CHECKING

from duetick.testing.assertions import explain, need_pytest
from duetick.testing.clock import FakeClock
from duetick.testing.stage import Fired, Stage, fire

if TYPE_CHECKING:
    from duetick.testing.conformance import Capability, StoreConformance

__all__ = ["Capability", "FakeClock", "Fired", "Stage", "StoreConformance", "fire"]

explain()


def __getattr__(name: str) -> object:
    """Import the suite at its first use: it alone needs pytest."""
    if name not in ("Capability", "StoreConformance"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    need_pytest()
    from duetick.testing import conformance

    return getattr(conformance, name)
